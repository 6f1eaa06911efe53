"""What is asked of embedded workers by a call for each, and not by a request: the same promises hold."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Iterator

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import differential as dd
import timely
from differential.errors import SchemaError, UserFunctionError
from progress.errors import TimeOverflowError
from progress.times.anchor import EPOCH_MAX
from progress.times.timestamp import Timestamp
from timely.client.embedded import pending_work, workers
from timely.client.embedded.workers import EmbeddedWorkers
from timely.operators.inputs.handle import InputHandle
from timely.running import core
from timely.running.core import Worker
from timely.worker import together
from timely.worker.answers.outputs import Outputs
from timely.worker.orders import Orders
from timely.worker.server import Server

CALLS: dict[str, Callable[[timely.Flow], object]] = {
    "insert": lambda flow: flow.input("rows").insert([(1, 1)]),
    "remove": lambda flow: flow.input("rows").remove([(1, 1)]),
    "seal": lambda flow: flow.seal(),
    "wait": lambda flow: flow.wait(),
    "seal and wait": lambda flow: flow.seal(wait=True),
}
WITHIN: dict[str, tuple[type, str]] = {
    "insert": (InputHandle, "take_rows"),
    "remove": (InputHandle, "take_rows"),
    "seal": (Orders, "seal"),
    "wait": (Outputs, "complete"),
    "seal and wait": (Outputs, "complete"),
}
every_call = pytest.mark.parametrize("call", CALLS)


@pytest.fixture(params=["1", "2 in turn", "2 threads"])
def cluster(request: pytest.FixtureRequest) -> Iterator[timely.Cluster]:
    """One worker, or several."""
    count, _, way = str(request.param).partition(" ")
    with timely.connect(workers=int(count), threads=way == "threads", embedded=True) as made:
        yield made


def counts(flow: timely.Dataflow, exports: bool = False) -> None:
    """A plain input, and another one."""
    rows, more = dd.input(flow, "rows", "k: int, v: int"), dd.input(flow, "more", "k: int, v: int")
    if exports:
        rows.export("rows")
        more.export("more")
    rows.concat(more).group_by("k").agg(n=dd.count(), s=dd.sum("v")).output("counts")


def fails(flow: timely.Dataflow) -> None:
    """The same, and a vertex that bears nothing."""
    counts(flow)

    class Fails(timely.Vertex):
        def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
            raise ValueError(f"cannot bear {message}")

    flow.input("bad").stage("fails", Fails)


def read(flow: timely.Flow) -> set[tuple[int, ...]]:
    """What is counted."""
    return {tuple(row.values()) for row in flow.output("counts").snapshot().to_pylist()}


@every_call
def test_none_makes_a_request(cluster: timely.Cluster, call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    flow = cluster.install(counts)
    flow.input("rows").insert([(1, 2)])
    flow.seal()

    def handle(*_: object) -> None:
        raise AssertionError("a request")

    with monkeypatch.context() as patched:
        patched.setattr(Server, "handle", handle)
        CALLS[call](flow)


@every_call
def test_a_vertex_that_asks_its_own_cluster_is_refused(cluster: timely.Cluster, call: str) -> None:
    """It would wait for its own turn for ever."""
    with timely.connect(embedded=True) as other:
        others = other.install(counts)
        others.seal()
        asked: list[object] = []

        class Asks(timely.Vertex):
            def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
                asked.append(CALLS[call](others))
                CALLS[call](own)

        def build(flow: timely.Dataflow) -> None:
            counts(flow)
            flow.input("asks").stage("asks", Asks)

        own = cluster.install(build)
        own.input("asks").insert([1])
        with pytest.raises(timely.MisuseError, match="a vertex asks the embedded cluster that runs it"):
            own.wait(own.seal())
        assert asked == [{"insert": 1, "remove": 1, "seal": 1, "wait": 0, "seal and wait": 1}[call]], (
            "another may be asked"
        )


@every_call
@pytest.mark.parametrize("has_begun", [False, True])
def test_who_is_interrupted_as_his_turn_begins_holds_nobody_back(
    cluster: timely.Cluster, call: str, has_begun: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(group: together.Group) -> None:
        if has_begun:
            together.begin_turn(group)
        raise KeyboardInterrupt

    flow = cluster.install(counts)
    with monkeypatch.context() as patched:
        patched.setattr(workers, "begin_turn", interrupted)
        with pytest.raises(KeyboardInterrupt):
            CALLS[call](flow)
    assert isinstance(cluster._workers, EmbeddedWorkers)
    assert not cluster._workers._lock._is_owned()
    assert cluster._workers not in together._process.at_work
    for each in CALLS.values():
        with pytest.raises(timely.MisuseError, match="this cluster was interrupted by KeyboardInterrupt"):
            each(flow)


@every_call
def test_an_interrupt_within_leaves_nothing_to_go_on_with(
    cluster: timely.Cluster, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    flow = cluster.install(counts)
    with monkeypatch.context() as patched:
        patched.setattr(*WITHIN[call], interrupted)
        with pytest.raises(KeyboardInterrupt):
            CALLS[call](flow)
    assert isinstance(cluster._workers, EmbeddedWorkers) and not cluster._workers._lock._is_owned()
    with pytest.raises(timely.MisuseError, match="this cluster was interrupted by KeyboardInterrupt"):
        CALLS[call](flow)


@every_call
def test_what_fails_unexpectedly_is_told_as_that_and_others_go_on(
    cluster: timely.Cluster, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours: dict[str, Callable[..., None]] = {}
    exec(compile("def broken(*_): raise ZeroDivisionError('within')", timely.__file__, "exec"), ours)
    broken = ours["broken"]
    flow = cluster.install(counts)
    named = {
        "insert": "deliver",
        "remove": "deliver",
        "seal": "decide",
        "wait": "progress",
        "seal and wait": "progress",
    }.get(call, call)
    with monkeypatch.context() as patched:
        patched.setattr(*WITHIN[call], broken)
        with pytest.raises(
            timely.InternalError, match=f"^{named} failed unexpectedly(.|\n)*within"
        ) as caught:
            CALLS[call](flow)
        assert isinstance(caught.value.__cause__, ZeroDivisionError)
    flow.input("rows").insert([(1, 2)])
    flow.wait(flow.seal())
    assert read(flow) == {(1, 1, 2)}


@every_call
def test_each_call_of_a_closed_cluster_is_refused(cluster: timely.Cluster, call: str) -> None:
    flow = cluster.install(counts)
    cluster.close()
    for _ in range(2):
        with pytest.raises(timely.MisuseError, match="this cluster is closed: connect again"):
            CALLS[call](flow)


@every_call
def test_what_has_ended_a_dataflow_is_told_with_its_cause_and_from_then_on(
    cluster: timely.Cluster, call: str
) -> None:
    flow, other = cluster.install(fails), cluster.install(counts)
    flow.input("bad").insert(["this"])
    flow.seal()
    other.wait(other.seal())
    told = []
    for _ in range(2):
        with pytest.raises(timely.VertexError, match="ValueError: cannot bear") as caught:
            CALLS[call](flow)
        told.append(caught.value)
    assert all(isinstance(error.__cause__, ValueError) for error in told)
    assert told[0] is not told[1], "each has an error of its own"
    assert flow._end is not None, "it is known here, and is not asked for again"
    other.input("rows").insert([(1, 2)])
    other.wait(other.seal())
    assert read(other) == {(1, 1, 2)}


@every_call
@pytest.mark.parametrize("key", range(4))
def test_on_whichever_worker_it_has_ended_the_cause_is_told(
    cluster: timely.Cluster, call: str, key: int
) -> None:
    """Keys have different workers, and one of them decides for all."""

    def bears_nothing(key: object, rows: list[object]) -> list[object]:
        raise ValueError(f"cannot bear {key}: {rows}")

    def build(flow: timely.Dataflow) -> None:
        rows = dd.input(flow, "rows", "k: int, v: int")
        rows.group_by("k").reduce(bears_nothing, "n: int").output("counts", strict=True)

    flow, other = cluster.install(build), cluster.install(counts)
    flow.input("rows").insert([(key, 1)])
    flow.seal()
    for _ in range(20):  # a call about another dataflow does a step of this one, or a few
        other.wait(other.seal())
    with pytest.raises(UserFunctionError, match=f"failed on .*{key}.*:\n  ValueError: cannot bear"):
        CALLS[call](flow)


@every_call
def test_uninstalled_by_another_it_is_told(cluster: timely.Cluster, call: str) -> None:
    flow = cluster.install(counts)
    cluster.flow(flow.index).uninstall()
    for _ in range(2):
        with pytest.raises(timely.UninstalledError, match="was uninstalled by a client"):
            CALLS[call](flow)


def test_replaced_the_new_version_takes_the_rows_and_is_sealed_and_waited_for(
    cluster: timely.Cluster,
) -> None:
    old = cluster.install(counts, exports=True)
    old.input("rows").insert([(1, 2)])
    old.wait(old.seal())
    new = cluster.replace(old, counts, exports=True)
    old.input("rows").insert([(1, 5)])
    old.input("rows").remove([(1, 2)])
    assert old.wait(old.seal()) == 1
    assert new.refresh() == 2 and read(new) == read(old) == {(1, 1, 5)}
    again = cluster.install(counts)  # of another dataflow nothing is different
    again.input("rows").insert([(7, 7)])
    again.wait(again.seal())
    assert read(again) == {(7, 1, 7)}
    new.uninstall()
    for call in CALLS.values():
        with pytest.raises(timely.UninstalledError):
            call(old)


def test_replaced_an_input_that_is_gone_is_told(cluster: timely.Cluster) -> None:
    def less(flow: timely.Dataflow) -> None:
        rows = dd.input(flow, "rows", "k: int, v: int")
        rows.export("rows")
        rows.group_by("k").agg(n=dd.count(), s=dd.sum("v")).output("counts")

    old = cluster.install(counts, exports=True)
    old.wait(old.seal())
    cluster.replace(old, less)
    with pytest.raises(timely.ReplacedError, match="the input 'more' is gone"):
        old.input("more").insert([(1, 1)])
    old.input("rows").insert([(1, 3)])
    old.wait(old.seal())
    assert read(old) == {(1, 1, 3)}


def test_a_seal_that_is_refused_seals_nothing_and_leaves_no_work(cluster: timely.Cluster) -> None:
    flow = cluster.install(counts)
    flow.input("rows").insert([(1, 2)])
    own = cluster._workers
    assert isinstance(own, EmbeddedWorkers)
    flow.epoch = EPOCH_MAX
    with pytest.raises(TimeOverflowError, match="does not fit"):
        flow.seal()
    assert not own._pending and own._servers[0]._worker.instance(flow.index).input("rows").epoch == 0
    flow.epoch = 0
    assert flow.seal() == 0 and own._pending.rows == 1
    flow.wait()
    assert read(flow) == {(1, 1, 2)}
    for name in flow.inputs:
        flow.input(name).close()
    flow.wait()
    for _ in range(2):
        with pytest.raises(timely.InputClosedError, match="are closed: there is no epoch 2 to seal"):
            flow.seal()
    with pytest.raises(timely.InputClosedError, match="'rows' is closed: nothing can be added"):
        flow.input("rows").insert([(1, 2)])
    assert not own._pending


def test_rows_that_are_refused_leave_a_number_that_is_no_gap_for_others(cluster: timely.Cluster) -> None:
    flow = cluster.install(counts)
    cluster.flow(flow.index).input("more").close()
    with pytest.raises(timely.InputClosedError, match="'more' is closed"):
        flow.input("more").insert([(1, 1)])
    own = cluster._workers
    assert isinstance(own, EmbeddedWorkers) and own._pending._unsealed == {}
    flow.input("rows").insert([(2, 2)])
    flow.wait(flow.seal())
    assert read(flow) == {(2, 1, 2)}


def test_an_insertion_with_a_number_that_is_known_counts_once(cluster: timely.Cluster) -> None:
    flow = cluster.install(counts)
    own = cluster._workers
    assert isinstance(own, EmbeddedWorkers)
    assert own.insert_rows(flow, "rows", "w", 0, 1, [(1, 2)], "insert", False) == 0
    assert flow.seal() == 0
    flow.epoch = 0
    assert own.insert_rows(flow, "rows", "w", 0, 1, [(1, 2)], "insert", False) == 1, "that is open now"
    assert own.insert_rows(flow, "rows", "w", 1, 1, [(1, 3)], "insert", False) == 1
    flow.refresh()
    flow.wait(flow.seal())
    assert read(flow) == {(1, 2, 5)}


def test_what_another_client_has_sealed_is_heard_of(cluster: timely.Cluster) -> None:
    mine = cluster.install(counts)
    theirs = cluster.flow(mine.index)
    for _ in range(3):
        theirs.seal()
    assert mine.seal() == 0 and mine.epoch == 3, "nothing is completed by it"
    assert mine.input("rows").insert([(1, 1)]) == 3 == mine.epoch
    assert mine.seal() == 3 and mine.wait() == 3
    assert read(theirs) == {(1, 1, 1)}
    theirs.refresh()
    theirs.seal()
    assert mine.input("rows").insert([(1, 2)]) == 5 == mine.epoch, "who only inserts hears of it, too"


def test_more_than_may_wait_is_worked_off_by_seal(
    cluster: timely.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pending_work, "PENDING_ROWS_MAX", 4)
    monkeypatch.setattr(pending_work, "PENDING_SECONDS_MAX", 1e9)
    flow = cluster.install(counts)
    own = cluster._workers
    assert isinstance(own, EmbeddedWorkers)
    waiting = []
    for _ in range(5):
        flow.input("rows").insert([(1, 1), (2, 2)])
        flow.seal()
        waiting.append(own._pending.rows)
    assert waiting == [2, 0, 2, 0, 2]
    assert read(flow) == {(1, 5, 5), (2, 5, 10)}


def test_more_than_may_wait_tells_who_seals_what_it_has_ended(
    cluster: timely.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pending_work, "PENDING_EPOCHS_MAX", 1)
    flow = cluster.install(fails)
    flow.input("bad").insert(["this"])
    with pytest.raises(timely.VertexError, match="cannot bear"):
        flow.seal()


def test_an_epoch_that_is_not_sealed_is_not_waited_for_where_nobody_could(cluster: timely.Cluster) -> None:
    flow = cluster.install(counts)
    with pytest.raises(timely.WaitTimeoutError, match="it is not sealed yet") as caught:
        flow.wait(3)
    assert any("it was not waited for" in note for note in caught.value.__notes__)
    with pytest.raises(timely.MisuseError, match="timeout is not a number"):
        flow.wait(0, timeout=float("nan"))


def test_an_error_of_waiting_is_told_without_what_is_beneath(cluster: timely.Cluster) -> None:
    flow = cluster.install(counts)
    cluster.flow(flow.index).uninstall()
    with pytest.raises(timely.UninstalledError) as caught:
        flow.wait()
    assert [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)][1:] == []


def test_a_change_is_one_step_of_a_lone_worker_and_an_epoch_that_is_done_is_one_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with timely.connect(embedded=True) as cluster:
        flow = cluster.install(counts)
        flow.wait(flow.seal())
        steps: list[bool] = []
        step = Worker.step

        def noted(worker: Worker) -> bool:
            steps.append(step(worker))
            return steps[-1]

        monkeypatch.setattr(Worker, "step", noted)
        flow.input("rows").insert([(1, 2)])
        epoch = flow.seal()
        assert steps == []
        flow.wait(epoch)
        assert steps == [True]
        flow.wait(epoch)
        assert steps == [True, False]


def test_work_of_many_steps_is_done_before_a_wait_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "ALONE_SECONDS_MAX", 0.0)
    monkeypatch.setattr(core, "ACTIVATIONS_PER_STEP_MAX", 1)
    with timely.connect(embedded=True) as cluster:
        flows = [cluster.install(counts) for _ in range(2)]
        for epoch in range(3):
            for flow in flows:
                flow.input("rows").insert([(epoch, 1)])
                flow.seal()
            flows[0].wait()
            own = cluster._workers
            assert isinstance(own, EmbeddedWorkers) and own._workers[0].instance(flows[0].index).is_at_rest()
        assert all(read(flow) == {(0, 1, 1), (1, 1, 1), (2, 1, 1)} for flow in flows)


def test_rows_of_several_threads_are_whole_while_another_seals(cluster: timely.Cluster) -> None:
    flow = cluster.install(counts)
    is_over = threading.Event()

    def inserts(key: int) -> None:
        for value in range(200):
            flow.input("rows").insert([(key, value), (key, -value)])

    def seals() -> None:
        while not is_over.is_set():
            flow.wait(flow.seal())

    sealing = threading.Thread(target=seals)
    inserting = [threading.Thread(target=inserts, args=(key,)) for key in range(3)]
    for thread in [sealing, *inserting]:
        thread.start()
    for thread in inserting:
        thread.join()
    is_over.set()
    sealing.join()
    flow.seal()
    assert read(flow) == {(key, 400, 0) for key in range(3)}
    for change in flow.output("counts").changes().to_pylist():
        assert change["n"] % 2 == 0 and change["s"] == 0, "no insertion is in two epochs"


def test_keys_are_said_and_deleted_without_a_request(cluster: timely.Cluster) -> None:
    def values(flow: timely.Dataflow) -> None:
        dd.input(flow, "values", "k: int, v: int", key="k", mode="upsert").output("now")

    flow = cluster.install(values)
    flow.input("values").upsert([(1, 2), (2, 3)])
    flow.input("values").upsert([(1, 4)])
    flow.input("values").delete([2])
    flow.wait(flow.seal())
    assert flow.output("now").snapshot().to_pylist() == [{"k": 1, "v": 4}]
    for make in (pa.table, pd.DataFrame, pl.DataFrame):
        with pytest.raises(SchemaError, match="takes the columns k; missing 'k'"):
            flow.input("values").delete(make({"v": [1]}))
        flow.input("values").upsert([(1, 4), (3, 5)])
        flow.input("values").delete(make({"v": [9], "k": [1]}))
        flow.seal()
        assert flow.output("now").snapshot().to_pylist() == [{"k": 3, "v": 5}]
    for name in ("insert", "remove"):
        with pytest.raises(timely.MisuseError, match="keeps the last value by k: write upsert"):
            getattr(flow.input("values"), name)([(1, 1)])
    other = cluster.install(counts)
    for name in ("upsert", "delete"):
        with pytest.raises(timely.MisuseError, match="holds rows: write insert"):
            getattr(other.input("rows"), name)([(1, 1)])
