"""Workers in the caller's process: the same answers, errors as they are, no waiting for what cannot come."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable
from math import inf

import pytest
from dataflows import CollectVertex, collatz, fails_on, word_count

import timely
from progress.times.timestamp import Timestamp
from timely.client.embedded import pending_work, workers
from timely.client.embedded.workers import EmbeddedWorkers
from timely.operators.inputs.handle import InputHandle
from timely.worker import together


@pytest.fixture(params=[False, True], ids=["in turn", "threads"])
def threads(request: pytest.FixtureRequest) -> bool:
    """Whether each worker has a thread."""
    return bool(request.param)


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_words_are_counted_whatever_the_number_of_workers(workers: int, threads: bool) -> None:
    with timely.connect(workers=workers, threads=threads, embedded=True) as cluster:
        flow = cluster.install(word_count)
        total: Counter[str] = Counter()
        for epoch, text in enumerate(["a b a", "", "c a"]):
            flow.input("lines").insert([text])
            assert flow.seal() == epoch
            total.update(text.split())
            assert sorted(flow.output("counts").changes()) == [
                (epoch, (word, total[word])) for word in sorted(set(text.split()))
            ]


@pytest.mark.parametrize("delays", [None, 1, 2, 3])
def test_nested_loops_end_whatever_the_delays(delays: int | None) -> None:
    with timely.Cluster(EmbeddedWorkers(3, delays)) as cluster:
        flow = cluster.install("dataflows:collatz")
        flow.input("numbers").insert([(n, n, 0) for n in (1, 6, 27)])
        flow.seal()
        assert sorted(flow.output("steps").changes()) == [(0, (1, 0, 0)), (0, (6, 2, 2)), (0, (27, 41, 41))]
    assert collatz.__name__ == "collatz"


def test_functions_of_any_kind_and_arguments_of_any_type_are_taken() -> None:
    seen: list[object] = []

    class Sees(timely.Vertex):
        def __init__(self, into: list[object]) -> None:
            self.into = into

        def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
            self.into.extend(message)

    with timely.connect(embedded=True) as cluster:
        flow = cluster.install(
            lambda flow, into: flow.input("x").stage("sees", lambda: Sees(into)), into=seen
        )
        flow.input("x").insert([1, 2])
        flow.seal()
    assert seen == [1, 2]


class SeesVertex(timely.Vertex):
    """Notes what it is sent."""

    def __init__(self, seen: list[object]) -> None:
        self.seen = seen

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.seen += [(time[0], record) for record in message]


def sees(seen: list[object]) -> Callable[[timely.Dataflow], object]:
    """A dataflow whose vertex has an effect."""
    return lambda flow: flow.input("x").stage("sees", lambda: SeesVertex(seen))


@pytest.mark.parametrize("workers", [1, 3])
def test_seal_and_close_do_no_work_and_wait_does_all_of_it_in_order(
    workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pending_work, "PENDING_SECONDS_MAX", 1e9)  # however slow the machine is
    seen: list[object] = []
    with timely.connect(workers=workers, embedded=True) as cluster:
        flow = cluster.install(sees(seen))
        for n in range(3):
            flow.input("x").insert([n])
            assert flow.seal() == n
        flow.input("x").insert([3])
        flow.input("x").close()
        assert seen == []
        flow.wait(0)
        assert seen == [(n, n) for n in range(4)]


def test_more_than_may_wait_is_worked_off_by_seal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending_work, "PENDING_EPOCHS_MAX", 3)
    monkeypatch.setattr(pending_work, "PENDING_SECONDS_MAX", 1e9)
    seen: list[object] = []
    with timely.connect(embedded=True) as cluster:
        flow, fails = cluster.install(sees(seen)), cluster.install(fails_on)
        counts = []
        for n in range(7):
            flow.input("x").insert([n])
            flow.seal()
            counts.append(len(seen))
        assert counts == [0, 0, 3, 3, 3, 6, 6]
        fails.input("words").insert(["bad"])
        fails.seal()
        with pytest.raises(timely.VertexError, match="cannot bear 'bad'") as caught:
            fails.seal()  # the third
        assert isinstance(caught.value.__cause__, ValueError)


READS: dict[str, Callable[[timely.Cluster, timely.Flow], object]] = {
    "changes": lambda cluster, flow: len(flow.output("counts").changes()),
    "changes_nowait": lambda cluster, flow: len(flow.output("counts").changes_nowait()),
    "complete_before": lambda cluster, flow: flow.output("counts").complete_before(),
    "follow": lambda cluster, flow: len(list(zip(range(3), flow.output("counts").follow(), strict=False))),
    "stats": lambda cluster, flow: 3 * all(worker["steps"] for worker in cluster.stats()),
    "wait": lambda cluster, flow: flow.wait() + 1,
}


@pytest.mark.parametrize("delays", [None, 1])
@pytest.mark.parametrize("call", READS)
def test_whatever_is_asked_after_a_seal_has_all_that_is_sealed(call: str, delays: int | None) -> None:
    with timely.Cluster(EmbeddedWorkers(2, delays)) as cluster:
        flow = cluster.install(word_count)
        for _ in range(3):
            flow.input("lines").insert(["a"])
            flow.seal()
        assert READS[call](cluster, flow) == 3


@pytest.mark.parametrize("delays", [None, 1, 2])
def test_what_is_decided_holds_on_all_workers_before_any_work_is_done(delays: int | None) -> None:
    with timely.Cluster(EmbeddedWorkers(3, delays)) as cluster:
        flow, other = cluster.install(word_count), cluster.flow(0)
        flow.seal()
        assert {other.input("lines").insert(["a"]) for other in [cluster.flow(0) for _ in range(9)]} == {1}
        assert other.input("lines").insert(["a"]) == 1, "though this client has not heard of the seal"
        flow.input("lines").close()
        for _ in range(9):  # at different workers
            with pytest.raises(timely.InputClosedError):
                cluster.flow(0).input("lines").insert(["a"])


def test_an_exception_of_a_vertex_is_the_cause_of_what_comes_out_and_ends_the_dataflow(threads: bool) -> None:
    with timely.connect(workers=2, threads=threads, embedded=True) as cluster:
        flow, other = cluster.install(fails_on), cluster.install(word_count)
        flow.input("words").insert(["good", "bad"])
        flow.seal()
        with pytest.raises(timely.VertexError, match="ValueError: cannot bear 'bad'") as caught:
            flow.wait()
        assert isinstance(caught.value.__cause__, ValueError)
        assert "while 'collect' (stage 1, worker " in caught.value.__cause__.__notes__[0]
        with pytest.raises(timely.VertexError, match="dataflow 0 .fails_on. has ended with this error"):
            flow.seal()
        assert other.seal() == 0, "other dataflows go on"


@pytest.mark.parametrize("call", ["insert", "seal", "wait", "changes"])
def test_a_failure_that_another_call_has_met_comes_out_of_the_next_call_for_its_dataflow(
    call: str, threads: bool
) -> None:
    with timely.connect(workers=2, threads=threads, embedded=True) as cluster:
        flow, other = cluster.install(fails_on), cluster.install(word_count)
        flow.input("words").insert(["bad"])
        flow.seal()
        other.seal()
        other.wait()
        calls: dict[str, Callable[[], object]] = {
            "insert": lambda: flow.input("words").insert(["good"]),
            "seal": flow.seal,
            "wait": flow.wait,
            "changes": flow.output("words").changes,
        }
        with pytest.raises(timely.VertexError, match="cannot bear 'bad'") as caught:
            calls[call]()
        assert isinstance(caught.value.__cause__, ValueError), "also where another worker was asked"


def test_close_does_what_is_sealed(threads: bool) -> None:
    seen: list[object] = []
    cluster = timely.connect(workers=2, threads=threads, embedded=True)
    flow = cluster.install(sees(seen))
    flow.input("x").insert([1])
    flow.seal()
    flow.input("x").insert([2])
    cluster.close()
    assert seen == [(0, 1)]


def test_close_raises_what_no_call_has_raised(threads: bool) -> None:
    cluster = timely.connect(workers=2, threads=threads, embedded=True)
    flow = cluster.install(fails_on)
    flow.input("words").insert(["bad"])
    flow.seal()
    with pytest.raises(timely.VertexError, match="cannot bear 'bad'") as caught:
        cluster.close()
    assert isinstance(caught.value.__cause__, ValueError)
    cluster.close()
    with pytest.raises(timely.MisuseError, match="this cluster is closed"):
        flow.seal()


def test_close_does_not_repeat_what_a_call_has_raised(threads: bool) -> None:
    with timely.connect(workers=2, threads=threads, embedded=True) as cluster:
        flow = cluster.install(fails_on)
        flow.input("words").insert(["bad"])
        flow.seal()
        with pytest.raises(timely.VertexError):
            flow.wait()


def test_an_exception_that_leaves_the_block_is_not_hidden_by_one_of_closing(threads: bool) -> None:
    def program() -> None:
        with timely.connect(workers=2, threads=threads, embedded=True) as cluster:
            flow = cluster.install(fails_on)
            flow.input("words").insert(["bad"])
            flow.seal()
            raise LookupError("the program's own")

    with pytest.raises(LookupError, match="the program's own") as caught:
        program()
    (note,) = caught.value.__notes__
    assert note.startswith(
        "closing the cluster there was another error, VertexError: ValueError: cannot bear"
    )


def test_a_vertex_may_close_what_runs_it() -> None:
    class Closes(timely.Vertex):
        def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
            cluster.close()

    cluster = timely.connect(embedded=True)
    flow = cluster.install(lambda flow: flow.input("x").stage("closes", Closes))
    flow.input("x").insert([1])
    flow.seal()
    flow.wait()
    with pytest.raises(timely.MisuseError, match="this cluster is closed"):
        flow.seal()


def test_an_interrupt_comes_out_as_it_is(threads: bool) -> None:
    class Interrupted(timely.Vertex):
        def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
            raise KeyboardInterrupt

    with timely.connect(workers=2, threads=threads, embedded=True) as cluster:
        flow = cluster.install(lambda flow: flow.input("x").stage("interrupted", Interrupted))
        flow.input("x").insert([1])
        with pytest.raises(KeyboardInterrupt):
            flow.wait(flow.seal())  # a seal works, too, where the machine has let it wait for long
        with pytest.raises(timely.MisuseError, match="this cluster was interrupted by KeyboardInterrupt"):
            flow.seal()


def test_an_interrupt_between_two_steps_of_a_call_leaves_nothing_to_go_on_with(
    monkeypatch: pytest.MonkeyPatch, threads: bool
) -> None:
    """Else an insertion was remembered as taken whose rows were not kept, and its repetition did nothing."""

    def interrupted(self: InputHandle, epoch: int, batches: object, word: int) -> None:
        raise KeyboardInterrupt

    with timely.connect(workers=2, threads=threads, embedded=True) as cluster:
        flow = cluster.install(word_count)
        with monkeypatch.context() as patch:
            patch.setattr(InputHandle, "_keep", interrupted)
            with pytest.raises(KeyboardInterrupt):
                flow.input("lines").insert(["one"], writer="w", sequence=0)
        with pytest.raises(timely.MisuseError, match="this cluster was interrupted by KeyboardInterrupt"):
            flow.input("lines").insert(["one"], writer="w", sequence=0)


@pytest.mark.parametrize("has_begun", [False, True])
def test_who_is_interrupted_as_his_turn_begins_holds_nobody_back(
    monkeypatch: pytest.MonkeyPatch, threads: bool, has_begun: bool
) -> None:
    """Else the next call waited for ever, and so did the end of the program; or no cluster of this process
    forgot anything any more.
    """

    def interrupted(group: together.Group) -> None:
        if has_begun:
            together.begin_turn(group)
        raise KeyboardInterrupt

    with timely.connect(workers=2, threads=threads, embedded=True) as cluster:
        flow = cluster.install(word_count)
        with monkeypatch.context() as patch:
            patch.setattr(workers, "begin_turn", interrupted)
            with pytest.raises(KeyboardInterrupt):
                flow.seal()
        assert isinstance(cluster._workers, workers.EmbeddedWorkers)
        assert not cluster._workers._lock._is_owned()
        assert cluster._workers not in together._process.at_work
        with pytest.raises(timely.MisuseError, match="this cluster was interrupted by KeyboardInterrupt"):
            flow.seal()


def test_what_is_under_way_in_a_pause_is_taken_in_so_that_something_may_be_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with timely.connect(workers=2, threads=True) as cluster:
        own = cluster._workers
        assert isinstance(own, EmbeddedWorkers) and own._threads is not None
        cluster.install(word_count)
        resting: list[object] = []

        def pauses(*_: object) -> bool:
            own._servers[1].greet()  # as one message of many that are under way
            return True

        with monkeypatch.context() as patched:
            patched.setattr(own._threads, "work", pauses)
            patched.setattr(workers, "forget_together", lambda group: resting.append(group.at_rest()))
            own._step(inf)
            assert resting == [] and own.at_rest() is None, "nothing is to be forgotten"
            patched.setattr(workers, "is_full", lambda: True)
            own._step(inf)
        assert resting == [own._workers]


def test_waiting_for_what_cannot_come_is_an_error_at_once(threads: bool) -> None:
    with timely.connect(workers=2, threads=threads, embedded=True) as cluster:
        flow = cluster.install(word_count)
        with pytest.raises(
            timely.WaitTimeoutError, match=r"is not complete on worker \d: it is not sealed yet"
        ) as late:
            flow.wait(0, timeout=30)
        assert (
            "it was not waited for: these workers work while this program asks them"
            in (late.value.__notes__[0])
        )
        with pytest.raises(timely.WaitTimeoutError):
            next(flow.output("counts").follow())
        flow.seal()
        flow.wait(0)


def test_each_call_of_a_closed_cluster_has_an_error_of_its_own(threads: bool) -> None:
    """One error for all of them had the lines of all calls, of other threads too, and kept what they held."""
    cluster = timely.connect(workers=2, threads=threads, embedded=True)
    flow = cluster.install(word_count)
    cluster.close()
    told: list[timely.MisuseError] = []
    for _ in range(3):
        with pytest.raises(timely.MisuseError, match="this cluster is closed: connect again") as caught:
            flow.seal()
        told.append(caught.value)
    assert len({id(error) for error in told}) == 3
    assert len({len(traceback.extract_tb(error.__traceback__)) for error in told}) == 1


def test_different_dataflows_are_refused_here_too(threads: bool) -> None:
    built: list[int] = []

    def differs(dataflow: timely.Dataflow) -> None:
        built.append(0)
        dataflow.input("x").stage(f"stage of worker {len(built) - 1}", lambda: CollectVertex("", ""))

    with timely.connect(workers=2, threads=threads, embedded=True) as cluster:
        with pytest.raises(timely.GraphError, match="worker 1 built stage 1 as"):
            cluster.install(differs)
        assert cluster.install(word_count).seal() == 0


def test_a_closed_cluster_and_other_processes_are_refused() -> None:
    cluster = timely.connect(embedded=True)
    with pytest.raises(timely.MisuseError, match="cannot be reached from other processes"):
        cluster.append_target()
    cluster.close()
    cluster.close()
    with pytest.raises(timely.MisuseError, match="closed"):
        cluster.install(word_count)


@pytest.mark.parametrize("workers", [0, 1_025])
def test_the_number_of_workers_has_bounds(workers: int) -> None:
    with pytest.raises(timely.MisuseError, match="1 to 1024 workers"):
        timely.connect(workers=workers, embedded=True)


def test_a_cluster_shows_where_its_workers_are_and_whether_they_can_be_asked() -> None:
    with timely.connect(workers=3, embedded=True) as cluster:
        assert repr(cluster) == "<cluster of 3 workers, embedded>"
    assert repr(cluster) == "<cluster of 3 workers, embedded, closed>"
    with timely.connect(threads=True) as alone:
        assert repr(alone) == "<cluster of 1 worker, embedded>", "in that of who asks"
    with timely.connect(workers=2, threads=True) as threads:
        assert repr(threads) == "<cluster of 2 workers, embedded, each in a thread>"
    assert repr(threads) == "<cluster of 2 workers, embedded, each in a thread, closed>"


def test_an_interrupted_cluster_shows_that() -> None:
    class InterruptsVertex(timely.Vertex):
        def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
            raise KeyboardInterrupt

    def build(flow: timely.Dataflow) -> None:
        flow.input("lines").stage("interrupts", InterruptsVertex)

    cluster = timely.connect(embedded=True)
    flow = cluster.install(build)
    flow.input("lines").insert(["a"])
    with pytest.raises(KeyboardInterrupt):
        flow.wait(flow.seal())
    assert repr(cluster) == "<cluster of 1 worker, embedded, interrupted>"
    cluster.close()
    assert repr(cluster) == "<cluster of 1 worker, embedded, closed>"
