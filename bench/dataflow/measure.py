"""How long does a workload take to load, and to follow each change, and what does it hold meanwhile?

A workload of `bench/workloads.py` through the public interface: the whole runtime with progress tracking,
one worker embedded in this process, or, with --workers 2, that many worker processes that are fed by this
one, or with --threads that many threads of this one. One JSON line on standard output with the keys of the
peers' programs (`bench/peers/README.md`). Times are from the first row handed over to the result being known;
kernels are compiled before. Memory is that of this process and its workers, `idle_mib` before the rows are
drawn and after a small run of the same dataflow.

    python -m bench.dataflow.measure WORKLOAD NUMBERS [--workers W [--threads]] [--batch B]
    python -m bench.dataflow.measure bfs 100000 200000 100 --workers 2

A change of few rows is handed over as tuples, as who changes one edge writes it; a larger one as a table.
With --batch B, B epochs are handed over as tables and then sealed at once, before the first is waited for.
"""

from __future__ import annotations

import argparse
import builtins
import gc
import importlib
import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeAlias, TypedDict

import numpy as np
import pyarrow as pa

import differential
import progress
import timely
from bench import memory
from bench.dataflow.job import Job
from bench.recomputation import believed
from bench.workloads import Check, CheckJson, RowRange

__all__ = [
    "JOBS",
    "Checked",
    "Figures",
    "connected",
    "load",
    "measured",
    "timed_changes",
    "verdict",
    "warm_up",
]


def _made(module: str, function: str, *sizes: int) -> Job:
    """A job of a neighbour, which is loaded for it: an older checkout has not what all of them import."""
    job: Job = getattr(importlib.import_module(f"bench.dataflow.{module}"), function)(*sizes)
    return job


JOBS: dict[str, Callable[..., Job]] = {  # type: ignore[explicit-any]  # three or four sizes
    family: partial(_made, *place)
    for family, place in {
        "wcc": ("wcc", "job"),
        "wcc-prioritised": ("wcc", "job_prioritised"),
        "bfs": ("bfs", "job"),
        "scc": ("scc", "job"),
        "scc-written": ("scc", "job_written"),
        "pagerank": ("pagerank", "job"),
        "count": ("count", "job"),
        "sum": ("sum", "job"),
        "join": ("join", "job"),
        "top": ("top", "job"),
        "q3": ("q3", "job"),
    }.items()
}
_WARM_UP_SIZES = {
    "wcc": (20_000, 20_000, 6),
    "wcc-prioritised": (20_000, 20_000, 6),
    "bfs": (8_000, 20_000, 6),
    "scc": (8_000, 20_000, 6),
    "scc-written": (8_000, 20_000, 6),
    "pagerank": (8_000, 20_000, 4),
    "q3": (20_000, 6, 100),
}
_WARM_UP_OTHERS = (60_000, 80_000, 6, 40)
"""Enough rows, and enough of other keys, for the kernels that only large runs need."""


class Figures(TypedDict):
    """What one run gives."""

    system: str
    packages: str
    workload: str
    workers: int
    batch: int
    load_seconds: float
    change_ms_median: float | None
    change_ms_p99: float | None
    change_ms_all: list[float]
    idle_mib: float
    peak_mib: float
    trace_rows: int | None
    trace_mib: float | None
    check_load: CheckJson
    check_changes: CheckJson


def connected(workers: int, threads: bool = False) -> timely.Cluster:
    """One worker in this process, or several processes, or threads."""
    if threads:
        return timely.connect(workers=workers, threads=True)
    return timely.connect(workers=workers, embedded=workers == 1)  # as an older checkout knows it, too


def warm_up(cluster: timely.Cluster, family: str) -> None:
    """A small run of the same dataflow, so that no kernel is compiled or read while the clock runs."""
    job = JOBS[family](*_WARM_UP_SIZES.get(family, _WARM_UP_OTHERS))
    flow = cluster.install(job.build)
    load(flow, job)
    Checked(flow, job).more()
    for first, end in ((0, 1), (1, 2), (2, job.schedule.changes)):  # one by one, and several in flight
        timed_changes(flow, job, first, end)
    for name in (*job.changing, *job.fixed):
        flow.input(name).close()
    gc.collect()


def measured(cluster: timely.Cluster, job: Job, batch: int = 1, idle_mib: float = 0.0) -> Figures:
    """Run the workload once; the figures and the checks."""
    memory.give_back()
    memory.reset_peaks()
    flow = cluster.install(job.build)
    begin = time.perf_counter()
    load(flow, job)
    load_seconds = time.perf_counter() - begin
    # The answer is read for its check, which is none of the workload's work: the peer's program adds it up as
    # it flows by.
    peak_mib = memory.peak_mib()
    checked = Checked(flow, job)
    loaded = check = checked.more()
    gc.collect()
    memory.reset_peaks()
    changes: list[float] = []
    for first in range(0, job.schedule.changes, batch):
        changes.append(timed_changes(flow, job, first, min(first + batch, job.schedule.changes)))
        check = check + checked.more()
    rows, size_bytes = (_in_traces(cluster, flow, name) for name in ("trace_rows", "trace_bytes"))
    return {
        "system": "naiad",
        "packages": str(_packages()),
        "workload": job.name,
        "workers": cluster.workers,
        "batch": batch,
        "load_seconds": load_seconds,
        "change_ms_median": _rank(changes, 50),
        "change_ms_p99": _rank(changes, 99),
        "change_ms_all": changes,
        "idle_mib": idle_mib,
        "peak_mib": max(peak_mib, memory.peak_mib()),
        "trace_rows": rows,
        "trace_mib": None if size_bytes is None else size_bytes / 2**20,
        "check_load": loaded.to_json(),
        "check_changes": check.to_json(),
    }


