"""Which process compiles a kernel, if several need it at the same time? One; the others load what it made.

A cluster's workers, and a process with its helper, meet the same kernels within the same second. Without this
each compiles all of them.

A *claim* is a lock on one byte of a file in the cache of machine code; the kernel's name says which byte. The
system gives it back when its process ends, however that ends. Kernels claim what they call while they are
claimed themselves, and none calls itself by way of others: so nobody waits in a circle. Where there are no
such locks everybody compiles.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from .cache_folder import cache_folder, lock_file

__all__ = ["claimed"]

_BYTES: Final = 2**40
_files: dict[tuple[int, Path | None], int] = {}
"""Open files by process and folder. They stay open: closing one would give back all claims on it."""


@contextmanager
def claimed(name: str) -> Iterator[None]:
    """While this lasts no other process with the same cache claims `name`; waits for those that do.

    Threads of one process do not keep one another out: numba's compiler lock does, which the caller holds.
    """
    assert name, "a claim is on something"
    byte = _byte_of(name)
    file = _claim(byte)
    try:
        yield
    finally:
        if file is not None:
            fcntl.lockf(file, fcntl.LOCK_UN, 1, byte)


def _byte_of(name: str) -> int:
    """Which byte of the file stands for `name`. Two names for one byte would only wait for one another."""
    byte = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8]) % _BYTES
    assert 0 <= byte < _BYTES
    return byte


def _claim(byte: int) -> int | None:
    """The file in which the byte is locked; None where that cannot be."""
    key = os.getpid(), cache_folder()
    try:
        if key not in _files:
            _files[key] = lock_file()
        fcntl.lockf(_files[key], fcntl.LOCK_EX, 1, byte)
    except OSError:
        return None
    return _files[key]
