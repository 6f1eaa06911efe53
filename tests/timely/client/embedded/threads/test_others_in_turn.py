"""Workers of one thread run a loop together: answers, rounds, busy times, and errors of each."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from math import inf
from threading import get_ident
from typing import cast

import graphs_plainly
import pytest
from reference.collection import Collection as Rows
from reference.collection import collection

import differential as dd
import timely
from differential.algorithms import connected_components, strongly_connected_components
from differential.compiled_loops.rounds import Rounds
from timely.client.embedded.threads import worker_threads
from timely.client.embedded.threads.others_in_turn import Meeting, OthersInTurn
from timely.client.embedded.threads.pace import Pace
from timely.client.embedded.workers import EmbeddedWorkers
from timely.failure import full_text_of
from timely.running.core import Worker
from timely.running.stages.compiled_loop import CompiledLoopRunner

NODES = 80
GRAPHS: dict[str, tuple[Callable[[dd.Collection], dd.Collection], Callable[[Rows], Rows]]] = {
    "components": (connected_components, graphs_plainly.components),
    "strong components": (strongly_connected_components, graphs_plainly.strong_components),
}


@pytest.fixture
def _always_in_turn(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No call gives a thread to each worker, however long it takes."""
    monkeypatch.setattr(Pace, "begins_in_turn", lambda pace: True)
    monkeypatch.setattr(worker_threads, "_IN_TURN_SECONDS", inf)
    yield


def installed(cluster: timely.Cluster, graph: str) -> timely.Flow:
    """A dataflow with one output, "found", of "edges"."""

    def build(flow: timely.Dataflow) -> None:
        GRAPHS[graph][0](dd.input(flow, "edges", "src: int, dst: int")).output("found")

    return cluster.install(build)


def changed(flow: timely.Flow, edges: set[tuple[int, int]], rng: random.Random) -> None:
    """Insert an edge, remove one, and wait for what follows."""
    new, old = (rng.randrange(NODES), rng.randrange(NODES)), rng.choice(sorted(edges))
    if new not in edges:
        flow.input("edges").insert([new])
        flow.input("edges").remove([old])
        edges.add(new)
        edges.remove(old)
    flow.seal(wait=True)


def begun(flow: timely.Flow, seed: int) -> tuple[set[tuple[int, int]], random.Random]:
    """The edges of a random graph, which the dataflow has."""
    rng = random.Random(seed)
    edges = {(rng.randrange(NODES), rng.randrange(NODES)) for _ in range(2 * NODES)}
    flow.input("edges").insert(sorted(edges))
    flow.seal(wait=True)
    return edges, rng


def found_by(flow: timely.Flow) -> Rows:
    """The answer."""
    return collection([tuple(row.values()) for row in flow.output("found").snapshot().to_pylist()])


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.usefixtures("_always_in_turn")
def test_answers_are_right_while_workers_run_a_loop_in_turn(graph: str, count: int) -> None:
    with timely.connect(workers=count, threads=True) as cluster:
        flow = installed(cluster, graph)
        edges, rng = begun(flow, count)
        for _ in range(60):
            changed(flow, edges, rng)
            assert found_by(flow) == GRAPHS[graph][1](collection(sorted(edges)))


