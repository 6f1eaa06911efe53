"""How is a store kept in a folder of a file system?

Files get their names by `link`, which fails if the name is taken, and a name is durable once its folder is
synced. The folder must lie on a file system of this host: a network file system may hide new names from other
hosts for seconds, and then a process would not see a fence that is there.

A folder that is moved or removed while a cluster works with it would hide the fences of others, and an open
file takes records all the same. So each look, and each new file, finds out whether the folder is still there.

The folder has mode 0700. It holds source code that workers run, so a folder that other users own, or can
write to, is refused.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import socket
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import Final, NamedTuple
from uuid import uuid4

from ..errors import StoreError
from ..forking import leave_to_parent
from ..limits import LOCK_SECONDS_MAX
from ..wire.batch import Frame, bytes_of
from .store import store_errors

__all__ = ["FolderStore"]

_ROOM_BYTES: Final = 1 << 16
"""A new incarnation needs less for its first files."""
_PIECES_MAX: Final = min(os.sysconf("SC_IOV_MAX"), 1024)
"""Pieces that the system takes in one call."""

_UNFINISHED: Final = re.compile(r"\.(?:.+\.)?[0-9a-f]{32}")
"""The names of temporary files."""
_UNFINISHED_SECONDS: Final = 3_600.0
"""A temporary file that nobody has written to for so long has been left."""

_LOOK_SECONDS: Final = 0.1
"""So long at least it is looked whether a store is locked."""

_held: Final[set[int]] = set()
"""The descriptors of the locks of this process."""

_sync_data = getattr(os, "fdatasync", os.fsync)


class FolderStore:
    """The store in `folder`, which is made if it is not there. Implements `Store`."""

    def __init__(self, folder: str | Path) -> None:
        self._root = Path(folder).absolute()
        self._name = str(self._root)
        self._lock: int | None = None
        with store_errors(self):
            if not self._root.exists():
                self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
                _sync_folder(self._root.parent)
            self._identity = _check_private(self._root)

    @property
    def name(self) -> str:
        """The folder."""
        return self._name

    def __repr__(self) -> str:
        return f"FolderStore({self.name!r})"

    def check(self) -> None:
        """Raise `StoreError` unless the folder is the one that this store began with."""
        with store_errors(self):
            self._check_there()

    def check_room(self) -> None:
        """Raise `StoreError` if the folder does not take a file of some kilobytes."""
        probe = self._root / f".{uuid4().hex}"
        with store_errors(self):
            try:
                with _opened(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as file:
                    _write(file, [bytes(_ROOM_BYTES)])
                    os.fsync(file)
            finally:
                probe.unlink(missing_ok=True)

    def put_new(self, path: str, data: bytes) -> bool:
        """See `Store.put_new`: a temporary file, synced and linked to the name."""
        target = self._root / path
        self._check_there()
        self._make_folders(target.parent)
        temporary = target.with_name(f".{target.name}.{uuid4().hex}")
        try:
            with _opened(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as file:
                _write(file, [data])
                os.fsync(file)
            try:
                os.link(temporary, target)
                is_new = True
            except FileExistsError:
                is_new = False
        finally:
            with suppress(OSError):
                temporary.unlink()
        self._sync_folders(target.parent)
        return is_new

    def create(self, path: str) -> _FolderLogFile:
        """See `Store.create`."""
        target = self._root / path
        self._check_there()
        self._make_folders(target.parent)
        file = _FolderLogFile(
            os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
        )
        try:
            self._sync_folders(target.parent)
        except OSError:
            file.close()
            raise
        return file

    def read(self, path: str, end: int | None = None, start: int = 0) -> memoryview | None:
        """See `Store.read`. Nothing is mapped: where the disk fails, mapped memory ends the process."""
        try:
            with (self._root / path).open("rb", buffering=0) as file:
                file.seek(start)
                return memoryview(file.readall() if end is None else _read(file, max(0, end - start)))
        except FileNotFoundError:
            return None

    def exists(self, path: str) -> bool:
        """See `Store.exists`."""
        try:
            # Fast path: each sync looks for a fence, and a path of `pathlib` takes 2 µs.
            os.stat(f"{self._name}/{path}")  # noqa: PTH116
        except FileNotFoundError:
            self._check_there()
            return False
        return True

    def list(self, folder: str) -> list[str]:
        """See `Store.list`; temporary files, whose names begin with a dot, are left out."""
        try:
            return sorted(file.name for file in (self._root / folder).iterdir() if file.name[0] != ".")
        except FileNotFoundError:
            return []

    def remove(self, path: str) -> None:
        """See `Store.remove`."""
        target = self._root / path
        if target.is_dir():
            target.rmdir()
        else:
            target.unlink()

    def remove_unfinished(self) -> None:
        """Remove the temporary files that killed processes have left. Those younger than an hour stay: some
        process may be writing them. If one writes for longer, its `put_new` fails, and nothing else happens.
        """
        before = time.time() - _UNFINISHED_SECONDS
        with store_errors(self):
            for folder, _, names in os.walk(self._root):
                for name in filter(_UNFINISHED.fullmatch, names):
                    with suppress(FileNotFoundError):
                        if (path := Path(folder, name)).stat().st_mtime < before:
                            path.unlink()

    def lock(self, command: str = "") -> None:
        """See `Store.lock`. The system releases the lock when the process ends, however it ends, and also if
        processes go on that were forked from it.
        """
        own = {"host": socket.gethostname(), "pid": os.getpid(), "command": command}
        began = time.monotonic()
        with store_errors(self):
            file = os.open(self._root / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            _held.add(file)
            try:
                while not _is_locked(file):
                    holder = _LockHolder.of(os.pread(file, 4096, 0))
                    # What stands there may be of the holder before: the present one writes it in a moment.
                    seconds = LOCK_SECONDS_MAX if holder.command else _LOOK_SECONDS
                    if time.monotonic() - began > seconds:
                        raise StoreError(f"the store {self.name} is in use by {holder.shown()}")
                    time.sleep(_LOOK_SECONDS / 4)
                os.ftruncate(file, 0)
                os.pwrite(file, json.dumps(own).encode(), 0)
            except BaseException:
                _close_lock(file)
                raise
        self._lock = file

    def unlock(self) -> None:
        """See `Store.unlock`."""
        if self._lock is not None:
            file, self._lock = self._lock, None
            # A process may have the file open, too, that was forked in another way than by Python.
            fcntl.flock(file, fcntl.LOCK_UN)
            _close_lock(file)

    def _check_there(self) -> None:
        """Raise `OSError` unless the folder is the one that this store began with."""
        try:
            status = os.stat(self._name)  # noqa: PTH116  # as in `exists`
        except FileNotFoundError:
            status = None
        if status is None or (status.st_dev, status.st_ino) != self._identity:
            raise FileNotFoundError(
                errno.ENOENT,
                "the folder was moved, removed or replaced while the cluster worked: put it back",
            )

    def _make_folders(self, folder: Path) -> None:
        for path in reversed(list(self._up(folder))):
            with suppress(FileExistsError):
                path.mkdir(mode=0o700)

    def _sync_folders(self, folder: Path) -> None:
        """Make the names in `folder` durable, and those of the folders above: another process may have made
        these, and not have synced them yet.
        """
        for path in self._up(folder):
            _sync_folder(path)
        _sync_folder(self._root)

    def _up(self, folder: Path) -> Iterator[Path]:
        while folder != self._root:
            yield folder
            folder = folder.parent


class _FolderLogFile:
    """A file of a log, by its descriptor. Implements `LogFile`."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._size = 0

    @property
    def size(self) -> int:
        """The bytes written so far."""
        return self._size

    def write(self, pieces: Sequence[Frame]) -> None:
        """See `LogFile.write`."""
        for start in range(0, len(pieces), _PIECES_MAX):
            self._write(pieces[start : start + _PIECES_MAX])

    def sync(self) -> None:
        """See `LogFile.sync`."""
        _sync_data(self._descriptor)

    def close(self) -> None:
        """See `LogFile.close`."""
        os.close(self._descriptor)

    def _write(self, pieces: Sequence[Frame]) -> None:
        for count in _written(self._descriptor, pieces):
            self._size += count


