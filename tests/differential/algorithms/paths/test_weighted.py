"""algorithms/paths/weighted.py: distances along edges that have lengths.

meaning_*   at every epoch, against networkx
refused_*   a circle around which the way gets ever shorter
"""

from __future__ import annotations

import pytest
from graphs_plainly import numbers, weighted_distances
from hypothesis import given
from hypothesis import strategies as st
from reference.collection import Collection as Rows
from reference.collection import collection
from strategies_collections import examples
from strategies_graphs import OUT, Course, arcs, courses, follow, played

import differential as dd
from differential import Collection, col
from differential.algorithms import weighted_shortest_paths
from progress.errors import MisuseError

SCHEMAS = {"edges": "src: int, dst: int, weight: int", "roots": "node: int"}
ROOTS = st.tuples(st.integers(0, 8))


@examples(0.5)
@given(courses({"edges": arcs(weighted=True), "roots": ROOTS}), st.integers(1, 3), st.integers(0, 2**20))
def test_meaning_at_every_epoch(course: Course, workers: int, seed: int) -> None:
    follow(weighted_shortest_paths, weighted_distances, SCHEMAS, course, workers, seed)


@examples(0.3)
@given(courses({"edges": arcs(weighted=True), "roots": ROOTS}), st.integers(1, 2), st.integers(0, 2**20))
def test_meaning_with_negative_weights_where_no_circle_is(course: Course, workers: int, seed: int) -> None:
    """Edges lead upwards only, and weigh from −2 to 3."""

    def upwards(rows: Collection) -> Collection:
        low, high = dd.min_of(col.src, col.dst), dd.max_of(col.src, col.dst)
        return rows.select(src=low, dst=high + 1, weight=col.weight - 2)

    def plainly(edges: Rows, roots: Rows) -> Rows:
        lifted = [(min(a, b), max(a, b) + 1, w - 2) for a, b, w in numbers(edges)]
        return weighted_distances(collection(lifted), roots)

    follow(
        lambda edges, roots: weighted_shortest_paths(upwards(edges), roots),
        plainly,
        SCHEMAS,
        course,
        workers,
        seed,
    )


def test_meaning_of_weights_that_are_floats() -> None:
    edges = [((0, 1, 0.5), 1), ((1, 2, 0.25), 1), ((0, 2, 1.0), 1)]
    course: Course = [{"roots": [((0,), 1)], "edges": edges}, {"edges": [((1, 2, 0.25), -1)]}]
    schemas = {"edges": "src: int, dst: int, weight: float", "roots": "node: int"}
    changes = played(weighted_shortest_paths, schemas, course).changes(OUT)
    assert changes[0,] == Rows({(0, 0.0): 1, (1, 0.5): 1, (2, 0.75): 1})
    assert changes[1,] == Rows({(2, 0.75): -1, (2, 1.0): 1})


def test_refused_a_circle_of_negative_weight_ends_the_dataflow() -> None:
    edges = [((0, 1, 1), 1), ((1, 0, -2), 1)]
    with pytest.raises(MisuseError, match=r"weighted shortest paths' \(.*\) went past its limit"):
        played(
            lambda edges, roots: weighted_shortest_paths(_few_iterations(edges), roots),
            SCHEMAS,
            [{"roots": [((0,), 1)], "edges": edges}],
        )


def _few_iterations(edges: Collection) -> Collection:
    edges.dataflow.level_bits = (20, 6)
    return edges
