"""How long does query 3 of TPC-H take to load, and to follow orders that come and go with their lines?

Three tables, a filter on each, two joins, a sum and the first ten rows.
"""

from __future__ import annotations

import numpy as np

import differential as dd
import timely
from bench import workloads
from bench.dataflow.job import Job, table_of
from differential import col

__all__ = ["build", "job"]


@timely.builder
def build(flow: timely.Dataflow) -> None:
    """The ten orders of one segment with the most revenue that is not shipped yet."""
    customers = dd.input(flow, "customers", "customer: int, segment: int")
    orders = dd.input(flow, "orders", "order: int, customer: int, day: int, priority: int")
    lines = dd.input(flow, "lines", "order: int, shipped: int, revenue: int")
    chosen = customers.where(col.segment == 0).select("customer")
    booked = orders.where(col.day < workloads.BOOKED_DAY).join(chosen, on="customer")
    is_open = lines.where(col.shipped > workloads.BOOKED_DAY).select("order", "revenue")
    totals = booked.join(is_open, on="order").group_by("order", "day", "priority")
    first = totals.agg(revenue=dd.sum("revenue")).order_by(col.revenue.desc(), "day", "order").limit(10)
    first.output("first")


def job(orders: int, epochs: int, updates: int) -> Job:
    """The workload of this size."""
    drawn = workloads.q3(orders, epochs, updates)
    numbers = np.arange(drawn.schedule.rows)
    return Job(
        f"q3 {orders} {epochs} {updates}",
        build,
        "first",
        lambda columns, diffs: workloads.check_q3(columns["order"], columns["revenue"], diffs),
        drawn.schedule,
        changing={
            "orders": table_of(
                order=numbers, customer=drawn.customer, day=drawn.day, priority=np.zeros_like(numbers)
            ),
            "lines": table_of(
                order=np.repeat(numbers, workloads.LINES_OF_ORDER),
                shipped=drawn.shipped,
                revenue=drawn.revenue,
            ),
        },
        fixed={"customers": table_of(customer=np.arange(len(drawn.segment)), segment=drawn.segment)},
        multiples={"lines": workloads.LINES_OF_ORDER},
    )
