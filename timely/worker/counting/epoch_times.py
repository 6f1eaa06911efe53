"""How long ago epochs were sealed, and were complete, on one worker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from progress.times.anchor import EPOCH_MAX

from ...limits import DATED_EPOCHS_MAX
from ...wire.requests import Value

__all__ = ["Moves", "epoch_times"]

Moves: TypeAlias = Sequence[tuple[int, float]]
"""Of one input or output: how far it came, as the first epoch that was still to come, and when; ascending."""


def epoch_times(inputs: Sequence[Moves], outputs: Sequence[Moves], now: float) -> list[Value]:
    """Return [epoch, seconds, seconds] for the last epochs: so long ago all inputs had sealed what is before
    the epoch, and so long ago that was complete at all outputs. None: it is not complete, or that was too
    long ago to be known.

    An epoch is listed if an input had it open and all have sealed what is before it: if several are sealed
    at once, the one behind them.
    """
    opened = sorted({epoch for moves in inputs for epoch, _ in moves[1:] if epoch < EPOCH_MAX})
    sealed = _reached(inputs, opened)
    complete = _reached(outputs, opened)
    last = list(zip(opened, sealed, complete, strict=True))[-DATED_EPOCHS_MAX:]
    return [
        [epoch, now - at, None if done is None else now - done] for epoch, at, done in last if at is not None
    ]


def _reached(each: Sequence[Moves], epochs: Sequence[int]) -> list[float | None]:
    """Return when the last one had come to each of these ascending epochs; None for one that any has not
    come to, or came to before what it remembers.
    """
    moments: list[float | None] = [0.0 if each else None] * len(epochs)
    for moves in each:
        place = 0
        for index, epoch in enumerate(epochs):
            while place < len(moves) and moves[place][0] < epoch:
                place += 1
            before = moments[index]
            if place == len(moves) or (place == 0 and len(moves) >= DATED_EPOCHS_MAX):
                moments[index] = None
            elif before is not None:
                moments[index] = max(before, moves[place][1])
    return moments
