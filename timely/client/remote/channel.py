"""One thread's connections to all workers of a cluster: they send requests, and wait for answers.

No call waits for a worker that is gone: while an answer is outstanding, the channel watches the connections
and, for workers that this program has started, their `Keeper`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ...errors import PeerError, RefusedError, TimelyError, WaitTimeoutError
from ...failure import fresh_copy
from ...limits import (
    CONNECT_SECONDS_MAX,
    FRAME_BYTES_MAX,
    KEEPER_SECONDS_MAX,
    SEALED_WAIT_SECONDS_MAX,
    VERDICT_SECONDS_MAX,
)
from ...wire.batch import Frame
from ...wire.frames.messages import FAREWELL, check_size, decode_reply, encode_request, head_of
from ...wire.keys import ClientKeys
from ...wire.requests import Decide, Progress, Read, Reply, Request, Value, waits_for_epoch
from ...wire.transport.zeromq import ClientSockets
from ..awaited import SENT, missing, note_awaited
from ..installed import PATIENCE_SECONDS, Keeper, Members, Requests
from ..posting import Poster, Posts

__all__ = ["Channel"]

_log = logging.getLogger("timely")
_BUSY: Final = "it is reached, and does not answer: it computes, or waits for others"
_SHORT_WAIT_SECONDS = 0.5
_KNOWS = -1
"""In place of the worker, in a failure that is known to be the cause: a worker's last message."""
_KEEPS = -2
"""The same, in a failure that the keeper of the workers reports, which knows best."""


