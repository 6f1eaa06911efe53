"""Memory of many pages: from the system when it is asked for, and used again when it was dropped.

What a load sorts, packs and sends on is large and short-lived. The system hands out pages one by one, as they
are touched for the first time, and each costs as much as reading its rows many times. So what is dropped is
kept for who asks for as much next, unless more would be held for that than was in use at some time anyhow:
what is held at the most does not grow by it. `release_kept` lets go of it when there is nothing to do.

    mapped           memory for so many bytes
    mapping_of       the memory in which an array lies
    give_back_pages  some of it, to the system
    has_kept         whether anything is kept
    release_kept     nothing is any more

Not the C library's, which keeps small pages, and what was large once for what may be large later.
"""

from __future__ import annotations

import _thread
import atexit
import mmap
import weakref
from typing import Final

import numpy as np

from progress.compiled.arrays import Int64s

from .limits import KEPT_MEMORY_BYTES_MAX, KEPT_MEMORY_BYTES_MIN, KEPT_MEMORY_COUNT_MAX

__all__ = ["HUGE_PAGE_BYTES", "give_back_pages", "has_kept", "mapped", "mapping_of", "release_kept"]

HUGE_PAGE_BYTES: Final = 1 << 21
"""Memory of two such pages and more asks for them: touching small pages first costs more than filling them.
"""

_KEPT_SHARE: Final = 4
"""`KEPT_MEMORY_BYTES_MIN` are kept, but no more than one part of so many of what is in use."""

_PRIVATE: Final = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
_HUGE: Final[int | None] = getattr(mmap, "MADV_HUGEPAGE", None)  # Linux only
_DONTNEED: Final[int | None] = getattr(mmap, "MADV_DONTNEED", None)


class _Lent(weakref.ref["Int64s"]):
    """An array that lies in some memory, and the memory, which is to outlive it."""

    __slots__ = ("memory",)

    memory: mmap.mmap


class _Kept:
    """What was dropped, the latest last.

    Any thread may come in between any two lines, and in this one the collector, which drops arrays: so each
    change is one call of a list or a dictionary, and the count of what is in use is no more than a hint, and
    may come to be below zero.
    """

    def __init__(self) -> None:
        self._lent: dict[int, _Lent] = {}
        self._kept: list[mmap.mmap] = []
        self._bytes_in_use = 0
        self._bytes_most = 0
        """Of all that was there at once, kept or in use, since all was let go of."""

    def lend(self, memory: mmap.mmap, size: int) -> Int64s:
        """An array over the first `size` bytes, a multiple of eight. When it and its views are gone the
        memory comes back.
        """
        array: Int64s = np.frombuffer(memory, np.int64, size // 8)
        lent = _Lent(array, self._take_back)
        lent.memory = memory
        self._lent[id(lent)] = lent
        self._bytes_in_use += len(memory)
        self._bytes_most = max(self._bytes_most, self._bytes_in_use + self._bytes())
        return array

    def _take_back(self, lent: weakref.ref[Int64s]) -> None:
        """Where an array ends, nothing can be raised: an interrupt that comes just here is sent again."""
        # What the handler of another signal raises here (SystemExit, say) Python prints and forgets, as it
        # does an interrupt in the moment before `try`. Of what was raised nobody knows which signal it was,
        # and to call a handler again does twice what it does besides. No signal can get into a callback in
        # C; but that could only note what was dropped (`list.append`), and all of it would be held, without
        # a bound, until somebody asks for memory: for ever where a program has closed its cluster.
        assert isinstance(lent, _Lent)
        try:
            if self._lent.pop(id(lent), None) is None:
                return
            self._bytes_in_use -= len(lent.memory)
            if len(lent.memory) <= KEPT_MEMORY_BYTES_MAX // 4:
                self._kept.append(lent.memory)
                while len(self._kept) > KEPT_MEMORY_COUNT_MAX or self._bytes() > KEPT_MEMORY_BYTES_MAX:
                    self._drop_oldest()
        except KeyboardInterrupt:
            _thread.interrupt_main()

    def take(self, size: int, most: int) -> mmap.mmap | None:
        """The least that is kept of `size` to `most` bytes; None: nothing is, and room has been made for so
        much.
        """
        found, least = None, most + 1
        for memory in self._kept[::-1]:
            if size <= len(memory) < least:
                found, least = memory, len(memory)
        if found is not None:
            try:
                self._kept.remove(found)
            except ValueError:  # another thread has taken it
                return None
            return found
        free = min(KEPT_MEMORY_BYTES_MIN, self._bytes_in_use // _KEPT_SHARE)
        while self._kept and (kept := self._bytes()) > free:
            if self._bytes_in_use + kept + size <= self._bytes_most:
                break
            self._drop_oldest()
        return None

    def __bool__(self) -> bool:
        """Whether anything is kept."""
        return bool(self._kept)

    def release(self) -> None:
        """Let go of all."""
        self._kept.clear()
        self._bytes_in_use = sum(len(lent.memory) for lent in list(self._lent.values()))
        self._bytes_most = self._bytes_in_use

    def end(self) -> None:
        """Nothing comes back any more: the process ends, and what this needs may be gone before an array."""
        self._lent.clear()

    def _bytes(self) -> int:
        return sum(map(len, self._kept))

    def _drop_oldest(self) -> None:
        del self._kept[:1]


_KEPT: Final = _Kept()
atexit.register(_KEPT.end)


def mapped(size: int, stays: bool) -> Int64s:
    """int64[⌈`size` / 8⌉], contents undefined, mapped. What was never touched of it the system has not given.

    It may lie in up to twice as much that is there already. Of that what `stays` keeps no more than it needs.
    """
    pages = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = _KEPT.take(pages, 2 * pages)
    if memory is None:
        memory = mmap.mmap(-1, pages, flags=_PRIVATE)
        if size >= 2 * HUGE_PAGE_BYTES and _HUGE is not None:
            memory.madvise(_HUGE)
    elif stays:
        give_back_pages(memory, pages, len(memory))
    return _KEPT.lend(memory, -(-size // 8) * 8)


def mapping_of(array: Int64s) -> mmap.mmap | None:
    """The mapped memory in which an array lies, if there is one."""
    base: object = array
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, memoryview):
        base = base.obj
    return base if isinstance(base, mmap.mmap) else None


def give_back_pages(memory: mmap.mmap, start: int, stop: int) -> None:
    """Let the system have whole pages from byte `start` to `stop`: what stands there is undefined then."""
    first = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE
    length = min(stop, len(memory)) // mmap.PAGESIZE * mmap.PAGESIZE - first
    if length > 0 and _DONTNEED is not None:
        memory.madvise(_DONTNEED, first, length)


def has_kept() -> bool:
    """Whether anything is kept for who may ask for as much."""
    return bool(_KEPT)


def release_kept() -> None:
    """Let the system have what is kept for who may ask for as much."""
    _KEPT.release()
