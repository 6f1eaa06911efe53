"""What happens to a batch between two vertices: transform, shift, route, one count per part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np
import pytest
from dataflows import settle

from differential.columns.update_batch import UpdateBatch
from progress.times.timestamp import Timestamp
from timely import Batch, Broadcast, Dataflow, MisuseError, Records, Vertex
from timely.building.loop import Loop
from timely.running.core import Worker
from timely.running.instance import Instance
from timely.wire.batch import Transform
from timely.wire.transport.memory import MemoryNetwork


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
        dataflow = Dataflow()
        feed = dataflow.input("numbers").feed(transform=transform, route=route)
        dataflow.stage("sink", _always(sink), [feed], outputs=0)
        worker = Worker(index, workers, network.transport(index) if workers > 1 else None)
        instances.append(worker.install(dataflow.freeze()))
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


@pytest.mark.parametrize("transform", [None, evens])
def test_rows_whose_times_are_moved_already_are_carried_as_all_others(transform: Transform | None) -> None:
    workers, instances, sinks = running(2, transform, Broadcast())
    handle = instances[0].input("numbers")
    (connector,) = instances[0].connectors
    connector.send_moved(Records([1, 2, 4]), handle.epoch_word(0))
    for instance in instances:
        instance.input("numbers").close()
    settle(workers)
    kept = [1, 2, 4] if transform is None else [2, 4]
    assert [sink.got for sink in sinks] == [kept, kept]
    assert (connector.rows_sent, connector.messages_sent) == (len(kept), 1)
    assert all(instance.is_complete() for instance in instances)


class GoesRound(Vertex):
    """Sends each number on by output 0, one less, until it is 0."""

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.send_by(0, [int(str(number)) - 1 for number in message if number != 0], time)
        self.send_by(1, [time[-1] for number in message if number == 0], time)


def rounds(number: int, iterations_max: int, level_bits: tuple[int, ...] = (8, 8)) -> list[object]:
    """The counter at which a number that goes round `number` times has ended."""
    sink = Sink()
    dataflow = Dataflow(level_bits=level_bits)
    with Loop.inside(dataflow, dataflow.root, "round", iterations_max=iterations_max) as loop:
        back = loop.feedback()
        feeds = [loop.enter(dataflow.input("numbers")).feed(), back.stream.feed()]
        less, ended = dataflow.stage("goes round", GoesRound, feeds, outputs=2)
        back.connect(less)
    dataflow.stage("sink", _always(sink), [loop.leave(ended).feed()], outputs=0)
    worker = Worker()
    instance = worker.install(dataflow.freeze())
    feed([worker], [instance], [number])
    return sink.got


@pytest.mark.parametrize("iterations_max", [1, 3])
def test_a_loop_goes_round_exactly_as_often_as_its_limit_says(iterations_max: int) -> None:
    assert rounds(iterations_max, iterations_max) == [iterations_max]
    with pytest.raises(MisuseError, match=rf"past its limit of {iterations_max} iterations"):
        rounds(iterations_max + 1, iterations_max)


def test_a_loop_goes_round_as_often_as_its_counter_has_room_for_and_keeps_one_for_the_frontier() -> None:
    assert rounds(6, 100, (8, 3)) == [6]
    with pytest.raises(MisuseError, match="past its limit of 6 iterations"):
        rounds(7, 100, (8, 3))


class Leaps(Vertex):
    """Hands on what comes in, once, with rows that are `leap` iterations later than their envelope."""

    word_times: ClassVar[bool] = True

    def __init__(self, leap: int) -> None:
        self.leap = leap
        self.seen: list[int] = []

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        for word, batch in messages:
            if isinstance(batch, UpdateBatch):
                self.seen.extend(self.code.unpack(time)[-1] for time in batch.words[-2].tolist())
            else:
                (epoch, counter) = self.code.unpack(word)
                rows = [(1, self.code.pack((epoch, counter + step)), 1) for step in (0, self.leap)]
                self.send(0, UpdateBatch(np.array(rows, dtype=np.int64).T.copy()), word)


@pytest.mark.parametrize("bits", [(8, 8), (8, 4)])
def test_a_loop_has_a_limit_for_rows_that_are_later_than_their_envelope_too(bits: tuple[int, int]) -> None:
    limit = min(20, (1 << bits[1]) - 2)
    for leap in (0, limit - 1, limit):
        vertex = Leaps(leap)
        dataflow = Dataflow(level_bits=bits)
        with Loop.inside(dataflow, dataflow.root, "round", iterations_max=limit) as loop:
            back = loop.feedback()
            feeds = [loop.enter(dataflow.input("numbers")).feed(), back.stream.feed()]
            (again,) = dataflow.stage("leaps", lambda vertex=vertex: vertex, feeds, outputs=1)
            back.connect(again)
        worker = Worker()
        instance = worker.install(dataflow.freeze())
        if leap < limit:
            feed([worker], [instance], ["x"])
            assert vertex.seen == [1, leap + 1]
        else:
            with pytest.raises(MisuseError, match=f"past its limit of {limit} iterations"):
                feed([worker], [instance], ["x"])
