"""algorithms/structure/communities.py: what most neighbours say, at every epoch, against the definition."""

from __future__ import annotations

from graphs_plainly import communities
from hypothesis import given
from hypothesis import strategies as st
from reference.collection import accumulated_at, collection
from strategies_collections import examples
from strategies_graphs import OUT, Course, arcs, courses, follow, played

from differential.algorithms import label_propagation

SCHEMAS = {"edges": "src: int, dst: int"}


@examples(0.5)
@given(courses({"edges": arcs()}), st.integers(1, 3), st.integers(0, 2**20), st.integers(1, 4))
def test_meaning_at_every_epoch(course: Course, workers: int, seed: int, iterations: int) -> None:
    follow(
        lambda edges: label_propagation(edges, iterations),
        lambda edges: communities(edges, iterations),
        SCHEMAS,
        course,
        workers,
        seed,
    )


def test_meaning_two_cliques_with_a_bridge_are_two_communities() -> None:
    cliques = [(a, b) for base in (0, 10) for a in range(base, base + 5) for b in range(base, a)]
    changes = [(edge, 1) for edge in [*cliques, (4, 10)]]
    output = played(label_propagation, SCHEMAS, [{"edges": changes}]).changes(OUT)
    sides = [(base + node, base) for base in (0, 10) for node in range(5)]
    assert accumulated_at(output, (0,)) == collection(sides)
