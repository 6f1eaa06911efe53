"""Workers with their servers, whose messages are delayed at random; nothing happens but by calls of a test.

The dataflows are those of `exporting_flows.py`. Every worker checks its progress tracking after each step; or
none does, and loops are compiled.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping

import pyarrow as pa
import pytest
from dataflows import settle
from exporting_flows import sums

import timely
from progress.times.time_words import TimeLayout
from timely.running.core import Worker
from timely.wire.requests import IN_OPEN, Decide, Deliver, Install, Reply, Request, Value
from timely.wire.transport.memory import MemoryNetwork
from timely.worker.answers.later import Later
from timely.worker.server import Server

__all__ = ["DelayedCluster", "Edge", "Row", "answers_to", "some_epoch_bits"]

Row = tuple[object, ...]
Edge = tuple[int, int]


_default = TimeLayout.default


def some_epoch_bits(rng: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
    """What dataflows have for epochs from now on: as many bits as ever, or so few that anchors move."""
    bits = rng.choice([None, 2, 3])
    few = _default if bits is None else lambda levels: TimeLayout((bits, *[9] * (levels - 1)))
    monkeypatch.setattr(TimeLayout, "default", staticmethod(few))


class DelayedCluster:
    """`owner` is the dataflow whose input `edges` is changed; `history` what has come to it at each epoch."""

    def __init__(
        self, rng: random.Random, workers: int, checks: bool = True, compiled_loops: bool = True
    ) -> None:
        self.rng = rng
        self.network = MemoryNetwork(workers, rng.randrange(1 << 30))
        self.workers = [
            Worker(
                w,
                workers,
                self.network.transport(w) if workers > 1 else None,
                check_progress=checks,
                compiled_loops=compiled_loops,
            )
            for w in range(workers)
        ]
        self.servers = [Server(worker, f"worker {worker.index}") for worker in self.workers]
        self.owner = 0
        self.epoch = 0
        self.history: dict[int, Counter[Edge]] = {}
        self._present: Counter[Edge] = Counter()
        self._sequence = 0
        for server in self.servers:
            server.greet()

    def ask(self, request: Request) -> Reply | Later:
        """Ask worker 0."""
        return self.servers[0].handle(request)

    def install(self, spec: str, **arguments: Value) -> int:
        """Ask for a dataflow; its number."""
        self.ask(Install(spec, arguments))
        return self.latest

    @property
    def latest(self) -> int:
        """The number of the dataflow that was asked for last."""
        return max(self.servers[0].installations.specs)

    def change(self) -> None:
        """An edge comes, or one that is there goes, on any worker."""
        held = sorted(self._present)
        is_new = not held or self.rng.random() < 0.6
        edge = (self.rng.randrange(6), self.rng.randrange(6)) if is_new else self.rng.choice(held)
        diff = 1 if is_new else -1
        self._present[edge] += diff
        self._present = +self._present
        self._sequence += 1
        insert = Deliver(self.owner, "edges", "w", self._sequence, IN_OPEN, self.epoch, diff)
        table = pa.table({"src": [edge[0]], "dst": [edge[1]]})
        # Its worker has perhaps not heard of the last seal: the edge belongs to that epoch then.
        reply = self.rng.choice(self.servers).handle(insert, table)
        assert isinstance(reply, Reply)
        self.history.setdefault(reply.integer("epoch"), Counter())[edge] += diff

    def seal(self) -> None:
        """Complete the open epoch."""
        reply = self.ask(Decide(self.owner, self.epoch, True))
        assert isinstance(reply, Reply)
        self.epoch = reply.integer("open")

    def step(self) -> None:
        """Of any worker."""
        self.rng.choice(self.workers).step()

    def settle(self) -> None:
        """Until nothing is left to do, and nothing under way."""
        for _ in range(10_000):
            settle(self.workers)
            if not self.network.in_flight():
                return
        raise AssertionError("never at rest")


def answers_to(query: str, history: Mapping[int, Counter[Edge]], epochs: int) -> list[Counter[Row] | None]:
    """What the query is at each epoch, None where it has no answer: asked of a cluster that has it from the
    beginning.
    """
    found: list[Counter[Row] | None] = []
    total: Counter[Row] = Counter()
    with timely.connect(workers=1, embedded=True) as fresh:
        flow = fresh.install("exporting_flows:owner", query=query)
        for epoch in range(epochs):
            changed = [(*edge, diff) for edge, diff in history.get(epoch, Counter()).items() if diff]
            if changed:
                src, dst, diffs = zip(*changed, strict=True)
                flow.input("edges").append(pa.table({"src": src, "dst": dst, "diff": diffs}))
            flow.seal()
        tail = flow.output("out").follow(start=0)
        for _, (_, changes) in zip(range(epochs), tail, strict=False):
            if isinstance(changes, timely.TimelyError):
                found.append(None)
                continue
            total.update(sums(changes))
            found.append(Counter({row: n for row, n in total.items() if n}))
    assert len(found) == epochs
    return found
