"""algorithms/paths/bidirectional.py: distances between pairs, at every epoch, against networkx."""

from __future__ import annotations

from graphs_plainly import distances_between
from hypothesis import given
from hypothesis import strategies as st
from strategies_collections import examples
from strategies_graphs import Course, arcs, courses, follow

from differential.algorithms import bidirectional_shortest_paths


@examples(0.5)
@given(courses({"edges": arcs(), "pairs": arcs()}), st.integers(1, 3), st.integers(0, 2**20))
def test_meaning_at_every_epoch(course: Course, workers: int, seed: int) -> None:
    schemas = {"edges": "src: int, dst: int", "pairs": "source: int, target: int"}
    follow(bidirectional_shortest_paths, distances_between, schemas, course, workers, seed)


def test_meaning_on_a_long_circle_whichever_way_is_cut() -> None:
    """From node 0 of 40 to node 30: thirty edges forwards; with a shortcut, fewer."""
    circle = [((node, (node + 1) % 40), 1) for node in range(40)]
    course: Course = [
        {"edges": circle, "pairs": [((0, 30), 1), ((30, 0), 2)]},
        {"edges": [((5, 25), 1)]},
        {"edges": [((35, 36), -1)]},
        {"edges": [((5, 25), -1), ((35, 36), 1)]},
    ]
    schemas = {"edges": "src: int, dst: int", "pairs": "source: int, target: int"}
    follow(bidirectional_shortest_paths, distances_between, schemas, course, 2, 7)
