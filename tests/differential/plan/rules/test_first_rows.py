"""first_rows.py: where a query takes the first row numbers, nobody numbers the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from reference.plan import meaning

import differential as dd
from differential import Collection, col
from differential.plan.building import Plan
from differential.plan.improving import improve
from differential.plan.nodes import Node, OverWindow, TopK
from differential.plan.rewriting import beneath
from timely.building.dataflow import Dataflow

ROWS = Counter({(0, 3, 1): 1, (0, 2, 2): 2, (0, 1, 3): 1, (1, 5, 4): 1, (1, 4, 5): 1, (1, 4, 6): -1})


def improved(build: Callable[[Collection], Collection]) -> tuple[Node, Node]:
    flow = Dataflow("tested")
    build(dd.input(flow, "rows", "k: int, t: int, v: int")).output("out")
    plan = Plan.of(flow)
    better = improve(plan.roots, plan.add_rewritten, lambda node: plan.sites.get(node.digest, ()))
    return plan.roots[0], better.roots[0]


def numbered(rows: Collection) -> Collection:
    return rows.over("k", by=col.t.desc()).with_columns(n=dd.row_number())


def ranked(rows: Collection) -> Collection:
    return rows.over("k", by=col.t.desc()).with_columns(n=dd.rank())


@pytest.mark.parametrize(
    "build, limit",
    [
        (lambda rows: numbered(rows).filter(col.n <= 2), 2),
        (lambda rows: numbered(rows).filter(col.n < 2), 1),
        (lambda rows: numbered(rows).filter(col.n == 2), 2),
        (lambda rows: numbered(rows).filter((col.n <= 2) & (col.v > 1)), 2),
        (lambda rows: numbered(rows).select("k", "n").filter(col.n <= 1), 1),
        (lambda rows: numbered(rows).filter((col.n <= 2) & (col.k == 0)), 2),
        (lambda rows: ranked(rows).filter(col.n <= 2), 2),
        (lambda rows: ranked(rows).filter(col.n == 2), 2),
    ],
)
def test_fires_and_the_meaning_stays(build: Callable[[Collection], Collection], limit: int) -> None:
    before, after = improved(build)
    (first,) = (node for node in beneath([after]) if isinstance(node, TopK))
    assert first.limit == limit and first.ties == (first.rank == ("n", "rank"))
    assert not any(isinstance(node, OverWindow) for node in beneath([after]))
    given_rows = {"rows": ROWS}
    assert meaning(after, given_rows) == meaning(before, given_rows)
    assert before.schema == after.schema


@pytest.mark.parametrize(
    "build",
    [
        lambda rows: numbered(rows).filter(col.n >= 2),
        lambda rows: numbered(rows).filter(col.n <= 0),
        lambda rows: numbered(rows).filter(col.n <= 1 << 62),  # no top_k takes so many
        lambda rows: numbered(rows).filter(col.v <= 2),
        lambda rows: rows.over("k", by="t").with_columns(n=dd.dense_rank()).filter(col.n <= 2),
        lambda rows: rows.over("k", by="t").with_columns(n=dd.row_number(), m=dd.lag("v")).filter(col.n <= 2),
        lambda rows: rows.over("k").with_columns(n=dd.row_number()).filter(col.n <= 2),
        lambda rows: numbered(rows).filter(col.n <= 1).concat(numbered(rows)),
    ],
)
def test_guard_stays_where_other_rows_count(build: Callable[[Collection], Collection]) -> None:
    _, after = improved(build)
    assert any(isinstance(node, OverWindow) for node in beneath([after]))
