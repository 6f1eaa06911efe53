"""A durable cluster as its clients see it, in a thread of the test.

A restart loses connections, requests, answers, and rows that are staged; nothing else. A test says at which
request the cluster falls.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

import pyarrow as pa

import differential as dd
import timely
from timely.client.remote.resuming import DurableWorkers
from timely.client.session import Flow
from timely.running.core import Worker
from timely.wire.frames.messages import (
    FAREWELL,
    decode_request,
    encode_error,
    encode_reply,
    head_of,
)
from timely.wire.requests import Reply, Request
from timely.wire.transport.memory import MemoryNetwork
from timely.wire.transport.server_socket import ServerSocket
from timely.worker.answers.later import Later
from timely.worker.server import Server

__all__ = ["KeptCluster", "kept", "shown", "table", "workers_of"]

_PAUSE_SECONDS = 0.001


@timely.builder
def kept(dataflow: timely.Dataflow) -> None:
    """Rows as they come, and values by key."""
    dd.input(dataflow, "rows", "k: int, n: int").output("rows")
    dd.input(dataflow, "values", "k: int, v: int", key="k", mode="upsert").output("values")


class KeptCluster:
    """Workers that serve clients at sockets in `folder`.

    `falls(worker, request)` returns "before" if all shall fall without having seen this request, "telling" if
    they shall answer it, and those behind it, that they have lost a worker, "behind" if they shall fall
    before they answer it, and otherwise "".
    """

    def __init__(self, folder: Path, workers: int = 2) -> None:
        self.addresses = [f"ipc://{folder}/c{index}" for index in range(workers)]
        self.falls: Callable[[int, Request], str] = lambda worker, request: ""
        self.served: list[tuple[int, Request]] = []
        """The requests that were carried out, with the worker of each."""
        self.incarnation = 1
        self.down_seconds = 0.02
        self.is_down = False
        """True: they do not come back before this is False again."""
        self.failure: BaseException | None = None
        self._count = workers
        self._ending = threading.Event()
        self._fall = threading.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._sockets: list[ServerSocket] = []
        self._waiting: list[tuple[int, bytes, int, Later]] = []

    def __enter__(self) -> KeptCluster:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending.set()
        self._thread.join()
        if self.failure is not None:
            raise self.failure

    def fall(self) -> None:
        """Let all workers fall now."""
        before = self.incarnation
        self._fall.set()
        while self.incarnation == before and not self.is_down:
            time.sleep(_PAUSE_SECONDS)

    def _run(self) -> None:
        try:
            network = MemoryNetwork(self._count)
            self._workers = [
                Worker(index, self._count, network.transport(index) if self._count > 1 else None)
                for index in range(self._count)
            ]
            self._servers = [
                Server(worker, address) for worker, address in zip(self._workers, self.addresses, strict=True)
            ]
            for server in self._servers:
                server._orders.incarnation = self.incarnation
                server.greet()
            self._sockets = [ServerSocket(address) for address in self.addresses]
            self._ready.set()
            while not self._ending.is_set():
                if self._fall.is_set() or not self._turn():
                    self._fall.clear()
                    self._restart()
        except BaseException as error:
            self.failure = error
        finally:
            self._ready.set()
            for socket in self._sockets:
                socket.close()

    def _turn(self) -> bool:
        """Work and serve once; return False if all shall fall."""
        worked = [worker.step() for worker in self._workers]
        served = False
        for index, socket in enumerate(self._sockets):
            for client, frames in socket.recv_nowait():
                served = True
                number, head = head_of(frames)
                try:
                    request, table = decode_request(frames, head, self.incarnation)
                except timely.PeerError as stale:
                    socket.send(client, encode_error(number, stale))
                    continue
                fall = self.falls(index, request)
                if fall == "telling":
                    self._tell(client, number)
                elif fall != "before":
                    self._answer(index, client, number, request, table, fall != "behind")
                if fall:
                    return False
        self._waiting = [each for each in self._waiting if not self._has_answered(*each)]
        if not (any(worked) or served):
            time.sleep(_PAUSE_SECONDS)
        return True

    def _answer(
        self, index: int, client: bytes, number: int, request: Request, table: pa.Table | None, tells: bool
    ) -> None:
        try:
            answer = self._servers[index].handle(request, table)
        except timely.TimelyError as error:
            if tells:
                self._sockets[index].send(client, encode_error(number, error))
            return
        self.served.append((index, request))
        if isinstance(answer, Later):
            self._waiting.append((index, client, number, answer))
        elif tells:
            self._sockets[index].send(client, encode_reply(number, answer))

    def _tell(self, client: bytes, number: int) -> None:
        """Do what workers do that end since they have lost another one."""
        error = timely.PeerError("another worker is lost")
        for socket in self._sockets:
            socket.send(client, encode_error(number, error))
            socket.send(client, encode_error(FAREWELL, error))
        until = time.monotonic() + 0.03
        while time.monotonic() < until:
            for socket in self._sockets:
                for other, frames in socket.recv_nowait():
                    socket.send(other, encode_error(head_of(frames)[0], error))

    def _has_answered(self, index: int, client: bytes, number: int, later: Later) -> bool:
        try:
            reply: Reply | None = later.ready()
            if reply is None and time.monotonic() < later.deadline:
                return False
            if reply is None:
                raise later.late()
            self._sockets[index].send(client, encode_reply(number, reply))
        except timely.TimelyError as error:
            self._sockets[index].send(client, encode_error(number, error))
        return True

    def _restart(self) -> None:
        for socket in self._sockets:
            socket.close()
        while any(worker.step() for worker in self._workers):
            pass  # what was ordered is in the log, and is carried out
        self._waiting = []
        for worker, server in zip(self._workers, self._servers, strict=True):
            server._orders.incarnation += 1
            for instance in worker.instances.values():
                for handle in instance.inputs.values():
                    handle.deliveries.clear()
        time.sleep(self.down_seconds)
        while self.is_down and not self._ending.is_set():
            time.sleep(_PAUSE_SECONDS)
        self._sockets = [ServerSocket(address) for address in self.addresses]
        self.incarnation += 1


def workers_of(flow: Flow) -> DurableWorkers:
    """What the flow asks."""
    assert isinstance(flow._workers, DurableWorkers)
    return flow._workers


def table(*numbers: int) -> pa.Table:
    """Rows with these numbers."""
    return pa.table({"k": [n % 3 for n in numbers], "n": pa.array(numbers, pa.int64())})


def shown(flow: Flow) -> list[tuple[int, int]]:
    """The number and the epoch of each row; every row is there once."""
    changes = flow.output("rows").changes(0).to_pylist()
    assert all(row["diff"] == 1 for row in changes)
    return sorted((row["n"], row["epoch"]) for row in changes)
