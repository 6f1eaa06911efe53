"""Requests that wait at a worker before they are carried out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from ...errors import TimelyError, WaitTimeoutError
from ...limits import INSTALL_SECONDS_MAX
from ...running.core import Worker
from ...wire.requests import Reply, Request
from .later import Later

__all__ = ["HeldRequests", "not_received"]


class HeldRequests:
    """Requests about inputs that wait: until a new version has these inputs, or has ended, or until other
    workers have received what was sent to them. They are carried out in the order in which they came, and
    before any that comes later.

    Args:
        is_held: tells whether a request has to wait.
        handle: carries out a request.
        clock: seconds, only their differences count.
        worker: the worker, whose gate may be why requests wait.
    """

    def __init__(
        self,
        is_held: Callable[[Request], bool],
        handle: Callable[[Request, pa.Table | None], Reply | Later],
        clock: Callable[[], float],
        worker: Worker,
    ) -> None:
        self._is_held = is_held
        self._handle = handle
        self._clock = clock
        self._worker = worker
        self.waiting: list[_Held] = []
        """The requests that wait, in the order in which they came."""

    def look(self) -> None:
        """Carry out the requests that need not wait any more. Call it before any other request."""
        free = [one for one in self.waiting if not self._is_held(one.request)]
        if free:
            self.waiting = [one for one in self.waiting if one not in free]
        for one in free:
            try:
                one.answer = self._handle(one.request, one.table)
            except TimelyError as error:
                one.error = error

    def hold(self, request: Request, table: pa.Table | None) -> Later:
        """Let a request wait."""
        held = _Held(request, table)
        self.waiting.append(held)

        def ready() -> Reply | None:
            self.look()
            if held.error is not None:
                raise held.error
            return held.answer.ready() if isinstance(held.answer, Later) else held.answer

        def late() -> TimelyError:
            if isinstance(held.answer, Later):
                return held.answer.late()
            self.waiting = [one for one in self.waiting if one is not held]
            return WaitTimeoutError(not_received(self._worker))

        return Later(ready, late, self._clock() + INSTALL_SECONDS_MAX)


@dataclass(eq=False)
class _Held:
    request: Request
    table: pa.Table | None
    answer: Reply | Later | None = None
    error: TimelyError | None = None


def not_received(worker: Worker) -> str:
    """Return the text of the error for a request that has waited for too long."""
    if worker.acting.gate.is_open:
        return "the dataflow is being replaced, and that has taken too long"
    late = " and ".join(map(str, worker.credits.late_peers())) or "another one"
    return (
        f"worker {worker.index} has kept this back, since worker {late} has not received what was sent to "
        "it: it is stopped, or in a long step. Nothing has changed: try again"
    )
