"""What does it cost to have half of the memory, or less: how do times grow as the budget shrinks?

Each run is a process of its own with one embedded worker. The first run of a shape spills nothing, and says
how much memory the shape takes; the others get a budget that is a share of that. Shapes:

    wcc       connected components of a graph, in a compiled loop; a change replaces an edge
    count     rows by key, half as many keys as rows; a change replaces a row
    texts     rows by a text of 40 characters, all different; a change replaces a row
    again     the same texts once more, in another order: each that has gone into a file comes back. Here
              we should lose most

Memory is anonymous resident memory (`RssAnon`) above that of the idle process, the most of samples taken each
20 ms while rows are loaded. Pages of files are not in it: the system drops them when it needs the room.
With --limited the process is in a group whose whole memory, pages of files included, is limited to what it
has idle, and that share of what the shape takes. That needs root, and memory control groups.

Times are of the processor, and by the clock: on a machine with other work the first say more. The answers of
all runs of a shape have to be the same.

    python -m bench.dataflow.spill [--shapes wcc …] [--sizes 200000 …] [--shares 0.5 …] [--limited]
    python -m bench.dataflow.spill --shapes wcc count --sizes 4000000 100000000 --shares 0.5 --limited
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Literal, TypedDict

import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure

import differential as dd
import timely
from bench.machine import machine
from differential import algorithms
from timely.spilling.file_memory import bytes_in_files

__all__ = ["Run", "draw", "main", "markdown", "run_once"]

SIZES = {"wcc": 200_000, "count": 4_000_000, "texts": 400_000, "again": 400_000}
"""Nodes of wcc, with twice as many edges; rows of the others."""
SHARES = (0.5, 0.25, 0.125)
CHANGES = 60
PIECE = 2_000_000
_GROUPS = {"/sys/fs/cgroup/memory": "memory.limit_in_bytes", "/sys/fs/cgroup": "memory.max"}
"""Where groups of processes are made, and which of their files limits memory; the older kind first."""
_COLOURS = {"wcc": "#1f6fb4", "count": "#c0392b", "texts": "#2b8a3e", "again": "#8e44ad"}


class Run(TypedDict):
    """What one process has measured. Shares are of the memory that the shape takes without a folder."""

    shape: str
    size: int
    share: float
    limited: bool
    load_seconds: float
    load_processor: float
    change_ms: float
    change_clock_ms: float
    worst_ms: float
    plain_mib: float
    peak_mib: float
    files_mib: float
    faults: int
    answer: int


@timely.builder
def _components(flow: timely.Dataflow) -> None:
    algorithms.connected_components(dd.input(flow, "rows", "src: int, dst: int")).output("answer")


@timely.builder
def _counts(flow: timely.Dataflow) -> None:
    dd.input(flow, "rows", "key: int").group_by("key").agg(n=dd.count()).output("answer")


@timely.builder
def _texts(flow: timely.Dataflow) -> None:
    dd.input(flow, "rows", "text: str").group_by("text").agg(n=dd.count()).output("answer")


_BUILDERS = {"wcc": _components, "count": _counts, "texts": _texts, "again": _texts}


def _pieces(shape: str, size: int) -> Iterator[pa.Table]:
    """Yield the rows of a shape, always the same, some at a time: all of them would be in memory besides."""
    rng = np.random.default_rng(7)
    if shape in ("texts", "again"):
        for order in range(1 + (shape == "again")):
            numbers = np.random.default_rng(order).permutation(size)
            for first in range(0, size, PIECE // 10):
                piece = numbers[first : first + PIECE // 10].tolist()
                yield pa.table({"text": [f"{number:040d}" for number in piece]})
        return
    rows = 2 * size if shape == "wcc" else size
    for first in range(0, rows, PIECE):
        count = min(PIECE, rows - first)
        if shape == "wcc":
            yield pa.table({name: rng.integers(0, size, count).astype(np.int32) for name in ("src", "dst")})
        else:
            yield pa.table({"key": rng.integers(0, size // 2, count).astype(np.int32)})


class _Peak:
    """The most anonymous memory of this process, looked at by a thread until the end of `with`."""

    def __init__(self) -> None:
        self.mib, self.files = 0.0, 0.0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> _Peak:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._is_over.wait(0.02):
            self.mib = max(self.mib, _anonymous_mib())
            self.files = max(self.files, bytes_in_files() / 2**20)


def _anonymous_mib() -> float:
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1024


def _faults() -> int:
    """Return how often this process has waited for a page from the disk."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_majflt


