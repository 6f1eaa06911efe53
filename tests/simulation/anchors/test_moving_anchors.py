"""Epochs of two or three bits: the anchors of all workers move all the time, each when it may, and nobody
notices.

Inputs go on by any number of epochs, each on each worker by itself, rows come for epochs that are open or far
ahead, and workers act in any order. What comes out is what the definition says at every epoch.

same_*   random operators and compositions, under the predicates of progress tracking or without
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.collection import Collection as Rows
from reference.collection import accumulated_at, collection, history
from reference.dataflow import Cluster
from strategies_collections import (
    BINARY,
    UNARY,
    Binary,
    Composition,
    Unary,
    compositions_around_loops,
    examples,
)
from views_of_progress import Views

import differential as dd
from differential.collections.collection import Collection
from timely.building.dataflow import Dataflow

SOURCES = ("left", "right")
COLUMNS = "k: int, v: int"
EPOCHS_AHEAD = (0, 0, 1, 2, 5, 40, 1 << 33)

Fed = dict[str, list[tuple[tuple[int, int], tuple[int], int]]]
"""By input: row, time, diff."""


def run(
    build: Callable[[Collection, Collection], Collection],
    bits: int,
    workers: int,
    rng: random.Random,
    monitored: bool,
) -> tuple[Cluster, Fed]:
    """Feed what `build` makes of two inputs, in any order, to its end."""

    def built(flow: Dataflow) -> None:
        flow.level_bits = (bits, 9, 9, 9, 9)
        build(*(dd.input(flow, name, COLUMNS) for name in SOURCES)).output("out")

    cluster = Cluster(built, workers, rng.randrange(1 << 30), monitored=monitored)
    if workers > 1:
        Views(cluster)
    fed: Fed = {name: [] for name in SOURCES}
    for _ in range(12):
        worker, name = rng.randrange(workers), rng.choice(SOURCES)
        handle = cluster.instances[worker].input(name)
        for _ in range(rng.randrange(3)):
            row, epoch, diff = (rng.randrange(4), rng.randrange(4)), handle.epoch, 1
            for _ in range(rng.randrange(1, 3)):  # it comes, and goes perhaps
                epoch += rng.choice(EPOCHS_AHEAD)
                cluster.change(name, [(row, diff)], epoch, worker)
                fed[name].append((row, (epoch,), diff))
                diff = -1
        if rng.random() < 0.7:
            ahead = rng.choice(EPOCHS_AHEAD[:-1] if rng.random() < 0.8 else EPOCHS_AHEAD)
            with cluster.turn_of(worker):
                handle.seal(handle.epoch + ahead)
        cluster.harry(rng, rng.randrange(8))
    if rng.random() < 0.5:
        cluster.close()
    else:
        last = max((epoch for listed in fed.values() for _, (epoch,), _ in listed), default=0)
        cluster.seal(max(last, *(one.input(n).epoch for one in cluster.instances for n in SOURCES)))
    cluster.harry(rng, 30)
    cluster.run()
    return cluster, fed


def check(cluster: Cluster, fed: Fed, plain: Callable[[Rows, Rows], Rows], what: str) -> None:
    """What came out, whenever anything came in or out, is what `plain` makes of what came in."""
    found = cluster.changes("out")
    sources = [history(fed[name]) for name in SOURCES]
    for time in sorted({*found, *(time for source in sources for time in source)}):
        wanted = plain(*(accumulated_at(source, time) for source in sources))
        assert accumulated_at(found, time) == wanted, f"{what} at {time}: {fed}"


def _of_both(one: Unary) -> Binary:
    """An operator over the sum of two sources."""
    return Binary(
        one.name,
        lambda left, right: one.build(left.concat(right)),
        lambda left, right: one.plain(collection(left + right)),
    )


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("monitored", [True, False], ids=["monitored", "unwatched"])
def test_same_as_the_definition_of_every_operator(
    workers: int, monitored: bool, seed: int, effort: int
) -> None:
    moves = 0
    for case in range(seed, seed + (6 if monitored else 24) * effort):
        rng = random.Random(case)
        name = rng.choice(sorted({*UNARY, *BINARY}))
        both = BINARY.get(name)
        if both is None:
            one = UNARY[name]
            cluster, fed = run(
                lambda a, b, o=one: o.build(a.concat(b)), 2 + case % 2, workers, rng, monitored
            )
            check(cluster, fed, lambda a, b, o=one: o.plain(a + b), f"seed {case}, {name}")
        else:
            cluster, fed = run(both.build, 2 + case % 2, workers, rng, monitored)
            check(cluster, fed, both.plain, f"seed {case}, {name}")
        moves += sum(instance.anchor.epoch > 0 for instance in cluster.instances)
    assert moves > workers, "anchors have moved"


@given(compositions_around_loops(2), st.integers(1, 3), st.integers(2, 3), st.integers(0, 1 << 20))
@examples(0.4)
def test_same_as_the_definition_of_loops_in_loops(
    composed: Composition, workers: int, bits: int, choices: int
) -> None:
    cluster, fed = run(composed.build, bits, workers, random.Random(choices), monitored=False)
    check(cluster, fed, composed.plain, repr(composed))
