"""algorithms/structure/colouring.py: the least colour that no smaller neighbour has, against networkx."""

from __future__ import annotations

from graphs_plainly import greedy_colours
from hypothesis import given
from hypothesis import strategies as st
from strategies_collections import examples
from strategies_graphs import Course, arcs, courses, follow

from differential.algorithms import graph_colouring


@examples(0.5)
@given(courses({"edges": arcs(6)}, rows_max=24), st.integers(1, 3), st.integers(0, 2**20))
def test_meaning_at_every_epoch(course: Course, workers: int, seed: int) -> None:
    follow(graph_colouring, greedy_colours, {"edges": "src: int, dst: int"}, course, workers, seed)
