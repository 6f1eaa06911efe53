"""Joins of skewed streams under any scheme: Q3 and Q5 of TPC-H, Band and LRB, epoch by epoch.

    python examples/spread.py q3 --scheme D-JB --skew 1.2
    python examples/spread.py lrb --scheme JB --units 8 --workers 2 --times

    q3     orders of one group of customers that were not shipped on a day: the ten greatest sums
    q5     purchases from suppliers of the customer's own nation, for three nations
    band   pairs of lines whose orders are next to each other
    lrb    pairs of cars that drive alike: the same speed, lane and direction

Schemes and their settings: docs/skew_joins.md; "plain" is the join without any. The answer is the same under
each; only the place of the work differs. Rows are made up, numbers throughout. Those of lines follow a power
law: the order of rank r has a share proportional to r to the power of minus `--skew`.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import differential as dd
import timely
from differential import Collection, col

DAY = 1_169
"""The day of query 3, counted from the first one."""
YEAR = range(731, 1_096)
"""The days of query 5."""
NATIONS, NEAR = 10, 3
"""The number of nations, and the number of them, from the first, that query 5 is about."""

SCHEMAS = {
    "customers": "customer: int, segment: int, nation: int",
    "orders": "order: int, customer: int, ordered: int",
    "lines": "line: int, order: int, supplier: int, quantity: int, cents: int, reduced: int, shipped: int",
    "suppliers": "supplier: int, nation: int",
    "reports": "report: int, car: int, speed: int, lane: int, direction: int",
}
Inputs = Mapping[str, Collection]
Balance = dd.Balance | None


def q3(inputs: Inputs, balance: Balance) -> Collection:
    """The ten orders of greatest sum that a segment has placed before the day, of lines shipped behind it."""
    buyers = inputs["customers"].filter(col.segment == 1).select("customer")
    placed = inputs["orders"].filter(col.ordered < DAY).join(buyers, on="customer", balance=balance)
    late = _sold(inputs["lines"].filter(col.shipped > DAY))
    joined = late.join(placed.select("order", "ordered"), on="order", balance=balance)
    sums = joined.group_by("order", "ordered").agg(sum=dd.sum("paid"))
    return sums.order_by(col.sum.desc(), "order").limit(10)


def q5(inputs: Inputs, balance: Balance) -> Collection:
    """Sums of purchases within a nation in a year, by nation."""
    orders = inputs["orders"].filter((col.ordered >= YEAR.start) & (col.ordered < YEAR.stop))
    customers = inputs["customers"].select("customer", "nation")
    placed = orders.join(customers, on="customer", balance=balance).select("order", "nation")
    sold = _sold(inputs["lines"]).join(placed, on="order", balance=balance)
    near = inputs["suppliers"].filter(col.nation < NEAR)
    return (
        sold.join(near, on=["supplier", "nation"], balance=balance).group_by("nation").agg(sum=dd.sum("paid"))
    )


def band(inputs: Inputs, balance: Balance) -> Collection:
    """The number of pairs of a large line and one that was not reduced whose orders differ by one at most."""
    large = inputs["lines"].filter(col.quantity > 45).select("line", "order")
    whole = inputs["lines"].filter(col.reduced == 0).select(line_2=col.line, order_2=col.order)
    pairs = large.theta_join(whole, dd.band("order", "order_2", 1), balance=balance)
    return pairs.agg(pairs=dd.count())


def lrb(inputs: Inputs, balance: Balance) -> Collection:
    """The number of pairs of reports of different cars with the same speed and direction, by lane."""
    reports = inputs["reports"]
    others = reports.select("speed", "lane", "direction", car_2=col.car, report_2=col.report)
    alike = ["speed", "lane", "direction"]
    pairs = reports.join(others, on=alike, where=col.car != col.car_2, balance=balance)
    return pairs.group_by("lane").agg(pairs=dd.count())


def _sold(lines: Collection) -> Collection:
    return lines.select("line", "order", "supplier", paid=col.cents * (100 - col.reduced))


QUERIES: dict[str, tuple[tuple[str, ...], Callable[[Inputs, Balance], Collection]]] = {
    "q3": (("customers", "orders", "lines"), q3),
    "q5": (("customers", "orders", "lines", "suppliers"), q5),
    "band": (("lines",), band),
    "lrb": (("reports",), lrb),
}
"""The inputs of each query, and the query."""


def made_up(rows: int, skew: float, seed: int = 2018) -> dict[str, pa.Table]:
    """All inputs, with `rows` lines and `rows` reports; the same ones each time."""
    draw = np.random.Generator(np.random.PCG64(seed))
    orders, customers, suppliers = max(rows // 4, 1), max(rows // 40, 1), max(rows // 100, 10)
    share = np.arange(1, orders + 1, dtype=np.float64) ** -skew
    ranked = draw.permutation(orders)

    def below(count: int, stop: int) -> np.typing.NDArray[np.int64]:
        return draw.integers(0, stop, count)

    columns = {
        "customers": (np.arange(customers), below(customers, 5), below(customers, NATIONS)),
        "orders": (np.arange(orders), below(orders, customers), below(orders, 2_400)),
        "lines": (
            np.arange(rows),
            ranked[draw.choice(orders, rows, p=share / share.sum())],
            below(rows, suppliers),
            1 + below(rows, 50),
            100 + below(rows, 100_000),
            below(rows, 11),
            below(rows, 2_500),
        ),
        "suppliers": (np.arange(suppliers), below(suppliers, NATIONS)),
        "reports": (
            np.arange(rows),
            below(rows, max(rows // 8, 1)),
            draw.binomial(100, 0.5, rows),
            below(rows, 5),
            below(rows, 2),
        ),
    }
    return {
        name: pa.table(
            dict(zip([part.split(":")[0].strip() for part in schema.split(",")], columns[name], strict=True))
        )
        for name, schema in SCHEMAS.items()
    }


@timely.builder
def answered(flow: timely.Dataflow, query: str, scheme: str = "plain", units: int = 16) -> None:
    """The output `answer` of a query; a scheme spreads all its joins."""
    names, build = QUERIES[query]
    balance = None if scheme == "plain" else dd.Balance(scheme, units=units)
    build({name: dd.input(flow, name, SCHEMAS[name]) for name in names}, balance).output("answer")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Joins of skewed streams, spread over units.")
    parser.add_argument("query", choices=list(QUERIES))
    parser.add_argument("--scheme", default="plain", choices=["plain", "hash", "JB", "JB6", "D-JB", "matrix"])
    parser.add_argument("--units", type=int, default=16)
    parser.add_argument("--skew", type=float, default=1.0)
    parser.add_argument("--rows", type=int, default=4_000, help="lines, or reports")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--workers", type=int, default=0, help="processes; 0: within this one")
    parser.add_argument("--times", action="store_true", help="say how long epochs took, on the error stream")
    options = parser.parse_args()
    tables = made_up(options.rows, options.skew)
    with timely.connect(workers=options.workers or 1, embedded=options.workers == 0) as cluster:
        flow = cluster.install(
            "examples.spread:answered", query=options.query, scheme=options.scheme, units=options.units
        )
        seconds: list[float] = []
        for epoch in range(options.epochs):
            begun = time.perf_counter()
            for name in QUERIES[options.query][0]:
                table = tables[name]
                first, last = (table.num_rows * at // options.epochs for at in (epoch, epoch + 1))
                flow.input(name).insert(table.slice(first, last - first))
            flow.seal(wait=True)
            seconds.append(time.perf_counter() - begun)
        answer = flow.output("answer").snapshot()
    print(*(f"{name:>10}" for name in answer.column_names))
    for row in answer.to_pylist():
        print(*(f"{value:>10}" for value in row.values()))
    if options.times:
        each = sorted(1_000 * one for one in seconds)
        sys.stderr.write(
            f"an epoch: {statistics.median(each):.1f} ms at the median, {each[-1]:.1f} at most\n"
        )


if __name__ == "__main__":
    main()
