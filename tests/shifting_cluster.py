"""A durable cluster as its clients see it, that goes on with another number of workers at any moment.

It keeps nothing: each worker answers every request with its index, the number of workers, and the
incarnation; and it notes what it has answered.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Final

import timely
from timely.wire.frames.messages import decode_request, encode_error, encode_reply, head_of, life_of
from timely.wire.handshake import PROTOCOL_VERSION
from timely.wire.requests import Reply, Request
from timely.wire.transport.server_socket import ServerSocket

__all__ = ["ShiftingCluster"]

_PAUSE_SECONDS: Final = 0.0005


class ShiftingCluster:
    """Workers that serve clients at sockets in `folder`, from a thread.

    `shifts(worker, request)` returns how many workers there shall be right after the answer to a request; 0:
    as many as before, without a restart.
    """

    def __init__(self, folder: Path, workers: int) -> None:
        self.shifts: Callable[[int, Request], int] = lambda worker, request: 0
        self.answered: list[tuple[int, int, Request]] = []
        """The incarnation, the worker, and the request."""
        self.counts = {1: workers}
        """The number of workers by incarnation."""
        self.prefix, self.identity = "c", "it"
        self._folder = folder
        self._wanted = 0
        self._sockets: list[ServerSocket] = []
        self._ending = threading.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run)

    @property
    def incarnation(self) -> int:
        """The present one."""
        return max(self.counts)

    @property
    def addresses(self) -> list[str]:
        """Where the present workers are."""
        return self.addresses_of(self.counts[self.incarnation])

    def addresses_of(self, workers: int) -> list[str]:
        """Where so many workers are."""
        return [f"ipc://{self._folder}/{self.prefix}{index}" for index in range(workers)]

    def __enter__(self) -> ShiftingCluster:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending.set()
        self._thread.join()

    def shift(self, workers: int) -> None:
        """Go on with so many workers; return when they listen."""
        before = self.incarnation
        self._wanted = workers
        while self.incarnation == before:
            time.sleep(_PAUSE_SECONDS)

    def _run(self) -> None:
        self._sockets = [ServerSocket(address) for address in self.addresses]
        self._ready.set()
        while not self._ending.is_set():
            served, wanted = self._serve()
            if wanted := wanted or self._wanted:
                self._wanted = 0
                self._restart(wanted)
            elif not served:
                time.sleep(_PAUSE_SECONDS)
        self._close()

    def _serve(self) -> tuple[bool, int]:
        """Answer what has come; return whether that was anything, and how many workers there shall be."""
        served = False
        for index, socket in enumerate(self._sockets):
            for client, frames in socket.recv_nowait():
                served = True
                number, head = head_of(frames)
                try:
                    request, _ = decode_request(frames, head, life_of(self.incarnation, self.identity))
                except timely.PeerError as stale:
                    socket.send(client, encode_error(number, stale))
                    continue
                self.answered.append((self.incarnation, index, request))
                socket.send(client, encode_reply(number, self._reply(index)))
                if wanted := self.shifts(index, request):
                    return True, wanted
        return served, 0

    def _reply(self, index: int) -> Reply:
        return Reply(
            {
                "version": PROTOCOL_VERSION,
                "index": index,
                "workers": len(self._sockets),
                "addresses": self.addresses,
                "silence_ms": 2_500,
                "is_new": True,
                "incarnation": self.incarnation,
                "cluster": self.identity,
                "dataflows": [],
            }
        )

    def _restart(self, workers: int) -> None:
        self._close()
        self._sockets = [ServerSocket(address) for address in self.addresses_of(workers)]
        self.counts[self.incarnation + 1] = workers

    def _close(self) -> None:
        for socket in self._sockets:
            socket.close()
