"""What does a change of the code cost, on a machine that is never quiet?

    python -m bench.in_turn bfs-100k-200k --against ../before [--workers 1] [--threads] [--loads 5]

A process for each checkout holds the same dataflow. Each step is made in all of them, one after the other, in
an order that is drawn anew, and then comes the next: what slows the machine down for a while slows down
neighbours, and the ratio of neighbours is what counts. Where whole runs differ by a half, the median over
some hundred changes says a few hundredths. What it does not say: how long a step takes by itself, for the
others have emptied the processor's caches, and whether answers are right. `bench.compare` says both.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import statistics
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from bench.cases import CASES, SMALL, Case, chosen
from bench.compare import OURS, names_of
from bench.machine import ROOT
from bench.systems import Checkout, RunError

__all__ = ["Steps", "main", "taken_in_turn", "told"]


class Steps:
    """A process that makes steps of a workload. A context manager: it ends with the block."""

    def __init__(self, name: str, process: subprocess.Popen[str]) -> None:
        self.name = name
        self._process = process

    def __enter__(self) -> Steps:
        try:
            self._said("ready")
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        self._process.kill()
        with contextlib.suppress(BrokenPipeError), self._process:  # what it was asked last it has not read
            pass

    def step(self, what: str) -> float:
        """Milliseconds; raises `RunError` if the process has ended."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{what}\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # what it has to say of that comes
        return float(self._said(what))

    def _said(self, what: str) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        if not line:
            raise RunError(f"{self.name} has ended with {self._process.wait()}, asked for {what}")
        return line


def taken_in_turn(systems: Sequence[Steps], steps: Sequence[str]) -> list[dict[str, float]]:
    """Milliseconds by system, for each step."""
    rounds: list[dict[str, float]] = []
    for step in steps:
        order = random.sample(systems, len(systems))
        rounds.append({system.name: system.step(step) for system in order})
    return rounds


def told(label: str, rounds: Sequence[dict[str, float]], other: str) -> str:
    """One line: the ratio of neighbours, its quartiles, and both medians."""
    ratios = sorted(one[OURS] / one[other] for one in rounds)
    low, high = ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]
    ours, theirs = (statistics.median(one[name] for one in rounds) for name in (OURS, other))
    return (
        f"{label}: {OURS} / {other} {statistics.median(ratios):.2f} ({low:.2f}-{high:.2f}), "
        f"{ours:.2f} / {theirs:.2f} ms, {len(rounds)} pairs"
    )


def _measured(case: Case, workers: int, checkouts: Sequence[Checkout], loads: int, changes: int) -> list[str]:
    with ExitStack() as stack:
        systems = []
        for checkout in checkouts:
            process = checkout.started(case.family, case.with_changes(max(1, changes)).sizes, workers)
            systems.append(stack.enter_context(Steps(checkout.name, process)))
        lines = []
        name = f"{case.name} on {workers}"
        wanted = [("load", ["load"] * loads), ("change", [f"change {number}" for number in range(changes)])]
        for label, steps in wanted:
            if steps:
                rounds = taken_in_turn(systems, steps)
                lines += [told(f"{name}, {label}", rounds, other.name) for other in systems[1:]]
        return lines


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="ours beside another checkout, step by step")
    parser.add_argument("workload", nargs="+", help="as in wcc or bfs-100k-1M")
    parser.add_argument("--against", type=Path, nargs="+", required=True, metavar="FOLDER")
    parser.add_argument("--workers", type=int, nargs="+", default=[1])
    parser.add_argument("--threads", action="store_true", help="several workers are threads of one process")
    parser.add_argument("--loads", type=int, default=5)
    parser.add_argument("--changes", type=int, default=300)
    parser.add_argument("--small", action="store_true", help="sizes of which the figures mean nothing")
    options = parser.parse_args(arguments)
    if options.loads < 1 or options.changes < 0:
        parser.error("at least one load, and no fewer than 0 changes")
    try:
        found = chosen(SMALL if options.small else CASES, options.workload)
    except ValueError as error:
        parser.error(str(error))
    with ExitStack() as stack:
        try:
            checkouts = [stack.enter_context(Checkout(ROOT, OURS, threads=options.threads))]
            for folder, name in zip(options.against, names_of(options.against), strict=True):
                other = Checkout(folder, name, threads=options.threads)
                checkouts.append(stack.enter_context(other))
            for workers in options.workers:
                for case in (case for case in found if case.batch == 1):
                    lines = _measured(case, workers, checkouts, options.loads, options.changes)
                    print("\n".join(lines), flush=True)
        except RunError as error:
            sys.exit(str(error))


if __name__ == "__main__":
    main()
