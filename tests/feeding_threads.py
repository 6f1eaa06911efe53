"""Threads that feed a durable cluster, and read it, while its workers change."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

import pyarrow as pa
from rescaled_flows import Twin

import timely
from timely.worker.supervisor import Supervisor

__all__ = ["SECONDS", "Feeder", "Threads", "supervisor_of", "table", "with_diff"]

SECONDS = 60.0


def supervisor_of(cluster: timely.Cluster) -> Supervisor:
    """What keeps the workers of a cluster that `connect` has started."""
    keeper = cluster._workers.launcher  # type: ignore[attr-defined]
    assert isinstance(keeper, Supervisor)
    return keeper


def table(first: int, rows: int) -> pa.Table:
    """Rows with these numbers."""
    numbers = range(first, first + rows)
    return pa.table({"k": [n % 40 for n in numbers], "n": pa.array(numbers, pa.int64())})


def with_diff(rows: pa.Table) -> pa.Table:
    """The rows, each to be added once."""
    return rows.append_column("diff", pa.array([1] * rows.num_rows, pa.int64()))


class Threads:
    """Threads that run until an event; an error of one ends all, and fails the test."""

    def __init__(self, *bodies: Callable[[threading.Event], None]) -> None:
        self.ends = threading.Event()
        self.failures: list[BaseException] = []
        self._threads = [threading.Thread(target=self._run, args=(body,)) for body in bodies]

    def __enter__(self) -> Threads:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ends.set()
        for thread in self._threads:
            thread.join(SECONDS)
        assert not any(thread.is_alive() for thread in self._threads), "nothing hangs"
        assert not self.failures, self.failures

    def _run(self, body: Callable[[threading.Event], None]) -> None:
        try:
            body(self.ends)
        except BaseException as error:
            self.failures.append(error)
            self.ends.set()

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds."""
        deadline = time.monotonic() + SECONDS
        while not (holds() or self.failures):
            assert time.monotonic() < deadline
            time.sleep(0.01)


class Feeder:
    """Inserts, upserts, removes and seals, and tells its twin the same."""

    def __init__(self, cluster: timely.Cluster, seed: int) -> None:
        self.twin = Twin()
        self.last = -1
        """The last epoch, once it is known."""
        self._flow = cluster.install("rescaled_flows:sold")
        self._fate = random.Random(seed)
        self._number = 0

    def __call__(self, ends: threading.Event) -> None:
        while not ends.is_set():
            self._feed()
            self.twin.seal()
            wait = self._fate.choice([None, True, False])
            assert self._flow.seal(wait=wait) == len(self.twin.changed) - 1, "each epoch is sealed once"
        self.last = len(self.twin.changed)
        self.twin.seal()
        self._flow.seal(wait=True)

    def _feed(self) -> None:
        rows, values = self._flow.input("rows"), self._flow.input("values")
        for _ in range(self._fate.randrange(1, 4)):
            count = self._fate.choice([1, 1, 30, 300, 9_000 if self._number < 30_000 else 1])
            first, self._number = self._number, self._number + count
            new = [(n % 40, n) for n in range(first, first + count)]
            if self._fate.random() < 0.2:
                rows.append(with_diff(table(first, count)))
            elif count == 1:
                rows.insert(new)
            else:
                rows.insert(table(first, count))
            self.twin.add(new)
            key, value = self._fate.randrange(40), self._fate.randrange(1_000)
            values.upsert([(key, value)])
            self.twin.values[key] = value
        if self._fate.random() < 0.3 and self.twin.rows:
            gone = self._fate.choice([row for row, count in self.twin.rows.items() if count])
            rows.remove([gone])
            self.twin.add([gone], -1)
