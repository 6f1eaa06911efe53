"""A dataflow reads what another one exports, from its present state on: embedded on 1 to 3 workers, and on 2
processes.

reads_*     the same as the owner would say, at every epoch from the beginning on
refused_*   what cannot be imported; nothing has changed
ends_*      with the owner, without it
freed_*     what is held for an importer goes with it
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

import pyarrow as pa
import pytest
from exporting_flows import EDGES, QUERIES, asked, beside, importer, owner, sums

import differential as dd
import timely
from differential import col


def feed(flow: timely.Flow, *epochs: str) -> None:
    """Each epoch is "1>2 -3>4": edges that come, and, with a sign, that go."""
    for epoch in epochs:
        for word in epoch.split():
            src, dst = map(int, word.lstrip("-").split(">"))
            edges = flow.input("edges")
            (edges.remove if word.startswith("-") else edges.insert)([(src, dst)])
        flow.seal()


def until(flow: timely.Flow, epoch: int) -> pa.Table:
    """All changes up to an epoch."""
    flow.wait(epoch, timeout=60)
    return flow.output("out").changes(0, epoch + 1, timeout=60)


def comes_true(condition: Callable[[], bool], seconds: float = 20.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


def exported(cluster: timely.Cluster, flow: timely.Flow, counter: str = "importers") -> list[int]:
    """A counter of the stage that exports, on each worker."""
    return [
        stage[counter]
        for worker in cluster.stats()
        for stage in worker["dataflows"][flow.index]["stages"]  # type: ignore[index]  # plain values
        if stage["name"].startswith("export")
    ]


@pytest.mark.parametrize("query", QUERIES)
def test_reads_what_the_owner_would_say_at_every_epoch(cluster: timely.Cluster, query: str) -> None:
    first = cluster.install(owner, query=query)
    feed(first, "1>2 2>3 7>7", "3>4 -1>2", "5>1 1>2 1>2")
    first.wait()
    second = cluster.install(importer, query=query)
    assert second.epoch == 3, "what it begins with is the last complete state, which can be read at once"
    begin = second.epoch - 1
    feed(first, "-2>3", "", "4>5 5>6 -7>7", "-5>1 2>2")
    theirs, ours = until(first, 6), until(second, 6)
    assert ours.num_rows and min(ours.column("epoch").to_pylist()) >= begin
    for epoch in range(begin, 7):
        assert sums(ours, epoch) == sums(theirs, epoch), epoch
    changed = [row for row in theirs.to_pylist() if row["epoch"] > begin]
    assert [row for row in ours.to_pylist() if row["epoch"] > begin] == changed, "later ones are the same"


def test_reads_while_others_do_and_from_those_who_read(cluster: timely.Cluster) -> None:
    first = cluster.install(owner, by="dst")
    feed(first, "1>2 2>3")
    first.wait()
    reach = cluster.install(importer, query="reach")
    feed(first, "3>4")
    reach.wait(1, timeout=60)
    again = cluster.install(importer, of=reach.index, query="counted")
    plain = cluster.install(importer, of=first.index)
    feed(first, "-2>3", "2>3 9>9")
    assert sums(until(plain, 3)) == sums(until(first, 3))
    assert sums(until(reach, 3)) == dict.fromkeys([(1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4), (9, 9)], 1)
    assert sums(until(again, 3)) == dict.fromkeys([(1, 5), (2, 5), (3, 5), (9, 10)], 1)


def test_reads_several_at_once_with_inputs_of_its_own(cluster: timely.Cluster) -> None:
    first, other = cluster.install(owner), cluster.install(owner)
    feed(first, "1>2", "2>3")
    feed(other, "5>6", "6>7", "7>8", "8>9")
    first.wait()
    other.wait()

    def both(flow: timely.Dataflow, one: int, two: int) -> None:
        edges = [dd.imported(flow, of, "edges", EDGES) for of in (one, two)]
        edges.append(dd.input(flow, "edges", EDGES))
        edges[0].concat(*edges[1:]).output("out")

    flow = cluster.install(both, one=first.index, two=other.index)
    assert flow.epoch in (3, 4), "as of the later of the two"
    begin = flow.epoch
    flow.input("edges").insert([(0, 0)])
    flow.seal()
    first.seal(through=begin)
    other.seal(through=begin)
    wanted = [(0, 0), (1, 2), (2, 3), (5, 6), (6, 7), (7, 8), (8, 9)]
    assert sums(until(flow, begin)) == dict.fromkeys(wanted, 1)
    assert flow.seal(through=begin + 5) == begin + 5 and flow.epoch == begin + 6


def test_reads_strings_and_columns_in_another_order(cluster: timely.Cluster) -> None:
    first = cluster.install(owner)
    feed(first, "1>2 3>4")
    first.wait()
    flow = cluster.install(beside)
    flow.input("names").insert([(1, "one"), (3, "three")])
    begin = flow.seal()
    first.seal(through=begin)
    flow.wait(timeout=60)
    assert flow.output("out").snapshot().to_pylist() == [
        {"src": 1, "dst": 2, "name": "one"},
        {"src": 3, "dst": 4, "name": "three"},
    ]

    def words(flow: timely.Dataflow) -> None:
        said = dd.input(flow, "said", "who: string, n: int?")
        said.export("said", by=["n"])

    def swapped(flow: timely.Dataflow) -> None:
        said = dd.imported(flow, "words", "said", {"n": "int?", "who": "string"})
        said.group_by("who").agg(n=dd.count()).output("out")

    told = cluster.install(words)
    told.input("said").insert([("a", 1), ("a", None), ("b", 2)])
    told.wait(told.seal())
    heard = cluster.install(swapped)
    told.input("said").insert([("é", 3)])
    told.seal()
    heard.wait(1, timeout=60)
    heard.refresh()
    assert heard.output("out").snapshot().to_pylist() == [
        {"who": "a", "n": 2}, {"who": "b", "n": 1}, {"who": "é", "n": 1}
    ]  # fmt: skip


def test_reads_many_rows_in_pieces(cluster: timely.Cluster) -> None:
    first = cluster.install(owner)
    first.input("edges").insert(pa.table({"src": range(200_000), "dst": [n % 10 for n in range(200_000)]}))
    first.wait(first.seal())

    def counted(flow: timely.Dataflow) -> None:
        dd.imported(flow, "owner", "edges", EDGES).group_by("dst").agg(n=dd.count()).output("out")

    flow = cluster.install(counted)
    feed(first, "1>1")
    flow.wait(1, timeout=60)
    assert sums(until(flow, 1)) == dict.fromkeys([(n, 20_000 + (n == 1)) for n in range(10)], 1)


def test_reads_what_is_complete_and_ends_when_it_does(cluster: timely.Cluster) -> None:
    first = cluster.install(owner)
    feed(first, "1>2", "2>3 -1>2")
    early = cluster.install(importer)
    first.input("edges").close()
    late = cluster.install(importer)
    for flow in (early, late):
        changes = [changes for _, changes in flow.output("out").follow(timeout=60)]
        assert sums(pa.concat_tables(changes)) == {(2, 3): 1}


def test_reads_epochs_are_sealed_where_rows_come_from(cluster: timely.Cluster) -> None:
    first = cluster.install(owner)
    flow = cluster.install(importer)
    with pytest.raises(timely.MisuseError, match=r"importer\) has no inputs of its own"):
        flow.seal()
    feed(first, "1>2", "", "")
    flow.wait(2, timeout=60)
    assert comes_true(lambda: flow.refresh() == 3)
    assert sums(flow.output("out").changes()) == {(1, 2): 1}


def test_refused_says_what_there_is(cluster: timely.Cluster) -> None:
    def wrong(flow: timely.Dataflow, of: int | str, name: str, schema: str) -> None:
        dd.imported(flow, of, name, schema).output("out")

    first = cluster.install(owner)
    feed(first, "1>2")
    for arguments, said in [
        (("nobody", "edges", EDGES), r"no dataflow 'nobody' runs here: there are \d+ \(.*owner\)"),
        (
            ("owner", "nodes", EDGES),
            r"dataflow \d+ \(.*owner\) does not export 'nodes': it exports 'edges'\. Its query .*",
        ),
        (
            ("owner", "edges", "src: int, dst: string"),
            r"'edges' of dataflow .*has the columns \(src: int, d",
        ),
        (("owner", "edges", "src: int"), r"dataflow \d+ \(.*wrong\) wants to import: \(src: int\)"),
    ]:
        with pytest.raises(timely.MisuseError, match=said):
            cluster.install(wrong, of=arguments[0], name=arguments[1], schema=arguments[2])
    other = cluster.install(owner)
    with pytest.raises(
        timely.MisuseError, match=r"several dataflows are called 'owner': \d+, \d+\. Say which"
    ):
        cluster.install(importer)
    other.uninstall()
    feed(first, "2>3")
    flow = cluster.install(importer)
    feed(first, "")
    assert sums(until(flow, 2)) == {(1, 2): 1, (2, 3): 1}, "nothing is different"
    assert exported(cluster, first) == [1] * cluster.workers


def test_refused_to_uninstall_what_is_read(cluster: timely.Cluster) -> None:
    first = cluster.install(owner)
    flow = cluster.install(importer)
    with pytest.raises(timely.MisuseError, match=rf"is read by dataflow {flow.index} \(.*importer\): uninst"):
        first.uninstall()
    feed(first, "1>2")
    assert sums(until(flow, 0)) == {(1, 2): 1}
    flow.uninstall()
    first.uninstall()
    assert not {first.index, flow.index} & set(cluster.flows())


def test_refused_outside_of_what_can_be_exported() -> None:
    flow = timely.Dataflow("tried")
    edges = dd.input(flow, "edges", EDGES)
    with pytest.raises(timely.MisuseError, match="no column 'x'"):
        edges.export("edges", by="x")
    with pytest.raises(timely.MisuseError, match="named twice"):
        edges.export("edges", by=["src", "src"])
    edges.export("edges")
    with pytest.raises(timely.GraphError, match="'tried' already exports 'edges'"):
        edges.select("src").export("edges")
    with pytest.raises(timely.GraphError, match="inside 'tried / iterate'"):
        edges.iterate(lambda inner: inner.export("inner"))  # type: ignore[arg-type,func-returns-value]


def test_ends_with_the_owner_on_all_workers(cluster: timely.Cluster) -> None:
    first = cluster.install(owner)
    flow = cluster.install(importer)
    further = cluster.install(importer, of=flow.index)
    first.uninstall(cascade=True)
    said = (
        rf"dataflow {flow.index} .* reads 'edges' of dataflow {first.index} .*owner\), which was uninstalled"
    )
    for each, words in ((flow, said), (further, rf"reads 'edges' of dataflow {flow.index} ")):
        for _ in range(2):
            assert comes_true(lambda each=each: each.index not in cluster.flows())  # type: ignore[misc]
            with pytest.raises(timely.UninstalledError, match=words):
                each.wait(9, timeout=60)


def test_ends_with_an_error_of_the_owner_that_it_tells(cluster: timely.Cluster) -> None:
    def fails(flow: timely.Dataflow) -> None:
        edges = dd.input(flow, "edges", EDGES).select("src", dst=100 // col.dst)
        edges.export("edges", by="src")
        edges.output("out", strict=True)

    first = cluster.install(fails)
    flow, stays = cluster.install(importer, of=first.index), cluster.install(owner)
    first.input("edges").insert([(1, 0)])
    with pytest.raises(timely.MisuseError, match="zero"):
        first.seal()
        first.wait(timeout=60)
    with pytest.raises(
        dd.errors.RowError, match=rf"reads 'edges' of dataflow {first.index}.*has ended: (?s:.*)0"
    ):
        flow.wait(0, timeout=60)
    feed(stays, "1>2")
    assert sums(until(stays, 0)) == {(1, 2): 1}


def test_reads_no_answer_where_the_owner_has_none_until_that_has_one(cluster: timely.Cluster) -> None:
    def fails(flow: timely.Dataflow) -> None:
        edges = dd.input(flow, "edges", EDGES)
        edges.select("src", dst=100 // col.dst).export("edges", by="src")
        edges.export("all", by="src")

    def both(flow: timely.Dataflow) -> None:
        dd.imported(flow, first.index, "edges", EDGES).output("edges")
        dd.imported(flow, first.index, "all", EDGES).output("all")

    first = cluster.install(fails)
    begun = cluster.install(both)
    first.input("edges").insert([(1, 0), (1, 50)])
    first.wait(first.seal(), timeout=60)
    late = cluster.install(both)
    for _ in range(2):
        first.wait(first.seal(), timeout=60)
    for flow in (begun, late):
        flow.wait(2, timeout=60)
        with pytest.raises(dd.errors.RowError) as caught:
            flow.output("edges").changes(0, 3)
        said = str(caught.value)
        assert "'edges' has no answer at epoch 2" in said and "dst=0" in said and "divides by zero" in said
        assert f"in the import 'edges' of {first.index}" in said
        assert sums(flow.output("all").changes(0, 3)) == {(1, 0): 1, (1, 50): 1}
    first.input("edges").remove([(1, 0)])
    first.wait(first.seal(), timeout=60)
    for flow in (begun, late):
        flow.wait(3, timeout=60)
        assert flow.output("edges").changes(0, 4).to_pylist() == [{"src": 1, "dst": 2, "epoch": 3, "diff": 1}]
        with pytest.raises(dd.errors.RowError):
            flow.output("edges").changes(0, 3)


def test_ends_alone_when_it_fails_itself(cluster: timely.Cluster) -> None:
    def fails(flow: timely.Dataflow) -> None:
        fractions = dd.imported(flow, "owner", "edges", EDGES).select("src", dst=100 // col.dst)
        fractions.output("out", strict=True)

    first = cluster.install(owner)
    flow, well = cluster.install(fails), cluster.install(importer)
    feed(first, "1>2", "1>0")
    with pytest.raises(dd.errors.RowError):
        flow.wait(1, timeout=60)
    assert sums(until(well, 1)) == sums(until(first, 1)) == {(1, 2): 1, (1, 0): 1}
    assert comes_true(lambda: exported(cluster, first) == [1] * cluster.workers)


def test_ends_for_all_when_a_worker_is_lost() -> None:
    with timely.connect(workers=3) as cluster:
        first = cluster.install(owner)
        flow = cluster.install(importer, query="reach")
        feed(first, "1>2 2>3")
        assert sums(until(flow, 0)) == {(1, 2): 1, (2, 3): 1, (1, 3): 1}
        os.kill(int(str(cluster.stats()[2]["process"])), signal.SIGKILL)
        for each in (first, flow):
            with pytest.raises(timely.PeerError):
                each.wait(5, timeout=60)


def test_freed_history_is_forgotten_while_importers_come_and_go(cluster: timely.Cluster) -> None:
    first = cluster.install(owner)
    for turn in range(12):
        flow = cluster.install(importer) if turn % 3 == 0 else None
        for _ in range(40):
            rows = [(n, turn) for n in range(50)]
            first.input("edges").insert(rows)
            first.seal()
            first.input("edges").remove(rows)
            first.seal()
        first.wait(timeout=60)
        if flow is not None:
            until(flow, first.epoch - 1)
            flow.uninstall()
    assert comes_true(lambda: exported(cluster, first) == [0] * cluster.workers)
    assert sum(exported(cluster, first, "trace_rows")) < 12_000, "of 48,000 that came, 0 are there"


def test_reads_asked_queries_written_here_and_there(processes: timely.Cluster) -> None:
    """The plan of an importer travels as any other does; `explain` shows where rows come from."""

    def further(flow: timely.Dataflow) -> None:
        asked(dd.imported(flow, "owner", "edges", EDGES), "reach").output("out")

    first = processes.install("exporting_flows:owner")
    feed(first, "1>2", "2>1")
    flow = processes.install(further)
    feed(first, "")
    assert sums(until(flow, 2)) == dict.fromkeys([(1, 1), (1, 2), (2, 1), (2, 2)], 1)
    here = timely.Dataflow("here")
    text = asked(dd.imported(here, "owner", "edges", EDGES), "with itself").explain()
    assert "import edges of owner" in text and text.count("import edges of owner") >= 3
    beside(here)
    imported = [(declared.owner, declared.export) for declared in here.imports]
    hidden = ("owner", "edges (failures)")
    assert imported.count(("owner", "edges")) == imported.count(hidden) == len(imported) // 2 == 2
    flow.uninstall()
    first.uninstall()
