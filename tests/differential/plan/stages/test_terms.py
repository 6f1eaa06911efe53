"""stages/terms.py: streams and what is done to their rows; the columns of what is kept wider.

pairs_*     where the words of a join come from
way_back_*  a variable of a loop has only the ways back that somebody asks for
routes_*, packed_*   what may arrive by the routes of a plan
"""

from __future__ import annotations

import numpy as np
import pytest
from reference.dataflow import Cluster

import differential as dd
from differential import Collection, col
from differential.columns.packed.block import Block
from differential.columns.routes import EveryWorkerRoute, KeyRoute, UnitRoute
from differential.columns.schema import Schema
from differential.columns.update_batch import PackedBatch
from differential.plan.nodes import Input, Join
from differential.plan.stages.terms import Side, pairs_of
from progress.errors import PeerError
from timely.building.dataflow import Dataflow
from timely.running.progress_messages import DataHeader, write_data_header

LEFT = Input(Schema.of("a: int, b: int?"), "left")
RIGHT = Input(Schema.of("c: int, d: int"), "right")
JOIN = Join(LEFT, RIGHT, (("a", "c"),))


def _side(schema: str, **columns: str) -> Side:
    return Side((), Schema.of(schema), columns, lambda loops: [])


def test_pairs_of_sides_that_keep_what_is_needed() -> None:
    sides = (_side("a: int, b: int?", a="a", b="b"), _side("c: int, d: int", c="c", d="d"))
    assert pairs_of(JOIN, sides) == [("key", 0), ("left", 0), ("left", 1), ("right", 0)]


def test_pairs_of_sides_that_keep_more_under_other_names() -> None:
    sides = (
        _side("k: int, x: int, y: int?, z: int", a="k", b="y"),
        _side("p: int, q: int, r: int", c="p", d="r"),
    )
    assert pairs_of(JOIN, sides) == [("key", 0), ("left", 1), ("left", 2), ("right", 1)]


def test_pairs_of_a_column_that_is_the_key_again() -> None:
    sides = (_side("a: int, b: int?", a="a", b="b"), _side("p: int", c="p", d="p"))
    assert pairs_of(JOIN, sides)[-1] == ("key", 0)


def _ways_back(reads_rows: bool) -> int:
    flow = Dataflow("tested")
    edges = dd.input(flow, "edges", "k: int, to: int")
    start = edges.select(k=col.k, v=col.k).distinct()

    def body(x: Collection) -> Collection:
        moved = x.join(edges, on="k").select(k=col.to, v=col.v).concat(start)
        return (moved.concat(x) if reads_rows else moved).group_by("k").agg(v=dd.min("v"))

    start.iterate(body).output("out")
    flow.freeze()
    return sum(stage.kind == "feedback" for stage in flow.stages)


def test_way_back_for_rows_only_where_rows_are_read() -> None:
    """What it begins as comes back negated, answers come back, and perhaps rows."""
    assert (_ways_back(reads_rows=False), _ways_back(reads_rows=True)) == (2, 3)


def _everything(flow: Dataflow) -> None:
    a, b = dd.input(flow, "a", "k: int, v: int?"), dd.input(flow, "b", "k: int, w: string")
    a.join(b, on="k").output("pairs")
    a.join(b, on="k", balance=dd.Balance("matrix", units=4)).output("spread")
    a.group_by("k").agg(n=dd.count(), s=dd.sum("v"), m=dd.avg("v")).output("sums")
    a.group_by("v").agg(n=dd.count()).output("numbers")
    a.distinct().output("different")
    edges = [b.select(x=col.k, y=col.k + 1), b.select(y=col.k, z=col.w), b.select(x=col.k, z=col.w)]
    dd.join_all(edges, on=["x", "y", "z"]).output("triangles")
    a.select(k=col.k).iterate(lambda x: x.join(b, on="k").select(k=col.k + 1).concat(x).distinct()).output(
        "l"
    )


def test_routes_know_how_many_words_arrive_by_them() -> None:
    """Each worker holds the others to that: what is known wrongly would be an error in any run of several."""
    cluster = Cluster(_everything, workers=3)
    routes = [spec.route for spec in cluster.instances[0].frozen.connectors if spec.route is not None]
    assert len(routes) > 12
    for route in routes:
        assert isinstance(route, KeyRoute | UnitRoute | EveryWorkerRoute)
        assert route.width is not None and route.width > 0
    for worker in range(3):
        cluster.change("a", [((k, None if k % 3 else worker), 1) for k in range(9)], 0, worker)
        cluster.change("b", [((k, f"{worker}"), 1) for k in range(9)], 0, worker)
    cluster.seal()
    cluster.run()
    assert sum(cluster.snapshot("pairs").values()) == 9 * 3 * 3
    assert cluster.snapshot("pairs") == cluster.snapshot("spread")


def test_packed_rows_of_another_width_are_refused_before_they_are_sorted_with_others() -> None:
    """Rows are sorted as those that came first are laid out."""
    cluster = Cluster(_everything, workers=2)
    instance, worker = cluster.instances[0], cluster.workers[0]
    for spec in instance.frozen.connectors:
        if spec.route is None:
            continue
        for columns in (2, 13):
            block = Block(np.ones((columns - 1, 8), np.int64))
            batch = PackedBatch((block,), columns - 2, 0, None)
            header = write_data_header(DataHeader(0, spec.index, 0, batch.KIND, 0))
            frames = [memoryview(header), *(memoryview(bytes(frame)) for frame in batch.to_frames(0))]
            with pytest.raises(PeerError, match="worker 1 sent updates with rows of"):
                worker._receive(1, frames)
