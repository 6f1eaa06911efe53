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
    have read an epoch, and not those at which its last row was made, which nobody looked at. `numbers` has an
    epoch, its moment, the next epoch, and so on. Inputs and outputs extend it by such pairs themselves: each
    change does, and a call of Python, or a pair to keep, would cost as much again.
    """

    __slots__ = ("numbers",)

    def __init__(self, *numbers: float) -> None:
        self.numbers: Final[deque[float]] = deque(numbers, 2 * DATED_EPOCHS_MAX)

    def arrays(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Return the epochs and the moments."""
        numbers = list(self.numbers)
        return np.array(numbers[::2], np.int64), np.array(numbers[1::2], np.float64)

    def pairs(self) -> list[tuple[int, float]]:
        """Return (epoch, moment) of each. Another thread may call this while moves are noted."""
        numbers = list(self.numbers)
        return list(zip(map(int, numbers[::2]), numbers[1::2], strict=True))

    def compared(self) -> object:
        """Return nothing: no worker acts by these moments."""
        return None
