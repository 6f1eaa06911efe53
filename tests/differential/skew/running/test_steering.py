"""Joins that balance themselves: the pairs are those of a plain join, at each epoch, whatever moves.

law_*        random histories of skew that comes and goes, in any order of events, beside a plain join
sums_*       what counts add up to
announced_*  only what pays
refused_*    in loops, as all routes that change
"""

from __future__ import annotations

import random
from collections import Counter
from itertools import count

import numpy as np
import pytest
from reference.dataflow import Cluster

import differential as dd
from differential.collections.balanced import balancing
from differential.columns.column_types import Int64s
from differential.skew.placements.hash import hash_placement
from differential.skew.running import steering
from differential.skew.running.steering import LoadSums, SteeringVertex, announced_for
from progress.times.anchor import Rebase
from timely.building.dataflow import Dataflow
from timely.errors import GraphError
from timely.routing.announcement import KEY, RoutingCell

EPOCHS = 7
NAME = "keys divided among workers, once that pays"


def build(flow: Dataflow) -> None:
    """The same join twice."""
    a, b = dd.input(flow, "a", "k: int?, v: int"), dd.input(flow, "b", "k: int?, w: int")
    a.join(b, on="k", balance="auto").output("auto")
    a.join(b, on="k").output("plain")


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Balance as soon as there is anything uneven."""
    monkeypatch.setattr(steering, "SPREAD_LOAD_MIN", 10)
    monkeypatch.setattr(balancing, "HEAVY_ROWS_MIN", 4)


@pytest.mark.parametrize("workers", [2, 3])
def test_law_pairs_are_those_of_a_plain_join_at_each_epoch(
    workers: int, seed: int, effort: int, soon: None
) -> None:
    plans = 0
    for trial in count():
        if trial >= effort and (plans or trial >= 9):  # one more until some plan was made
            break
        rng = random.Random(f"{seed} {trial} {workers}")
        cluster = Cluster(build, workers, rng.randrange(1 << 30), monitored=trial == 0)
        held: dict[str, Counter[tuple[int | None, int]]] = {"a": Counter(), "b": Counter()}
        behind = rng.choice([0, 1, 3])
        for epoch in range(EPOCHS):
            hot = epoch // 3
            for name, rows in held.items():
                for _ in range(rng.choice([0, 4, 12]) if name == "a" else 2):
                    key = rng.choice([hot, hot, hot, None, rng.randrange(9)])
                    row = (key, rng.randrange(5))
                    rows[row] += 1
                    cluster.change(name, [(row, 1)], epoch, rng.randrange(workers))
                for row in [row for row in rows.elements() if rng.random() < (0.1 if epoch % 3 else 0.5)]:
                    rows[row] -= 1
                    cluster.change(name, [(row, -1)], epoch, rng.randrange(workers))
            if epoch >= behind:
                cluster.seal(epoch - behind)
            cluster.harry(rng, rng.choice([0, 5, 20]))
            if rng.random() < 0.3:
                cluster.run()
        cluster.seal(EPOCHS + 2)
        cluster.run()
        assert cluster.changes("auto") == cluster.changes("plain"), trial
        plans += sum(vertex.counters()["plans"] for vertex in cluster.vertices(NAME))
    assert plans, "it never went over"


@pytest.mark.parametrize(("rows", "is_due"), [(29, False), (30, True)])
def test_a_check_is_due_once_the_rows_since_the_last_one_are_a_third_of_all(rows: int, is_due: bool) -> None:
    cluster = Cluster(build, 2)

    def checks() -> int:
        return sum(vertex.counters()["checks"] for vertex in cluster.vertices(NAME))

    for epoch, keys in enumerate((range(60), range(60, 60 + rows))):
        cluster.change("a", [((key, 0), 1) for key in keys], epoch)
        cluster.seal(epoch)
        cluster.run()
        assert checks() == 1 + (epoch and is_due)


def test_counts_that_wait_move_with_the_epochs() -> None:
    """Those of epochs before the new first one wait for that one."""
    vertex = SteeringVertex(hash_placement(16))
    of_3, of_5, of_9 = (counts((0, bucket, 1, 1, 1, 1)) for bucket in (3, 5, 9))
    vertex._noted = {3: [of_3], 5: [of_5], 9: [of_9]}
    vertex.rebase(Rebase(5, 30))
    assert list(vertex._noted) == [0, 4]
    assert [part is other for part, other in zip(vertex._noted[0], (of_3, of_5), strict=True)] == [True, True]
    assert vertex._noted[4][0] is of_9 and len(vertex._noted[4]) == 1


def test_law_of_one_worker_nothing_is_announced(soon: None) -> None:
    cluster = Cluster(build, 1)
    cluster.change("a", [((1, value), 1) for value in range(40)], 0)
    cluster.change("b", [((1, 3), 1)], 0)
    cluster.close()
    cluster.run()
    assert cluster.snapshot("auto") == cluster.snapshot("plain") and cluster.snapshot("auto").total() == 40
    assert not any(vertex.counters()["checks"] for vertex in cluster.vertices(NAME))


def counts(*rows: tuple[int, int, int, int, int, int]) -> Int64s:
    """Changes of counts: is_key, key, left, right, keys, diff."""
    return np.array([[*row[:-1], 0, row[-1]] for row in rows], np.int64).T


def test_sums_are_those_of_the_last_counts() -> None:
    sums = LoadSums()
    assert not sums.is_due()
    sums.add(counts((0, 5, 10, 4, 2, 1), (1, 77, 300, 2, 1, 1), (0, 5, 1, 0, 1, 1)))
    assert sums.is_due() and sums.traffic == 317
    sums.traffic = 0
    sums.add(counts((0, 5, 10, 4, 2, -1), (0, 5, 8, 4, 2, 1), (1, 77, 300, 2, 1, -1), (1, 77, 310, 2, 1, 1)))
    assert sums.traffic == 8 and not sums.is_due()
    loads = sums.loads().counts
    assert loads[RoutingCell(KEY, 0, 77)] == (310, 2, 620) and len(loads) == 2
    assert loads[RoutingCell(0, 0, 5)] == (9, 4, 12)
    sums.add(counts((1, 77, 310, 2, 1, -1), (0, 5, 8, 4, 2, -1), (0, 5, 1, 0, 1, -1)))
    assert not sums.loads().counts


def test_sums_of_rows_that_are_there_less_than_0_times_are_no_load() -> None:
    sums = LoadSums()
    sums.add(counts((0, 5, -10, 4, 0, 1), (1, 7, 3, -2, 1, 1)))
    assert set(sums.loads().counts.values()) == {(0, 4, 0), (3, 0, 0)}


def test_announced_only_if_a_worker_has_much_more_than_the_mean() -> None:
    placement = hash_placement(16)
    even, hot = LoadSums(), LoadSums()
    even.add(counts(*((0, bucket, 100, 100, 50, 1) for bucket in range(64))))
    hot.add(counts(*((0, bucket, 100, 100, 50, 1) for bucket in range(64)), (1, 16, 50_000, 2, 1, 1)))
    table = placement.first
    assert announced_for(placement, table, even.loads(), 2) == []
    rows = announced_for(placement, table, hot.loads(), 2)
    divided = placement.changed(table, rows)
    assert rows and announced_for(placement, divided, hot.loads(), 2) == [], "it is even now"
    few = LoadSums()
    few.add(counts((1, 16, 100, 2, 1, 1)))
    assert announced_for(placement, table, few.loads(), 2) == [], "too little to move rows for"


def test_law_conditions_without_keys_have_one_key(soon: None) -> None:
    def any_pair(flow: Dataflow) -> None:
        a, b = dd.input(flow, "a", "v: int"), dd.input(flow, "b", "w: int")
        a.theta_join(b, dd.col.v < dd.col.w, balance="auto").output("pairs")

    cluster = Cluster(any_pair, 2, 7)
    for epoch in range(4):
        cluster.change("a", [((value,), 1) for value in range(60 * epoch, 60 * epoch + 60)], epoch)
        cluster.change("b", [((50 * epoch,), 1)], epoch)
        cluster.seal(epoch)
        cluster.run()
    wanted = Counter((v, w) for v in range(240) for w in range(0, 200, 50) if v < w)
    assert cluster.snapshot("pairs") == wanted
    assert sum(vertex.counters()["plans"] for vertex in cluster.vertices(NAME))


def test_refused_in_a_loop() -> None:
    flow = Dataflow("tested")
    a = dd.input(flow, "a", "k: int, v: int")
    with pytest.raises(GraphError, match="outside of all loops"):
        a.iterate(
            lambda inner: inner.join(a.select("k", w=dd.col.v), on="k", balance="auto").select("k", "v")
        )