def verdict(figures: Figures) -> str | None:
    """What is wrong with the answer of a run, if anything."""
    agreed = believed(figures["workload"])
    found = [Check.from_json(figures[key]) for key in ("check_load", "check_changes")]
    if found == [agreed.load, agreed.changes]:
        return None
    return (
        f"{figures['workload']}: the answer has the checks {found[0]} | {found[1]}, "
        f"not {agreed.load} | {agreed.changes}"
    )


def load(flow: timely.Flow, job: Job) -> None:
    """All rows of epoch 0, until it is complete."""
    for name, rows in job.fixed.items():
        flow.input(name).insert(rows)
    for name, rows in job.changing.items():
        flow.input(name).insert(rows.slice(0, job.schedule_of(name).loaded))
    flow.seal(wait=True)


FEW_ROWS = 16
"""So many rows of a change its user writes down as tuples; more are a table."""

Rows: TypeAlias = "pa.Table | list[tuple[int, ...]]"
Slices = list[tuple[str, Rows, Rows]]
"""For each input its name, the rows that go and those that come."""


def _slices(job: Job, change: int) -> Slices:
    slices: Slices = []
    for name, rows in job.changing.items():
        schedule = job.schedule_of(name)
        removed, inserted = schedule.removed(change), schedule.inserted(change)
        slices.append((name, _handed_over(rows, removed), _handed_over(rows, inserted)))
    return slices


def _handed_over(table: pa.Table, rows: RowRange) -> Rows:
    """Some rows as they are written by who changes as many."""
    part = table.slice(rows.start, rows.stop - rows.start)
    if part.num_rows > FEW_ROWS:
        return part
    return list(zip(*(column.to_pylist() for column in part.columns), strict=True))


def timed_changes(flow: timely.Flow, job: Job, first: int, end: int) -> float:
    """Milliseconds for the changes from `first` to `end`, all in flight at once."""
    if end == first + 1:
        slices = _slices(job, first)
        begin = time.perf_counter()
        for name, removed, inserted in slices:
            flow.input(name).remove(removed)
            flow.input(name).insert(inserted)
        flow.seal(wait=True)
        return (time.perf_counter() - begin) * 1e3
    appends = _appends(job, first, end, flow.epoch)
    begin = time.perf_counter()
    for name, rows in appends.items():
        flow.input(name).append(rows, epoch="epoch", writer="changes", sequence=first)
    flow.seal(through=flow.epoch + end - first - 1, wait=True)
    return (time.perf_counter() - begin) * 1e3


def _appends(job: Job, first: int, end: int, epoch: int) -> dict[str, pa.Table]:
    """The changes of each input, one an epoch; `epoch` is that of the first."""
    found = {}
    for name, rows in job.changing.items():
        schedule = job.schedule_of(name)
        parts = [
            rows.slice(part.start, schedule.step)
            for change in range(first, end)
            for part in (schedule.removed(change), schedule.inserted(change))
        ]
        epochs = np.repeat(np.arange(epoch, epoch + end - first), 2 * schedule.step)
        diffs = np.tile(np.repeat([-1, 1], schedule.step), end - first)
        changed = pa.concat_tables(parts).combine_chunks()
        found[name] = changed.append_column("epoch", pa.array(epochs)).append_column("diff", pa.array(diffs))
    return found


class Checked:
    """The check sums of an output, as it changes."""

    def __init__(self, flow: timely.Flow, job: Job) -> None:
        self._output = flow.output(job.output)
        self._check = job.check

    def more(self) -> Check:
        """Those of what has changed since the last call."""
        changes = self._output.changes()
        self._output.forget()
        columns = {name: changes.column(name).to_numpy() for name in changes.column_names}
        return self._check(columns, columns["diff"])


def _in_traces(cluster: timely.Cluster, flow: timely.Flow, counter: str) -> int | None:
    """What the operators of a dataflow say that they remember, on all workers; None if none says it."""
    said: list[int] = []
    for worker in cluster.stats():
        match worker["dataflows"]:
            case dict(dataflows):
                match dataflows[flow.index]:
                    case {"stages": list(stages)}:
                        said += [
                            stage[counter] for stage in stages if isinstance(stage, dict) and counter in stage
                        ]
    return builtins.sum(said) if said else None


def _rank(milliseconds: list[float], percent: int) -> float | None:
    """The least that at least so many do not exceed, as the peers count."""
    return float(np.percentile(milliseconds, percent, method="inverted_cdf")) if milliseconds else None


def _packages() -> Path:
    """The checkout whose packages are measured: all three of the same one."""
    (folder,) = {
        Path(str(package.__file__)).resolve().parent.parent for package in (progress, timely, differential)
    }
    return folder


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="one run of one workload")
    parser.add_argument("workload", choices=sorted(JOBS))
    parser.add_argument(
        "sizes", type=int, nargs="+", metavar="NUMBERS", help="as bench/workloads.py has them"
    )
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--threads", action="store_true")
    parser.add_argument("--batch", type=int, default=1)
    options = parser.parse_args()
    with connected(options.workers, options.threads) as cluster:
        warm_up(cluster, options.workload)
        memory.give_back()
        idle_mib = memory.resident_mib()
        figures = measured(cluster, JOBS[options.workload](*options.sizes), options.batch, idle_mib)
    print(json.dumps(figures))
    sys.exit(verdict(figures))


if __name__ == "__main__":
    main()
