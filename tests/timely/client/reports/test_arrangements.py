"""Flow.arrangements: what is kept once for several operators, and who holds what back."""

from __future__ import annotations

import differential as dd
import timely
from differential import col


@timely.builder
def kept_once(flow: timely.Dataflow) -> None:
    edges = dd.input(flow, "edges", "src: int, dst: int")
    kept = edges.arrange("src")
    paths = kept.join(edges.select(src=col.dst, start=col.src), on="src")
    paths.select("start", end=col.dst).output("paths")
    kept.group_by("src").agg(most=dd.max("dst")).output("most")


def _of(cluster: timely.Cluster) -> list[dict[str, object]]:
    flow = cluster.install(kept_once)
    for epoch in range(3):
        flow.input("edges").insert([(1, 2 + epoch), (2, 3 + epoch)])
        flow.wait(flow.seal())
    return list(flow.arrangements().to_pylist())


def test_each_reader_is_a_row_and_says_what_it_holds() -> None:
    with timely.connect(workers=1, embedded=True) as cluster:
        found = _of(cluster)
        assert cluster.install(kept_once).arrangements().num_rows == 2, "of this dataflow alone"
    assert {(row["arrangement"], row["loop"]) for row in found} == {("arrange by src", "")}
    readers = {row["reader"]: row for row in found}
    assert sorted(readers) == ["group by src: most=max(dst)", "join on src"]
    assert [row["lag"] for _, row in sorted(readers.items())] == [None, 0]
    assert all(row["rows"] == 6 and row["hold"] == [[3]] and row["holds_back"] for row in found)
    assert all(int(str(row["bytes"])) > 0 for row in found)


def test_workers_in_other_processes_report_their_own() -> None:
    with timely.connect(workers=2) as cluster:
        found = _of(cluster)
    assert sum(int(str(row["rows"])) for row in found if row["lag"] == 0) == 6
    assert {row["worker"] for row in found} == {0, 1}


def test_a_dataflow_that_keeps_nothing_for_others_has_no_rows() -> None:
    with timely.connect(workers=1, embedded=True) as cluster:
        table = cluster.install(alone).arrangements()
    assert table.num_rows == 0 and "holds_back" in table.column_names


@timely.builder
def alone(flow: timely.Dataflow) -> None:
    dd.input(flow, "edges", "src: int, dst: int").distinct().output("edges")


@timely.builder
def labelled(flow: timely.Dataflow) -> None:
    edges = dd.input(flow, "edges", "src: int, dst: int")

    own = edges.select(node=col.src, label=col.src).distinct()

    def spread(labels: dd.Collection) -> dd.Collection:
        further = labels.join(edges, on={"node": "src"}).select(node=col.dst, label=col.label)
        return further.concat(own).group_by("node").agg(label=dd.min("label"))

    own.iterate(lambda labels: labels.iterate(spread, name="inner"), name="outer").output("labels")


def test_what_is_kept_in_a_loop_says_in_which() -> None:
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(labelled)
        flow.input("edges").insert([(1, 2), (2, 3)])
        flow.wait(flow.seal())
        assert {row["loop"] for row in flow.arrangements().to_pylist()} == {"outer / inner"}
        assert {row["loop"] for row in flow.iterations().to_pylist()} >= {"outer / inner"}
