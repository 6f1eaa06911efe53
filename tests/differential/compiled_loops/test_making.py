"""Which loops are compiled."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import differential as dd
import timely
from differential import Collection, col
from timely.running.core import Worker

Build = Callable[[Collection, Collection], Collection]


def _least(nodes: Collection, edges: Collection) -> Collection:
    def body(labels: Collection) -> Collection:
        spread = labels.join(edges, on={"node": "src"}).select(node=col.dst, label=col.label)
        return spread.concat(nodes).group_by("node").agg(label=dd.min("label"))

    return nodes.iterate(body)


def _first(nodes: Collection, edges: Collection) -> Collection:
    def body(labels: Collection) -> Collection:
        spread = labels.join(edges, on={"node": "src"}).select(node=col.dst, label=col.label)
        return spread.concat(nodes).group_by("node").first("label")

    return nodes.iterate(body)


def _later(nodes: Collection, edges: Collection) -> Collection:
    return nodes.iterate(lambda labels: labels.delay(1).concat(nodes).distinct())


def _seen(nodes: Collection, edges: Collection) -> Collection:
    return nodes.iterate(lambda labels: labels.inspect(lambda *_: None).distinct())


def _three_times(nodes: Collection, edges: Collection) -> Collection:
    return nodes.iterate(lambda labels: labels.select(node=col.node, label=col.label).distinct(), times=3)


def _regions(build: Build, worker: Worker) -> int:
    flow = timely.Dataflow("tested")
    nodes = dd.input(flow, "nodes", "node: int, label: int")
    build(nodes, dd.input(flow, "edges", "src: int, dst: int")).output("labels")
    return len(worker.install(flow.freeze()).loops)


@pytest.mark.parametrize(
    ("build", "regions"), [(_least, 1), (_first, 1), (_seen, 1), (_later, 0), (_three_times, 0)]
)
def test_loops_of_known_operators_are_compiled(build: Build, regions: int) -> None:
    assert _regions(build, Worker()) == regions


def test_each_loop_of_a_dataflow_is_compiled_and_nested_ones_together() -> None:
    def build(nodes: Collection, edges: Collection) -> Collection:
        nested = nodes.iterate(lambda labels: _least(labels, edges).concat(nodes).distinct())
        return nested.concat(_least(nodes, edges))

    assert _regions(build, Worker()) == 2


def test_no_loop_is_one_where_that_is_not_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _regions(_least, Worker(compiled_loops=False)) == 0
    monkeypatch.setenv("NAIAD_REGIONS", "0")
    assert _regions(_least, Worker()) == 0
