"""Loops of every kind, over (k: int, v: int), for the random tests of `strategies_collections`.

Each is (name, how it is built, what it means); see there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from reference import collection as plainly
from reference.collection import Collection as Rows

import differential as dd
from differential import Collection, col

__all__ = ["BINARY", "UNARY"]


def _labels(source: Collection) -> Collection:
    """The least key that leads to each value; small keys first."""
    edges = source.distinct()
    own = edges.select(k=col.k, v=col.k).distinct()
    return own.prioritized_iterate(
        lambda labels, own: (
            labels.join(edges.select(k=col.k, to=col.v), on="k")
            .select(k=col.to, v=col.v)
            .concat(own)
            .group_by("k")
            .agg(v=dd.min("v"))
        ),
        priority="v",
    )


def _labels_plainly(rows: Rows) -> Rows:
    edges = plainly.distinct(rows)
    own = plainly.distinct(plainly.map_rows(edges, lambda row: (row[0], row[0])))

    def step(labels: Rows) -> Rows:
        proposed = plainly.map_rows(plainly.join(labels, edges), lambda row: (row[2], row[1]))
        return plainly.aggregate(plainly.concat(proposed, own), [("min", 0)])

    return plainly.iterate(own, step)


def _times(count: int) -> tuple[Callable[[Collection], Collection], Callable[[Rows], Rows]]:
    """Sums that swing: it matters how often."""

    def build(source: Collection) -> Collection:
        return source.iterate(
            lambda x: x.select(k=1 - col.k, v=col.v + 1).concat(source).group_by("k").agg(v=dd.sum("v")),
            times=count,
        )

    def step(rows: Rows, source: Rows) -> Rows:
        moved = plainly.map_rows(rows, lambda row: (1 - cast("int", row[0]), cast("int", row[1]) + 1))
        return plainly.aggregate(plainly.concat(moved, source), [("sum", 0)])

    return build, lambda rows: plainly.iterate_rounds(rows, lambda now: step(now, rows), count)[-1]


def _straight(source: Collection) -> Collection:
    """No operator with state in the loop: what is too late must not get out."""
    return source.iterate(lambda x: x.select(k=col.v, v=col.k + 1), times=3)


def _straight_plainly(rows: Rows) -> Rows:
    step = lambda now: plainly.map_rows(now, lambda row: (row[1], cast("int", row[0]) + 1))  # noqa: E731
    return plainly.iterate_rounds(rows, step, 3)[-1]


def _in_turns(roots: Collection, edges: Collection) -> Collection:
    """Pairs (k, v) such that an odd number of edges leads from a pair (k, …) of `roots` to v."""
    along = edges.distinct().select(src=col.k, dst=col.v)
    start = roots.distinct()

    def further(x: Collection) -> Collection:
        return x.join(along, on={"v": "src"}).select(k=col.k, v=col.dst)

    found = dd.iterate(
        {"even": start, "odd": start.schema},
        lambda even, odd: {
            "even": further(odd).concat(start).distinct(),
            "odd": further(even).distinct(),
        },
    )
    return found["odd"]


def _in_turns_plainly(roots: Rows, edges: Rows) -> Rows:
    along = [row for row, count in edges.items() if count > 0]
    reached = {(k, v, 0) for k, v in plainly.distinct(roots)}
    while True:
        more = {(k, w, 1 - turn) for k, v, turn in reached for u, w in along if u == v} - reached
        if not more:
            return plainly.collection({(k, v) for k, v, turn in reached if turn == 1})
        reached |= more


UNARY = (
    ("least label by priority in a loop", _labels, _labels_plainly),
    ("once round a loop", *_times(1)),
    ("three times round a loop", *_times(3)),
    ("three times straight round a loop", _straight, _straight_plainly),
)
BINARY = (("in turns in a loop", _in_turns, _in_turns_plainly),)
