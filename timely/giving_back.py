"""What has been freed: who keeps it while there is work, and when does the system get it back?

The system hands out pages one by one, as they are touched, each at the price of reading hundreds of rows. So
what is freed is kept while there is work, by the C library and by `mapped.py`. After a load it is half of
all that a process holds, and the C library gives back only what lies at the end: so whoever has done much
says so.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Callable
from typing import Final

import pyarrow as pa

from .limits import FREED_BYTES_MAX, FREED_PIECE_BYTES_MAX, GIVE_BACK_AT_ONCE_ROWS_MIN, GIVE_BACK_ROWS_MIN
from .mapped import has_kept, release_kept

__all__ = ["GivingBack", "give_back_read"]

_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
"""Parameters of glibc's `mallopt`."""


_SAID_WEIGHT: Final = 4
"""A row that goes out counts as much as so many that come in, and are packed: it stands here as words, as
columns, and in a frame.
"""


class GivingBack:
    """Counts rows that have come in, or gone out; after many of them gives back what their work has left."""

    def __init__(self) -> None:
        self._rows = self._rows_at_once = 0
        _keep_freed()

    def add(self, rows: int) -> None:
        """So many have come in."""
        self._rows += rows
        self._rows_at_once += rows

    def add_said(self, rows: int) -> None:
        """So many went out in one answer, which leaves more than rows that come in; a few leave little."""
        if _SAID_WEIGHT * rows >= GIVE_BACK_AT_ONCE_ROWS_MIN:
            self.add(_SAID_WEIGHT * rows)

    def look(self, rows: int = 0) -> bool:
        """All is done, also what `rows` that came last have brought: give back, if many have come since the
        last time; whether it has. Cost: some milliseconds, of which there was a hundred times as much to do.
        """
        self._rows += rows
        self._rows_at_once += rows
        if self._rows < GIVE_BACK_ROWS_MIN:
            return False
        self._give_back()
        return True

    def look_behind(self, waits: Callable[[], bool] = lambda: False) -> bool:
        """The same where nobody waits for it, also behind fewer rows that have come at once, unless something
        `waits` that is to be done with them.
        """
        if not self._is_due():
            self._rows_at_once = 0
            return False
        if waits():
            return False
        self._give_back()
        return True

    def rest(self) -> bool:
        """Nothing has come for a while: give back whatever is kept for more to come, from wherever it came;
        whether there was anything.
        """
        if not (has_kept() or self._is_due()):
            return False
        self._give_back()
        return True

    def _is_due(self) -> bool:
        return self._rows >= GIVE_BACK_ROWS_MIN or self._rows_at_once >= GIVE_BACK_AT_ONCE_ROWS_MIN

    def _give_back(self) -> None:
        self._rows = self._rows_at_once = 0
        release_kept()
        pa.default_memory_pool().release_unused()
        if (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:  # only glibc has it
            trim(0)


def give_back_read(rows: int) -> None:
    """A client has read so many rows: let the system have what Arrow keeps of their way here, if they are
    many. Cost: some tenths of a millisecond, of which it took a hundred times as much to read them.
    """
    if rows >= GIVE_BACK_AT_ONCE_ROWS_MIN:
        pa.default_memory_pool().release_unused()


@functools.cache
def _keep_freed() -> bool:
    """Let the C library keep what is freed; whether it does now. By itself it gives back, at each call that
    frees, whatever is above twice the largest piece that it has freed so far. Who starts the process with
    settings of its own is not overruled.
    """
    if any(name.startswith("MALLOC_") for name in os.environ) or "malloc" in os.environ.get(
        "GLIBC_TUNABLES", ""
    ):
        return False
    if (change := getattr(ctypes.CDLL(None), "mallopt", None)) is None:  # only glibc has it
        return False
    return bool(change(_MMAP_THRESHOLD, FREED_PIECE_BYTES_MAX) and change(_TRIM_THRESHOLD, FREED_BYTES_MAX))
