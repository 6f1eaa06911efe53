"""What do very many open times cost: 100,000 epochs in flight, asked for, or held?

Shapes, each with N = 1,000, 10,000 and 100,000 times, each in a process of its own:

    asked, one by one    a vertex asks for a notification at N epochs ahead; then they are sealed one by one
    asked, at once       the same, sealed at once
    operators            N epochs of rows are sealed at once and pass join, group_by, distinct and consolidate
    outputs              N epochs of rows are sealed at once and go into an output, which is read
    reduced, one by one  rows of N epochs wait at a group_by while its other input is sealed epoch by epoch
    held                 a vertex holds N epochs, and gives them up from the first on, sending at each
    incomparable         a vertex in a loop holds N times (e, N - e), sends at each and gives all up at once
    incomparable, singly the same, given up one after the other: here we should lose, a frontier of n times is
                         handed over anew for each (up to 10,000 only)

Estimate: 5 µs of Python for each time at a vertex by hand, a few more for each operator on the way, and some
50 for each round of a worker where epochs are sealed one by one, whatever N is: N log N in theory, in
practice linear. So 100,000 take at most 15 times what 10,000 take, and 100,000 times with 1 kB each (a
request or a message, its count in the tracker, its place in the order) are 100 MB.

    python -m bench.dataflow.open_times [--times N …] [--shapes SHAPE …] [--write FILE]

Seconds are those of the processor: one thread works, and other programs on the machine should not count. One
JSON line per measurement on standard output; with --write also a table in Markdown.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar, cast

import numpy as np

import differential as dd
import timely
from bench.machine import machine
from differential.columns.update_batch import UpdateBatch
from progress.times.timestamp import Timestamp
from timely.running.core import Worker
from timely.running.instance import Instance
from timely.wire.batch import Batch, Records

Step = Callable[[], None]
"""What is measured; everything before is prepared."""

_SOMETHING = Records(["x"])


class AsksAheadVertex(timely.Vertex):
    """Asks for `count` epochs at its first message; counts notifications, which must come in order."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.notified = 0

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        """Ask ahead."""
        for epoch in range(self.count):
            self.notify_at((epoch,))

    def on_notify(self, time: Timestamp) -> None:
        """Count."""
        if time != (self.notified,):
            raise AssertionError(f"{time} came as number {self.notified}")
        self.notified += 1


class HoldsVertex(timely.Vertex):
    """Holds `count` times in its first activation. `times`: what the n-th is."""

    def __init__(self, count: int, times: Callable[[int], Timestamp]) -> None:
        self.words: list[int] = []
        self._count = count
        self._times = times

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        """Hold."""
        if not self.words:
            self.words = [self.code.pack(self._times(number)) for number in range(self._count)]
            for word in self.words:
                self.hold_word(word)


class CountsVertex(timely.Vertex):
    """Counts rows."""

    word_times: ClassVar[bool] = True

    def __init__(self) -> None:
        self.rows = 0

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        """Count."""
        self.rows += sum(batch.rows for _, batch in messages)


def start(flow: timely.Dataflow) -> tuple[Worker, Instance]:
    """One worker with a dataflow."""
    worker = Worker()
    return worker, worker.install(flow.freeze())


def asked(count: int, at_once: bool) -> Step:
    """A vertex asks ahead."""
    flow, vertex = timely.Dataflow(), AsksAheadVertex(count)
    flow.stage("asks", lambda: vertex, [flow.input("numbers").feed()])
    worker, instance = start(flow)
    numbers = instance.input("numbers")

    def step() -> None:
        numbers.send(["x"])
        for epoch in [0, count - 1] if at_once else range(count):
            numbers.seal(epoch)
            worker.run_until_idle()
        assert vertex.notified == count, vertex.notified

    return step


