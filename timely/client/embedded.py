"""Workers in the caller's own process: no sockets, no other process; results in the same call.

Several workers take turns, and talk through memory: all that workers do across processes is done here, too,
and in the same order each time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from math import inf

import pyarrow as pa

from ..building.builders import Builder
from ..errors import MisuseError, TimelyError, VertexError
from ..failure import again
from ..limits import REPLY_SECONDS_MAX, WORKERS_MAX
from ..running.core import Worker
from ..wire.requests import Close, Reply, Request, Seal, Value
from ..wire.transport.memory import MemoryNetwork
from ..worker.answers.later import Later
from ..worker.server import Server
from ..worker.together import begin_turn, end_turn, forget_together, is_full, join

__all__ = ["EmbeddedWorkers"]


class EmbeddedWorkers:
    """`count` workers that run while they are asked something."""

    def __init__(self, count: int, seed: int | None = None, check_progress: bool = False) -> None:
        if not 1 <= count <= WORKERS_MAX:
            raise MisuseError(f"a cluster has 1 to {WORKERS_MAX} workers, not {count}")
        network = MemoryNetwork(count, seed)
        self.count = count
        self.addresses: list[str] = []
        self._network = network
        self._workers = [
            Worker(index, count, network.transport(index) if count > 1 else None, check_progress)
            for index in range(count)
        ]
        self._servers = [Server(worker, f"embedded worker {worker.index}") for worker in self._workers]
        self._broken: BaseException | None = None
        self._lock = threading.Lock()
        self._busy = 0  # the thread whose turn it is
        for server in self._servers:
            server.greet()
        join(self)

    def ask(
        self,
        requests: Sequence[tuple[int, Request, pa.Table | None]],
        timeout_seconds: float = REPLY_SECONDS_MAX,
    ) -> list[Reply]:
        """Do what is asked of each worker, and step until all answers are known.

        What a vertex raises ends its dataflow, and is the cause of the `VertexError` that comes out here.
        There is no waiting: what does not come by working never comes, and is an error at once, whatever the
        timeout.
        """
        del timeout_seconds
        self._take_turn()
        try:
            return self._ask(requests)
        except BaseException as error:
            self._note(error)
            raise
        finally:
            self._end_turn()

    def _take_turn(self) -> None:
        """Threads take turns; a vertex, which runs within somebody's turn, cannot have another."""
        own = threading.get_ident()
        if self._busy == own:
            raise MisuseError(
                "a vertex asks the embedded cluster that runs it: use what it is sent, or another cluster"
            )
        self._lock.acquire()
        begin_turn()
        self._busy = own

    def _note(self, error: BaseException) -> None:
        """After an interrupt something may be half done, wherever it came: there is nothing to go on with."""
        if not isinstance(error, Exception):
            self._broken = error

    def _end_turn(self) -> None:
        self._busy = 0
        end_turn()
        self._lock.release()

    def at_rest(self) -> list[Worker] | None:
        """Its workers, as long as no message is between them: see `together.py`."""
        if self._broken is not None:
            return []
        return None if self._network.in_flight() else self._workers

    def _ask(self, requests: Sequence[tuple[int, Request, pa.Table | None]]) -> list[Reply]:
        self._check()
        answers: list[Reply | Later] = []
        for worker, request, table in requests:
            try:
                answers.append(self._servers[worker].handle(request, table))
            except TimelyError:
                self._run_until_idle()  # what this request has asked of other workers before
                raise
        for dataflow in [request.dataflow for _, request, _ in requests if isinstance(request, Seal | Close)]:
            self._run_until_idle()
            self._check_running(dataflow)
        return self._settle(answers)

    def install(
        self,
        spec: str,
        builder: Builder,
        arguments: dict[str, Value],
        replaces: int | None = None,
        timeout: float | None = None,
    ) -> Reply:
        """Install what `builder`, a function of this process, builds, on all workers; perhaps as the new
        version of a dataflow, if that has caught up before `timeout` seconds are over.
        """
        self._take_turn()
        try:
            self._check()
            old = -1 if replaces is None else self._servers[0].check_replaceable(replaces)
            dataflow = self._servers[0].installations.reserve()
            answers = [server.install(dataflow, spec, builder, arguments, old) for server in self._servers]
            return self._settle(answers, inf if timeout is None else time.monotonic() + timeout)[0]
        except BaseException as error:
            self._note(error)
            raise
        finally:
            self._end_turn()

    def close(self) -> None:
        """Nothing can be asked any more."""
        if self._broken is None:
            self._broken = MisuseError("this cluster is closed: connect again")

    def _check(self) -> None:
        if self._broken is None:
            return
        if isinstance(self._broken, TimelyError):
            raise self._broken
        raise MisuseError(
            f"this cluster was interrupted by {self._broken!r}: connect again"
        ) from self._broken

    def _check_running(self, dataflow: int) -> None:
        """Raise the error that has ended a dataflow, as the worker tells it on which it arose."""
        dataflow = self._servers[0].replacements.inputs_of(dataflow)
        ended = [worker.ended[dataflow] for worker in self._workers if dataflow in worker.ended]
        if ended:
            raise again(next((error for error in ended if error.__cause__ is not None), ended[0]))

    def _settle(self, answers: Sequence[Reply | Later], until: float = inf) -> list[Reply]:
        settled: list[Reply] = []
        waiting: dict[int, Later] = {}
        for position, answer in enumerate(answers):
            settled.append(answer if isinstance(answer, Reply) else Reply())
            if isinstance(answer, Later):
                waiting[position] = answer
        failure: TimelyError | None = None
        while waiting:
            moved = self._step()
            for position, later in list(waiting.items()):
                try:
                    reply = later.ready()
                except TimelyError as error:
                    # The others may still have something to hear of it; the first error is the cause.
                    failure = failure if isinstance(failure, VertexError) else error
                    del waiting[position]
                    continue
                if reply is not None:
                    settled[position] = reply
                    del waiting[position]
            if waiting and (not moved or time.monotonic() > until):
                raise next(iter(waiting.values())).late()
        if failure is not None:
            raise failure
        return settled

    def _run_until_idle(self) -> None:
        while self._step():
            pass

    def _step(self) -> bool:
        moved = False
        try:
            for worker in self._workers:
                moved = worker.step() or moved
        except BaseException as error:
            self._broken = error
            raise
        if is_full():
            forget_together(self)
        return moved or self._network.in_flight() > 0
