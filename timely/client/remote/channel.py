"""One thread's connections to all workers of a cluster: what is asked, and what ends the waiting for answers.

Nothing waits for a worker that is gone: while an answer is outstanding, connections are watched and, of
workers that this program has started, their `Keeper`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from ...errors import PeerError, RefusedError, TimelyError, WaitTimeoutError
from ...failure import again
from ...limits import FRAME_BYTES_MAX, KEEPER_SECONDS_MAX, SEALED_WAIT_SECONDS_MAX, VERDICT_SECONDS_MAX
from ...wire.batch import Frame
from ...wire.frames.messages import FAREWELL, check_size, decode_reply, encode_request, head_of
from ...wire.keys import ClientKeys
from ...wire.requests import Decide, Progress, Read, Reply, Request, Value, waits_for_epoch
from ...wire.transport.zeromq import ClientSockets
from ..awaited import SENT, missing, note_awaited
from ..installed import PATIENCE_SECONDS, Keeper
from ..posting import Poster, Posts

__all__ = ["Channel"]

_log = logging.getLogger("timely")
_BUSY: Final = "it is reached, and does not answer: it computes, or waits for others"
_SHORT_WAIT_SECONDS = 0.5
_KNOWS = -1
"""Stands for the worker in a failure that is known to be the cause: a worker's last word."""
_KEEPS = -2
"""The same, from who keeps the workers, and knows best."""


