"""In which order do the stages of a loop run within an iteration?

A loop's *children* are its stages and the loops directly within it. One comes before another if a path leads
from it to the other without going round. An inner loop is one child: all of its iterations run after the
children that lead into it, and before those that it leads to.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from progress.times.time_words import TimeLayout
from timely.operators.compiled_loop import Link, Member

__all__ = ["places_of"]


def places_of(
    members: Sequence[Member], links: Sequence[Link], layout: TimeLayout
) -> dict[int, list[int]] | None:
    """Return for each stage its place in each of its loops, outermost first; None if there is no order."""
    loops_of = {member.stage: member.loops for member in members}
    places: dict[int, list[int]] = {member.stage: [] for member in members}
    for loop in sorted({loop for member in members for loop in member.loops}):
        inside = [member for member in members if loop in member.loops]
        depth = inside[0].loops.index(loop) + 1
        order = _order(_children(inside, depth), _direct(links, loops_of, loop, depth, layout))
        if order is None:
            return None
        for member in inside:
            places[member.stage].append(order[_child(member.stage, member.loops, depth)])
    # Loops are numbered outermost first, and so each stage's places are in that order.
    return places


_Child = tuple[int, int]
"""(0, loop) or (1, stage)."""


def _child(stage: int, loops: Sequence[int], depth: int) -> _Child:
    return (0, loops[depth]) if len(loops) > depth else (1, stage)


def _children(inside: Sequence[Member], depth: int) -> dict[_Child, int]:
    """Return each child with its first stage, which orders children that nothing else orders."""
    children: dict[_Child, int] = {}
    for member in inside:
        children.setdefault(_child(member.stage, member.loops, depth), member.stage)
    return children


def _direct(
    links: Sequence[Link], loops_of: dict[int, tuple[int, ...]], loop: int, depth: int, layout: TimeLayout
) -> set[tuple[_Child, _Child]]:
    """Return the pairs of children connected within one iteration of the loop, which is at `depth`."""
    outer = sum(
        ((1 << bits) - 1) << shift
        for bits, shift in zip(layout.level_bits[: depth + 1], layout.shifts[: depth + 1], strict=True)
    )
    pairs = set()
    for link in links:
        ends = [loops_of.get(stage, ()) for stage in (link.source, link.target)]
        if not all(loop in loops for loops in ends) or link.add & outer:
            continue
        before, after = (
            _child(stage, loops, depth) for stage, loops in zip((link.source, link.target), ends, strict=True)
        )
        if before != after:
            pairs.add((before, after))
    return pairs


def _order(children: dict[_Child, int], direct: set[tuple[_Child, _Child]]) -> dict[_Child, int] | None:
    """Return a topological order, as a number for each child; None if there is none."""
    before = dict.fromkeys(children, 0)
    for _, after in direct:
        before[after] += 1
    ready = [(first, child) for child, first in children.items() if before[child] == 0]
    heapq.heapify(ready)
    order: dict[_Child, int] = {}
    while ready:
        _, child = heapq.heappop(ready)
        order[child] = len(order)
        for source, after in direct:
            if source == child:
                before[after] -= 1
                if before[after] == 0:
                    heapq.heappush(ready, (children[after], after))
    return order if len(order) == len(children) else None
