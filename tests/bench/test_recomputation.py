"""recomputation: is what runs are held against right itself?

  plain_*      each algorithm against the plainest means, on random inputs with all that can be odd in them
  believed_*   recorded sums come first; what is not recorded is recomputed

That it agrees with all recorded sums is a claim of `test_workloads.py`.
"""

from __future__ import annotations

import numpy as np
import pytest
from graphs_plainly import numbers, ranks
from reference.collection import collection
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components, shortest_path

from bench import recomputation, workloads
from bench.workloads import EXPECTED, Int64s

SHAPES = [(1, 0), (1, 3), (2, 1), (7, 4), (7, 30), (60, 50), (60, 90), (60, 400)]
"""Nodes and edges: none, loops at one node, edges twice, hardly any and nearly all of them connected."""


def drawn(shape: tuple[int, int], seed: int) -> tuple[Int64s, Int64s]:
    nodes, edges = shape
    src, dst = workloads.draws((nodes, nodes), edges, seed)
    return src, dst


def matrix(nodes: int, src: Int64s, dst: Int64s) -> coo_array:
    return coo_array((np.ones(len(src)), (src, dst)), shape=(nodes, nodes))


def same_parts(a: Int64s, b: Int64s) -> bool:
    """Whether two nodes have equal numbers in `a` just when they have in `b`."""
    return bool(np.array_equal(a[:, None] == a, b[:, None] == b))


@pytest.mark.parametrize("seed", range(1, 6))
@pytest.mark.parametrize("shape", SHAPES)
def test_plain_components_are_those_of_scipy(shape: tuple[int, int], seed: int) -> None:
    nodes, (src, dst) = shape[0], drawn(shape, seed)
    labels = recomputation.least_labels(nodes, src, dst)
    assert same_parts(labels, connected_components(matrix(nodes, src, dst), directed=False)[1])
    assert all(label == np.flatnonzero(labels == label).min() for label in labels)


@pytest.mark.parametrize("seed", range(1, 6))
@pytest.mark.parametrize("shape", SHAPES)
def test_plain_strong_components_are_those_of_scipy(shape: tuple[int, int], seed: int) -> None:
    nodes, (src, dst) = shape[0], drawn(shape, seed)
    component = recomputation.strong_components(nodes, src, dst)
    assert same_parts(component, connected_components(matrix(nodes, src, dst), connection="strong")[1])


@pytest.mark.parametrize("seed", range(1, 6))
@pytest.mark.parametrize("shape", SHAPES)
def test_plain_distances_are_those_of_scipy(shape: tuple[int, int], seed: int) -> None:
    nodes, (src, dst) = shape[0], drawn(shape, seed)
    distances = recomputation.distances_from_zero(nodes, src, dst)
    path = shortest_path(matrix(nodes, src, dst), unweighted=True, indices=0)
    assert distances.tolist() == [int(steps) if np.isfinite(steps) else -1 for steps in path]


@pytest.mark.parametrize("seed", range(1, 6))
@pytest.mark.parametrize("shape", SHAPES)
def test_plain_ranks_are_those_of_the_formula(shape: tuple[int, int], seed: int) -> None:
    nodes, (src, dst) = shape[0], drawn(shape, seed)
    found = recomputation.ranks_of(nodes, src, dst)
    edges = collection(list(zip(src.tolist(), dst.tolist(), strict=True)))
    rows = ranks(edges, workloads.ITERATIONS, workloads.UNIT, workloads.DAMPING)
    wanted = {node: rank for node, rank in numbers(rows)}  # noqa: C416  # typed
    assert {node: int(found[node]) for node in np.flatnonzero(found)} == wanted


@pytest.mark.parametrize(("left_rows", "right_rows"), [(0, 0), (0, 5), (5, 0), (1, 1), (40, 70)])
def test_plain_join_is_every_pair_with_equal_keys(left_rows: int, right_rows: int) -> None:
    (left_key,), (right_key,) = workloads.draws((9,), left_rows, 1), workloads.draws((12,), right_rows, 2)
    left, right = recomputation.joined(left_key, right_key)
    pairs = [(i, j) for i in range(left_rows) for j in range(right_rows) if left_key[i] == right_key[j]]
    assert sorted(zip(left.tolist(), right.tolist(), strict=True)) == pairs


def test_plain_counts_and_totals_are_plain_sums() -> None:
    counted = recomputation.recomputed("count plain 5 40 3 4").changes
    sums = workloads.sum_(5, 40, 3, 4)
    present = sums.schedule.present(3)
    assert counted.sum == 40 and counted.n == len(set(workloads.count(5, 40, 3, 4).key[present].tolist()))
    assert recomputation.recomputed("sum 5 40 3 4").changes.sum == sum(sums.value[present].tolist())


def test_plain_largest_values_of_each_key_are_those_that_sort_first() -> None:
    drawn = workloads.sum_(6, 60, 3, 20)
    rows = drawn.schedule.present(2)
    by_key: dict[int, list[int]] = {}
    for key, value in zip(drawn.key[rows].tolist(), (drawn.value[rows] % 9).tolist(), strict=True):
        by_key.setdefault(key, []).append(value)
    wanted = [(key, value) for key in by_key for value in sorted(by_key[key])[-3:]]
    check = recomputation.top_check(drawn._replace(value=drawn.value % 9), rows)
    keys, values = zip(*wanted, strict=True)
    assert check == workloads.check_top(np.array(keys), np.array(values))


def test_plain_q3_is_what_the_words_say() -> None:
    drawn = workloads.q3(3_000, 4, 1_000)
    rows = drawn.schedule.present(3)
    totals = []
    for order in range(rows.start, rows.stop):
        lines = [line for line in range(4 * order, 4 * order + 4) if drawn.shipped[line] > 1_168]
        if drawn.segment[drawn.customer[order]] == 0 and drawn.day[order] < 1_168 and lines:
            totals.append((-sum(drawn.revenue[lines].tolist()), int(drawn.day[order]), order))
    first = sorted(totals)[:10]
    assert len(totals) > 10, "otherwise nothing is left out"
    orders, revenues = np.array([row[2] for row in first]), np.array([-row[0] for row in first])
    assert recomputation.q3_check(drawn, rows) == workloads.check_q3(orders, revenues)


def test_believed_is_what_is_recorded_however_it_is_computed() -> None:
    assert (
        recomputation.believed("wcc prioritised 1000000 2000000 100") == EXPECTED["wcc 1000000 2000000 100"]
    )


def test_believed_is_recomputed_where_nothing_is_recorded() -> None:
    load = recomputation.believed("wcc plain 60 50 4").load
    assert load == recomputation.recomputed("wcc plain 60 50 9").load
    assert load != recomputation.believed("wcc plain 60 50 4").changes
