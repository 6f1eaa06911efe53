"""Workers that do not share one table of symbols, as processes do not: whatever becomes of the messages of
one dataflow, the rows of others can be read.

lost_*    messages of one dataflow that are not taken, before those of another that hold the same values
told_*    what a worker notes of what it has sent
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgpack
import numpy as np
import pyarrow as pa
import pytest

import differential as dd
from differential.columns.symbols.entries import SymbolEntries
from differential.columns.symbols.packing import pack, symbol_word
from differential.columns.symbols.table import SymbolTable
from differential.columns.update_batch import UpdateBatch
from differential.columns.worker_symbols import SYMBOLS
from differential.operators.edge.table_in import TableIn
from timely import Dataflow
from timely.building.exchange import Broadcast, Route, ToWorker
from timely.building.stream import Feed
from timely.errors import MisuseError, PeerError
from timely.operators.vertex import Vertex
from timely.running.core import Worker
from timely.running.instance import Instance
from timely.running.progress_messages import DataHeader, write_data_header
from timely.wire.batch import Batch, Frame
from timely.wire.transport.memory import MemoryNetwork, MemoryTransport

NAMES = [f"name {number}" for number in range(20)]


def frozen_names() -> Dataflow:
    """Every name once, at the worker of its hash."""
    dataflow = Dataflow("names")
    dd.input(dataflow, "names", "name: string").distinct().output("names")
    return dataflow


class BreakingTransport(MemoryTransport):
    """Refuses to send data while it is told to."""

    refuses = False

    def send(self, peer: int, frames: Sequence[Frame]) -> None:
        """As a socket does with a frame that is too large."""
        if self.refuses and len(frames) > 2:
            raise MisuseError("too large")
        super().send(peer, frames)


class Pair:
    """Two workers, each with symbols of its own."""

    def __init__(self, workers: int = 2) -> None:
        network = MemoryNetwork(workers)
        self.transports = [BreakingTransport(network, index) for index in range(workers)]
        self.workers = [Worker(index, workers, self.transports[index]) for index in range(workers)]
        self.tables = [SymbolTable() for _ in range(workers)]

    @contextmanager
    def turn_of(self, index: int) -> Iterator[Worker]:
        """Let one worker act."""
        before = dict(vars(SYMBOLS))
        vars(SYMBOLS).update(vars(self.tables[index]))
        try:
            yield self.workers[index]
        finally:
            vars(SYMBOLS).update(before)

    def install(self, index: int, number: int, flow: Dataflow | None = None) -> Instance:
        """A dataflow on one worker."""
        with self.turn_of(index) as worker:
            return worker.install((flow or frozen_names()).freeze(), number)

    def insert(self, index: int, number: int, names: Sequence[str]) -> None:
        """Rows of the open epoch, which is sealed."""
        with self.turn_of(index) as worker:
            handle = worker.instance(number).input("names")
            assert isinstance(handle.codec, TableIn)
            handle.append(
                handle.epoch,
                handle.codec.encode(pa.table({"name": names}), 1, handle.epoch_word(handle.epoch)),
            )
            handle.seal()

    def seal(self, index: int, number: int) -> None:
        """An epoch without rows."""
        self.workers[index].instance(number).input("names").seal()

    def run(self) -> None:
        """Until nothing moves."""
        moved = True
        while moved:
            moved = False
            for index in range(len(self.workers)):
                with self.turn_of(index) as worker:
                    moved = worker.step() or moved

    def answer(self, number: int) -> list[str]:
        """What the output has, of all workers that have the dataflow."""
        found: list[str] = []
        for index, worker in enumerate(self.workers):
            with self.turn_of(index):
                found += worker.instance(number).output("names").log.snapshot(0).column("name").to_pylist()
        return sorted(found)


def test_lost_rows_of_a_dataflow_that_is_not_there_yet_leave_their_symbols() -> None:
    pair = Pair()
    pair.install(0, 0)
    pair.insert(0, 0, NAMES)
    pair.run()
    for index in range(2):
        pair.install(index, 1)
    pair.insert(0, 1, NAMES)
    pair.seal(1, 1)
    pair.run()
    assert pair.answer(1) == sorted(NAMES)
    pair.install(1, 0)
    pair.seal(1, 0)
    pair.run()
    assert pair.answer(0) == sorted(NAMES), "what came early was kept"


@pytest.mark.parametrize("attempts", [1, 2])
def test_lost_rows_whose_send_failed_take_their_symbols_along_the_next_time(attempts: int) -> None:
    pair = Pair()
    for number in (0, 1):
        for index in range(2):
            pair.install(index, number)
    for _ in range(attempts):
        pair.transports[0].refuses = True
        pair.insert(0, 0, NAMES)
        with pytest.raises(MisuseError, match="too large"):
            pair.run()
    pair.transports[0].refuses = False
    pair.insert(0, 1, NAMES)
    pair.seal(1, 1)
    pair.run()
    assert pair.answer(1) == sorted(NAMES)


def test_told_values_of_a_peer_are_not_sent_back_to_it_and_nobody_tells_himself() -> None:
    pair = Pair()
    for index in range(2):
        pair.install(index, 0)
    pair.insert(0, 0, NAMES)
    pair.seal(1, 0)
    pair.run()
    words = np.array([symbol_word(pack(name)) for name in NAMES])
    sent = [word for word in words.tolist() if word in pair.tables[1]]
    assert 0 < len(sent) < len(NAMES), "some go and some stay"
    assert not pair.tables[1].delta_for(0, np.array(sent))
    assert len(pair.tables[0].delta_for(0, words)) == len(NAMES), "of the own part nothing was noted"
    assert len(pair.tables[0].delta_for(1, words)) == len(NAMES) - len(sent)


class Reader(Vertex):
    """Keeps what it gets as values."""

    word_times = True

    def __init__(self) -> None:
        self.found: list[object] = []

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        """Look the values up."""
        for _, batch in messages:
            assert isinstance(batch, UpdateBatch)
            self.found += SYMBOLS.lookup(batch.words[0])


@pytest.mark.parametrize(("route", "readers"), [(Broadcast(), 3), (ToWorker(1), 1), (ToWorker(2), 1)])
def test_told_symbols_go_along_by_any_route_to_every_worker_that_gets_rows(
    route: Route, readers: int
) -> None:
    trio = Pair(3)
    for index in range(3):
        dataflow = Dataflow("broadcast")
        stream = dataflow.input("names", TableIn(dd.Schema.of("name: string"), "names"))
        dataflow.stage("reader", Reader, [Feed(stream, 0, route)], outputs=0)
        trio.install(index, 0, dataflow)
    for _ in range(2):
        trio.insert(0, 0, NAMES)
        for index in (1, 2):
            trio.seal(index, 0)
        trio.run()
    found = [
        runner.vertex.found
        for worker in trio.workers
        for runner in worker.instance(0).runners
        if isinstance(runner.vertex, Reader)
    ]
    assert sorted(map(len, found)) == [0] * (3 - readers) + [2 * len(NAMES)] * readers
    assert all(set(names) <= set(NAMES) for names in found)


def test_lost_malformed_symbols_of_a_dataflow_that_is_not_there_are_an_error_of_the_peer() -> None:
    pair = Pair()
    header = write_data_header(DataHeader(7, 0, 0, UpdateBatch.KIND))
    shape = msgpack.packb({"words": 3, "rows": 1})
    for entries in (b"\xc1", SymbolEntries((5,), (pack("a"),)).to_bytes()):
        pair.transports[0].send(1, [header, shape, bytes(24), entries])
        with pair.turn_of(1) as worker, pytest.raises(PeerError, match="worker 0 sent"):
            worker.step()
