"""What does a change cost in one large group, where what is near it in time decides?

One key with N rows: session windows of ten rows each, and an as-of join of N orders with a price for every
ten. A row goes, and comes back: one of a session, which falls in two without it; one of the orders; one of
the prices. Two shapes are made to lose, as much is near and has to be gone through: one session of all rows,
and one price for all orders. Seconds are those of this process (CPU time, for the machine may have other
work), from the rows handed over to the answer being known; the load is counted apart.

    python -m bench.dataflow.near_in_time [--rows 400000] [--changes 20] [--only sessions]

One line of a Markdown table for each shape.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pyarrow as pa

import differential as dd
import timely

__all__ = ["SHAPES", "Cost", "measured"]

NEAR = 10
"""Rows of a session, orders between two prices."""
STEP = 6
"""From a row to the next of its session: less than ten, and two of them are more."""


class Shape(NamedTuple):
    """A query, its inputs of N rows, and which of these a change is of."""

    build: Callable[[timely.Dataflow], None]
    tables: Callable[[int], dict[str, pa.Table]]
    changes: str


class Cost(NamedTuple):
    """Seconds to load and of each change; rows of the answer that a change is, at most."""

    load: float
    each: list[float]
    rows: int


def sessions(dataflow: timely.Dataflow) -> None:
    """Rows with the session that they are in."""
    rows = dd.input(dataflow, "rows", "key: int, at: int")
    rows.window("at", dd.session(NEAR, by="key")).output("answer")


def prices_of_orders(dataflow: timely.Dataflow) -> None:
    """Orders with the price at their time."""
    orders = dd.input(dataflow, "orders", "key: int, at: int")
    prices = dd.input(dataflow, "prices", "key: int, since: int")
    orders.asof_join(prices, on="key", left_time="at", right_time="since").output("answer")


def _column(name: str, times: np.typing.NDArray[np.int64]) -> pa.Table:
    return pa.table({"key": np.zeros(len(times), np.int64), name: times})


def in_sessions(rows: int) -> dict[str, pa.Table]:
    """Ten rows, and a pause."""
    return {"rows": _column("at", STEP * np.arange(rows) + 2 * NEAR * (np.arange(rows) // NEAR))}


def in_one_session(rows: int) -> dict[str, pa.Table]:
    """No pause."""
    return {"rows": _column("at", STEP * np.arange(rows))}


def with_prices(rows: int) -> dict[str, pa.Table]:
    """A price for every ten orders."""
    return {"orders": _column("at", np.arange(rows)), "prices": _column("since", np.arange(0, rows, NEAR))}


def with_one_price(rows: int) -> dict[str, pa.Table]:
    """A price for all orders."""
    return {"orders": _column("at", np.arange(rows)), "prices": _column("since", np.zeros(1, np.int64))}


SHAPES: dict[str, Shape] = {
    "sessions of ten rows": Shape(sessions, in_sessions, "rows"),
    "as-of join, an order": Shape(prices_of_orders, with_prices, "orders"),
    "as-of join, the price of ten orders": Shape(prices_of_orders, with_prices, "prices"),
    "one session of all rows": Shape(sessions, in_one_session, "rows"),
    "as-of join, the price of all orders": Shape(prices_of_orders, with_one_price, "prices"),
}


def measured(shape: Shape, rows: int, changes: int) -> Cost:
    """Load `rows` rows, and take one from the middle and give it back, `changes` times in all."""
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(timely.builder(shape.build))
        answer = flow.output("answer")
        begin = time.process_time()
        tables = shape.tables(rows)
        for name, table in tables.items():
            flow.input(name).insert(table)
        loaded = flow.seal()
        flow.wait(loaded)
        load = time.process_time() - begin
        answer.forget(loaded + 1)
        changing, table = flow.input(shape.changes), tables[shape.changes]
        some = np.random.default_rng(1).integers(len(table) // 4, 1 + 3 * len(table) // 4, changes)
        each: list[float] = []
        most = 0
        for change in range(changes):
            one = table.slice(int(some[change // 2]), 1)
            begin = time.process_time()
            (changing.insert if change % 2 else changing.remove)(one)
            flow.seal(wait=True)
            each.append(time.process_time() - begin)
            most = max(most, len(answer.changes()))
            answer.forget()
    return Cost(load, each, most)


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--changes", type=int, default=20)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    print("| shape | rows | load, s | a change, ms: median, worst | rows of the answer that it changes |")
    print("|---|---|---|---|---|")
    for name, shape in SHAPES.items():
        if options.only not in name:
            continue
        measured(shape, 200, 2)  # kernels are compiled, or loaded
        cost = measured(shape, options.rows, options.changes)
        print(
            f"| {name} | {options.rows:,} | {cost.load:.1f} | {1000 * statistics.median(cost.each):.2f}, "
            f"{1000 * max(cost.each):.1f} | {cost.rows:,} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
