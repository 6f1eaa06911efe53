"""What does a store cost?

    python -m bench.dataflow.durable [WORKLOAD …] [--all] [--workers 1 2] [--rounds 5] [--small]

For each workload a process without a store, one with sync="disk" and one with sync="system" take turns, in an
order that is drawn anew for each round. Each loads, follows changes one by one, and then some in flight at
once. The processes with a store are then killed, and another one says how long it takes until the next epoch
is complete, which takes the work of all changes once more. That one folds, and is killed, too; the next one
begins with what the inputs hold. Figures are medians over the rounds. Prints the table of
`bench/results/durable.md`:

    log               what the load wrote, and how many times the bytes of the frames of its rows that is
    log of a change   the bytes that a change wrote, of at most 1.2 × 8 for each word of its rows, 200 for
                      each call, and 200 for its epoch
    restart           behind a fold; the target is 2 s and 1.15 of the load without a store
    with changes      before that fold
    sync              how long the disk took for a small record meanwhile

`--all`: every row of `bench.compare`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import timely
from bench import memory
from bench.cases import CASES, SMALL, Case, chosen
from bench.dataflow.job import Job
from bench.dataflow.measure import JOBS, load, timed_changes, warm_up
from bench.machine import ROOT
from timely.durable.answers.asking import ask
from timely.durable.folder_store import FolderStore
from timely.durable.log import Log
from timely.durable.store import Store
from timely.wire.batch import Frame

__all__ = ["again", "connected", "fold_now", "kill_all", "main", "named"]

_NAMES = ("bfs-100k-1M", "wcc-100k-1M", "count-1M-10M", "join-1M-1M", "count-10k-100k")
_SYNCS = ("none", "disk", "system")
_IN_FLIGHT = 1_000
_CHANGES = 200
_FOLD_SECONDS_MAX = 300.0

Figures = dict[str, float]


def connected(workers: int, sync: str, store: str) -> timely.Cluster:
    """Return a cluster of its own: one worker is embedded, several are processes. `sync` "none": no store."""
    if sync == "none":
        return timely.connect(workers=workers, embedded=workers == 1)
    return timely.connect(workers=workers, embedded=workers == 1, durable=store, sync=sync)


def named(build: Callable[..., object], name: str) -> Callable[..., object]:  # type: ignore[explicit-any]
    """The same query under another name: a durable cluster has one under each."""

    def query(flow: timely.Dataflow) -> object:
        return build(flow)

    query.__name__ = query.__qualname__ = name
    return query


def run(family: str, sizes: Sequence[int], workers: int, sync: str, store: str) -> Figures:
    """One run: it ends with the process, as a kill would end it."""
    job = JOBS[family](*sizes)
    with connected(workers, sync, store) as cluster:
        warm_up(cluster, family)
        memory.give_back()
        memory.reset_peaks()
        before = _bytes_in(store)
        frames = _counted_frames()
        flow = cluster.install(named(job.build, "measured"))
        begin = time.perf_counter()
        load(flow, job)
        load_seconds = time.perf_counter() - begin
        peak_mib = memory.peak_mib()
        log_bytes = _bytes_in(store) - before
        load_frames, before = sum(frames), _bytes_in(store)
        changes = min(_CHANGES, job.schedule.changes // 2)
        one_by_one = [timed_changes(flow, job, change, change + 1) for change in range(changes)]
        change_bytes = (_bytes_in(store) - before) / changes
        flights = min(_IN_FLIGHT, job.schedule.changes - changes)
        flight_ms = timed_changes(flow, job, changes, changes + flights)
        figures = {
            "load_s": load_seconds,
            "change_ms": statistics.median(one_by_one),
            "in_flight_ms": flight_ms,
            "peak_mib": peak_mib,
            "log_mib": log_bytes / 2**20,
            "log_share": log_bytes / load_frames if load_frames else 0.0,
            "change_bytes": change_bytes,
            "change_bytes_max": _change_bytes_max(job),
            "sync_ms": _sync_ms(store),
        }
        print(json.dumps(figures), flush=True)
        kill_all(cluster, workers)
        os._exit(0)


def kill_all(cluster: timely.Cluster, workers: int) -> None:
    """Kill the worker processes; an embedded worker ends with its own."""
    for worker in cluster.stats() if workers > 1 else ():
        os.kill(int(str(worker["process"])), signal.SIGKILL)


def _counted_frames() -> list[int]:
    """From now on, note the bytes of the frames of each record that this process logs."""
    sizes: list[int] = []
    add = Log.add

    def noting(log: Log, head: Sequence[object], frames: Sequence[Frame] = (), waits: bool = True) -> int:
        sizes.extend(memoryview(frame).nbytes for frame in frames)
        return add(log, head, frames, waits)

    setattr(Log, "add", noting)  # noqa: B010  # a method is no variable to mypy
    return sizes


def _change_bytes_max(job: Job) -> float:
    """The bytes that a change may take in the log: see the top."""
    rows = {name: 2 * job.schedule.step * job.multiples.get(name, 1) for name in job.changing}
    words: int = sum(rows[name] * (table.num_columns + 2) for name, table in job.changing.items())
    return float(1.2 * 8 * words + 200 * (2 * len(job.changing) + 1))


def again(job: Job, workers: int, sync: str, store: str, folds: bool = False) -> Figures:
    """How long from the start of the workers until the next epoch is complete. With `folds`, nobody needs
    earlier changes then, and a fold follows. Ends the process.
    """
    begin = time.perf_counter()
    with connected(workers, sync, store) as cluster:
        flow = cluster.install(named(job.build, "measured"))
        flow.seal(wait=True)
        figures = {"restart_s": time.perf_counter() - begin, "epoch": float(flow.epoch)}
        print(json.dumps(figures), flush=True)
        if folds:
            flow.output(job.output).forget(flow.epoch)
            fold_now(FolderStore(store), lambda: flow.seal(wait=True))
            kill_all(cluster, workers)
        os._exit(0)


def fold_now(store: Store, work: Callable[[], object]) -> None:
    """Ask for a fold, and `work` until it has ended."""
    request, until = ask(store), time.monotonic() + _FOLD_SECONDS_MAX
    work()
    while store.exists(request):
        if time.monotonic() > until:
            raise SystemExit(f"no fold ended within {_FOLD_SECONDS_MAX:.0f} s")
        work()


def _bytes_in(store: str) -> int:
    return sum(path.stat().st_size for path in Path(store).rglob("*.log"))


def _sync_ms(store: str) -> float:
    """The median time that the disk takes for a record of 100 bytes."""
    taken: list[float] = []
    with tempfile.NamedTemporaryFile(dir=store) as file:
        for _ in range(50):
            begin = time.perf_counter()
            os.write(file.fileno(), bytes(100))
            os.fdatasync(file.fileno())
            taken.append((time.perf_counter() - begin) * 1e3)
    return statistics.median(taken)


def _child(what: str, case: Case, workers: int, sync: str, store: str) -> Figures:
    command = [sys.executable, "-m", "bench.dataflow.durable", "--child", what, sync, store]
    command += [case.family, *map(str, case.sizes), "--workers", str(workers)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if not done.stdout.strip():
        raise SystemExit(f"{case.name} on {workers}, {sync}: {done.stderr[-2_000:]}")
    figures: Figures = json.loads(done.stdout.splitlines()[-1])
    return figures


def _round(case: Case, workers: int, found: dict[str, list[Figures]]) -> None:
    order = list(_SYNCS)
    random.shuffle(order)
    for sync in order:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as store:
            figures = _child("run", case, workers, sync, store)
            if sync != "none":
                figures["with_changes_s"] = _child("fold", case, workers, sync, store)["restart_s"]
                figures |= _child("again", case, workers, sync, store)
            found[sync].append(figures)


def _line(case: Case, workers: int, found: dict[str, list[Figures]]) -> str:
    def median(sync: str, name: str) -> float:
        return statistics.median(figures[name] for figures in found[sync])

    plain = {name: median("none", name) for name in ("load_s", "change_ms", "in_flight_ms", "peak_mib")}
    cells = [f"`{case.name}`", str(workers)]
    for name, unit in (("load_s", "s"), ("change_ms", "ms"), ("in_flight_ms", "ms"), ("peak_mib", "MiB")):
        cells.append(
            f"{plain[name]:.3g} {unit}; " + ", ".join(f"{median(sync, name):.3g}" for sync in _SYNCS[1:])
        )
    share = f" ({median('disk', 'log_share'):.2f} ×)" if workers == 1 else ""
    cells.append(f"{median('disk', 'log_mib'):.3g}{share}")
    cells.append(f"{median('disk', 'change_bytes'):,.0f} of {median('disk', 'change_bytes_max'):,.0f}")
    cells.append(f"{median('disk', 'restart_s'):.3g}, {2 + 1.15 * plain['load_s']:.3g}")
    cells.append(f"{median('disk', 'with_changes_s'):.3g}")
    cells.append(f"{median('disk', 'sync_ms'):.2g}")
    return "| " + " | ".join(cells) + " |"


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="what a store costs, beside the same without one")
    parser.add_argument("workload", nargs="*", default=_NAMES)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--all", action="store_true", help="every row of bench.compare")
    parser.add_argument("--small", action="store_true", help="sizes of which the figures mean nothing")
    parser.add_argument("--child", nargs=3, metavar=("WHAT", "SYNC", "STORE"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        what, sync, store = options.child
        family, *sizes = options.workload
        numbers = [int(size) for size in sizes]
        if what != "run":
            again(JOBS[family](*numbers), options.workers[0], sync, store, what == "fold")
        run(family, numbers, options.workers[0], sync, store)
        return
    columns = (
        "load | change | in flight | peak | log, MiB | log of a change, bytes | restart, target, s | "
        "with changes, s | sync, ms"
    )
    print(f"| workload | workers | {columns} |")
    print("|---" * 11 + "|")
    for case in chosen(SMALL if options.small else CASES, () if options.all else options.workload):
        for workers in options.workers:
            found: dict[str, list[Figures]] = {sync: [] for sync in _SYNCS}
            for _ in range(options.rounds):
                _round(case, workers, found)
            print(_line(case, workers, found), flush=True)


if __name__ == "__main__":
    main()
