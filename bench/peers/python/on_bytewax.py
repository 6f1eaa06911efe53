"""The workloads of `bench/workloads.py` without loops on Bytewax, as one of its users would write them.

    python -m bench.peers.python.on_bytewax count plain 1000000 10000000 1000 1000 [-w WORKERS] [--batch EPOCHS]

Rows come from a source of our own, whose `next_batch` hands over many at once, and are taken by `stateful_batch`,
which is called once for all rows of a key in a batch: the quickest operator with a state. The load is one batch,
since in parts of 65,536 rows a million take three times as long. Keys are texts there, and made before the clock
runs. Bytewax has no collections that change; each key's logic keeps what it has and says what has changed of its
answer. `op.join` forgets no row, so that joining has a logic by hand, too.

There are no epochs that one could wait for: each logic says how many rows it has taken, and a change is over when
the sink has heard of all.
"""

from __future__ import annotations

import gc
import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from importlib.metadata import version

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.inputs import FixedPartitionedSource, StatefulSourcePartition
from bytewax.operators import StatefulBatchLogic
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.testing import cluster_main

from bench import memory
from bench.peers.python.harness import (
    Inputs,
    Measured,
    NumberedRow,
    OutputRow,
    Run,
    drawn,
    given,
    printed,
    ready,
)

FAMILIES = ("count plain", "sum", "join")

Value = tuple[int, int, int]
"""What a key's logic takes: from which input, a number, and how often it is there more."""
Keyed = tuple[str, Value]
Answer = tuple[int, tuple[OutputRow, ...]]
"""How many rows were taken, and how what is said of the key has changed."""


class Logic(StatefulBatchLogic):
    """One key."""

    def on_batch(self, values: list[Value]) -> tuple[Iterable[Answer], bool]:
        """See `StatefulBatchLogic`: what is said, and whether nothing is left of the key."""
        changed, is_empty = self.after(values)
        return [(len(values), changed)], is_empty

    @abstractmethod
    def after(self, values: list[Value]) -> tuple[tuple[OutputRow, ...], bool]:
        """How the rows of the answer change, without the key, and whether nothing is left."""

    def snapshot(self) -> None:
        """Nothing is kept for a restart."""


class Counted(Logic):
    """Rows by key."""

    def __init__(self) -> None:
        self._n = 0

    def after(self, values: list[Value]) -> tuple[tuple[OutputRow, ...], bool]:
        """See `Logic`."""
        before = self._n
        for _, _, diff in values:
            self._n += diff
        return _instead((before,) if before else None, (self._n,) if self._n else None), not self._n


class Summed(Logic):
    """Totals by key."""

    def __init__(self) -> None:
        self._n = self._total = 0

    def after(self, values: list[Value]) -> tuple[tuple[OutputRow, ...], bool]:
        """See `Logic`."""
        before = (self._total,) if self._n else None
        for _, value, diff in values:
            self._n += diff
            self._total += value * diff
        return _instead(before, (self._total,) if self._n else None), not self._n


class Paired(Logic):
    """Pairs of rows with this key."""

    def __init__(self) -> None:
        self._rows: tuple[set[int], set[int]] = (set(), set())

    def after(self, values: list[Value]) -> tuple[tuple[OutputRow, ...], bool]:
        """See `Logic`."""
        changed: list[OutputRow] = []
        for side, row, diff in values:
            others = self._rows[1 - side]
            changed += [((row, other) if side == 0 else (other, row), diff) for other in others]
            if diff > 0:
                self._rows[side].add(row)
            else:
                self._rows[side].remove(row)
        return tuple(changed), not any(self._rows)


LOGICS: dict[str, Callable[[None], Logic]] = {
    "count": lambda _: Counted(),
    "sum": lambda _: Summed(),
    "join": lambda _: Paired(),
}


def _instead(before: tuple[int, ...] | None, after: tuple[int, ...] | None) -> tuple[OutputRow, ...]:
    if before == after:
        return ()
    gone: tuple[OutputRow, ...] = ((before, -1),) if before is not None else ()
    return (*gone, (after, 1)) if after is not None else gone


