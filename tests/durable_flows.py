"""Dataflows that tests of durable workers install by name: `"durable_flows:shop"`."""

from __future__ import annotations

import differential as dd
import timely
from progress.times.timestamp import Timestamp

__all__ = ["checked", "exporting", "importing", "offering", "reading", "shop", "taking", "varied"]

SOLD = "item: string, place: any?, count: int"
PRICES = "item: string, price: int"
PLAIN = "item: string, n: int?"


class ShoutVertex(timely.Vertex):
    """Passes on what comes in, in capitals."""

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.send_by(0, [str(word).upper() for word in message], time)


@timely.builder
def shop(dataflow: timely.Dataflow) -> None:
    """Inputs of each kind: rows with texts and values of any kind, the last value by key, and records."""
    sold = dd.input(dataflow, "sold", SOLD)
    prices = dd.input(dataflow, "prices", PRICES, key="item", mode="upsert")
    sold.output("sold")
    prices.output("prices")
    dd.input(dataflow, "plain", PLAIN).output("plain")
    sold.group_by("item").agg(count=dd.sum("count")).join(prices, on="item").output("known")
    dataflow.output("loud", dataflow.input("words").stage("shout", ShoutVertex))


@timely.builder
def checked(dataflow: timely.Dataflow) -> None:
    """Removals of what is not there are refused, epoch by epoch."""
    rows, refused = dd.checked_input(dataflow, "rows", "a: int")
    rows.output("rows")
    refused.output("refused")


@timely.builder
def exporting(dataflow: timely.Dataflow) -> None:
    """A dataflow that others read."""
    rows = dd.input(dataflow, "rows", "a: int, b: int")
    rows.export("rows", by="a")
    rows.output("rows")


@timely.builder
def importing(dataflow: timely.Dataflow) -> None:
    """Reads `exporting`, and has an input of its own."""
    rows = dd.imported(dataflow, "exporting", "rows", "a: int, b: int")
    own = dd.input(dataflow, "own", "a: int, c: int")
    rows.join(own, on="a").output("both")


@timely.builder
def reading(dataflow: timely.Dataflow) -> None:
    """Reads `exporting`, and has no input of its own."""
    rows = dd.imported(dataflow, "exporting", "rows", "a: int, b: int")
    rows.group_by("a").agg(n=dd.count()).output("counts")


@timely.builder
def offering(dataflow: timely.Dataflow) -> None:
    """A dataflow that others read, without outputs of its own."""
    dd.input(dataflow, "rows", "a: int, b: int").export("rows", by="a")


@timely.builder
def taking(dataflow: timely.Dataflow) -> None:
    """Reads `offering`, and has an input of its own."""
    rows = dd.imported(dataflow, "offering", "rows", "a: int, b: int")
    own = dd.input(dataflow, "own", "a: int, c: int")
    rows.join(own, on="a").output("both")


@timely.builder
def varied(dataflow: timely.Dataflow, column: str = "a", fails: bool = False) -> None:
    """Another query for each column."""
    if fails:
        raise KeyError("no such query")
    rows = dd.input(dataflow, "rows", "a: int, b: int")
    rows.group_by(column).agg(n=dd.count()).output("counts")
