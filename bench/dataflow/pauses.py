"""How long do clients wait while a durable cluster changes its workers?

    python -m bench.dataflow.pauses [WORKLOAD …] [--workers 2] [--to 1] [--rounds 3] [--small]

A client makes one small change after another, and waits for each. Meanwhile

    restart    a worker is killed, and all start again from the store
    standby    a worker is killed, and those that stand by take over
    rescale    the cluster goes on with another number of workers

A pause is the longest time of a change in the round, from its call until its answer; "change" is the median
time. Prints a table of medians over the rounds.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from typing import TypeAlias

import timely
from bench.cases import CASES, SMALL, Case, chosen
from bench.dataflow.durable import named
from bench.dataflow.job import Job
from bench.dataflow.measure import JOBS, load, timed_changes, warm_up
from timely.worker.supervisor import Supervisor

__all__ = ["main"]

_NAMES = ("bfs-100k-1M", "wcc-100k-1M")
_ABREAST_SECONDS_MAX = 600.0
_BETWEEN_SECONDS = 0.005
"""The client does something else between its changes, and leaves that much to those that follow."""

Event: TypeAlias = Callable[[timely.Cluster, Supervisor], None]


def _kill(cluster: timely.Cluster, keeper: Supervisor) -> None:
    os.kill(keeper.pids[-1], signal.SIGKILL)


def _until_abreast(keeper: Supervisor) -> None:
    deadline = time.monotonic() + _ABREAST_SECONDS_MAX
    while keeper.reserve is not None and not keeper.is_abreast:
        if time.monotonic() > deadline:
            raise SystemExit(f"nobody stood by within {_ABREAST_SECONDS_MAX:.0f} s")
        time.sleep(0.1)


def _longest(flow: timely.Flow, job: Job, event: Callable[[], None]) -> tuple[float, float]:
    """The longest and the median time of a change, in milliseconds, while something happens."""
    happens = threading.Thread(target=event)
    taken: list[float] = []
    change = 0
    while change < 50 or happens.is_alive() or change < 100:
        if change == 50:
            happens.start()
        taken.append(timed_changes(flow, job, change, change + 1))
        time.sleep(_BETWEEN_SECONDS)
        change = change + 1
        if change >= job.schedule.changes:
            raise SystemExit("more changes than there are came before the end: take a larger workload")
    happens.join()
    return max(taken), statistics.median(taken)


def _round(case: Case, workers: int, to: int, what: str) -> tuple[float, float]:
    job = JOBS[case.family](*case.with_changes(20 * case.changes).sizes)
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as store,
        timely.connect(
            workers=workers, durable=store, standby=what == "standby", log_level="error"
        ) as cluster,
    ):
        keeper = cluster._workers.launcher  # type: ignore[attr-defined]
        assert isinstance(keeper, Supervisor)
        warm_up(cluster, case.family)
        flow = cluster.install(named(job.build, "measured"))
        load(flow, job)
        time.sleep(2.0)  # the cluster rests, and others hear of the load
        _until_abreast(keeper)
        if what == "rescale":
            return _longest(flow, job, lambda: cluster.rescale(to))
        return _longest(flow, job, lambda: _kill(cluster, keeper))


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="how long clients wait while workers change")
    parser.add_argument("workload", nargs="*", default=_NAMES)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--to", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--small", action="store_true", help="sizes of which the figures mean nothing")
    options = parser.parse_args(arguments)
    print("| workload | workers | restart | standby | rescale | change |")
    print("|---|---|---|---|---|---|")
    for case in chosen(SMALL if options.small else CASES, options.workload):
        cells = [f"`{case.name}`", f"{options.workers} → {options.to}"]
        changes: list[float] = []
        for what in ("restart", "standby", "rescale"):
            rounds = [_round(case, options.workers, options.to, what) for _ in range(options.rounds)]
            cells.append(f"{statistics.median(longest for longest, _ in rounds) / 1e3:.2f} s")
            changes += [median for _, median in rounds]
        print("| " + " | ".join([*cells, f"{statistics.median(changes):.2f} ms"]) + " |", flush=True)


if __name__ == "__main__":
    main()
