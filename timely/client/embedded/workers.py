"""Workers in the caller's own process: no sockets, no other process; results in the same call.

Several workers take turns, and talk through memory: they do all that workers in processes do, and in the same
order each time. Or each has a thread of its own (`worker_threads.py`), so that they work at the same time, in
an order that depends on chance.

Workers work in calls whose answers depend on work (waiting, reading, installing, statistics, `close`), and
then do all that there is. If an answer has not come by that, only another thread can bring it
(`waiting_threads.py`). A call that inserts rows or seals an epoch does not work: small epochs cost half if
many are worked on at once. Pending work is bounded (`pending_work.py`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from contextlib import nullcontext
from functools import partial, wraps
from math import inf
from pathlib import Path
from threading import get_ident
from typing import Concatenate, NoReturn, ParamSpec, TypeVar

import pyarrow as pa

from ...building.builders import Builder
from ...errors import MisuseError, StoreError, TimelyError
from ...giving_back import GivingBack
from ...limits import ANSWER_SECONDS_MAX, APPEND_BYTES_MAX, REPLY_SECONDS_MAX, WORKERS_MAX
from ...running.collecting import free_files
from ...running.core import Worker
from ...running.sending.telling import telling_of
from ...running.stages.ends import close_vertices
from ...spilling.budget import BudgetShare
from ...wire.requests import Decide, Progress, Reply, Request, Value, waits_for_epoch
from ...wire.transport.memory import MemoryNetwork
from ...worker.answers.later import Later
from ...worker.server import Server
from ...worker.together import begin_turn, end_turn, forget_together, is_full, join
from ..installed import PATIENCE_SECONDS, Makes, Members, OwnProcess, Requests
from ..posting import Poster, Refusals
from .answers import CLOSED, Answers, Untold, reason_of_end, what_ended, why_broken
from .asking import OF_NO_WORK, Asked, note_entered
from .concerned import Scopes, are_late, exporting, have_done, named_by
from .durable import EmbeddedLog, work_to_the_end
from .pending_work import PendingWork
from .threads.thread_transport import ThreadNetwork
from .threads.worker_threads import WorkerThreads
from .waiting_threads import Turn, WaitingThreads

__all__ = ["EmbeddedWorkers"]

_P = ParamSpec("_P")
_T = TypeVar("_T")


def _in_turn(
    method: Callable[Concatenate[EmbeddedWorkers, _P], _T],
) -> Callable[Concatenate[EmbeddedWorkers, _P], _T]:
    """Let the calling thread hold the turn while `method` runs. Threads take turns; a vertex, which runs
    within the turn of some thread, cannot have another.

    `with` takes the lock, and this function itself writes `_busy`: an interrupt (Ctrl-C) may come as any call
    begins or returns.
    """

    @wraps(method)
    def taken(self: EmbeddedWorkers, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        thread = get_ident()
        if self._busy == thread or (self._threads is not None and self._threads.has(thread)):
            raise MisuseError(
                "a vertex asks the embedded cluster that runs it: use what it is sent, or another cluster"
            )
        with self._lock:
            try:
                self._busy = self._acting.thread = thread
                begin_turn(self)
                self._waiting_threads.callers.add(thread)
                return method(self, *args, **kwargs)
            except BaseException as error:
                self._note(error)
                raise
            finally:
                self._busy = 0
                end_turn(self)

    return taken


class EmbeddedWorkers(Asked):
    """`count` workers that run during calls.

    Args:
        seed: decides which messages between workers that take turns are late; None: none.
        check_progress: True: each checks its progress tracking after each step.
        threads: True: each has a thread.
        durable, sync, progress: see `connect`.
    """

    def __init__(
        self,
        count: int,
        seed: int | None = None,
        check_progress: bool = False,
        threads: bool = False,
        durable: str | Path | None = None,
        sync: str = "disk",
        progress: str = "eager",
    ) -> None:
        if not 1 <= count <= WORKERS_MAX:
            raise MisuseError(f"a cluster has 1 to {WORKERS_MAX} workers, not {count}")
        has_threads = threads and count > 1
        network = ThreadNetwork(count) if has_threads else MemoryNetwork(count, seed)
        self.count, self.part_bytes, self.refusals = count, APPEND_BYTES_MAX, Refusals()
        self._network, self.addresses = network, list[str]()
        self._workers = [
            Worker(index, count, network.transport(index) if count > 1 else None, check_progress, telling=how)
            for index, how in enumerate(telling_of(progress, index, count) for index in range(count))
        ]
        self._servers = [Server(worker, f"embedded worker {worker.index}") for worker in self._workers]
        self._server = self._servers[0]
        self._instances, self._acting = self._workers[0].instances, self._workers[0].acting
        self._broken: BaseException | None = None
        self._lock: Turn = threading.RLock()
        self._busy = 0  # the thread whose turn it is
        self._waiting_threads = WaitingThreads(self._workers)
        self._pending, self._giving_back = PendingWork(self), GivingBack()
        self._scopes = Scopes(self._workers, self._server.replacements)
        self._late: set[int] = set()  # dataflows whose work was not done at the time limit of a call
        self._untold = Untold(self._what_ended)
        self._durable = None if durable is None else EmbeddedLog(durable, sync, self._workers, self._servers)
        self.incarnation = self._server.incarnation
        for worker, server in zip(self._workers, self._servers, strict=True):
            worker.on_failure = partial(self._untold.note, worker.on_failure)
            server.greet()
        self._is_closed = False
        self._closing = threading.RLock()
        self._closer: int | None = None  # the thread that closes this; others stop for its turn
        self._threads: WorkerThreads | None = None
        if isinstance(network, ThreadNetwork):
            self._threads = WorkerThreads(self._workers, network, is_full, self._is_closing_elsewhere)
        self._process, self.spilling = OwnProcess(), BudgetShare()
        self.is_of_process = has_threads or self._durable is not None  # no fork can use it
        join(self)

    @property
    def kind(self) -> str:
        """That the workers are embedded, and in which threads."""
        return ", embedded" if self._threads is None else ", embedded, each in a thread"

    @property
    def end(self) -> str:
        """ "closed", or "interrupted" if an interrupt came at work; else empty."""
        return "closed" if self._is_closed else "interrupted" if self._broken is not None else ""

    @property
    def members(self) -> Members:
        """See `Workers`: always the same."""
        return Members(self.count, self.incarnation)

    def ask_members(self, makes: Makes, timeout_seconds: float = REPLY_SECONDS_MAX) -> list[Reply]:
        """See `Workers`."""
        requests = makes(self.members)
        return self.ask(requests, timeout_seconds) if requests else []

    def ask(self, requests: Requests, timeout_seconds: float = REPLY_SECONDS_MAX) -> list[Reply]:
        """Answer the requests to each worker; if the answers depend on work, do all of that before.

        An error of a vertex ends its dataflow; this call, or the next one that asks the dataflow for
        anything, raises a `VertexError` with that cause. If work alone does not bring an answer, the call
        waits only if another thread may bring it (`waiting_threads.py`); else it raises an error at once.
        Work that is not done at the time limit is left to the next call.
        """
        until = inf if timeout_seconds >= PATIENCE_SECONDS else time.monotonic() + timeout_seconds
        if not self._may_begin(until):
            raise self._waiting_threads.not_begun()
        is_patient = timeout_seconds >= PATIENCE_SECONDS
        answers, news, seconds = None, None, 0.0
        while True:
            answers, news, seconds = self._ask_once(requests, until, is_patient, answers)
            if news is None:
                if self._durable is not None:
                    self._durable.wait_for(request for _, request, _ in requests)
                return answers.replies
            try:
                self._waiting_threads.await_news(news, seconds)
            finally:  # an interrupt here leaves nothing half done
                self._waiting_threads.get_up(news)

    @_in_turn
    def _ask_once(
        self,
        requests: Requests,
        until: float,
        is_patient: bool,
        answers: Answers | None,
    ) -> tuple[Answers, threading.Event | None, float]:
        """Hand out `requests`, unless `answers` are theirs, and work for the answers. If some are still
        missing, return an event to wait for without the turn, and for how many seconds.
        """
        self._check()
        dataflows = named_by(requests)
        if answers is None:
            answers = self._begin(requests, dataflows, until - ANSWER_SECONDS_MAX)
            if not all(waits_for_epoch(request) for _, request, _ in requests):  # waits help no other thread
                self._waiting_threads.wake()
        else:
            self._work_off(until - ANSWER_SECONDS_MAX, dataflows)
        if not answers.waiting or self._settle(answers, until, dataflows):
            return answers, None, 0.0
        if time.monotonic() > until:
            raise answers.failure or answers.late()
        news = self._waiting_threads.lie_down(is_patient)
        try:
            return answers, news, self._waiting_threads.patience(answers)
        except BaseException:
            self._waiting_threads.get_up(news)
            raise

    def post(
        self,
        worker: int,
        request: Request,
        table: pa.Table | None,
        poster: Poster,
        call: str,
        is_ordered: bool = False,
    ) -> None:
        """Carry out a delivery now, and pass the answer to `poster`."""
        del call, is_ordered
        answer = self._do_now(worker, request, table)
        assert isinstance(answer, Reply), "what may be posted is answered at once"
        poster.on_answer(answer)

    @_in_turn
    def _do_now(self, worker: int, request: Request, table: pa.Table | None) -> Reply | Later:
        self._check(getattr(request, "dataflow", None))
        return self._take_at_once(worker, request, table)

    @_in_turn
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
        """See `Workers`. The rows are taken at once."""
        del call, is_ordered
        dataflow = poster.index
        if self._broken is not None or self.is_of_process:
            self._check(dataflow)
        try:
            epoch = self._server.insert_rows(dataflow, name, poster.epoch, writer, sequence, diff, rows)
        except TimelyError as error:
            self._refuse(error, dataflow)
        self._pending.give(dataflow, len(rows), 0)
        if epoch > poster.epoch:
            note_entered(self._server.replacements.instance(dataflow), poster, name, epoch)
        return epoch

    @_in_turn
    def seal(self, poster: Poster, seconds: float | None, is_early: bool = False) -> tuple[int, bool]:
        """See `Workers`. With `seconds`, do the work of the dataflow in the same turn."""
        dataflow, epoch = poster.index, poster.epoch
        if self._broken is not None or self.is_of_process:
            self._check(dataflow)
        try:
            opened = self._server.seal(dataflow, epoch)
        except TimelyError as error:
            self._refuse(error, dataflow)
        if opened > poster.epoch:
            poster.epoch = opened
        self._pending.seal(dataflow)
        if self.count > 1 and seconds is None:
            self._take_in()
        if self._waiting_threads.asleep:
            self._waiting_threads.wake()
        until = inf if seconds is None or seconds < 0 else time.monotonic() + seconds
        try:
            if seconds is not None:
                return epoch, self._work_through(dataflow, epoch, until)
            if self._pending.is_too_much():
                self._work_off_for(dataflow)
            if self._durable is not None and not is_early:
                self._durable.settle_and_fold()
        except StoreError:  # the epoch is sealed, and not on the disk: a repeated call is about the same one
            poster.epoch = epoch if poster.epoch == opened else poster.epoch
            raise
        return epoch, False

    def wait(self, dataflow: int, epoch: int, seconds: float, waited_seconds: float = 0.0) -> None:
        """See `Workers`. If work alone does not complete the epoch, wait as `ask` does."""
        until = inf if seconds < 0 else time.monotonic() + seconds
        if self._may_begin(until) and self._has_done(dataflow, epoch, until):
            return
        request = Progress(dataflow, "", epoch, seconds, waited_seconds)
        limit = PATIENCE_SECONDS if seconds < 0 else max(0.0, until - time.monotonic()) + ANSWER_SECONDS_MAX
        self.ask([(worker, request, None) for worker in range(self.count)], limit)

    @_in_turn
    def _has_done(self, dataflow: int, epoch: int, until: float) -> bool:
        if self._broken is not None or self.is_of_process:
            self._check()
        return self._work_through(dataflow, epoch, until)

    def _work_through(self, dataflow: int, epoch: int, until: float) -> bool:
        """Do all work of a dataflow, or as much as can be done before `until`; return True if the epoch is
        complete on all workers then. If it is not, calls of other threads may still complete it.
        """
        self._work_off(until, (dataflow,))
        durable = self._durable
        try:
            if durable is not None:
                durable.look_behind_work()
            while True:
                is_done = True
                for server in self._servers:  # each of them notes what it is about to show
                    is_done = server.has_done(dataflow, epoch) and is_done
                if is_done or durable is None or not durable.settle():
                    return is_done
        except TimelyError as error:
            self._refuse(error, dataflow)

    def _take_at_once(self, worker: int, request: Request, table: pa.Table | None) -> Reply | Later:
        """Hand out a request whose answer does not depend on work."""
        try:
            answer = self._servers[worker].handle(request, table)
        except TimelyError as error:
            self._refuse(error, getattr(request, "dataflow", None))
        self._pending.note(request, table)
        return answer

    def _refuse(self, error: TimelyError, dataflow: int | None) -> NoReturn:
        """Raise the error with which a worker has answered a request about a dataflow."""
        self._take_in()  # orders to other workers, which the request may have sent
        if error.ends_dataflow and dataflow is not None:  # as it was on the worker on which it arose
            error = self._what_ended(dataflow) or error
        raise error from error.__cause__

    def settle(self, timeout_seconds: float = REPLY_SECONDS_MAX) -> None:
        """Do nothing: embedded workers answer posts at once."""

    @_in_turn
    def work_off(self) -> None:
        """Do all work; or, if a call has hit its time limit before, as much as a seal does."""
        self._work_off(time.monotonic() + REPLY_SECONDS_MAX if self._late else inf, factor=50)

    def _may_begin(self, until: float) -> bool:
        """Return True if this thread can have the turn before `until`."""
        return until == inf or self._is_within() or self._waiting_threads.may_begin(self._lock, until)

    def _is_closing_elsewhere(self) -> bool:
        """Return True if another thread closes this meanwhile, and does the remaining work."""
        return self._closer is not None and self._closer != self._busy

    def _is_within(self) -> bool:
        """Return True if the caller is a vertex of this cluster."""
        thread = get_ident()
        return self._busy == thread or (self._threads is not None and self._threads.has(thread))

    def _note(self, error: BaseException) -> None:
        """Note an error of a call. An interrupt may leave something half done: the cluster cannot go on."""
        if not isinstance(error, Exception):
            self._broken = error
            self._pending.clear()
            self._waiting_threads.wake()
        else:
            self._untold.note_raised(error)

    def at_rest(self) -> list[Worker] | None:
        """Return the workers, or None if messages between them are under way: see `together.py`."""
        if self._threads is not None and self._threads.is_at_work:
            return None
        if self._broken is not None:
            return []
        return None if self._network.in_flight() else self._workers

    def _begin(self, requests: Requests, dataflows: Collection[int] | None, until: float) -> Answers:
        """Hand out requests about these dataflows, after the work that their answers depend on."""
        waits = looks = asks_else = False
        for _, request, _ in requests:
            waits = waits or not isinstance(request, OF_NO_WORK)
            looks = looks or waits_for_epoch(request)
            asks_else = asks_else or not isinstance(request, Progress) or request.beyond < 0
        if waits:
            is_brief = not looks and bool(self._late) and are_late(self._late, self._scopes.about(dataflows))
            self._work_off(0.0 if is_brief else until, dataflows, asks_else)
        answers = [self._take_at_once(worker, request, table) for worker, request, table in requests]
        if not waits:
            if self.count > 1:
                self._take_in()
            for _, request, _ in requests:
                if isinstance(request, Decide) and self._pending.is_too_much():
                    self._work_off_for(request.dataflow)
        return Answers(answers)

    def _work_off_for(self, dataflow: int) -> None:
        """Work off pending work, which is too much, after a call has sealed an epoch of a dataflow."""
        is_late = bool(self._late) and are_late(self._late, self._scopes.about((dataflow,)))
        seconds = self._pending.seconds_of_seal(REPLY_SECONDS_MAX, is_late)
        self._work_off(time.monotonic() + seconds, (dataflow,), factor=50)
        if (error := self._what_ended(dataflow)) is not None:
            raise error

    def install(
        self,
        spec: str,
        builder: Builder,
        arguments: dict[str, Value],
        replaces: int | None = None,
        timeout: float | None = None,
    ) -> Reply:
        """Install on all workers what `builder`, a function of this process, builds. With `replaces`, it
        becomes the new version of that dataflow if it catches up within `timeout` seconds.
        """
        until = inf if timeout is None else time.monotonic() + timeout
        if not self._may_begin(until):
            raise self._waiting_threads.not_begun()
        return self._install(spec, builder, arguments, replaces, until)

    @_in_turn
    def _install(
        self, spec: str, builder: Builder, arguments: dict[str, Value], replaces: int | None, until: float
    ) -> Reply:
        self._check(replaces)
        if self._durable is not None:
            spec = self._durable.prepare(spec, builder, replaces is not None)
        # The dataflow may read exports of others, and begins with what these have done by then.
        read = [one for one in exporting(self._workers[0]) if one not in self._late]
        read += [] if replaces is None else [replaces]
        self._work_off(min(until, time.monotonic() + REPLY_SECONDS_MAX), read)
        if self._durable is not None and (known := self._durable.known(spec, builder, arguments, replaces)):
            return known
        old = -1 if replaces is None else self._server.new_versions.check_replaceable(replaces)
        dataflow = self._durable.number(spec, old) if self._durable else self._server.installations.reserve()
        answers = [server.install(dataflow, spec, builder, arguments, old) for server in self._servers]
        self._scopes.note(self._server.installations.has_source(dataflow))
        self._waiting_threads.wake()
        waited = Answers(answers)
        try:
            if not self._settle(waited, until, {dataflow, old} - {-1}):
                raise waited.late()
            if self._durable is not None:
                self._durable.settle()
            return waited.replies[0]
        except TimelyError:
            if replaces is not None and waited.waiting:
                waited.late()  # the disk fails: the old version goes on
            self._untold.leave_to_caller(dataflow)
            raise

    def close(self) -> None:
        """Do all pending work, and take no calls any more. Raise what has ended a dataflow if no call has."""
        if not self._is_here():
            return
        is_within = self._is_within()  # a vertex closes what runs it
        with nullcontext() if is_within else self._closing:  # a second thread finds it closed
            if self._broken is not None:  # closed, perhaps by a vertex, or an interrupt came
                self._is_closed = True
                if not is_within:
                    self._end_threads()
                return
            if not is_within:
                self._closer = get_ident()
                try:
                    work_to_the_end(self.work_off, self._durable)
                except BaseException:
                    self._closer = None
                    raise
            self._is_closed, self._broken = True, MisuseError(CLOSED)
            self._pending.clear()  # work that was not done in time never will be
            self._waiting_threads.wake()
            if not is_within:
                self._end_threads()
            self._untold.raise_first()

    @_in_turn
    def _end_threads(self) -> None:
        self.spilling.end()
        workers = self._workers if self._threads is None else self._threads.close()
        try:
            close_vertices(workers, reason_of_end(self._broken, self._durable is not None))
            free_files(worker.instances for worker in workers)
        finally:
            if self._durable is not None:
                self._durable.close()

    def _is_here(self) -> bool:
        """Return True if this process has the threads and files: a forked one has not."""
        return not self.is_of_process or self._process.is_here

    def _check(self, changed: int | None = None) -> None:
        if self.is_of_process:
            self._process.check()
        if self._broken is not None:
            raise why_broken(self._broken, self._durable is not None)
        if self._durable is not None and changed is not None:
            self._durable.await_switch(changed, self._step)  # its inputs take rows then

    def _what_ended(self, dataflow: int) -> TimelyError | None:
        """Return the error that has ended a dataflow, from the worker on which it arose, or None."""
        return what_ended(self._workers, self._server.replacements.inputs_of(dataflow))

    def _take_in(self) -> None:
        """Let all workers take the messages between them, such as decisions of the first."""
        while self._network.in_flight():
            for worker in self._workers:
                worker.take_in()

    def _work_off(
        self,
        until: float,
        dataflows: Collection[int] | None = None,
        asks_else: bool = False,
        factor: int = 1,
    ) -> None:
        """Work until nothing is left to do in these dataflows (None: all) and in those that they read, or
        until `until`; see also `Pieces`. `asks_else`: the caller asks for more than this work. Then, if no
        rows have come since, the memory that an earlier load has left goes back to the system first.
        """
        if self._broken is None:
            rows, giving_back, threads = self._pending.rows, self._giving_back, self._threads
            if asks_else and not rows:
                giving_back.look_behind()
            # Workers that take turns do a step whatever the call is about: mostly nothing is left after it.
            pieces = None if threads is None else self._scopes.pieces(dataflows, until, factor)
            while self._step(until if pieces is None else pieces.next_until()):
                # For a lone worker no further step is needed to know that nothing is left, nor for threads
                # that have not paused; for workers that take turns it is.
                if self._workers[0].is_at_rest() if self.count == 1 else threads and not threads.has_paused:
                    break
                if pieces is None:
                    pieces = self._scopes.pieces(dataflows, until, factor)
                about = pieces.about
                if about is not None and have_done(self._workers, about):
                    giving_back.add(rows)
                    self._late.difference_update(about)
                    self._pending.clear(about)
                    return
                if time.monotonic() > pieces.until:  # the rest is still pending
                    giving_back.add(rows)
                    if not pieces.has_sources:
                        self._late.update(self._instances if about is None else about)
                    return
            giving_back.look(rows)
        self._late.clear()
        self._pending.clear()

    def _settle(self, answers: Answers, until: float, dataflows: Collection[int] | None) -> bool:
        """Work until all answers are known, or nothing is left to do in these dataflows (None: all) and those
        that they read; return True if they are known. Raise the error of an answer.
        """
        pieces = self._scopes.pieces(dataflows, until, inf)
        about = pieces.about
        while answers.waiting:
            moved = self._step(pieces.next_until())
            if self._durable is not None and not moved:
                moved = self._durable.look() or self._durable.settle()
            answers.take()
            if not answers.waiting:
                break
            if not moved and self._durable is not None:
                moved = self._durable.settle()  # what the answers are about to show is logged first
            if not moved or time.monotonic() > until:
                return False
            if about is not None and have_done(self._workers, about):
                if self._durable is None or not self._durable.settle():
                    return False
        if answers.failure is not None:
            raise answers.failure
        return True

    def _step(self, until: float) -> bool:
        """Let each worker do a step; or, if each has a thread, let them work until `until`. Return True if
        there was anything to do.
        """
        moved = False
        try:
            if self._threads is not None:
                moved = self._threads.work(until, self._pending.rows) or self._threads.has_paused
            else:
                for worker in self._workers:
                    moved = worker.step() or moved
        except BaseException as error:
            self._broken = error
            raise
        if is_full():
            if self._threads is not None:
                self._take_in()  # after a pause there may be messages under way
            forget_together(self)
        if self._closer is not None and self._is_closing_elsewhere():
            self._late.update(self._instances)
            raise MisuseError(CLOSED)
        return moved or (self.count > 1 and self._network.in_flight() > 0)
