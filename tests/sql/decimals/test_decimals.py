"""Means and spreads of decimals are what DuckDB says of the rows as they are then.

Its own `avg` of decimals is a float; so it is asked for the exact quotient, in whole numbers of 128 bits:
halves away from zero, as Spark rounds.
"""

from __future__ import annotations

from decimal import Decimal

from hypothesis import example, given
from hypothesis import strategies as st
from reference.collection import accumulated_at
from reference.dataflow import Cluster
from sql.judge import Judge, differences

import differential as dd
from timely.building.dataflow import Dataflow

EPOCHS = 3
SCHEMA = dd.Schema.of("k: int, price: decimal(9, 3), tip: decimal(6, 1)?")

Row = tuple[object, ...]
Stays = tuple[Row, int, int]
"""A row, and the epochs in which it is there: from the first, up to and without the last."""


def _decimal(whole: int, scale: int) -> Decimal:
    return Decimal(whole).scaleb(-scale)


PRICES = st.integers(-999_999_999, 999_999_999).map(lambda whole: _decimal(whole, 3))
NEAR = st.integers(-3, 3).map(lambda whole: _decimal(whole, 3))
TIPS = st.one_of(st.none(), st.integers(-5, 5).map(lambda whole: _decimal(whole, 1)))
ROWS = st.tuples(st.integers(0, 2), st.one_of(NEAR, PRICES), TIPS)
STAYS = st.tuples(ROWS, st.integers(0, EPOCHS - 1), st.integers(1, EPOCHS)).filter(lambda it: it[1] < it[2])


def _build(flow: Dataflow) -> None:
    rows = dd.input(flow, "rows", SCHEMA)
    asked = {
        "price": dd.avg("price"),
        "tip": dd.avg("tip"),
        "both": dd.avg(dd.col.price * dd.col.tip),
        "spread": dd.variance("price"),
        "of_all": dd.stddev("tip", sample=False),
    }
    rows.group_by("k").agg(**asked).output("groups")
    rows.agg(**asked).output("all")


def _mean(of: str, digits: int) -> str:
    """The mean of a column, of so many digits behind the point."""
    total = f"CAST(sum(CAST({of} AS DECIMAL(26, {digits})) * {10**digits}) AS HUGEINT)"
    size = f"(2 * abs({total}) + count({of})) // (2 * count({of}))"
    unit = f"CAST({10.0**-digits:.{digits}f} AS DECIMAL(9, 8))"
    return f"CAST(sign({total}) * ({size}) AS DECIMAL(20, 0)) * {unit}"


ANSWERS = ", ".join(
    (_mean("price", 7), _mean("tip", 5), _mean("price * tip", 8), "var_samp(price)", "stddev_pop(tip)")
)


@given(st.lists(STAYS, max_size=12), st.integers(1, 3))
@example([((0, _decimal(1, 3), None), 0, 1), ((0, _decimal(-19994, 3), None), 0, 1)], 1)
@example([((0, _decimal(1, 3), None), 0, 2), ((0, _decimal(0, 3), None), 0, 3)] * 8, 2)
@example([((0, _decimal(whole, 3), _decimal(whole, 1)), 0, 1) for whole in (0, 0, 1)], 1)  # a third
def test_means_and_spreads_of_decimals_are_those_of_sql(contents: list[Stays], workers: int) -> None:
    cluster = Cluster(_build, workers=workers)
    for number, (row, first, stop) in enumerate(contents):
        cluster.change("rows", [(row, 1)], first, worker=number % workers)
        cluster.change("rows", [(row, -1)], stop, worker=(number + 1) % workers)
    cluster.seal(EPOCHS)
    cluster.run()
    judge = Judge()
    for epoch in range(EPOCHS):
        judge.tell("rows", SCHEMA, [row for row, first, stop in contents if first <= epoch < stop])
        for name, sql in (
            ("groups", f"SELECT k, {ANSWERS} FROM rows GROUP BY k"),
            ("all", f"SELECT {ANSWERS} FROM rows"),
        ):
            have = accumulated_at(cluster.changes(name), (epoch,))
            assert differences(have, judge.answer(sql)) == ([], [])
    judge.close()
