"""A store in memory that fails like a disk: it loses or reorders what was not synced, fills up, and crashes.

    SimulatedDisk    the files, shared by all processes; `crash` leaves what a failure of the machine leaves
    SimulatedStore   the view of one process; its `before` is called at each operation and may raise

A file has bytes that are durable and bytes that were only written. A crash keeps any of the latter, sector by
sector: a lost sector reads as zeros, or as what another file once had at this place. A sync that fails drops
what was not durable, as Linux does, and a file is never to be written or synced after that.

Operations have names: "create", "write", "sync", "put_new", "exists", "read", "list", "remove".
"""

from __future__ import annotations

import errno
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from timely.errors import StoreError
from timely.wire.batch import Frame, bytes_of

__all__ = ["Crash", "SimulatedDisk", "SimulatedFile", "SimulatedStore", "crash_at"]

SECTOR_BYTES = 16
"""Small, so that few records have many."""


class Crash(BaseException):
    """The process ends here."""


@dataclass
class SimulatedContent:
    """The bytes of a file."""

    durable: bytes = b""
    written: bytes = b""
    """All bytes, the durable ones first."""

    has_failed: bool = False

    def after_crash(self, random: random.Random, leftovers: Sequence[bytes]) -> bytes:
        """Return what is there after a crash: the durable bytes, and of the others whatever was kept."""
        end = random.randint(len(self.durable), len(self.written))
        data = bytearray(self.written[:end])
        for start in range(len(self.durable), end, SECTOR_BYTES):
            stop = min(start + SECTOR_BYTES, end)
            fate = random.randrange(4)
            if fate == 0:
                data[start:stop] = bytes(stop - start)
            elif fate == 1 and leftovers:
                stale = random.choice(leftovers)[start:stop]
                data[start : start + len(stale)] = stale
        return bytes(data)


@dataclass
class SimulatedDisk:
    """The files of all processes, by path."""

    files: dict[str, SimulatedContent] = field(default_factory=dict)
    room: int = 1 << 40
    """Bytes that fit yet."""

    failing: dict[str, int] = field(default_factory=dict)
    """The error number that an operation raises for now."""

    holder: str = ""

    def crash(self, seed: int) -> None:
        """Lose what is not durable, or some of it."""
        chance = random.Random(seed)
        leftovers = [content.written for content in self.files.values()]
        for path, content in self.files.items():
            data = content.after_crash(chance, leftovers)
            self.files[path] = SimulatedContent(data, data)
        self.failing.clear()
        self.holder = ""

    def flip(self, path: str, bit: int) -> None:
        """Change one bit of a file."""
        data = bytearray(self.files[path].written)
        data[bit // 8] ^= 1 << bit % 8
        self.files[path] = SimulatedContent(bytes(data), bytes(data))


class SimulatedStore:
    """The disk as one process sees it. Implements `Store`."""

    name = "simulated"

    def __init__(
        self, disk: SimulatedDisk | None = None, before: Callable[[str, str], None] = lambda what, path: None
    ) -> None:
        self.disk = SimulatedDisk() if disk is None else disk
        self.before = before
        self.operations: list[tuple[str, str]] = []
        """All operations of this process and their paths."""

        self.opened: list[SimulatedFile] = []

    def put_new(self, path: str, data: bytes) -> bool:
        self.operate("put_new", path)
        if path in self.disk.files:
            return False
        self.take_room(len(data), len(data))
        self.disk.files[path] = SimulatedContent(data, data)
        return True

    def create(self, path: str) -> SimulatedFile:
        self.operate("create", path)
        if path in self.disk.files:
            raise FileExistsError(errno.EEXIST, "File exists", path)
        self.disk.files[path] = SimulatedContent()
        self.opened.append(SimulatedFile(self, path))
        return self.opened[-1]

    def read(self, path: str, end: int | None = None, start: int = 0) -> memoryview | None:
        self.operate("read", path)
        content = self.disk.files.get(path)
        return None if content is None else memoryview(content.written[start:end])

    def exists(self, path: str) -> bool:
        self.operate("exists", path)
        return path in self.disk.files

    def list(self, folder: str) -> list[str]:
        self.operate("list", folder)
        names = (path.rpartition("/") for path in self.disk.files)
        return sorted(name for above, _, name in names if above == folder)

    def remove(self, path: str) -> None:
        self.operate("remove", path)
        if self.disk.files.pop(path, None) is None:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)

    def lock(self, command: str = "") -> None:
        if self.disk.holder:
            raise StoreError(f"the store is in use by {self.disk.holder}")
        self.disk.holder = "another process"

    def unlock(self) -> None:
        self.disk.holder = ""

    def operate(self, what: str, path: str) -> None:
        """Begin an operation: the process may crash here, or the disk may fail."""
        self.operations.append((what, path))
        self.before(what, path)
        if what in self.disk.failing:
            number = self.disk.failing[what]
            raise OSError(number, f"{errno.errorcode[number]}, simulated", path)

    def take_room(self, size: int, least: int) -> int:
        """Return how many of `size` bytes fit; raise ENOSPC if fewer than `least` do."""
        size = min(size, self.disk.room)
        if size < least:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.disk.room -= size
        return size


class SimulatedFile:
    """Implements `LogFile`."""

    def __init__(self, store: SimulatedStore, path: str) -> None:
        self.store = store
        self.path = path
        self.size = 0
        self.is_closed = False

    @property
    def content(self) -> SimulatedContent:
        """The bytes on the disk."""
        return self.store.disk.files[self.path]

    def write(self, pieces: Sequence[Frame]) -> None:
        self.check()
        self.store.operate("write", self.path)
        data = b"".join(bytes_of(piece) for piece in pieces)
        count = self.store.take_room(len(data), min(len(data), 1))
        self.content.written += data[:count]
        self.size += count
        if count < len(data):
            raise OSError(errno.ENOSPC, "No space left on device")

    def sync(self) -> None:
        self.check()
        try:
            self.store.operate("sync", self.path)
        except OSError:
            self.content.has_failed = True
            raise
        self.content.durable = self.content.written

    def close(self) -> None:
        assert not self.is_closed, "a file is closed once"
        self.is_closed = True

    def check(self) -> None:
        """Assert that the file may be used: after a sync that failed, the next one proves nothing."""
        assert not self.is_closed and not self.content.has_failed, f"{self.path} is used after a failed sync"


def crash_at(operation: int, disk: SimulatedDisk) -> SimulatedStore:
    """Return the view of a process that crashes at its `operation`-th one, and at all later ones."""
    store = SimulatedStore(disk)

    def before(what: str, path: str) -> None:
        if len(store.operations) > operation:
            raise Crash(f"at operation {operation}: {what} {path}")

    store.before = before
    return store
