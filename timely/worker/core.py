"""The worker: one loop that polls, delivers, applies, notifies and flushes.

    poll      messages and progress of other workers come in
    run       vertices with work, each consuming everything that is ready
    apply     own count changes go to the own tracker and to all other workers, in one piece
    notify    what the new frontiers allow is queued
    flush     what was sent leaves

Sockets are polled between activations, in bulk; no callback runs from a socket handler.
"""

from __future__ import annotations

from collections.abc import Callable

from progress.broadcast import Broadcaster
from progress.errors import InternalError, MisuseError, PeerError

from ..batch import Batch, Frame, decode
from ..freeze import FrozenDataflow
from ..transport import Transport
from ..wire import (
    ControlHeader,
    DataHeader,
    ProgressHeader,
    read_header,
    write_control_header,
    write_data_header,
    write_progress_header,
)
from .instance import Instance

ACTIVATIONS_PER_STEP_MAX = 256
"""Activations before sockets are looked at again."""


class Worker:
    """Worker `index` of `workers`; `transport` may be `None` for a single worker."""

    def __init__(self, index: int = 0, workers: int = 1, transport: Transport | None = None) -> None:
        if not 0 <= index < workers:
            raise InternalError(f"worker {index} of {workers}")
        if workers > 1 and transport is None:
            raise InternalError(f"{workers} workers need a transport")
        self.index = index
        self.workers = workers
        self._transport = transport
        self._instances: dict[int, Instance] = {}
        self._broadcasters: dict[int, Broadcaster] = {}
        self._early: dict[int, list[tuple[int, list[memoryview]]]] = {}
        self.steps = 0
        self.messages_sent = 0
        self.messages_recv = 0
        self.on_control: Callable[[int, memoryview], None] | None = None

    def install(self, frozen: FrozenDataflow, index: int | None = None) -> Instance:
        """Instantiate a dataflow; all workers install the same ones under the same index."""
        instance = self.prepare(frozen, index)
        self.start(instance)
        return instance

    def prepare(self, frozen: FrozenDataflow, index: int | None = None) -> Instance:
        """Instantiate a dataflow without starting it: nothing of it is seen by other workers yet."""
        number = len(self._instances) if index is None else index
        if number in self._instances:
            raise InternalError(f"dataflow {number} is installed already")
        return Instance(self, number, frozen)

    def start(self, instance: Instance) -> None:
        """Let a prepared dataflow take part, beginning with what other workers have sent to it already."""
        number = instance.index
        self._instances[number] = instance
        self._broadcasters[number] = Broadcaster(
            self.index, self.workers, instance.frozen.graph.location_count
        )
        for peer, frames in self._early.pop(number, []):
            self._receive(peer, frames)

    def instance(self, index: int = 0) -> Instance:
        """An installed dataflow."""
        instance = self._instances.get(index)
        if instance is None:
            raise MisuseError(
                f"worker {self.index} has no dataflow {index}: installed are "
                f"{sorted(self._instances) or 'none'}"
            )
        return instance

    @property
    def instances(self) -> dict[int, Instance]:
        """All installed dataflows by index."""
        return self._instances

    def step(self) -> bool:
        """One round; returns whether anything happened."""
        self.steps += 1
        happened = self._poll()
        for number, instance in self._instances.items():
            if instance.has_work():
                happened = True
                instance.run(ACTIVATIONS_PER_STEP_MAX)
            changes = instance.take_changes()
            if changes:
                happened = True
                instance.apply(changes)
                if self.workers > 1:
                    self._tell_all(number, changes)
            instance.check_notifications()
        return happened

    def run_until_idle(self) -> None:
        """Step until nothing is left to do here; with other workers, until nothing has come in from them
        either.
        """
        while self.step():
            pass

    def idle(self) -> bool:
        """Let vertices do a little of the work that may wait; returns whether more of it is left."""
        more = [instance.idle() for instance in self._instances.values()]
        return any(more)

    def has_work(self) -> bool:
        """Whether a step would do something without waiting for other workers."""
        return any(instance.has_work() for instance in self._instances.values())

    def send_data(self, peer: int, dataflow: int, connector: int, word: int, batch: Batch) -> None:
        """Hand a message for another worker to the transport."""
        assert self._transport is not None
        header = write_data_header(DataHeader(dataflow, connector, word, batch.KIND))
        self.messages_sent += 1
        self._transport.send(peer, [header, *batch.to_frames()])

    def send_control(self, payload: Frame) -> None:
        """Say something of `handshake.py` to all other workers; their `on_control` gets it."""
        if self._transport is not None:
            for peer in range(self.workers):
                if peer != self.index:
                    self.messages_sent += 1
                    self._transport.send(peer, [write_control_header(), payload])

    def _poll(self) -> bool:
        if self._transport is None:
            return False
        arrived = self._transport.recv_nowait()
        self.messages_recv += len(arrived)
        for peer, frames in arrived:
            self._receive(peer, frames)
        return bool(arrived)

    def _receive(self, peer: int, frames: list[memoryview]) -> None:
        if not frames:
            raise PeerError(f"worker {self.index} got an empty message from worker {peer}")
        header = read_header(frames[0], peer)
        if isinstance(header, ControlHeader):
            if self.on_control is None or len(frames) != 2:
                raise PeerError(
                    f"worker {peer} sent a control message of {len(frames)} frames that nobody expects"
                )
            self.on_control(peer, frames[1])
            return
        instance = self._instances.get(header.dataflow)
        if instance is None:
            # A faster worker may have installed the dataflow already; its messages wait until we have, too.
            self._early.setdefault(header.dataflow, []).append((peer, frames))
            return
        if isinstance(header, ProgressHeader):
            if len(frames) != 2:
                raise PeerError(f"progress of worker {peer} came as {len(frames)} frames instead of 2")
            broadcaster = self._broadcasters[header.dataflow]
            instance.apply(broadcaster.on_message(frames[1]))
            instance.check_notifications()
            return
        if header.connector >= len(instance.connectors):
            raise PeerError(
                f"worker {peer} sent by connector {header.connector}, but there are "
                f"{len(instance.connectors)}"
            )
        instance.receive(header.connector, header.word, decode(header.batch_kind, frames[1:]))

    def _tell_all(self, dataflow: int, changes: list[tuple[int, int, int]]) -> None:
        assert self._transport is not None
        payload: Frame | None = self._broadcasters[dataflow].on_step_done(changes)
        assert payload is not None
        header = write_progress_header(ProgressHeader(dataflow))
        for peer in range(self.workers):
            if peer != self.index:
                self.messages_sent += 1
                self._transport.send(peer, [header, payload])
