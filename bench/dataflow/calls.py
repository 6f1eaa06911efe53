"""What does one call of a client cost: insert, remove, seal and wait of one row, and 1,000 epochs in flight?

A collection of two whole numbers, or of a number, a text and a float, that goes straight to an output: what
is measured is the way in, and not the work. Each change is one row in, one row out, a seal and a wait.
Figures are medians, and of processor time, which other work on the machine does not lengthen much, means of
this process. Checkouts are run in turn, each run in a process of its own.

    python -m bench.dataflow.calls [--workers 0 1 2] [--runs 3] [--against FOLDER]

0 workers: one, embedded. One line of a Markdown table for each run.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import differential as dd
import timely

ROOT: Final = Path(__file__).resolve().parents[2]
CALLS: Final = ("insert", "remove", "seal", "wait")
COLUMNS: Final = (
    "µs: insert",
    "remove",
    "seal",
    "wait",
    "together",
    "processor",
    "ms: 1,000 in flight",
    "processor",
)
Row = tuple[object, ...]

FORMS: dict[str, tuple[str, Callable[[int], Row]]] = {
    "numbers": ("src: int, dst: int", lambda n: (n, n + 1)),
    "text": ("src: int, name: string, x: float?", lambda n: (n, "abc", 1.5)),
}


def changes(flow: timely.Flow, row: Callable[[int], Row], count: int) -> list[float]:
    """Microseconds: medians of each call and of a change, and processor time of a change."""
    edges, clock = flow.input("edges"), time.perf_counter
    took: list[list[float]] = []
    began = time.process_time()
    for n in range(count):
        times = [clock()]
        edges.insert([row(n + count)])
        times.append(clock())
        edges.remove([row(n)])
        times.append(clock())
        flow.seal()
        times.append(clock())
        flow.wait()
        times.append(clock())
        took.append([*(b - a for a, b in zip(times, times[1:], strict=False)), times[-1] - times[0]])
    processor = (time.process_time() - began) / count
    return [1e6 * each for each in (*map(statistics.median, zip(*took, strict=True)), processor)]


def in_flight(flow: timely.Flow, row: Callable[[int], Row]) -> list[float]:
    """Milliseconds, and those of processor time, for 1,000 epochs before the first is waited for."""
    edges, began, processor = flow.input("edges"), time.perf_counter(), time.process_time()
    for n in range(1_000):
        edges.insert([row(n)])
        flow.seal()
    flow.wait()
    return [1e3 * (time.perf_counter() - began), 1e3 * (time.process_time() - processor)]


def measured(workers: int, count: int) -> dict[str, list[float]]:
    """By form of rows, the figures of one run."""
    found: dict[str, list[float]] = {}
    with timely.connect(workers=workers or 1, embedded=workers == 0) as cluster:
        for form, (spec, row) in FORMS.items():
            flow = cluster.install(
                lambda dataflow, spec=spec: dd.input(dataflow, "edges", spec).output("all")
            )
            flow.input("edges").insert([row(n) for n in range(count)])
            flow.seal(wait=True)
            changes(flow, row, 50)
            found[form] = [*changes(flow, row, count), *in_flight(flow, row)]
    return found


def run(folder: Path, workers: int, count: int) -> dict[str, list[float]]:
    """The same by another process, with the packages of `folder`."""
    command = [sys.executable, __file__, "--one", str(workers), "--changes", str(count)]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    ended = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=True)
    found: dict[str, list[float]] = json.loads(ended.stdout.splitlines()[-1])
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--changes", type=int, default=500)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.one is not None:
        print(json.dumps(measured(given.one, given.changes)))
        return
    systems = {"this": ROOT} if given.against is None else {"before": given.against.resolve(), "this": ROOT}
    print(f"| workers | rows | checkout | {' | '.join(COLUMNS)} |\n|{'---|' * (3 + len(COLUMNS))}")
    for workers in given.workers:
        for _ in range(given.runs):
            for system, folder in systems.items():
                for form, figures in run(folder, workers, given.changes).items():
                    listed = " | ".join(f"{figure:,.0f}" for figure in figures)
                    print(f"| {workers or 'embedded'} | {form} | {system} | {listed} |", flush=True)


if __name__ == "__main__":
    main()
