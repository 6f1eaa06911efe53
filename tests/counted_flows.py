"""Two dataflows of which together all counters are told that there are."""

from __future__ import annotations

import differential as dd
import timely
from differential import col
from progress.times.timestamp import Timestamp

__all__ = ["counted", "reading"]


class Passes(timely.Vertex):
    """Hands on what it gets."""

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.send_by(0, message, time)


@timely.builder
def counted(flow: timely.Dataflow) -> None:
    """A loop, sums, rows that leave, what is exported, a join that is balanced, and a routing."""
    edges = dd.input(flow, "edges", "src: int, dst: int, name: string")
    edges.export("edges")
    pairs = edges.select("src", "dst")
    reached = pairs.iterate(
        lambda inner: (
            inner.join(pairs.select(dst=col.src, to=col.dst), on="dst")
            .select("src", dst=col.to)
            .concat(pairs)
            .distinct()
        )
    )
    reached.output("reached")
    edges.group_by("src").agg(n=dd.count(), least=dd.min("dst")).output("counts")
    edges.during("src", "dst").output("now")
    routes = dd.announcements(flow, "routes")
    balance = dd.Routed(dd.Balance("D-JB", units=4), routes, lead=2)
    pairs.join(pairs.select("src", other=col.dst), on="src", balance=balance).output("pairs")
    numbers = flow.input("numbers")
    flow.output("passed", flow.routing().stage("passes", Passes, numbers, exchange=lambda number: 0))


@timely.builder
def reading(flow: timely.Dataflow) -> None:
    """What the other one exports."""
    dd.imported(flow, "counted", "edges", "src: int, dst: int, name: string").output("edges")
