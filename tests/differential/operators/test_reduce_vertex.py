"""operators/reduce_vertex.py: reduces in a dataflow. What they answer: test_collection.py, test_sharing.py.

keeps_*   which traces are its own
ends_*    what it keeps goes when nothing can come any more
"""

from __future__ import annotations

import pytest
from reference.dataflow import Cluster
from strategies_collections import NUMBERS

import differential as dd
from differential import Collection
from differential.operators.reduce_vertex import ReduceVertex
from differential.operators.vertices import OperatorVertex
from differential.trace.shared import SharedTrace
from timely.building.dataflow import Dataflow


def _cluster(build: object) -> Cluster:
    def build_all(flow: Dataflow) -> None:
        build(*(dd.input(flow, name, NUMBERS) for name in "ab")).output("result")  # type: ignore[operator]

    cluster = Cluster(build_all)
    for name in "ab":
        cluster.change(name, [((k, v), 1) for k in range(3) for v in range(4)])
    cluster.seal()
    cluster.run()
    return cluster


def _reduce_of(cluster: Cluster) -> ReduceVertex:
    (found,) = (r.vertex for r in cluster.instances[0].runners if isinstance(r.vertex, ReduceVertex))
    return found


def test_keeps_rows_and_answers_where_it_is_alone() -> None:
    reduce = _reduce_of(_cluster(lambda a, b: a.group_by("k").agg(n=dd.min("v"))))
    assert [trace.rows for trace in reduce.traces()] == [12, 3]
    assert not any(isinstance(trace, SharedTrace) for trace in reduce.traces())


@pytest.mark.parametrize(
    ("aggregate", "readers"), [(dd.sum("v"), ["join on k"]), (dd.min("v"), ["its own answers", "join on k"])]
)
def test_keeps_answers_that_others_read(aggregate: dd.Aggregate, readers: list[str]) -> None:
    """And reads them itself unless they are sums."""
    reduce = _reduce_of(_cluster(lambda a, b: a.group_by("k").agg(n=aggregate).join(b, on="k")))
    rows, answers = reduce.traces()
    assert isinstance(answers, SharedTrace) and not isinstance(rows, SharedTrace)
    assert sorted(reader.name for reader in answers.report().readers) == readers


def test_keeps_rows_of_others_from_the_epoch_before() -> None:
    """A sum reads what they were then; also where there are loops, whose counters epochs have not."""

    def build(a: Collection, b: Collection) -> Collection:
        return a.arrange("k").group_by("k").agg(n=dd.count()).join(b.iterate(lambda x: x.distinct()), on="k")

    cluster = _cluster(build)
    for _ in range(3):
        cluster.seal()
        cluster.run()
    readers = [
        reader
        for runner in cluster.instances[0].runners
        if isinstance(runner.vertex, OperatorVertex)
        for report in runner.vertex.report().get("arrangements", [])
        for reader in report["readers"]
        if reader["name"].startswith("group by k")
    ]
    assert [reader["hold"] for reader in readers] == [[[3]]]


def test_keeps_no_rows_that_it_reads_elsewhere() -> None:
    def build(a: Collection, b: Collection) -> Collection:
        kept = a.arrange("k")
        return kept.group_by("k").agg(v=dd.min("v"))

    (answers,) = _reduce_of(_cluster(build)).traces()
    assert answers.rows == 3


def test_ends_with_its_input() -> None:
    cluster = _cluster(lambda a, b: a.group_by("k").agg(n=dd.sum("v")).join(b, on="k"))
    cluster.close()
    cluster.run()
    assert [trace.rows for trace in _reduce_of(cluster).traces()] == [0, 0]
