"""Versions of one dataflow that take one another's place, with rows that go on, and some that do not.

Versions differ by their number: in the query of "out", in the inputs and outputs that they have besides, and
in whether "other" has the same columns.
"""

from __future__ import annotations

import differential as dd
import timely
from differential import col

__all__ = ["VERSIONS", "versions"]

VERSIONS = 7


@timely.builder
def versions(flow: timely.Dataflow, version: int = 0) -> None:
    """Version 5 fails at rows that lead to 5; version 6 looks back."""
    edges = dd.input(flow, "edges", "src: int, dst: int")
    edges.export("edges", by="src")
    values = dd.input(flow, "values", "k: int, v: string", key="k", mode="upsert")
    values.export("values", by="k")
    values.output("values")
    if version in (1, 4):
        more = dd.input(flow, "more", "src: int, name: string")
        more.export("more", by="src")
        edges.join(more, on="src").output("named")
    if version == 0:
        out = edges
    elif version == 1:
        out = edges.group_by("src").agg(n=dd.count(), most=dd.max("dst")).select("src", dst=col.n + col.most)
    elif version == 2:
        out = edges.join(edges.select(dst=col.src, to=col.dst), on="dst").select("src", dst=col.to)
    elif version == 3:
        out = edges.iterate(
            lambda inner: (
                inner.join(edges.select(dst=col.src, to=col.dst), on="dst")
                .select("src", dst=col.to)
                .concat(edges)
                .distinct()
            )
        )
    elif version == 5:
        out = edges.select("src", dst=col.dst + 0 * (1 // (col.dst - 5)))
    elif version == 6:
        counts = edges.group_by("src").agg(dst=dd.count())
        out = counts.concat(counts.delay(2).negate())
    else:
        out = edges.select(src=col.dst, dst=col.src)
    out.output("out")
    if version == 2:
        edges.group_by("dst").agg(n=dd.count()).output("other")
    elif version != 4:
        edges.group_by("src").agg(n=dd.count()).output("other")


@timely.builder
def also(flow: timely.Dataflow, version: int = 0) -> None:
    """The same under another name."""
    versions(flow, version)