def _write(descriptor: int, pieces: Sequence[Frame]) -> None:
    for _ in _written(descriptor, pieces):
        pass


def _written(descriptor: int, pieces: Sequence[Frame]) -> Iterator[int]:
    """Write all pieces; yield the number of bytes that the system took, call by call."""
    rest = list(pieces)
    while rest:
        count = os.writev(descriptor, rest)
        yield count
        done = 0
        while done < len(rest) and count >= (size := bytes_of(rest[done]).nbytes):
            count -= size
            done += 1
        rest = rest[done:]
        if rest and count:
            rest[0] = bytes_of(rest[0])[count:]


def _read(file: FileIO, count: int) -> bytes:
    """Return the next `count` bytes of a file, or all if it has fewer."""
    pieces = []
    while count and (piece := file.read(count)):
        pieces.append(piece)
        count -= len(piece)
    return b"".join(pieces)


@contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    with _opened(folder, os.O_RDONLY | os.O_DIRECTORY) as descriptor:
        os.fsync(descriptor)


def _check_private(folder: Path) -> tuple[int, int]:
    """Return the device and the inode of the folder; raise `StoreError` if another user owns it, or can
    write to it.
    """
    status = folder.stat()
    if not stat.S_ISDIR(status.st_mode):
        raise StoreError(f"the store {folder} is a file: give a folder")
    if status.st_uid != os.geteuid():
        raise StoreError(
            f"the store {folder} belongs to user {status.st_uid}, and this process runs as user "
            f"{os.geteuid()}: workers run code from it, so give a folder of your own"
        )
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise StoreError(
            f"the store {folder} has mode {stat.S_IMODE(status.st_mode):04o}, so other users can write to "
            f"it, and workers run code from it. Write: chmod 700 {folder}"
        )
    return status.st_dev, status.st_ino


