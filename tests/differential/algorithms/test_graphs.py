"""algorithms/graphs.py: columns by whatever name, and what is refused.

named_*     edges and nodes whose columns are called otherwise
simple_*    the simple graph of any edges
refused_*   with the algorithm, the line that called it, and what to write
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from graphs_plainly import undirected
from hypothesis import given
from hypothesis import strategies as st
from reference.collection import Collection as Rows
from reference.collection import collection
from strategies_collections import examples
from strategies_graphs import Course, arcs, courses, follow

import differential as dd
from differential import Collection, algorithms
from differential.algorithms.graphs import as_edges, neighbours, whole_number
from progress.errors import MisuseError
from timely.building.dataflow import Dataflow

HERE = Path(__file__).name


@examples(0.3)
@given(courses({"calls": st.tuples(st.integers(0, 4), st.integers(0, 9), st.integers(0, 4))}))
def test_named_otherwise_edges_are_those_two_columns(course: Course) -> None:
    follow(
        lambda calls: as_edges("x", calls, "caller", "callee"),
        lambda calls: collection(_summed(calls)),
        {"calls": "callee: int, at: int, caller: int"},
        course,
    )


def _summed(calls: Rows) -> Rows:
    found = Rows()
    for (callee, _, caller), count in calls.items():
        found[caller, callee] += count
    return found


@examples(0.3)
@given(courses({"edges": arcs(5)}), st.integers(1, 3), st.integers(0, 2**20))
def test_simple_neighbours_have_no_loops_and_no_multiplicities(
    course: Course, workers: int, seed: int
) -> None:
    def plain(edges: Rows) -> Rows:
        pairs = undirected(edges).edges
        return collection([*pairs, *((b, a) for a, b in pairs)])

    follow(neighbours, plain, {"edges": "src: int, dst: int"}, course, workers, seed)


def _flow() -> tuple[Collection, Collection]:
    flow = Dataflow("refused")
    return dd.input(flow, "edges", "src: int, dst: int, name: string, w: int?"), dd.input(
        flow, "nodes", "node: int, label: string"
    )


EDGES, NODES = _flow()

REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "no such column": (
        lambda: algorithms.bfs(EDGES, NODES, src="from"),
        "columns src, dst, name, w, and none called 'from': say which it is, as in bfs(…, src='src')",
    ),
    "ends of two types": (
        lambda: algorithms.k_core(EDGES, 2, dst="name"),
        "'src' is int and 'name' is string. Cast one of them before",
    ),
    "a weight that may be null": (
        lambda: algorithms.weighted_shortest_paths(EDGES, NODES, weight="w"),
        "'w' is int?. Cast it, or fill it: edges.with_columns(w=col.w.fill_null(0))",
    ),
    "a weight that is no number": (
        lambda: algorithms.weighted_shortest_paths(EDGES, NODES, weight="name"),
        "weights are numbers",
    ),
    "roots of another type": (
        lambda: algorithms.bfs(EDGES, NODES, node="label"),
        "'label' of roots is string, but the ends of the edges are int",
    ),
    "no collection": (
        lambda: algorithms.bfs("edges", NODES),  # type: ignore[arg-type]  # what is refused
        "edges is a collection, as dd.input gives, not str",
    ),
    "no whole number": (
        lambda: algorithms.k_core(EDGES, 0),
        "k is a whole number from 1 up, not 0",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_with_the_line_that_called(case: str) -> None:
    call, message = REFUSED[case]
    with pytest.raises(MisuseError) as refused:
        call()
    text = str(refused.value)
    assert message in text
    assert f"{HERE}:{call.__code__.co_firstlineno}" in text


@pytest.mark.parametrize("value", [True, 1.0, "1", None, -1])
def test_refused_what_is_no_whole_number(value: object) -> None:
    with pytest.raises(MisuseError, match="from 0 up"):
        whole_number("x", "k", value, 0)
