"""What is joined: each query as one join after another, each a pair of streams.

What comes out of a join goes into the next one at the later epoch of the two rows. Tables that fit into a
pocket (nation, region) are joined to `supplier` beforehand and are not counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np

from progress.compiled.arrays import Int64s

from .streams import Stream, linear_road, stream, table, zipf_orderkeys

__all__ = ["Join", "band", "lines_of_orders", "lrb", "q3", "q5", "self_join"]


@dataclass(frozen=True)
class Join:
    """Two streams whose keys are equal, or `reach` apart at most."""

    left: Stream
    right: Stream
    reach: int = 0


def lines_of_orders(folder: Path, z: float | None, exchanged: bool = False) -> list[Join]:
    """lineitem ⋈ orders; with `z` the orders of lineitems are drawn, else they are as in the file."""
    orders = _numbers(folder, "orders", 0)
    keys = _orderkeys(folder, z, exchanged)
    return [Join(stream(keys, np.arange(keys.shape[0])), stream(orders, _numbers(folder, "orders", 1)))]


def self_join(folder: Path, z: float) -> list[Join]:
    """Lineitems of the same order, with drawn orders."""
    lines = lines_of_orders(folder, z)[0].left
    return [Join(lines, lines)]


def q3(folder: Path, z: float | None) -> list[Join]:
    """(customer ⋈ orders) ⋈ lineitem, with the filters of query 3."""
    day = date(1995, 3, 15).isoformat()
    segment, ordered = table(folder, "customer", 6)[0], np.array(table(folder, "orders", 4)[0])
    shipped = np.array(table(folder, "lineitem", 10)[0])
    buyers = _stream_of(_numbers(folder, "customer", 0), np.array(segment) == "BUILDING")
    placed = _orders(folder, ordered < day)
    lines = _lines(folder, z, shipped > day)
    first = Join(placed, buyers)
    return [first, Join(lines, _joined(first))]


def q5(folder: Path, z: float | None) -> list[Join]:
    """((customer ⋈ orders) ⋈ lineitem) ⋈ supplier, with the filters of query 5."""
    ordered = np.array(table(folder, "orders", 4)[0])
    placed = _orders(folder, (ordered >= "1994-01-01") & (ordered < "1995-01-01"))
    customers = stream(_numbers(folder, "customer", 0), _numbers(folder, "customer", 3))
    first = Join(placed, customers)
    lines = _lines(folder, z, np.ones(_numbers(folder, "lineitem", 0).shape[0], np.bool_))
    second = Join(lines, _joined(first, nation=True))
    asia = _nations_of(folder, "ASIA")
    nations = _numbers(folder, "supplier", 3)
    near = np.isin(nations, asia)
    suppliers = _numbers(folder, "supplier", 0)[near] * 100 + nations[near]
    left, right, epoch = _pairs(second)
    suppkey = second.left.words[2][left]
    sold = stream(suppkey * 100 + second.right.words[1][right], second.left.words[1][left], epoch=epoch)
    return [first, second, Join(sold, stream(suppliers))]


def band(folder: Path, z: float | None) -> list[Join]:
    """Band of the third seed: lineitems whose orders are one apart at most; TRUCK and quantity > 48, and
    NONE.
    """
    quantity, instruct, mode = table(folder, "lineitem", 4, 13, 14)
    few = (np.array(mode) == "TRUCK") & (np.array(quantity, np.float64) > 48)
    none = np.array(instruct) == "NONE"
    return [Join(_lines(folder, z, few), _lines(folder, z, none), reach=1)]


def lrb(folder: Path, seconds: int) -> list[Join]:
    """Reports of the same speed, lane and direction. That the cars differ is looked at in each pair."""
    speed, lane, direction, car = linear_road(folder, seconds)
    reports = stream((speed * 8 + lane) * 2 + direction, car, np.arange(car.shape[0]))
    return [Join(reports, reports)]


def _numbers(folder: Path, name: str, place: int) -> Int64s:
    return np.array(table(folder, name, place)[0], np.int64)


def _orderkeys(folder: Path, z: float | None, exchanged: bool = False) -> Int64s:
    keys = _numbers(folder, "lineitem", 0)
    if z is None:
        return keys
    return zipf_orderkeys(z, keys.shape[0], _numbers(folder, "orders", 0), exchanged)


def _lines(folder: Path, z: float | None, chosen: np.typing.NDArray[np.bool_]) -> Stream:
    keys = _orderkeys(folder, z)
    number = np.arange(keys.shape[0])
    return _stream_of(keys, chosen, number, _numbers(folder, "lineitem", 2))


def _orders(folder: Path, chosen: np.typing.NDArray[np.bool_]) -> Stream:
    return _stream_of(_numbers(folder, "orders", 1), chosen, _numbers(folder, "orders", 0))


def _stream_of(key: Int64s, chosen: np.typing.NDArray[np.bool_], *others: Int64s) -> Stream:
    return stream(key[chosen], *(other[chosen] for other in others))


def _nations_of(folder: Path, region: str) -> Int64s:
    regions = dict(zip(*table(folder, "region", 1, 0), strict=True))
    keys, of = table(folder, "nation", 0, 2)
    return np.array([int(key) for key, number in zip(keys, of, strict=True) if number == regions[region]])


def _pairs(join: Join) -> tuple[Int64s, Int64s, Int64s]:
    """(left row, right row, epoch) of all pairs with equal keys."""
    order = np.argsort(join.right.key, kind="stable")
    sorted_keys = join.right.key[order]
    start = np.searchsorted(sorted_keys, join.left.key, side="left")
    count = np.searchsorted(sorted_keys, join.left.key, side="right") - start
    left = np.repeat(np.arange(join.left.rows), count)
    within = np.arange(left.shape[0]) - np.repeat(np.cumsum(count) - count, count)
    right = order[np.repeat(start, count) + within]
    return left, right, np.maximum(join.left.epoch[left], join.right.epoch[right])


def _joined(join: Join, nation: bool = False) -> Stream:
    """What comes out of orders ⋈ customer: by order, with the customer's nation if that is asked for."""
    left, right, epoch = _pairs(join)
    others = [join.right.words[1][right]] if nation else []
    return stream(join.left.words[1][left], *others, epoch=epoch)