def _limit(mib: float) -> str:
    """Put this process into a new group with so much memory; return the folder of the group."""
    for root, limit in _GROUPS.items():
        group = Path(root, f"naiad-spill-{os.getpid()}")
        with suppress(OSError):
            group.mkdir()
            (group / limit).write_text(str(int(mib * 2**20)))
            (group / "cgroup.procs").write_text(str(os.getpid()))
            return str(group)
    raise SystemExit("spill: --limited needs root, and memory control groups that can be made")


def run_once(shape: str, size: int, share: float, taken_mib: float, folder: str, is_limited: bool) -> Run:
    """Load a shape, and change it. `share` of `taken_mib` is the budget; 1: nothing is spilled."""
    warm = SIZES[shape] // 20
    with timely.connect(workers=1, embedded=True) as cluster:
        _load(cluster.install(_BUILDERS[shape]), shape, warm)
    idle = _anonymous_mib()
    if is_limited:
        _limit(idle + 64 + share * taken_mib)  # 64: pages of the program, and what the budget does not count
    options = {} if share == 1 else {"spill": folder, "memory": int(share * taken_mib * 2**20)}
    with timely.connect(workers=1, embedded=True, **options) as cluster:  # type: ignore[arg-type]
        faults = _faults()
        flow = cluster.install(_BUILDERS[shape])
        with _Peak() as peak:
            began, processor = time.perf_counter(), time.process_time()
            _load(flow, shape, size)
            seconds, processor = time.perf_counter() - began, time.process_time() - processor
        flow.output("answer").forget()
        old = next(_pieces(shape, size))
        changes: list[float] = []
        by_clock: list[float] = []
        for number in range(CHANGES):
            row = old.slice(number, 1)
            began, processor_began = time.perf_counter(), time.process_time()
            flow.input("rows").remove(row)
            flow.input("rows").insert(old.slice(old.num_rows - 1 - number, 1))
            flow.wait(flow.seal())
            changes.append(1_000 * (time.process_time() - processor_began))
            by_clock.append(1_000 * (time.perf_counter() - began))
            flow.output("answer").forget()
        plain, faults = _anonymous_mib() - idle, _faults() - faults
        answer = _checksum(flow.output("answer").snapshot()) if not is_limited else 0
    return {
        "shape": shape, "size": size, "share": share, "limited": is_limited, "load_seconds": seconds,
        "load_processor": processor, "change_ms": median(changes), "change_clock_ms": median(by_clock),
        "worst_ms": max(by_clock if is_limited else changes),
        "plain_mib": plain, "peak_mib": peak.mib - idle, "files_mib": peak.files, "faults": faults,
        "answer": answer,
    }  # fmt: skip


def _load(flow: timely.Flow, shape: str, size: int) -> None:
    for piece in _pieces(shape, size):
        flow.input("rows").insert(piece)
    flow.wait(flow.seal())


def _checksum(table: pa.Table) -> int:
    """Return a number that is the same for the same rows in any order."""
    first, second = table.columns[0], table.columns[1].to_numpy()
    keys = first.cast(pa.int64()).to_numpy() if pa.types.is_integer(first.type) else np.arange(len(first))
    with np.errstate(over="ignore"):
        mixed = (keys.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) ^ second.astype(np.uint64)
        return int((mixed * np.uint64(0xBF58476D1CE4E5B9)).sum() >> np.uint64(1))


