"""What the explorer (`explorer.py`) is given, and what it goes through: acts, messages, states."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

from progress.checking.predicates import Counts
from progress.graph.pointstamp_order import Pointstamp, PointstampOrder
from progress.times.timestamp import Timestamp

from ...building.dataflow import Dataflow
from ...building.freeze import FrozenDataflow
from ...operators.inputs.handle import InputHandle
from ...wire.batch import Frame
from ...wire.transport import Lent
from ..core import Worker
from ..instance import Instance
from .actions import Action

__all__ = [
    "Act",
    "Client",
    "Doing",
    "Door",
    "Explorable",
    "Explored",
    "FlowSight",
    "Judged",
    "Local",
    "Message",
    "Move",
    "Reached",
    "Wire",
    "WorkOff",
]


class Act(Protocol):
    """What somebody does at a worker from outside. Two that are to be told apart are two objects."""

    def act(self, instance: Instance) -> None:
        """Do it to a dataflow on a worker."""
        ...


@dataclass(frozen=True)
class Client:
    """What a client does at a worker: rows for the open epoch of an input, which ends with them."""

    rows: tuple[object, ...] = ()
    is_last: bool = False
    input: str = "records"
    dataflow: int = 0

    def __str__(self) -> str:
        what = f"send {list(self.rows)} and " if self.rows else ""
        return f"a client: {what}{'close' if self.is_last else 'seal the epoch of'} {self.input!r}"

    def act(self, instance: Instance) -> None:
        """Do it."""
        handle = instance.input(self.input)
        if self.rows:
            self.insert(handle)
        if self.is_last:
            handle.close()
        else:
            handle.seal()

    def insert(self, handle: InputHandle) -> None:
        """Give the rows to an input."""
        handle.send(list(self.rows))


@dataclass(frozen=True)
class Explorable:
    """What is explored.

    build      the dataflow; the same for every worker
    beside     other dataflows on these workers, which are number 1 and so on
    clients    for each worker what clients do there, in this order
    or_clients other ways in which clients may do it, each of which is explored as well
    result     of all instances, once all is complete, what shall be compared
    expected   what `result` must be, whatever has happened in which order
    credit_bytes  the limit of `credits.py`; 0: none, so that states are alike whatever was sent before
    alike      workers that may be renamed (`reductions.py`); whether they are alike the explorer finds out
    per_host   how workers tell one another of progress: 0, after each step; otherwise as `Telling` says. With
               several workers on a host a message sums up what several have done, so that nobody can say any
               more what one of them has to tell another: predicates of that are left to `Monitor`
    """

    build: Callable[[Dataflow], object]
    clients: Sequence[Sequence[Act]]
    result: Callable[[Sequence[Instance]], object]
    expected: object
    credit_bytes: int = 0
    or_clients: Sequence[Sequence[Sequence[Act]]] = ()
    per_host: int = 0
    beside: Sequence[Callable[[Dataflow], object]] = ()
    alike: Sequence[int] = ()


@dataclass
class Explored:
    """How much was looked at."""

    states: int = 0
    transitions: int = 0
    ends: int = 0
    worker_states: int = 0
    longest: int = 0
    """If `reduced`: how many actions the longest run has."""
    put_off: int = 0
    """If `reduced`: how many moves were not followed, for those of an independent worker stand for them."""
    images: int = 0
    """If workers are alike: for how many states the visited ones stand, themselves among them."""

    def __str__(self) -> str:
        return (
            f"{self.states:,} states, {self.transitions:,} transitions, {self.ends:,} ends; "
            f"{self.worker_states:,} states of workers"
            + (f"; {self.put_off:,} independent moves not followed" if self.put_off else "")
            + (f"; stand for {self.images:,} states with workers renamed" if self.images else "")
        )


@dataclass(frozen=True)
class WorkOff:
    """Do everything that there is to do, in the order of a step."""

    def __str__(self) -> str:
        return "do all that there is to do"


Doing: TypeAlias = Action | WorkOff | Act


@dataclass(frozen=True, eq=False)
class Judged:
    """A dataflow that is judged, and what each worker owns of it before it has done anything."""

    frozen: FrozenDataflow
    order: PointstampOrder
    first: list[Counts]


@dataclass(frozen=True, eq=False)
class Message:
    """Something on a wire; those with the same contents are the same object."""

    frames: list[memoryview]
    dataflow: int
    """The dataflow that it is for; -1: for none."""
    payload: list[Counts]
    data: list[Pointstamp]
    sight: int
    """Number of what predicates see of it."""
    inside: tuple[Hashable, ...] = ()
    """What a subclass of the explorer sees in it."""


Wire: TypeAlias = tuple[Message, ...]
"""What is on its way from one worker to another, oldest first."""


class Door:
    """The transport of a worker that is alone: what it may receive, and what it has sent."""

    def __init__(self, arriving: dict[int, Message]) -> None:
        self.arriving = arriving
        self.sent: list[tuple[int, list[memoryview]]] = []

    def heard(self) -> list[int]:
        """Return the peers from which a message waits."""
        return sorted(self.arriving)

    def recv_one(self, peer: int) -> list[memoryview]:
        """Return the message of a peer."""
        return self.arriving.pop(peer).frames

    def send(self, peer: int, frames: Sequence[Frame]) -> None:
        """Keep a message for a peer."""
        self.sent.append((peer, [memoryview(bytes(frame)) for frame in frames]))

    def recv_nowait(self) -> list[tuple[int, list[memoryview]]]:
        """Raise: messages are received one by one."""
        raise AssertionError("messages are received one by one")

    def wait(self, timeout_seconds: float) -> None:
        """Raise: nobody waits here."""
        raise AssertionError("nobody waits here")

    def lend(self) -> Lent | None:
        """Return None: nothing is in shared memory."""
        return None

    def take_back(self) -> tuple[int, int]:
        """Raise: nothing was lent."""
        raise AssertionError("nothing was lent")

    def close(self) -> None:
        """Raise: nobody closes it."""
        raise AssertionError("nobody closes it")


@dataclass(frozen=True, eq=False)
class FlowSight:
    """What predicates see of a dataflow on a worker."""

    caps: Counts
    temp: Counts
    held: list[Counts]
    """What it holds back of what it has to tell; no entry if it tells after each step."""
    glob: Counts
    frontiers: list[list[Timestamp]]
    inside: tuple[Hashable, ...]
    """What a subclass of the explorer sees in it."""


@dataclass(frozen=True, eq=False)
class Local:
    """One worker in one state, never touched again: a copy of it acts."""

    worker: Worker
    enabled: list[Action]
    seen: dict[int, FlowSight]
    """By dataflow."""
    early: dict[int, list[tuple[int, Message]]]
    """By dataflow that has not begun here: messages that have come, each with the worker that has sent it."""
    sights: dict[int, int]
    """By dataflow: the number of what predicates see of it."""

    @property
    def instance(self) -> Instance:
        """The first dataflow on this worker."""
        return self.worker.instance()


class Reached(NamedTuple):
    """Of all workers, of the wires by (source, target), and of the acts that clients still have to do at each
    worker: numbers of `Explorer._to_do`.
    """

    workers: tuple[Local, ...]
    wires: tuple[Wire, ...]
    acts: tuple[int, ...]


Move: TypeAlias = tuple[int, Doing]
"""A worker, and what it does."""
