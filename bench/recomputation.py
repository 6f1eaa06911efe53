"""What should a workload's answer be, computed from scratch by the shortest means?

The twin of every measured query: whole arrays, no times, no changes, no code in common with what is measured.
`believed` is what a run is held against: the recorded sums where there are some, otherwise these.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from bench import workloads
from bench.workloads import (
    Check,
    CountWorkload,
    Expected,
    GraphWorkload,
    Int64s,
    JoinWorkload,
    Q3Workload,
    RowRange,
    Schedule,
    SumWorkload,
    expected,
)

__all__ = [
    "believed",
    "distances_from_zero",
    "joined",
    "least_labels",
    "ranks_of",
    "recomputed",
    "strong_components",
]


@cache
def believed(workload: str) -> Expected:
    """The checks that a run of `workload`, as in "wcc plain 100000 200000 100", must meet."""
    return expected(workload) or recomputed(workload)


def recomputed(workload: str) -> Expected:
    """The checks of a workload of whatever size, from scratch."""
    family = workload.split(maxsplit=1)[0]
    sizes = [int(word) for word in workload.split() if word.isdecimal()]
    schedule, check = _FAMILIES[family](*sizes)
    return Expected(check(schedule.present(0)), check(schedule.present(schedule.changes)))


Recomputation = tuple[Schedule, Callable[[RowRange], Check]]
"""When which rows are there, and the check of the answer to a range of them."""


def _wcc(nodes: int, edges: int, changes: int) -> Recomputation:
    drawn = workloads.graph(nodes, edges, changes)
    return drawn.schedule, lambda rows: wcc_check(drawn, rows)


def wcc_check(drawn: GraphWorkload, rows: RowRange) -> Check:
    """Of the components of some of the edges."""
    labels = least_labels(drawn.nodes, drawn.src[rows], drawn.dst[rows])
    return workloads.check_wcc(np.arange(drawn.nodes), labels)


def _bfs(nodes: int, edges: int, changes: int) -> Recomputation:
    drawn = workloads.graph(nodes, edges, changes)
    return drawn.schedule, lambda rows: bfs_check(drawn, rows)


def bfs_check(drawn: GraphWorkload, rows: RowRange) -> Check:
    """Of the distances along some of the edges."""
    distances = distances_from_zero(drawn.nodes, drawn.src[rows], drawn.dst[rows])
    reached = np.flatnonzero(distances >= 0)
    return workloads.check_bfs(reached, distances[reached])


def _scc(nodes: int, edges: int, changes: int) -> Recomputation:
    drawn = workloads.graph(nodes, edges, changes)
    return drawn.schedule, lambda rows: scc_check(drawn, rows)


def scc_check(drawn: GraphWorkload, rows: RowRange) -> Check:
    """Of those of some edges that are inside a component."""
    src, dst = drawn.src[rows], drawn.dst[rows]
    component = strong_components(drawn.nodes, src, dst)
    inside = component[src] == component[dst]
    return workloads.check_scc(src[inside], dst[inside])


def _pagerank(nodes: int, edges: int, changes: int) -> Recomputation:
    drawn = workloads.graph(nodes, edges, changes)
    return drawn.schedule, lambda rows: pagerank_check(drawn, rows)


def pagerank_check(drawn: GraphWorkload, rows: RowRange) -> Check:
    """Of the ranks by some of the edges."""
    ranks = ranks_of(drawn.nodes, drawn.src[rows], drawn.dst[rows])
    there = np.flatnonzero(ranks)
    return workloads.check_pagerank(there, ranks[there])


def _count(keys: int, rows: int, epochs: int, updates: int) -> Recomputation:
    drawn = workloads.count(keys, rows, epochs, updates)
    return drawn.schedule, lambda rows: count_check(drawn, rows)


def count_check(drawn: CountWorkload, rows: RowRange) -> Check:
    """Of how often each key is among some rows."""
    counts = np.bincount(drawn.key[rows])
    keys = np.flatnonzero(counts)
    return workloads.check_count(keys, counts[keys])


def _sum(keys: int, rows: int, epochs: int, updates: int) -> Recomputation:
    drawn = workloads.sum_(keys, rows, epochs, updates)
    return drawn.schedule, lambda rows: sum_check(drawn, rows)


def sum_check(drawn: SumWorkload, rows: RowRange) -> Check:
    """Of the totals by key of some rows."""
    keys = np.flatnonzero(np.bincount(drawn.key[rows]))
    # Summed as floats, which are exact here: no total comes near 2⁵³.
    totals = np.bincount(drawn.key[rows], drawn.value[rows]).astype(np.int64)
    return workloads.check_sum(keys, totals[keys])


def _join(keys: int, rows: int, epochs: int, updates: int) -> Recomputation:
    drawn = workloads.join(keys, rows, epochs, updates)
    return drawn.schedule, lambda rows: join_check(drawn, rows)


def join_check(drawn: JoinWorkload, rows: RowRange) -> Check:
    """Of the pairs with equal keys of some rows on either side."""
    left, right = joined(drawn.left_key[rows], drawn.right_key[rows])
    return workloads.check_join(drawn.left_key[rows][left], left + rows.start, right + rows.start)


def _top(keys: int, rows: int, epochs: int, updates: int) -> Recomputation:
    drawn = workloads.sum_(keys, rows, epochs, updates)
    return drawn.schedule, lambda rows: top_check(drawn, rows)


def top_check(drawn: SumWorkload, rows: RowRange) -> Check:
    """Of the largest values of each key among some rows."""
    order = np.lexsort((-drawn.value[rows], drawn.key[rows]))
    keys, values = drawn.key[rows][order], drawn.value[rows][order]
    # A row is among the first of its key if the one that stands so many places before it has another key.
    is_among = np.ones(len(keys), np.bool_)
    before = workloads.TOP_ROWS
    is_among[before:] = keys[before:] != keys[:-before]
    return workloads.check_top(keys[is_among], values[is_among])


def _q3(orders: int, epochs: int, updates: int) -> Recomputation:
    drawn = workloads.q3(orders, epochs, updates)
    return drawn.schedule, lambda rows: q3_check(drawn, rows)


def q3_check(drawn: Q3Workload, rows: RowRange) -> Check:
    """Of the ten orders with the most revenue that is not shipped yet, among some orders."""
    lines = slice(rows.start * workloads.LINES_OF_ORDER, rows.stop * workloads.LINES_OF_ORDER)
    order = np.arange(rows.start, rows.stop)
    counts = (drawn.segment[drawn.customer[rows]] == 0) & (drawn.day[rows] < workloads.BOOKED_DAY)
    is_open = drawn.shipped[lines].reshape(len(order), -1) > workloads.BOOKED_DAY
    revenue = (drawn.revenue[lines].reshape(is_open.shape) * is_open).sum(axis=1)
    at = np.flatnonzero(counts & is_open.any(axis=1))
    at = at[np.lexsort((order[at], drawn.day[rows][at], -revenue[at]))][:10]
    return workloads.check_q3(order[at], revenue[at])


_FAMILIES: dict[str, Callable[..., Recomputation]] = {  # type: ignore[explicit-any]  # three or four sizes
    "wcc": _wcc,
    "bfs": _bfs,
    "scc": _scc,
    "pagerank": _pagerank,
    "count": _count,
    "sum": _sum,
    "join": _join,
    "top": _top,
    "q3": _q3,
}


# The algorithms.


def least_labels(nodes: int, src: Int64s, dst: Int64s) -> Int64s:
    """The least node of each node's component: neighbours' labels, then the labels of labels."""
    labels = np.arange(nodes)
    while True:
        before = labels.copy()
        np.minimum.at(labels, dst, labels[src])
        np.minimum.at(labels, src, labels[dst])
        labels = labels[labels]
        if np.array_equal(labels, before):
            return labels


def distances_from_zero(nodes: int, src: Int64s, dst: Int64s) -> Int64s:
    """The distance of each node from node 0, −1 where there is no path."""
    distances = np.full(nodes, -1)
    distances[0] = 0
    for distance in range(1, nodes):
        reached = dst[(distances[src] == distance - 1) & (distances[dst] == -1)]
        if len(reached) == 0:
            break
        distances[reached] = distance
    return distances


def strong_components(nodes: int, src: Int64s, dst: Int64s) -> Int64s:
    """A number for each node, equal for two nodes if there are paths both ways.

    Colours: the colour of a node is the least node from which it can be reached. That node's component are
    those of its colour that can reach it; they are taken out, and what is left is coloured anew.
    """
    component = np.full(nodes, -1)
    while (component < 0).any():
        is_left = (component[src] < 0) & (component[dst] < 0)
        src, dst = src[is_left], dst[is_left]
        colour = np.arange(nodes)
        before = np.empty(0, np.int64)
        while not np.array_equal(colour, before):
            before = colour.copy()
            np.minimum.at(colour, dst, colour[src])
        in_component = (colour == np.arange(nodes)) & (component < 0)
        inside = colour[src] == colour[dst]
        while (more := src[inside & in_component[dst] & ~in_component[src]]).size:
            in_component[more] = True
        component[in_component] = colour[in_component]
    return component


def ranks_of(nodes: int, src: Int64s, dst: Int64s) -> Int64s:
    """The rank of each node after 20 iterations, 0 for those without an edge."""
    numerator, denominator = workloads.DAMPING
    there = np.zeros(nodes, np.bool_)
    there[src] = there[dst] = True
    degrees = np.bincount(src, minlength=nodes)
    ranks = np.where(there, workloads.UNIT, 0)
    for _ in range(workloads.ITERATIONS):
        shares = ranks * numerator // (denominator * np.maximum(degrees, 1))
        ranks = np.where(there, workloads.UNIT - workloads.UNIT * numerator // denominator, 0)
        np.add.at(ranks, dst, shares[src])
    return ranks


def joined(left_key: Int64s, right_key: Int64s) -> tuple[Int64s, Int64s]:
    """The pairs of positions at which keys are equal."""
    keys = int(max(left_key.max(initial=0), right_key.max(initial=0))) + 1
    by_key = np.argsort(right_key)
    counts = np.bincount(right_key, minlength=keys)
    matches = counts[left_key]
    left = np.repeat(np.arange(len(left_key)), matches)
    nth_match = np.arange(len(left)) - (np.cumsum(matches) - matches)[left]
    right = by_key[(np.cumsum(counts) - counts)[left_key[left]] + nth_match]
    return left, right
