"""The plain meaning of the main job: every window recomputed from its interactions, by union and find."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

Interaction = tuple[int, int, int]
"""source, target, seconds."""


class WindowFacts(NamedTuple):
    """What a window's graph is like."""

    end: int
    interactions: int
    nodes: int
    components: int
    largest: int


def component_of(edges: Iterable[tuple[int, int]]) -> dict[int, int]:
    """For each node the smallest node connected with it."""
    parent: dict[int, int] = {}

    def root(node: int) -> int:
        parent.setdefault(node, node)
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    for source, target in edges:
        one, other = sorted((root(source), root(target)))
        parent[other] = one
    return {node: root(node) for node in parent}


def windows(rows: list[Interaction], first: int, last: int, window: int, slide: int) -> Iterator[WindowFacts]:
    """Facts of every epoch's window, with epoch k ending at first + (k + 1)·slide."""
    epoch = 0
    while True:
        end = first + (epoch + 1) * slide
        inside = [(source, target) for source, target, time in rows if end - window < time <= end]
        components = component_of(inside)
        sizes = Counter(components.values())
        yield WindowFacts(end, len(inside), len(components), len(sizes), max(sizes.values(), default=0))
        if end >= last:
            return
        epoch += 1
