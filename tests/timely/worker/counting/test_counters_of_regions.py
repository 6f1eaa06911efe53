"""What kernels have carried round loops is told when somebody asks, once."""

from __future__ import annotations

from collection_flows import distances

import timely
from timely.running.core import Worker
from timely.running.instance import Instance
from timely.worker.counting.counters import statistics


def test_who_asks_twice_is_told_the_same_and_of_what_came_since() -> None:
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(distances)
        worker = cluster._workers._workers[0]  # type: ignore[attr-defined]
        (instance,) = worker.instances.values()
        flow.input("roots").insert([(0,)])
        flow.input("edges").insert([(n, n + 1) for n in range(5)])
        flow.wait(flow.seal())
        told = [_told(worker, instance) for _ in range(3)]
        assert told[0] == told[1] == told[2]
        assert any(rounds for _, rounds in told[0]), "it has gone round"
        flow.input("edges").insert([(5, 6)])
        flow.wait(flow.seal())
        assert sum(rows for rows, _ in _told(worker, instance)) > sum(rows for rows, _ in told[0])


def _told(worker: Worker, instance: Instance) -> list[tuple[int, list[tuple[int, int]]]]:
    statistics(worker, {})
    return [
        (one.rows_sent, [] if one.iteration_counts is None else list(one.iteration_counts))
        for one in instance.connectors
    ]
