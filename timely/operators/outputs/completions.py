"""When epochs were complete at an output: moments, each with the first epoch that was not complete then."""

from __future__ import annotations

from collections import deque
from typing import Final

from ...limits import DATED_EPOCHS_MAX

__all__ = ["Completions"]


class Completions:
    """The last `moves`: moments (`time.monotonic`) at which a worker found more epochs complete at an output,
    each behind the first epoch that was not complete then; ascending.

    An output looks at its frontier when somebody asks: so these are the moments at which a client could first
    have read an epoch, and not those at which its last row was made, which nobody looked at. Others add to
    the deque themselves: each change does, and that is no call of Python.
    """

    def __init__(self) -> None:
        self.moves: Final[deque[tuple[int, float]]] = deque(maxlen=DATED_EPOCHS_MAX)

    def compared(self) -> object:
        """Return nothing: no worker acts by these moments."""
        return None
