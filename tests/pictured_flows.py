"""The dataflows of the pictures of docs/console.md."""

from __future__ import annotations

import time

import differential as dd
import timely
from differential import col
from differential.algorithms import connected_components
from progress.times.timestamp import Timestamp

__all__ = ["network", "scores", "shop"]


@timely.builder
def shop(dataflow: timely.Dataflow) -> None:
    """Orders with their customers, counted."""
    orders = dd.input(dataflow, "orders", "id: int, customer: string, cents: int")
    customers = dd.input(dataflow, "customers", "name: string, city: string")
    both = orders.join(customers, on={"customer": "name"})
    both.group_by("city").agg(orders=dd.count(), cents=dd.sum("cents")).output("by_city")
    both.group_by("customer").agg(cents=dd.sum("cents")).output("by_customer")
    both.filter(col.cents > 900).output("large")


@timely.builder
def network(dataflow: timely.Dataflow) -> None:
    """Connected components, and how large they are."""
    edges = dd.input(dataflow, "edges", "src: int, dst: int")
    components = connected_components(edges)
    components.output("components")
    components.group_by("component").agg(size=dd.count()).output("sizes")


class Scores(timely.Vertex):
    """Takes its time for each record."""

    def on_recv(self, edge: int, message: list[object], time_: Timestamp) -> None:
        """Score records."""
        time.sleep(0.06 * len(message))
        self.send_by(0, message, time_)


@timely.builder
def scores(dataflow: timely.Dataflow) -> None:
    """Calls a slow function for each record."""
    dataflow.output("scores", dataflow.input("records").stage("score records", Scores))
