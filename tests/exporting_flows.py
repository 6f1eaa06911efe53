"""Dataflows that export, import and take one another's place, by name for worker processes."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa

import differential as dd
import timely
from differential import Collection, col

EDGES = "src: int, dst: int"

QUERIES = ("as it is", "counted", "with itself", "reach", "by a function")


def asked(edges: Collection, query: str) -> Collection:
    """A query over edges; the one with a loop has other words for times than one without."""
    if query == "counted":
        return (
            edges.group_by("src").agg(n=dd.count(), least=dd.min("dst")).select("src", dst=col.n + col.least)
        )
    if query == "with itself":
        return edges.join(edges.select(dst=col.src, to=col.dst), on="dst").select("src", dst=col.to)
    if query == "reach":
        return edges.iterate(
            lambda inner: (
                inner.join(edges.select(dst=col.src, to=col.dst), on="dst")
                .select("src", dst=col.to)
                .concat(edges)
                .distinct()
            )
        )
    if query == "by a function":
        return edges.group_by("src").reduce(lambda key, rows: [sorted(rows)[0][0][0]], "dst: int")
    if query == "fails on 5":
        return edges.select("src", dst=col.dst + 0 * (1 // (col.dst - 5)))
    assert query == "as it is"
    return edges


@timely.builder
def owner(flow: timely.Dataflow, by: str = "src", query: str = "as it is", strict: bool = False) -> None:
    edges = dd.input(flow, "edges", EDGES)
    edges.export("edges", by=by)
    asked(edges, query).output("out", strict=strict)


@timely.builder
def importer(flow: timely.Dataflow, of: int | str = "owner", query: str = "as it is") -> None:
    edges = dd.imported(flow, of, "edges", EDGES)
    found = asked(edges, query)
    found.output("out")
    found.export("edges", by="dst")


SEEN: list[tuple[tuple[object, ...], tuple[int, ...], int]] = []
"""What `watched` has looked at in this process."""


@timely.builder
def watched(flow: timely.Dataflow) -> None:
    """An effect a long way behind the export, and nothing to read."""
    edges = dd.input(flow, "edges", EDGES)
    edges.export("edges", by="src")
    for _ in range(6):
        edges = edges.select(src=col.dst, dst=col.src).consolidate()
    edges.inspect(lambda row, time, diff: SEEN.append((tuple(row), time, diff)))


@timely.builder
def beside(flow: timely.Dataflow, of: int | str = "owner") -> None:
    """With an input of its own."""
    edges = dd.imported(flow, of, "edges", "dst: int, src: int")
    names = dd.input(flow, "names", "src: int, name: string")
    edges.join(names, on="src").output("out")


def sums(table: pa.Table, upto: int | None = None) -> Counter[tuple[object, ...]]:
    """What changes accumulate to, those at epochs > `upto` left out."""
    found: Counter[tuple[object, ...]] = Counter()
    for row in table.to_pylist():
        epoch, diff = row.pop("epoch"), row.pop("diff")
        if upto is None or epoch <= upto:
            found[tuple(row.values())] += diff
    return Counter({row: diff for row, diff in found.items() if diff})
