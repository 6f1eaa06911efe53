"""What can a store do?

A store is a tree of files that all processes of a cluster see, and that survives them. Paths are relative to
it, with "/". All methods may raise `OSError`; `store_errors` turns that into a `StoreError` for people.

    cluster.json                 the format, and which cluster the store belongs to
    lock                         the process that works with it
    members/000007.json          the fence of incarnation 7
    members/000007.begin.json    its `begin`
    members/000007.hello.json    says that the log of its process 0 has begun
    log/000007/p1-000003.log     segment 3 of the log of its process 1
    …/p1-000003.log.000008       what counts of that for incarnation 8: a copy, which is durable
    base/000012.manifest         base 12, which stands for parts of logs (`bases/manifest.py`)
    answers/0-totals.000003.json stored answer 3 of an output (`answers/manifest.py`)

Fences are never removed: a process looks for the one of the next incarnation only.

Two operations carry the protocol of incarnations: `put_new`, by which only one of two processes gets a name,
and `exists`, which sees every file that any process has put before the call.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from ..errors import StoreError
from ..wire.batch import Frame

__all__ = [
    "LogFile",
    "Store",
    "begin_path",
    "fence_path",
    "hello_path",
    "log_folder",
    "segment_path",
    "store_error",
    "store_errors",
]


def fence_path(incarnation: int) -> str:
    """Return the path of the fence of an incarnation."""
    return f"members/{incarnation:06}.json"


def begin_path(incarnation: int) -> str:
    """Return the path of the `begin` of an incarnation."""
    return f"members/{incarnation:06}.begin.json"


def hello_path(incarnation: int) -> str:
    """Return the path of the file that says that process 0 of an incarnation has its `hello`."""
    return f"members/{incarnation:06}.hello.json"


def log_folder(incarnation: int) -> str:
    """Return the folder of the logs of an incarnation."""
    return f"log/{incarnation:06}"


def segment_path(incarnation: int, process: int, number: int) -> str:
    """Return the path of a segment of a log."""
    return f"{log_folder(incarnation)}/p{process}-{number:06}.log"


class LogFile(Protocol):
    """A file that this process has created and appends to."""

    @property
    def size(self) -> int:
        """The number of bytes written so far; after a failed `write` it counts what was written of that."""
        ...

    def write(self, pieces: Sequence[Frame]) -> None:
        """Append all pieces, in order. They are in the hands of the operating system then."""
        ...

    def sync(self) -> None:
        """Return when everything written is durable.

        After a failure nobody knows which bytes are, and a second call proves nothing.
        """
        ...

    def close(self) -> None:
        """Close the file; what was not synced may be lost."""
        ...


class Store(Protocol):
    """The files that the processes of a durable cluster share."""

    @property
    def name(self) -> str:
        """The name of the store in messages, such as its folder."""
        ...

    def put_new(self, path: str, data: bytes) -> bool:
        """Make the file `path`, whole and durable, and return True; return False if there is one already.

        Of several processes that call it at the same time, one gets True. In both cases the file that is
        there is durable on return.
        """
        ...

    def create(self, path: str) -> LogFile:
        """Return a new empty file, whose name is durable; raise `FileExistsError` if there is one already."""
        ...

    def read(self, path: str, end: int | None = None, start: int = 0) -> memoryview | None:
        """Return the content of a file, or its bytes from `start` on, before `end`; None if there is no such
        file.
        """
        ...

    def exists(self, path: str) -> bool:
        """Return True if there is such a file. An error of the store is raised, and never means False."""
        ...

    def list(self, folder: str) -> list[str]:
        """Return the sorted names of the files in a folder; none if there is no such folder."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file, or an empty folder."""
        ...

    def lock(self, command: str = "") -> None:
        """Take the lock of the store; raise `StoreError`, which names the holder, if somebody has it. Wait
        `LOCK_SECONDS_MAX` for one that has named its `command`: that is not a cluster, and ends soon.

        The lock only makes messages kind. That no two incarnations work at the same time is the fence's task.
        """
        ...

    def unlock(self) -> None:
        """Release the lock, if this object has it."""
        ...


@contextmanager
def store_errors(store: Store) -> Iterator[None]:
    """Turn an `OSError` in the block into a `StoreError` that names the store."""
    try:
        yield
    except OSError as error:
        raise store_error(store, error) from error


def store_error(store: Store, error: OSError) -> StoreError:
    """Return the error for people: the store, what failed, and what to do."""
    reason = f"{error.strerror or error}" + (f" ({error.filename})" if error.filename else "")
    return StoreError(f"the store {store.name} cannot be used: {reason}. Mend that, and try again")
