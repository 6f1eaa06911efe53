"""algorithms/structure/labels.py: labels that spread, at every epoch, against networkx."""

from __future__ import annotations

from graphs_plainly import least_that_reaches
from hypothesis import given
from hypothesis import strategies as st
from strategies_collections import examples
from strategies_graphs import Course, arcs, courses, follow

from differential.algorithms import propagate


@examples(0.5)
@given(
    courses({"edges": arcs(), "labels": st.tuples(st.integers(0, 8), st.integers(-3, 3))}),
    st.integers(1, 3),
    st.integers(0, 2**20),
)
def test_meaning_at_every_epoch(course: Course, workers: int, seed: int) -> None:
    schemas = {"edges": "src: int, dst: int", "labels": "node: int, label: int"}
    follow(propagate, least_that_reaches, schemas, course, workers, seed)