class Channel:
    """One thread's connections to all workers. `lock` is held while all threads' `launcher` is asked."""

    def __init__(
        self,
        addresses: Sequence[str],
        silence_seconds: float,
        launcher: Keeper | None,
        lock: threading.Lock,
        keys: ClientKeys | None,
    ) -> None:
        self.thread = threading.current_thread()
        self._addresses = addresses
        self._launcher = launcher
        self._lock = lock
        self.sockets = ClientSockets(addresses, keys, silence_seconds)
        self._number = 0
        self._in_use = threading.RLock()
        """Held while the sockets are used: they must not be closed meanwhile."""
        self._over: TimelyError | None = None
        self._awaited: dict[tuple[int, int], int] = {}
        """What is pending, of what was waited for last; since when: `_awaited_since`."""
        self._awaited_since = 0.0
        self.posts = Posts(self._send, self._answer)
        self._early: dict[tuple[int, int], Reply | TimelyError | None] = {}
        """By worker and number, the answers to waits that were sent with a seal; None as long as one is
        missing.
        """
        self._apart_until = 0.0
        self._descriptors = [] if launcher is None else launcher.descriptors
        for descriptor in self._descriptors:
            self.sockets.watch(descriptor)

    def ask(
        self,
        requests: Sequence[tuple[int, Request, pa.Table | None]],
        timeout_seconds: float,
        reach_seconds: float,
    ) -> list[Reply]:
        """See `RemoteWorkers.ask`."""
        self.posts.settle()  # from now on this thread alone looks at the sockets
        with self._in_use:
            try:
                return self._ask(requests, timeout_seconds, reach_seconds)
            except KeyboardInterrupt as error:
                self._note_awaited(error, requests[0][1])
                raise

    def _ask(
        self,
        requests: Sequence[tuple[int, Request, pa.Table | None]],
        timeout_seconds: float,
        reach_seconds: float,
    ) -> list[Reply]:
        self._check_goes_on()
        first = self._number + 1
        self._number += len(requests)
        # What cannot be sent is found before anything is.
        encoded = [
            (worker, first + position, check_size(encode_request(first + position, request, table)))
            for position, (worker, request, table) in enumerate(requests)
        ]
        for worker in {worker for worker, _, _ in requests}:
            self.sockets.forgive(worker)
            self.sockets.choose(worker)
        for worker, _, frames in encoded:
            self.sockets.send(worker, frames)
        pending = {(worker, number): number - first for worker, number, _ in encoded}
        said_seconds = _limit_of(requests[0][1], timeout_seconds)
        return self._gather(pending, timeout_seconds, reach_seconds, said_seconds=said_seconds)

    def seal(self, poster: Poster, seconds: float | None) -> tuple[int, bool]:
        """See `Workers.seal`. With `seconds`, all workers are asked to wait for the epoch right behind the
        seal, before that is answered: so their answers are on their way when the work is done.

        Such a wait lies with each worker for `SEALED_WAIT_SECONDS_MAX` at most. After one that came to
        nothing (the seal was refused, or the work takes longer) for as long none is sent with a seal, so that
        no worker has more than two of this thread.
        """
        sealing = -1

        def request(after: list[Value]) -> Request:
            nonlocal sealing
            poster.check_refused()  # what other threads have posted has its answers by now
            sealing = poster.epoch
            return Decide(poster.index, sealing, True, after)

        limit = SEALED_WAIT_SECONDS_MAX
        waits = seconds is not None and time.monotonic() >= self._apart_until
        if seconds is not None and 0 <= seconds < limit:
            limit = seconds

        def on_sent() -> None:
            if waits:
                wait = Progress(poster.index, "", sealing, limit)
                # The worker that has the seal first: another one that is woken may take its core.
                self._early = {
                    (worker, self._send(worker, wait, None)): None for worker in range(len(self._addresses))
                }

        is_done = False
        try:
            reply = self.posts.ask_behind(0, poster, request, on_sent)
            sealed = reply.integer("sealed")
            if sealed >= 0:
                # Compared once all is known: another thread of the client may be further by now.
                opened = max(sealed + 1, reply.integer("open"))
                if opened > poster.epoch:
                    poster.epoch = opened
            is_done = sealed == sealing and self._have_waited(poster.index, sealed, limit)
        finally:
            if self._early and not is_done:
                self._apart_until = time.monotonic() + SEALED_WAIT_SECONDS_MAX
            self._early = {}
        return sealed, is_done

    def _have_waited(self, dataflow: int, epoch: int, seconds: float) -> bool:
        """Whether the waits that were sent with a seal are answered in time, and by no error: who asks again
        is told of the same one.
        """
        if not self._early:
            return False
        pending = {at: place for place, at in enumerate(self._early) if self._early[at] is None}
        if any(isinstance(answer, TimelyError) for answer in self._early.values()):
            return False
        try:
            with self._in_use:
                self._gather(pending, PATIENCE_SECONDS, float("inf"), seconds)
        except PeerError:
            raise
        except TimelyError:
            return False
        except KeyboardInterrupt as error:
            self._note_awaited(error, Progress(dataflow, "", epoch, seconds))
            raise
        return True

    def _send(self, worker: int, request: Request, rows: Frame | None) -> int:
        """Send what nobody waits for now."""
        with self._in_use:
            if self._over is not None:
                raise again(self._over)
            self._number += 1
            frames = check_size(encode_request(self._number, request) + ([] if rows is None else [rows]))
            self.sockets.forgive(worker)
            self.sockets.send(worker, frames)
            return self._number

    def _answer(self, worker: int, number: int, timeout_seconds: float) -> Reply | TimelyError:
        """Wait for the answer to what was sent so; raises where there is none."""
        pending = {(worker, number): 0}
        try:
            with self._in_use:
                (reply,) = self._gather(pending, timeout_seconds, float("inf"))
        except TimelyError as error:
            if pending or isinstance(error, PeerError):
                raise
            return error
        except KeyboardInterrupt as error:
            self._note_awaited(error, SENT)
            raise
        return reply

    def _note_awaited(self, error: KeyboardInterrupt, what: Request | str) -> None:
        """Say of an interrupt whose answers were missing; nothing if none was."""
        if workers := sorted({worker for worker, _ in self._awaited}):
            seconds = time.monotonic() - self._awaited_since
            note_awaited(error, what, seconds, missing(workers, self._addresses))

    def join(self, timeout_seconds: float) -> None:
        """See `RemoteWorkers.join`."""
        with self._in_use:
            self._join(timeout_seconds)

    def _join(self, timeout_seconds: float) -> None:
        deadline = time.monotonic() + timeout_seconds
        while absent := self._absent():
            self._check_goes_on()
            left = deadline - time.monotonic()
            for worker in absent:
                if refusal := self.sockets.refusal(worker):
                    raise RefusedError(refusal)
            if left <= 0:
                listed = ", ".join(self._addresses[at] for at in absent)
                raise PeerError(
                    f"no worker can be reached at {listed} within {timeout_seconds:g} s: is the cluster gone "
                    "that was there? Start one with 'python -m timely.worker', or check host and port"
                )
            self.sockets.wait(min(_SHORT_WAIT_SECONDS, left))

    def end(self, error: TimelyError) -> None:
        """Let whoever waits for answers raise this within half a second; called in any thread."""
        self._over = error

    def close(self) -> None:
        """Let go of the sockets, once nobody uses them: see `end`."""
        with self._in_use:
            self.sockets.close()

    def _check_goes_on(self) -> None:
        if self._over is not None:
            raise again(self._over)

    def _absent(self) -> list[int]:
        """Workers that are not reached, or not any more."""
        return [at for at in range(len(self._addresses)) if not self.sockets.is_joined(at)]

    def _check_reached(self, late: set[int], seconds: float, patience: float) -> None:
        """Nobody there, or somebody who cannot answer yet? Raise the one; say that the other is awaited."""
        if absent := late.intersection(self._absent()):
            raise PeerError(
                f"no answer from worker {self._listed(absent)} within {seconds:g} s: is a cluster running "
                "there? Start one with 'python -m timely.worker', or check host and port"
            )
        _log.warning("waiting for worker %s: %s. For %g s at most", self._listed(late), _BUSY, patience)

    def _listed(self, workers: set[int]) -> str:
        return ", ".join(f"{worker} at {self._addresses[worker]}" for worker in sorted(workers))

    def _gather(
        self,
        pending: dict[tuple[int, int], int],
        timeout_seconds: float,
        reach_seconds: float,
        soon_seconds: float = float("inf"),
        said_seconds: float | None = None,
    ) -> list[Reply]:
        """The answers to what is pending, by position. `soon_seconds`: for so long it is waited for while
        nothing has failed; who looks for the cause of a failure has until the timeout. `said_seconds`: the
        limit that messages say, if not the timeout.
        """
        said_seconds = timeout_seconds if said_seconds is None else said_seconds
        started = time.monotonic()
        deadline, reach_by = started + timeout_seconds, started + reach_seconds
        soon = min(deadline, started + soon_seconds)
        replies: dict[int, Reply] = {}
        failures: list[tuple[int, TimelyError]] = []
        self._awaited, self._awaited_since = pending, started
        self._check_goes_on()
        self._take_soon(pending, replies, failures, soon)
        if not (pending or failures):  # Fast path: nobody need be looked after.
            return [replies[position] for position in sorted(replies)]
        grace = apart = deadline
        while pending or failures:
            self._check_goes_on()
            for worker in range(len(self._addresses)):  # also who was not asked may have a last word
                self._take(worker, pending, replies, failures)
            if not pending and not failures:
                break
            lost = self._find_lost({worker for worker, _ in pending})
            now = time.monotonic()
            if (failures or lost) and grace == deadline:
                grace = min(deadline, now + self._patience)
            failures.extend(lost)
            # Who is asked may be in a long step, in which it cannot tell that the cluster is gone.
            others = [] if failures else self._lost_apart({worker for worker, _ in pending})
            apart = min(apart, now + self._patience) if others else deadline
            if now >= apart:
                failures.extend(others)
            if self._is_settled(bool(pending), failures) or (failures and now >= min(grace, apart)):
                break
            if now >= reach_by:
                reach_by = float("inf")
                if not failures:
                    self._check_reached({worker for worker, _ in pending}, reach_seconds, timeout_seconds)
            until = deadline if failures else soon
            if now >= until:
                late = {worker for worker, _ in pending}
                why = "it cannot be reached" if late.intersection(self._absent()) else _BUSY
                raise WaitTimeoutError(
                    f"no answer from worker {self._listed(late)} within {round(said_seconds, 2):g} s: {why}"
                )
            pause = 0.02 if failures or self.sockets.is_losing() else _SHORT_WAIT_SECONDS
            self.sockets.wait(min(pause, max(0.0, min(until, grace, reach_by) - now)))
        if failures:
            raise self._judge(failures)
        return [replies[position] for position in sorted(replies)]

    def _take_soon(
        self,
        pending: dict[tuple[int, int], int],
        replies: dict[int, Reply],
        failures: list[tuple[int, TimelyError]],
        deadline: float,
    ) -> None:
        """Take what comes as long as nothing but answers does: most often nobody need be looked after. What
        has come already by another way, or been lost, is found afterwards; all of it wakes who waits.
        """
        sockets = self.sockets
        if sockets.is_losing() or sockets.has_arrived():
            return
        while pending and not failures and (left := deadline - time.monotonic()) > 0:
            heard = sockets.wait(min(_SHORT_WAIT_SECONDS, left))
            if heard is None or self._over is not None:
                return
            for worker in heard:
                for frames in sockets.heard(worker):
                    self._take_one(worker, frames, pending, replies, failures)

    def _take(
        self,
        worker: int,
        pending: dict[tuple[int, int], int],
        replies: dict[int, Reply],
        failures: list[tuple[int, TimelyError]],
    ) -> None:
        while (frames := self.sockets.recv_nowait(worker)) is not None:
            self._take_one(worker, frames, pending, replies, failures)

    def _take_one(
        self,
        worker: int,
        frames: Sequence[memoryview],
        pending: dict[tuple[int, int], int],
        replies: dict[int, Reply],
        failures: list[tuple[int, TimelyError]],
    ) -> None:
        # A worker may say more than a client: the stages of a large dataflow are a long text.
        number, head = head_of(frames, FRAME_BYTES_MAX)
        position = pending.pop((worker, number), None)
        if position is None and number != FAREWELL:
            if self.posts.expects(worker, number):
                self.posts.take(worker, number, decode_reply(frames, head))
            elif (worker, number) in self._early:
                self._early[worker, number] = decode_reply(frames, head)
            return  # or it is the answer to a request that was given up
        answer = decode_reply(frames, head)
        if position is None:
            if isinstance(answer, PeerError):
                failures.append((_KNOWS, answer))
        elif isinstance(answer, Reply):
            replies[position] = answer
        else:
            failures.append((worker, answer))

    def _find_lost(self, workers: set[int]) -> list[tuple[int, TimelyError]]:
        """Workers of whom an answer is outstanding and none will come."""
        if self._launcher is not None:
            try:
                with self._lock:
                    self._launcher.check()
            except PeerError as error:
                self._forget_ended()
                return [(_KEEPS, error)]
        for worker in sorted(workers):
            if refusal := self.sockets.refusal(worker):
                return [(_KNOWS, RefusedError(refusal))]
        return [
            (
                worker,
                PeerError(
                    f"worker {worker} at {self._addresses[worker]} is lost before it has answered: {loss}"
                ),
            )
            for worker in sorted(workers)
            if (loss := self.sockets.loss(worker))
        ]

    def _lost_apart(self, asked: set[int]) -> list[tuple[int, TimelyError]]:
        """Workers that nothing is outstanding of, which are lost and not back: without them there is no
        cluster that could answer.
        """
        found: list[tuple[int, TimelyError]] = []
        for worker in range(len(self._addresses)):
            if worker not in asked:
                self.sockets.forgive(worker)
                if loss := self.sockets.loss(worker):
                    who = f"worker {worker} at {self._addresses[worker]}"
                    found.append((worker, PeerError(f"{who} is lost, and with it the cluster: {loss}")))
        return found

    def _forget_ended(self) -> None:
        assert self._launcher is not None
        alive = set(self._launcher.descriptors)
        for descriptor in [old for old in self._descriptors if old not in alive]:
            self.sockets.unwatch(descriptor)
        self._descriptors = [old for old in self._descriptors if old in alive]

    @property
    def _keeper_knows_best(self) -> bool:
        return self._launcher is not None and self._launcher.knows_best

    @property
    def _patience(self) -> float:
        """How long to wait for the cause of a failure."""
        return KEEPER_SECONDS_MAX if self._keeper_knows_best else VERDICT_SECONDS_MAX

    def _is_settled(self, is_pending: bool, failures: list[tuple[int, TimelyError]]) -> bool:
        """Whether there is nothing to wait for: one of the failures explains itself, or all have answered. Of
        a lost peer another worker may know the cause; who keeps them knows it for certain.
        """
        known = _KEEPS if self._keeper_knows_best else _KNOWS
        if any(worker <= known or not isinstance(error, PeerError) for worker, error in failures):
            return True
        return not is_pending and not (failures and self._keeper_knows_best)

    def _judge(self, failures: list[tuple[int, TimelyError]]) -> TimelyError:
        """The failure that explains the others."""
        ranked = sorted(failures, key=lambda failure: (isinstance(failure[1], PeerError), failure[0]))
        worker, error = ranked[0]
        if not isinstance(error, PeerError) and worker >= 0 and len(self._addresses) > 1:
            error.add_note(f"reported by worker {worker} at {self._addresses[worker]}")
        return error


def _limit_of(request: Request, seconds: float) -> float:
    """The limit that the caller has said, if he has said one: answers are given more time than that, and a
    part of it may be over. Else that of answers, `seconds`.
    """
    if (
        not isinstance(request, Progress | Read)
        or request.timeout_seconds < 0
        or not waits_for_epoch(request)
    ):
        return seconds
    return request.timeout_seconds + (request.waited_seconds if isinstance(request, Progress) else 0.0)
