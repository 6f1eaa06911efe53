"""The sending half of a worker: what it sends to others, when it tells them of its progress, and the memory
in which compiled loops send by themselves.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from threading import get_ident
from time import perf_counter_ns

from progress.tracking.broadcast import Broadcaster
from progress.tracking.count_changes import Change

from ...limits import MESSAGE_BYTES_MIN
from ...wire.batch import Batch, Frame, frames_of
from ...wire.transport import Lent, Transport
from ..credits import Credits
from ..instance import Instance
from ..progress_messages import (
    DataHeader,
    ProgressHeader,
    write_control_header,
    write_data_header,
    write_progress_header,
)
from ..stages.rights import Acting
from .telling import Telling

__all__ = ["Sender"]


class Sender(ABC):
    """Sends the messages of worker `index` of `workers`. `telling`: None: it tells all others after each step
    (eager).
    """

    def __init__(
        self,
        index: int,
        workers: int,
        transport: Transport | None,
        acting: Acting,
        credits: Credits,
        telling: Telling | None,
    ) -> None:
        self.index = index
        self.workers = workers
        self.acting = acting
        self.timings = acting.timings
        self.credits = credits
        self.telling = telling if workers > 1 else None
        self._transport = transport
        self._instances: dict[int, Instance] = {}
        self._broadcasters: dict[int, Broadcaster] = {}
        self._untold: set[int] = set()
        """Dataflows of which others have told something since `telling` was asked what to tell of them: none
        outside of `perform` and the receiving of messages.
        """
        self.messages_sent = self.messages_recv = self.controls_sent = 0
        self._lends = os.environ.get("NAIAD_ROUNDS_COMPILED", "1") not in ("", "0")
        self._lent_to: tuple[int, int] | None = None
        """The dataflow and the actor that had shared memory last, until messages are taken from there."""

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

    # Compiled loops send by themselves, in shared memory.

    @abstractmethod
    def has_work(self) -> bool:
        """Return True if a step would do something without waiting for other workers."""

    @abstractmethod
    def fail(self, number: int, error: BaseException) -> None:
        """End a dataflow because of an error."""

    def lend(self, dataflow: int, actor: int) -> Lent | None:
        """Return memory by which a compiled loop exchanges round messages until `take_back`, if any."""
        self._lent_to = (dataflow, actor)
        lent = None if self._transport is None or not self._lends else self._transport.lend()
        return lent.without_looking_out() if lent is not None and self.has_work() else lent

    def take_back(self) -> tuple[int, int]:
        """Undo `lend`; return the numbers of messages that were sent and taken meanwhile."""
        assert self._transport is not None
        sent, received = self._transport.take_back()
        self.messages_sent += sent
        self.messages_recv += received
        return sent, received

    def let_loop_go_on(self) -> bool:
        """Let the compiled loop that waits for votes take up those that have come since: another worker of
        this thread waits for it. Return True if it has voted.
        """
        if self._lent_to is None or not self.acting.gate.has_credit:
            return False
        number, actor = self._lent_to
        if (instance := self._instances.get(number)) is None:
            return False
        self.acting.thread = get_ident()  # its last turn may have been in its own thread
        try:
            return instance.turns.take_up_votes(actor)
        except BaseException as error:
            self.fail(number, error)
            return False

    def note_elsewhere(self, nanoseconds: int) -> None:
        """Note that the present turn has spent time on the loops of other workers of this thread."""
        if self._lent_to is not None and (instance := self._instances.get(self._lent_to[0])) is not None:
            instance.turns.elsewhere += nanoseconds
