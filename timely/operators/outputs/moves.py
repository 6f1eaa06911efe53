"""When an input opened its last epochs, or an output found its last ones complete."""

from __future__ import annotations

from array import array
from typing import Final

import numpy as np
import numpy.typing as npt

from ...limits import DATED_EPOCHS_MAX

__all__ = ["EpochMoves"]

_SLOTS: Final = DATED_EPOCHS_MAX - 1
assert DATED_EPOCHS_MAX & _SLOTS == 0, "a power of two, so that a slot is an `and`"


class EpochMoves:
    """The last moments (`time.monotonic`) at which an input or an output moved on, each with the first epoch
    that was still to come; ascending.

    An output looks at its frontier when somebody asks. So its moments are those at which a client could first
    have read an epoch, and not those at which its last row was made, which nobody looked at.

    A ring of numbers: to note a move allocates nothing, and to read all of them is two copies of memory.
    """

    __slots__ = ("_count", "_epochs", "_moments")

    def __init__(self) -> None:
        self._epochs = array("q")
        self._moments = array("d")
        self._count = 0

    def note(self, epoch: int, moment: float) -> None:
        """Note that from a moment on, `epoch` is the first that is still to come."""
        count = self._count
        if count < DATED_EPOCHS_MAX:
            self._epochs.append(epoch)
            self._moments.append(moment)
        else:
            self._epochs[count & _SLOTS] = epoch
            self._moments[count & _SLOTS] = moment
        self._count = count + 1

    @property
    def are_all(self) -> bool:
        """True if no move is forgotten."""
        return self._count <= DATED_EPOCHS_MAX

    def arrays(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Return the epochs and the moments. Another thread may call this, while moves are noted."""
        first = 0 if self.are_all else self._count & _SLOTS
        # Copies that are made in one step: nobody holds the memory of an array that is about to grow.
        epochs = np.frombuffer(self._epochs.tobytes(), np.int64)
        moments = np.frombuffer(self._moments.tobytes(), np.float64)
        if first:
            epochs = np.concatenate((epochs[first:], epochs[:first]))
            moments = np.concatenate((moments[first:], moments[:first]))
        return epochs, moments

    def pairs(self) -> list[tuple[int, float]]:
        """Return (epoch, moment) of each."""
        epochs, moments = self.arrays()
        return list(zip(epochs.tolist(), moments.tolist(), strict=False))

    def compared(self) -> object:
        """Return nothing: no worker acts by these moments."""
        return None
