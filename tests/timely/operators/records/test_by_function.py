"""Stages whose callbacks are functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from stream_runs import run

import timely
from progress.times.timestamp import Timestamp
from timely.running.core import Worker
from timely.wire.transport.memory import MemoryNetwork


@pytest.fixture(params=[1, 2], ids=["one worker", "two threads"], scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[timely.Cluster]:
    with timely.connect(workers=request.param, embedded=True, threads=request.param > 1) as cluster:
        yield cluster


def test_own_stages_of_functions(cluster: timely.Cluster) -> None:
    def counting(vertex: timely.Vertex) -> object:
        counts: Counter[Timestamp] = Counter()

        def on_recv(records: list[object], time: Timestamp) -> None:
            counts[time] += len(records)
            vertex.notify_at(time)

        def on_notify(time: Timestamp) -> None:
            vertex.send_by(0, [counts.pop(time)], time)

        return on_recv, on_notify

    one = timely.ToWorker(0)
    (found,) = run(cluster, lambda s: s.unary("counting", counting, exchange=one), [1, 2], [3])
    assert found == Counter([(0, 2), (1, 1)])

    def pairing(vertex: timely.Vertex) -> object:
        sides: dict[Timestamp, tuple[list[object], list[object]]] = {}

        def on_recv(edge: int, records: list[object], time: Timestamp) -> None:
            sides.setdefault(time, ([], []))[edge].extend(records)
            vertex.notify_at(time)

        def on_notify(time: Timestamp) -> None:
            left, right = sides.pop(time)
            vertex.send_by(0, [(a, b) for a in left for b in right], time)

        return on_recv, on_notify

    (pairs,) = run(
        cluster,
        lambda s: s.binary(s.map(lambda n: -n), "pairing", pairing, exchange=one, other_exchange=one),
        [1, 2],
    )
    assert pairs == Counter([(0, (1, -1)), (0, (1, -2)), (0, (2, -1)), (0, (2, -2))])


def test_own_stages_of_functions_refuse_to_be_copied() -> None:
    """Python copies no function: those of a copy would send for the original."""
    dataflow = timely.Dataflow()
    dataflow.input("records").unary(
        "own", lambda vertex: lambda records, time: vertex.send_by(0, records, time)
    )
    worker = Worker()
    worker.install(dataflow.freeze())
    with pytest.raises(
        timely.InternalError, match=r"'own' \(stage 1, .* has functions as callbacks, which keep"
    ):
        worker.fork(MemoryNetwork(1).transport(0))


def test_own_functions_that_nobody_would_await_refuse_the_dataflow(cluster: timely.Cluster) -> None:
    def awaiting(vertex: timely.Vertex) -> object:
        async def on_recv(records: list[object], time: Timestamp) -> None:
            vertex.send_by(0, records, time)

        return on_recv

    with pytest.raises(
        timely.MisuseError, match="returned a coroutine function, which nobody would await here"
    ):
        run(cluster, lambda s: s.unary("awaiting", awaiting), [1])
