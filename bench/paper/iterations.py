"""How many labels change in each iteration of connected components: figure 1 of the paper.

    stateless      every iteration computes all labels anew
    incremental    labels that change from one iteration to the next, from scratch
    prioritised    the same, where small labels start before large ones
    a slide        what changes when the window slides, and everything before is kept

A changed label counts once, as in the paper, not once for the old value and once for the new.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import differential as dd
import timely
from bench.paper.window import Window
from differential import Collection, col

__all__ = ["Curves", "Labels", "Seen", "changes", "curves_of", "labels_of", "prioritised_labels_of"]

Labels = Callable[[Collection, "Seen"], Collection]
"""Components of edges (columns src, dst); what the labels are in each iteration is shown to `Seen`."""


@dataclass
class Seen:
    """Counts updates of labels by epoch and iteration."""

    come: Counter[tuple[int, ...]] = field(default_factory=Counter)
    gone: Counter[tuple[int, ...]] = field(default_factory=Counter)

    def look(self, row: object, time: tuple[int, ...], diff: int) -> None:
        """One update."""
        del row
        (self.come if diff > 0 else self.gone)[time] += abs(diff)

    def of(self, epoch: int) -> list[int]:
        """Labels that changed in an epoch, by iteration in the order of time."""
        inner = {time[1:] for time in (*self.come, *self.gone) if time[0] == epoch}
        times = [(epoch, *rest) for rest in sorted(inner)]
        return [max(self.come[time], self.gone[time]) for time in times]


@dataclass(frozen=True)
class Curves:
    """Changed labels by iteration of each way to compute; the last is of a slide."""

    nodes: int
    stateless: list[int]
    incremental: list[int]
    prioritised: list[int]
    slide: list[int]

    @property
    def share(self) -> float:
        """Work of a slide as a part of prioritised work from scratch."""
        return sum(self.slide) / max(1, sum(self.prioritised))


def labels_of(edges: Collection, seen: Seen) -> Collection:
    """The least node that each node is connected with, by propagation of labels along edges."""
    both, own = _both_ways(edges)
    return own.iterate(lambda labels: _propagated(labels, own, both).inspect(seen.look), name="components")


def prioritised_labels_of(edges: Collection, seen: Seen) -> Collection:
    """The same, where a node's own label comes in when smaller ones have been everywhere they belong."""
    both, own = _both_ways(edges)
    return own.prioritized_iterate(
        lambda labels, begun: _propagated(labels, begun, both).inspect(seen.look), "label", name="components"
    )


def _both_ways(edges: Collection) -> tuple[Collection, Collection]:
    """Edges in both directions, and each node with itself as its label."""
    both = edges.concat(edges.select(src=col.dst, dst=col.src))
    return both, both.select(node=col.src).distinct().select(node=col.node, label=col.node)


def _propagated(labels: Collection, own: Collection, both: Collection) -> Collection:
    proposed = labels.join(both, on={"node": "src"}).select(node=col.dst, label=col.label)
    return proposed.concat(own).group_by("node").agg(label=dd.min("label"))


def changes(window: Window, labels: Labels, slides: Sequence[int] = ()) -> list[list[int]]:
    """Changed labels by iteration: from scratch, and then for each slide by some seconds."""
    seen = Seen()

    def build(flow: timely.Dataflow) -> None:
        edges = dd.input(flow, "edges", "src: int, dst: int")
        labels(edges, seen).output("labels")

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(build)
        flow.input("edges").insert(window.table())
        flow.seal(wait=True)
        for seconds in slides:
            window, come, gone = window.slid(seconds)
            flow.input("edges").insert(come)
            flow.input("edges").remove(gone)
            flow.seal(wait=True)
    return [seen.of(epoch) for epoch in range(1 + len(slides))]


def curves_of(window: Window, slides: int = 60) -> Curves:
    """All ways to compute, on one window and one of its next slides by a second: that of the median work."""
    scratch, *after = changes(window, labels_of, [1] * slides)
    (prioritised,) = changes(window, prioritised_labels_of)
    eventful = sorted((one for one in after if one), key=sum)
    typical = eventful[len(eventful) // 2] if eventful else []
    nodes = window.nodes()
    return Curves(nodes, [nodes] * len(scratch), scratch, prioritised, typical)
