"""Waits that are foreseen: of who has waited for the epoch that he sealed last, and seals the next one.

Asked when the seal is answered, a wait comes to workers that are at work on the epoch, from a client that had
to get a core for that, and often when the work is done. So it is asked along with the seal, and its answers
are there, or on their way, when the client calls `wait`. It is the same request to the same workers; what is
foreseen wrongly costs its messages, and is not foreseen again before the client has waited for what it has
sealed.

Nothing depends on it: where the answers do not come soon, are errors, or have been here for a while (the
dataflow may have ended since), workers are asked as if nothing had been.
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
"""For so long nobody can tell an answer that has come from one that comes."""


class ForeseenWait:
    """One that was asked: for an epoch of a dataflow, of all workers.

    pending   (worker, number) of the requests without an answer, and the worker once more
    replies   by worker
    """

    def __init__(self, epoch: int, pending: Mapping[tuple[int, int], int]) -> None:
        self.epoch = epoch
        self.pending = dict(pending)
        self.replies: dict[int, Reply] = {}
        self._is_refused = False
        self._answered_at = 0.0

    def take(self, worker: int, number: int, answer: Reply | Exception) -> None:
        """A worker has answered."""
        del self.pending[worker, number]
        self._answered_at = time.monotonic()
        if isinstance(answer, Reply):
            self.replies[worker] = answer
        else:
            self._is_refused = True

    def is_good(self) -> bool:
        """Whether its answers are as good as those to a request that is sent now."""
        if self._is_refused:
            return False
        return bool(self.pending) or time.monotonic() - self._answered_at <= _FRESH_SECONDS


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
    """

    def __init__(self, workers: int, send: Callable[[int, Request], int]) -> None:
        self._workers = workers
        self._send = send
        self._sealers: dict[int, _Sealer] = {}
        self._expected: dict[tuple[int, int], ForeseenWait] = {}

    def on_seal(self, seal: Seal) -> None:
        """A seal has just been sent: send the wait for it, if one is foreseen."""
        sealer = self._sealers.setdefault(seal.dataflow, _Sealer())
        sealer.sealed = seal.epoch
        if not sealer.is_awaited or len(self._expected) >= FORESEEN_COUNT_MAX * self._workers:
            return
        if sealer.wait is not None and sealer.wait.pending:
            return  # it was sealed in vain, or nobody has waited for the answer: one is enough
        sealer.is_awaited = False
        request = Wait(seal.dataflow, "", seal.epoch, -1.0)
        # The one that has the seal first: another one that is woken may take the core from who wakes it.
        pending = {(worker, self._send(worker, request)): worker for worker in range(self._workers)}
        sealer.wait = ForeseenWait(seal.epoch, pending)
        self._expected.update(dict.fromkeys(pending, sealer.wait))

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
        return wait if wait.is_good() else None

    def begin(self, wait: ForeseenWait) -> dict[tuple[int, int], int]:
        """Somebody waits for the answers that are missing: to which requests, and of which workers. They are
        not expected here until `give_up`; some may not have been, where this was interrupted (Ctrl-C).
        """
        for at in wait.pending:
            self._expected.pop(at, None)
        return wait.pending.copy()

    def give_up(self, wait: ForeseenWait, missing: Mapping[tuple[int, int], int]) -> None:
        """These are not waited for any more, though they may come."""
        wait.pending = dict(missing)
        self._expected.update(dict.fromkeys(missing, wait))
