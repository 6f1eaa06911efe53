"""What the inputs and outputs of one installed dataflow share: whom they ask, and which epoch is open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from ..errors import TimelyError
from ..failure import again
from ..limits import ANSWER_SECONDS_MAX, REPLY_SECONDS_MAX
from ..wire.requests import Reply, Request

__all__ = ["Installed", "Workers"]

_PATIENCE_SECONDS = 86_400.0 * 365
"""For requests that wait for work of any length: what ends them is the answer, or the loss of a worker."""


class Workers(Protocol):
    """The workers of a cluster, wherever they are: `EmbeddedWorkers` or `RemoteWorkers`."""

    count: int
    addresses: list[str]

    def ask(
        self,
        requests: Sequence[tuple[int, Request, pa.Table | None]],
        timeout_seconds: float = REPLY_SECONDS_MAX,
    ) -> list[Reply]:
        """Send each (worker, request, table) and gather the replies in that order; raises what a worker
        reports.
        """
        ...

    def close(self) -> None:
        """Let go of them."""
        ...


class Installed:
    """A dataflow by its number on the workers that run it.

    `epoch` is the open one, as far as this client knows.
    """

    def __init__(self, workers: Workers, index: int, name: str, epoch: int) -> None:
        self._workers = workers
        self._end: TimelyError | None = None
        self.index = index
        self.name = name
        self.epoch = epoch

    @property
    def is_embedded(self) -> bool:
        """Whether the workers run within this process, and only while they are asked something."""
        return not self._workers.addresses

    @property
    def workers(self) -> int:
        """How many workers run it."""
        return self._workers.count

    def note_epoch(self, epoch: int) -> None:
        """Remember that `epoch` or a later one is open."""
        self.epoch = max(self.epoch, epoch)

    def ask(
        self,
        requests: Sequence[tuple[int, Request, pa.Table | None]],
        timeout_seconds: float = REPLY_SECONDS_MAX,
    ) -> list[Reply]:
        """As `Workers.ask`. Who was told once that the dataflow has ended is told so from then on: what one
        worker knows already another may not have heard, and would take rows that nobody can ever read.
        """
        if self._end is not None:
            raise again(self._end)
        try:
            return self._workers.ask(requests, timeout_seconds)
        except TimelyError as error:
            if error.ends_dataflow:
                self._end = again(error)
            raise

    def ask_first(self, request: Request) -> Reply:
        """Ask worker 0, which decides for all."""
        (reply,) = self.ask([(0, request, None)])
        return reply

    def ask_all(self, request: Request, timeout_seconds: float = REPLY_SECONDS_MAX) -> list[Reply]:
        """Send the same request to all workers; a negative time-out is none.

        A worker that computes cannot answer before it has done so. Who waits with a limit is not made to wait
        for that: shortly after the limit there is an error in any case.
        """
        seconds = _PATIENCE_SECONDS if timeout_seconds < 0 else timeout_seconds + ANSWER_SECONDS_MAX
        return self.ask([(worker, request, None) for worker in range(self.workers)], seconds)
