"""Four nested loops and 2³² epochs: embedded on 1 and 2 workers, and on 2 processes, against recomputation.

The words of such times have 18 bits for the epoch, as there are 10 for each loop.
"""

from __future__ import annotations

from collections import Counter

import pytest
from collection_flows import four_loops

import timely
from progress import TimeLayout

EPOCHS = (0, (1 << 18) + 1, 1 << 31, (1 << 32) - 1)
STEPS = (
    ([(1, 2), (2, 3), (7, 7)], []),
    ([(3, 4), (5, 6)], [(7, 7)]),
    ([(4, 1), (6, 5)], [(2, 3)]),
    ([(2, 3)], [(1, 2), (5, 6)]),
)
"""Edges that come and go at these epochs."""

Edge = tuple[int, int]


def paths(edges: set[Edge]) -> set[Edge]:
    """Which nodes reach which, computed anew."""
    found = edges
    while True:
        longer = found | {(a, d) for a, b in found for c, d in edges if b == c}
        if longer == found:
            return found
        found = longer


def check(cluster: timely.Cluster, by_name: bool) -> None:
    """Feed all epochs; look at the collection after each, and at all changes in the end."""
    flow = cluster.install("collection_flows:four_loops" if by_name else four_loops)
    edges, wanted = set[Edge](), []
    changes: Counter[tuple[int, int, int]] = Counter()
    for epoch, (come, go) in zip(EPOCHS, STEPS, strict=True):
        flow.seal(through=epoch - 1)
        flow.input("edges").insert(come)
        if go:
            flow.input("edges").remove(go)
        assert flow.seal() == epoch
        edges = (edges | set(come)) - set(go)
        wanted.append(paths(edges))
        rows = flow.output("paths").snapshot(timeout=60).to_pylist()
        assert {(row["src"], row["dst"]) for row in rows} == wanted[-1], epoch
        assert len(rows) == len(wanted[-1])
    for row in flow.output("paths").changes(timeout=60).to_pylist():
        changes[row["src"], row["dst"], row["epoch"]] += row["diff"]
    assert {epoch for *_, epoch in changes} == set(EPOCHS)
    for epoch, there in zip(EPOCHS, wanted, strict=True):
        summed = Counter[Edge]()
        for (src, dst, at), diff in changes.items():
            summed[src, dst] += diff if at <= epoch else 0
        assert dict.fromkeys(there, 1) == {edge: count for edge, count in summed.items() if count}


def test_words_of_four_loops_have_ten_bits_for_each_and_not_enough_for_these_epochs() -> None:
    first, *loops = TimeLayout.default(5).level_bits
    assert min(loops) >= 10 and 1 << first < EPOCHS[1]


@pytest.mark.parametrize("workers", [1, 2])
def test_embedded_workers_answer_at_far_epochs_as_if_computed_anew(workers: int) -> None:
    with timely.connect(workers=workers, embedded=True, check_progress=True) as cluster:
        check(cluster, by_name=False)


def test_processes_answer_at_far_epochs_as_if_computed_anew() -> None:
    with timely.connect(workers=2) as cluster:
        check(cluster, by_name=True)
