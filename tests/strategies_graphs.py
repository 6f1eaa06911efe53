"""Graphs that change, and the judge of an algorithm on them.

A *course* is what happens epoch by epoch: rows of named inputs that come and go. Nothing is taken away that
is not there, but what is there may be there several times. `follow` plays a course on some workers, holds
what has come out at every epoch against a plain definition of what is there then, takes everything away at
the end, and looks whether anything is left of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from hypothesis import strategies as st
from reference.collection import Collection as Rows
from reference.collection import Row, accumulated_at, collection, concat
from reference.dataflow import Build, Cluster, PlainBuild, compact_traces, trace_rows

import differential as dd
from timely.building.dataflow import Dataflow

__all__ = ["Changes", "Course", "arcs", "courses", "follow", "played"]

Changes: TypeAlias = Sequence[tuple[Row, int]]
Course: TypeAlias = Sequence[Mapping[str, Changes]]
"""For each epoch, by the input's name, rows and how many more of them there are."""

OUT = "out"


def arcs(nodes_max: int = 8, *, weighted: bool = False) -> st.SearchStrategy[Row]:
    """Edges between few nodes, those to oneself included; with a small weight, if wanted."""
    node = st.integers(0, nodes_max)
    return st.tuples(node, node, st.integers(0, 5)) if weighted else st.tuples(node, node)


@st.composite
def courses(
    draw: st.DrawFn, inputs: Mapping[str, st.SearchStrategy[Row]], epochs_max: int = 4, rows_max: int = 14
) -> Course:
    """A few epochs; in each, rows come to every input, some more than once, and some go."""
    there: dict[str, list[Row]] = {name: [] for name in inputs}
    course: list[dict[str, Changes]] = []
    for epoch in range(draw(st.integers(1, epochs_max))):
        happens: dict[str, Changes] = {}
        for name, rows in inputs.items():
            held = there[name]
            come = draw(st.lists(rows, max_size=rows_max if epoch == 0 else rows_max // 3))
            held += come
            gone = draw(st.integers(0, len(held) if epoch else 0))
            go = [held.pop(draw(st.integers(0, len(held) - 1))) for _ in range(min(gone, 4))]
            happens[name] = [*((row, 1) for row in come), *((row, -1) for row in go)]
        course.append(happens)
    return course


def played(
    build: Build,
    schemas: Mapping[str, str],
    course: Course,
    workers: int = 1,
    seed: int = 0,
) -> Cluster:
    """The cluster after the course and a last epoch that takes everything away; its output is OUT.

    Rows come in at changing workers. Epochs follow one another or are in flight together, by the bits of
    `seed`.
    """

    def whole(flow: Dataflow) -> None:
        build(*(dd.input(flow, name, schema) for name, schema in schemas.items())).output(OUT)

    cluster = Cluster(whole, workers, seed)
    for epoch, happens in enumerate([*course, _removal(schemas, course)]):
        for name, changes in happens.items():
            for worker in range(workers):
                cluster.change(name, changes[worker::workers], worker=(worker + seed) % workers)
        cluster.seal()
        if seed >> epoch & 1:
            cluster.run()
    cluster.run()
    return cluster


def follow(
    build: Build,
    plain: PlainBuild,
    schemas: Mapping[str, str],
    course: Course,
    workers: int = 1,
    seed: int = 0,
) -> None:
    """Play the course; fail unless the output is `plain` of the inputs at every epoch, and nothing stays."""
    cluster = played(build, schemas, course, workers, seed)
    output = cluster.changes(OUT)
    there = {name: Rows() for name in schemas}
    for epoch, happens in enumerate(course):
        for name, changes in happens.items():
            there[name] = concat(there[name], *(collection({row: diff}) for row, diff in changes))
        have, want = accumulated_at(output, (epoch,)), plain(*there.values())
        assert have == want, f"epoch {epoch}: {dict(have)} instead of {dict(want)}"
    assert accumulated_at(output, (len(course),)) == plain(*(Rows() for _ in schemas))
    compact_traces(cluster)
    assert trace_rows(cluster) == 0


def _removal(schemas: Mapping[str, str], course: Course) -> Mapping[str, Changes]:
    """All that the course has left, taken away."""
    left = {name: Rows() for name in schemas}
    for happens in course:
        for name, changes in happens.items():
            for row, diff in changes:
                left[name][row] += diff
    return {name: [(row, -count) for row, count in rows.items() if count] for name, rows in left.items()}
