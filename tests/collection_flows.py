"""Dataflows over collections that tests install by name in worker processes: `"collection_flows:words"`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import timely
from differential import col, collect, count, from_stream, input, lit
from differential import min as least
from differential.collections.collection import Collection
from differential.columns.rows import Row
from timely.wire.batch import Batch

__all__ = [
    "PassUpdates",
    "by_hand",
    "distances",
    "four_loops",
    "mentions",
    "shouted",
    "texts_as_they_are",
    "texts_by_key",
    "texts_past_a_silent_stage",
]


def shouted(key: Row, rows: list[tuple[Row, int]]) -> list[str]:
    """A text that no worker has seen before, for each group."""
    texts = sorted(str(text) for (text,), multiplicity in rows if multiplicity > 0)
    return [f"{str(key[0]).upper()}: {' '.join(texts)}"]


@timely.builder
def mentions(dataflow: timely.Dataflow) -> None:
    """Strings through every operator that sends rows to other workers."""
    said = input(dataflow, "said", "who: string, text: string?")
    knows = input(dataflow, "knows", "who: string, whom: string")
    heard = said.join(knows, on="who").select(who=col.whom, text=col.text, by=lit("hearsay"))
    heard.output("heard")
    said.group_by("text").agg(n=count()).output("counts")
    said.filter(col.text != "hush").select("who", text=col.text.fill_null("nothing")).group_by("who").reduce(
        shouted, "line: string"
    ).output("lines")
    knows.select(node=col.who).distinct().iterate(
        lambda x: x.join(knows, on={"node": "who"}).select(node=col.whom).concat(x).distinct()
    ).output("reached")


@timely.builder
def four_loops(dataflow: timely.Dataflow) -> None:
    """Which nodes reach which: a step in the innermost of four loops, and one more in each around it."""
    edges = input(dataflow, "edges", "src: int, dst: int")

    def a_step(paths: Collection) -> Collection:
        further = paths.join(edges.select(dst=col.src, to=col.dst), on="dst")
        return paths.concat(further.select(src=col.src, dst=col.to)).distinct()

    def loop(paths: Collection, depth: int) -> Collection:
        if depth == 0:
            return paths
        return paths.iterate(lambda inner: a_step(loop(inner, depth - 1)))

    loop(edges.distinct(), 4).output("paths")


class PassUpdates(timely.Vertex):
    """A stage that was written by hand: passes update batches on."""

    word_times: ClassVar[bool] = True

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        for word, batch in messages:
            self.send(0, batch, word)


@timely.builder
def by_hand(flow: timely.Dataflow) -> None:
    """From a collection to a stage and back to a collection."""
    edges = input(flow, "edges", "src: int, dst: int")
    (stream,) = flow.stage("by hand", PassUpdates, edges.filter(col.dst > 0).feeds())
    again = from_stream(flow, stream, edges.schema)
    again.group_by("src").agg(n=count()).output("counts")


@timely.builder
def texts_by_key(flow: timely.Dataflow) -> None:
    """All texts of each key, in a list, on the worker of the key; and how often each comes."""
    rows = input(flow, "rows", "key: string, text: string")
    rows.group_by("key").agg(all=collect("text")).output("all")


@timely.builder
def texts_as_they_are(flow: timely.Dataflow) -> None:
    """All rows, each where it comes in."""
    input(flow, "rows", "key: string, text: string").output("all")


@timely.builder
def texts_past_a_silent_stage(flow: timely.Dataflow) -> None:
    """Past a stage that does not say which words it keeps."""
    rows = input(flow, "rows", "key: string, text: string")
    flow.stage("pass updates", PassUpdates, rows.feeds(), outputs=1)


@timely.builder
def distances(flow: timely.Dataflow) -> None:
    """How far each node is from the nearest root: a loop right behind its inputs."""
    edges = input(flow, "edges", "src: int, dst: int")
    roots = input(flow, "roots", "node: int").select("node", distance=0)

    def further(reached: Collection) -> Collection:
        found = reached.join(edges, on={"node": "src"}).select(node=col.dst, distance=col.distance + 1)
        return found.concat(roots).group_by("node").agg(distance=least("distance"))

    roots.iterate(further).output("distances")
