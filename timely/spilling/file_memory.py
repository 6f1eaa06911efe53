"""A block of memory whose pages lie in a file without a name.

The system writes such pages to the disk and drops them from memory as it needs the room, and reads them
again when somebody touches them. The file loses its name before it is used: nothing of it survives the
process, and it ends with the block.

    reserve   the whole file is on the disk before the block is used. Without that a write to a page on a
              full disk would end the process (SIGBUS); so it is an error of the request for memory.
    close     the descriptor is closed as soon as the file is mapped. Python's `mmap` would keep one for each
              block (before 3.13), and a process has 1,024 by default; so the C library maps the file.
    fork      a forked process has empty memory in the place of each block (zeros): it shares no page with its
              parent, and keeps no file.
"""

from __future__ import annotations

import ctypes
import errno
import gc
import mmap
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

import numpy as np

from progress.compiled.arrays import Int64s

from ..errors import SpillError

__all__ = ["FileMemory", "bytes_in_files", "has_blocks"]

_READ_WRITE: Final = mmap.PROT_READ | mmap.PROT_WRITE
_MAP_FIXED: Final = 0x10
_REMOVE: Final[int | None] = getattr(mmap, "MADV_REMOVE", None)  # Linux only
_UNNAMED: Final = getattr(os, "O_TMPFILE", 0)

_C: Final = ctypes.CDLL(None, use_errno=True)
_map: Final = _C.mmap
_map.restype = ctypes.c_void_p
_map.argtypes = (
    ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int64
)  # fmt: skip
_unmap: Final = _C.munmap
_unmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_advise: Final = _C.madvise
_advise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)

_blocks: Final[dict[int, int]] = {}
"""The bytes of each block of this process, by its address."""


class FileMemory:
    """`size` bytes, whole pages, in a new file of `folder`; undefined contents.

    Raise `SpillError` if the disk has no room for it. The memory goes when nothing refers to this object:
    `array` refers to it.
    """

    __slots__ = ("__weakref__", "address", "size")

    def __init__(self, folder: str, size: int) -> None:
        self.size = size
        self.address = 0
        try:
            address = _map_file(folder, size)
        except OSError as error:
            raise _refused(folder, size, error) from error
        self.address = address
        _blocks[address] = size

    def array(self, size: int) -> Int64s:
        """Return an array over the first `size` bytes, a multiple of eight. It refers to this object."""
        array: Int64s = np.asarray(self)
        return array[: size // 8]

    @property
    def __array_interface__(self) -> dict[str, object]:
        """The words of the block, as numpy asks for them."""
        return {
            "data": (self.address, False),
            "shape": (self.size // 8,),
            "typestr": np.dtype(np.int64).str,
            "version": 3,
        }

    def give_back(self, start: int, length: int) -> None:
        """Give these whole pages to the system, and their room to the disk. Nobody may write there again:
        no room is reserved for that any more.
        """
        if _REMOVE is not None:
            _advise(self.address + start, length, _REMOVE)  # where it does not work, the file keeps them

    def __len__(self) -> int:
        return self.size

    def __del__(
        self, unmap: ctypes._FuncPointer = _unmap, blocks: dict[int, int] = _blocks
    ) -> None:  # names of the module may be gone as the process ends
        if self.address and blocks.pop(self.address, 0):
            unmap(self.address, self.size)


def has_blocks() -> bool:
    """Return True if this process, or the one from which it was forked, has a block."""
    return bool(_blocks)


def bytes_in_files() -> int:
    """Return the bytes of all blocks of this process."""
    return sum(list(_blocks.values()))


def _map_file(folder: str, size: int) -> int:
    """Return the address of a new block. On a full disk, try again without the blocks that only garbage still
    refers to, such as the vertices of a dataflow that has failed.
    """
    try:
        return _map_new_file(folder, size)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT) or not _blocks:
            raise
    gc.collect()
    return _map_new_file(folder, size)


def _map_new_file(folder: str, size: int) -> int:
    room = os.statvfs(folder)
    # A file system without a limit (tmpfs with size=0) has 0 blocks, all in all.
    if room.f_blocks > 0 and room.f_bavail * room.f_frsize < size:
        # ext4 would take all the room there is before it says that there is too little: everybody else would
        # find the disk full for that time.
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    file = _unnamed_file(folder)
    try:
        os.posix_fallocate(file, 0, size)
        address = _map(None, size, _READ_WRITE, mmap.MAP_SHARED, file, 0)
        if address in (None, ctypes.c_void_p(-1).value):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    finally:
        os.close(file)
    return int(address)


def _unnamed_file(folder: str) -> int:
    """Return the descriptor of a new file of `folder` that has no name."""
    if _UNNAMED:
        try:
            return os.open(folder, _UNNAMED | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL):
                raise
    file, path = tempfile.mkstemp(prefix="naiad-", dir=folder)
    try:
        Path(path).unlink()
    except OSError:
        os.close(file)
        raise
    return file


def _refused(folder: str, size: int, error: OSError) -> SpillError:
    """Return the error that the system does not give room in a file."""
    free = ""
    with suppress(OSError):
        room = os.statvfs(folder)
        tenths = room.f_bavail * room.f_frsize * 10 // 2**20  # rounded down, and what is needed is rounded up
        free = f"; {tenths / 10:,.1f} MiB are free there"
    if error.errno == errno.ENOMEM:
        mend = "A process may map 65,530 blocks: raise vm.max_map_count, or the budget of memory"
    else:
        mend = "Make room there, name another folder as spill, or give the workers more memory"
    return SpillError(
        f"a worker needs {-(-size * 10 // 2**20) / 10:,.1f} MiB in a file of {folder}, and gets none: "
        f"{os.strerror(error.errno or 0)}{free}.\n  {mend}."
    )


def _leave_blocks() -> None:
    """In a process that was just forked: put empty memory in the place of each block. It would write into
    the memory of its parent, and the files would last as long as it does.
    """
    private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_FIXED | getattr(mmap, "MAP_NORESERVE", 0)
    for address, size in list(_blocks.items()):
        _map(address, size, _READ_WRITE, private, -1, 0)


os.register_at_fork(after_in_child=_leave_blocks)
