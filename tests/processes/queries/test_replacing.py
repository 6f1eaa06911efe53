"""A new version takes the place of a running dataflow: embedded on 1 to 3 workers, and on 2 processes.

goes_on_*    clients append and read as if nothing had been, and what they read adds up
refused_*    what cannot be replaced goes on as it was
fails_*      so does what a failing version was to replace
gone_*       the old version, and what it kept
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from exporting_flows import EDGES, importer, owner, sums

import differential as dd
import timely
from differential import col


def insert(flow: timely.Flow, *edges: tuple[int, int]) -> None:
    flow.input("edges").insert(list(edges))


def outcome(flow: timely.Flow) -> Counter[tuple[object, ...]]:
    flow.wait(timeout=60)
    return Counter(tuple(row.values()) for row in flow.output("out").snapshot().to_pylist())


def running(cluster: timely.Cluster) -> list[set[int]]:
    """The numbers of the dataflows that run on each worker."""
    return [set(worker["dataflows"]) for worker in cluster.stats()]  # type: ignore[call-overload]


def plainly(edges: list[tuple[int, int]], query: str) -> Counter[tuple[object, ...]]:
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(owner, query=query)
        insert(flow, *edges)
        flow.seal()
        return outcome(flow)


@pytest.mark.parametrize(("before", "after"), [("counted", "with itself"), ("reach", "as it is")])
def test_goes_on_for_clients_of_the_old_version_whose_changes_add_up(
    cluster: timely.Cluster, before: str, after: str
) -> None:
    old = cluster.install(owner, query=before)
    insert(old, (1, 2), (2, 3))
    old.seal()
    insert(old, (3, 4))
    old.input("edges").remove([(1, 2)])
    old.seal()
    read = [old.output("out").changes()]
    insert(old, (9, 9), (9, 1))  # into the epoch that is open while the versions change
    new = cluster.replace(old, owner, query=after)
    assert old.index not in cluster.flows() and new.index in cluster.flows()
    insert(old, (4, 5))
    insert(new, (5, 6))
    assert old.seal() == 2
    new.refresh()
    edges = [(2, 3), (3, 4), (9, 9), (9, 1), (4, 5), (5, 6)]
    assert outcome(old) == outcome(new) == plainly(edges, after)
    read.append(old.output("out").changes())
    assert set(read[1].column("epoch").to_pylist()) == {2}
    assert sums(pa.concat_tables(read)) == plainly(edges, after), "what was read of both adds up"
    assert sums(new.output("out").changes(0)) == plainly(edges, after)
    assert sums(new.output("out").changes(0, 2)) == plainly([(2, 3), (3, 4)], before), "what has been stays"
    insert(old, (6, 7))
    assert new.seal() == 3
    old.refresh()
    read.append(old.output("out").changes())
    assert sums(pa.concat_tables(read)) == plainly([*edges, (6, 7)], after)


def test_goes_on_with_the_values_of_keys_and_the_rows_that_are_there(cluster: timely.Cluster) -> None:
    old = cluster.install("upsert_flows:values", exports=True)
    values = old.input("values")
    values.upsert([("ada", 1, 5, None), ("bob", 1, 6, "kept"), ("eve", 2, 1, "gone")])
    old.input("rows").insert([("pen",), ("ink",), ("ink",)])
    old.seal()
    values.upsert([("ada", 1, 7, "later")])
    old.seal()
    values.delete([(2, "eve")])
    values.upsert([("ada", 1, 8, "in the epoch that is open"), ("cat", 3, 0, None)])
    read = [old.output("current").changes()]
    new = cluster.replace(old, "upsert_flows:values", exports=True)
    again = cluster.replace(new, "upsert_flows:values", exports=True)
    values.upsert([("ada", 1, 9, "last")])
    again.input("rows").remove([("ink",), ("pen",), ("pen",)])
    old.seal()
    found = {}
    for name in ("current", "rows", "refused"):
        again.refresh()
        again.wait(timeout=60)
        found[name] = Counter(tuple(row.values()) for row in again.output(name).snapshot().to_pylist())
    assert found["current"] == Counter([("ada", 1, 9, "last"), ("bob", 1, 6, "kept"), ("cat", 3, 0, None)])
    assert found["rows"] == Counter([("ink",)]) and found["refused"] == Counter([("pen",)])
    old.refresh()
    read.append(old.output("current").changes())
    assert sums(pa.concat_tables(read)) == found["current"]
    old.input("values").delete([(1, "bob")])
    old.seal()
    again.refresh()
    again.wait(timeout=60)
    assert again.output("counts").snapshot().to_pylist() == [{"part": 1, "n": 1}, {"part": 3, "n": 1}]


def test_goes_on_with_the_row_that_there_is_of_nothing_as_do_those_that_begin_later(
    cluster: timely.Cluster,
) -> None:
    def version(flow: timely.Dataflow, reads: str = "") -> None:
        edges = dd.imported(flow, reads, "edges", EDGES) if reads else dd.input(flow, "edges", EDGES)
        if not reads:
            edges.export("edges")
        edges.filter(col.src > 5).agg(n=dd.count(), most=dd.max("dst")).output("out")

    old = cluster.install(version)
    insert(old, (1, 1))
    old.seal()
    assert outcome(old) == Counter([(0, None)])
    old.seal()
    later = cluster.install(version, reads="version")
    assert outcome(later) == Counter([(0, None)])
    later.uninstall()
    new = cluster.replace(old, version)
    old.seal()
    new.refresh()
    assert outcome(new) == Counter([(0, None)]) and sums(old.output("out").changes()) == outcome(new)
    insert(old, (6, 2))
    old.seal()
    new.refresh()
    assert outcome(new) == Counter([(1, 2)])


def test_refused_while_the_values_of_keys_are_not_exported(cluster: timely.Cluster) -> None:
    old = cluster.install("upsert_flows:values")
    old.input("values").upsert([("ada", 1, 5, None)])
    with pytest.raises(timely.MisuseError, match="does not keep what its input 'values' holds.*exports the"):
        cluster.replace(old, "upsert_flows:values")
    old.seal()
    old.wait(timeout=60)
    assert old.output("counts").snapshot().to_pylist() == [{"part": 1, "n": 1}]


def test_goes_on_again_and_again_under_one_name(cluster: timely.Cluster) -> None:
    first = cluster.install(owner)
    edges: list[tuple[int, int]] = []
    latest = first
    for turn, query in enumerate(["counted", "reach", "as it is", "with itself", "reach"]):
        edges.append((turn, turn + 1))
        insert(first, edges[-1])
        if turn % 2:
            first.seal()
        latest = cluster.replace("owner", owner, query=query)
        first.seal()
        assert outcome(first) == plainly(edges, query), query
        assert sums(first.output("out").changes(0)) == plainly(edges, query)
    assert list(cluster.flows()) == [latest.index]
    assert cluster.flow("owner").index == latest.index


def beside(flow: timely.Dataflow, query: str) -> None:
    owner(flow, query=query)


@pytest.mark.parametrize("is_durable", [False, True])
@pytest.mark.parametrize(("count", "threads"), [(1, False), (2, False), (2, True)])
def test_goes_on_beside_other_dataflows_of_the_same_workers(
    count: int, threads: bool, is_durable: bool, tmp_path: Path
) -> None:
    store = tmp_path / "store" if is_durable else None
    with timely.connect(workers=count, embedded=True, threads=threads, durable=store) as cluster:
        other = cluster.install(owner)
        flow = cluster.install(beside, query="as it is")
        edges: list[tuple[int, int]] = []
        for turn, query in enumerate(["counted", "reach", "with itself"]):
            edges.append((turn, turn + 1))
            insert(flow, edges[-1])
            insert(other, (7, 7))
            if turn % 2:
                flow.seal(wait=False)
            cluster.replace(flow, beside, query=query)
            flow.seal()
            assert outcome(flow) == plainly(edges, query)
        other.seal()
        assert outcome(other) == Counter({(7, 7): 3})


def test_goes_on_with_new_inputs_empty_and_old_ones_gone(cluster: timely.Cluster) -> None:
    def version(flow: timely.Dataflow, number: int) -> None:
        edges = dd.input(flow, "edges", EDGES)
        edges.export("edges", by="src")
        names = dd.input(flow, f"names {number}", "src: int, name: string")
        names.export("names")
        edges.join(names, on="src").output("out")
        if number == 1:
            edges.output("only")

    old = cluster.install(version, number=1)
    insert(old, (1, 2))
    old.input("names 1").insert([(1, "one")])
    old.seal()
    read = [old.output("out").changes()]
    old.output("only").changes()
    new = cluster.replace(old, version, number=2)
    with pytest.raises(timely.ReplacedError, match=r"'names 1' is gone: .* inputs are 'edges', 'names 2'"):
        old.input("names 1").insert([(2, "two")])
        old.refresh()
    with pytest.raises(timely.ReplacedError, match=r"'only' is gone: .*replaced at epoch 1 by dataflow"):
        old.output("only").changes()
    new.input("names 2").insert([(1, "uno"), (3, "tres")])
    insert(old, (3, 4))
    new.seal()
    old.refresh()
    read.append(old.output("out").changes())
    assert sums(pa.concat_tables(read)) == {(1, 2, "uno"): 1, (3, 4, "tres"): 1}


def test_goes_on_with_appends_that_are_known_by_name(cluster: timely.Cluster) -> None:
    old = cluster.install(owner)
    edges = old.input("edges")
    row = pa.table({"src": [1], "dst": [2], "diff": [1]})
    assert edges.append(row, epoch=0, writer="w", sequence=0)
    assert edges.append(row, epoch=3, writer="w", sequence=0), "an epoch that is not open yet"
    edges.insert([(5, 5)], writer="v", sequence=7)
    cluster.replace(old, owner, query="reach")
    assert not edges.append(row, epoch=0, writer="w", sequence=0), "it is known, and counts once"
    edges.insert([(5, 5)], writer="v", sequence=7)
    assert edges.append(row, epoch=0, writer="w", sequence=1)
    old.seal([("edges", "w", 0), ("edges", "w", 1)])
    assert outcome(old) == {(1, 2): 1, (5, 5): 1}
    old.input("edges").remove([(1, 2), (1, 2)])
    for _ in range(3):
        old.seal()
    assert outcome(old) == {(1, 2): 1, (5, 5): 1}, "what came for epoch 3 is there"


def test_goes_on_while_others_append_seal_and_follow(processes: timely.Cluster) -> None:
    """Nothing is lost, nothing doubled: each row is told once, and what a follower adds up is the truth."""
    flow = processes.install(owner)
    rows_each, versions = 150, 6
    failures: list[BaseException] = []
    told: list[pa.Table] = []

    def guarded(work: Callable[[timely.Cluster], None]) -> Callable[[], None]:
        def run() -> None:
            try:
                with timely.connect(*processes.addresses) as own:
                    work(own)
            except BaseException as error:
                failures.append(error)

        return run

    def feeds(number: int) -> Callable[[timely.Cluster], None]:
        def work(own: timely.Cluster) -> None:
            mine = own.flow(flow.index)
            for n in range(rows_each):
                insert(mine, (number, n))
                if n % 7 == number:
                    mine.refresh()
                    mine.seal()

        return work

    def follows(own: timely.Cluster) -> None:
        for _, changes in own.flow(flow.index).output("out").follow(timeout=60):
            told.append(changes)
            if sum(sums(pa.concat_tables(told)).values()) >= 3 * rows_each:
                return

    threads = [threading.Thread(target=guarded(feeds(n))) for n in range(3)]
    threads.append(threading.Thread(target=guarded(follows)))
    for thread in threads:
        thread.start()
    for _ in range(versions):
        processes.replace("owner", owner)
    for thread in threads[:3]:
        thread.join(120)
    flow.refresh()
    flow.seal()
    threads[3].join(120)
    assert not failures, failures
    wanted = {(number, n): 1 for number in range(3) for n in range(rows_each)}
    assert sums(pa.concat_tables(told)) == wanted == outcome(flow)


def test_refused_without_what_the_input_holds(cluster: timely.Cluster) -> None:
    def unkept(flow: timely.Dataflow) -> None:
        dd.input(flow, "edges", EDGES).output("out")

    def other_columns(flow: timely.Dataflow) -> None:
        dd.input(flow, "edges", "src: int, dst: string").output("out")

    def changed(flow: timely.Dataflow) -> None:
        edges = dd.input(flow, "edges", EDGES)
        edges.filter(col.src > 1).export("edges")
        edges.output("out")

    old = cluster.install(owner)
    kept_nothing, kept_some = cluster.install(unkept), cluster.install(changed)
    for flow in (old, kept_nothing, kept_some):
        insert(flow, (1, 2))
        flow.seal()
    for flow, build, said in [
        (kept_nothing, owner, r"unkept\) cannot be replaced: it does not keep what its input 'edges' holds"),
        (kept_some, owner, r"changed\) cannot be replaced: it does not keep what its input 'edges' holds"),
        (
            old,
            other_columns,
            r"its input 'edges' is a table \(src: int, dst: int\), that of .*string",
        ),
    ]:
        with pytest.raises(timely.MisuseError, match=said):
            cluster.replace(flow, build)
        insert(flow, (3, 4))
        flow.seal()
        assert outcome(flow) == {(1, 2): 1, (3, 4): 1}


def test_refused_while_it_is_read_or_reads_or_is_closed(cluster: timely.Cluster) -> None:
    old, closed = cluster.install(owner), cluster.install(owner)
    reads = cluster.install(importer, of=old.index)
    closed.input("edges").close()
    for flow, said in [
        (old, rf"is read by dataflow {reads.index} \(.*importer\)"),
        (reads, "it imports"),
        (closed, "its input 'edges' is closed"),
    ]:
        with pytest.raises(timely.MisuseError, match=said):
            cluster.replace(flow, owner)
    with pytest.raises(timely.MisuseError, match="no dataflows are called 'nobody'"):
        cluster.replace("nobody", owner)
    insert(old, (1, 2))
    old.seal()
    reads.wait(0, timeout=60)
    assert outcome(old) == {(1, 2): 1}


def test_refused_on_one_worker_leaves_all_as_they_were(processes: timely.Cluster) -> None:
    old = processes.install(owner)
    insert(old, (1, 2))
    old.seal()
    with pytest.raises(timely.GraphError, match="differs between workers"):
        processes.replace(old, "dataflows:differs_between_processes")
    with pytest.raises(timely.MisuseError, match="no module 'nothing'"):
        processes.replace(old, "nothing:at_all")
    insert(old, (3, 4))
    old.seal()
    assert outcome(old) == {(1, 2): 1, (3, 4): 1}
    assert outcome(processes.replace(old, owner)) == {(1, 2): 1, (3, 4): 1}


def test_fails_while_it_catches_up_and_nothing_is_different(cluster: timely.Cluster) -> None:
    def fails(flow: timely.Dataflow) -> None:
        edges = dd.input(flow, "edges", EDGES)
        edges.export("edges")
        edges.select("src", dst=100 // (col.dst - 2)).output("out", strict=True)

    old = cluster.install(owner)
    insert(old, (1, 2))
    old.seal()
    read = [old.output("out").changes()]
    insert(old, (7, 7))
    with pytest.raises(dd.errors.RowError) as caught:
        cluster.replace(old, fails)
    goes_on = f"dataflow {old.index}, which was to be replaced, goes on as it was"
    assert caught.value.__notes__[-1] == goes_on
    insert(old, (3, 4))
    assert old.seal() == 1
    read.append(old.output("out").changes())
    assert sums(pa.concat_tables(read)) == outcome(old) == {(1, 2): 1, (7, 7): 1, (3, 4): 1}
    assert old.index in cluster.flows() and max(cluster.flows()) == old.index


def test_refused_is_a_builder_in_the_place_of_the_dataflow(cluster: timely.Cluster) -> None:
    old = cluster.install(owner)
    with pytest.raises(timely.MisuseError, match="replace takes a running dataflow first"):
        cluster.replace(owner, old)  # type: ignore[arg-type]


def _overflows(dataflow: timely.Dataflow) -> None:
    edges = dd.input(dataflow, "edges", EDGES)
    edges.export("edges")
    edges.group_by().agg(n=dd.sum("dst")).select(src=col.n, dst=col.n).output("out", strict=True)


def _raises(dataflow: timely.Dataflow) -> None:
    def refuse(key: object, rows: object) -> list[tuple[int]]:
        raise ValueError("a bad row")

    edges = dd.input(dataflow, "edges", EDGES)
    edges.export("edges")
    edges.group_by("src").reduce(refuse, "dst: int").output("out", strict=True)


def _has_one_input_more(dataflow: timely.Dataflow) -> None:
    edges = dd.input(dataflow, "edges", EDGES)
    edges.export("edges")
    dd.input(dataflow, "names", "name: int").export("names")
    edges.consolidate().select("src", dst=1 // (col.dst - 2**62)).output("out", strict=True)


@pytest.mark.parametrize("build", [_overflows, _raises, _has_one_input_more])
def test_fails_on_the_rows_that_it_begins_with_and_nothing_is_different(
    cluster: timely.Cluster, build: Callable[[timely.Dataflow], None]
) -> None:
    """All that the old version holds is one epoch to the new one, which has to be through with it first."""
    old = cluster.install(owner)
    old.input("edges").insert([(number, 2**62) for number in range(3)])
    old.wait(old.seal())
    with pytest.raises(timely.TimelyError):
        cluster.replace(old, build)
    insert(old, (4, 4))
    old.wait(old.seal(), timeout=20)
    assert old.output("out").snapshot().num_rows == 4


def test_without_an_answer_a_new_version_takes_over_and_has_one_when_rows_are_corrected(
    cluster: timely.Cluster,
) -> None:
    def fails(flow: timely.Dataflow) -> None:
        edges = dd.input(flow, "edges", EDGES)
        edges.export("edges")
        edges.select("src", dst=100 // (col.dst - 2)).output("out")

    old = cluster.install(owner)
    insert(old, (1, 2))
    old.seal()
    reader = cluster.flow(old.index).output("out")
    assert sums(reader.changes(stop=1)) == {(1, 2): 1}
    new = cluster.replace(old, fails)
    insert(old, (1, 3))
    old.wait(old.seal(), timeout=60)
    for output in (reader, new.output("out")):
        for call in (output.changes_nowait, output.snapshot):
            with pytest.raises(dd.errors.RowError, match=r"'out' has no answer at epoch 1\b.*dst=2"):
                call()
        assert sums(output.changes(0, 1)) == {(1, 2): 1}, "of the version before"
    new.input("edges").remove([(1, 2)])
    old.wait(old.seal(), timeout=60)
    assert reader.changes_nowait().to_pylist() == [
        {"src": 1, "dst": 2, "epoch": 2, "diff": -1},
        {"src": 1, "dst": 100, "epoch": 2, "diff": 1},
    ]
    last = cluster.replace(new, owner)
    old.wait(old.seal(), timeout=60)
    assert sums(reader.changes_nowait()) == {(1, 100): -1, (1, 3): 1}
    assert outcome(last) == {(1, 3): 1}
    with pytest.raises(dd.errors.RowError, match=r"'out' has no answer at epoch 1\b"):
        reader.changes(0, 2)


def test_fails_to_catch_up_in_time_and_nothing_is_different() -> None:
    def goes_round(dataflow: timely.Dataflow) -> None:
        edges = dd.input(dataflow, "edges", EDGES)
        edges.export("edges")
        rounds = edges.iterate(lambda x: x.select("src", dst=(col.dst + 1) % 7).distinct())
        rounds.output("out")

    with timely.connect(workers=1, embedded=True) as cluster:
        old = cluster.install(owner)
        insert(old, (1, 2))
        old.seal()
        with pytest.raises(timely.WaitTimeoutError, match="goes on as before"):
            cluster.replace(old, goes_round, timeout=0.5)
        insert(old, (3, 4))
        old.seal()
        assert outcome(old) == {(1, 2): 1, (3, 4): 1}


def test_goes_on_with_rows_that_wait_for_epochs_further_ahead_than_the_new_version_has_words(
    cluster: timely.Cluster,
) -> None:
    def narrow(dataflow: timely.Dataflow) -> None:
        edges = dd.input(dataflow, "edges", EDGES)
        edges.export("edges")
        edges.iterate(lambda x: x.iterate(lambda y: y.distinct()).distinct()).output("out")

    old = cluster.install(owner)
    far = 1 << 50
    old.input("edges").append(
        pa.table({"src": [9], "dst": [9], "diff": [1]}), epoch=far, writer="w", sequence=0
    )
    insert(old, (1, 2))
    old.seal()
    cluster.replace(old, narrow)
    insert(old, (3, 4))
    old.seal()
    assert outcome(old) == {(1, 2): 1, (3, 4): 1}
    old.seal(through=far)
    assert outcome(old) == {(1, 2): 1, (3, 4): 1, (9, 9): 1}


def test_fails_afterwards_as_any_dataflow_does(cluster: timely.Cluster) -> None:
    def fails(flow: timely.Dataflow) -> None:
        edges = dd.input(flow, "edges", EDGES)
        edges.export("edges")
        edges.select("src", dst=100 // (col.dst - 2)).output("out", strict=True)

    old = cluster.install(owner)
    insert(old, (1, 1))
    old.seal()
    cluster.replace(old, fails)
    insert(old, (1, 2))
    with pytest.raises(dd.errors.RowError):
        old.seal()
        old.wait(timeout=60)
    with pytest.raises(dd.errors.RowError):
        old.refresh()


def test_gone_with_all_it_kept_and_what_imports_finds_the_new_one(cluster: timely.Cluster) -> None:
    old = cluster.install(owner)
    for turn in range(5):
        insert(old, *[(n, turn) for n in range(200)])
        old.seal()
        old = cluster.replace("owner", owner)
        until = time.monotonic() + 20
        while running(cluster) != [{old.index}] * cluster.workers:  # all hear of it a moment later
            assert time.monotonic() < until, running(cluster)
            time.sleep(0.02)
    flow = cluster.install(importer, query="counted")
    old.seal(through=old.epoch + 1)
    flow.wait(old.epoch - 1, timeout=60)
    flow.refresh()
    assert sum(outcome(flow).values()) == 200
    flow.uninstall()
    old.uninstall()
    assert not cluster.flows()
