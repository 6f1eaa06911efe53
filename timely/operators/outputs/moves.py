"""When an input opened its last epochs, or an output found its last ones complete."""

from __future__ import annotations

from collections import deque
from typing import Final

import numpy as np
import numpy.typing as npt

from ...limits import DATED_EPOCHS_MAX

__all__ = ["EpochMoves"]


class EpochMoves:
    """The last moments (`time.monotonic`) at which an input or an output moved on, each with the first epoch
    that was still to come; ascending.

    An output looks at its frontier when somebody asks. So its moments are those at which a client could first
    have read an epoch, and not those at which its last row was made, which nobody looked at. Outputs add to
    both deques themselves: each change does, and a call of `note` would cost as much again.
    """

    __slots__ = ("epochs", "moments")

    def __init__(self) -> None:
        self.epochs: Final[deque[int]] = deque(maxlen=DATED_EPOCHS_MAX)
        self.moments: Final[deque[float]] = deque(maxlen=DATED_EPOCHS_MAX)

    def note(self, epoch: int, moment: float) -> None:
        """Note that from a moment on, `epoch` is the first that is still to come."""
        self.epochs.append(epoch)
        self.moments.append(moment)

    def arrays(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Return the epochs and the moments. If another thread calls this while a move is noted, each epoch may
        have the moment of the one before.
        """
        moments = np.fromiter(self.moments, np.float64)
        epochs = np.fromiter(self.epochs, np.int64)
        return epochs[: len(moments)], moments

    def pairs(self) -> list[tuple[int, float]]:
        """Return (epoch, moment) of each; see `arrays`."""
        return list(zip(list(self.epochs), list(self.moments), strict=False))

    def compared(self) -> object:
        """Return nothing: no worker acts by these moments."""
        return None
