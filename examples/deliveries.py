"""Days from order to delivery: a vertex that holds the day of an order until the order has arrived.

    python examples/deliveries.py [--workers 2] [FILE]

Each line is `order NAME` or `arrived NAME`; an empty line ends a day. The answer of a day is the mean number
of days that its orders took. It comes out when the last of them has arrived: until then the vertex holds the
day.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from pathlib import Path
from typing import cast

import timely

TEXT = """order pen
order ink

order cup
arrived ink

arrived cup
order bag

arrived pen
arrived bag
"""
Time = tuple[int, ...]
Line = tuple[str, str]


class DeliveriesVertex(timely.Vertex):
    """Lines in; the number of days of each order out, at the day on which it was ordered."""

    def __init__(self) -> None:
        self.lines: defaultdict[Time, list[Line]] = defaultdict(list)  # until that day is complete
        self.under_way: dict[str, timely.Capability] = {}

    def on_recv(self, edge: int, message: list[object], time: Time) -> None:
        """Let lines wait until their day is complete: then orders come before arrivals."""
        self.lines[time].extend(cast("list[Line]", message))
        self.notify_at(time)

    def on_notify(self, time: Time) -> None:
        """A day is complete."""
        lines = self.lines.pop(time)
        for kind, name in lines:
            if kind == "order":
                self.under_way[name] = self.hold(time)  # from now on this day is not over
        for kind, name in lines:
            if kind == "arrived":
                ordered = self.under_way.pop(name)
                self.send_by(0, [("days", time[0] - ordered.time[0])], ordered.time)
                ordered.drop()


def pair_of(line: str) -> tuple[str, ...]:
    """Return kind and name of a line."""
    return tuple(line.split())


def add(state: tuple[int, int], days: int) -> tuple[int, int]:
    """Return sum and number of days with one order more."""
    return state[0] + days, state[1] + 1


def mean(_key: str, state: tuple[int, int]) -> tuple[int, float]:
    """Return the number of orders, and the mean of their days."""
    return state[1], state[0] / state[1]


@timely.builder
def build(dataflow: timely.Dataflow) -> None:
    """Lines in; (number of orders, mean number of days) of each day out, when all have arrived."""
    pairs = dataflow.input("lines").map(pair_of)
    days = pairs.stage("deliveries", DeliveriesVertex, exchange=timely.by(1))
    dataflow.output("means", days.aggregate(add, (0, 0), mean))


def days_over(days: list[list[str]]) -> int:
    """Return the first day that lacks the arrival of an order, or that has not come yet."""
    arrived = {line for lines in days for line in lines if line.startswith("arrived ")}
    for day, lines in enumerate(days):
        if any(line.replace("order ", "arrived ") not in arrived for line in lines):
            return day
    return len(days)


def plainly(days: list[list[str]]) -> list[tuple[int, tuple[int, float]]]:
    """Return the same by looking each order up, of the days that are over."""
    arrived = {line.split()[1]: day for day, lines in enumerate(days) for line in lines if line[0] == "a"}
    means = []
    for day in range(days_over(days)):
        took = [arrived[line.split()[1]] - day for line in days[day] if line[0] == "o"]
        if took:
            means.append((day, (len(took), sum(took) / len(took))))
    return means


def main() -> None:
    """Feed the days; print what is known after each."""
    parser = argparse.ArgumentParser(description="How many days orders take, by the day of the order.")
    parser.add_argument("file", nargs="?", type=Path, help="lines; without it a few of our own")
    parser.add_argument(
        "--workers", type=int, default=0, help="worker processes; 0 (the default): within this process"
    )
    given = parser.parse_args()
    text = given.file.read_text() if given.file else TEXT
    days = [part.splitlines() for part in text.split("\n\n")]
    means: list[object] = []
    read = 0
    with timely.connect(workers=given.workers or 1, embedded=given.workers == 0) as cluster:
        flow = cluster.install(build)
        for day, lines in enumerate(days):
            flow.input("lines").insert(lines)
            flow.seal()
            over = days_over(days[: day + 1])  # all later days wait for an order: a wait for them has no end
            if over:
                flow.wait(over - 1, timeout=60)
            new = flow.output("means").changes(read, over)
            read = over
            means += new
            if means != plainly(days[: day + 1]):
                sys.exit(f"deliveries: day {day} differs from the plain computation: {means}")
            shown = "   ".join(f"day {of}: orders {count}, mean days {took:g}" for of, (count, took) in new)
            print(f"after day {day}   {shown or f'day {over} is not over'}")


if __name__ == "__main__":
    try:
        main()
    except (OSError, timely.TimelyError) as error:
        sys.exit(f"deliveries: {error}")
