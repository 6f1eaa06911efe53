"""Sending the rows of one attempt at a batch, so that all its parts are there in the same incarnation.

Staged rows are gone after a restart of the workers. A task that is still sending then sends all again, as
long as it has kept its rows; otherwise it fails, and Spark runs it again. If the workers start again behind
the last task, the driver finds that parts are missing, and Spark makes the whole batch again.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

import pyarrow as pa

from timely.client.installed import Members, Requests, Workers
from timely.counted import counted
from timely.errors import RestartedError
from timely.wire.requests import Deliver, Reply

__all__ = ["Staging"]

_KEPT_BYTES_MAX = 64 << 20
"""How many bytes of rows that were sent a task keeps, to send them again."""


class Staging:
    """One attempt of one task.

    Args:
        workers: get a table each, in turn.
        request: all that the deliveries have in common.
        partition: of the task; the first table goes to the worker of that number.
        seconds: how long a worker may take to answer.
    """

    def __init__(self, workers: Workers, request: Deliver, partition: int, seconds: float) -> None:
        self._workers = workers
        self._request = request
        self._partition = partition
        self._seconds = seconds
        self._members = workers.members
        self._kept: list[pa.Table] | None = [] if self._members.incarnation else None
        self._kept_bytes = 0
        self._sent = 0
        self._is_wanted = True
        self.rows = 0
        """The number of rows, also if the batch is committed already: a commit compares the numbers."""

    def send(self, tables: Iterable[pa.Table]) -> tuple[int, ...]:
        """Send all tables, and return the number of parts that each worker has; none if the batch is
        committed already. While a table is sent, the next one is made.

        Raise `RestartedError` if the workers have started again, and the rows are not kept.
        """
        waiting: Future[Reply | None] | None = None
        with ThreadPoolExecutor(1, "staging") as sender:
            for table in tables:
                self.rows += table.num_rows
                self._settle(waiting)
                waiting = None
                if self._is_wanted:
                    self._keep(table)
                    waiting = sender.submit(self._deliver, self._sent, table)
                    self._sent += 1
            self._settle(waiting)
        count = self._members.count
        sent = self._sent if self._is_wanted else 0
        return tuple(len(range((worker - self._partition) % count, sent, count)) for worker in range(count))

    def _deliver(self, number: int, table: pa.Table) -> Reply | None:
        """Return the answer to a part; None if the cluster has started again before it was taken."""
        members, part = self._members, replace(self._request, part=number)

        def makes(present: Members) -> Requests:
            if present != members:
                raise RestartedError("the parts that were staged before are gone")
            return [((self._partition + number) % members.count, part, table)]

        try:
            (reply,) = self._workers.ask_members(makes, self._seconds)
        except RestartedError:
            return None
        return reply

    def _keep(self, table: pa.Table) -> None:
        if self._kept is None:
            return
        self._kept.append(table)
        self._kept_bytes += table.nbytes
        if self._kept_bytes > _KEPT_BYTES_MAX:
            self._kept = None

    def _settle(self, waiting: Future[Reply | None] | None) -> None:
        """Wait for the answer to the last part. If the workers have started again, send all parts again, to
        those that there are now.
        """
        if waiting is not None:
            self._note(waiting.result())
        while self._is_wanted and self._workers.members != self._members:
            if self._kept is None:
                raise RestartedError(
                    f"the cluster has started again while a task was sending {counted(self.rows, 'row')}, "
                    "more than it keeps to send them again: Spark has to run the task again"
                )
            self._members = self._workers.members
            for number, table in enumerate(self._kept):
                reply = self._deliver(number, table)
                self._note(reply)
                if reply is None or not self._is_wanted:
                    break

    def _note(self, reply: Reply | None) -> None:
        if reply is not None:
            self._is_wanted = self._is_wanted and bool(reply.values.get("is_new"))
