"""What a program of clients gets when it starts, and how it tells what its clients do and hear.

The program may be killed at any moment. So it tells each thing at once, through a pipe: before a call what is
asked, and behind it what was answered. What it could not tell any more was never answered, as far as
anybody knows.
"""

from __future__ import annotations

import os
import pickle
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from ..model import Model, Operation
from ..queries import Rows

__all__ = ["Event", "Forgotten", "Plan", "Teller", "ToldModel", "Unanswered", "events_in"]

Event = tuple[object, ...]

_LENGTH = struct.Struct("<I")


@dataclass(frozen=True)
class Unanswered:
    """An insertion with a name whose answer nobody has got: the next program asks again."""

    model: int
    input: str
    tag: int
    rows: list[tuple[int, int, int]]
    writer: str
    number: int


@dataclass(frozen=True)
class Plan:
    """What one program does.

    kind        "client" of a cluster at `addresses`; otherwise "embedded", "threads" or "processes", and the
                cluster is the program's own
    name        of the program; the names of its actors begin with it
    life        how many programs there were before it
    actors      "writer", "reader" and "witness"
    flag        a file that is there while the disk may fail
    forgotten   a folder where all programs write down which epochs of an output are forgotten
    numbers     of the next insertion, by line of named insertions
    standby     others follow the worker processes of the program
    sealed      the last epoch of each dataflow that was sealed for good as the program started
    """

    kind: str
    name: str
    life: int
    seed: int
    workers: int
    folder: str
    sync: str
    addresses: list[str]
    queries: list[str]
    actors: list[str]
    flag: str
    forgotten: str
    first_tag: int
    numbers: dict[str, int] = field(default_factory=dict)
    unanswered: list[Unanswered] = field(default_factory=list)
    shown: list[dict[str, int]] = field(default_factory=list)
    standby: bool = False
    sealed: list[int] = field(default_factory=list)


class Teller:
    """The pipe of a program's events; threads may share it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()

    def __call__(self, *event: object) -> None:
        """Tell one event."""
        data = pickle.dumps(event)
        rest = memoryview(_LENGTH.pack(len(data)) + data)
        with self._lock:
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]


def events_in(pipe: BinaryIO) -> Iterator[Event]:
    """Yield the events of a program until it ends; the last one may be torn, and then is none."""
    while len(head := pipe.read(_LENGTH.size)) == _LENGTH.size:
        (length,) = _LENGTH.unpack(head)
        data = pipe.read(length)
        if len(data) < length:
            return
        event = pickle.loads(data)
        assert isinstance(event, tuple)
        yield event


class Forgotten(dict[str, int]):
    """Which epochs of outputs are forgotten, by whichever program."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def get(self, output: str, default: int = 0) -> int:  # type: ignore[override]
        """Return the first epoch of an output that nobody has asked to forget."""
        path = self._path.with_name(f"{self._path.name} {output}")
        return path.stat().st_size if path.exists() else default

    def __setitem__(self, output: str, epoch: int) -> None:
        """Write down that the epochs before this one are about to be forgotten."""
        path = self._path.with_name(f"{self._path.name} {output}")
        with path.open("ab") as file:  # its size is the epoch: it only grows
            if file.tell() < epoch:
                os.truncate(path, epoch)


class ToldModel(Model):
    """A model that tells what happens to it: the judge is another process."""

    at: int
    tell: Teller

    def begin(self, input: str, tag: int, rows: list[tuple[int, int, int]], sign: int) -> Operation:
        """See `Model`."""
        operation = super().begin(input, tag, rows, sign)
        self.tell("begin", self.at, input, tag, rows, sign)
        return operation

    def name(self, operation: Operation, writer: str, number: int) -> None:
        """An operation is about to be asked for by name."""
        self.tell("name", self.at, operation.tag, writer, number)

    def took(self, operation: Operation, first: int, last: int) -> None:
        """See `Model`."""
        super().took(operation, first, last)
        self.tell("took", self.at, operation.tag, operation.sign, first, last)

    def sealed_until(self, epoch: int) -> None:
        """A reply told a client that this epoch is sealed for good."""
        self.tell("sealed", self.at, epoch)

    def saw_truth(self, input: str, start: int, stop: int, by_epoch: dict[int, Rows]) -> None:
        """See `Model`."""
        super().saw_truth(input, start, stop, by_epoch)
        self.tell("truth", self.at, input, start, stop, by_epoch)

    def saw(self, output: str, start: int, stop: int, by_epoch: dict[int, Rows], who: str) -> None:
        """See `Model`."""
        super().saw(output, start, stop, by_epoch, who)
        self.tell("saw", self.at, output, start, stop, by_epoch, who)

    def saw_snapshot(self, output: str, epoch: int, rows: Rows) -> None:
        """See `Model`."""
        super().saw_snapshot(output, epoch, rows)
        self.tell("snapshot", self.at, output, epoch, rows)

    def saw_frontier(self, output: str, shown: int, complete: int, who: str) -> None:
        """See `Model`."""
        super().saw_frontier(output, shown, complete, who)
        self.tell("frontier", self.at, output, complete, who)
