"""All workers start the same dataflow, or none does; in whatever order builds, offers and verdicts come.

verdict_*   worker 0 judges, the others follow
late_*      what comes after the verdict changes nothing
index_*     each dataflow has its number once
"""

from __future__ import annotations

import pyarrow as pa
import pytest
from dataflows import SplitLinesVertex, broken_builder, settle, word_count

import timely
from timely.client.embedded.workers import EmbeddedWorkers
from timely.errors import class_names
from timely.limits import INSTALL_SECONDS_MAX
from timely.running.core import Worker
from timely.running.progress_messages import write_control_header
from timely.wire.handshake import Build, Control, Ended, Offer, Verdict, encode_control
from timely.wire.requests import IN_OPEN, Decide, Deliver, Install, Progress
from timely.wire.transport.memory import MemoryNetwork
from timely.worker.answers.later import Later
from timely.worker.installation import Installations, describe
from timely.worker.server import Server


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Group:
    """Some workers, each stepped only when a test wants it."""

    def __init__(self, count: int) -> None:
        network = MemoryNetwork(count)
        self.clock = Clock()
        self.workers = [Worker(index, count, network.transport(index)) for index in range(count)]
        self.servers = [Server(worker, "", self.clock) for worker in self.workers]

    def install(self, spec: str) -> Later:
        """Ask worker 0, which alone has built then."""
        answer = self.servers[0].handle(Install(spec, {}))
        assert isinstance(answer, Later)
        return answer

    def installations(self, worker: int) -> Installations:
        return self.servers[worker].installations

    def leftovers(self) -> list[object]:
        """What any worker still keeps of dataflows that are not to run."""
        return [
            kept
            for worker, server in zip(self.workers, self.servers, strict=True)
            for kept in (
                worker._early, worker._instances, worker._broadcasters,
                server.installations._offers, server.installations.prepared,
            )
            if kept
        ]  # fmt: skip


def test_verdict_nothing_starts_before_all_have_offered_the_same() -> None:
    group = Group(3)
    later = group.install("dataflows:word_count")
    for worker in (1, 0):
        group.workers[worker].step()
    assert later.ready() is None and group.installations(0).missing(0) == [2]
    assert not any(worker.instances for worker in group.workers)
    settle(group.workers)
    reply = later.ready()
    assert reply is not None and reply.integer("dataflow") == 0
    assert all(list(worker.instances) == [0] for worker in group.workers)


def test_verdict_that_a_client_hears_before_a_worker_does_is_waited_for() -> None:
    """Worker 0 has told both, but the client was quicker to come to worker 1 with what it has to ask."""
    group = Group(2)
    later = group.install("dataflows:word_count")
    group.workers[1].step()
    group.workers[0].step()
    assert later.ready() is not None and not group.workers[1].instances
    lines = pa.table({"record": [b"\xa3a b"]})
    insert = group.servers[1].handle(Deliver(0, "lines", "w", 0, IN_OPEN, 0, 1), lines)
    wait = group.servers[1].handle(Progress(0, "counts", 0, 2.0))
    wrong = group.servers[1].handle(Progress(0, "no such output", 0, 2.0))
    assert isinstance(insert, Later) and isinstance(wait, Later) and isinstance(wrong, Later)
    assert insert.ready() is wait.ready() is wrong.ready() is None
    group.workers[1].step()
    reply = insert.ready()
    assert reply is not None and reply.values == {"is_new": True, "epoch": 0}
    assert wait.ready() is None
    with pytest.raises(timely.MisuseError, match="no output 'no such output'"):
        wrong.ready()
    group.servers[0].handle(Decide(0, 0, True))
    settle(group.workers)
    assert wait.ready() is not None
    assert group.workers[1].instance(0).output("counts").complete_before == 1


def test_verdict_that_never_starts_it_is_told_to_who_came_early() -> None:
    group = Group(2)
    group.install("dataflows:word_count")
    group.workers[1].step()
    early = group.servers[1].handle(Progress(0, "counts", 0, -1.0))
    assert isinstance(early, Later) and early.ready() is None
    group.installations(0).receive(1, Offer(0, "", (), "no file", ("VertexError",)))
    group.workers[1].step()
    with pytest.raises(timely.VertexError, match="worker 1 could not build it: no file"):
        early.ready()


def test_verdict_once_known_a_wait_is_late_for_its_own_reason() -> None:
    group = Group(2)
    group.install("dataflows:word_count")
    group.workers[1].step()
    early = group.servers[1].handle(Progress(0, "counts", 0, 2.0))
    settle(group.workers)
    assert isinstance(early, Later) and early.ready() is None
    assert early.deadline == group.clock.now + 2
    with pytest.raises(timely.WaitTimeoutError, match="it is not sealed yet"):
        raise early.late()


def test_verdict_a_worker_that_could_not_build_is_named_with_its_error() -> None:
    group = Group(3)
    later = group.install("dataflows:word_count")
    group.installations(0).receive(2, Offer(0, "", (), "no file", ("VertexError", "MisuseError")))
    with pytest.raises(timely.VertexError, match="worker 2 could not build it: no file"):
        later.ready()
    settle(group.workers)
    for server in group.servers:
        told: list[BaseException] = []
        for _ in range(2):
            with pytest.raises(timely.VertexError, match="worker 2 could not build it: no file") as caught:
                server.installations.outcome(0)
            told.append(caught.value)
        assert told[0] is not told[1], "one that is raised twice collects tracebacks"
    assert group.leftovers() == []