class Channel:
    """One thread's connections to all workers, for requests that are made for `members`. All threads share
    `launcher`; each holds `lock` as it calls it. `is_durable`: raise any loss at once, since the cluster is
    about to start again (`resuming.py`).
    """

    def __init__(
        self,
        addresses: Sequence[str],
        members: Members,
        silence_seconds: float,
        launcher: Keeper | None,
        lock: threading.Lock,
        keys: ClientKeys | None,
        is_durable: bool = False,
    ) -> None:
        self.thread = threading.current_thread()
        self.members = members
        self._addresses = list(addresses)
        self._launcher = launcher
        self._lock = lock
        self._keys = keys
        self._silence_seconds = silence_seconds
        self._is_durable = is_durable
        self.round = 0
        """How often the client had lost the cluster when these connections were made."""
        self.sockets = ClientSockets(addresses, keys, silence_seconds)
        self._number = 0
        self._in_use = threading.RLock()
        """Held while this thread uses the sockets: no other thread may close them meanwhile."""
        self._over: TimelyError | None = None
        self._awaited: dict[tuple[int, int], int] = {}
        """The pending requests of the last wait, which began at `_awaited_since`."""
        self._awaited_since = 0.0
        self.posts = Posts(self._send, self._answer)
        self._early: dict[tuple[int, int], Reply | TimelyError | None] = {}
        """By worker and number, the answers to waits that were sent with a seal; None while one is missing.
        """
        self._apart_until = 0.0
        self._descriptors = [] if launcher is None else launcher.descriptors
        for descriptor in self._descriptors:
            self.sockets.watch(descriptor)

    def ask(
        self,
        requests: Requests,
        timeout_seconds: float,
        reach_seconds: float,
        members: Members | None = None,
    ) -> list[Reply]:
        """See `RemoteWorkers.ask`. `members`: for which the requests were made; raise `PeerError` if another
        thread has connected to others meanwhile, and send nothing.
        """
        self.posts.settle()  # from now on only this thread uses the sockets
        with self._in_use:
            if members not in (None, self.members):
                raise PeerError("the cluster has started again before these requests were sent")
            try:
                return self._ask(requests, timeout_seconds, reach_seconds)
            except KeyboardInterrupt as error:
                self._note_awaited(error, requests[0][1])
                raise

    def _ask(
        self,
        requests: Requests,
        timeout_seconds: float,
        reach_seconds: float,
    ) -> list[Reply]:
        self._check_goes_on()
        first, life = self._number + 1, self.members.life
        self._number += len(requests)
        # All requests are encoded before the first is sent: one that cannot be sent raises here.
        encoded = [
            (
                worker,
                first + position,
                check_size(encode_request(first + position, request, table, life)),
            )
            for position, (worker, request, table) in enumerate(requests)
        ]
        for worker in {worker for worker, _, _ in requests}:
            if self._is_durable:
                self._check_unbroken(worker)
            else:
                self.sockets.forgive(worker)
            self.sockets.choose(worker)
        for worker, _, frames in encoded:
            self.sockets.send(worker, frames)
        pending = {(worker, number): number - first for worker, number, _ in encoded}
        limit_seconds = _limit_of(requests[0][1], timeout_seconds)
        return self._gather(pending, timeout_seconds, reach_seconds, limit_seconds=limit_seconds)

    def renew(self, round: int, addresses: Sequence[str], members: Members) -> None:
        """Close the connections and make new ones, unless those are of this round already; requests are made
        for `members` from then on. Posts without an answer are sent again before anything else.
        """

        def connect() -> None:
            with self._in_use:
                if self.round != round:
                    sockets = ClientSockets(addresses, self._keys, self._silence_seconds)
                    old, self.sockets, self.round = self.sockets, sockets, round
                    self._addresses, self.members = list(addresses), members
                    old.close()

        if self.round != round:
            self.posts.renew(connect)

    def prepare(self) -> None:
        """Settle the posts, and raise `PeerError` if a connection has broken: then the caller knows that a
        request which it has not sent yet can be sent.
        """
        self.posts.settle()
        for worker in range(len(self._addresses)):
            self._check_unbroken(worker)

    def _check_unbroken(self, worker: int) -> None:
        """Raise `PeerError` if the connection to a worker of a durable cluster has broken, also if it has
        come back: another process may listen there, which has none of our posts.
        """
        if self.sockets.has_broken(worker):
            raise PeerError(f"the connection to worker {worker} at {self._addresses[worker]} has broken")

    def seal(
        self,
        poster: Poster,
        seconds: float | None,
        is_early: bool = False,
        sent: list[Decide] | None = None,
    ) -> tuple[int, bool]:
        """See `Workers.seal`. With `seconds`, send a wait for the epoch to all workers, to worker 0 with the
        seal and to the others right behind it: so their answers are on their way as soon as the work is done.

        A worker keeps such a wait for `SEALED_WAIT_SECONDS_MAX` at most. After one in vain (the seal was
        refused, or the work takes longer), this thread sends none with a seal for as long, so that no worker
        has more than two of them.

        `sent` gets the request to seal. If it has one already, seal that epoch, behind the same posts: the
        answer to the request may have been lost, and the epoch be sealed.
        """
        sealing = -1

        def request(after: list[Value]) -> Request:
            nonlocal sealing
            wait = limit if waits else -1.0
            if sent:
                sealing = sent[0].epoch
                return replace(sent[0], waits=wait)
            poster.check_refused()  # posts of other threads have their answers by now
            sealing = poster.epoch
            seal = Decide(poster.index, sealing, True, after, early=is_early, waits=wait)
            if sent is not None:
                sent.append(seal)
            return seal

        limit = SEALED_WAIT_SECONDS_MAX
        waits = seconds is not None and time.monotonic() >= self._apart_until
        if seconds is not None and 0 <= seconds < limit:
            limit = float(seconds)

        def on_sent() -> None:
            if waits:
                wait = Progress(poster.index, "", sealing, limit)
                self._early = {(0, self._number): None}
                for worker in range(1, len(self._addresses)):
                    self._early[worker, self._send(worker, wait, None)] = None

        is_done = False
        try:
            reply = self.posts.ask_behind(0, poster, request, on_sent, settles=not is_early)
            sealed = reply.integer("sealed")
            if self._early and "complete" in reply.values:  # that to the wait at worker 0 is in it, too
                self._early[next(iter(self._early))] = reply
            if sealed >= 0:
                # Compared last: another thread of the client may be further by now.
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
        """Return True if the waits that were sent with a seal are answered in time, and without an error: a
        repeated wait raises the same error.
        """
        if not self._early:
            return False
        pending = {at: position for position, at in enumerate(self._early) if self._early[at] is None}
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
        """Send a request without waiting for its answer; return its number."""
        with self._in_use:
            if self._over is not None:
                raise fresh_copy(self._over)
            self._number = number = self._number + 1
            if type(request) is Decide and request.waits >= 0.0:
                self._number += 1  # of the answer to the wait: no other request gets it
            head = encode_request(number, request, None, self.members.life)
            frames = check_size(head + ([] if rows is None else [rows]))
            if self._is_durable:
                self._check_unbroken(worker)
            else:
                self.sockets.forgive(worker)
            self.sockets.send(worker, frames)
            return number

    def _answer(self, worker: int, number: int, timeout_seconds: float) -> Reply | TimelyError:
        """Return the answer to a request that `_send` has sent, also if it is an error; raise if there is
        none.
        """
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
        """Note on an interrupt which answers were missing, if any."""
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

    def reached(self, timeout_seconds: float) -> list[int]:
        """Return the workers that are reached, as soon as there are any; none after the timeout. Raise
        `RefusedError` if all of them refuse this client.
        """
        deadline = time.monotonic() + timeout_seconds
        workers = range(len(self._addresses))
        with self._in_use:
            while not (reached := [at for at in workers if self.sockets.is_joined(at)]):
                self._check_goes_on()
                refusals = [self.sockets.refusal(at) for at in workers]
                if all(refusals):
                    raise RefusedError(refusals[0])
                if (left := deadline - time.monotonic()) <= 0:
                    break
                self.sockets.wait(min(_SHORT_WAIT_SECONDS, left))
        return reached

    def end(self, error: TimelyError) -> None:
        """Let a thread that waits for answers raise this error within half a second; any thread may call
        it.
        """
        self._over = error

    def close(self) -> None:
        """Close the sockets, once no thread uses them: see `end`."""
        with self._in_use:
            self.sockets.close()

    def _check_goes_on(self) -> None:
        if self._over is not None:
            raise fresh_copy(self._over)

    def _absent(self) -> list[int]:
        """Return the workers that are not reached, or not any more."""
        return [at for at in range(len(self._addresses)) if not self.sockets.is_joined(at)]

    def _check_reached(self, late: set[int], seconds: float, patience: float) -> None:
        """Raise `PeerError` if one of the `late` workers is not reached; else log that they cannot answer
        yet.
        """
        if absent := late.intersection(self._absent()):
            raise PeerError(
                f"no answer from worker {self._listed(absent)} within {seconds:g} s: is a cluster running "
                "there? Start one with 'python -m timely.worker', or check host and port"
            )
        _log.warning("waiting for worker %s: %s. For %g s at most", self._listed(late), _BUSY, patience)

    def _check_reachable(self, late: set[int]) -> None:
        """Raise `PeerError` if one of the `late` workers of a durable cluster is not reached: the cluster may
        have fewer by now, or be elsewhere.
        """
        if absent := late.intersection(self._absent()):
            raise PeerError(f"worker {self._listed(absent)} cannot be reached")

    def _listed(self, workers: set[int]) -> str:
        return ", ".join(f"{worker} at {self._addresses[worker]}" for worker in sorted(workers))

    def _gather(
        self,
        pending: dict[tuple[int, int], int],
        timeout_seconds: float,
        reach_seconds: float,
        soon_seconds: float = float("inf"),
        limit_seconds: float | None = None,
    ) -> list[Reply]:
        """Return the answers to pending requests, by position. `soon_seconds`: how long to wait while nothing
        has failed; to look for the cause of a failure there is time until the timeout. `limit_seconds`: the
        limit that messages name, if it is not the timeout.
        """
        limit_seconds = timeout_seconds if limit_seconds is None else limit_seconds
        started = time.monotonic()
        deadline, reach_by = started + timeout_seconds, started + reach_seconds
        soon = min(deadline, started + soon_seconds)
        replies: dict[int, Reply] = {}
        failures: list[tuple[int, TimelyError]] = []
        self._awaited, self._awaited_since = pending, started
        self._check_goes_on()
        self._take_soon(pending, replies, failures, soon)
        if not (pending or failures):  # Fast path: all answers are here.
            return [replies[position] for position in sorted(replies)]
        grace = apart = deadline
        while pending or failures:
            self._check_goes_on()
            for worker in range(len(self._addresses)):  # any worker may have sent a last message
                self._take(worker, pending, replies, failures)
            if not pending and not failures:
                break
            lost = self._find_lost({worker for worker, _ in pending})
            now = time.monotonic()
            if (failures or lost) and grace == deadline:
                grace = min(deadline, now + self._patience)
            failures.extend(lost)
            # A worker that has a request may be in a long step, and unable to tell that the cluster is gone.
            others = [] if failures else self._lost_apart({worker for worker, _ in pending})
            apart = min(apart, now + self._patience) if others else deadline
            if now >= apart:
                failures.extend(others)
            if self._is_settled(bool(pending), failures) or (failures and now >= min(grace, apart)):
                break
            if now - started >= CONNECT_SECONDS_MAX and self._is_durable:
                self._check_reachable({worker for worker, _ in pending})
            if now >= reach_by:
                reach_by = float("inf")
                if not failures:
                    self._check_reached({worker for worker, _ in pending}, reach_seconds, timeout_seconds)
            until = deadline if failures else soon
            if now >= until:
                late = {worker for worker, _ in pending}
                why = "it cannot be reached" if late.intersection(self._absent()) else _BUSY
                raise WaitTimeoutError(
                    f"no answer from worker {self._listed(late)} within {round(limit_seconds, 2):g} s: {why}"
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
        """Fast path: take answers as long as nothing else comes, and no connection needs a closer look.
        Messages that came by another way, and lost workers, are left to `_gather`; each of them ends the
        wait.
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
        # Answers may be longer than requests: the stages of a large dataflow are a long text.
        number, head = head_of(frames, FRAME_BYTES_MAX)
        position = pending.pop((worker, number), None)
        if position is None and number != FAREWELL:
            if self.posts.expects(worker, number):
                answer = decode_reply(frames, head)
                if self._is_durable and isinstance(answer, PeerError):
                    failures.append((_KNOWS, answer))  # the worker ends, and the post is sent again
                else:
                    self.posts.take(worker, number, answer)
            elif (worker, number) in self._early:
                self._early[worker, number] = decode_reply(frames, head)
            return  # or it answers a request that this thread has given up
        answer = decode_reply(frames, head)
        if position is None:
            if isinstance(answer, PeerError):
                failures.append((_KNOWS, answer))
        elif isinstance(answer, Reply):
            replies[position] = answer
        else:
            failures.append((worker, answer))

    def _find_lost(self, workers: set[int]) -> list[tuple[int, TimelyError]]:
        """Return a failure for each of `workers` whose outstanding answers will never come."""
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

    def _lost_apart(self, waited_for: set[int]) -> list[tuple[int, TimelyError]]:
        """Return failures of the other workers, those without an outstanding answer, that are lost and not
        back: without them there is no cluster that could answer.
        """
        failures: list[tuple[int, TimelyError]] = []
        for worker in range(len(self._addresses)):
            if worker not in waited_for:
                if not self._is_durable:
                    self.sockets.forgive(worker)
                if loss := self.sockets.loss(worker):
                    who = f"worker {worker} at {self._addresses[worker]}"
                    failures.append((worker, PeerError(f"{who} is lost, and with it the cluster: {loss}")))
        return failures

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
        """How long to wait for the cause of a failure, in seconds."""
        if self._is_durable:
            return 0.0
        return KEEPER_SECONDS_MAX if self._keeper_knows_best else VERDICT_SECONDS_MAX

    def _is_settled(self, is_pending: bool, failures: list[tuple[int, TimelyError]]) -> bool:
        """Return True if there is nothing to wait for: one of the failures explains itself, or all have
        answered. If a peer is lost, another worker may know the cause; the keeper of the workers knows it for
        certain.
        """
        cause = _KEEPS if self._keeper_knows_best else _KNOWS
        if any(worker <= cause or not isinstance(error, PeerError) for worker, error in failures):
            return True
        return not is_pending and not (failures and self._keeper_knows_best)

    def _judge(self, failures: list[tuple[int, TimelyError]]) -> TimelyError:
        """Return the failure that explains the others."""
        ranked = sorted(failures, key=lambda failure: (isinstance(failure[1], PeerError), failure[0]))
        worker, error = ranked[0]
        if not isinstance(error, PeerError) and worker >= 0 and len(self._addresses) > 1:
            error.add_note(f"reported by worker {worker} at {self._addresses[worker]}")
        return error


def _limit_of(request: Request, seconds: float) -> float:
    """Return the limit of a wait as its caller has set it; if the caller has set none, `seconds`. The request
    itself has only what is left of it, and the answer may take a little longer.
    """
    if (
        not isinstance(request, Progress | Read)
        or request.timeout_seconds < 0
        or not waits_for_epoch(request)
    ):
        return seconds
    return request.timeout_seconds + (request.waited_seconds if isinstance(request, Progress) else 0.0)
