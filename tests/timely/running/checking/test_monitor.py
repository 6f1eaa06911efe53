"""The monitor of all workers: does it notice when progress tracking is broken, and by which predicate?

mutants_*    the runtime is broken on purpose, each way by name; all that the monitor says of it
watching_*   what it looks at, and when
allowed_*    what is no fault, though it looks like one
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from math import inf

import numpy as np
import pytest
from dataflows import frozen, settle, word_count
from random_dataflows import run

from progress.errors import InternalError
from progress.graph import graph as graphs
from progress.times.path_summary import PathSummary
from progress.times.timestamp import TimeShape, Timestamp
from progress.tracking.broadcast import Broadcaster
from progress.tracking.count_changes import Change, CountChanges
from progress.tracking.tracker import Tracker
from timely import Batch, Dataflow, Vertex
from timely.building.exchange import Broadcast, ToWorker
from timely.client.embedded.workers import EmbeddedWorkers
from timely.running import core
from timely.running.checking.monitor import Monitor
from timely.running.core import Worker
from timely.running.stages.connector import Connector
from timely.running.stages.vertex_runner import VertexRunner
from timely.wire.transport.memory import MemoryNetwork

CASES = 12
Count = Callable[[int, int, int], None]


def labels_of(cases: int = CASES, workers: int = 3) -> Counter[str]:
    """By which predicates some random runs fail; "" for those that pass."""
    found: Counter[str] = Counter()
    for case in range(cases):
        try:
            run(case, workers, case)
            found[""] += 1
        except InternalError as error:
            label = re.match("progress predicate (.+?) does not hold", str(error))
            assert label is not None, error
            found[label[1]] += 1
    return found


def watched(workers: int, seed: int | None = None) -> tuple[list[Worker], Monitor, MemoryNetwork]:
    network = MemoryNetwork(workers, seed)
    group = [Worker(index, workers, network.transport(index)) for index in range(workers)]
    return group, Monitor(group, network), network


# mutants_


def test_mutants_decrements_told_before_their_increments(monkeypatch: pytest.MonkeyPatch) -> None:
    tell = Worker._tell_all

    def split(self: Worker, dataflow: int, changes: list[Change]) -> None:
        for part in ([c for c in changes if c[2] < 0], [c for c in changes if c[2] > 0]):
            if part:
                tell(self, dataflow, part)

    monkeypatch.setattr(Worker, "_tell_all", split)
    labels = labels_of()
    assert labels.keys() <= {"A3", ""} and labels["A3"] > CASES // 2, labels


def test_allowed_increments_may_be_told_before_their_decrements(monkeypatch: pytest.MonkeyPatch) -> None:
    """What remains to be told is decrements, which are upright: the licence to split, never to reorder."""
    tell = Worker._tell_all

    def split(self: Worker, dataflow: int, changes: list[Change]) -> None:
        for part in ([c for c in changes if c[2] > 0], [c for c in changes if c[2] < 0]):
            if part:
                tell(self, dataflow, part)

    monkeypatch.setattr(Worker, "_tell_all", split)
    assert labels_of(2) == {"": 2}


class HoldsVertex(Vertex):
    """Holds what it receives, until the test says otherwise."""

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.hold_word(self.code.pack(time))


def test_mutants_payloads_that_overtake_one_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """That a hold was given up is told before the message that was sent under it."""
    group, _, network = watched(2)
    for worker in group:
        dataflow = Dataflow()
        held = dataflow.input("numbers").stage("holds", HoldsVertex)
        held.stage("far", HoldsVertex, exchange=ToWorker(1))
        worker.install(dataflow.freeze())
        worker.instance().input("numbers").send(["a"])
        worker.instance().input("numbers").close()
    sender = group[0]
    sender.step()
    vertex = sender.instance().runners[1].vertex
    assert isinstance(vertex, HoldsVertex)
    vertex.send_by(0, ["b"], (0,))
    sender.step()
    put = MemoryNetwork.put

    def overtake(self: MemoryNetwork, source: int, target: int, frames: Sequence[bytes]) -> None:
        put(self, source, target, frames)
        queue = self._queues[source, target]
        queue[-1], queue[-2] = queue[-2], queue[-1]

    monkeypatch.setattr(MemoryNetwork, "put", overtake)
    vertex.release_word(vertex.code.pack((0,)))
    with pytest.raises(InternalError, match="predicate A3 .* towards worker 1, after 2 of 3 payloads"):
        sender.step()


def test_mutants_a_worker_tells_a_part_of_its_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the sources' Send asks is not asked: that what remains to be told is upright."""
    take = CountChanges.take

    def take_decrements(self: CountChanges) -> list[Change]:
        changes = take(self)
        lowered = [change for change in changes if change[2] < 0]
        for location, word, delta in changes if lowered else []:
            if delta > 0:
                self.add(location, word, delta)
        return lowered or changes

    monkeypatch.setattr(CountChanges, "take", take_decrements)
    labels = labels_of()
    assert labels.keys() <= {"A2", ""} and labels["A2"] > CASES // 2, labels


