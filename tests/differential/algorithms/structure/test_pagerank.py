"""algorithms/structure/pagerank.py: ranks in whole numbers.

meaning_*   at every epoch, against the formula; near to networkx, which computes with floats
change_*    what is undone gives the same ranks again
refused_*   shares that are none
"""

from __future__ import annotations

import networkx as nx
import pytest
from graphs_plainly import numbers, ranks
from hypothesis import given
from hypothesis import strategies as st
from reference.collection import Collection as Rows
from reference.collection import accumulated_at, collection
from strategies_collections import examples
from strategies_graphs import OUT, Course, arcs, courses, follow, played

import differential as dd
from differential.algorithms import pagerank
from progress.errors import MisuseError
from timely.building.dataflow import Dataflow

SCHEMAS = {"edges": "src: int, dst: int"}
UNIT = 1_000_000


@examples(0.5)
@given(courses({"edges": arcs()}), st.integers(1, 3), st.integers(0, 2**20), st.integers(1, 5))
def test_meaning_at_every_epoch(course: Course, workers: int, seed: int, iterations: int) -> None:
    follow(
        lambda edges: pagerank(edges, iterations, unit=1000, damping=(5, 6)),
        lambda edges: ranks(edges, iterations, 1000, (5, 6)),
        SCHEMAS,
        course,
        workers,
        seed,
    )


def test_meaning_near_to_floats_where_every_node_points_somewhere() -> None:
    edges = [(node, (node * node + shift) % 30) for node in range(30) for shift in (1, 7)]
    output = played(
        lambda edges: pagerank(edges, 30), SCHEMAS, [{"edges": [(edge, 1) for edge in edges]}]
    ).changes(OUT)
    found = {node: rank for node, rank in numbers(accumulated_at(output, (0,)))}  # noqa: C416  # typed
    wanted = nx.pagerank(nx.DiGraph(edges), 0.85, tol=1e-12)
    assert {node: rank / 30 / UNIT for node, rank in found.items()} == pytest.approx(wanted, abs=1e-5)


def test_change_that_is_undone_gives_the_same_ranks_again() -> None:
    circle = [((node, (node + 1) % 9), 1) for node in range(9)]
    output = played(
        pagerank, SCHEMAS, [{"edges": circle}, {"edges": [((0, 5), 1)]}, {"edges": [((0, 5), -1)]}]
    ).changes(OUT)
    ideal = collection([(node, UNIT) for node in range(9)])
    assert accumulated_at(output, (0,)) == accumulated_at(output, (2,)) == ideal
    assert accumulated_at(output, (1,)) not in (ideal, Rows())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"iterations": 0}, "iterations is a whole number from 1 up, not 0"),
        ({"damping": (3, 2)}, "damping is at most 1, not 3/2"),
        ({"damping": (1, 0)}, "the denominator of damping"),
        ({"unit": 0}, "unit is a whole number"),
    ],
)
def test_refused_what_is_no_share(given: dict[str, object], message: str) -> None:
    edges = dd.input(Dataflow("refused"), "edges", "src: int, dst: int")
    with pytest.raises(MisuseError, match=message):
        pagerank(edges, **given)  # type: ignore[arg-type]  # what is refused
