"""All algorithms on graphs that people have published (`real_graphs.py`), with changes.

fact_*      the numbers that are stated with the data
change_*    load, take some edges and put some in, undo it: against networkx after each

Without the data there is nothing to test here, and no test.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

import graphs_plainly as plainly
import numpy as np
import pytest
from real_graphs import GRAPHS, distinct_edges
from reference.collection import Collection as Rows
from reference.collection import Row, accumulated_at, collection
from reference.dataflow import Build, PlainBuild
from strategies_graphs import OUT, Changes, played

from differential import algorithms, col

CHANGED = 100
"""Edges that go in epoch 1, and edges that come."""


@dataclass(frozen=True)
class OnReal:
    """An algorithm, what it means, and on which graph it is tried; `roots` for those that begin somewhere."""

    graph: str
    build: Build
    plain: PlainBuild
    roots: tuple[Row, ...] = ()
    least: int = 0
    facts: Callable[[Rows], object] = field(default=len)
    stated: object = None


def _sizes(labelled: Rows) -> object:
    """How many components, and the size of the largest."""
    sizes = Counter(component for _, component in labelled)
    return len(sizes), max(sizes.values())


CASES: dict[str, OnReal] = {
    "bfs": OnReal(
        "wiki-vote",
        algorithms.bfs,
        plainly.distances,
        roots=((3,),),
        facts=lambda rows: (len(rows), max(distance for _, distance in plainly.numbers(rows))),
        stated=(2_316, 5),
    ),
    "weighted": OnReal(
        "wiki-vote",
        lambda edges, roots: algorithms.weighted_shortest_paths(
            edges.with_columns(weight=(col.src * 7 + col.dst * 3) % 10), roots
        ),
        lambda edges, roots: plainly.weighted_distances(
            Rows({(a, b, (a * 7 + b * 3) % 10): n for (a, b), n in plainly.numbers(edges).items()}), roots
        ),
        roots=((3,),),
        stated=2_316,
    ),
    "connected": OnReal(
        "wiki-vote", algorithms.connected_components, plainly.components, facts=_sizes, stated=(24, 7_066)
    ),
    "strong": OnReal(
        "collegemsg",
        algorithms.strongly_connected_components,
        plainly.strong_components,
        facts=_sizes,
        stated=(601, 1_294),
    ),
    "closure": OnReal(
        "collegemsg", algorithms.transitive_closure, plainly.pairs_reached, least=1_400, stated=None
    ),
    "core": OnReal(
        "collegemsg",
        lambda edges: algorithms.k_core(edges, 20),
        lambda edges: plainly.core(edges, 20),
    ),
    "triangles": OnReal("collegemsg", algorithms.triangles, plainly.cliques_of_three),
    "pagerank": OnReal(
        "collegemsg",
        lambda edges: algorithms.pagerank(edges, 10),
        lambda edges: plainly.ranks(edges, 10, 1_000_000, (85, 100)),
    ),
    "communities": OnReal(
        "collegemsg", algorithms.label_propagation, lambda edges: plainly.communities(edges, 5)
    ),
    "colouring": OnReal("collegemsg", algorithms.graph_colouring, plainly.greedy_colours),
}


@cache
def _present(graph: str, least: int) -> tuple[Row, ...]:
    """The edges between nodes from `least` up."""
    return tuple((a, b) for a, b in distinct_edges(graph).tolist() if min(a, b) >= least)


if GRAPHS:

    @pytest.mark.parametrize("name", CASES)
    def test_change_and_back_against_networkx(name: str) -> None:
        case = CASES[name]
        present = _present(case.graph, case.least)
        draw = np.random.default_rng(5)
        gone = [present[place] for place in draw.choice(len(present), CHANGED, replace=False)]
        ends = [(present[a][0], present[b][1]) for a, b in draw.integers(0, len(present), (CHANGED, 2))]
        come = sorted(set(ends) - set(present))
        there: Changes = [(edge, 1) for edge in present]
        swap: Changes = [*((edge, -1) for edge in gone), *((edge, 1) for edge in come)]
        back: Changes = [(edge, -diff) for edge, diff in swap]
        schemas = {"edges": "src: int, dst: int"} | ({"roots": "node: int"} if case.roots else {})
        first: dict[str, Changes] = {"edges": there}
        if case.roots:
            first["roots"] = [(root, 1) for root in case.roots]
        output = played(case.build, schemas, [first, {"edges": swap}, {"edges": back}]).changes(OUT)
        before = collection(present)
        after = collection([*(set(present) - set(gone)), *come])
        roots = (collection(case.roots),) if case.roots else ()
        loaded = case.plain(before, *roots)
        assert accumulated_at(output, (0,)) == loaded
        assert accumulated_at(output, (1,)) == case.plain(after, *roots) != loaded
        assert accumulated_at(output, (2,)) == loaded
        assert case.stated in (None, case.facts(loaded))
        assert accumulated_at(output, (3,)) == Rows()
