"""States as values, and workers that are copied.

values_*   what is equal and what is not
forked_*   a copy is alike and goes its own way
nothing_*  no attribute is forgotten: each is compared, or it is said here why not
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterator
from datetime import date

import numpy as np
import pytest
from dataflows import collatz, frozen, settle, word_count

from progress.errors import MisuseError
from progress.times.timestamp import Timestamp
from progress.tracking.broadcast import Broadcaster
from progress.tracking.count_changes import CountChanges
from timely import Capability, Dataflow, Vertex
from timely.client.tables import records_of
from timely.operators.inputs.handle import InputHandle
from timely.running.checking.actions import Activate
from timely.running.checking.comparable import comparable
from timely.running.core import Worker
from timely.running.credits import Credits
from timely.running.instance import Instance
from timely.running.progress_messages import ProgressHeader, write_progress_header
from timely.running.stages.connector import Connector
from timely.running.stages.source_runner import SourceRunner
from timely.running.stages.vertex_runner import VertexRunner
from timely.running.turns import Turns
from timely.wire.batch import Records
from timely.wire.transport.memory import MemoryNetwork
from timely.worker.server import Server

NOT_COMPARED = {
    # who it is, how it was built, and where it is
    Worker: {
        "_checks_progress",
        "_lends",
        "_lent_to",
        "shares_thread",
        "_compiles_loops",
        "logs_sources",
        "_transport",
        "index",
        "on_control",
        "on_failure",
    }
    | {"acting", "on_step", "workers"}
    # what `telling` would answer follows from what it holds, and from the counts
    | {"_untold"}
    # counters for people
    | {"controls_recv", "controls_sent", "messages_recv", "messages_sent", "steps", "timings"},
    Instance: {"_owner", "_port_owner", "checker", "connectors", "count", "enqueue", "frozen", "sources"}
    # the outputs, which are among the runners
    | {"captures"}
    | {"alarms"}
    | {
        "messages_recv",
        "messages_sent",
        "rows_recv",
        "rows_sent",
        "resume_later",
        "routing",
        "wake",
        "worker",
        "workers",
    },
    # the gate is the same for all dataflows of a worker, and compared there; nothing depends on times
    Turns: {"actors", "busy", "elsewhere", "gate", "mergers", "ran_from", "ran_until", "timings"},
    # how much is allowed; the sum of what is counted up to each mark
    Credits: {"_limit", "_peers", "_unreceived", "quantum", "transport"},
    VertexRunner: {"_surroundings", "code", "name", "notifies", "ports", "site", "source", "wants_end"}
    | {"_acting", "_limit", "is_patient", "vertex_code"}
    # a worker that has any is never copied
    | {"calls"}
    # compared by its dataflow
    | {"_alarms"}
    # how words of the vertex are translated follows from the anchor
    | {"_has_times", "_lasting", "_looks_for_times"}
    | {"wants_frontier", "worker", "workers"}
    # what is seen of inputs follows from them
    | {"_ahead", "_has_looked", "_is_begun", "followers", "is_ahead", "opened"}
    # counters and texts
    | {"activations", "events", "moves"}
    # in another order what is compared in order; empty between activations
    | {"_held_in_order", "_received", "_received_minimal", "_waiting", "_waiting_in_order"}
    # used within an activation; only of what has left the worker
    | {"_has_asked", "_has_ended"},
    Connector: {
        "_before",
        "_carrier",
        "_doubtful",
        "_expects",
        "_far",
        "_is_divided",
        "_is_identity",
        "_last",
        "_late",
        "_limits",
        "_only",
        "_only_moves",
        "_placed",
        "add",
        "index",
        "keep",
        "location",
        "port",
        "route",
    }
    | {"target", "messages_sent", "iteration_counts", "rows_sent"},
    InputHandle: {"_clock", "_entrance", "_ordered", "_plain", "_word", "_word_epoch", "codec", "name"},
    CountChanges: set[str](),
    Broadcaster: set[str](),
}
NOT_COMPARED[SourceRunner] = NOT_COMPARED[VertexRunner] | {"_holders", "_journal", "_note_kept"}
"""By class, the attributes that do not decide what a worker will do."""


class KeepsVertex(Vertex):
    """Keeps something."""

    def __init__(self, kept: object) -> None:
        self.kept = kept

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.kept = message


# values_


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 2),
        (1, True),
        (1, 1.0),
        (0.0, -0.0),
        ("a", b"a"),
        ((1, 2), [1, 2]),
        ([1, 2], [2, 1]),
        ({1: 2, 3: 4}, {3: 4, 1: 2}),
        ({1, 2}, {1, 3}),
        (deque([1]), deque([1, 1])),
        (np.arange(3), np.arange(3).astype(np.int32)),
        (np.arange(4), np.arange(4).reshape(2, 2)),
        (Records([1]), Records([2])),
        (KeepsVertex(1), KeepsVertex([1])),
        (len, max),
        (int, str),
        (KeepsVertex(1).on_notify, KeepsVertex(2).on_notify),
        (memoryview(b"a"), memoryview(b"b")),
        (date(2020, 1, 1), date(2020, 1, 2)),
    ],
)
def test_values_that_differ_are_told_apart(one: object, other: object) -> None:
    assert comparable(one) != comparable(other)
    assert {comparable(one), comparable(other), comparable(one)} == {comparable(other), comparable(one)}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([1, {"a": {2, 1}}], [1, {"a": {1, 2}}]),
        (np.arange(3), np.arange(3)),
        (Records([(1, "a")]), Records([(1, "a")])),
        (KeepsVertex({"a": [1]}), KeepsVertex({"a": [1]})),
        (float("nan"), float("nan")),
        (date(2020, 1, 1), date(2020, 1, 1)),
    ],
)
def test_values_with_the_same_contents_are_equal(one: object, other: object) -> None:
    assert comparable(one) == comparable(other)


def test_values_are_as_they_were_when_looked_at() -> None:
    numbers = [1]
    before = comparable(numbers)
    numbers.append(2)
    assert before == comparable([1]) != comparable(numbers)


def test_values_may_refer_to_themselves() -> None:
    ring: list[object] = [1]
    ring.append(ring)
    other: list[object] = [2]
    other.append(other)
    assert comparable(ring) != comparable(other)


def test_values_that_show_nothing_are_refused() -> None:
    with pytest.raises(MisuseError, match="a list_iterator cannot be compared"):
        comparable(iter([1]))


class SortsVertex(KeepsVertex):
    """Looks at what it keeps in no order."""

    def compared(self) -> object:
        assert isinstance(self.kept, list)
        return sorted(map(str, self.kept))


def test_values_say_themselves_what_counts() -> None:
    assert comparable(SortsVertex([1, 2])) == comparable(SortsVertex([2, 1])) != comparable(SortsVertex([1]))
    assert comparable(KeepsVertex([1, 2])) != comparable(KeepsVertex([2, 1]))


# forked_


def begun() -> Worker:
    """In the middle of something: a loop runs, a message waits, nothing is told."""
    worker = Worker(0, 2, MemoryNetwork(2).transport(0))
    instance = worker.install(frozen(collatz))
    instance.input("numbers").send([(n, n, 0) for n in (3, 6, 7)])
    instance.input("numbers").seal()
    instance.input("numbers").send([(5, 5, 0)])
    for _ in range(3):
        worker.perform(next(action for action in worker.enabled() if isinstance(action, Activate)))
    return worker


def forked(worker: Worker) -> Worker:
    """A copy at a network of its own."""
    return worker.fork(MemoryNetwork(2).transport(0))


def test_forked_workers_are_alike_and_go_their_own_ways() -> None:
    worker = begun()
    before = comparable(worker)
    other = forked(worker)
    assert comparable(other) == before
    while actions := other.enabled():
        other.perform(actions[0])
    assert comparable(other) != before == comparable(worker)
    assert other.instance().frozen is worker.instance().frozen, "what never changes is not copied"


def test_forked_workers_finish_alike() -> None:
    worker = Worker()
    instance = worker.install(frozen(word_count))
    instance.input("lines").send(["a b a"])
    instance.input("lines").seal()
    worker.perform(worker.enabled()[0])
    other = worker.fork(MemoryNetwork(1).transport(0))
    for one in (worker, other):
        settle([one])
        one.instance().tracker.check_invariants()
        counts = one.instance().output("counts")
        assert counts.complete_before == 1
        assert {record for _, record in records_of(counts.log.changes(0, 1))} == {("a", 2), ("b", 1)}
    assert comparable(worker) == comparable(other)


def test_forked_workers_that_are_alike_become_alike_by_the_same_action(seed: int, effort: int) -> None:
    """Whatever way they came: states that are met twice are the same for all that follows."""
    chance = random.Random(seed)
    origin = begun()
    met: dict[object, Worker] = {}
    again = 0
    for _ in range(20 * effort):
        worker = forked(origin)
        while actions := worker.enabled():
            known = met.setdefault(comparable(worker), worker)
            again += known is not worker
            action = chance.choice(actions)
            one, other = forked(worker), forked(known)
            assert one.enabled() == other.enabled() == actions
            one.perform(action)
            other.perform(action)
            assert comparable(one) == comparable(other), action
            worker = one
    assert again > 20, "there is something to compare"


def test_forked_workers_have_a_server_of_their_own() -> None:
    worker = Worker()
    server = Server(worker)
    copied = worker.fork(None)
    other = getattr(copied.on_control, "__self__", None)
    assert isinstance(other, Server) and other is not server
    assert other._worker is copied and other.installations is not server.installations
    assert comparable(copied) == comparable(worker)


def test_forked_workers_have_the_early_messages_too() -> None:
    """Those of a dataflow that has not begun here."""
    worker = Worker()
    frames = [memoryview(write_progress_header(ProgressHeader(3))), memoryview(b"counts")]
    worker._receive(1, frames)
    copied = worker.fork(None)
    assert copied.early(3) == worker.early(3) == [(1, frames)]
    copied.end(3, MisuseError("over"))
    assert worker.early(3) and not copied.early(3)


# nothing_


def parts_of(worker: Worker) -> Iterator[object]:
    yield worker
    yield worker.credits
    yield from worker._broadcasters.values()
    for instance in worker.instances.values():
        yield instance
        yield instance.turns
        yield instance.changes
        yield from instance.runners
        yield from instance.connectors
        yield from instance.inputs.values()


def attributes_of(part: object) -> list[str]:
    slots = [name for kind in type(part).__mro__ for name in getattr(kind, "__slots__", ())]
    return slots or list(vars(part))


def is_noticed(worker: Worker, before: object, part: object, name: str) -> bool:
    """Whether another value of an attribute is seen, or looked at and refused."""
    kept = getattr(part, name)
    setattr(part, name, {"something": "else"} if isinstance(kept, dict) else ["something else"])
    try:
        return comparable(worker) != before
    except Exception:  # whatever comes of a value that makes no sense there
        return True
    finally:
        setattr(part, name, kept)


class RisesVertex(Vertex):
    """A source that goes on."""

    def on_open(self, capability: Capability) -> None:
        self.held = capability


def begun_source() -> Worker:
    """Nothing has had a turn yet."""
    worker = Worker(0, 2, MemoryNetwork(2).transport(0))
    dataflow = Dataflow()
    dataflow.output("out", dataflow.source("rises", RisesVertex))
    worker.install(dataflow.freeze())
    return worker


@pytest.mark.parametrize("make", [begun, begun_source])
def test_nothing_is_forgotten_that_decides_what_a_worker_will_do(make: Callable[[], Worker]) -> None:
    worker = make()
    before = comparable(worker)
    for part in parts_of(worker):
        for name in attributes_of(part):
            is_compared = name not in NOT_COMPARED[type(part)]
            assert is_noticed(worker, before, part, name) == is_compared, f"{type(part).__name__}.{name}"
    assert comparable(worker) == before