class RemembersVertex(Vertex):
    """Sends at the times of earlier messages, for which it holds nothing."""

    def __init__(self) -> None:
        self.remembered: list[Timestamp] = []

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        for earlier in self.remembered:
            self.send_by(0, ["late"], earlier)
        self.remembered.append(time)


def test_mutants_rights_judged_by_the_own_view_and_not_by_what_is_held(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The race of pull request 327: the view is late, so it allows what nobody has the right to any more."""
    dataflow = Dataflow()
    vertices = [RemembersVertex(), RemembersVertex()]
    group, _, _ = watched(2)
    for worker, vertex in zip(group, vertices, strict=True):
        dataflow = Dataflow()
        dataflow.output("late", dataflow.input("numbers").stage("remembers", lambda made=vertex: made))
        worker.install(dataflow.freeze())

    def judge_by_view(self: VertexRunner, word: int, what: str) -> None:
        fronts = [int(front) for port in range(len(self.ports)) for front in self.frontier(port)]
        assert any(front <= word for front in fronts), "not even by its own view"

    monkeypatch.setattr(VertexRunner, "_check_right", judge_by_view)
    handle = group[0].instance().input("numbers")
    handle.send(["a"])
    handle.seal()
    group[0].step()
    handle.send(["b"])
    handle.seal()
    with pytest.raises(InternalError, match=r"predicate A2 does not hold at worker 0: .* at \(0,\)"):
        group[0].step()


def test_mutants_a_feedback_that_adds_nothing_to_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    send = Connector.send

    def send_at_once(self: Connector, batch: Batch, word: int) -> None:
        self._is_identity = self._is_identity or self.add != 0
        send(self, batch, word)

    monkeypatch.setattr(Connector, "send", send_at_once)
    labels = labels_of()
    assert labels.keys() <= {"A2", ""} and labels["A2"] > CASES // 2, labels


def test_mutants_a_feedback_whose_summary_adds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def feedback(shape: TimeShape, by: int = 1) -> PathSummary:
        return PathSummary.identity(shape)

    monkeypatch.setattr(PathSummary, "feedback", feedback)
    monkeypatch.setattr(graphs, "_standing_cycle", lambda locations, steps: None)
    dataflow = Dataflow()
    numbers = dataflow.input("numbers")
    with dataflow.loop() as loop:
        back = loop.feedback()
        (out,) = dataflow.stage("round", Passes, [loop.enter(numbers).feed(), back.stream.feed()])
        back.connect(out)
    (worker,), _, _ = watched(1)
    with pytest.raises(InternalError, match="no zero cycle does not hold between .*'round'"):
        worker.install(dataflow.freeze())


def test_mutants_a_hold_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def hold(self: VertexRunner, word: int) -> None:
        self._held[word] = self._held.get(word, 0) + 1

    monkeypatch.setattr(VertexRunner, "hold", hold)
    labels = labels_of(workers=1)
    assert labels.keys() <= {"A1", "B2", ""}, labels
    assert labels["B2"] > 0, "held after the activation, and not counted"
    assert labels["A1"] > 0, "given up within it: one less than nothing"


def _counting_otherwise(
    monkeypatch: pytest.MonkeyPatch, make: Callable[[Connector, int, Count], Count]
) -> None:
    """While a connector sends, its counts are changed by what `make` returns."""
    send = Connector.send

    def otherwise(self: Connector, batch: Batch, word: int) -> None:
        count = self._carrier.count
        self._carrier.count = make(self, word, count)
        try:
            send(self, batch, word)
        finally:
            self._carrier.count = count

    monkeypatch.setattr(Connector, "send", otherwise)


def test_mutants_a_message_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    _counting_otherwise(monkeypatch, lambda connector, sent_at, count: lambda location, word, delta: None)
    labels = labels_of()
    assert labels.keys() <= {"B2", ""} and labels["B2"] > CASES // 2, labels


def test_mutants_a_message_is_counted_at_the_sender_s_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def make(connector: Connector, sent_at: int, count: Count) -> Count:
        at_sender = connector.add != 0

        def count_there(location: int, word: int, delta: int) -> None:
            count(location, sent_at if at_sender else word, delta)

        return count_there

    _counting_otherwise(monkeypatch, make)
    labels = labels_of()
    assert labels.keys() <= {"B2", ""} and labels["B2"] > CASES // 2, labels


def test_mutants_a_payload_is_applied_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    heard = Broadcaster.on_message
    monkeypatch.setattr(Broadcaster, "on_message", lambda self, payload: heard(self, payload) * 2)
    labels = labels_of()
    assert labels.keys() <= {"A5", "S3"}, "S3 where something else was heard before anybody looked"
    assert labels["A5"] > CASES // 2, labels


def test_mutants_a_tracker_forgets_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    apply = Tracker.apply
    monkeypatch.setattr(Tracker, "apply", lambda self, changes: apply(self, changes[:2]))
    labels = labels_of()
    assert labels.keys() <= {"A5", ""} and labels["A5"] > CASES // 2, labels


def test_mutants_a_tracker_shows_a_frontier_that_is_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tracker, "frontier", lambda self, port: np.zeros(0, dtype=np.int64))
    group, _, _ = watched(1)
    instance = group[0].install(frozen(word_count))
    instance.input("lines").send(["a"])
    instance.input("lines").seal()
    with pytest.raises(
        InternalError, match=r"predicate C4 .* whose frontier is \[\] and should be \[\(0,\)\]"
    ):
        group[0].step()


# watching_


def test_watching_every_activation_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "ALONE_SECONDS_MAX", inf)
    group, monitor, _ = watched(1)
    instance = group[0].install(frozen(word_count))
    instance.input("lines").send(["a b"])
    instance.input("lines").seal()
    apply, told = instance.apply, list[int]()

    def counted(changes: list[Change]) -> None:
        told.append(len(changes))
        apply(changes)

    instance.apply = counted  # type: ignore[method-assign]
    group[0].step()
    activations = sum(runner.activations for runner in instance.runners)
    assert activations >= 2 and len(told) >= 2
    assert monitor.looks == activations + 1 + len(told), "before the first, after each, and what was told"


def test_watching_begins_before_anything_is_installed() -> None:
    worker = Worker()
    worker.install(frozen(word_count))
    with pytest.raises(AssertionError, match="from the start"):
        Monitor([worker])


@pytest.mark.parametrize("seed_", [None, 3])
def test_watching_workers_that_have_not_installed_yet_own_their_first_epochs(seed_: int | None) -> None:
    (fast, slow), monitor, network = watched(2, seed_)
    early = fast.install(frozen(word_count))
    early.input("lines").send(["a b c d e f"])
    early.input("lines").seal()
    fast.run_until_idle()
    slow.run_until_idle()
    late = slow.install(frozen(word_count))
    late.input("lines").close()
    early.input("lines").close()
    while network.in_flight() or fast.step() or slow.step():
        settle((fast, slow))
    assert early.is_complete() and late.is_complete()
    assert monitor.looks > 6


@pytest.mark.parametrize("delays", [None, 1, 2])
def test_watching_embedded_workers_with_nested_loops(delays: int | None) -> None:
    import timely

    embedded = EmbeddedWorkers(3, delays)
    monitor = Monitor(embedded._workers, embedded._network)
    with timely.Cluster(embedded) as cluster:
        flow = cluster.install("dataflows:collatz")
        flow.input("numbers").insert([(n, n, 0) for n in (1, 6, 11)])
        flow.seal()
        other = cluster.install("dataflows:word_count")
        other.input("lines").insert(["a b"])
        assert other.seal() == 0
        assert sorted(record for _, record in flow.output("steps").changes())[0] == (1, 0, 0)
    assert monitor.looks > 50


def test_watching_a_broadcast_counts_every_copy() -> None:
    group, monitor, network = watched(3, 5)
    for worker in group:
        dataflow = Dataflow()
        numbers = dataflow.input("numbers")
        dataflow.output("copies", numbers.stage("copies", Passes, exchange=Broadcast()))
        worker.install(dataflow.freeze())
    for worker in group:
        worker.instance().input("numbers").send([worker.index])
        worker.instance().input("numbers").close()
    for _ in range(100):
        settle(group)
    assert not network.in_flight() and all(worker.instance().is_complete() for worker in group)


class Passes(Vertex):
    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.send_by(0, message, time)
