"""Memory of many pages, mapped from the system, and reused after it was dropped.

The arrays that a load sorts, packs and sends are large and short-lived. The system hands out pages one by
one, as they are touched for the first time, and each costs as much as reading its rows many times. So dropped
memory is kept as *spare* memory for the next request of that size, as long as spare and used memory together
are no more than was in use at some earlier time: the largest amount does not grow by it. `release_spare`
gives it to the system when there is nothing to do.

    mapped           return memory of a number of bytes
    in_file          return memory in a file
    mapping_of       return the memory in which an array lies
    address_of       return where that memory begins
    give_back_pages  give some of its pages to the system
    has_spare        return True if there is spare memory
    release_spare    give all spare memory to the system

If the process has a folder to spill to, memory beyond its budget lies in files (`spilling/`), and is never
spare.

The C library's allocator would not do: it keeps small pages, and memory that was large once for requests that
may be large later.
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
from .spilling.budget import SPILL, is_beyond
from .spilling.file_memory import FileMemory

__all__ = [
    "HUGE_PAGE_BYTES",
    "address_of",
    "bytes_in_use",
    "give_back_pages",
    "has_spare",
    "in_file",
    "mapped",
    "mapping_of",
    "release_spare",
]

HUGE_PAGE_BYTES: Final = 1 << 21
"""The size of a huge page. Memory of two or more of them requests huge pages: the first touch of small pages
costs more than filling them.
"""

_SPARE_SHARE: Final = 4
"""`KEPT_MEMORY_BYTES_MIN` are always kept, but at most 1 / `_SPARE_SHARE` of the memory in use."""

_PRIVATE: Final = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
_HUGE: Final[int | None] = getattr(mmap, "MADV_HUGEPAGE", None)  # Linux only
_DONTNEED: Final[int | None] = getattr(mmap, "MADV_DONTNEED", None)


class _Lent(weakref.ref["Int64s"]):
    """A weak reference to an array, with the memory in which the array lies, which must outlive it."""

    __slots__ = ("memory",)

    memory: mmap.mmap


class _SpareMemory:
    """The spare memory of the process, the latest last.

    Another thread may run between any two lines here, and so may the garbage collector in this thread, which
    drops arrays. So each change is one call of a list or a dictionary, and the count of used bytes is only a
    hint, which may become negative.
    """

    def __init__(self) -> None:
        self._lent: dict[int, _Lent] = {}
        self._spare: list[mmap.mmap] = []
        self._bytes_in_use = 0
        self._bytes_most = 0
        """The largest number of bytes, spare and used, since the last `release`."""

    def lend(self, memory: mmap.mmap, size: int) -> Int64s:
        """Return an array over the first `size` bytes, a multiple of eight. When the array and its views are
        gone, the memory becomes spare.
        """
        array: Int64s = np.frombuffer(memory, np.int64, size // 8)
        lent = _Lent(array, self._take_back)
        lent.memory = memory
        self._lent[id(lent)] = lent
        self._bytes_in_use += len(memory)
        self._bytes_most = max(self._bytes_most, self._bytes_in_use + self._bytes())
        return array

    def _take_back(self, lent: weakref.ref[Int64s]) -> None:
        """Make the memory of a dropped array spare. Errors cannot leave this callback, so an interrupt
        (Ctrl-C) that comes here is sent again.
        """
        # An error that the handler of another signal raises here (such as SystemExit) is printed and dropped
        # by Python, and so is an interrupt in the moment before `try`. An error does not show which signal
        # has raised it, and calling the handler again would repeat its other effects. A callback in C cannot
        # be interrupted by signals; but it could only note the dropped memory (`list.append`), and all of it
        # would be held, without a bound, until the next request for memory: for ever, once a program has
        # closed its cluster.
        assert isinstance(lent, _Lent)
        try:
            if self._lent.pop(id(lent), None) is None:
                return
            self._bytes_in_use -= len(lent.memory)
            if len(lent.memory) <= KEPT_MEMORY_BYTES_MAX // 4:
                self._spare.append(lent.memory)
                while len(self._spare) > KEPT_MEMORY_COUNT_MAX or self._bytes() > KEPT_MEMORY_BYTES_MAX:
                    self._drop_oldest()
        except KeyboardInterrupt:
            _thread.interrupt_main()

    @property
    def bytes_in_use(self) -> int:
        """About the bytes of plain memory that arrays lie in."""
        return self._bytes_in_use

    def take(self, size: int, most: int) -> mmap.mmap | None:
        """Remove and return the smallest spare memory of `size` to `most` bytes. If there is none, return
        None, and release other spare memory as far as `size` more bytes require it.
        """
        best, least = None, most + 1
        for memory in self._spare[::-1]:
            if size <= len(memory) < least:
                best, least = memory, len(memory)
        if best is not None:
            try:
                self._spare.remove(best)
            except ValueError:  # another thread has taken it
                return None
            return best
        free = min(KEPT_MEMORY_BYTES_MIN, self._bytes_in_use // _SPARE_SHARE)
        while self._spare and (spare := self._bytes()) > free:
            if self._bytes_in_use + spare + size <= self._bytes_most:
                break
            self._drop_oldest()
        return None

    def __bool__(self) -> bool:
        """Return True if there is spare memory."""
        return bool(self._spare)

    def release(self) -> None:
        """Release all spare memory."""
        self._spare.clear()
        self._bytes_in_use = sum(len(lent.memory) for lent in list(self._lent.values()))
        self._bytes_most = self._bytes_in_use

    def end(self) -> None:
        """Stop taking back memory: the process ends, and modules that the callback needs may be gone by
        then.
        """
        self._lent.clear()

    def _bytes(self) -> int:
        return sum(map(len, self._spare))

    def _drop_oldest(self) -> None:
        del self._spare[:1]


_MEMORY: Final = _SpareMemory()
atexit.register(_MEMORY.end)


def mapped(size: int, stays: bool) -> Int64s:
    """Return a mapped int64[⌈`size` / 8⌉] with undefined contents; the system provides pages as they are
    touched.

    It may lie in spare memory of up to twice the size. If it `stays`, pages that it does not need are given
    back. Beyond the budget of the process it lies in a file; raises SpillError if the disk is full.
    """
    pages = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
    place = SPILL.place
    if place is not None and is_beyond(place.memory, _MEMORY.bytes_in_use + SPILL.besides, pages, stays):
        return FileMemory(place.folder, pages).array(-(-size // 8) * 8)
    memory = _MEMORY.take(pages, 2 * pages)
    if memory is None:
        memory = mmap.mmap(-1, pages, flags=_PRIVATE)
        if size >= 2 * HUGE_PAGE_BYTES and _HUGE is not None:
            memory.madvise(_HUGE)
    elif stays:
        give_back_pages(memory, pages, len(memory))
    return _MEMORY.lend(memory, -(-size // 8) * 8)


def in_file(size: int) -> Int64s:
    """Return int64[⌈`size` / 8⌉] in a file, whatever the budget; of a process without a folder, plain memory.
    Raises SpillError if the disk is full.
    """
    place = SPILL.place
    words = -(-size // 8) * 8
    if place is None:
        return np.empty(words // 8, np.int64)
    return FileMemory(place.folder, -(-max(words, 1) // mmap.PAGESIZE) * mmap.PAGESIZE).array(words)


def mapping_of(array: Int64s) -> mmap.mmap | FileMemory | None:
    """Return the mapped memory in which an array lies; None if it lies elsewhere."""
    base: object = array
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, memoryview):
        base = base.obj
    return base if isinstance(base, mmap.mmap | FileMemory) else None


def address_of(memory: mmap.mmap | FileMemory) -> int:
    """Return the address of the first byte."""
    return memory.address if isinstance(memory, FileMemory) else _address(memory)


def _address(memory: mmap.mmap) -> int:
    return int(np.frombuffer(memory, np.uint8).ctypes.data)


def give_back_pages(memory: mmap.mmap | FileMemory, start: int, stop: int) -> None:
    """Give the whole pages from byte `start` to `stop` to the system; their contents become undefined.

    Nobody may write there again if the memory lies in a file.
    """
    first = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE
    length = min(stop, len(memory)) // mmap.PAGESIZE * mmap.PAGESIZE - first
    if length <= 0:
        return
    if isinstance(memory, FileMemory):
        memory.give_back(first, length)
    elif _DONTNEED is not None:
        memory.madvise(_DONTNEED, first, length)


def bytes_in_use() -> int:
    """Return about the bytes of plain memory that arrays lie in."""
    return max(0, _MEMORY.bytes_in_use)


def has_spare() -> bool:
    """Return True if there is spare memory."""
    return bool(_MEMORY)


def release_spare() -> None:
    """Give all spare memory to the system."""
    _MEMORY.release()
