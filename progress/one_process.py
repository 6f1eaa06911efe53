"""Which process compiles a kernel, if several need it at the same time? One; the others load what it made.

A cluster's workers, and a process with its helper, meet the same kernels within the same second. Without this
each compiles all of them, and one may load machine code that another is about to replace: numba renews a
kernel's index before the code that the index speaks of.

A *claim* is a lock on one byte of a file beside the machine code; the kernel's name says which byte. The
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
from typing import Final

__all__ = ["claimed"]

_NAME: Final = "kernels.lock"
_BYTES: Final = 2**40
_files: dict[tuple[int, str], int] = {}
"""Open files by process and folder. They stay open: closing one would give back all claims on it."""


@contextmanager
def claimed(folder: str, name: str) -> Iterator[None]:
    """While this lasts no other process claims `name` in `folder`; waits for those that do.

    Threads of one process do not keep one another out: numba's compiler lock does, which the caller holds.
    """
    assert name, "a claim is on something"
    byte = _byte_of(name)
    file = _claim(folder, byte)
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


def _claim(folder: str, byte: int) -> int | None:
    """The file in which the byte is locked; None where that cannot be."""
    key = os.getpid(), folder
    try:
        if key not in _files:
            _files[key] = os.open(f"{folder}/{_NAME}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        fcntl.lockf(_files[key], fcntl.LOCK_EX, 1, byte)
    except OSError:
        return None
    return _files[key]
