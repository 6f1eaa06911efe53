"""algorithms/components.py: the components of an undirected graph that changes.

meaning_*   the output accumulated up to every epoch, against scipy
change_*    what a change of the graph changes in the output
small_*     prioritised: the same, whatever numbers nodes have; whole numbers only
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import collection as plainly
from reference.collection import Collection as Rows
from reference.collection import accumulated_at
from reference.dataflow import Change, Cluster, check_at_times
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components as components_of
from strategies_collections import examples, histories

import differential as dd
from differential.algorithms import connected_components
from differential.errors import SchemaError
from differential.testing import assert_updates
from timely.building.dataflow import Dataflow

Edge = tuple[int, int]


def components_plainly(edges: Rows) -> Rows:
    """(node, least node of its component) for all nodes of edges that are there."""
    present = sorted(row for row, count in edges.items() if count > 0)
    if not present:
        return Rows()
    nodes, numbered = np.unique(np.array(present, dtype=np.int64), return_inverse=True)
    ends = numbered.reshape(-1, 2)
    matrix = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(len(nodes), len(nodes)))
    label = components_of(matrix, directed=False)[1]
    least = {int(number): int(nodes[label == number].min()) for number in set(label.tolist())}
    return plainly.collection([(int(node), least[int(label[place])]) for place, node in enumerate(nodes)])


def _components(flow: Dataflow) -> None:
    connected_components(dd.input(flow, "edges", "src: int, dst: int")).output("components")


@st.composite
def sliding_graphs(draw: st.DrawFn) -> list[list[tuple[Edge, int]]]:
    """Epochs of (edge, +1 or -1): what is removed was there. Parallel edges and loops at a node occur."""
    size = draw(st.sampled_from([3, 6, 12]))
    edge = st.tuples(st.integers(0, size), st.integers(0, size))
    there: list[Edge] = []
    epochs: list[list[tuple[Edge, int]]] = []
    for _ in range(draw(st.integers(1, 5))):
        come = draw(st.lists(edge, max_size=size))
        there += come
        go = [
            there.pop(draw(st.integers(0, len(there) - 1))) for _ in range(draw(st.integers(0, len(there))))
        ]
        epochs.append([(each, 1) for each in come] + [(each, -1) for each in go])
    return epochs


# meaning_


@given(sliding_graphs(), st.integers(1, 3), st.integers(0, 2**20))
def test_meaning_up_to_every_epoch(epochs: list[list[tuple[Edge, int]]], workers: int, seed: int) -> None:
    """Epochs follow one another or are in flight together, as the bits of the seed say."""
    cluster = Cluster(_components, workers, seed)
    for epoch, changes in enumerate(epochs):
        for number, change in enumerate(changes):
            cluster.change("edges", [change], worker=(number + seed) % workers)
        cluster.seal()
        if seed >> epoch & 1:
            cluster.run()
    cluster.run()
    output = cluster.changes("components")
    graph: Counter[tuple[int, int]] = Counter()
    for epoch, changes in enumerate(epochs):
        for edge, diff in changes:
            graph[edge] += diff
        assert accumulated_at(output, (epoch,)) == components_plainly(Rows(graph)), epoch
    assert cluster.snapshot("components") == components_plainly(Rows(graph))


def _components_of_distinct(edges: dd.Collection) -> dd.Collection:
    return connected_components(edges.distinct())


def _small_ones_first_of_distinct(edges: dd.Collection) -> dd.Collection:
    return connected_components(edges.distinct(), prioritised=True)


@pytest.mark.parametrize("depth", [2, 3])
def test_meaning_inside_loops_at_every_time(depth: int) -> None:
    """Where a multiplicity may be negative at some times, `distinct` says which edges are there."""

    @examples(1)
    @given(
        histories(depth, st.tuples(st.integers(0, 4), st.integers(0, 4))),
        st.integers(1, 3),
        st.integers(0, 2**20),
    )
    def holds(changes: list[Change], workers: int, seed: int) -> None:
        check_at_times(
            _components_of_distinct,
            components_plainly,
            [changes],
            depth=depth,
            workers=workers,
            seed=seed,
            schemas="src: int, dst: int",
        )

    holds()


@examples(0.4)
@given(sliding_graphs(), st.integers(1, 2), st.integers(0, 2**20))
def test_meaning_with_nodes_given_those_without_edges_are_components(
    epochs: list[list[tuple[Edge, int]]], workers: int, seed: int
) -> None:
    def build(flow: Dataflow) -> None:
        edges = dd.input(flow, "edges", "src: int, dst: int")
        nodes = dd.input(flow, "nodes", "extra: int, node: int")
        connected_components(edges, nodes).output("components")

    cluster = Cluster(build, workers, seed)
    cluster.change("nodes", [((0, node), 1) for node in range(20)])
    graph: Counter[tuple[int, int]] = Counter()
    for changes in epochs:
        cluster.change("edges", changes)
        cluster.seal()
        cluster.run()
        for edge, diff in changes:
            graph[edge] += diff
    alone = {(node, node) for node in range(20)}
    expected = components_plainly(plainly.concat(Rows(graph), Rows(alone)))
    assert cluster.snapshot("components") == expected


def test_meaning_of_a_long_path_that_is_cut_and_mended() -> None:
    """As many iterations as the path is long, forwards and back."""
    length = 60
    cluster = Cluster(_components, workers=2, seed=5)
    cluster.change("edges", [((node, node + 1), 1) for node in range(length)])
    graph = Counter({(node, node + 1): 1 for node in range(length)})
    for epoch, (edge, diff) in enumerate([((30, 31), -1), ((30, 31), 1), ((0, 1), -1), ((10, 50), 1)], 1):
        cluster.change("edges", [(edge, diff)], epoch)
    cluster.seal(4)
    cluster.run()
    output = cluster.changes("components")
    assert accumulated_at(output, (0,)) == components_plainly(Rows(graph))
    for epoch, (edge, diff) in enumerate([((30, 31), -1), ((30, 31), 1), ((0, 1), -1), ((10, 50), 1)], 1):
        graph[edge] += diff
        assert accumulated_at(output, (epoch,)) == components_plainly(Rows(graph)), epoch


# change_


def _changed(epochs: list[list[tuple[Edge, int]]]) -> list[Change]:
    cluster = Cluster(_components)
    for epoch, changes in enumerate(epochs):
        cluster.change("edges", changes, epoch)
    cluster.seal(len(epochs) - 1)
    cluster.run()
    return [
        (row, time, diff)
        for time, rows in cluster.changes("components").items()
        for row, diff in rows.items()
    ]


def test_change_joining_two_components_relabels_one_of_them() -> None:
    changes = _changed([[((1, 2), 1), ((5, 6), 1)], [((2, 6), 1)]])
    assert_updates(
        changes,
        """
        node | component | epoch | diff
        1    | 1         | 0     | +1
        2    | 1         | 0     | +1
        5    | 5         | 0     | +1
        6    | 5         | 0     | +1
        5    | 5         | 1     | -1
        5    | 1         | 1     | +1
        6    | 5         | 1     | -1
        6    | 1         | 1     | +1
        """,
    )


def test_change_an_edge_within_a_component_changes_nothing() -> None:
    start: list[tuple[Edge, int]] = [((1, 2), 1), ((2, 3), 1), ((3, 1), 1)]
    assert {time for _, time, _ in _changed([start, [((2, 3), -1)], [((1, 3), 5)], [((2, 3), 1)]])} == {(0,)}


def test_change_a_node_without_edges_is_gone() -> None:
    changes = _changed([[((1, 2), 1), ((2, 3), 1)], [((1, 2), -1)]])
    assert [change for change in changes if change[1] == (1,) and change[0][0] == 1] == [((1, 1), (1,), -1)]


# small_


@examples(0.5)
@given(sliding_graphs(), st.integers(-300, 0), st.integers(1, 90), st.integers(1, 3), st.integers(0, 2**20))
def test_small_ones_first_gives_the_same_components_at_every_epoch(
    epochs: list[list[tuple[Edge, int]]], least: int, apart: int, workers: int, seed: int
) -> None:
    """Nodes from below 0 to far above it, so that some come in together and others long after one another."""

    def build(flow: Dataflow) -> None:
        edges = dd.input(flow, "edges", "src: int, dst: int")
        connected_components(edges, prioritised=True).output("components")

    cluster = Cluster(build, workers, seed)
    graph: Counter[tuple[int, int]] = Counter()
    wanted: list[Rows] = []
    for epoch, changes in enumerate(epochs):
        placed = [((least + apart * src, least + apart * dst), diff) for (src, dst), diff in changes]
        cluster.change("edges", placed)
        cluster.seal()
        if seed >> epoch & 1:
            cluster.run()
        for edge, diff in placed:
            graph[edge] += diff
        wanted.append(components_plainly(Rows(graph)))
    cluster.run()
    output = cluster.changes("components")
    for epoch, components in enumerate(wanted):
        assert accumulated_at(output, (epoch,)) == components, epoch


def test_small_ones_first_inside_loops_at_every_time() -> None:
    @examples(0.3)
    @given(
        histories(2, st.tuples(st.integers(0, 4), st.integers(0, 4))),
        st.integers(1, 3),
        st.integers(0, 2**20),
    )
    def holds(changes: list[Change], workers: int, seed: int) -> None:
        check_at_times(
            _small_ones_first_of_distinct,
            components_plainly,
            [changes],
            depth=2,
            workers=workers,
            seed=seed,
            schemas="src: int, dst: int",
        )

    holds()


@pytest.mark.parametrize("type_", ["string", "int?"])
def test_small_ones_first_is_for_whole_numbers_only(type_: str) -> None:
    edges = dd.input(Dataflow("refused"), "edges", f"a: {type_}, b: {type_}")
    with pytest.raises(SchemaError, match=r"test_components.py.* whole numbers, .* but 'a' is"):
        connected_components(edges, src="a", dst="b", prioritised=True)
