"""Ranges whose bounds are numbers of decimals, or intervals of days and times, as DuckDB has them."""

from __future__ import annotations

import datetime as dt
import itertools
import random
from collections import Counter
from collections.abc import Callable
from decimal import Decimal

import pytest
from sql.judge import Judge

import differential as dd
import timely
from differential import Schema, col
from differential.errors import ExpressionError, SchemaError

FRAMES = (
    "{0} preceding and current row", "{0} preceding and {0} following",
    "{0} following and unbounded following", "unbounded preceding and {0} preceding",
    "{0} preceding and unbounded following",
)  # fmt: skip
ORDERS = ("asc nulls first", "desc nulls last", "desc nulls first", "asc nulls last")
KINDS: dict[str, tuple[Callable[[int], object], list[str]]] = {
    "decimal(9, 2)?": (lambda n: Decimal(25 * n) / 100, ["1", "0.3"]),
    "date?": (
        lambda n: dt.date(2024, 2, 27) + dt.timedelta(n), ["interval 1 day", "interval 36 hour"]
    ),
    "timestamp?": (
        lambda n: dt.datetime(2024, 2, 27, 7 * n % 24, tzinfo=dt.UTC) + dt.timedelta(days=7 * n // 24),
        ["interval 1 day", "interval '1 day 4 hours'"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_bounds_are_those_of_duckdb(kind: str) -> None:
    rng = random.Random(3)
    value, bounds = KINDS[kind]
    schema = Schema.of(f"k: int, t: {kind}, v: int")
    rows = [(v % 2, None if v % 5 == 4 else value(rng.randrange(-5, 6)), v) for v in range(16)]
    texts = [
        f"select k, t, v, sum(v) over (partition by k order by t {order} range between "
        f"{frame.format(bound)}) as s from rows"
        for order, (frame, bound) in zip(
            itertools.cycle(ORDERS), itertools.product(FRAMES, bounds), strict=False
        )
    ]
    judge = Judge()

    def build(flow: timely.Dataflow) -> None:
        source = dd.input(flow, "rows", schema)
        for at, text in enumerate(texts):
            dd.sql(flow, text, dialect="duckdb", clock=None, rows=source).output(str(at))

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(build)
        for there in (rows, rows[3:]):
            flow.input("rows").insert(rows) if there is rows else flow.input("rows").remove(rows[:3])
            flow.seal(wait=True)
            judge.tell("rows", schema, there)
            for at, text in enumerate(texts):
                held = Counter(tuple(row.values()) for row in flow.output(str(at)).snapshot().to_pylist())
                assert held == judge.answer(text), text


def test_collections_take_lengths_of_time_and_decimals() -> None:
    def answers(schema: str, rows: list[tuple[object, ...]], start: Decimal | dt.timedelta) -> list[object]:
        def build(flow: timely.Dataflow) -> None:
            window = dd.input(flow, "rows", schema).over(by="t").range_between(start, 0)
            window.with_columns(n=dd.count()).output("out")

        with timely.connect(workers=1, embedded=True) as cluster:
            flow = cluster.install(build)
            flow.input("rows").insert(rows)
            flow.seal(wait=True)
            return sorted(row["n"] for row in flow.output("out").snapshot().to_pylist())

    days: list[tuple[object, ...]] = [(dt.date(2024, 2, day),) for day in (1, 2, 4)]
    assert answers("t: date", days, -dt.timedelta(days=1)) == [1, 1, 2]
    assert answers("t: decimal(9, 2)", [(Decimal("1.5"),), (Decimal("2.25"),)], Decimal("-0.75")) == [1, 2]
    rows = dd.input(timely.Dataflow("queries"), "rows", "t: int, d: date")
    with pytest.raises(ExpressionError, match="1 day, 0:00:00 is no bound of a range in the order of .* int"):
        rows.over(by="t").range_between(dt.timedelta(days=1), None)
    with pytest.raises(SchemaError, match="added to the one column of an order"):
        rows.over(by=["t", col.d]).range_between(dt.timedelta(days=1), None)
