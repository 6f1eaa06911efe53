"""Two systems, the same workload, in turn: what is the ratio?

Runs ours and a peer's program alternately, each as a process of its own, and writes a table with the ratio
pair by pair: figures of one run can be compared, figures of two machines or two days cannot. A run counts
only if the checks of both systems agree with the table of the workload.

    python -m bench.compare [--runs 5] [--peer PROGRAM] [--write FILE] [NODES EDGES CHANGES]

The peer's program is built as `bench/peers/README.md` says.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import cast

FIGURES = {
    "load_seconds": ("load, s", 2),
    "change_ms_median": ("change, median, ms", 2),
    "change_ms_p99": ("change, 99 %, ms", 1),
    "peak_mib": ("peak, MiB", 0),
}
_PEER = "bench/peers/differential_dataflow/target/release/ddpeer"

Run = dict[str, object]


def run(command: Sequence[str]) -> Run:
    """The JSON line that a program of ours or a peer's prints."""
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    if finished.returncode != 0:
        raise SystemExit(
            f"{' '.join(command)} ended with {finished.returncode}:\n{finished.stderr.strip()[-2000:]}"
        )
    return cast(Run, json.loads(finished.stdout.splitlines()[-1]))


def table(ours: Sequence[Run], peers: Sequence[Run]) -> str:
    """Medians, and the median and range of the ratio pair by pair."""
    lines = ["| figure | ours | peer | ours / peer: median (range) |", "|---|---|---|---|"]
    for key, (label, digits) in FIGURES.items():
        mine = [float(cast(float, one[key])) for one in ours]
        theirs = [float(cast(float, one[key])) for one in peers]
        ratios = [a / b for a, b in zip(mine, theirs, strict=True)]
        lines.append(
            f"| {label} | {statistics.median(mine):.{digits}f} | {statistics.median(theirs):.{digits}f} | "
            f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) |"
        )
    return "\n".join(lines)


def machine() -> str:
    """What the figures were taken on, and which commit they are of."""
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False
    )
    model = next(
        (
            line.split(":")[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in line
        ),
        "?",
    )
    versions = ", ".join(f"{name} {version(name)}" for name in ("numpy", "numba", "pyarrow"))
    python = platform.python_version()
    return (
        f"{model}, {os.cpu_count()} cores; Python {python}, {versions}; commit {commit.stdout.strip() or '?'}"
    )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="wcc plain, ours beside differential-dataflow")
    parser.add_argument("sizes", type=int, nargs="*", default=[100_000, 200_000, 100])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--peer", default=_PEER)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    sizes = [str(size) for size in options.sizes]
    ours: list[Run] = []
    peers: list[Run] = []
    for number in range(options.runs):
        ours.append(run([sys.executable, "-m", "bench.dataflow.wcc", *sizes]))
        peers.append(run([options.peer, "wcc", "plain", *sizes]))
        for key in ("check_load", "check_changes"):
            if ours[-1][key] != peers[-1][key]:
                raise SystemExit(
                    f"run {number}: the checks differ: ours {ours[-1][key]}, the peer's {peers[-1][key]}"
                )
        sys.stderr.write(
            f"run {number + 1} of {options.runs}, load average {os.getloadavg()[0]:.1f}\n"
            f"{table(ours[-1:], peers[-1:])}\n"
        )
    text = (
        f"## wcc plain {' '.join(sizes)}, one worker each\n\n{table(ours, peers)}\n\n"
        f"{options.runs} pairs of runs in turn, {datetime.now(UTC):%Y-%m-%d}. "
        f"Peer: {peers[0]['system']}, release build. Machine: {machine()}.\n"
    )
    print(text)
    if options.write is not None:
        options.write.write_text(text)


if __name__ == "__main__":
    main()
