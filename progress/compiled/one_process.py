"""One process compiles a kernel that several need at the same time; the others load its result.

A cluster's workers, and a process with its helper, need the same kernels within the same second. Without
claims each compiles all of them.

A *claim* is a lock on one byte of a file in the cache of machine code; a hash of the kernel's name selects
the byte. The system releases it when its process ends, however that ends. A kernel that is claimed claims the
kernels that it calls, and no kernel calls itself by way of others: so processes never wait in a circle. Where
the system has no such locks every process compiles.
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
    """Hold a claim on `name` in the block; first wait until no other process with the same cache has one.

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
    """Return the byte of the file that stands for `name`. Two names with one byte only delay one another."""
    byte = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8]) % _BYTES
    assert 0 <= byte < _BYTES
    return byte


def _claim(byte: int) -> int | None:
    """Lock the byte and return the file; None where that is impossible."""
    key = os.getpid(), cache_folder()
    try:
        if key not in _files:
            _files[key] = lock_file()
        fcntl.lockf(_files[key], fcntl.LOCK_EX, 1, byte)
    except OSError:
        return None
    return _files[key]
