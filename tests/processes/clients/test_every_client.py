"""Every error leaves the state whole or ends it, for every client: embedded on 1, 2 and 3 workers, and on two
processes.

refused_*   found before anything has changed: nothing has, and it may be repeated
ended_*     a dataflow that fails has failed for all, and others go on
whole_*     insertions enter one epoch, on all workers, whoever seals meanwhile
shared_*    what several consumers, or several clients, read
closed_*    what is given back when nothing can come any more
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import numpy as np
import pyarrow as pa
import pytest

import timely
from timely.client.remote.workers import RemoteWorkers
from timely.limits import SPREAD_ROWS_MIN
from timely.wire.requests import WHEN_NAMED, Deliver

ROWS = 20_000
assert ROWS > SPREAD_ROWS_MIN, "that insertions come in parts is the point"


@pytest.fixture(scope="module")
def processes() -> Iterator[timely.Cluster]:
    with timely.connect(workers=2) as cluster:
        yield cluster


@pytest.fixture(params=["embedded 1", "embedded 2", "embedded 3", "processes"])
def cluster(request: pytest.FixtureRequest) -> Iterator[timely.Cluster]:
    kind, _, count = str(request.param).partition(" ")
    if kind == "processes":
        yield request.getfixturevalue("processes")
        return
    with timely.connect(workers=int(count), embedded=True) as cluster:
        yield cluster


@contextmanager
def another_client(cluster: timely.Cluster) -> Iterator[timely.Cluster]:
    """One with connections of its own, where there are connections."""
    if not cluster.addresses:
        yield cluster
        return
    with timely.connect(cluster.addresses[-1]) as other:
        yield other


def is_embedded(cluster: timely.Cluster) -> bool:
    return not cluster.addresses


def seal_and_wait(flow: timely.Flow) -> None:
    flow.seal()
    flow.wait(timeout=60)


def rows(insertion: int, count: int = ROWS) -> pa.Table:
    return pa.table({"insertion": np.full(count, insertion), "n": np.arange(count)})


def pairs(table: pa.Table, *names: str) -> Counter[tuple[object, ...]]:
    found: Counter[tuple[object, ...]] = Counter()
    for row in table.to_pylist():
        found[tuple(row[name] for name in names)] += row.get("diff", 1)
    return found


BAD: dict[str, Callable[[timely.Flow], object]] = {
    "a value of another type": lambda flow: flow.input("rows").insert([(1, 2), (3, "four")]),
    "a value that fits no word": lambda flow: flow.input("rows").insert([(1, 2**63)]),
    "an unknown column": lambda flow: flow.input("rows").insert(pa.table({"id": [1], "z": [2]})),
    "a column too few": lambda flow: flow.input("rows").insert(pa.table({"id": [1]})),
    "a null": lambda flow: flow.input("rows").insert([(1, None)]),
    "a bad row behind many": lambda flow: flow.input("rows").insert([(1, 2)] * ROWS + [(3, "four")]),
    "a bad row of an append": lambda flow: flow.input("rows").append(pa.table({"id": [1], "diff": [1]})),
    "differences that are none": lambda flow: flow.input("rows").append(
        pa.table({"id": [1], "x": [1], "diff": ["many"]})
    ),
    "differences in parts that are none": lambda flow: flow.input("rows").append(
        pa.table({"id": [1] * ROWS, "x": [1] * ROWS, "diff": [None] * ROWS}).cast(
            pa.schema([("id", pa.int64()), ("x", pa.int64()), ("diff", pa.int64())])
        )
    ),
    "an input that does not exist": lambda flow: flow.input("columns"),
    "an output that does not exist": lambda flow: flow.output("columns"),
    "an epoch that fits no word": lambda flow: flow.input("rows").append(
        pa.table({"id": [1], "x": [1], "diff": [1]}), epoch=2**62, writer="w", sequence=0
    ),
    "an epoch before all": lambda flow: flow.input("rows").append(
        pa.table({"id": [1], "x": [1], "diff": [1]}), epoch=-1, writer="w", sequence=0
    ),
    "an epoch of one of the rows that fits no word": lambda flow: flow.input("rows").append(
        pa.table({"id": [1, 2], "x": [1, 1], "day": [3, 2**62], "diff": [1, 1]}), epoch="day"
    ),
    "a bad row in one of several epochs": lambda flow: flow.input("rows").append(
        pa.table({"id": [1, 2], "x": [1, None], "day": [4, 3], "diff": [1, 1]}), epoch="day"
    ),
    "a column of epochs that there is not": lambda flow: flow.input("rows").append(
        pa.table({"id": [1], "x": [1], "diff": [1]}), epoch="day"
    ),
    "half a name": lambda flow: flow.input("rows").insert([(1, 2)], writer="w"),
    "what has not arrived": lambda flow: flow.seal([("rows", "w", 9)]),
    "what has not arrived at an input that is not there": lambda flow: flow.seal([("none", "w", 9)]),
}


def test_refused_calls_change_nothing_and_may_be_repeated(cluster: timely.Cluster) -> None:
    flow = cluster.install("failing_flows:divides")
    for turn in range(2):
        flow.input("rows").insert([(turn, 10)], writer="good", sequence=turn)
        for what, call in BAD.items():
            for _ in range(2):
                try:
                    call(flow)
                except timely.MisuseError:
                    continue
                pytest.fail(f"{what} was taken")
        assert flow.epoch == turn
        seal_and_wait(flow)
        assert pairs(flow.output("quotients").changes(), "id", "y", "epoch") == {(turn, 10, turn): 1}
    for worker in cluster.stats():
        (dataflow,) = [one for one in worker["dataflows"].values() if one["spec"].endswith("divides")]
        assert [one["rows_waiting"] for one in dataflow["inputs"]] == [0]


@pytest.mark.parametrize(
    ("spec", "arguments", "message"),
    [
        ("failing_flows:not_marked", {}, "not_marked is not marked as a builder"),
        ("sys:exit", {}, "exit is not marked as a builder"),
        ("os:system", {"command": "true"}, "system is not marked as a builder"),
        ("http.server:test", {}, "test is not marked as a builder"),
        ("failing_flows:raises", {"while_building": "exit"}, "SystemExit: 3"),
        ("failing_flows:raises", {"while_building": "odd"}, "Odd: none of the usual"),
        ("failing_flows:raises", {"while_building": "it"}, "ValueError: cannot bear 'it'"),
        ("failing_flows:raises", {"in_the_constructor": "exit"}, "SystemExit: 3"),
        ("failing_flows:raises", {"in_the_constructor": "odd"}, "Odd: none of the usual"),
        ("failing_flows:raises", {"no_such": "argument"}, "unexpected keyword argument 'no_such'"),
    ],
)
def test_refused_installs_say_why_and_the_next_one_works(
    cluster: timely.Cluster, spec: str, arguments: dict[str, object], message: str
) -> None:
    with pytest.raises(timely.MisuseError, match=message):
        cluster.install(spec, **arguments)
    flow = cluster.install("failing_flows:raises")
    flow.input("records").insert([7])
    flow.seal()
    assert flow.output("records").changes() == [(0, 7)]
    assert flow.index in cluster.flows() and flow.index - 1 not in cluster.flows()


@pytest.mark.parametrize("name", ["exit", "odd"])
def test_refused_modules_that_end_the_program_when_imported(cluster: timely.Cluster, name: str) -> None:
    with pytest.raises(
        timely.VertexError, match=f"importing 'failing_imports.{name}' failed(.|\n)*raise_what"
    ):
        cluster.install(f"failing_imports.{name}:build")
    assert cluster.install("failing_flows:raises").seal() == 0


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            "failing_flows:fails_from_the_second_on",
            "worker 1 could not build it: .*(.|\n)*the second may not",
        ),
        ("failing_flows:differs_from_the_second_on", "worker 1 built stage . as"),
    ],
)
def test_refused_by_one_worker_is_refused_by_all(
    cluster: timely.Cluster, spec: str, message: str, tmp_path: Path
) -> None:
    if cluster.workers == 1:
        assert cluster.install(spec, path=str(tmp_path / "first")).seal() == 0
        return
    if not is_embedded(cluster):
        # Whichever came second; worker 0, which speaks for all, does not name itself where it failed.
        message = message.replace("worker 1 could not build it: ", "")
        message = message.replace("worker 1", "worker [01]")
    with pytest.raises(timely.MisuseError, match=message):
        cluster.install(spec, path=str(tmp_path / "first"))
    with another_client(cluster) as other:
        assert other.install("failing_flows:raises").seal() == 0


def test_ended_by_a_row_a_dataflow_has_ended_for_all_with_that_error_and_others_go_on(
    cluster: timely.Cluster,
) -> None:
    """The row meets an integer division directly behind the input: that is while its epoch is sealed."""
    flow, other = (cluster.install("failing_flows:divides", strict=True) for _ in range(2))
    with another_client(cluster) as second:
        theirs = second.flow(flow.index)
        for mine in (flow, other):
            mine.input("rows").insert([(1, 10), (2, 5)])
            seal_and_wait(mine)
        before = pairs(theirs.output("quotients").changes(), "id", "y", "epoch")
        assert before == {(1, 10, 0): 1, (2, 20, 0): 1}
        for mine in (flow, other):
            mine.input("rows").insert([(n, n) for n in range(3, 60)])
        flow.input("rows").insert([(60, 0)])
        with pytest.raises(timely.TimelyError):
            seal_and_wait(flow)
        errors = []
        for client in (flow, theirs, flow):
            calls: list[Callable[[], object]] = [
                client.seal,
                client.refresh,
                lambda client=client: client.wait(0, 1.0),
                lambda client=client: client.input("rows").insert([(1, 1)]),
                lambda client=client: client.input("rows").insert([(1, 1)] * ROWS),
                lambda client=client: client.input("rows").close(),
                lambda client=client: client.output("quotients").changes(0, 1, timeout=1.0),
                client.output("counts").changes_nowait,
                lambda client=client: client.output("counts").snapshot(timeout=1.0),
                lambda client=client: next(client.output("counts").follow(timeout=1.0)),
                client.output("counts").complete_before,
                client.output("counts").forget,
                client.output("counts").leave,
            ]
            for call in calls:
                with pytest.raises(timely.TimelyError) as caught:
                    call()
                errors.append(caught.value)
        assert {type(error).__name__ for error in errors} == {"RowError"}
        assert {str(error).splitlines()[0] for error in errors} == {str(errors[0]).splitlines()[0]}
        for error in errors:
            assert f"dataflow {flow.index} (" in str(error) and "has ended with this error" in str(error)
        assert flow.index not in cluster.flows() and other.index in second.flows()
        assert all(flow.index not in worker["dataflows"] for worker in cluster.stats()), "on every worker"
        seal_and_wait(other)
        assert pairs(other.output("counts").snapshot(), "id", "n") == {(n, 1): 1 for n in range(1, 60)}


def test_without_an_answer_an_output_is_the_same_to_all_and_nothing_else_is_different(
    cluster: timely.Cluster,
) -> None:
    flow = cluster.install("failing_flows:divides")
    with another_client(cluster) as second:
        theirs = second.flow(flow.index)
        flow.input("rows").insert([(n, n) for n in range(1, 40)])
        seal_and_wait(flow)
        assert pairs(theirs.output("quotients").changes(), "id") == {(n,): 1 for n in range(1, 40)}
        flow.input("rows").insert([(60, 0), (61, 0), *((n, n) for n in range(40, 60))])
        seal_and_wait(flow)
        errors = []
        for client in (flow, theirs):
            output = client.output("quotients")
            client.input("rows").insert([])
            assert client.refresh() == 2 and client.wait(1) == 1
            calls: list[Callable[[], object]] = [
                lambda output=output: output.changes(0, 2),
                output.changes_nowait,
                output.snapshot,
                output.changes_nowait,
            ]
            for call in calls:
                with pytest.raises(timely.TimelyError) as caught:
                    call()
                errors.append(caught.value)
            epoch, error = next(output.follow(start=1))
            assert epoch == 1 and isinstance(error, timely.TimelyError)
            errors.append(error)
            assert pairs(client.output("counts").snapshot(), "id", "n") == {(n, 1): 1 for n in range(1, 62)}
            assert pairs(output.changes(0, 1), "id") == {(n,): 1 for n in range(1, 40)}
        assert {type(error).__name__ for error in errors} == {"RowError"}
        (said,) = {str(error).splitlines()[0] for error in errors}
        assert "'quotients' has no answer at epoch 1: 100 // col.x (" in said and "(1 more row failed" in said
        assert "failing_flows.py:" in said
        flow.input("rows").remove([(60, 0), (61, 0)])
        seal_and_wait(flow)
        for client in (flow, theirs):
            assert pairs(client.output("quotients").changes(1), "id", "epoch") == {
                (n, 2): 1 for n in range(40, 60)
            }
            assert pairs(client.output("quotients").snapshot(), "id") == {(n,): 1 for n in range(1, 60)}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("exit", "SystemExit: 3"),
        ("odd", "Odd: none of the usual"),
        ("it", "ValueError: cannot bear 'it'"),
        ("lost", "PeerError: another cluster is gone"),
    ],
)
def test_ended_by_whatever_a_vertex_raises(cluster: timely.Cluster, name: str, message: str) -> None:
    flow, other = (cluster.install("failing_flows:raises") for _ in range(2))
    flow.input("records").insert([1, name])
    for _ in range(3):
        with pytest.raises(timely.VertexError, match=message) as caught:
            seal_and_wait(flow)
        assert "while 'raises' (stage 1, worker " in str(caught.value)
        assert "failing_flows.py" in str(caught.value) and "raise_what" in str(caught.value)
    other.input("records").insert([1])
    seal_and_wait(other)
    assert other.output("records").changes() == [(0, 1)]


def test_ended_by_an_interrupt_of_the_users_own(processes: timely.Cluster) -> None:
    """Worker processes ignore the keyboard: this one is raised by the vertex, or by the builder."""
    with pytest.raises(timely.VertexError, match="KeyboardInterrupt"):
        processes.install("failing_flows:raises", while_building="interrupt")
    flow, other = (processes.install("failing_flows:raises") for _ in range(2))
    flow.input("records").insert(["interrupt"])
    with pytest.raises(timely.VertexError, match="KeyboardInterrupt"):
        seal_and_wait(flow)
    other.input("records").insert([1])
    seal_and_wait(other)
    assert other.output("records").changes() == [(0, 1)]


def epochs_by_insertion(flow: timely.Flow) -> dict[int, dict[int, int]]:
    """insertion → epoch → rows."""
    table = flow.output("rows").changes(0)
    assert set(table.column("diff").unique().to_pylist()) <= {1}, "no row is doubled"
    found: dict[int, dict[int, int]] = {}
    summed = table.group_by(["insertion", "epoch"]).aggregate([("n", "count_distinct")])
    for row in summed.to_pylist():
        found.setdefault(row["insertion"], {})[row["epoch"]] = row["n_count_distinct"]
    return found


def test_whole_insertions_of_two_while_a_third_seals_as_fast_as_it_can(cluster: timely.Cluster) -> None:
    """Each is in exactly one epoch, the one that its caller was told; a repetition counts once."""
    flow = cluster.install("failing_flows:passes")
    entered: dict[int, int] = {}
    each = 4

    def insert(client: timely.Cluster, first: int) -> Iterator[None]:
        theirs = client.flow(flow.index)
        for number in range(each):
            # Parts by all workers, a few rows by one, in turn.
            table = rows(first + number, ROWS if number % 2 == 0 else 10)
            for _ in range(2):
                entered.setdefault(
                    first + number,
                    theirs.input("rows").insert(table, writer=f"w{first}", sequence=number),
                )
                yield

    def seal(client: timely.Cluster, is_over: Callable[[], bool]) -> Iterator[None]:
        theirs = client.flow(flow.index)
        while not is_over():
            theirs.seal()
            yield

    if is_embedded(cluster):
        inserting = [insert(cluster, 0), insert(cluster, 100)]
        sealing = seal(cluster, lambda: False)
        for _ in range(2 * each):
            for one in (*inserting, sealing):
                next(one, None)
    else:
        _in_threads(cluster, [lambda c: insert(c, 0), lambda c: insert(c, 100)], seal)
    flow.refresh()
    flow.seal()
    for first in (0, 100):  # all epochs are sealed by now
        for number in range(each):
            table = rows(first + number, ROWS if number % 2 == 0 else 10)
            flow.input("rows").insert(table, writer=f"w{first}", sequence=number)
    seal_and_wait(flow)
    assert epochs_by_insertion(flow) == {
        number: {epoch: ROWS if number % 2 == 0 else 10} for number, epoch in entered.items()
    }
    assert len(entered) == 2 * each


def _in_threads(
    cluster: timely.Cluster,
    inserting: list[Callable[[timely.Cluster], Iterator[None]]],
    seal: Callable[[timely.Cluster, Callable[[], bool]], Iterator[None]],
) -> None:
    failures: list[BaseException] = []

    def run(make: Callable[[timely.Cluster], Iterator[None]]) -> None:
        try:
            with another_client(cluster) as client:
                for _ in make(client):
                    pass
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(make,)) for make in inserting]
    sealer = threading.Thread(
        target=run, args=(lambda c: seal(c, lambda: not any(one.is_alive() for one in threads)),)
    )
    for one in (*threads, sealer):
        one.start()
    for one in (*threads, sealer):
        one.join(90)
    assert not failures and not sealer.is_alive()


def test_whole_or_not_at_all_is_what_a_client_that_was_killed_leaves(cluster: timely.Cluster) -> None:
    """It has staged all parts, or some, and never came to say that they may enter."""
    flow = cluster.install("failing_flows:passes")
    addresses = cluster.addresses
    workers = RemoteWorkers(addresses) if addresses else cluster._workers
    table = rows(1, 100)
    for sequence, reached in ((0, cluster.workers), (1, 1)):
        stages = [
            (w, Deliver(flow.index, "rows", "dead", sequence, WHEN_NAMED, 0, 1, part=part), table)
            for w in range(reached)
            for part in (0, 9)  # more parts than it will have when its work is taken up
        ]
        workers.ask(stages)
    if addresses:
        workers.close()
    flow.input("rows").insert([(7, 7)])
    seal_and_wait(flow)
    flow.seal()
    assert epochs_by_insertion(flow) == {7: {0: 1}}
    # Another process of the same name takes its work up.
    again = rows(1, ROWS)
    flow.input("rows").insert(again, writer="dead", sequence=0)
    seal_and_wait(flow)
    assert epochs_by_insertion(flow) == {7: {0: 1}, 1: {2: ROWS}}


def test_shared_records_are_each_consumers_own(cluster: timely.Cluster) -> None:
    flow = cluster.install("failing_flows:clears_and_keeps")
    for epoch in range(2):
        flow.input("records").insert([1, 2, 3])
        flow.seal()
        assert sum(n for _, n in flow.output("cleared").changes()) == 3
        assert sorted(n for _, n in flow.output("kept").changes()) == [1, 2, 3], epoch
        assert sum(n for _, n in flow.output("cleared again").changes()) == 3


def test_shared_outputs_early_late_and_forgotten(cluster: timely.Cluster) -> None:
    flow = cluster.install("failing_flows:passes")
    with another_client(cluster) as second:
        early = second.flow(flow.index)
        assert early.output("rows").changes_nowait().num_rows == 0
        for epoch in range(3):
            flow.input("rows").insert([(epoch, 0)])
            flow.input("records").insert([epoch])
            seal_and_wait(flow)
        assert pairs(early.output("rows").changes_nowait(), "insertion", "epoch") == {
            (epoch, epoch): 1 for epoch in range(3)
        }
        late = second.flow(flow.index)
        assert pairs(late.output("rows").changes(), "epoch") == {(epoch,): 1 for epoch in range(3)}
        for name in ("rows", "records"):
            flow.output(name).changes()
            flow.output(name).forget()
        for output in (early.output("records"), second.flow(flow.index).output("records")):
            with pytest.raises(timely.ForgottenError, match="before 3 are no longer kept"):
                output.changes(0)
        flow.input("rows").insert([(9, 9)])
        seal_and_wait(flow)
        assert pairs(early.output("rows").changes(), "insertion", "epoch") == {(9, 3): 1}
        with pytest.raises(timely.ForgottenError, match="before 3 are no longer kept"):
            second.flow(flow.index).output("records").changes_nowait()


def test_closed_inputs_let_traces_go_and_end_who_follows(cluster: timely.Cluster) -> None:
    flow = cluster.install("failing_flows:forgets_when_closed")
    tail = flow.output("both").follow(timeout=30)
    flow.input("left").insert([(k, 1) for k in range(50)])
    flow.input("right").insert([(k, 2) for k in range(50)])
    flow.seal()
    epoch, table = next(tail)
    assert (epoch, table.num_rows) == (0, 50)
    assert kept(cluster, flow) == 100
    flow.input("left").close()
    flow.input("right").insert([(1, 3)])
    flow.seal()
    epoch, table = next(tail)
    assert (epoch, table.num_rows) == (1, 1)
    assert comes_true(lambda: kept(cluster, flow) == 50), "nobody will ask for the right any more"
    flow.input("right").close()
    assert [table.num_rows for _, table in tail] in ([], [0])
    assert comes_true(lambda: kept(cluster, flow) == 0)
    with pytest.raises(timely.InputClosedError):
        flow.input("right").insert([(1, 1)])
        flow.refresh()
    with pytest.raises(timely.InputClosedError):
        flow.seal()
    assert flow.output("both").snapshot().num_rows == 51


def kept(cluster: timely.Cluster, flow: timely.Flow) -> int:
    """Rows in the traces of all stages on all workers."""
    return sum(
        stage.get("trace_rows", 0)
        for worker in cluster.stats()
        for stage in worker["dataflows"][flow.index]["stages"]  # type: ignore[index]  # plain values
    )


def comes_true(condition: Callable[[], bool], seconds: float = 20.0) -> bool:
    until = time.monotonic() + seconds
    while not condition() and time.monotonic() < until:
        time.sleep(0.02)
    return condition()


def test_uninstalled_a_dataflow_is_gone_for_all_clients_and_others_go_on(cluster: timely.Cluster) -> None:
    flow, stays = cluster.install("dataflows:word_count"), cluster.install("dataflows:word_count")
    for each in (flow, stays):
        each.input("lines").insert(["a b a"])
        each.seal()
    with another_client(cluster) as other:
        theirs = other.flow(flow.index)
        seal_and_wait(theirs)
        flow.uninstall()
        for asked in (flow, theirs):
            with pytest.raises(timely.UninstalledError, match=rf"dataflow {flow.index} .*was uninstalled"):
                asked.refresh()
            with pytest.raises(timely.UninstalledError):
                asked.input("lines").insert(["c"])
        assert flow.index not in other.flows() and stays.index in other.flows()
    seal_and_wait(stays)
    assert stays.output("counts").changes()
    with pytest.raises(timely.UninstalledError):
        flow.uninstall()
    assert cluster.install("dataflows:word_count").index > stays.index, "an index is never given again"


def test_uninstalled_while_somebody_waits_he_is_told(processes: timely.Cluster) -> None:
    flow = processes.install("dataflows:word_count")
    with another_client(processes) as other, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(other.flow(flow.index).wait, 5)
        assert not waiting.done()
        flow.uninstall()
        with pytest.raises(timely.UninstalledError):
            waiting.result(30)


def test_uninstalled_again_and_again_leaves_no_memory_behind(cluster: timely.Cluster) -> None:
    held = []
    for _ in range(6):
        flow = cluster.install("collection_flows:mentions")
        flow.input("said").insert([(str(n), str(n % 7)) for n in range(2_000)])
        seal_and_wait(flow)
        flow.uninstall()
        assert flow.index not in cluster.flows()
        held.append(sum(len(cast("dict[int, object]", worker["dataflows"])) for worker in cluster.stats()))
    assert held[-1] <= held[0]
