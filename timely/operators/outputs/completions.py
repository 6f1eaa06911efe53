"""When epochs were complete at an output: moments, each with the first epoch that was not complete then."""

from __future__ import annotations

import time
from collections import deque
from typing import Final

from ...limits import DATED_EPOCHS_MAX

__all__ = ["Completions"]


class Completions:
    """The last moments at which a worker found more epochs complete at an output.

    An output looks at its frontier when somebody asks: so these are the moments at which a client could first
    have read an epoch, and not those at which its last row was made, which nobody looked at.
    """

    __slots__ = ("_moves",)

    def __init__(self) -> None:
        self._moves: Final[deque[tuple[int, float]]] = deque(maxlen=DATED_EPOCHS_MAX)

    def note(self, epoch: int) -> None:
        """Note that all epochs before this one are complete. Requires: later than the last one."""
        self._moves.append((epoch, time.monotonic()))

    def moves(self) -> list[tuple[int, float]]:
        """Return the epochs that were noted, ascending, each with the moment by `time.monotonic`."""
        return list(self._moves)

    def compared(self) -> object:
        """Return nothing: no worker acts by these moments."""
        return None
