"""How long do the same dataflows take here and in Rust timely? Ratios of runs in turn.

    exchange    tables of two 64-bit columns, and tuples of two whole numbers, go to the workers of their
                keys: seconds. Ours are processes; Rust's rows are structs in vectors
    barrier     a round in which all workers wait for each other: µs elapsed; on one worker, on a core
    epochs      rounds with a record that passes three stages, on one worker after the other: likewise
    chain, fan  N stages behind, or beside, each other on one worker: µs on a core for a stage that a record
                passes, and seconds for the install; ours on a core, Rust's elapsed, the least of four
    pointstamps a place holds N times, and one more comes and goes: µs for each change, likewise

Estimate: what Python does for each turn or change takes 2 to 5 µs, and Rust a fiftieth, so we lose by 10 to
100 there. Columns are treated alike, within a factor of two or three.

    python -m bench.timely.beside [--cases CASE …] [--runs N] [--write FILE]

needs the peer: `cargo build --release --locked` in bench/peers/timely_dataflow (bench/peers/README.md).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import NamedTuple

import timely
from bench.dataflow.exchanged import seconds_of
from bench.machine import ROOT, machine
from bench.timely.linear import measure as measure_linear
from bench.timely.rounds import measure as measure_rounds

__all__ = ["CASES", "Case", "main"]

PEER = ROOT / "bench" / "peers" / "timely_dataflow" / "target" / "release" / "timelypeer"
_TABLE_ROWS, _TUPLES = 20_000_000, 4_000_000
_ROUNDS = {1: 10_000, 2: 1_000, 8: 100}
"""By the number of workers: where the system has other work, several take milliseconds for a round."""


class Case(NamedTuple):
    """One line of the table: a dataflow in both systems, and the figure of it that is compared."""

    name: str
    figure: str
    ours: tuple[str, ...]
    peer: tuple[str, ...]
    processes: int = 1
    """Those of the peer; its threads are among its arguments."""


def _exchanges() -> list[Case]:
    cases: list[Case] = []
    for form, rows, piece in (("tables", _TABLE_ROWS, 100_000), ("records", _TUPLES, 10_000)):
        words = ("exchange", str(rows), str(piece))
        name = "64-bit columns" if form == "tables" else "tuples"
        what = f"exchange, {rows // 1_000_000} million {name}"
        ours = ("exchange", form)
        cases.append(Case(f"{what}, 2 processes / 2 threads", "seconds", ours, (*words, "-w", "2")))
        cases.append(Case(f"{what}, 2 processes / 2 processes", "seconds", ours, words, 2))
    return cases


def _rounds() -> list[Case]:
    cases: list[Case] = []
    for name, stages in (("barrier", 0), ("epoch through three stages", 3)):
        for workers, n in _ROUNDS.items():
            figure = "core µs" if workers == 1 else "µs"
            ours = ("rounds", str(workers), str(n), str(stages))
            words = ("rounds", str(n), str(stages))
            if workers == 1:
                words = ("rounds", str(20 * n), str(stages))  # the system tells of cores in milliseconds
                cases.append(Case(f"{name}, {n:,}, 1 worker", figure, ours, words))
                continue
            threads = (*words, "-w", str(workers))
            cases.append(
                Case(f"{name}, {n:,}, {workers} processes / {workers} threads", figure, ours, threads)
            )
            if workers == 2:
                cases.append(Case(f"{name}, {n:,}, 2 processes / 2 processes", figure, ours, words, 2))
    return cases


def _sizes() -> list[Case]:
    cases: list[Case] = []
    for shape in ("chain", "fan"):
        for n in (1, 10, 100, 1_000, 10_000):
            words = (shape, str(n))
            cases.append(Case(f"{shape} of {n:,} stages, a record, each", "µs", ("linear", *words), words))
            if n >= 1_000:
                cases.append(Case(f"{shape} of {n:,}, install", "install s", ("linear", *words), words))
    for n in (1, 10, 100, 1_000, 10_000, 100_000):
        words = ("pointstamps", str(n))
        cases.append(Case(f"{n:,} pointstamps, a change", "µs", ("linear", *words), words))
    return cases


CASES = [*_exchanges(), *_rounds(), *_sizes()]


def _ours(words: Sequence[str]) -> dict[str, float]:
    """Measure ours, in this process and those that it starts."""
    if words[0] == "exchange":
        rows = {"tables": _TABLE_ROWS, "records": _TUPLES}[words[1]]
        with timely.connect(workers=2) as cluster:
            seconds_of(cluster, words[1], rows // 10)
            return {"seconds": seconds_of(cluster, words[1], rows)}
    if words[0] == "rounds":
        return measure_rounds(*(int(word) for word in words[1:4]))
    return measure_linear(words[1], int(words[2]))


def _run_ours(words: Sequence[str]) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.timely.beside", "--one", *words]
    return _figures(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT).stdout)


def _run_peer(case: Case) -> dict[str, float]:
    if case.processes == 1:
        done = subprocess.run([PEER, *case.peer], check=True, stdout=subprocess.PIPE, text=True)
        return _figures(done.stdout)
    of_cluster = [
        [str(PEER), *case.peer, "-n", str(case.processes), "-p", str(index)]
        for index in range(case.processes)
    ]
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for command in of_cluster
    ]
    told = [process.communicate()[0] for process in running]
    if any(process.returncode for process in running):
        raise RuntimeError(f"the peer failed: {of_cluster[0]}")
    return _figures(told[0])


def _figures(told: str) -> dict[str, float]:
    line = next(line for line in reversed(told.splitlines()) if line.startswith("{"))
    return {str(name): float(value) for name, value in json.loads(line).items()}


def _table(pairs: dict[str, list[tuple[float, float]]], runs: int, load: str) -> str:
    by_name = {case.name: case for case in CASES}
    lines = [
        "## Ours beside Rust timely",
        "",
        f"`python -m bench.timely.beside`; {runs} runs in turn, medians; a ratio is of two runs one after "
        "the other, ours / Rust, so less than 1 is where we win. `core`: only the time on a core counts.",
        "",
        "| case | unit | ours | Rust | ours / Rust |",
        "|---|---|---|---|---|",
    ]
    lost: list[tuple[float, str]] = []
    for name, figures in pairs.items():
        ratios = sorted(ours / peer for ours, peer in figures)
        ours, peer = (median(each) for each in zip(*figures, strict=True))
        ratio = f"{median(ratios):.2f} ({ratios[0]:.2f}–{ratios[-1]:.2f})"
        lines.append(f"| {name} | {by_name[name].figure} | {ours:.3g} | {peer:.3g} | {ratio} |")
        if median(ratios) > 1:
            lost.append((median(ratios), name))
    lost.sort(reverse=True)
    worst = "; ".join(f"{name}, {ratio:.0f}" for ratio, name in lost[:3])
    lines += [
        "",
        f"We lose in {len(lost)} of {len(pairs)} cases; most in these: {worst}.",
        "",
        f"{datetime.now(UTC):%Y-%m-%d}, {machine()}; timely 0.31, release build; load average before and "
        f"after: {load}.",
        "",
    ]
    return "\n".join(lines)


def _load() -> str:
    return f"{os.getloadavg()[0]:.1f}"


def _measured(
    cases: Sequence[Case], runs: int, tell: Callable[[str], None]
) -> dict[str, list[tuple[float, float]]]:
    """Run all cases in turn, so often. Cases of one dataflow share its run."""
    pairs: dict[str, list[tuple[float, float]]] = {case.name: [] for case in cases}
    for _ in range(runs):
        ours: dict[tuple[str, ...], dict[str, float]] = {}
        for case in cases:
            if case.ours not in ours or case.ours[0] != "linear":
                ours[case.ours] = _run_ours(case.ours)
            pair = ours[case.ours][case.figure], _run_peer(case)[case.figure]
            pairs[case.name].append(pair)
            tell(f"{case.name}: {pair[0]:.3g} / {pair[1]:.3g} {case.figure} = {pair[0] / pair[1]:.2f}")
    return pairs


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.timely.beside", description=__doc__)
    parser.add_argument("--cases", nargs="+", default=[""], help="the names of cases, or how they begin")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--one", nargs="+", help="one measurement of ours, in this process")
    options = parser.parse_args(arguments)
    if options.one:
        print(json.dumps(_ours(options.one)))
        return
    if not PEER.exists():
        sys.exit(f"there is no {PEER}: build it as bench/peers/README.md says")
    cases = [case for case in CASES if case.name.startswith(tuple(options.cases))]
    before = _load()
    pairs = _measured(cases, options.runs, lambda line: print(line, flush=True))
    table = _table(pairs, options.runs, f"{before} and {_load()}")
    print(table)
    if options.write is not None:
        options.write.write_text(table)


if __name__ == "__main__":
    main()
