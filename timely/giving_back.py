"""What has been freed: when does the system get it back?

The C library keeps what is freed, to hand it out again, and gives back only what lies at the end of its
memory. After a load that is half of all that a process holds. So whoever has done much says so.
"""

from __future__ import annotations

import ctypes

import pyarrow as pa

from .limits import GIVE_BACK_ROWS_MIN

__all__ = ["GivingBack"]


class GivingBack:
    """Counts rows that have come in; after many of them gives back what their work has left."""

    def __init__(self) -> None:
        self._rows = 0

    def add(self, rows: int) -> None:
        """So many have come in."""
        self._rows += rows

    def look(self) -> bool:
        """Nothing is to be done now: give back, if many have come since the last time; whether it has. Cost:
        some milliseconds, of which there was a hundred times as much to do.
        """
        if self._rows < GIVE_BACK_ROWS_MIN:
            return False
        self._rows = 0
        pa.default_memory_pool().release_unused()
        if (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:  # only glibc has it
            trim(0)
        return True
