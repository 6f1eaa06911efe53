"""algorithms/paths/bfs.py: distances in edges.

meaning_*   at every epoch, against networkx
change_*    what comes out when an edge goes
"""

from __future__ import annotations

from graphs_plainly import distances
from hypothesis import given
from hypothesis import strategies as st
from reference.collection import Collection as Rows
from strategies_collections import examples
from strategies_graphs import OUT, Course, arcs, courses, follow, played

from differential.algorithms import bfs

SCHEMAS = {"edges": "src: int, dst: int", "roots": "node: int"}
ROOTS = st.tuples(st.integers(0, 8))


@examples(0.5)
@given(courses({"edges": arcs(), "roots": ROOTS}), st.integers(1, 3), st.integers(0, 2**20))
def test_meaning_at_every_epoch(course: Course, workers: int, seed: int) -> None:
    follow(bfs, distances, SCHEMAS, course, workers, seed)


@examples(0.3)
@given(
    courses({"edges": arcs(), "roots": ROOTS}),
    st.integers(1, 2),
    st.integers(0, 2**20),
    st.integers(0, 3),
)
def test_meaning_no_further_than_the_greatest_distance(
    course: Course, workers: int, seed: int, most: int
) -> None:
    follow(
        lambda edges, roots: bfs(edges, roots, distance_max=most),
        lambda edges, roots: distances(edges, roots, most),
        SCHEMAS,
        course,
        workers,
        seed,
    )


def test_change_a_circle_that_is_cut_off_is_gone_at_once() -> None:
    """Nobody counts up: the nodes of the circle propose to one another what the root no longer says."""
    circle = [((1, 2), 1), ((2, 3), 1), ((3, 1), 1)]
    course: Course = [{"roots": [((0,), 1)], "edges": [((0, 1), 1), *circle]}, {"edges": [((0, 1), -1)]}]
    changes = played(bfs, SCHEMAS, course).changes(OUT)
    assert changes[1,] == Rows({(1, 1): -1, (2, 2): -1, (3, 3): -1})
