"""What a process leaves to its parent when it is forked, as by `multiprocessing`.

Such a process inherits open files: the lock of a store, the pipes of workers, the ports at which a worker
listens. As long as it goes on they stay open, even though the parent was killed. So it lets go of them at
once; `os.register_at_fork(after_in_child=…)` calls what does so.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress

__all__ = ["leave_to_parent"]


def leave_to_parent(descriptors: Iterable[int]) -> None:
    """In a process that was just forked: let each of these descriptors be one of the null device, which takes
    everything and has nothing. They do not become free, since other objects know their numbers.
    """
    with suppress(OSError):
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        try:
            for each in descriptors:
                with suppress(OSError):  # it was closed meanwhile
                    os.dup2(nothing, each, inheritable=False)
        finally:
            os.close(nothing)