@pytest.mark.parametrize("graph", GRAPHS)
def test_answers_are_right_while_calls_change_between_turns_and_threads(
    graph: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(5)
    monkeypatch.setattr(Pace, "begins_in_turn", lambda pace: rng.random() < 0.7)
    monkeypatch.setattr(worker_threads, "_IN_TURN_SECONDS", 3e-4)  # many are interrupted
    with timely.connect(workers=2, threads=True) as cluster:
        flow = installed(cluster, graph)
        edges, chooses = begun(flow, 7)
        for _ in range(80):
            changed(flow, edges, chooses)
            assert found_by(flow) == GRAPHS[graph][1](collection(sorted(edges)))


@pytest.mark.usefixtures("_always_in_turn")
def test_most_rounds_are_no_work_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a chain each node is a round of its own."""
    rounds = [0, 0]
    turns: list[int] = []
    go_on, take_up = Rounds._go_on_for_others, CompiledLoopRunner.activate

    def counted(self: Rounds) -> bool:
        before = self.number
        has_voted = go_on(self)
        rounds[0] += self.number - before
        return has_voted

    def turned(self: CompiledLoopRunner) -> None:
        turns.append(self.stage)
        take_up(self)

    with timely.connect(workers=2, threads=True) as cluster:
        flow = installed(cluster, "components")
        flow.input("edges").insert([(node, node + 1) for node in range(1, 60)])
        flow.seal(wait=True)
        monkeypatch.setattr(Rounds, "_go_on_for_others", counted)
        monkeypatch.setattr(CompiledLoopRunner, "activate", turned)
        flow.input("edges").insert([(0, 1)])
        flow.seal(wait=True)
        assert found_by(flow) == collection([(node, 0) for node in range(61)])
    assert rounds[0] > 50
    assert len(turns) < 20


@pytest.mark.usefixtures("_always_in_turn")
def test_the_busy_time_of_all_loops_is_no_longer_than_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a worker does while another one waits for it counts once, and for the one that does it."""
    with timely.connect(workers=2, threads=True) as cluster:
        flow = installed(cluster, "components")
        flow.input("edges").insert([(node, node + 1) for node in range(1, 600)])
        flow.seal(wait=True)
        instances = [worker.instances[0] for worker in workers_of(cluster)]
        before = [sum(instance.turns.busy) for instance in instances]
        began = time.perf_counter_ns()
        flow.input("edges").insert([(0, 1)])
        flow.seal(wait=True)
        taken = time.perf_counter_ns() - began
        busy = [sum(each.turns.busy) - past for each, past in zip(instances, before, strict=True)]
    assert sum(busy) <= taken
    assert min(busy) > taken / 20, (busy, taken)


def workers_of(cluster: timely.Cluster) -> Sequence[Worker]:
    """The embedded workers."""
    workers = cluster._workers
    assert isinstance(workers, EmbeddedWorkers)
    return workers._workers


@pytest.mark.parametrize("failing", [0, 1])
@pytest.mark.usefixtures("_always_in_turn")
def test_an_error_in_the_loop_of_one_ends_the_dataflow_for_all_and_no_other(
    failing: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_up = CompiledLoopRunner.take_up_votes
    has_failed: list[bool] = []

    def fails(self: CompiledLoopRunner) -> bool:
        if self.worker == failing:
            has_failed.append(True)
            raise ValueError("cannot go on")
        return take_up(self)

    with timely.connect(workers=2, threads=True) as cluster:
        flow, other = installed(cluster, "components"), installed(cluster, "strong components")
        rng = begun(flow, 3)[1]
        edges, _ = begun(other, 4)
        with monkeypatch.context() as patched:
            patched.setattr(CompiledLoopRunner, "take_up_votes", fails)
            with pytest.raises(timely.TimelyError, match="cannot go on") as caught:
                for _ in range(200):
                    flow.input("edges").insert([(rng.randrange(NODES), rng.randrange(NODES))])
                    flow.seal(wait=True)
        assert has_failed
        assert f"(worker {failing} of 2) ran" in full_text_of(caught.value)
        with pytest.raises(timely.TimelyError, match="cannot go on"):
            found_by(flow)
        for _ in range(5):
            changed(other, edges, rng)
            assert found_by(other) == graphs_plainly.strong_components(collection(sorted(edges)))


class OneLoop:
    """A worker whose loop votes whenever it is let go on, a number of times."""

    def __init__(self, votes: int) -> None:
        self.votes = votes
        self.elsewhere = 0

    def let_loop_go_on(self) -> bool:
        self.votes -= 1
        return self.votes >= 0

    def note_elsewhere(self, nanoseconds: int) -> None:
        self.elsewhere += nanoseconds


def test_nobody_lets_others_go_on_after_the_time() -> None:
    workers = [OneLoop(0), OneLoop(5)]
    meeting = Meeting(cast(Sequence[Worker], workers))
    mine = OthersInTurn(meeting, 0)
    meeting.until = time.monotonic() + 60.0
    assert mine.go_on(lambda: False)
    meeting.until = time.monotonic() - 1.0
    assert not mine.go_on(lambda: False)
    assert workers[1].votes == 4


def test_a_worker_that_is_let_go_on_does_not_let_the_one_that_waits_go_on_after_the_time() -> None:
    class TakesLong(OneLoop):
        def let_loop_go_on(self) -> bool:
            meeting.until = time.monotonic() - 1.0
            assert not OthersInTurn(meeting, 1).go_on(lambda: pytest.fail("the time is over"))
            return True

    meeting = Meeting(cast(Sequence[Worker], [OneLoop(0), TakesLong(0)]))
    meeting.until = time.monotonic() + 60.0
    assert OthersInTurn(meeting, 0).go_on(lambda: True)


@pytest.mark.usefixtures("_always_in_turn")
def test_a_worker_that_is_let_go_on_acts_in_the_thread_of_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its last turn may have been in its own thread; a vertex may send in the thread of its worker only."""
    lets, acted = Worker.let_loop_go_on, set[int]()

    def from_another_thread(self: Worker) -> bool:
        self.acting.thread = -1
        has_voted = lets(self)
        if has_voted:
            acted.add(self.acting.thread)
        return has_voted

    monkeypatch.setattr(Worker, "let_loop_go_on", from_another_thread)
    with timely.connect(workers=2, threads=True) as cluster:
        begun(installed(cluster, "components"), 6)
    assert acted == {get_ident()}


def test_a_worker_that_is_let_go_on_lets_the_one_that_waits_go_on_and_no_third() -> None:
    asked: list[str] = []

    class WaitsForTheFirst(OneLoop):
        def let_loop_go_on(self) -> bool:
            asked.append("second")
            return OthersInTurn(meeting, 1).go_on(lambda: pytest.fail("the second waits for nobody"))

    workers = [OneLoop(0), WaitsForTheFirst(0), OneLoop(0)]
    meeting = Meeting(cast(Sequence[Worker], workers))
    meeting.until = inf

    def first() -> bool:
        asked.append("first")
        time.sleep(0.05)
        return True

    began = time.perf_counter_ns()
    assert OthersInTurn(meeting, 0).go_on(first)
    taken = time.perf_counter_ns() - began
    assert asked == ["second", "first"]
    assert meeting.waiting is None
    assert workers[1].elsewhere >= 50_000_000, "the second has waited for the first"
    assert workers[0].elsewhere <= taken - 50_000_000, "the first was not elsewhere meanwhile"
