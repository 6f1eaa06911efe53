"""The sending half of a worker: what it sends to others, and when it tells them of its progress."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter_ns

from progress.tracking.broadcast import Broadcaster
from progress.tracking.count_changes import Change

from ...limits import MESSAGE_BYTES_MIN
from ...wire.batch import Batch, Frame, frames_of
from ...wire.transport import Transport
from ..credits import Credits
from ..instance import Instance
from ..progress_messages import (
    DataHeader,
    ProgressHeader,
    write_control_header,
    write_data_header,
    write_progress_header,
)
from ..timings import Timings
from .telling import Telling

__all__ = ["Sender"]


class Sender:
    """Sends the messages of worker `index` of `workers`. `telling`: None: it tells all others after each step
    (eager).
    """

    def __init__(
        self,
        index: int,
        workers: int,
        transport: Transport | None,
        timings: Timings,
        credits: Credits,
        telling: Telling | None,
    ) -> None:
        self.index = index
        self.workers = workers
        self.timings = timings
        self.credits = credits
        self.telling = telling if workers > 1 else None
        self._transport = transport
        self._instances: dict[int, Instance] = {}
        self._broadcasters: dict[int, Broadcaster] = {}
        self._untold: set[int] = set()
        """Dataflows of which others have told something since `telling` was asked what to tell of them: none
        outside of `perform` and the receiving of messages.
        """
        self.messages_sent = self.controls_sent = 0

    @property
    def progress_mode(self) -> str:
        """How it tells others of progress, which must be the same on all workers."""
        return "eager" if self.telling is None else self.telling.title

    def send_data(self, peer: int, dataflow: int, connector: int, word: int, batch: Batch) -> None:
        """Hand a message for another worker to the transport."""
        instance = self._instances[dataflow]
        anchor = instance.anchor.epoch
        header = write_data_header(DataHeader(dataflow, connector, word, batch.KIND, anchor))
        frames = frames_of(batch, peer)
        instance.messages_sent += 1
        instance.rows_sent[peer] += batch.rows
        self._send(peer, [header, *frames])
        batch.on_sent(peer)

    def _send(self, peer: int, frames: Sequence[Frame]) -> None:
        assert self._transport is not None
        began = perf_counter_ns()
        self._transport.send(peer, frames)
        times, taken = self.timings.send, perf_counter_ns() - began  # `Histogram.add`, without a call
        times.counts[(taken * taken).bit_length()] += 1
        times.total += taken
        self.messages_sent += 1
        size, credits = MESSAGE_BYTES_MIN, self.credits
        for frame in frames:
            size += len(frame) if type(frame) is bytes else memoryview(frame).nbytes
        credits.unmarked[peer] += size
        if credits.unmarked[peer] >= credits.quantum:
            credits.mark(peer)

    def send_control(self, payload: Frame, to: int | None = None) -> None:
        """Send a message of `handshake.py` to one other worker, or to all; their `on_control` gets it."""
        if self._transport is not None:
            for peer in range(self.workers) if to is None else (to,):
                if peer != self.index:
                    self.controls_sent += 1
                    self._send(peer, [write_control_header(), payload])

    def _tell_all(self, dataflow: int, changes: list[Change]) -> None:
        instance = self._instances[dataflow]
        if self.telling is not None:
            self.telling.note(instance, changes)
            self._tell(instance)
            return
        payload: Frame | None = self._broadcasters[dataflow].on_step_done(changes)
        assert payload is not None
        frames = [write_progress_header(ProgressHeader(dataflow)), payload]
        for peer in range(self.workers):
            if peer != self.index:
                instance.messages_sent += 1
                self._send(peer, frames)

    def _tell_news(self) -> None:
        for number in sorted(self._untold):
            self._tell(self._instances[number])

    def _tell(self, instance: Instance) -> None:
        """Send what `telling` holds back, if somebody may wait for it."""
        self._untold.discard(instance.index)
        assert self.telling is not None
        for peers, frames in self.telling.letters(instance):
            for peer in peers:
                instance.messages_sent += 1
                self._send(peer, frames)