class Driver:
    """Hands rows over, hears what has become of them, and looks at the clock."""

    def __init__(self, run: Run, inputs: Inputs, measured: Measured) -> None:
        self._measured = measured
        self._batch = run.batch
        self._inputs = inputs
        self._texts: dict[int, str] = {}
        loaded = [self._keyed(row, 1) for row in inputs.loaded()]
        self._parts = [loaded]
        self._changes_done = 0
        self._is_loaded = False
        self._missing = len(loaded)
        self._lock = threading.Lock()
        self._begun = 0.0
        self._answers: list[list[tuple[str, Answer]]] = []

    @property
    def is_waiting(self) -> bool:
        """Whether all has been handed over and not all has come out."""
        return not self._parts and self._missing > 0

    def more(self) -> list[Keyed]:
        """The next rows; none while those before are on their way. `StopIteration` after the last."""
        if not self._parts and not self._missing:
            self._prepare()
        if not self._parts:
            return []
        if not self._begun:
            self._begun = time.perf_counter()
        return self._parts.pop(0)

    def _prepare(self) -> None:
        """The next changes."""
        changes = self._inputs.schedule.changes
        if self._changes_done == changes:
            raise StopIteration
        end = min(self._changes_done + self._batch, changes)
        for change in range(self._changes_done, end):
            gone, come = self._inputs.changed(change)
            part = [self._keyed(row, -1) for row in gone] + [self._keyed(row, 1) for row in come]
            self._parts.append(part)
            self._missing += len(part)
        self._changes_done = end
        self._begun = 0.0

    def heard(self, answers: list[tuple[str, Answer]]) -> None:
        """Called by the sink of whichever worker."""
        with self._lock:
            self._answers.append(answers)
            self._missing -= sum([taken for _, (taken, _) in answers])
            if not self._missing and not self._parts:
                self._over(time.perf_counter() - self._begun)

    def _over(self, seconds: float) -> None:
        """All that was handed over has come out; what came is made rows when the clock has stopped."""
        self._measured.peak_mib = max(self._measured.peak_mib, memory.peak_mib())
        output = self._measured.output
        for answers in self._answers:
            output += [((int(key), *row), diff) for key, (_, rows) in answers for row, diff in rows]
        self._answers.clear()
        if self._is_loaded:
            self._measured.change_ms.append(seconds * 1e3)
        else:
            self._measured.load_seconds = seconds
            self._measured.loaded = len(output)
            self._is_loaded = True

    def _keyed(self, row: NumberedRow, diff: int) -> Keyed:
        name, _, (key, *rest) = row
        text = self._texts.setdefault(key, str(key))
        return text, (1 if name == "right" else 0, rest[0] if rest else 0, diff)


class Source(FixedPartitionedSource):
    """All rows, in one part."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def list_parts(self) -> list[str]:
        """See `FixedPartitionedSource`."""
        return ["all"]

    def build_part(self, step_id: str, for_part: str, resume_state: None) -> Part:
        """See `FixedPartitionedSource`."""
        return Part(self._driver)


class Part(StatefulSourcePartition):
    """See `Source`."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def next_batch(self) -> list[Keyed]:
        """See `StatefulSourcePartition`."""
        return self._driver.more()

    def next_awake(self) -> datetime | None:
        """At once: without an answer it would sleep for a millisecond after each empty batch."""
        return datetime.now(UTC) if self._driver.is_waiting else None

    def snapshot(self) -> None:
        """Nothing is kept for a restart."""


class Sink(DynamicSink):
    """Where answers go, on each worker."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def build(self, step_id: str, worker_index: int, worker_count: int) -> SinkPart:
        """See `DynamicSink`."""
        return SinkPart(self._driver)


class SinkPart(StatelessSinkPartition):
    """See `Sink`."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def write_batch(self, items: list[tuple[str, Answer]]) -> None:
        """See `StatelessSinkPartition`."""
        self._driver.heard(items)


def main() -> None:
    """The command line."""
    run = given("bytewax", FAMILIES)
    idle_mib = ready()
    measured = Measured()
    driver = Driver(run, drawn(run), measured)
    gc.collect()
    gc.freeze()
    flow = Dataflow("workload")
    rows = op.input("rows", flow, Source(driver))
    answers = op.stateful_batch("answers", rows, LOGICS[run.family])
    op.output("out", answers, Sink(driver))
    cluster_main(flow, [], 0, worker_count_per_proc=run.workers)
    print(printed(f"bytewax {version('bytewax')}", run, measured, idle_mib))


if __name__ == "__main__":
    main()
