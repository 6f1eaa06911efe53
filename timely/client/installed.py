"""An installed dataflow as its inputs and outputs share it: the workers that they ask, and the open epoch."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Final, Protocol

import pyarrow as pa

from ..errors import MisuseError, TimelyError
from ..failure import add_note, fresh_copy
from ..limits import ANSWER_SECONDS_MAX, REPLY_SECONDS_MAX
from ..wire.requests import Deliver, Progress, Reply, Request, Value, waits_for_epoch
from .awaited import note_awaited
from .posting import Poster, Refusals, this_thread, together

__all__ = ["PATIENCE_SECONDS", "Installed", "Keeper", "OwnProcess", "Workers", "after_work"]

PATIENCE_SECONDS = 86_400.0 * 365
"""The time limit of requests that wait for work of any length: an answer ends them, or the loss of a worker.
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
        """Where the workers are, for the `repr` of a cluster."""
        ...

    @property
    def end(self) -> str:
        """Why workers take no requests any more, in one word; empty as long as they do."""
        ...

    def ask(
        self,
        requests: Sequence[tuple[int, Request, pa.Table | None]],
        timeout_seconds: float = REPLY_SECONDS_MAX,
    ) -> list[Reply]:
        """Send each (worker, request, table) and return the replies in that order; raise the error that a
        worker reports.
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
        """Send a delivery. `poster` hears of the answer at the next `settle`, or at once. `call` is the
        user's call, for messages. `is_ordered`: the delivery counts after all earlier posts of other threads.
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
        """Add few plain rows to input `name`, at the open epoch of `poster`; return the epoch that they have
        entered, as far as this client knows. Rows for workers in other processes are posted: see `post`.
        """
        ...

    def seal(self, poster: Poster, seconds: float | None) -> tuple[int, bool]:
        """Seal the open epoch of `poster`, behind its posts. Return the last epoch that this has sealed, and
        True if that epoch is complete on all workers. The epoch is -1 if nothing was sealed, since worker 0
        may not have all posts.

        Without `seconds` this does not wait for the work on the epoch. With them, the requests to seal and to
        wait go out at once, and the wait takes about `seconds` at most; below 0: as long as it needs. Raise
        the error if the seal is refused.
        """
        ...

    def wait(self, dataflow: int, epoch: int, seconds: float, waited_seconds: float = 0.0) -> None:
        """Return once `epoch` is complete on all workers; raise `WaitTimeoutError` after `seconds` (below 0:
        never), whose message counts the `waited_seconds` before this call, too.
        """
        ...

    def settle(self, timeout_seconds: float = REPLY_SECONDS_MAX) -> None:
        """Wait for the answers to all posts, and pass them to the posters. Raise only what has ended the
        connection, or that there is no answer in time.
        """
        ...

    def close(self) -> None:
        """Disconnect from the workers, and end those that this program has started."""
        ...


class Keeper(Protocol):
    """A launcher, or a job of Spark: it starts workers, and knows first when one ends."""

    @property
    def descriptors(self) -> list[int]:
        """File descriptors that become readable when there is something to `check`."""
        ...

    @property
    def knows_best(self) -> bool:
        """True if a client shall wait for the verdict of this keeper even after a worker has said why it
        ends.
        """
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
        """True if the calling process is this one, and not a fork of it."""
        return self.number == os.getpid()

    def check(self) -> None:
        """Raise `MisuseError` in a forked process."""
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
        """True if the workers run within this process, and only during calls."""
        self.part_bytes = workers.part_bytes
        self._end: TimelyError | None = None
        self.index = index
        self.name = name
        self.epoch = epoch
        self.filled_input = ""
        """The input into which this client has put rows last; "" if it has put none."""

    def _end_text(self) -> str:
        """Return, for the `repr`, that the dataflow or its cluster has ended, and why; "" if this client does
        not know that it has.
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
        """Call `Workers.ask`. Once a worker has told this client that the dataflow has ended, all calls raise
        that: another worker may not know yet, and would take rows that nobody can ever read.
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
        """Send a delivery, and do not wait for the answer. If it is refused, the next call raises that, and
        does nothing else. `call` and `is_ordered`: see `Workers.post`.
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
        """Add few plain rows to the open epoch, and return it; otherwise like `post`."""
        if self._end is not None or (self._workers.refusals.unraised and self._is_refused()):
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
        """Seal the open epoch: see `Workers.seal`. Raise refusals of posts that this client knows already;
        refusals that come later are raised by the next `settle`.
        """
        if self._end is not None:
            self.settle(seals=True)
        began = time.monotonic()
        try:
            sealed, is_done = self._workers.seal(self, seconds)
        except TimelyError as error:
            self._hear(error)
            if self._workers.refusals.unraised and (refused := self._refused_of(None)):
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
        """Note on an interrupt what it has interrupted. For workers in other processes, `Channel` has noted
        which answers were missing.
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
            self._end = fresh_copy(error)

    def on_answer(self, reply: Reply) -> None:
        """Note the epoch of a post that was taken."""
        self.note_epoch(reply.integer("epoch"))

    def on_refusal(self, error: TimelyError, thread: int) -> None:
        """Keep the refusal of a post until a call raises it."""
        self._workers.refusals.add(self.index, thread, error)

    def settle(self, seals: bool = False, timeout_seconds: float = REPLY_SECONDS_MAX) -> None:
        """Wait for the answers to all posts; raise refusals of this thread's posts, or what has ended the
        dataflow.

        A thread hears of its own refusals only; but a call that seals (`seals`) raises those of all threads.
        """
        if self._end is None:
            self._workers.settle(timeout_seconds)
        if self._workers.refusals:
            refused = self._refused_of(None if seals else this_thread())
            if refused:
                raise together(refused)
        if self._end is not None:
            raise fresh_copy(self._end)

    def _is_refused(self) -> bool:
        """Return True if a post of this thread is refused, and no call has raised that yet."""
        return self._workers.refusals.concern(self.index)

    def _refused_of(self, thread: int | None) -> list[TimelyError]:
        """Take the refusals of posts for this dataflow, of one thread or, if it is None, of all."""
        refused = self._workers.refusals.take(self.index, thread)
        for error in refused:
            if error.ends_dataflow and self._end is None:
                self._end = fresh_copy(error)
        return refused

    def ask_first(self, request: Request) -> Reply:
        """Send a request to worker 0, which decides for all."""
        (reply,) = self.ask([(0, request, None)])
        return reply

    def ask_all(self, request: Request, timeout_seconds: float = REPLY_SECONDS_MAX) -> list[Reply]:
        """Send the same request to all workers; a negative timeout means no limit.

        A worker that computes answers only after that. A call with a limit does not wait so long: it raises
        an error shortly after the limit.
        """
        seconds = _limit_of(timeout_seconds)
        return self.ask([(worker, request, None) for worker in range(self.workers)], seconds)


def _limit_of(seconds: float) -> float:
    """Return how long to wait for the answer to a request that may take `seconds`; below 0: without limit."""
    return PATIENCE_SECONDS if seconds < 0 else seconds + ANSWER_SECONDS_MAX


def _tell_after_work(began: float) -> None:
    for tell in after_work[:]:
        tell(began, True)
