"""algorithms/paths/closure.py: which nodes can be reached from which, at every epoch, against networkx."""

from __future__ import annotations

from graphs_plainly import pairs_reached
from hypothesis import given
from hypothesis import strategies as st
from strategies_collections import examples
from strategies_graphs import Course, arcs, courses, follow

from differential.algorithms import transitive_closure


@examples(0.5)
@given(courses({"edges": arcs()}), st.integers(1, 3), st.integers(0, 2**20))
def test_meaning_at_every_epoch(course: Course, workers: int, seed: int) -> None:
    follow(transitive_closure, pairs_reached, {"edges": "src: int, dst: int"}, course, workers, seed)