def _in_a_process(
    shape: str, size: int, share: float, taken: float, folder: str, limited: bool
) -> Run | None:
    """Return the figures of a run in a process of its own; None if it was ended for want of memory."""
    command = [
        sys.executable,
        "-m",
        "bench.dataflow.spill",
        "--once",
        shape,
        str(size),
        str(share),
        str(taken),
    ]
    with subprocess.Popen(
        [*command, folder, str(int(limited))], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as done:
        out, err = done.communicate()
    for root in _GROUPS:
        with suppress(OSError):
            Path(root, f"naiad-spill-{done.pid}").rmdir()
    if done.returncode:
        print(f"{shape} {size:,} at {share:g}: ended by {done.returncode}\n{err[-2000:]}", flush=True)
        return None
    run: Run = json.loads(out)
    print(json.dumps(run), flush=True)
    return run


def _measured(args: argparse.Namespace, folder: str) -> list[Run]:
    runs: list[Run] = []
    for number, shape in enumerate(args.shapes):
        size = args.sizes[number] if number < len(args.sizes) else SIZES[shape]
        first = _in_a_process(shape, size, 1.0, 0.0, folder, False)
        if first is None:
            continue
        runs.append(first)
        for share in args.shares:
            run = _in_a_process(shape, size, share, first["peak_mib"], folder, args.limited)
            if run is not None:
                assert args.limited or run["answer"] == first["answer"], "another answer"
                runs.append(run)
    return runs


def markdown(runs: Sequence[Run]) -> str:
    """Return the table of the runs."""
    lines = [
        "| shape | budget | load, s: processor, clock | × | a change, ms: median, worst | × | "
        "peak in memory, MiB | left in memory, MiB | in files, MiB | reads of the disk |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    first = {(run["shape"], run["size"]): run for run in runs if run["share"] == 1}
    for run in runs:
        base = first[run["shape"], run["size"]]
        what = "none" if run["share"] == 1 else f"{run['share']:g} of the peak{', limited' * run['limited']}"
        key: Literal["change_clock_ms", "change_ms"] = "change_clock_ms" if run["limited"] else "change_ms"
        times = [each["load_seconds" if run["limited"] else "load_processor"] for each in (run, base)]
        lines.append(
            f"| {run['shape']} {run['size']:,} | {what} | {run['load_processor']:.1f}, "
            f"{run['load_seconds']:.1f} | {times[0] / times[1]:.2f} | "
            f"{run[key]:.2f}, {run['worst_ms']:.1f} | {run[key] / base[key]:.2f} | "
            f"{run['peak_mib']:.0f} | {run['plain_mib']:.0f} | {run['files_mib']:.0f} | {run['faults']:,} |"
        )
    return "\n".join(lines)


def draw(runs: Sequence[Run], path: Path) -> None:
    """Draw how loads and changes grow as the budget shrinks."""
    figure = Figure((7.6, 3.4), layout="constrained")
    sides: list[tuple[str, Callable[[Run], float]]] = [
        ("load, processor time", lambda run: run["load_processor"]),
        ("a change, median", lambda run: run["change_ms"]),
    ]
    for place, (title, value) in enumerate(sides):
        axes = figure.add_subplot(1, 2, place + 1)
        for shape in dict.fromkeys(run["shape"] for run in runs):
            own = sorted((run for run in runs if run["shape"] == shape), key=lambda run: -run["share"])
            base = value(own[0])
            axes.plot(
                [run["share"] for run in own], [value(run) / base for run in own],
                marker="o", color=_COLOURS[shape], label=shape,
            )  # fmt: skip
        axes.set_xscale("log", base=2)
        axes.invert_xaxis()
        axes.set_ylim(bottom=0)
        axes.set_title(title)
        axes.set_xlabel("budget, as a share of the peak without a folder")
        axes.set_ylabel("times as long")
        axes.legend()
    figure.savefig(path, metadata={"Date": None})


def main(arguments: Sequence[str]) -> None:
    """Measure, and print the table."""
    if arguments[:1] == ["--once"]:
        shape, size, share, taken, folder, limited = arguments[1:]
        print(json.dumps(run_once(shape, int(size), float(share), float(taken), folder, limited == "1")))
        return
    parser = argparse.ArgumentParser(prog="bench.dataflow.spill")
    parser.add_argument("--shapes", nargs="*", choices=[*SIZES], default=[*SIZES])
    parser.add_argument("--sizes", nargs="*", type=int, default=[])
    parser.add_argument("--shares", nargs="*", type=float, default=SHARES)
    parser.add_argument("--limited", action="store_true")
    parser.add_argument("--folder", help="for the files; by default a new one in the current folder")
    parser.add_argument("--plot", type=Path)
    args = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=".") as made:
        runs = _measured(args, args.folder or str(Path(made).absolute()))
    print(f"{machine()}\n\n{markdown(runs)}")
    if args.plot is not None:
        draw(runs, args.plot)


if __name__ == "__main__":
    main(sys.argv[1:])
