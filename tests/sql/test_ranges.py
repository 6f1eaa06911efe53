"""Ranges with bounds in every order, as DuckDB has them.

NaN and infinities are in `test_value_frames.py`: beside them DuckDB 1 gives now and then another mean than
its own sum and count.
"""

from __future__ import annotations

import datetime as dt
import itertools
import math
import random
from collections import Counter
from collections.abc import Callable
from decimal import Decimal

import pytest
from sql.judge import Judge, differences

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
    "decimal(36, 2)?": (
        lambda n: Decimal(n % 3 - 1) * 2**64 / 100 + Decimal(n - n % 2) / 4, ["0.5", "92233720368547758.07"]
    ),
    "float?": (lambda n: (n / 4, 7.5, -1e300, 1e300)[max(0, n - 2)], ["0.25", "1.1", "1e300", "0"]),
    "date?": (
        lambda n: dt.date(2024, 2, 27) + dt.timedelta(n), ["interval 1 day", "interval 36 hour"]
    ),
    "date ?": (
        lambda n: dt.date(2024, 2, 28) + dt.timedelta(10 * n + n // 2),
        ["interval 1 month", "interval 1 year"],
    ),
    "timestamp ?": (
        lambda n: dt.datetime(2024, 1, 31 - n % 3, 7 * n % 24, tzinfo=dt.UTC) + dt.timedelta(30 * (n // 3)),
        ["interval 1 month", "interval '1 year 1 month'"],
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
        "select k, t, v, sum(v) over w as s, min(v) over w as l, max(v * 3 % 7) over w as m, "
        f"count(*) over w as n from rows window w as (partition by k order by t {order} range between "
        f"{frame.format(bound)})"
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
                assert differences(held, judge.answer(text)) == ([], []), text


def test_collections_take_lengths_of_time_and_decimals() -> None:
    def answers(schema: str, rows: list[tuple[object, ...]], start: object) -> list[object]:
        def build(flow: timely.Dataflow) -> None:
            window = dd.input(flow, "rows", schema).over(by="t").range_between(start, 0)  # type: ignore[arg-type]
            window.with_columns(n=dd.count()).output("out")

        with timely.connect(workers=1, embedded=True) as cluster:
            flow = cluster.install(build)
            flow.input("rows").insert(rows)
            flow.seal(wait=True)
            return sorted(row["n"] for row in flow.output("out").snapshot().to_pylist())

    days: list[tuple[object, ...]] = [(dt.date(2024, 2, day),) for day in (1, 2, 4)]
    assert answers("t: date", days, -dt.timedelta(days=1)) == [1, 1, 2]
    assert answers("t: decimal(9, 2)", [(Decimal("1.5"),), (Decimal("2.25"),)], Decimal("-0.75")) == [1, 2]
    assert answers("t: float", [(0.1,), (0.2,), (0.4,)], -0.25) == [1, 2, 2]
    assert answers("t: float", [(1.5,), (3.0,)], -2) == [1, 2]
    assert answers("t: float", [(0.0,), (-0.0,), (3.0,)], 0.0) == [1, 2, 2]
    assert answers("t: float", [(1.5,), (3.0,)], Decimal(0)) == [1, 1]
    wide: list[tuple[object, ...]] = [(Decimal(2**64),), (Decimal(2**64 + 1),)]
    assert answers("t: decimal(38, 0)", wide, -1) == answers("t: decimal(38, 0)", wide, Decimal(-1)) == [1, 2]
    ends = [(dt.date(2024, 1, 31),), (dt.date(2024, 2, 29),), (dt.date(2024, 3, 30),)]
    assert answers("t: date", list(ends), dd.months(-1)) == [1, 2, 2]


def test_bounds_that_cannot_be_added_are_refused() -> None:
    rows = dd.input(timely.Dataflow("queries"), "rows", "t: int, d: date, f: float, w: decimal(38, 0)")
    for by, start, stop, message in (
        ("t", dd.months(-1), 0, "months are no bound of a range in the order of a column of type int"),
        ("d", dd.months(-1), dt.timedelta(1), "one bound of a range is in months, and the other is not"),
        ("f", dt.timedelta(-1), 0, "is no bound of a range in the order of a column of type float"),
        ("f", -math.inf, 0, "a float that is finite is needed"),
        ("w", -(2**63), 0, "at most 18 digits"),
    ):
        with pytest.raises(ExpressionError, match=message):
            rows.over(by=by).range_between(start, stop)  # type: ignore[arg-type]  # of several types
    with pytest.raises(ExpressionError, match=r"months\(1.5\) .* takes whole numbers up to 120,000"):
        dd.months(1.5)  # type: ignore[arg-type]  # what is refused
    assert (
        "range_between(dd.months(-1), 0)"
        in rows.over(by="d").range_between(dd.months(-1), 0).with_columns(n=dd.count()).explain()
    )
    rows = dd.input(timely.Dataflow("queries"), "rows", "t: int, d: date")
    with pytest.raises(ExpressionError, match="1 day, 0:00:00 is no bound of a range in the order of .* int"):
        rows.over(by="t").range_between(dt.timedelta(days=1), None)
    with pytest.raises(SchemaError, match="added to the one column of an order"):
        rows.over(by=["t", col.d]).range_between(dt.timedelta(days=1), None)