def test_verdict_a_failure_of_worker_0_itself_is_told_without_its_number() -> None:
    group = Group(2)
    with pytest.raises(timely.VertexError, match=r"^the builder 'dataflows:broken_builder' failed"):
        group.servers[0].handle(Install("dataflows:broken_builder", {}))
    settle(group.workers)
    assert group.leftovers() == []


def test_verdict_different_dataflows_are_refused_with_the_first_stage_that_differs() -> None:
    group = Group(2)
    group.installations(0).begin(0, "words", word_count, {})
    group.installations(1).begin(0, "words", _one_stage, {})
    settle(group.workers)
    for installations in map(group.installations, range(2)):
        with pytest.raises(timely.GraphError, match="worker 1 built stage 2 as\n    nothing"):
            installations.outcome(0)
    assert group.leftovers() == []


def _one_stage(dataflow: timely.Dataflow) -> None:
    dataflow.input("lines").stage("split lines", SplitLinesVertex)


def test_verdict_a_vertex_that_cannot_be_made_refuses_the_dataflow() -> None:
    class Fails(timely.Vertex):
        def __init__(self) -> None:
            raise OSError("no file")

    installations = Installations(Worker())
    installations.begin(0, "fails", lambda flow: flow.input("x").stage("fails", Fails), {})
    with pytest.raises(
        timely.VertexError, match="a vertex of 'fails' could not be made: OSError: no file"
    ) as caught:
        installations.outcome(0)
    assert f"the vertex of stage 'fails' was made, built at {__file__}" in str(caught.value)
    assert "write lambda: MyVertex(…) in `stage`" in str(caught.value)


def test_late_a_worker_that_is_too_slow_is_named_and_leaves_nothing_behind() -> None:
    group = Group(3)
    later = group.install("dataflows:word_count")
    group.workers[1].step()
    group.workers[0].step()
    assert later.deadline == INSTALL_SECONDS_MAX
    group.clock.now = INSTALL_SECONDS_MAX
    error = later.late()
    assert isinstance(error, timely.WaitTimeoutError)
    assert "(dataflows:word_count) was not built within 300 s by worker 2" in str(error)
    settle(group.workers)  # worker 2 builds now, and hears that it is too late
    assert group.leftovers() == []
    for server in group.servers:
        with pytest.raises(timely.WaitTimeoutError, match="by worker 2: all workers have given it up"):
            server.installations.outcome(0)
    again = group.install("dataflows:word_count")
    settle(group.workers)
    reply = again.ready()
    assert reply is not None and reply.integer("dataflow") == 1


def test_late_worker_0_is_the_first_to_lose_patience() -> None:
    group = Group(2)
    for worker, server in enumerate(group.servers):
        answer = server.install_at_start(0, "dataflows:word_count")
        assert isinstance(answer, Later)
        assert answer.deadline == (1 + worker) * INSTALL_SECONDS_MAX
    error = group.servers[1].install_at_start(1, "dataflows:word_count")
    assert isinstance(error, Later) and "worker 0 has not judged dataflow 1" in str(error.late())


def test_late_offers_and_second_verdicts_change_nothing() -> None:
    group = Group(2)
    later = group.install("dataflows:word_count")
    later.late()
    settle(group.workers)
    group.installations(0).receive(1, Offer(0, "x", (), ""))
    group.installations(0).receive(1, Offer(0, "", (), "much too late"))
    assert group.leftovers() == []


def test_late_a_builder_that_comes_after_the_verdict_is_not_called() -> None:
    """--install: each worker begins by itself, and a faster one may have been judged already."""
    group = Group(2)
    called: list[int] = []
    group.installations(0).begin(0, "broken", broken_builder, {})
    group.workers[1].step()
    group.installations(1).begin(0, "words", lambda flow: called.append(1), {})
    settle(group.workers)
    assert called == [] and group.leftovers() == []
    with pytest.raises(timely.VertexError, match="no such query"):
        group.installations(1).outcome(0)


def test_late_a_start_after_the_end_is_void() -> None:
    """The end, told by worker 2, may overtake the verdict of worker 0, since it comes by another way."""
    network = MemoryNetwork(3)
    worker = Worker(1, 3, network.transport(1))
    server = Server(worker)
    said: list[tuple[int, Control]] = [
        (0, Build(0, "dataflows:word_count", b"\x80")),
        (2, Ended(0, "cannot bear it", tuple(class_names(timely.VertexError(""))))),
        (0, Verdict(0)),
    ]
    for peer, control in said:
        network.transport(peer).send(1, [write_control_header(), encode_control(control)])
        worker.step()
    assert not worker.instances
    with pytest.raises(timely.VertexError, match="cannot bear it"):
        server.installations.outcome(0)


def test_index_is_handed_out_once_also_after_a_failure() -> None:
    installations = Installations(Worker())
    assert [installations.reserve(), installations.reserve()] == [0, 1]
    installations.begin(4, "words", word_count, {})
    assert installations.reserve() == 5
    with pytest.raises(timely.MisuseError, match="dataflow 4 exists already"):
        installations.begin(4, "words", word_count, {})
    instance = installations.outcome(4)
    assert instance is not None and describe(instance, "words").text("name") == "words"


def test_index_of_a_refused_dataflow_is_not_used_again() -> None:
    workers = EmbeddedWorkers(2)
    with timely.Cluster(workers) as cluster:
        with pytest.raises(timely.VertexError):
            cluster.install(broken_builder)
        assert cluster.install(word_count).index == 1
        with pytest.raises(timely.VertexError, match="no such query"):
            cluster.flow(0)
        assert cluster.flows() == {1: "word_count"}
