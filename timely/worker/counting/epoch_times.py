"""How long ago epochs were sealed, and were complete, on one worker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from progress.times.anchor import EPOCH_MAX

from ...limits import DATED_EPOCHS_MAX
from ...operators.outputs.moves import EpochMoves
from ...wire.requests import Value

__all__ = ["epoch_times"]

_Arrays: TypeAlias = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]


def epoch_times(inputs: Sequence[EpochMoves], outputs: Sequence[EpochMoves], now: float) -> list[Value]:
    """Return epochs (int64), and two times for each (float64), as bytes: so many seconds ago all inputs had
    sealed what is before the epoch, and so long ago that was complete at all outputs. Not a number: it is not
    complete, or that was too long ago to be known.

    An epoch is listed if an input had it open and all have sealed what is before it: if several are sealed
    at once, the one behind them. Clients get lists: `timely/client/reports/epoch_lists.py`. There are 1,024
    of them, which as lists would take longer than all else that a worker tells.
    """
    moves = [each.arrays() for each in inputs]
    opened = _opened([epochs for epochs, _ in moves])
    if not len(opened):
        return [b"", b"", b""]
    sealed = _reached(moves, opened)
    done = _reached([each.arrays() for each in outputs], opened)
    is_sealed = sealed == sealed  # a number
    opened, sealed, done = opened[is_sealed], sealed[is_sealed], done[is_sealed]
    return [opened.tobytes(), (now - sealed).tobytes(), (now - done).tobytes()]


def _opened(inputs: Sequence[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    """Return the epochs that some input has opened after another one, ascending."""
    later = [epochs[1:] for epochs in inputs]
    if len(later) == 1:
        (opened,) = later  # ascending as they are
    else:
        opened = np.unique(np.concatenate(later)) if later else np.empty(0, np.int64)
    return opened[: np.searchsorted(opened, EPOCH_MAX)][-DATED_EPOCHS_MAX:]


def _reached(each: Sequence[_Arrays], epochs: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return when the last one had come to each of these ascending epochs; not a number for one that any has
    not come to, or came to before what it remembers.
    """
    moments = np.full(len(epochs), 0.0 if each else np.nan)
    for came, at in each:
        place = came.searchsorted(epochs)
        stop = int(place.searchsorted(len(came)))  # behind the last one nobody has come
        reached = np.full(len(epochs), np.nan)
        reached[:stop] = at[place[:stop]]
        if len(came) >= DATED_EPOCHS_MAX:
            reached[: int(place.searchsorted(1))] = np.nan
        np.maximum(moments, reached, out=moments)  # not a number, if one of them is
    return moments
