"""What does a load take, of memory and of the processor, beside another checkout of this repository?

    python -m bench.dataflow.loads count 1000000 10000000 --against ../before [--workers 1] [--rounds 5]

A process for each checkout and round, which draws its rows, loads them after a small run of the same
dataflow, and ends; in turn, in an order drawn anew. Told are the ratio of neighbours, and medians: *peak*,
what all processes took at most while they loaded, above what they took before the rows were drawn;
*processor*, the time of all their threads. Elapsed time is told, too, but for a machine that is never quiet
it says little.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bench import memory
from bench.dataflow.measure import JOBS, connected, load, warm_up

__all__ = ["Figures", "main", "told"]

_HERE: Final = Path(__file__).resolve().parents[2]
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_CHANGES: Final = {"count": (2, 1000), "sum": (2, 1000), "join": (2, 1000)}
"""What stands behind the sizes of a load; of other workloads: how many changes, of which none is made."""

Figures = dict[str, float]
"""peak_mib, processor_s and elapsed_s of one load."""


def _processor_seconds() -> float:
    """What this process and those that it has started have used so far."""
    used = 0
    for process in memory.processes():
        try:
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        used += int(fields[11]) + int(fields[12])
    return used / _TICKS


def _one(family: str, sizes: Sequence[int], workers: int) -> Figures:
    """A load, in this process."""
    with connected(workers) as cluster:
        warm_up(cluster, family)
        memory.reset_peaks()
        idle_mib = memory.resident_mib()
        job = JOBS[family](*sizes, *_CHANGES.get(family, (2,)))
        flow = cluster.install(job.build)
        memory.reset_peaks()
        began, used = time.perf_counter(), _processor_seconds()
        load(flow, job)
        elapsed, used = time.perf_counter() - began, _processor_seconds() - used
        peak_mib = max(memory.peak_mib() - idle_mib, 1 / 256)
        # Less than a page, or than a tick of the system, is told as one, by which others can be divided.
        return {"peak_mib": peak_mib, "processor_s": max(used, 1 / _TICKS), "elapsed_s": elapsed}


def _elsewhere(folder: Path, arguments: Sequence[str]) -> Figures:
    """The same in a process of its own, with the packages of the checkout `folder`."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(folder), str(_HERE)))}
    command = [sys.executable, "-c", _PROGRAM.format(bench=str(_HERE / "bench")), *arguments, "--one"]
    done = subprocess.run(command, env=environment, cwd=folder, stdout=subprocess.PIPE, text=True, check=True)
    figures: Figures = json.loads(done.stdout.splitlines()[-1])
    return figures


_PROGRAM: Final = """
import sys, importlib.util
spec = importlib.util.spec_from_file_location(
    "bench", "{bench}/__init__.py", submodule_search_locations=["{bench}"]
)
sys.modules["bench"] = importlib.util.module_from_spec(spec)
from bench.dataflow.loads import main
main(sys.argv[1:])
"""
"""The programs of this checkout, whatever the other one has, on the packages of the other one."""


def told(ours: Sequence[Figures], theirs: Sequence[Figures]) -> list[str]:
    """A line for each figure: the ratio of neighbours with its range, and both medians."""
    lines = []
    for name in ("peak_mib", "processor_s", "elapsed_s"):
        ratios = sorted(a[name] / b[name] for a, b in zip(ours, theirs, strict=True))
        here, there = (statistics.median(one[name] for one in figures) for figures in (ours, theirs))
        lines.append(
            f"{name}: {statistics.median(ratios):.2f} ({ratios[0]:.2f}-{ratios[-1]:.2f}), "
            f"{here:.2f} / {there:.2f}"
        )
    return lines


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="a load beside that of another checkout")
    parser.add_argument("workload", choices=sorted(JOBS))
    parser.add_argument("sizes", type=int, nargs="+", metavar="NUMBERS")
    parser.add_argument("--against", type=Path, metavar="FOLDER")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--one", action="store_true", help="one load, in this process")
    options = parser.parse_args(arguments)
    if options.one:
        print(json.dumps(_one(options.workload, options.sizes, options.workers)))
        return
    passed = [options.workload, *map(str, options.sizes), "--workers", str(options.workers)]
    folders = [_HERE] if options.against is None else [_HERE, options.against.resolve()]
    found: dict[Path, list[Figures]] = {folder: [] for folder in folders}
    for _ in range(options.rounds):
        for folder in random.sample(folders, len(folders)):
            found[folder].append(_elsewhere(folder, passed))
    if options.against is None:
        print("\n".join(map(json.dumps, found[_HERE])))
        return
    print(f"{' '.join(passed)}, {options.rounds} rounds")
    print("\n".join(told(found[_HERE], found[folders[1]])))


if __name__ == "__main__":
    main()
