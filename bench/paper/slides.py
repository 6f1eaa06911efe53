"""How long does a slide of one second take, while a day of interactions is kept?

From the first row handed over to the epoch being complete and its changed components being known; with labels
that all set out at once, and with small ones first (`prioritised`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

import differential as dd
import timely
from bench.paper.window import Window
from differential.algorithms import connected_components

__all__ = ["Latency", "slide_by_slide"]


@dataclass(frozen=True)
class Latency:
    """Milliseconds for each of many slides, and what the window held at first."""

    rows: int
    milliseconds: list[float]

    def at(self, percent: float) -> float:
        """The time that so many slides did not exceed."""
        return float(np.percentile(self.milliseconds, percent))


def slide_by_slide(window: Window, count: int, *, prioritised: bool, warm_up: int = 20) -> Latency:
    """Slide a window by one second, `count` times; the first slides are not counted."""

    def build(flow: timely.Dataflow) -> None:
        edges = dd.input(flow, "edges", "src: int, dst: int")
        connected_components(edges, prioritised=prioritised).output("components")

    rows = window.table().num_rows
    taken: list[float] = []
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(build)
        edges, output = flow.input("edges"), flow.output("components")
        edges.insert(window.table())
        flow.seal(wait=True)
        output.changes()
        output.forget()
        for _ in range(warm_up + count):
            window, come, gone = window.slid(1)
            begin = time.perf_counter()
            edges.insert(come)
            edges.remove(gone)
            flow.seal(wait=True)
            output.changes()
            taken.append(1000 * (time.perf_counter() - begin))
            output.forget()
    return Latency(rows, taken[warm_up:])
