"""Waits that are foreseen: of who has waited for the epoch that he sealed last, and seals the next one.

Asked when the seal is answered, a wait comes to workers that are at work on the epoch, from a client that had
to get a core for that, and often when the work is done. So it is asked along with the seal, and its answers
are there, or on their way, when the client calls `wait`. It is the same request to the same workers; what is
foreseen wrongly costs its messages, and is not foreseen again before the client has waited for what it has
sealed.

Nothing depends on it: where the answers do not come soon, are errors, or may have been here for a while (the
dataflow may have ended since), workers are asked as if nothing had been. How long an answer has lain here
before it is read nobody knows; but it is no older than its question.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import pyarrow as pa

from ...limits import FORESEEN_COUNT_MAX
from ...wire.requests import Reply, Request, Seal, Wait

__all__ = ["Foreseen", "ForeseenWait"]

_FRESH_SECONDS: Final = 0.1
"""What was asked no longer ago is as good as what is asked now."""


class ForeseenWait:
    """One that was asked: for an epoch of a dataflow, of all workers.

    pending   (worker, number) of the requests without an answer, and the worker once more
    replies   by worker
    asked_at  when, at the earliest
    losses    by worker, how often connections to it had broken before it was asked
    """

    def __init__(
        self, epoch: int, pending: Mapping[tuple[int, int], int], asked_at: float, losses: Mapping[int, int]
    ) -> None:
        self.epoch = epoch
        self.pending = dict(pending)
        self.losses = losses
        self.replies: dict[int, Reply] = {}
        self._is_refused = False
        self._asked_at = asked_at

    def take(self, worker: int, number: int, answer: Reply | Exception) -> None:
        """A worker has answered."""
        del self.pending[worker, number]
        if isinstance(answer, Reply):
            self.replies[worker] = answer
        else:
            self._is_refused = True

    def lose(self) -> None:
        """An answer will not come."""
        self._is_refused = True

    def is_good(self) -> bool:
        """Whether its answers are as good as those to a request that is sent now."""
        return not self._is_refused and time.monotonic() - self._asked_at <= _FRESH_SECONDS


class _Sealer:
    """What is known of a dataflow: the epoch that was sealed last, whether that was waited for, and the wait
    that was asked with it.
    """

    __slots__ = ("is_awaited", "sealed", "wait")

    def __init__(self) -> None:
        self.sealed = -1
        self.is_awaited = False
        self.wait: ForeseenWait | None = None


class Foreseen:
    """Of one thread.

    Args:
        workers: how many there are.
        send: sends a request to a worker, and returns its number.
        losses: how often connections to a worker have broken.
    """

    def __init__(
        self, workers: int, send: Callable[[int, Request], int], losses: Callable[[int], int]
    ) -> None:
        self._workers = workers
        self._send = send
        self._losses = losses
        self._sealers: dict[int, _Sealer] = {}
        self._expected: dict[tuple[int, int], ForeseenWait] = {}

    def on_seal(self, seal: Seal) -> None:
        """A seal has just been sent: send the wait for it, if one is foreseen."""
        sealer = self._sealers.setdefault(seal.dataflow, _Sealer())
        sealer.sealed = seal.epoch
        if not sealer.is_awaited or self._outstanding() >= FORESEEN_COUNT_MAX:
            return
        sealer.is_awaited = False
        losses = {worker: self._losses(worker) for worker in range(self._workers)}
        request, asked_at = Wait(seal.dataflow, "", seal.epoch, -1.0), time.monotonic()
        # The one that has the seal first: another one that is woken may take the core from who wakes it.
        pending = {(worker, self._send(worker, request)): worker for worker in range(self._workers)}
        sealer.wait = ForeseenWait(seal.epoch, pending, asked_at, losses)
        self._expected.update(dict.fromkeys(pending, sealer.wait))

    def _outstanding(self) -> int:
        """How many waits have no answer of some worker yet: it may be the same one that all are asked of."""
        self._forget_lost()
        return len(set(map(id, self._expected.values())))

    def _forget_lost(self) -> None:
        """What was under way when a connection broke is not expected: else who loses an answer now and then
        would be foreseen no more in the end.
        """
        for (worker, number), wait in list(self._expected.items()):
            if self._losses(worker) != wait.losses[worker]:
                del self._expected[worker, number]
                wait.lose()

    def expects(self, worker: int, number: int) -> bool:
        """Whether an answer is to something foreseen."""
        return (worker, number) in self._expected

    def take(self, worker: int, number: int, answer: Reply | Exception) -> None:
        """One that is expected has come while another was waited for."""
        self._expected.pop((worker, number)).take(worker, number, answer)

    def find(self, requests: Sequence[tuple[int, Request, pa.Table | None]]) -> ForeseenWait | None:
        """Requests are to be sent: the wait that was asked already in their place, if they are one; it is
        handed out once.
        """
        first = requests[0][1] if len(requests) == self._workers else None
        if not isinstance(first, Wait) or first.output:
            return None
        sealer = self._sealers.get(first.dataflow)
        if sealer is None:
            return None
        if first.epoch == sealer.sealed:
            sealer.is_awaited = True
        wait = sealer.wait
        if wait is None or wait.epoch != first.epoch:
            return None
        sealer.wait = None
        self._forget_lost()
        return wait if wait.is_good() else None

    def begin(self, wait: ForeseenWait) -> dict[tuple[int, int], int]:
        """Somebody waits for the answers that are missing: to which requests, and of which workers. They are
        not expected here until `give_up`.
        """
        for at in wait.pending:
            self._expected.pop(at, None)  # who was interrupted (Ctrl-C) may have noted one and not the other
        return wait.pending.copy()

    def give_up(self, wait: ForeseenWait, missing: Mapping[tuple[int, int], int]) -> None:
        """These are not waited for any more, though they may come."""
        self._expected.update(dict.fromkeys(missing, wait))
