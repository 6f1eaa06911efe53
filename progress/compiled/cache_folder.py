"""Where does the cache of compiled kernels lie, and which of its files may be read?

There is one folder for each user of a machine, whatever virtual environment, checkout or zip the source is
in: `kernels` below `NAIAD_CACHE`, else below `$XDG_CACHE_HOME/naiad`, else below `~/.cache/naiad`. The name
of a file holds a digest of all that its content depends on (`code_files.py`), so releases lie side by side.

The process runs the code that it reads here. So it reads only files that belong to its own user or to root,
in a folder that belongs to one of them, and neither may be writable by anybody else. It checks the open file,
not the path: nobody can exchange the file after the check. A file begins with a digest of the rest, which
`read` compares before anything else happens with the content: a damaged file counts as missing.

A file is written under another name and renamed: a reader sees the old content or the new one, whole. Where
the process cannot write (a full disk, no home, a read-only container), it compiles in memory and reports that
once.

`sweep` bounds the folder: it removes the files that were used least recently. `read` marks files as used,
once a day.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import os
import stat
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

__all__ = [
    "BYTES_MAX",
    "SECONDS_UNUSED_MAX",
    "VARIABLE",
    "cache_folder",
    "can_write",
    "has_files",
    "lock_file",
    "on_unwritable",
    "read",
    "sweep",
    "write",
]

VARIABLE: Final = "NAIAD_CACHE"
"""The environment variable that names another folder than the user's cache folder."""
BYTES_MAX: Final = 256 << 20
"""The size to which a sweep reduces the folder. The kernels of one release take 20 MB or less."""
SECONDS_UNUSED_MAX: Final = 60 * 86_400.0
"""A sweep removes files that no process has used for this long."""

_SECONDS_BETWEEN_SWEEPS: Final = 86_400.0
_SECONDS_BETWEEN_MARKS: Final = 86_400.0
_SECONDS_UNFINISHED_MAX: Final = 3_600.0
"""The age at which an unfinished file counts as left behind by a writer that has died."""
_UNFINISHED: Final = ".unfinished"
_SWEPT: Final = "swept"
"""The modification time of this file is that of the last sweep."""
_LOCKS: Final = "kernels.lock"
_DIGEST_BYTES: Final = 16
_FORM: Final = 2
"""Version of the form of all files; files of another version do not count as whole."""
_ROOT: Final = 0
_OPEN: Final = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
"""Flags for opening. A link, or a pipe that would keep its reader waiting, is no file of the cache."""

_hooks: list[Callable[[str], None]] = []
_reasons: list[str] = []
"""Why this process could not write a file, the first time; empty while it can."""


class _UnsafeError(OSError):
    """Another user could have written the content."""


def cache_folder() -> Path | None:
    """Return the path of the folder, which need not exist, or None if there is no home."""
    chosen = os.environ.get(VARIABLE)
    if chosen:
        return _kernels_in(chosen)
    shared = os.environ.get("XDG_CACHE_HOME")
    if shared and shared.startswith("/"):  # the standard ignores relative paths
        return _kernels_in(f"{shared}/naiad")
    home = os.path.expanduser("~")  # noqa: PTH111  Path raises without a home
    return _kernels_in(f"{home}/.cache/naiad") if home.startswith("/") else None


@functools.cache
def _kernels_in(base: str) -> Path:
    return Path(base).absolute() / "kernels"


def read(name: str) -> bytes | None:
    """Return the content of the file, or None if it is missing, damaged, or not to be trusted."""
    try:
        with _opened_folder() as folder:
            file = os.open(name, os.O_RDONLY | _OPEN, dir_fd=folder)
            with open(file, "rb") as stream:  # noqa: PTH123  there is no path: the file is open
                status = os.fstat(file)
                _require_safe(status, stat.S_ISREG, name)
                data = stream.read()
            if not _is_whole(data):
                return None
            _mark_as_used(name, status, folder)
    except OSError:
        return None
    return data[_DIGEST_BYTES:]


def write(name: str, data: bytes) -> bool:
    """Replace the file. Return False if that fails; the first failure calls the hook of `on_unwritable`."""
    unfinished = f"{uuid.uuid4().hex[:16]}{_UNFINISHED}"
    try:
        _make_folder()
        with _opened_folder() as folder:
            try:
                file = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _OPEN, 0o644, dir_fd=folder)
                with open(file, "wb") as stream:  # noqa: PTH123  there is no path: the file is open
                    stream.write(_digest(data) + data)
                os.replace(unfinished, name, src_dir_fd=folder, dst_dir_fd=folder)
            except OSError:
                with suppress(OSError):
                    os.unlink(unfinished, dir_fd=folder)
                raise
    except OSError as error:
        _report_once(error)
        return False
    return True


