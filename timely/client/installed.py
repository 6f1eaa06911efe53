"""What inputs and outputs of an installed dataflow share: the workers that they ask, and the open epoch."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Final, Protocol

import pyarrow as pa

from ..errors import MisuseError, TimelyError
from ..failure import add_note, again
from ..limits import ANSWER_SECONDS_MAX, REPLY_SECONDS_MAX
from ..wire.requests import Deliver, Progress, Reply, Request, Value, waits_for_epoch
from .awaited import note_awaited
from .posting import Poster, Refusals, this_thread, together

__all__ = ["PATIENCE_SECONDS", "Installed", "Keeper", "OwnProcess", "Workers", "after_work"]

PATIENCE_SECONDS = 86_400.0 * 365
"""The time limit of requests that wait for work of any length: the answer ends them, or the loss of a worker.
"""

after_work: Final[list[Callable[[float, bool], None]]] = []
"""Callbacks for when a call to embedded workers returns. Each gets the start time (on the monotonic clock)
and whether the call waited for all pending work, or is an install. Usually empty; kernel warming registers
here to announce that it has finished.
"""


class Workers(Protocol):
    """The workers of a cluster, wherever they are: `EmbeddedWorkers` or `RemoteWorkers`."""

    count: int
    addresses: list[str]
    refusals: Refusals
    """Refused posts that no call has told of yet."""
    part_bytes: int
    """About how many bytes of a large insertion one part has, for each worker."""

    @property
    def kind(self) -> str:
        """Where the workers are, as the `repr` of a cluster says it."""
        ...

    @property
    def end(self) -> str:
        """Why workers take no requests any more, in a word; empty as long as they do."""
        ...

    def ask(
        self,
        requests: Sequence[tuple[int, Request, pa.Table | None]],
        timeout_seconds: float = REPLY_SECONDS_MAX,
    ) -> list[Reply]:
        """Send each (worker, request, table) and gather the replies in that order; raises what a worker
        reports.
        """
        ...

    def post(
        self,
        worker: int,
        request: Deliver,
        table: pa.Table | None,
        poster: Poster,
        call: str,
        is_ordered: bool = False,
    ) -> None:
        """Send a delivery whose answer `poster` hears of at the next `settle`, or at once; `call` says what
        the user has called. `is_ordered`: it comes after all that other threads have posted before.
        """
        ...

    def insert_rows(
        self,
        poster: Poster,
        name: str,
        writer: str,
        sequence: int,
        diff: int,
        rows: list[Value],
        call: str,
        is_ordered: bool,
    ) -> int:
        """Add few plain rows to input `name`, at the open epoch of `poster`; return the epoch that they are
        in, as far as it is known. Workers in other processes are sent the rows: see `post`.
        """
        ...

    def seal(self, poster: Poster, seconds: float | None) -> tuple[int, bool]:
        """Complete the open epoch of `poster`, behind what it has posted: return the last epoch that is
        sealed by that (-1: none, since it is not known that all that was posted is there), and whether that
        epoch is complete on all workers.

        Without `seconds` nobody waits for the work on the epoch. With them, workers are asked for both at
        once, and may take about so long; below 0: as long as it takes. Raises what is refused.
        """
        ...

    def wait(self, dataflow: int, epoch: int, seconds: float, waited_seconds: float = 0.0) -> None:
        """Return once `epoch` is complete on all workers; raise `WaitTimeoutError` after `seconds` (below 0:
        never), whose message counts the `waited_seconds` before this call, too.
        """
        ...

    def settle(self, timeout_seconds: float = REPLY_SECONDS_MAX) -> None:
        """Let all who have posted hear of the answers. Raises only what has ended the connection, or that
        there is no answer in time.
        """
        ...

    def close(self) -> None:
        """Let go of them."""
        ...


class Keeper(Protocol):
    """Starts workers, and hears first of their end: a launcher, or a job of Spark."""

    @property
    def descriptors(self) -> list[int]:
        """File descriptors that become readable when there is something to `check`."""
        ...

    @property
    def knows_best(self) -> bool:
        """Whether to wait for the verdict of this keeper even after a worker has said why it ends."""
        ...

    def check(self) -> None:
        """Raise `PeerError` if a worker has ended unasked: which, and why."""
        ...

    def stop(self) -> None:
        """End the workers; return when none is left."""
        ...


class OwnProcess:
    """The process in which this object was made.

    A process that is forked from it has copies of all descriptors: requests through them would take the
    parent's answers, and closing them would end what the parent uses.
    """

    def __init__(self) -> None:
        self.number = os.getpid()

    @property
    def is_here(self) -> bool:
        """Whether the calling process is this one, and not a fork of it."""
        return self.number == os.getpid()

    def check(self) -> None:
        """Raise `MisuseError` in a fork."""
        if not self.is_here:
            raise MisuseError(
                "this cluster was connected before this process was forked: connect again in it"
            )


class Installed:
    """A dataflow by its number on the workers that run it.

    `epoch` is the open one, as far as this client knows.
    """

    def __init__(self, workers: Workers, index: int, name: str, epoch: int) -> None:
        self._workers = workers
        self.is_embedded = not workers.addresses
        """Whether the workers run within this process, and only while they are asked something."""
        self.part_bytes = workers.part_bytes
        self._end: TimelyError | None = None
        self.index = index
        self.name = name
        self.epoch = epoch
        self.filled_input = ""
        """The input into which this client has put rows last; "" if it has put none."""

    def _told_end(self) -> str:
        """Return that the dataflow or its cluster has ended, and why, as far as this client knows; ""
        otherwise.
        """
        if self._end is not None:
            return f"has ended ({type(self._end).__name__})"
        return f"of a cluster that is {self._workers.end}" if self._workers.end else ""

    @property
    def workers(self) -> int:
        """How many workers run it."""
        return self._workers.count

    def note_epoch(self, epoch: int) -> None:
        """Remember that `epoch` or a later one is open."""
        if epoch > self.epoch:
            self.epoch = epoch

    def ask(
        self,
        requests: Sequence[tuple[int, Request, pa.Table | None]],
        timeout_seconds: float = REPLY_SECONDS_MAX,
    ) -> list[Reply]:
        """As `Workers.ask`. A client that was told once that the dataflow has ended is told so from then on:
        what one worker knows already another may not have heard, and would take rows that nobody can ever
        read.
        """
        if not self.is_embedded or self._end is not None:
            self.settle(timeout_seconds=timeout_seconds)
        began = time.monotonic()
        try:
            replies = self._workers.ask(requests, timeout_seconds)
        except TimelyError as error:
            self._hear(error)
            raise
        except KeyboardInterrupt as error:
            self._note_awaited(error, requests[0][1], began)
            raise
        if after_work and self.is_embedded and waits_for_epoch(requests[0][1]):
            _tell_after_work(began)
        return replies

    def post(
        self, worker: int, request: Deliver, table: pa.Table | None, call: str, is_ordered: bool = False
    ) -> None:
        """Send a delivery, and wait for no answer. If it is refused, the next call says so, and does
        nothing else. `call`: what the user has called; `is_ordered`: see `Workers.post`.
        """
        if self._end is not None or self._is_refused():
            self.settle()
        try:
            self._workers.post(worker, request, table, self, call, is_ordered)
        except TimelyError as error:  # embedded, at once
            self._hear(error)
            raise

    def insert_rows(
        self, name: str, writer: str, sequence: int, diff: int, rows: list[Value], call: str, is_ordered: bool
    ) -> int:
        """Add few plain rows to the open epoch, and return it: as `post` otherwise."""
        if self._end is not None or (self._workers.refusals.found and self._is_refused()):
            self.settle()
        try:
            epoch = self._workers.insert_rows(self, name, writer, sequence, diff, rows, call, is_ordered)
        except TimelyError as error:
            self._hear(error)
            raise
        if epoch > self.epoch:
            self.epoch = epoch
        return self.epoch

    def seal_open(self, seconds: float | None) -> tuple[int, bool]:
        """Complete the open epoch: see `Workers.seal`. Raise before it what is known to be refused of what
        was posted; what is refused only then comes out of the next `settle`.
        """
        if self._end is not None:
            self.settle(seals=True)
        began = time.monotonic()
        try:
            sealed, is_done = self._workers.seal(self, seconds)
        except TimelyError as error:
            self._hear(error)
            if self._workers.refusals.found and (refused := self._refused_of(None)):
                raise together(refused) from None
            raise
        except KeyboardInterrupt as error:
            if self.is_embedded and seconds is not None:
                self._note_awaited(error, Progress(self.index, "", self.epoch - 1, seconds), began)
            else:
                self._note_name(error)
            raise
        if after_work and is_done and self.is_embedded:
            _tell_after_work(began)
        return sealed, is_done

    def check_refused(self) -> None:
        """Raise the refusal of a post for this dataflow, of any thread."""
        if refused := self._refused_of(None):
            raise together(refused)

    def wait_for(self, epoch: int, seconds: float, waited_seconds: float = 0.0) -> None:
        """Return once `epoch` is complete on all workers: see `Workers.wait`."""
        if not self.is_embedded or self._end is not None:
            self.settle(timeout_seconds=_limit_of(seconds))
        began = time.monotonic()
        try:
            self._workers.wait(self.index, epoch, seconds, waited_seconds)
        except TimelyError as error:
            self._hear(error)
            raise
        except KeyboardInterrupt as error:
            self._note_awaited(error, Progress(self.index, "", epoch, seconds, waited_seconds), began)
            raise
        if after_work and self.is_embedded:
            _tell_after_work(began)

    def _note_awaited(self, error: KeyboardInterrupt, request: Request, began: float) -> None:
        """Note on an interrupt what it has interrupted. Workers elsewhere have noted which answers were
        missing.
        """
        if self.is_embedded:
            why = "its workers, in this process, " + (
                "were at work: what they hold is lost, connect again"
                if self._workers.end == "interrupted"
                else "go on: it was for another thread to bring that, or to end its turn"
            )
            note_awaited(error, request, time.monotonic() - began, why)
        self._note_name(error)

    def _note_name(self, error: KeyboardInterrupt) -> None:
        add_note(
            error, f"dataflow {self.index} is {self.name!r}; its open epoch, as known here, is {self.epoch}"
        )

    def _hear(self, error: TimelyError) -> None:
        """Remember an error that has ended the dataflow."""
        if error.ends_dataflow:
            self._end = again(error)

    def on_answer(self, reply: Reply) -> None:
        """What was posted is done."""
        self.note_epoch(reply.integer("epoch"))

    def on_refusal(self, error: TimelyError, thread: int) -> None:
        """What was posted is not."""
        self._workers.refusals.add(self.index, thread, error)

    def settle(self, seals: bool = False, timeout_seconds: float = REPLY_SECONDS_MAX) -> None:
        """Wait for the answers to what was posted; raise what was refused, or what has ended the dataflow.

        Who only reads is not told of what another thread has inserted, which is to hear of that itself. Who
        is about to complete an epoch (`seals`) is.
        """
        if self._end is None:
            self._workers.settle(timeout_seconds)
        if self._workers.refusals:
            refused = self._refused_of(None if seals else this_thread())
            if refused:
                raise together(refused)
        if self._end is not None:
            raise again(self._end)

    def _is_refused(self) -> bool:
        """Return whether a post of this thread is refused, and no call has told of it."""
        return self._workers.refusals.concern(self.index)

    def _refused_of(self, thread: int | None) -> list[TimelyError]:
        """Take the refusals of posts for this dataflow, of one thread or, if None, of all."""
        refused = self._workers.refusals.take(self.index, thread)
        for error in refused:
            if error.ends_dataflow and self._end is None:
                self._end = again(error)
        return refused

    def ask_first(self, request: Request) -> Reply:
        """Ask worker 0, which decides for all."""
        (reply,) = self.ask([(0, request, None)])
        return reply

    def ask_all(self, request: Request, timeout_seconds: float = REPLY_SECONDS_MAX) -> list[Reply]:
        """Send the same request to all workers; a negative time-out is none.

        A worker that computes cannot answer before it has done so. Who waits with a limit is not made to wait
        for that: shortly after the limit there is an error in any case.
        """
        seconds = _limit_of(timeout_seconds)
        return self.ask([(worker, request, None) for worker in range(self.workers)], seconds)


def _limit_of(seconds: float) -> float:
    """Return how long to wait for the answer to a request that may take `seconds`; below 0: for ever."""
    return PATIENCE_SECONDS if seconds < 0 else seconds + ANSWER_SECONDS_MAX


def _tell_after_work(began: float) -> None:
    for tell in after_work[:]:
        tell(began, True)
