"""algorithms/structure/k_core.py: neighbours who have enough of them, against networkx."""

from __future__ import annotations

from graphs_plainly import core
from hypothesis import given
from hypothesis import strategies as st
from strategies_collections import examples
from strategies_graphs import Course, arcs, courses, follow

from differential.algorithms import k_core


@examples(0.5)
@given(courses({"edges": arcs(6)}, rows_max=24), st.integers(1, 3), st.integers(0, 2**20), st.integers(1, 4))
def test_meaning_at_every_epoch(course: Course, workers: int, seed: int, k: int) -> None:
    schemas = {"edges": "src: int, dst: int"}
    follow(lambda edges: k_core(edges, k), lambda edges: core(edges, k), schemas, course, workers, seed)
