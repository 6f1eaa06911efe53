"""algorithms/strong_components.py: what can reach one another, at every epoch, against networkx."""

from __future__ import annotations

from graphs_plainly import edges_inside, strong_components
from hypothesis import given
from hypothesis import strategies as st
from strategies_collections import examples
from strategies_graphs import Course, arcs, courses, follow

from differential.algorithms import edges_inside_components, strongly_connected_components

SCHEMAS = {"edges": "src: int, dst: int"}


@examples(0.4)
@given(courses({"edges": arcs()}), st.integers(1, 3), st.integers(0, 2**20))
def test_meaning_components_at_every_epoch(course: Course, workers: int, seed: int) -> None:
    follow(strongly_connected_components, strong_components, SCHEMAS, course, workers, seed)


@examples(0.4)
@given(courses({"edges": arcs()}), st.integers(1, 3), st.integers(0, 2**20))
def test_meaning_edges_inside_components_at_every_epoch(course: Course, workers: int, seed: int) -> None:
    follow(edges_inside_components, edges_inside, SCHEMAS, course, workers, seed)
