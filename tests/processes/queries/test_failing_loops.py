"""A row that fails in a loop on one worker process: the error is read from all of them."""

from __future__ import annotations

import pytest

import differential as dd
import timely
from differential import Collection, col

EDGES = "src: int, dst: int, weight: int"


def by_function(edges: Collection, start: Collection) -> Collection:
    def further(row: object) -> tuple[int, int]:
        if row.weight == 5:  # type: ignore[attr-defined]
            raise ValueError("five")
        return (row.dst, row.far)  # type: ignore[attr-defined]

    def body(known: Collection) -> Collection:
        steps = known.join(edges, on={"node": "src"}).map(further, "node: int, far: int")
        return steps.concat(start).group_by("node").agg(far=dd.min("far"))

    return start.iterate(body)


def nested(edges: Collection, start: Collection) -> Collection:
    def inner(known: Collection) -> Collection:
        def body(rows: Collection) -> Collection:
            steps = rows.join(edges, on={"node": "src"})
            further = steps.select(node=col.dst, far=col.far + 0 * (1 // (col.weight - 5)))
            return further.concat(known).group_by("node").agg(far=dd.min("far"))

        return known.iterate(body).concat(start).group_by("node").agg(far=dd.min("far"))

    return start.iterate(inner)


@pytest.mark.parametrize("loop", [by_function, nested])
def test_the_row_that_fails_in_a_loop_is_named_whichever_worker_has_it(loop: object) -> None:
    def query(flow: timely.Dataflow) -> None:
        edges = dd.input(flow, "edges", EDGES)
        start = dd.input(flow, "start", "node: int").select("node", far=0)
        loop(edges, start).output("far")  # type: ignore[operator]

    with timely.connect(workers=2) as cluster:
        flow = cluster.install(query)
        flow.input("start").insert([(0,)])
        flow.input("edges").insert([(node, node + 1, 1) for node in range(8)])
        for node in range(8):
            bad = (node, node + 20, 5)
            flow.input("edges").insert([bad])
            flow.seal()
            with pytest.raises(timely.TimelyError, match=f"has no answer at epoch {2 * node}: .*weight=5"):
                flow.output("far").snapshot()
            flow.input("edges").remove([bad])
            flow.seal()
            assert flow.output("far").snapshot().num_rows == 9
