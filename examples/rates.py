"""Orders and rates: a join of two inputs that complete epochs of their own.

    python examples/rates.py [--workers 2]

Orders come in every hour; rates come late, and for several hours at once. An order has the newest rate of its
hour or of an earlier one, so it waits for the rates. The count of orders does not wait, as it reads no rates.
"""

from __future__ import annotations

import argparse
import sys
from bisect import bisect_right, insort
from collections import defaultdict
from typing import cast

import timely

ORDERS = (
    (("ada", "EUR", 10), ("bob", "GBP", 20)),
    (("cy", "EUR", 30),),
    (("bob", "GBP", 5), ("ada", "GBP", 1)),
    (("cy", "EUR", 7),),
)
"""By hour: customer, currency, amount."""
RATES = ((0, "EUR", 2), (0, "GBP", 3), (2, "GBP", 4), (3, "EUR", 5))
"""Hour, currency, rate from that hour on."""
Time = tuple[int, ...]
Order = tuple[str, str, int]


class RatedVertex(timely.Vertex):
    """Input 0 is orders, input 1 rates by hour; those of one currency meet on one worker."""

    def __init__(self) -> None:
        self.rates: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)  # (hour, rate), in order
        self.orders: defaultdict[Time, list[Order]] = defaultdict(list)

    def on_recv(self, edge: int, message: list[object], time: Time) -> None:
        """Rates of later hours may be here already; orders wait until no rate of their hour can come."""
        if edge == 1:
            for currency, rate in cast("list[tuple[str, int]]", message):
                insort(self.rates[currency], (time[0], rate))
            return
        self.orders[time].extend(cast("list[Order]", message))
        self.notify_at(time)  # that is when both inputs are past this hour

    def on_notify(self, time: Time) -> None:
        """Both inputs are past this hour."""
        (hour,) = time
        values = []
        for customer, currency, amount in self.orders.pop(time):
            rates = self.rates[currency]
            newest = bisect_right(rates, (hour, sys.maxsize)) - 1
            values.append((customer, amount * rates[newest][1] if newest >= 0 else None))
        self.send_by(0, values, time)


@timely.builder
def build(dataflow: timely.Dataflow) -> None:
    """Orders and rates in; (customer, value) out, and the number of orders of each hour."""
    orders, rates = dataflow.input("orders"), dataflow.input("rates")
    feeds = [orders.feed(0, exchange=timely.by(1)), rates.feed(1, exchange=timely.by(0))]
    (values,) = dataflow.stage("rated", RatedVertex, feeds)
    dataflow.output("values", values)
    dataflow.output("counts", orders.count())


def plainly() -> list[tuple[int, tuple[str, int]]]:
    """Return the same, order by order."""
    return sorted(
        (
            hour,
            (
                customer,
                amount * max((at, rate) for at, of, rate in RATES if of == currency and at <= hour)[1],
            ),
        )
        for hour, orders in enumerate(ORDERS)
        for customer, currency, amount in orders
    )


def main() -> None:
    """Feed both inputs, each at its own pace."""
    parser = argparse.ArgumentParser(description="Join orders with rates that come later.")
    parser.add_argument(
        "--workers", type=int, default=0, help="worker processes; 0 (the default): within this process"
    )
    given = parser.parse_args()
    with timely.connect(workers=given.workers or 1, embedded=given.workers == 0) as cluster:
        flow = cluster.install(build)
        orders, rates = flow.input("orders"), flow.input("rates")
        for orders_of_hour in ORDERS:
            orders.insert(list(orders_of_hour))
            orders.seal()
        counts = flow.output("counts").changes(0, len(ORDERS))
        print(f"orders are at hour {orders.epoch}, rates at hour {rates.epoch}; counts: {sorted(counts)}")
        values: list[object] = []
        read = 0
        for until in (2, len(ORDERS)):
            for hour in range(rates.epoch, until):
                rates.insert([(currency, rate) for at, currency, rate in RATES if at == hour])
                rates.seal()
            new = sorted(flow.output("values").changes(read, until))
            read = until
            print(f"rates are at hour {rates.epoch}: {new}")
            values += new
    if values != plainly():
        sys.exit(f"rates: these differ from the plain computation: {values}")


if __name__ == "__main__":
    try:
        main()
    except timely.TimelyError as error:
        sys.exit(f"rates: {error}")
