"""Loops that several workers run in step, where inputs leap by very many epochs, each for itself; some end.

Few epochs fit words here, so anchors move while rounds are under way, and each worker's by itself.
"""

from __future__ import annotations

import random

import pytest
from loop_bodies import BODIES
from reference import collection as plainly
from reference.collection import Collection as Rows
from reference.collection import Row, accumulated_at
from reference.dataflow import Cluster
from strategies_collections import NUMBERS
from views_of_progress import Views

import differential as dd
import timely
from differential.algorithms import connected_components
from timely.building.dataflow import Dataflow

LEAPS = (0, 0, 1, 3, 7, 9, 20, 1 << 20, 1 << 40)
BOTH = ("first", "second")


def _check(case: int) -> None:
    rng = random.Random(case)
    name, workers = rng.choice(sorted(BODIES)), rng.choice([2, 3])
    build, plain = BODIES[name]
    bits = (3, 12, 12) if name == "nested" else rng.choice([(3, 14), (4, 20)])

    def flow(flow: Dataflow) -> None:
        build(*(dd.input(flow, one, NUMBERS) for one in BOTH)).output("result")
        dd.input(flow, "apart", "k: int").output("apart")
        flow.level_bits = bits

    cluster = Cluster(flow, workers, seed=case)
    assert all(instance.loops for instance in cluster.instances)
    views = Views(cluster)
    given: list[tuple[str, int, Row, int]] = []
    for _ in range(10):
        for index, instance in enumerate(cluster.instances):
            for which, handle in instance.inputs.items():
                if handle.is_closed:
                    continue
                if which != "apart" and rng.random() < 0.5:
                    row, diff = (rng.randrange(5), rng.randrange(5)), rng.choice([1, 1, 2, -1])
                    given.append((which, handle.epoch, row, diff))
                    cluster.change(which, [(row, diff)], None, index)
                with cluster.turn_of(index):
                    if rng.random() < 0.6:
                        handle.seal(handle.epoch + rng.choice(LEAPS))
                    elif rng.random() < 0.03:
                        handle.close()
        cluster.harry(rng, rng.choice([0, 3, 10, 30]))
    handles = [handle for instance in cluster.instances for handle in instance.inputs.values()]
    last = max(handle.epoch for handle in handles)
    if not any(handle.is_closed for handle in handles):
        cluster.seal(last)
        cluster.harry(rng, rng.choice([0, 10, 40]))
        cluster.run()
        for instance in cluster.instances:
            assert instance.epochs_done() == instance.output("result").complete_before == last + 1
    cluster.close()
    cluster.harry(rng, rng.choice([0, 10, 40]))
    cluster.run()
    assert all(instance.is_complete() for instance in cluster.instances)
    found = cluster.changes("result")
    for epoch in sorted({at for _, at, _, _ in given}):
        rows = {which: Rows() for which in BOTH}
        for which, at, row, diff in given:
            if at <= epoch:
                rows[which][row] += diff
        meant = plain(*(plainly.collection(rows[which]) for which in BOTH))
        assert accumulated_at(found, (epoch,)) == meant, f"case {case}, {name}, epoch {epoch}"
    assert views.looked


def test_same_as_is_meant_and_all_epochs_end(seed: int, effort: int) -> None:
    for case in range(seed, seed + 16 * effort):
        _check(case)


@pytest.mark.parametrize("workers", [1, 2])
def test_loops_go_on_while_inputs_leap_on_to_epochs_that_have_no_words(workers: int) -> None:
    """The anchor stays with the other input meanwhile, and no frontier moves in words. When that follows, the
    loop has to have finished what it could: otherwise it holds an epoch to which the anchor goes, for good.
    """

    def flow(dataflow: Dataflow) -> None:
        connected_components(dd.input(dataflow, "edges", "src: int, dst: int")).output("components")
        dd.input(dataflow, "apart", "k: int").output("apart")

    with timely.connect(workers=workers, embedded=True) as cluster:
        installed = cluster.install(flow)
        edges, apart = installed.input("edges"), installed.input("apart")
        edges.insert([(1, 2)])
        for epoch in (1 << 40, 1 << 45):
            edges.advance_to(epoch)
            assert installed.output("components").complete_before() < 1 << 40, "workers work while it asks"
        for epoch in (1 << 44, 1 << 45):
            apart.advance_to(epoch)
        for name in ("components", "apart"):
            assert installed.output(name).complete_before() == 1 << 45
