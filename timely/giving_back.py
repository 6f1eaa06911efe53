"""Who keeps freed memory while there is work, and when does the system get it back?

The system hands out pages one by one, as they are touched, and each costs as much as reading hundreds of
rows. So the C library and `mapped.py` keep freed memory while there is work. After a load it is half of all
memory of a process, and the C library by itself gives back only memory at its end: so a process that has done
much work gives the memory back explicitly.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Callable
from typing import Final

import pyarrow as pa

from .limits import FREED_BYTES_MAX, FREED_PIECE_BYTES_MAX, GIVE_BACK_AT_ONCE_ROWS_MIN, GIVE_BACK_ROWS_MIN
from .mapped import has_spare, release_spare

__all__ = ["GivingBack", "give_back_freed", "give_back_read", "limit_arenas"]

_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
_ARENA_MAX: Final = -8
"""Parameters of glibc's `mallopt`."""

_ARENAS: Final = 2


_SENT_WEIGHT: Final = 4
"""A row that is sent counts as much as this many rows that come in, and are packed: it takes memory as words,
as columns, and in a frame.
"""


class GivingBack:
    """Counts rows that have come in, or gone out, and after many of them gives back the memory freed
    since.
    """

    def __init__(self) -> None:
        self._rows = self._rows_at_once = 0
        _keep_freed()

    def add(self, rows: int) -> None:
        """Note that `rows` have come in."""
        self._rows += rows
        self._rows_at_once += rows

    def add_sent(self, rows: int) -> None:
        """Note that `rows` went out in one answer: they free more memory than rows that come in. Answers of
        few rows do not count.
        """
        if _SENT_WEIGHT * rows >= GIVE_BACK_AT_ONCE_ROWS_MIN:
            self.add(_SENT_WEIGHT * rows)

    def look(self, rows: int = 0) -> bool:
        """Give back memory if many rows have come since the last time; return True if it was given back.

        Call this when all work is done, also that of the last `rows`. Cost: some milliseconds, one hundredth
        of the work on those rows.
        """
        self._rows += rows
        self._rows_at_once += rows
        if self._rows < GIVE_BACK_ROWS_MIN:
            return False
        self._give_back()
        return True

    def look_behind(self, waits: Callable[[], bool] = lambda: False) -> bool:
        """Give back memory as `look` does, also after fewer rows if they have come at once; but not if
        `waits()` is true: then something else has to be done with them first. For a moment when no client
        waits.
        """
        if not self._is_due():
            self._rows_at_once = 0
            return False
        if waits():
            return False
        self._give_back()
        return True

    def rest(self) -> bool:
        """Give back all spare memory, whatever it was used for, after a while without work; return True if
        there was any.
        """
        if not (has_spare() or self._is_due()):
            return False
        self._give_back()
        return True

    def _is_due(self) -> bool:
        return self._rows >= GIVE_BACK_ROWS_MIN or self._rows_at_once >= GIVE_BACK_AT_ONCE_ROWS_MIN

    def _give_back(self) -> None:
        self._rows = self._rows_at_once = 0
        give_back_freed()


def give_back_freed() -> None:
    """Give back all freed memory that this process keeps. Cost: some milliseconds."""
    release_spare()
    pa.default_memory_pool().release_unused()
    if (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:  # only glibc has it
        trim(0)


def limit_arenas() -> None:
    """Let the threads of this process, and Arrow, share few arenas of the C library. Call this before there
    are threads.

    By default each new thread takes an arena that no other thread uses, up to eight for each processor, and
    each arena keeps memory that was freed in it; Arrow's own allocator keeps pages for each thread. That is
    faster for threads that allocate at the same time, and larger for many threads that do little each.
    Settings that the process was started with stay.
    """
    if "ARROW_DEFAULT_MEMORY_POOL" not in os.environ:
        pa.set_memory_pool(pa.system_memory_pool())
    if not _has_settings() and (change := getattr(ctypes.CDLL(None), "mallopt", None)) is not None:
        change(_ARENA_MAX, _ARENAS)


def give_back_read(rows: int) -> None:
    """Give back memory that Arrow keeps, after a client has read `rows`, if they are many.

    Cost: some tenths of a millisecond, one hundredth of the time to read the rows.
    """
    if rows >= GIVE_BACK_AT_ONCE_ROWS_MIN:
        pa.default_memory_pool().release_unused()


@functools.cache
def _keep_freed() -> bool:
    """Let the C library keep freed memory; return True if it does now.

    By default each call that frees memory gives back all that exceeds twice the largest piece freed so far.
    If the process was started with malloc settings of its own, these stay.
    """
    if _has_settings():
        return False
    if (change := getattr(ctypes.CDLL(None), "mallopt", None)) is None:  # only glibc has it
        return False
    return bool(change(_MMAP_THRESHOLD, FREED_PIECE_BYTES_MAX) and change(_TRIM_THRESHOLD, FREED_BYTES_MAX))


def _has_settings() -> bool:
    """Return True if the process was started with settings of its own for malloc."""
    tunables = os.environ.get("GLIBC_TUNABLES", "")
    return any(name.startswith("MALLOC_") for name in os.environ) or "malloc" in tunables
