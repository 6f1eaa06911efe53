"""How long do the rules of `examples/galen.py` take to load and to follow a change, beside Rust and DuckDB?

    python -m bench.galen FOLDER [--share 0.1 0.3] [--changes 50] [--systems ours Rust DuckDB] [--write FILE]

Each run is a process of its own, one worker, one thread. Processor time and memory are those of the process,
its start and the reading of the files included, as the operating system counts them for all three alike; load
and changes are by each program's own clock. Rust is given the files as text, as it reads no compressed ones;
DuckDB computes all from scratch and follows no changes. A run whose facts are not as many as those of the
first system is an error.
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
from dataclasses import dataclass
from pathlib import Path

from pyarrow import csv

from bench.machine import ROOT, versions
from bench.systems import PEER_PROGRAM
from examples.galen import SCHEMAS, read

__all__ = ["Run", "main", "run", "table"]

SYSTEMS = ("ours", "Rust", "DuckDB")


@dataclass(frozen=True)
class Run:
    """What one program took for one share of the facts; changes are None where it follows none."""

    system: str
    share: float
    p: int
    q: int
    load_seconds: float
    cpu_seconds: float
    peak_mib: int
    median_ms: float | None = None
    worst_ms: float | None = None


def run(system: str, folder: Path, share: float, changes: int) -> Run:
    """Run a system once; raises RuntimeError if it fails, or has other facts at the end than at first."""
    if system == "DuckDB":
        given = [sys.executable, "-m", "bench.peers.galen_duckdb", str(folder), "--share", str(share)]
        ((said,), cpu, peak) = _watched(given)
        return Run(system, share, *_facts(said), _number(said["seconds"]), cpu, peak)
    if system == "ours":
        given = [sys.executable, "-m", "examples.galen", str(folder), "--share", str(share), "--json"]
        ((loaded, last), cpu, peak) = _watched([*given, "--changes", str(changes)])
        median, worst = _number(last["median_ms"]), _number(last["worst_ms"])
        at_last = _facts(last)
    else:
        with tempfile.TemporaryDirectory(prefix="galen-") as plain:
            for name in SCHEMAS:
                options = csv.WriteOptions(include_header=False)
                csv.write_csv(read(folder, name, share), Path(plain, f"{name}.txt"), options)
            ((loaded,), cpu, peak) = _watched([str(PEER_PROGRAM), "galen", str(changes), plain])
        all_ms = loaded["change_ms_all"]
        assert isinstance(all_ms, list)
        times = [_number(ms) for ms in all_ms]
        median, worst = statistics.median(times), max(times)
        at_last = _facts(loaded, "_last")
    at_first = _facts(loaded)
    if at_last != at_first:
        raise RuntimeError(f"{system}: {at_first} facts at first, but {at_last} when all was put back")
    return Run(system, share, *at_first, _number(loaded["seconds"]), cpu, peak, median, worst)


def _facts(said: dict[str, object], when: str = "") -> tuple[int, int]:
    return int(_number(said[f"p{when}"])), int(_number(said[f"q{when}"]))


def _number(said: object) -> float:
    assert isinstance(said, int | float), said
    return float(said)


def _watched(command: Sequence[str]) -> tuple[list[dict[str, object]], float, int]:
    """The lines of JSON that a program prints, its processor seconds, and its memory at most, in MiB."""
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = process.stdout.read().splitlines()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0 or not lines:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    return [json.loads(line) for line in lines], used.ru_utime + used.ru_stime, used.ru_maxrss >> 10


def table(runs: Sequence[Run]) -> str:
    """Markdown: a row for each run."""
    lines = [
        "| share | system | facts of p | facts of q | load, s | CPU in all, s | memory, MiB "
        "| change, median / worst, ms |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for one in runs:
        change = "–" if one.median_ms is None else f"{one.median_ms:.2f} / {one.worst_ms:.1f}"
        lines.append(
            f"| {one.share:g} | {one.system} | {one.p:,} | {one.q:,} | {one.load_seconds:.1f} "
            f"| {one.cpu_seconds:.1f} | {one.peak_mib:,} | {change} |"
        )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="galen: ours beside Rust and DuckDB")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--share", type=float, nargs="+", default=[0.1, 0.3])
    parser.add_argument("--changes", type=int, default=50, help="facts that go and come back")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument("--write", type=Path, help="a Markdown file for the table")
    options = parser.parse_args(arguments)
    runs: list[Run] = []
    for share in options.share:
        for system in options.systems:
            runs.append(run(system, options.folder.resolve(), share, options.changes))
            first = next(one for one in runs if one.share == share)
            if (runs[-1].p, runs[-1].q) != (first.p, first.q):
                raise RuntimeError(f"{runs[-1]} has not the facts of {first}")
            text = f"{table(runs)}\n\nMachine: {versions()}; load average {os.getloadavg()[0]:.1f}.\n"
            if options.write is not None:
                options.write.write_text(text)
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
