"""How long does a round of all workers take, with and without records, and what makes the slowest ones slow?

Each worker asks to be notified of the next round when it is notified of this one. Without stages nobody sends
anything: that is a barrier. With stages worker 0 sends a record in each round, which passes them, at each on
another worker; so a round is an epoch that is over before the next one begins.

    python -m bench.timely.rounds [--workers 2] [--rounds 20000] [--write FILE]

reports the median and 99.9 % of a barrier, and what the slowest rounds spend their time on. Each worker reads
the totals of its histograms (`cluster.stats()`) in each round, and its time in the queue for a core from the
system. A slow round is explained by the worker for which the other one waited. Estimate: 40 µs a round; the
slowest are those in which the system gives the core to somebody else.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from statistics import median

import timely
from bench.machine import machine
from progress.times.timestamp import Timestamp
from timely.running.timings import Timings

__all__ = ["WARM", "measure", "rounds", "stragglers"]

WARM = 100
"""Rounds before the clock starts."""

CAUSES = ("collector", "callback", "send", "rest of a step", "between steps")
"""What a worker does in a round; the last: waiting for the other one, waking up, and clients."""

_SLOW = 0.001
"""The share of rounds that are looked into."""

_Row = tuple[float, ...]
"""Of one round: seconds in all, those of each cause, and those in the queue for a core."""


class DrivesVertex(timely.Vertex):
    """Goes from round to round; tells how long they took, or what each spent its time on."""

    def __init__(self, count: int, sends: bool, is_told: bool) -> None:
        self._count = count
        self._sends = sends
        self._is_told = is_told
        self._began = (0.0, 0.0)
        self._before: list[int] = []
        self._rows: list[list[int]] = []
        self._core = -1

    def on_start(self) -> None:
        """Open what the system tells of this thread."""
        if self._is_told:
            self._core = os.open("/proc/thread-self/schedstat", os.O_RDONLY)

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        """Begin."""
        if edge == 0:
            self.notify_at(time)

    def on_notify(self, time: Timestamp) -> None:
        """Begin the next round."""
        epoch, at = time
        if at == WARM:
            self._began = _now()
        if self._is_told and at >= WARM:
            self._rows.append(self._totals())
        if at < self._count + WARM:
            if self._sends and self.worker == 0:
                self.send_by(0, [at], time)
            self.notify_at((epoch, at + 1))
            return
        elapsed, core = (now - began for now, began in zip(_now(), self._began, strict=True))
        result: tuple[object, ...] = (self.worker, elapsed / self._count * 1e6, core / self._count * 1e6)
        self.send_by(1, [(*result, [tuple(row) for row in self._rows])], time)

    def on_end(self, reason: timely.TimelyError | None) -> None:
        """Close what was opened."""
        if self._core >= 0:
            os.close(self._core)

    def _totals(self) -> list[int]:
        """Return nanoseconds until now: the clock, the histograms, the queue for a core."""
        timings: Timings = self._runner._acting.timings  # type: ignore[attr-defined]  # stats() is too slow here
        queued = int(os.pread(self._core, 64, 0).split()[1])
        named = (timings.collector, timings.callback, timings.send, timings.step)
        return [time.perf_counter_ns(), *(times.total for times in named), queued]


class PassesVertex(timely.Vertex):
    """Sends on what it gets."""

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        """Send it."""
        self.send_by(0, message, time)


def _now() -> tuple[float, float]:
    return time.perf_counter(), time.thread_time()


@timely.builder
def rounds(flow: timely.Dataflow, count: int, stages: int, is_told: bool) -> None:
    """Go round so often, through so many stages."""
    go = flow.input("go").broadcast()
    with flow.loop("rounds") as loop:
        back = loop.feedback()
        feeds = [loop.enter(go).feed(0), back.stream.feed(1)]
        drives = lambda: DrivesVertex(count, stages > 0, is_told)  # noqa: E731
        stream, done = flow.stage("drive", drives, feeds, outputs=2)
        for stage in range(stages):
            stream = stream.stage(f"pass {stage}", PassesVertex, exchange=_next_worker(stage))
        back.connect(stream)
        flow.output("taken", loop.leave(done))


def _next_worker(stage: int) -> timely.Route:
    return timely.ToWorker(stage + 1)


def measure(workers: int, count: int, stages: int) -> dict[str, float]:
    """Return what a round takes on worker 0, in µs: elapsed, and on a core."""
    with timely.connect(workers=workers) as cluster:
        _, elapsed, core, _ = _run(cluster, count, stages, is_told=False)[0]
    assert isinstance(elapsed, float) and isinstance(core, float)
    return {"µs": elapsed, "core µs": core}


def _run(cluster: timely.Cluster, count: int, stages: int, is_told: bool) -> list[tuple[object, ...]]:
    flow = cluster.install(rounds, count=count, stages=stages, is_told=is_told)
    flow.input("go").insert([1])
    flow.seal(wait=True)
    told = sorted(record for _, record in flow.output("taken").changes())
    flow.uninstall()
    return [tuple(record) for record in told]


def stragglers(workers: int, count: int) -> str:
    """Return the report of the slowest rounds, in Markdown."""
    with timely.connect(workers=workers) as cluster:
        told = _run(cluster, count, 0, is_told=True)
    by_worker = [_rows_of(record[3]) for record in told]
    elapsed = sorted(_elapsed_of(told[0][3]))
    within = elapsed[int(len(elapsed) * (1 - _SLOW))]
    lines = [
        f"## The slowest rounds of a barrier of {workers} workers",
        "",
        f"`python -m bench.timely.rounds`; {count:,} rounds; median {median(elapsed) * 1e6:.0f} µs, 99 % "
        f"{elapsed[int(len(elapsed) * 0.99)] * 1e6:.0f} µs, 99.9 % {within * 1e6:.0f} µs, the slowest "
        f"{elapsed[-1] * 1e6:.0f} µs. Load average: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.",
        "",
        f"| share of the time | all rounds | the slowest {_SLOW:.1%} |",
        "|---|---|---|",
    ]
    every = range(len(by_worker[0]))
    slow = [at for at, taken in enumerate(_elapsed_of(told[0][3])) if taken >= within and at in every]
    of_all, of_slow = _shares(by_worker, every), _shares(by_worker, slow)
    names = (*CAUSES, "waiting for a core meanwhile, in any of these")
    lines += [f"| {name} | {a:.1%} | {b:.1%} |" for name, a, b in zip(names, of_all, of_slow, strict=True)]
    return "\n".join([*lines, "", f"{datetime.now(UTC):%Y-%m-%d}, {machine()}.", ""])


def _elapsed_of(totals: object) -> list[float]:
    """Return the seconds of each round."""
    assert isinstance(totals, tuple)
    return [(after[0] - before[0]) / 1e9 for before, after in pairwise(totals)]


def _rows_of(totals: object) -> list[_Row]:
    """Return the rows of one worker: each of a round and the next one."""
    assert isinstance(totals, tuple)
    rows: list[_Row] = []
    for before, after in pairwise(totals):
        taken, collector, callback, send, step, queued = (
            (b - a) / 1e9 for a, b in zip(before, after, strict=True)
        )
        rest, between = step - callback - send, taken - step - collector
        rows.append((taken, collector, callback, send, rest, between, queued))
    # A step counts where it ends, although it may have begun in the round before: two rounds together.
    return [tuple(a + b for a, b in zip(one, two, strict=True)) for one, two in pairwise(rows)]


def _shares(by_worker: Sequence[Sequence[_Row]], chosen: Sequence[int]) -> list[float]:
    """Return the share of each cause in these rounds, each as the worker spent it that was awaited."""
    awaited = [min((rows[at] for rows in by_worker), key=lambda row: row[5] - row[6]) for at in chosen]
    whole = sum(row[0] for row in awaited)
    return [sum(row[cause] for row in awaited) / whole for cause in range(1, 7)]


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.timely.rounds", description=__doc__)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=20_000)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args(arguments)
    report = stragglers(options.workers, options.rounds)
    print(report)
    if options.write is not None:
        with options.write.open("a") as file:
            file.write(f"\n{report}")


if __name__ == "__main__":
    main()
