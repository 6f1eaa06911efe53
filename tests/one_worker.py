"""One worker with its server, which tests ask without a socket; it runs when they say so."""

from __future__ import annotations

import msgpack
import pyarrow as pa

from timely.running.core import Worker
from timely.wire.requests import Install, Reply, Request
from timely.worker.server import Server

__all__ = ["LINES", "Clock", "answer", "serving"]

LINES = pa.table({"record": [msgpack.packb("a b a")], "diff": [1]})


class Clock:
    """Shows the time that a test says."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def serving() -> tuple[Server, Worker, Clock]:
    """A worker that counts words, as dataflow 0."""
    clock = Clock()
    worker = Worker()
    server = Server(worker, "here", clock)
    assert answer(server, Install("dataflows:word_count", {})).integer("dataflow") == 0
    return server, worker, clock


def answer(server: Server, request: Request, table: pa.Table | None = None) -> Reply:
    """What is known at once."""
    reply = server.handle(request, table)
    assert isinstance(reply, Reply)
    return reply
