"""Many programs against durable clusters that fail: the long form of `test_crashes.py`.

    ./scripts/crashes 10000 --seed 7         random programs, which crash at random operations of the disk
    ./scripts/crashes --each --seed 7        one program of each kind, which crashes at each of its operations
    ./scripts/crashes 1 --seed 918273        one program again

Programs take turns among the kinds of dataflows; each fifth one has two dataflows, and clients that go on by
themselves. The command goes on after a program that fails, prints its seed, and at the end how many ran.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import random
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from functools import partial

from durability.crashes import run, run_with_crash_at
from durability.kinds import KINDS

_ACTIONS = 40
_FEW_ACTIONS = 8
"""Of a program that runs again for each of its operations."""

_RESUMING_EVERY = 5
_TOLD_SECONDS = 30.0


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


class _Tally:
    """How many programs ran, and how many failed."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._began = self._told = time.monotonic()

    def add(self, title: str, play: Callable[[], tuple[int, int]]) -> int:
        """Run one program; return how many operations of the disk it had."""
        said, operations = io.StringIO(), 0
        try:
            with contextlib.redirect_stderr(said):  # workers that are killed say so
                restarts, operations = play()
            self.counts["restarts"] += restarts
            self.counts["operations"] += operations
        except Exception:
            self.counts["failed"] += 1
            _say(f"--- {title} failed\n{traceback.format_exc()}")
        self.counts["ran"] += 1
        if time.monotonic() > self._told + _TOLD_SECONDS:
            self._told = time.monotonic()
            self.tell()
        return operations

    def tell(self) -> None:
        """Print the counts so far."""
        counts, seconds = self.counts, time.monotonic() - self._began
        _say(
            f"{counts['ran']} programs ran, {counts['failed']} failed; {counts['restarts']} incarnations, "
            f"{counts['operations']} operations of the disk, {seconds:.0f} s"
        )


def _random_programs(tally: _Tally, count: int, seed: int) -> None:
    names = [*KINDS]
    for number in range(seed, seed + count):
        resumes = number % _RESUMING_EVERY == 0
        kinds = random.Random(number).sample(names, 2) if resumes else [names[number % len(names)]]

        def play(number: int = number, kinds: list[str] = kinds, resumes: bool = resumes) -> tuple[int, int]:
            program = run(number, kinds, _ACTIONS, resumes)
            return program.restarts, program.machine.operations

        tally.add(f"./scripts/crashes 1 --seed {number} ({', '.join(kinds)})", play)


def _with_crash(at: int, seed: int, kind: str) -> tuple[int, int]:
    program, operations = run_with_crash_at(at, seed, kind, _FEW_ACTIONS)
    return program.restarts, operations


def _each_operation(tally: _Tally, seed: int) -> None:
    for kind in KINDS:
        # Without a crash the program has so many operations until it completes its dataflow.
        total = tally.add(f"{kind}, seed {seed}, without a crash", partial(_with_crash, 0, seed, kind))
        for at in range(1, total + 1):
            title = f"{kind}, seed {seed}, crash at operation {at} of {total}"
            tally.add(title, partial(_with_crash, at, seed, kind))
        tally.tell()


def main() -> int:
    """Return 0 if all programs that ran were right."""
    parser = argparse.ArgumentParser(
        prog="scripts/crashes", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("programs", type=int, nargs="?", default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--each", action="store_true", help="crash at each operation of one program per kind")
    options = parser.parse_args()
    tally = _Tally()
    if options.each:
        _each_operation(tally, options.seed)
    else:
        _random_programs(tally, options.programs, options.seed)
    tally.tell()
    return int(tally.counts["failed"] > 0)


if __name__ == "__main__":
    sys.exit(main())