def rows_of_epochs(instance: Instance, name: str, count: int) -> None:
    """Two rows in each epoch: (epoch div 4, epoch) and (epoch, 1); so each key has five rows."""
    handle = instance.input(name)
    for epoch in range(count):
        columns = [[epoch // 4, epoch], [epoch, 1], [handle.epoch_word(epoch)] * 2, [1, 1]]
        handle.append(epoch, UpdateBatch(np.array(columns, dtype=np.int64)))


def operators(count: int) -> Step:
    """N epochs through all operators at once."""
    flow, sink = timely.Dataflow(), CountsVertex()
    left, right = (dd.input(flow, name, "k: int, v: int") for name in ("left", "right"))
    joined = left.join(right.select("k").distinct(), on="k")
    sums = joined.group_by("k").agg(v=dd.max("v")).concat(joined).consolidate()
    flow.stage("sink", lambda: sink, sums.feeds(0, None), outputs=0)
    worker, instance = start(flow)

    def step() -> None:
        for name in ("left", "right"):
            rows_of_epochs(instance, name, count)
            instance.input(name).seal(count - 1)
        worker.run_until_idle()
        assert sink.rows > count and instance.epochs_done() == count

    return step


def outputs(count: int) -> Step:
    """N epochs into an output."""
    flow = timely.Dataflow()
    dd.input(flow, "rows", "k: int, v: int").output("all")
    worker, instance = start(flow)

    def step() -> None:
        rows_of_epochs(instance, "rows", count)
        instance.input("rows").seal(count - 1)
        worker.run_until_idle()
        assert instance.output("all").log.changes(0, count).num_rows == 2 * count, "all rows"

    return step


def reduced(count: int) -> Step:
    """Rows of N epochs wait at a reduce, which lets one go after the other."""
    flow, sink = timely.Dataflow(), CountsVertex()
    rows, slow = (dd.input(flow, name, "k: int, v: int") for name in ("rows", "slow"))
    largest = rows.concat(slow).group_by("k").agg(v=dd.max("v"))
    flow.stage("sink", lambda: sink, largest.feeds(0, None), outputs=0)
    worker, instance = start(flow)

    def step() -> None:
        rows_of_epochs(instance, "rows", count)
        instance.input("rows").seal(count - 1)
        worker.run_until_idle()
        assert sink.rows == 0
        for epoch in range(count):
            instance.input("slow").seal(epoch)
            worker.run_until_idle()
        assert sink.rows >= count

    return step


def held(count: int) -> Step:
    """One vertex holds N epochs and gives them up in order."""
    flow, vertex = timely.Dataflow(), HoldsVertex(count, lambda number: (2 * number,))
    (out,) = flow.stage("holds", lambda: vertex, [flow.input("numbers").feed()])
    flow.stage("counts", CountsVertex, [out.feed()], outputs=0)
    worker, instance = start(flow)
    numbers = instance.input("numbers")

    def step() -> None:
        numbers.send(["x"])
        numbers.seal(2 * count)
        worker.run_until_idle()
        assert instance.epochs_done() == 0
        for word in vertex.words:
            vertex.send(0, _SOMETHING, word + 1)
            vertex.release_word(word)
            worker.run_until_idle()
        assert instance.epochs_done() == 2 * count + 1

    return step


def incomparable(count: int, singly: bool) -> Step:
    """One vertex in a loop holds N incomparable times."""
    flow, vertex = timely.Dataflow(), HoldsVertex(count, lambda number: (number, count - number))
    with flow.loop("loop") as loop:
        back = loop.feedback()
        feeds = [loop.enter(flow.input("numbers")).feed(), back.stream.feed()]
        (out,) = flow.stage("holds", lambda: vertex, feeds)
        back.connect(out)
    flow.stage("counts", CountsVertex, [loop.leave(out).feed()], outputs=0)
    worker, instance = start(flow)
    numbers = instance.input("numbers")

    def step() -> None:
        numbers.send(["x"])
        numbers.seal(0)
        worker.run_until_idle()
        for word in vertex.words:
            vertex.send(0, _SOMETHING, word)
        worker.run_until_idle()
        assert instance.epochs_done() == 0
        for word in vertex.words:
            vertex.release_word(word)
            if singly:
                worker.run_until_idle()
        worker.run_until_idle()
        assert instance.epochs_done() == 1 and instance.tracker.active_count == 1

    return step


SHAPES: dict[str, Callable[[int], Step]] = {
    "asked, one by one": lambda count: asked(count, False),
    "asked, at once": lambda count: asked(count, True),
    "operators": operators,
    "outputs": outputs,
    "reduced, one by one": reduced,
    "held": held,
    "incomparable": lambda count: incomparable(count, False),
    "incomparable, singly": lambda count: incomparable(count, True),
}
TIMES_MAX = {"incomparable, singly": 10_000}


def measure(shape: str, count: int) -> dict[str, object]:
    """One measurement, in this process, after a small one that compiles; MiB is what the peak rose by."""
    SHAPES[shape](300)()
    step = SHAPES[shape](count)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = time.process_time()
    step()
    seconds = time.process_time() - begin
    added = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return {"shape": shape, "times": count, "seconds": round(seconds, 4), "mib": round(added / 1024, 1)}


def table(results: Sequence[dict[str, object]]) -> str:
    """Shapes down, N across, each with how much longer ten times as many take."""
    lines = [
        "| shape | N | seconds | µs per time | for ten times as many | MiB |",
        "|---|---|---|---|---|---|",
    ]
    before: dict[str, tuple[int, float]] = {}
    for one in results:
        shape, count = str(one["shape"]), cast(int, one["times"])
        seconds = cast(float, one["seconds"])
        known = before.get(shape)
        factor = f"{seconds / known[1]:.1f} ×" if known and count == 10 * known[0] else ""
        before[shape] = (count, seconds)
        lines.append(
            f"| {shape} | {count:,} | {seconds:.3f} | {seconds / count * 1e6:.1f} | {factor} | {one['mib']} |"
        )
    return "\n".join(lines)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="what very many open times cost")
    parser.add_argument("--times", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--shapes", nargs="+", choices=sorted(SHAPES), default=list(SHAPES))
    parser.add_argument("--write", type=Path)
    parser.add_argument("--here", action="store_true", help="in this process, not one for each measurement")
    options = parser.parse_args()
    results: list[dict[str, object]] = []
    for shape in options.shapes:
        for count in options.times:
            if count > TIMES_MAX.get(shape, count):
                continue
            if options.here:
                result = measure(shape, count)
            else:
                command = [sys.executable, "-m", "bench.dataflow.open_times", "--here"]
                command += ["--shapes", shape, "--times", str(count)]
                finished = subprocess.run(command, capture_output=True, text=True, check=True)
                result = json.loads(finished.stdout.splitlines()[-1])
            print(json.dumps(result), flush=True)
            results.append(result)
    if options.write:
        options.write.write_text(
            "## Very many open times\n\n`python -m bench.dataflow.open_times`; processor seconds; MiB: "
            f"what the peak of the process rose by.\n\n{table(results)}\n\n{datetime.now(UTC).date()}, "
            f"{machine()}.\n"
        )


if __name__ == "__main__":
    main()
