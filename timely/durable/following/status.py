"""How far are the workers that follow a cluster? They say so in files beside the store's own, for `stats()`.

Each of them has a file of its own, which it keeps locked: if nobody has the lock, its process has ended. The
files are no part of what the store keeps: they are not synced, and copies do not have them.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from ...forking import leave_to_parent

__all__ = ["FollowerStatus", "StatusFile", "followers_of"]

_FOLDER: Final = "standby"
_files: Final[set[int]] = set()
"""The descriptors of the files of this process."""


class FollowerStatus(NamedTuple):
    """How far one worker is that follows: `complete_before` has the first epoch that is not complete there,
    by dataflow. `is_abreast`: it has read all that the logs have, but for the last moments.
    """

    worker: int
    process: int
    is_abreast: bool
    complete_before: Mapping[int, int]

    def behind(self, opened: Mapping[int, int]) -> int:
        """Return how many epochs it has still to do, of the dataflow where that is most; `opened` has the
        open epoch of each.
        """
        return max([0, *(epoch - self.complete_before.get(number, 0) for number, epoch in opened.items())])


class StatusFile:
    """The file of worker `worker` that follows the cluster in the store `folder`."""

    def __init__(self, folder: str, worker: int) -> None:
        self._path = Path(folder, _FOLDER, f"{os.getpid()}.json")
        self._worker = worker
        self._written = b""
        self._file = -1
        with suppress(OSError):  # a disk that is full, say: whoever follows goes on
            self._path.parent.mkdir(mode=0o700, exist_ok=True)
            for path in self._path.parent.iterdir():
                if _read(path) is None:
                    path.unlink(missing_ok=True)
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            _files.add(self._file)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def write(self, is_abreast: bool, complete_before: Mapping[int, int]) -> None:
        """Write how far it is, if that is news."""
        status = [self._worker, os.getpid(), is_abreast, [*complete_before.items()]]
        text = json.dumps(status).encode()
        if text != self._written and self._file >= 0:
            with suppress(OSError):
                # A reader may come in between: it takes the text for that of nobody.
                os.ftruncate(self._file, 0)
                os.pwrite(self._file, text, 0)
                self._written = text

    def remove(self) -> None:
        """Remove the file: it follows no more."""
        if self._file >= 0:
            _files.discard(self._file)
            with suppress(OSError):
                self._path.unlink()
            os.close(self._file)
            self._file = -1


def followers_of(folder: str) -> list[FollowerStatus]:
    """Return how far all workers are that follow the cluster in this store, by worker."""
    statuses: list[FollowerStatus] = []
    with suppress(OSError):
        for path in Path(folder, _FOLDER).iterdir():
            with suppress(OSError, ValueError, TypeError):
                worker, process, is_abreast, complete_before = json.loads(_read(path) or b"")
                statuses.append(FollowerStatus(worker, process, is_abreast, dict(complete_before)))
    return sorted(statuses, key=lambda each: (each.worker, each.process))


def _read(path: Path) -> bytes | None:
    """Return what is in a file; None if nobody has locked it."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return None
        return os.pread(file, os.fstat(file).st_size, 0)
    finally:
        os.close(file)


def _leave_files() -> None:
    """In a process that was just forked: leave the files to its parent."""
    leave_to_parent(_files)
    _files.clear()


os.register_at_fork(after_in_child=_leave_files)
