"""An installed dataflow as its inputs and outputs share it: the workers that they ask, and the open epoch."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias

import pyarrow as pa

from ..errors import MisuseError, TimelyError, WaitTimeoutError
from ..failure import add_note, fresh_copy
from ..limits import ANSWER_SECONDS_MAX, REPLY_SECONDS_MAX, REPORTED_SECONDS_MIN
from ..wire.requests import Deliver, Probe, Progress, Read, Reply, Request, Value, Why, waits_for_epoch
from .awaited import note_awaited
from .posting import Poster, Refusals, this_thread, together
from .reports.why import EpochReport, explain, report_of

__all__ = [
    "PATIENCE_SECONDS",
    "Installed",
    "Keeper",
    "Makes",
    "Members",
    "OwnProcess",
    "Requests",
    "Workers",
    "after_work",
    "to_all",
]

PATIENCE_SECONDS = 86_400.0 * 365
"""The time limit of requests that wait for work of any length: an answer ends them, or the loss of a worker.
"""

after_work: Final[list[Callable[[float, bool], None]]] = []
"""Callbacks for when a call to embedded workers returns. Each gets the start time (on the monotonic clock)
and whether the call waited for all pending work, or is an install. Usually empty; kernel warming registers
here to announce that it has finished.
"""


@dataclass(frozen=True, slots=True)
class Members:
    """The workers for which requests are made: how many they are, and the incarnation of a durable cluster in
    which they are so many; 0: the cluster is not durable. `life`: by which number requests name the
    incarnation (`life_of`); 0: they name none.
    """

    count: int
    incarnation: int
    life: int = field(default=0, compare=False)


Requests: TypeAlias = Sequence[tuple[int, Request, pa.Table | None]]
"""Each a worker, a request to it, and the table that goes with that."""

Makes: TypeAlias = Callable[[Members], Requests]
"""Makes requests for the workers that there are. It may be called several times: a durable cluster may start
again with another number of workers before it has answered.
"""


def to_all(request: Request) -> Makes:
    """Return what makes the same request to each worker."""
    return lambda members: [(worker, request, None) for worker in range(members.count)]


class Workers(Protocol):
    """The workers of a cluster, wherever they are: `EmbeddedWorkers` or `RemoteWorkers`."""

    count: int
    addresses: list[str]
    refusals: Refusals
    """Refused posts that no call has told of yet."""
    part_bytes: int
    """About how many bytes of a large insertion one part has, for each worker."""
    incarnation: int
    """The incarnation of a durable cluster, as far as this client knows; 0: the cluster is not durable."""

    @property
    def kind(self) -> str:
        """Where the workers are, for the `repr` of a cluster."""
        ...

    @property
    def end(self) -> str:
        """Why workers take no requests any more, in one word; empty as long as they do."""
        ...

    @property
    def members(self) -> Members:
        """The workers that there are, as far as this client knows."""
        ...

    def ask(self, requests: Requests, timeout_seconds: float = REPLY_SECONDS_MAX) -> list[Reply]:
        """Send each (worker, request, table) and return the replies in that order; raise the error that a
        worker reports.

        If which worker gets a request depends on how many there are, call `ask_members`. If a durable cluster
        starts again with another number of workers, this raises `RestartedError`, unless all requests go to
        worker 0.
        """
        ...

    def ask_members(self, makes: Makes, timeout_seconds: float = REPLY_SECONDS_MAX) -> list[Reply]:
        """Send the requests that `makes` makes for the workers that there are, and return the replies, as
        `ask` does. All replies are of the same incarnation. `makes` may raise an error.
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

    def seal(self, poster: Poster, seconds: float | None, is_early: bool = False) -> tuple[int, bool]:
        """Seal the open epoch of `poster`, behind its posts. `is_early`: return as soon as worker 0 has done
        so, also if the seal, and rows before it, are not durable yet. Return the last epoch that this has
        sealed, and True if that epoch is complete on all workers. The epoch is -1 if nothing was sealed,
        since worker 0 may not have all posts.

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

    def reasons(self, request: Why) -> list[Reply | str]:
        """Return what each worker says about an epoch within about a second, in order, or why it says
        nothing. Raise what has ended the dataflow.
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

    @property
    def addresses(self) -> Sequence[str | None]:
        """Where clients reach each worker, in order; nothing where it is not known yet."""
        ...

    @property
    def starts_again(self) -> bool:
        """True if the keeper starts all workers again after the end that `check` raises."""
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
        self.ahead: dict[str, int] = {}
        """The open epochs of inputs that other clients have sealed by themselves, as far as this client has
        heard; without inputs in `own_epochs`."""
        self.own_epochs: list[Installed] = []
        """The dataflow as inputs that this client has sealed by themselves see it: see `OwnEpochs`."""

    def end_text(self) -> str:
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

    @property
    def incarnation(self) -> int:
        """The incarnation of a durable cluster, as far as this client knows; 0: the cluster is not
        durable.
        """
        return self._workers.incarnation

    def look(self, request: Request, seconds: float) -> list[Reply]:
        """Ask all workers, for so many seconds at most, and take nothing from the next call: it still raises
        refusals of posts, and the end of the dataflow.
        """
        if self._end is not None:
            raise fresh_copy(self._end)
        return self._workers.ask_members(to_all(request), seconds)

    def note_epoch(self, epoch: int) -> None:
        """Remember that `epoch` or a later one is open."""
        if epoch > self.epoch:
            self.epoch = epoch

    def note_sealed(self, epoch: int) -> None:
        """Remember that `epoch` is sealed, also at inputs with epochs of their own."""
        self.note_epoch(epoch + 1)
        for own in self.own_epochs:
            own.note_epoch(epoch + 1)

    @property
    def members(self) -> Members:
        """The workers that there are, as far as this client knows."""
        return self._workers.members

    def ask(self, requests: Requests, timeout_seconds: float = REPLY_SECONDS_MAX) -> list[Reply]:
        """Call `Workers.ask`. Once a worker has told this client that the dataflow has ended, all calls raise
        that: another worker may not know yet, and would take rows that nobody can ever read.
        """
        ask = self._workers.ask
        return self._asked(lambda: ask(requests, timeout_seconds), requests[0][1], timeout_seconds)

    def ask_members(
        self,
        makes: Makes,
        what: Request,
        timeout_seconds: float = REPLY_SECONDS_MAX,
        explains: bool = True,
    ) -> list[Reply]:
        """Call `Workers.ask_members`, and otherwise do as `ask`. `what`: one of the requests, or one like
        them.
        """
        ask = self._workers.ask_members
        return self._asked(lambda: ask(makes, timeout_seconds), what, timeout_seconds, explains)

    def _asked(
        self, ask: Callable[[], list[Reply]], what: Request, timeout_seconds: float, explains: bool = True
    ) -> list[Reply]:
        if not self.is_embedded or self._end is not None:
            self.settle(timeout_seconds=timeout_seconds)
        began = time.monotonic()
        try:
            replies = ask()
        except TimelyError as error:
            self._hear(error)
            if explains:
                self.tell_why(error, what)
            raise
        except KeyboardInterrupt as error:
            self._note_awaited(error, what, began)
            raise
        if after_work and self.is_embedded and waits_for_epoch(what):
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
        return epoch if epoch > self.epoch else self.epoch

    def seal_open(self, seconds: float | None, is_early: bool = False) -> tuple[int, bool]:
        """Seal the open epoch: see `Workers.seal`. Raise refusals of posts that this client knows already;
        refusals that come later are raised by the next `settle`.
        """
        if self._end is not None:
            self.settle(seals=True)
        began = time.monotonic()
        try:
            sealed, is_done = self._workers.seal(self, seconds, is_early)
        except TimelyError as error:
            self._hear(error)
            self._tell_why(error, self.epoch - 1, -1.0)
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
            self._tell_why(error, epoch, seconds + waited_seconds)
            raise
        except KeyboardInterrupt as error:
            self._note_awaited(error, Progress(self.index, "", epoch, seconds, waited_seconds), began)
            raise
        if after_work and self.is_embedded:
            _tell_after_work(began)

    def tell_why(self, error: TimelyError, what: Request) -> None:
        """Let an error end with what holds the epoch for which a request has waited too long."""
        if isinstance(what, Progress):
            self._tell_why(error, what.beyond, what.timeout_seconds)
        elif isinstance(what, Probe) and what.waits and isinstance(what.time[0], int):
            self._tell_why(error, what.time[0], what.timeout_seconds)
        elif isinstance(what, Read):
            self._tell_why(error, what.stop - 1, what.timeout_seconds)

    def _tell_why(self, error: TimelyError, epoch: int, seconds: float) -> None:
        """End an error with the report. A caller that has waited for no time looks again and again
        whether the epoch is complete: for it a report would take longer than the wait.
        """
        if not isinstance(error, WaitTimeoutError) or self._end is not None or epoch < 0:
            return
        if 0 <= seconds < REPORTED_SECONDS_MIN:
            add_note(error, f"flow.why({epoch}) says what holds it")
        else:
            explain(error, self._workers, self.index, self.name, epoch)

    def report(self, epoch: int) -> EpochReport:
        """Return what holds an epoch: see `Flow.why`."""
        return report_of(self.name, epoch, self._workers.reasons(Why(self.index, epoch)))

    def _note_awaited(self, error: KeyboardInterrupt, request: Request, began: float) -> None:
        """Note on an interrupt what it has interrupted. For workers in other processes, `Channel` has noted
        which answers were missing.
        """
        if self.is_embedded:
            why = "its workers, in this process, "
            if self._workers.end != "interrupted":
                why += "go on: it was for another thread to bring that, or to end its turn"
            elif self._workers.incarnation:
                why += "were at work: what they have taken is in their store; "
                why += "close the cluster, and connect again"
            else:
                why += "were at work: what they hold is lost, connect again"
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
        match reply.values.get("input"), reply.values.get("open"):
            case str(name), int(opened):  # this input may be ahead of others
                epoch = reply.integer("epoch")
                if epoch > opened and epoch > self.epoch:
                    self.ahead[name] = max(epoch, self.ahead.get(name, 0))
                self.note_epoch(min(epoch, opened))
            case _:
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
            try:
                self._workers.settle(timeout_seconds)
            except WaitTimeoutError as error:
                self._tell_why(error, max(0, self.epoch - 1), timeout_seconds)
                raise
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

    def ask_all(
        self, request: Request, timeout_seconds: float = REPLY_SECONDS_MAX, explains: bool = True
    ) -> list[Reply]:
        """Send the same request to all workers; a negative timeout means no limit.

        A worker that computes answers only after that. A call with a limit does not wait so long: it raises
        an error shortly after the limit. `explains`: that says what holds the epoch.
        """
        return self.ask_members(to_all(request), request, _limit_of(timeout_seconds), explains)


def _limit_of(seconds: float) -> float:
    """Return how long to wait for the answer to a request that may take `seconds`; below 0: without limit."""
    return PATIENCE_SECONDS if seconds < 0 else seconds + ANSWER_SECONDS_MAX


def _tell_after_work(began: float) -> None:
    for tell in after_work[:]:
        tell(began, True)
