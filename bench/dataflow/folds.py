"""What does a fold cost those who work beside it, and does a restart follow what the inputs hold?

    python -m bench.dataflow.folds [WORKLOAD …] [--workers 1 2] [--rounds 3] [--small]

For each workload and number of workers a durable cluster loads, and follows changes one by one: some while no
fold runs ("change"), and some while one does ("beside a fold"). Then it makes ten times as many, which the
only reader forgets. Restarts are timed from the start of the workers until the next epoch is complete:
after the first changes and a fold ("restart"), and after all of them and a fold ("10 × the epochs"). Figures
are medians over the rounds. Prints a table.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from bench.cases import CASES, SMALL, Case, chosen
from bench.dataflow.durable import again, connected, fold_now, kill_all, named
from bench.dataflow.job import Job
from bench.dataflow.measure import JOBS, load, timed_changes, warm_up
from bench.machine import ROOT
from timely.client.session import Flow
from timely.durable.folder_store import FolderStore
from timely.durable.store import Store

__all__ = ["main"]

_NAMES = ("bfs-100k-1M", "wcc-100k-1M", "count-1M-10M", "join-1M-1M")
_FEW = 100
_MANY = 10 * _FEW
_BESIDE_MAX = 2_000

Figures = dict[str, float]


def _run(case: Case, workers: int, store: str) -> Figures:
    """Load, change, and change beside a fold; it ends with the process, as a kill would end it."""
    job = _job(case)
    with connected(workers, "disk", store) as cluster:
        warm_up(cluster, case.family)
        flow = cluster.install(named(job.build, "measured"))
        load(flow, job)
        alone = [timed_changes(flow, job, change, change + 1) for change in range(_FEW)]
        flow.output(job.output).forget(flow.epoch)
        beside = _beside_a_fold(flow, job, FolderStore(store), _FEW)
        flow.output(job.output).forget(flow.epoch)
        figures = {"change_ms": statistics.median(alone), "beside_ms": statistics.median(beside)}
        print(json.dumps(figures), flush=True)
        kill_all(cluster, workers)
        os._exit(0)


def _more(case: Case, workers: int, store: str) -> Figures:
    """Make many more changes; then fold."""
    job = _job(case)
    with connected(workers, "disk", store) as cluster:
        flow = cluster.install(named(job.build, "measured"))
        first = _FEW + _BESIDE_MAX
        timed_changes(flow, job, first, first + _MANY)
        flow.output(job.output).forget(flow.epoch)
        fold_now(FolderStore(store), lambda: flow.seal(wait=True))
        flow.output(job.output).forget(flow.epoch)
        print(json.dumps({}), flush=True)
        kill_all(cluster, workers)
        os._exit(0)


def _job(case: Case) -> Job:
    return JOBS[case.family](*case.with_changes(_FEW + _BESIDE_MAX + _MANY).sizes)


def _beside_a_fold(flow: Flow, job: Job, store: Store, first: int) -> list[float]:
    """The times of the changes that were made during a fold, or while it was asked for."""
    taken: list[float] = []

    def change() -> None:
        if len(taken) < _BESIDE_MAX:
            at = first + len(taken)
            taken.append(timed_changes(flow, job, at, at + 1))
        else:
            flow.seal(wait=True)

    fold_now(store, change)
    return taken


def _child(what: str, case: Case, workers: int, store: str) -> Figures:
    command = [sys.executable, "-m", "bench.dataflow.folds", "--child", what, store]
    command += [case.family, *map(str, case.sizes), "--workers", str(workers)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if not done.stdout.strip():
        raise SystemExit(f"{case.name} on {workers}, {what}: {done.stderr[-2_000:]}")
    figures: Figures = json.loads(done.stdout.splitlines()[-1])
    return figures


def _round(case: Case, workers: int) -> Figures:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as store:
        figures = _child("run", case, workers, store)
        figures["restart_s"] = _child("again", case, workers, store)["restart_s"]
        _child("more", case, workers, store)
        figures["later_s"] = _child("again", case, workers, store)["restart_s"]
    return figures


def _line(case: Case, workers: int, rounds: Sequence[Figures]) -> str:
    change, beside, restart, later = (
        statistics.median(each[name] for each in rounds)
        for name in ("change_ms", "beside_ms", "restart_s", "later_s")
    )
    cells = [
        f"`{case.name}`",
        str(workers),
        f"{change:.3g} ms",
        f"{beside:.3g} ms ({beside / change:.2f} ×)",
        f"{restart:.3g} s",
        f"{later:.3g} s ({later / restart:.2f} ×)",
    ]
    return "| " + " | ".join(cells) + " |"


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="what a fold costs those who work beside it")
    parser.add_argument("workload", nargs="*", default=_NAMES)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--small", action="store_true", help="sizes of which the figures mean nothing")
    parser.add_argument("--child", nargs=2, metavar=("WHAT", "STORE"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        what, store = options.child
        family, *sizes = options.workload
        case = Case(family.replace("-", " "), tuple(map(int, sizes)))
        if what == "again":
            again(_job(case), options.workers[0], "disk", store)
        {"run": _run, "more": _more}[what](case, options.workers[0], store)
        return
    print("| workload | workers | change | beside a fold | restart | 10 × the epochs |")
    print("|---|---|---|---|---|---|")
    names = () if options.small and tuple(options.workload) == _NAMES else options.workload
    for case in chosen(SMALL if options.small else CASES, names):
        for workers in options.workers:
            rounds = [_round(case, workers) for _ in range(options.rounds)]
            print(_line(case, workers, rounds), flush=True)


if __name__ == "__main__":
    main()
