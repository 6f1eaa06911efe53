"""What happens to a batch between two vertices: transform, shift, route, one count per part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from dataflows import settle

from timely import Batch, Broadcast, Dataflow, Records, Vertex
from timely.stream import Transform
from timely.transport.memory import MemoryNetwork
from timely.worker.core import Worker
from timely.worker.instance import Instance


class Sink(Vertex):
    word_times: ClassVar[bool] = True

    def __init__(self) -> None:
        self.got: list[object] = []

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        for _, batch in messages:
            assert isinstance(batch, Records)
            self.got.extend(batch.records)


def running(
    workers: int, transform: Transform | None = None, route: Broadcast | None = None
) -> tuple[list[Worker], list[Instance], list[Sink]]:
    network = MemoryNetwork(workers)
    running_workers, instances, sinks = [], [], []
    for index in range(workers):
        sink = Sink()
        flow = Dataflow()
        feed = flow.input("numbers").feed(transform=transform, route=route)
        flow.stage("sink", _always(sink), [feed], outputs=0)
        worker = Worker(index, workers, network.transport(index) if workers > 1 else None)
        instances.append(worker.install(flow.freeze()))
        running_workers.append(worker)
        sinks.append(sink)
    return running_workers, instances, sinks


def _always(sink: Sink) -> Callable[[], Sink]:
    return lambda: sink


def feed(workers: list[Worker], instances: list[Instance], records: list[object]) -> None:
    instances[0].input("numbers").send(records)
    for instance in instances:
        instance.input("numbers").close()
    settle(workers)


def evens(batch: Batch) -> Batch | None:
    assert isinstance(batch, Records)
    kept = [record for record in batch.records if int(str(record)) % 2 == 0]
    return Records(kept) if kept else None


def test_a_transform_runs_before_the_route_and_may_leave_nothing() -> None:
    workers, instances, sinks = running(2, evens, Broadcast())
    feed(workers, instances, [1, 2, 3, 4])
    assert [sink.got for sink in sinks] == [[2, 4], [2, 4]]
    workers, instances, sinks = running(1, evens)
    feed(workers, instances, [1, 3])
    assert sinks[0].got == [] and instances[0].is_complete()


def test_without_a_route_rows_stay_on_their_worker() -> None:
    workers, instances, sinks = running(2)
    feed(workers, instances, [1, 2])
    assert [sink.got for sink in sinks] == [[1, 2], []]


def test_rows_and_messages_are_counted_after_the_transform() -> None:
    workers, instances, _ = running(1, evens)
    feed(workers, instances, [1, 2, 4])
    (connector,) = instances[0].connectors
    assert (connector.rows_sent, connector.messages_sent) == (2, 1)
