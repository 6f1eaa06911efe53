"""bounds.py: when rows are kept in the order of what they are compared with. That meanings stay:
`test_improving.py`, and `test_changes_*` here on workers.

fires_*     and reads no pair that it need not
stays_*     away where it could not be right, or would cost more
changes_*   of the few rows go through the rows between the old value and the new one, on one worker and more
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import pytest

import differential as dd
import timely
from differential import Collection, col
from differential.plan import nodes as n
from differential.plan.building import Plan
from differential.plan.improving import improve
from differential.plan.rewriting import beneath
from timely.building.dataflow import Dataflow

Query = Callable[[Collection, Collection], Collection]
ROWS = "k: int, x: int, y: int?, f: float, t: string, d: decimal(6, 2)"


def bounded(query: Query) -> str:
    """The rows between bounds in the better plan of a query, of the rows and of few rows."""
    flow = Dataflow("tested")
    rows = dd.input(flow, "rows", ROWS)
    few = dd.input(flow, "few", "a: int, b: int, g: float, e: decimal(6, 2)").top_k(3, by="a")
    query(rows, few).output("out")
    plan = Plan.of(flow)
    better = improve(plan.roots, plan.add_rewritten, lambda node: plan.sites.get(node.digest, ()))
    return "; ".join(node.describe() for node in beneath(better.roots) if isinstance(node, n.Bounded))


BY = "rows in the order of "


@pytest.mark.parametrize(
    ("query", "described"),
    [
        (lambda r, f: r.cross_join(f).filter(col.x > col.a).select("k"), f"{BY}x, x > a"),
        (lambda r, f: r.theta_join(f, col.a >= col.x).select("k", "x"), f"{BY}x, x <= a"),
        (
            lambda r, f: f.cross_join(r).filter(col.x.is_between(col.a, col.b)).select("k"),
            f"{BY}x, x >= a and x <= b (1)",
        ),
        (lambda r, f: r.cross_join(f).filter(col.y < col.a).select("y"), f"{BY}(compared), (compared) < a"),
        (lambda r, f: r.cross_join(f).filter(col.x > col.g).select("k"), f"{BY}(compared), (compared) > g"),
        (lambda r, f: r.cross_join(f).filter(col.d == col.e).select("k"), f"{BY}d, d == e"),
        (
            lambda r, f: (
                r.cross_join(f.select(**{"a (1)": col.a, "a": col.b}))
                .filter((col.x > col("a (1)")) & (col.x < col.a))
                .select("k")
            ),
            f"{BY}x, x > a (1) and x < a (2)",
        ),
        (
            lambda r, f: r.cross_join(f).filter(col.f * 2.0 > col.g).agg(n=dd.count()),
            f"{BY}(compared), (compared) > g",
        ),
    ],
)
def test_fires_where_the_few_are_only_compared(query: Query, described: str) -> None:
    assert bounded(query) == described


@pytest.mark.parametrize(
    "query",
    [
        lambda r, f: r.cross_join(f).filter(col.x > col.a).select("k", "a"),
        lambda r, f: r.cross_join(f).filter(col.x > col.a + 1).select("k"),  # the sum may leave 64 bits
        lambda r, f: r.cross_join(f).filter((col.x > col.a) | (col.k > col.b)).select("k"),
        lambda r, f: r.cross_join(f).filter((col.x > col.a) & (col.k > col.b)).select("k"),
        lambda r, f: r.cross_join(f).filter(col.x != col.a).select("k"),
        lambda r, f: r.cross_join(f).filter((col.x > col.g) & (col.x > col.a)).select("k"),
        lambda r, f: r.cross_join(f.select(s=dd.lit("x"))).filter(col.t > col.s).select("k"),
        lambda r, f: r.cross_join(r.select(z=col.x)).filter(col.x > col.z).select("k"),
        lambda r, f: r.select("k").cross_join(f),
    ],
)
def test_stays_away(query: Query) -> None:
    assert not bounded(query)


def test_stays_away_where_others_read_the_pairs() -> None:
    def twice(rows: Collection, few: Collection) -> Collection:
        pairs = rows.cross_join(few)
        return pairs.filter(col.x > col.a).select("k").concat(pairs.filter(col.x < col.b).select("k"))

    assert not bounded(twice)


def above(flow: timely.Dataflow) -> None:
    """What few rows let through."""
    rows = dd.input(flow, "rows", "k: int, x: float?")
    limits = dd.input(flow, "limits", "low: int, high: float")
    first = limits.top_k(2, by="low")
    rows.cross_join(first).filter(col.x >= col.low).select("k", "x").output("above")
    rows.cross_join(first).filter((col.high > col.x) & (col.x > col.low)).select("k").output("between")
    rows.cross_join(limits.agg(most=dd.max("high"))).filter(col.x <= col.most).select("k").output("below")


VALUES = [None, -1.5, 0.0, -0.0, 1.0, 2.0, 2.5, float("nan"), float("inf"), -float("inf"), 2.0**53, 7.0]
LIMITS = [
    (low, high)
    for low in (-(2**63), -1, 0, 1, 2, 2**53 + 1, 2**63 - 1)
    for high in (-1.0, 2.0, 7.5, float("nan"))
]


def at_least(one: float, other: float) -> bool:
    """NaN equals itself, and is above all."""
    return one != one or (other == other and one >= other)


def expected(
    rows: Counter[tuple[int, float | None]], limits: Counter[tuple[int, float]]
) -> dict[str, Counter[object]]:
    few = sorted(limits.elements(), key=lambda row: (row[0], str(row[1]) == "nan", row[1]))[:2]
    highs = [high for _, high in limits.elements()]
    found: dict[str, Counter[object]] = {name: Counter() for name in ("above", "between", "below")}
    for (k, x), times in rows.items():
        if x is None:
            continue
        for low, high in few:
            if at_least(x, float(low)):
                found["above"][k, str(x + 0.0)] += times
            if not at_least(x, high) and not at_least(float(low), x):
                found["between"][k] += times
        if highs and any(at_least(high, x) for high in highs):
            found["below"][k] += times
    return found


@pytest.mark.parametrize("workers", [1, 3])
def test_changes_are_what_pairs_would_be(workers: int, seed: int) -> None:
    rng = random.Random(f"{seed} {workers}")
    rows: Counter[tuple[int, float | None]] = Counter()
    limits: Counter[tuple[int, float]] = Counter()
    with timely.connect(workers=workers, embedded=True) as cluster:
        flow = cluster.install(above)
        for _ in range(25):
            for name, there, new in (
                (
                    "rows",
                    rows,
                    [(rng.randrange(9), rng.choice(VALUES)) for _ in range(rng.choice([0, 1, 30]))],
                ),
                ("limits", limits, [rng.choice(LIMITS) for _ in range(rng.choice([0, 0, 1, 2]))]),
            ):
                gone = [row for row in there.elements() if rng.random() < 0.2]
                for row in gone:
                    there[row] -= 1
                flow.input(name).remove(gone)
                flow.input(name).insert(new)
                there.update(new)
            flow.seal()
            if rng.random() < 0.6:
                continue
            wanted = expected(rows, limits)
            for name, counts in wanted.items():
                got = flow.output(name).snapshot().to_pylist()
                of = [(r["k"], str(r["x"] + 0.0)) for r in got] if name == "above" else [r["k"] for r in got]
                assert Counter(of) == +counts, name


def test_changes_touch_what_lies_between() -> None:
    """As many rows go through the stages behind it as lie between the old limit and the new one."""

    def query(flow: timely.Dataflow) -> None:
        rows = dd.input(flow, "rows", "x: int")
        limit = dd.input(flow, "limit", "a: int").agg(limit=dd.max("a"))
        rows.cross_join(limit).filter(col.x > col.limit).select("x").output("out")

    with timely.connect(workers=2, embedded=True) as cluster:
        flow = cluster.install(query)
        flow.input("rows").insert([(x,) for x in range(3_000)])
        flow.input("limit").insert([(1_000,)])
        flow.seal(wait=True)
        before = sent(cluster)
        flow.input("limit").insert([(1_007,)])
        flow.seal(wait=True)
        assert Counter(row["diff"] for row in flow.output("out").changes(1).to_pylist()) == {-1: 7}
        assert 7 <= sent(cluster) - before < 100


def sent(cluster: timely.Cluster) -> int:
    """Rows that stages have sent."""
    return sum(each["rows"] for worker in cluster.stats() for each in worker["dataflows"][0]["connectors"])
