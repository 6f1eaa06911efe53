"""How many pairs joins of published data have, spread over units and not; their READMEs say it, by DuckDB.

They lie outside of the repository, as `real_graphs.py` says; tests over them exist where they do.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa
import pytest
from house import ROOT

import differential as dd
import timely
from bench.skew.streams import linear_road, table
from differential import Collection, col

_DATA: Final = Path(os.environ.get("NAIAD_DATA", ROOT.parent / "shared" / "data"))


class Known(NamedTuple):
    """How many pairs there are."""

    near_days: int
    near_orders: int
    of_parts: int


_KNOWN: Final = {
    "tpch-sf0.02": Known(220_229, 2_175, 3_757_581),
    "jcch-sf0.02": Known(248_702, 596, 149_953_596),
}
TABLES: Final = [name for name in _KNOWN if (_DATA / name).exists()]
ROADS: Final = [name for name in ["linear-road-20min"] if (_DATA / name).exists()]
REPORTS_OF_120_SECONDS: Final = 5_792_308
BALANCES: Final = {
    "plain": None,
    "matrix": dd.Balance("matrix", units=8),
    "D-JB": dd.Balance("D-JB", units=6),
    "JB6": dd.Balance("JB6", units=8, groups=2),
}


@cache
def _lines(name: str) -> pa.Table:
    """Number, order, part, day, quantity, whether by truck, and whether there is no instruction."""
    orders, parts, quantity, day, instruct, mode = table(_DATA / name, "lineitem", 0, 1, 4, 10, 13, 14)
    first = dt.date(1992, 1, 1).toordinal()
    return pa.table(
        {
            "n": range(len(orders)),
            "order": map(int, orders),
            "part": map(int, parts),
            "day": [dt.date.fromisoformat(one).toordinal() - first for one in day],
            "quantity": map(float, quantity),
            "truck": [one == "TRUCK" for one in mode],
            "free": [one == "NONE" for one in instruct],
        }
    )


def _pairs(rows: pa.Table, schema: str, build: Callable[[Collection], Collection], workers: int = 1) -> int:
    """How many rows `build` makes of these."""

    def counted(flow: timely.Dataflow) -> None:
        build(dd.input(flow, "rows", schema)).agg(n=dd.count()).output("counted")

    with timely.connect(workers=workers, embedded=True) as cluster:
        flow = cluster.install(counted)
        flow.input("rows").insert(rows)
        flow.seal()
        (found,) = flow.output("counted").snapshot()["n"].to_pylist()
        flow.input("rows").remove(rows)
        flow.seal()
        assert flow.output("counted").snapshot()["n"].to_pylist() == [0]
        return int(found)


_LINES: Final = "n: int, order: int, part: int, day: int, quantity: float, truck: bool, free: bool"


@pytest.mark.parametrize("balance", BALANCES.values(), ids=BALANCES)
@pytest.mark.parametrize("name", TABLES)
def test_bands_of_orders_and_of_days(name: str, balance: dd.Balance | None) -> None:
    def near_orders(lines: Collection) -> Collection:
        few = lines.filter(col.truck & (col.quantity > 48)).select("order", "n")
        free = lines.filter(col.free).select(other=col.order, m=col.n)
        return few.theta_join(free, dd.band("order", "other", 1), balance=balance)

    def near_days(lines: Collection) -> Collection:
        few = lines.filter(col.truck & (col.quantity > 45)).select("day", "n")
        rest = lines.filter(~col.truck).select(other=col.day, m=col.n)
        return few.theta_join(rest, dd.band("day", "other", 1), balance=balance)

    assert _pairs(_lines(name), _LINES, near_orders, workers=2) == _KNOWN[name].near_orders
    assert _pairs(_lines(name), _LINES, near_days) == _KNOWN[name].near_days


@pytest.mark.parametrize("balance", ["plain", "D-JB"])
@pytest.mark.parametrize("name", TABLES)
def test_lines_of_the_same_part(name: str, balance: str) -> None:
    def of_parts(lines: Collection) -> Collection:
        return lines.select("part", "n").join(
            lines.select("part", m=col.n), on="part", balance=BALANCES[balance]
        )

    assert _pairs(_lines(name), _LINES, of_parts) == _KNOWN[name].of_parts


@pytest.mark.parametrize("balance", BALANCES.values(), ids=BALANCES)
@pytest.mark.parametrize("name", ROADS)
def test_reports_of_other_cars_on_the_same_lane(name: str, balance: dd.Balance | None) -> None:
    speed, lane, direction, car = linear_road(_DATA / name, 120)
    rows = pa.table({"speed": speed, "lane": lane, "direction": direction, "car": car, "n": range(len(car))})

    def others(reports: Collection) -> Collection:
        renamed = reports.select("speed", "lane", "direction", other=col.car, m=col.n)
        return reports.join(
            renamed, on=["speed", "lane", "direction"], where=col.car != col.other, balance=balance
        )

    schema = "speed: int, lane: int, direction: int, car: int, n: int"
    assert _pairs(rows, schema, others) == REPORTS_OF_120_SECONDS
