"""Durable workers in the process of a test, on a simulated disk.

DurableWorkers   workers with a log each, as if they were in processes of their own
embedded         an embedded cluster, as a client has it
survivors        what a disk has after a crash that loses all that was not synced
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Event
from types import TracebackType

import msgpack
import pyarrow as pa
import pytest
from dataflows import settle
from fixed_members import FixedMembers
from simulated_store import SimulatedContent, SimulatedDisk, SimulatedStore

import timely
from timely.client.embedded import durable as embedded_durable
from timely.client.posting import Poster, Refusals
from timely.client.session import Flow
from timely.client.tables import records_of
from timely.durable.incarnations import announce, hello_of
from timely.durable.log import Log
from timely.running.core import Worker
from timely.wire.requests import IN_OPEN, Decide, Deliver, Install, Progress, Read, Reply, Request, Value, Why
from timely.wire.transport.memory import MemoryNetwork
from timely.worker.answers.later import Later
from timely.worker.durability.durability import Durability
from timely.worker.server import Server

__all__ = ["SECONDS", "DurableWorkers", "Gate", "LocalClient", "embedded", "shown", "survivors", "words"]

SECONDS = 20.0


def survivors(disk: SimulatedDisk) -> SimulatedDisk:
    """What is there if the machine fails now, and loses whatever it may.

    Threads may write meanwhile. What two looks find alike was there at one moment.
    """
    durable: dict[str, bytes] | None = None
    while durable != (found := {path: each.durable for path, each in list(disk.files.items())}):
        durable = found
    return SimulatedDisk({path: SimulatedContent(data, data) for path, data in durable.items()})


def words(*records: object) -> pa.Table:
    """A table for an input of records."""
    return pa.table({"record": [msgpack.packb(record) for record in records]})


class Gate:
    """Lets syncs of a store wait while it is shut: those of all processes, or of one."""

    def __init__(self, store: SimulatedStore) -> None:
        self.process: int | None = None
        self.is_shut = False
        self._opened = Event()
        store.before = self

    def __call__(self, what: str, path: str) -> None:
        if what == "sync" and self.is_shut and (self.process is None or f"/p{self.process}-" in path):
            assert self._opened.wait(SECONDS)

    def stops(self, process: int) -> bool:
        """Return True if syncs of a process wait."""
        return self.is_shut and self.process in (None, process)

    def shut(self, process: int | None = None) -> None:
        """Let syncs wait from now on."""
        self._opened.clear()
        self.process, self.is_shut = process, True

    def open(self) -> None:
        """Let syncs go on."""
        self.is_shut = False
        self._opened.set()


class DurableWorkers:
    """The workers of one incarnation; a context manager that ends their logs in order."""

    def __init__(
        self, disk: SimulatedDisk, count: int = 1, seed: int | None = None, installs: Sequence[str] = ()
    ) -> None:
        self.store = SimulatedStore(disk)
        self.gate = Gate(self.store)
        self.network = MemoryNetwork(count, seed)
        self.workers = [
            Worker(index, count, self.network.transport(index) if count > 1 else None)
            for index in range(count)
        ]
        self.servers = [Server(worker, f"worker {worker.index}") for worker in self.workers]
        present = announce(self.store, count)
        self.logs = [Log(self.store, present.cluster, present.number, index) for index in range(count)]
        self.durable: list[Durability] = []
        for worker, server, log in zip(self.workers, self.servers, self.logs, strict=True):
            log.wait(log.add(hello_of(present, worker.index)), SECONDS)
            self.durable.append(Durability(worker, self.store, present, log, begins_together=True))
            server.make_durable(self.durable[-1])
        for server in self.servers:
            server.greet()
        self.settle()
        for answers in zip(*[server.begin_dataflows(installs) for server in self.servers], strict=True):
            for answer in answers:
                self.known(answer)
        self.settle()

    def __enter__(self) -> DurableWorkers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.gate.open()
        for log in self.logs:
            log.close()

    def settle(self) -> None:
        """Work until nothing is left to do, with all that the disk takes meanwhile."""
        moved = True
        while moved:
            settle(self.workers)
            while self.network.in_flight():
                settle(self.workers)
            for process, log in enumerate(self.logs):
                if log.error is None and not self.gate.stops(process):
                    log.wait(log.position, SECONDS)
            looked = [each.look() for each in self.durable]  # each has to
            moved = any(looked) or self.network.in_flight() > 0

    def take(self, request: Request, table: pa.Table | None = None, worker: int = 0) -> Reply | Later:
        """The answer of a worker as it is known at once."""
        return self.servers[worker].handle(request, table)

    def ask(self, request: Request, table: pa.Table | None = None, worker: int = 0) -> Reply:
        """The answer of a worker, after all work."""
        return self.known(self.take(request, table, worker))

    def install(self, spec: str) -> int:
        """The number of a dataflow that is installed."""
        return self.ask(Install(f"durable_flows:{spec}", {})).integer("dataflow")

    def flow(self, spec: str) -> Flow:
        """A dataflow as a client has it, installed here or by an earlier incarnation."""
        client = LocalClient(self)
        (reply,) = client.ask([(0, Install(f"durable_flows:{spec}", {}), None)])
        return Flow(client, reply)

    def seal(self, epoch: int, dataflow: int = 0) -> None:
        """Seal epochs up to this one."""
        self.ask(Decide(dataflow, epoch, seals=True))

    def read(self, output: str, stop: int, dataflow: int = 0) -> list[tuple[object, ...]]:
        """The changes of an output before epoch `stop`, on all workers."""
        request = Read(dataflow, output, 0, stop, SECONDS)
        tables = [self.take(request, worker=index) for index in range(len(self.workers))]
        return shown([reply.table for reply in map(self.known, tables)])

    def known(self, answer: Reply | Later) -> Reply:
        """The answer, after all work."""
        while isinstance(answer, Later):
            self.settle()
            ready = answer.ready()
            assert ready is not None, answer.late()
            answer = ready
        self.settle()
        return answer


class LocalClient(FixedMembers):
    """The workers as a client sees them. Implements `Workers`."""

    part_bytes = 1 << 10
    addresses = ["here"]
    kind = end = ""

    def __init__(self, workers: DurableWorkers) -> None:
        self.workers = workers
        self.count = len(workers.workers)
        self.refusals = Refusals()
        self.incarnation = workers.durable[0].number

    def ask(
        self, requests: Sequence[tuple[int, Request, pa.Table | None]], timeout_seconds: float = SECONDS
    ) -> list[Reply]:
        """Ask all at once."""
        answers = [self.workers.take(request, table, worker) for worker, request, table in requests]
        return [self.workers.known(answer) for answer in answers]

    def reasons(self, request: Why) -> list[Reply | str]:
        """What each says, at once."""
        return [server.reasons.answer(request) for server in self.workers.servers]

    def post(
        self, worker: int, request: Deliver, table: pa.Table | None, poster: Poster, call: str,
        is_ordered: bool = False,
    ) -> None:  # fmt: skip
        """Take the answer at once."""
        (reply,) = self.ask([(worker, request, table)])
        poster.on_answer(reply)

    def insert_rows(
        self, poster: Poster, name: str, writer: str, sequence: int, diff: int, rows: list[Value], call: str,
        is_ordered: bool,
    ) -> int:  # fmt: skip
        """Post them to worker 0, as lists: that is how they come from another process."""
        sent: list[Value] = [list(row) for row in rows]  # type: ignore[call-overload]
        request = Deliver(poster.index, name, writer, sequence, IN_OPEN, poster.epoch, diff, sent)
        self.post(0, request, None, poster, call)
        return poster.epoch

    def seal(self, poster: Poster, seconds: float | None, is_early: bool = False) -> tuple[int, bool]:
        """Seal the open epoch."""
        epoch = poster.epoch
        (reply,) = self.ask([(0, Decide(poster.index, epoch, seals=True), None)])
        poster.epoch = max(epoch + 1, reply.integer("open"))
        return epoch, False

    def wait(self, dataflow: int, epoch: int, seconds: float, waited_seconds: float = 0.0) -> None:
        """Wait on all workers."""
        self.ask([(worker, Progress(dataflow, "", epoch), None) for worker in range(self.count)])

    def settle(self, timeout_seconds: float = SECONDS) -> None:
        """Do nothing: posts are answered at once."""

    def close(self) -> None:
        """Do nothing: the test ends the workers."""


def shown(tables: Sequence[pa.Table | None]) -> list[tuple[object, ...]]:
    """The rows of tables as tuples that begin with the epoch, in an order of their own."""
    rows: list[tuple[object, ...]] = []
    for table in tables:
        assert table is not None
        if "record" in table.column_names:
            rows += records_of(table)
            continue
        names = ["epoch", *[name for name in table.column_names if name != "epoch"]]
        rows += [tuple(row[name] for name in names) for row in table.to_pylist()]
    return sorted(rows, key=repr)


@contextmanager
def embedded(
    disk: SimulatedDisk, workers: int = 1, threads: bool = False, sync: str = "disk"
) -> Iterator[tuple[timely.Cluster, SimulatedStore]]:
    """An embedded cluster on a simulated disk, and its view of that."""
    store = SimulatedStore(disk)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embedded_durable, "FolderStore", lambda folder: store)
        cluster = timely.connect(
            workers=workers, embedded=True, threads=threads, durable="simulated", sync=sync
        )
    with cluster:
        yield cluster, store
