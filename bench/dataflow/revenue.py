"""Two questions about the same sales, side by side: what are open orders worth, and what is sold at home?

Queries 3 and 5 of TPC-H, without order and limit. Money is whole numbers: hundredths of a cent of revenue.
"""

from __future__ import annotations

import gzip
from datetime import date
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.csv

import differential as dd
import timely
from differential import Collection, Expr, col

__all__ = ["TABLES", "arranged", "load", "side_by_side"]

TABLES: Final[dict[str, dict[str, type]]] = {
    "customer": {"custkey": int, "nationkey": int, "segment": str},
    "orders": {"orderkey": int, "custkey": int, "orderdate": int, "shippriority": int},
    "lineitem": {
        "orderkey": int, "linenumber": int, "suppkey": int, "shipdate": int, "cents": int, "discount": int,
    },
    "supplier": {"suppkey": int, "nationkey": int},
    "nation": {"nationkey": int, "nation": str, "regionkey": int},
    "region": {"regionkey": int, "region": str},
}  # fmt: skip

_PLACES: Final = {
    "customer": {"custkey": 0, "nationkey": 3, "segment": 6},
    "orders": {"orderkey": 0, "custkey": 1, "orderdate": 4, "shippriority": 7},
    "lineitem": {"orderkey": 0, "linenumber": 3, "suppkey": 2, "shipdate": 10, "cents": 5, "discount": 6},
    "supplier": {"suppkey": 0, "nationkey": 3},
    "nation": {"nationkey": 0, "nation": 1, "regionkey": 2},
    "region": {"regionkey": 0, "region": 1},
}
"""Which field of a line each column is."""

_DAY: Final = date(1995, 3, 15).toordinal()
_YEAR: Final = (date(1994, 1, 1).toordinal(), date(1995, 1, 1).toordinal())


def load(folder: Path, name: str) -> pa.Table:
    """A table of `tpch-sf0.02`: dates as days, money in cents, discounts in per cent."""
    with gzip.open(folder / f"{name}.tbl.gz", "rt") as lines:
        rows = [line.split("|") for line in lines]
    columns = {}
    for column, place in _PLACES[name].items():
        fields = [row[place] for row in rows]
        if column.endswith("date"):
            columns[column] = pa.array([date.fromisoformat(field).toordinal() for field in fields])
        elif column in ("cents", "discount"):
            columns[column] = pa.array([round(float(field) * 100) for field in fields])
        elif TABLES[name][column] is int:
            columns[column] = pa.array([int(field) for field in fields])
        else:
            columns[column] = pa.array(fields)
    return pa.table(columns)


def _revenue() -> Expr:
    return col.cents * (100 - col.discount)


def _open_orders(customer: Collection, orders: Collection, lineitem: Collection) -> Collection:
    """Query 3: what is still to be shipped of the orders of a segment, by order."""
    buyers = customer.filter(col.segment == "BUILDING").select("custkey")
    placed = orders.join(buyers, on="custkey").filter(col.orderdate < _DAY)
    lines = lineitem.join(placed, on="orderkey").filter(col.shipdate > _DAY)
    priced = lines.select("orderkey", "orderdate", "shippriority", revenue=_revenue())
    return priced.group_by("orderkey", "orderdate", "shippriority").agg(revenue=dd.sum("revenue"))


def _sold_at_home(
    customer: Collection,
    orders: Collection,
    lineitem: Collection,
    supplier: Collection,
    nation: Collection,
    region: Collection,
) -> Collection:
    """Query 5: what suppliers of a region sold in their own nations in a year, by nation."""
    placed = orders.join(customer, on="custkey").filter(
        (col.orderdate >= _YEAR[0]) & (col.orderdate < _YEAR[1])
    )
    lines = lineitem.join(placed, on="orderkey").select("suppkey", "nationkey", revenue=_revenue())
    local = lines.join(supplier, on=["suppkey", "nationkey"])
    there = nation.join(region.filter(col.region == "ASIA"), on="regionkey").select("nationkey", "nation")
    return local.join(there, on="nationkey").group_by("nation").agg(revenue=dd.sum("revenue"))


def _both(dataflow: timely.Dataflow, is_arranged: bool) -> None:
    tables = {name: dd.input(dataflow, name, columns) for name, columns in TABLES.items()}
    customer, orders, lineitem = tables["customer"], tables["orders"], tables["lineitem"]
    if is_arranged:
        orders, lineitem = orders.arrange("custkey"), lineitem.arrange("orderkey")
    _open_orders(customer, orders, lineitem).output("open orders")
    sold = _sold_at_home(customer, orders, lineitem, tables["supplier"], tables["nation"], tables["region"])
    sold.output("sold at home")


@timely.builder
def side_by_side(dataflow: timely.Dataflow) -> None:
    """Both queries as one would write them; their filters go to the inputs."""
    _both(dataflow, is_arranged=False)


@timely.builder
def arranged(dataflow: timely.Dataflow) -> None:
    """Both queries over arrangements of orders and lines, which the two share."""
    _both(dataflow, is_arranged=True)