def _close_lock(file: int) -> None:
    _held.discard(file)
    os.close(file)


def _leave_locks() -> None:
    """In a process that was just forked, as by `multiprocessing`: leave the locks to its parent. Otherwise
    the store would stay locked as long as this process goes on, though the parent was killed.
    """
    leave_to_parent(_held)
    _held.clear()


os.register_at_fork(after_in_child=_leave_locks)


def _is_locked(file: int) -> bool:
    """Lock a file, and return True; False if another process has locked it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class _LockHolder(NamedTuple):
    """The process with the lock. `command`: which command of `python -m timely.durable` it runs, if any."""

    who: str
    command: str
    is_here: bool

    @classmethod
    def of(cls, data: bytes) -> _LockHolder:
        """Return what stands in the file."""
        try:
            values = json.loads(data)
            host, pid, command = values["host"], values["pid"], values.get("command", "")
        except (ValueError, KeyError, TypeError, AttributeError):
            return cls("another process", "", False)
        is_here = (host, pid) == (socket.gethostname(), os.getpid())
        return cls(f"process {pid} on {host}", str(command), is_here)

    def shown(self) -> str:
        """Return who it is, and what to do."""
        if self.command:
            return f"{self.who}, which carries out {self.command!r}: wait until that has ended, and try again"
        if self.is_here:
            advice = "go on with the cluster that it has connected, or call close() of that first"
            return f"{self.who}, which is this program itself: {advice}"
        return f"{self.who}: end that cluster first, or give this one another folder"
