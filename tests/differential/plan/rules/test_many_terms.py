"""many_terms.py: a chain of left joins has a stage here and there that sums what comes so far.

fires_*   how many stages there are
guard_*   where nothing changes
law_*     the answer is the same, epoch by epoch
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import pytest

import differential as dd
import timely
from differential import Collection, col
from differential.plan.building import Plan
from differential.plan.improving import Improved, improve
from differential.plan.nodes import Apply, Consolidate
from differential.plan.rewriting import beneath
from differential.plan.rules import many_terms
from differential.thresholds import TERMS_MAX

JOINS = 9
"""The last has 2 * JOINS + 1 terms if nothing sums them."""


def chain(first: Collection, others: list[Collection]) -> Collection:
    rows = first.select(a=col.a, b0=col.b)
    for number, other in enumerate(others, 1):
        right = other.select(**{f"a{number}": col.a, f"b{number}": col.b})
        rows = rows.join(right, rows[f"b{number - 1}"] == right[f"a{number}"], "left")
    return rows.select("a", *(f"b{number}" for number in range(len(others) + 1)))


def read_twice(parts: list[Collection]) -> Collection:
    rows = parts[0].concat(*parts[1:])
    return rows.join(rows.group_by("a").agg(n=dd.count()), "a").select("a", "b")


def tables(flow: timely.Dataflow) -> list[Collection]:
    return [dd.input(flow, f"t{number}", "a: int, b: int") for number in range(JOINS + 1)]


def improved(build: Callable[[list[Collection]], Collection]) -> Improved:
    flow = timely.Dataflow("tested")
    build(tables(flow)).output("result")
    plan = Plan.of(flow)
    return improve(plan.roots, plan.add_rewritten, lambda node: plan.sites.get(node.digest, ()))


def test_fires_once_for_as_many_joins_as_have_too_many_terms() -> None:
    assert TERMS_MAX == 8
    fired = {
        n: improved(lambda t, n=n: chain(t[0], t[1 : n + 1])).fired["many terms summed"] for n in (4, 5, 9)
    }
    # the fourth join has nine terms, and the output alone reads it; the fifth reads it several times
    assert fired == {4: 0, 5: 1, 9: 2}


def test_fires_where_two_operators_read_a_union() -> None:
    assert improved(lambda t: read_twice(t[: TERMS_MAX + 1])).fired["many terms summed"] == 1


def test_fires_beneath_what_its_readers_may_have_to_find() -> None:
    def build(t: list[Collection]) -> Collection:
        rows = t[0].concat(*t[1:]).filter(lambda row: row.a > 1)
        return rows.join(rows.group_by("b").agg(n=dd.count()), "b")

    better = improved(build)
    assert better.fired["many terms summed"] == 1
    (function,) = [node for node in beneath(better.roots) if isinstance(node, Apply)]
    assert isinstance(function.source, Consolidate)


@pytest.mark.parametrize(
    "build",
    [
        lambda t: t[0].concat(*t[1:]).group_by("a").agg(b=dd.max("b")),
        lambda t: read_twice(t[:TERMS_MAX]),
        lambda t: t[0].iterate(lambda x: read_twice([x, *t[1:]]).distinct(), name="loop"),
    ],
    ids=["one reader", "few terms", "in a loop"],
)
def test_guard_nothing_is_summed(build: Callable[[list[Collection]], Collection]) -> None:
    assert improved(build).fired["many terms summed"] == 0


def _expected(there: list[list[tuple[int, int]]]) -> Counter[tuple[int | None, ...]]:
    rows: list[tuple[int | None, ...]] = list(there[0])
    for other in there[1:]:
        rows = [
            (*row, partner)
            for row in rows
            for partner in ([b for a, b in other if a == row[-1]] if row[-1] is not None else []) or [None]
        ]
    return Counter(rows)


@pytest.mark.parametrize("terms_max", [TERMS_MAX, 1_000])
def test_law_left_joins_are_loops_over_rows(monkeypatch: pytest.MonkeyPatch, terms_max: int) -> None:
    monkeypatch.setattr(many_terms, "TERMS_MAX", terms_max)
    draw = random.Random(7)
    there: list[list[tuple[int, int]]] = [[] for _ in range(JOINS + 1)]

    def query(flow: timely.Dataflow) -> None:
        first, *others = tables(flow)
        chain(first, others).output("rows")

    with timely.connect(workers=2, embedded=True) as cluster:
        flow = cluster.install(query)
        for _ in range(4):
            for number, rows in enumerate(there):
                gone = draw.sample(rows, len(rows) // 2)
                new = [(draw.randrange(9), draw.randrange(9)) for _ in range(5)]
                flow.input(f"t{number}").remove(gone)
                flow.input(f"t{number}").insert(new)
                for row in gone:
                    rows.remove(row)
                rows.extend(new)
            flow.seal()
            answer = flow.output("rows").snapshot().to_pylist()
            assert Counter(tuple(row.values()) for row in answer) == _expected(there)