def can_write() -> bool:
    """Return True if other processes can use what this one compiles, as far as can be told before a write."""
    if _reasons:
        return False
    try:
        _make_folder()
        with _opened_folder() as folder:
            if os.access(".", os.W_OK | os.X_OK, dir_fd=folder):
                return True
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        _report_once(error)
    return False


def has_files(names: Iterable[str]) -> bool:
    """Return True if all of these files exist, whole or not; mark them as used."""
    try:
        with _opened_folder() as folder:
            for name in names:
                _mark_as_used(name, os.stat(name, dir_fd=folder, follow_symlinks=False), folder)
    except OSError:
        return False
    return True


def lock_file() -> int:
    """Open the file on which processes claim what they compile. Raises `OSError` if it cannot be opened."""
    _make_folder()
    with _opened_folder() as folder:
        return os.open(_LOCKS, os.O_RDWR | os.O_CREAT | _OPEN, 0o600, dir_fd=folder)


def on_unwritable(hook: Callable[[str], None]) -> None:
    """Call `hook` once, with the reason, when this process cannot store what it compiles."""
    _hooks[:] = [hook]


def sweep() -> None:
    """Remove files unused for `SECONDS_UNUSED_MAX`, and the least recently used ones beyond `BYTES_MAX`.

    Runs at most once a day, and removes only files of this user. A process that needs a removed file compiles
    anew.
    """
    with suppress(OSError), _opened_folder() as folder:
        now = time.time()
        with suppress(FileNotFoundError):
            if 0 <= now - os.stat(_SWEPT, dir_fd=folder).st_mtime < _SECONDS_BETWEEN_SWEEPS:
                return
        os.close(os.open(_SWEPT, os.O_WRONLY | os.O_CREAT | _OPEN, 0o644, dir_fd=folder))
        os.utime(_SWEPT, dir_fd=folder)
        bytes_left = BYTES_MAX
        for used, size, name in sorted(_own_files(folder), reverse=True):
            seconds_max = _SECONDS_UNFINISHED_MAX if name.endswith(_UNFINISHED) else SECONDS_UNUSED_MAX
            bytes_left -= size
            if now - used > seconds_max or bytes_left < 0:
                with suppress(OSError):
                    os.unlink(name, dir_fd=folder)


def _own_files(folder: int) -> Iterator[tuple[float, int, str]]:
    """Yield for each file of this user the time of its last use, its size and its name."""
    for name in os.listdir(folder):
        with suppress(OSError):
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if (
                status.st_uid == os.geteuid()
                and stat.S_ISREG(status.st_mode)
                and name not in (_LOCKS, _SWEPT)
            ):
                yield status.st_mtime, status.st_size, name


def _mark_as_used(name: str, status: os.stat_result, folder: int) -> None:
    if status.st_uid == os.geteuid() and abs(time.time() - status.st_mtime) > _SECONDS_BETWEEN_MARKS:
        with suppress(OSError):
            os.utime(name, dir_fd=folder, follow_symlinks=False)


def _make_folder() -> None:
    """Create the folder so that other users cannot write to it, and may read it if the umask lets them."""
    folder = cache_folder()
    if folder is None:
        raise FileNotFoundError(errno.ENOENT, "there is no home, and XDG_CACHE_HOME is not set")
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o755, exist_ok=True)


@contextmanager
def _opened_folder() -> Iterator[int]:
    """Open the folder. Raises `OSError` if it is missing, or somebody else could have written to it."""
    path = cache_folder()
    if path is None:
        raise FileNotFoundError(errno.ENOENT, "there is no home, and XDG_CACHE_HOME is not set")
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | _OPEN)
    with contextlib.ExitStack() as at_end:
        at_end.callback(os.close, folder)
        _require_safe(os.fstat(folder), stat.S_ISDIR, str(path))
        yield folder


def _require_safe(status: os.stat_result, is_kind: Callable[[int], bool], what: str) -> None:
    if not is_kind(status.st_mode):
        raise _UnsafeError(errno.EINVAL, f"{what} is not a file or folder of the expected kind")
    if status.st_uid not in (os.geteuid(), _ROOT):
        raise _UnsafeError(errno.EPERM, f"it belongs to the user {status.st_uid}, and not to {os.geteuid()}")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise _UnsafeError(
            errno.EPERM, f"other users may write to it (mode {stat.S_IMODE(status.st_mode):o} instead of 755)"
        )


def _report_once(error: OSError) -> None:
    if not _reasons:
        _reasons.append(str(error.strerror or error))
        for hook in _hooks:
            hook(f"{cache_folder() or 'no folder'}: {_reasons[0]}")


def _is_whole(data: bytes) -> bool:
    return data[:_DIGEST_BYTES] == _digest(data[_DIGEST_BYTES:])


def _digest(data: bytes) -> bytes:
    """Return the digest of data in this form; files in another form do not match it."""
    person = b"naiad %d" % _FORM
    return hashlib.blake2b(data, digest_size=_DIGEST_BYTES, person=person).digest()
