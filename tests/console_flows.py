"""Dataflows for a page to show: with odd names, loops, very many stages, slow ones, failing ones."""

from __future__ import annotations

import time

import differential as dd
import timely
from differential import col
from differential.algorithms import connected_components
from progress.times.timestamp import Timestamp

__all__ = ["SCRIPT", "fails", "long_one", "naps", "network", "shop", "two_inputs", "two_outputs"]

SCRIPT = "<script>document.title = 'broken'</script><img src=x onerror=alert(1)> 50% %41"


def shop(dataflow: timely.Dataflow) -> None:
    """Counts orders, and keeps those that are large."""
    orders = dd.input(dataflow, "orders", "id: int, customer: string, cents: int")
    orders.export("orders")
    orders.group_by("customer").agg(cents=dd.sum("cents")).output("totals")
    orders.filter(col.cents > 5).output(SCRIPT)


def network(dataflow: timely.Dataflow) -> None:
    """Connected components: a loop."""
    edges = dd.input(dataflow, "edges", "src: int, dst: int")
    connected_components(edges).output("components")


class Passes(timely.Vertex):
    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.send_by(0, message, time)


class Raises(timely.Vertex):
    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        raise ValueError("no record pleases me")


@timely.builder
def long_one(dataflow: timely.Dataflow) -> None:
    """A chain of a thousand stages."""
    stream = dataflow.input("numbers")
    for number in range(998):
        stream = stream.stage(f"passes {number}", Passes)
    dataflow.output("numbers", stream)


@timely.builder
def fails(dataflow: timely.Dataflow) -> None:
    """Ends by an error as soon as a record comes."""
    dataflow.output("records", dataflow.input("records").stage("raises", Raises))


@timely.builder
def two_inputs(dataflow: timely.Dataflow) -> None:
    """Waits for the slower of two inputs."""
    dataflow.output("both", dataflow.input("fast").concat(dataflow.input("slow")))


@timely.builder
def two_outputs(dataflow: timely.Dataflow) -> None:
    """Has two outputs that share no epoch."""
    dataflow.output("fast", dataflow.input("fast"))
    dataflow.output("slow", dataflow.input("slow"))


class Naps(timely.Vertex):
    def on_recv(self, edge: int, message: list[object], time_: Timestamp) -> None:
        time.sleep(0.4)
        self.send_by(0, message, time_)


@timely.builder
def naps(dataflow: timely.Dataflow) -> None:
    """Takes less than half a second for each epoch, and more than is good."""
    dataflow.output("records", dataflow.input("records").stage("naps", Naps))
