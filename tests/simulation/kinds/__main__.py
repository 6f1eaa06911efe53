"""The long forms of the simulations: random dataflows from seeds, and all orders of large scenarios.

    ./scripts/explore --seeds 10000 --seed 1      random dataflows, the long form of test_random_dataflows.py
    ./scripts/explore --states 1000000            all kinds of test_explored_kinds.py
    ./scripts/explore nested failed               these kinds
    ./scripts/explore nested --all                no state stands for another one

With seeds it goes on behind one that fails, prints it, and says at the end how many passed. A seed decides
everything: `--seeds 1 --seed N` runs that one again.

A scenario with more states than `--states` is visited up to their number, the nearest to the start first. Of
states that differ only in the order of independent actions, or in the names of workers that are alike, one is
visited (`timely/running/checking/reductions.py`). The small scenario of a kind is visited both ways, and the
line about it says how many states stand for all.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Sequence
from math import inf

import pytest
from low_limits import everything_is_much
from random_dataflows import run
from simulation.kinds.scenarios import KINDS, Kind

from progress.checking.counterexample import Counterexample
from timely.running import core

_TOLD_EVERY = 500


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def check(seed: int, is_monitored: bool) -> None:
    """Run the dataflow of a seed on one worker without delays, and on several with; raise if they differ, or
    if a notification was early, was lost, or came unasked.
    """
    chance = random.Random(f"{seed} many")
    workers = chance.choice((1, 2, 2, 3, 3, 4))
    per_host = chance.choice((0, 0, 0, 1, 2)) if workers > 1 else 0
    with pytest.MonkeyPatch.context() as limits:
        # How much a lone worker does in a step depends on the clock, and so would what a seed does.
        limits.setattr(core, "ALONE_SECONDS_MAX", inf)
        expected, _ = run(seed, 1, None, monitored=False)
        limits.setattr(core, "ALONE_SECONDS_MAX", 0.0)
        if chance.random() < 0.25:
            everything_is_much(limits)
        outputs, watch = run(seed, workers, seed, is_monitored, per_host)
    assert not watch.early, watch.early[0]
    assert not watch.misled, watch.misled[0]
    assert not +watch.asked, f"never notified: {+watch.asked}"
    assert not -watch.asked, f"notified unasked: {-watch.asked}"
    assert outputs == expected, f"{workers} workers, {per_host=}: {outputs} in place of {expected}"


def run_seeds(options: argparse.Namespace) -> int:
    """Return how many seeds fail."""
    failed, began = 0, time.monotonic()
    for number in range(options.seeds):
        seed = options.seed + number
        try:
            check(seed, is_monitored=number % options.monitored == 0)
        except Exception as error:  # whatever a worker raises
            failed += 1
            _say(f"--- seed {seed}: {type(error).__name__}: {error}"[:2_000])
        if (number + 1) % _TOLD_EVERY == 0:
            _say(f"{number + 1 - failed:,} passed, {failed} failed, {time.monotonic() - began:.0f} s")
    _say(f"{options.seeds - failed:,} seeds passed, {failed} failed")
    return failed


def run_kinds(names: Sequence[str], most: int, reduced: bool) -> int:
    """Return in how many scenarios something is not as it must be. `most`: states of a kind; `reduced`: of
    those that stand for one another one is visited.
    """
    failed = 0
    for name in names:
        left, kind = most, KINDS[name]
        for scenario in (None, *kind.large):
            if left <= 0 or (scenario is None and kind.small is None):
                continue
            began = time.monotonic()
            try:
                found = kind.all_of_small() if scenario is None else kind.some_of(scenario, left, reduced)
                seconds, stands = time.monotonic() - began, ""
                if scenario is None and reduced and isinstance(kind, Kind):
                    stands = f"; {kind.all_of_small(reduced=True).states:,} of them stand for all"
            except Counterexample as error:
                failed += 1
                _say(f"--- {name}: {error}")
                continue
            left -= found.states
            _say(f"{name}: {found}{stands}; {found.states / seconds * 60:,.0f} states per minute")
    return failed


def main() -> int:
    """Return 0 if all was as it must be."""
    parser = argparse.ArgumentParser(
        prog="./scripts/explore", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kinds", nargs="*", help=f"which kinds: {', '.join(KINDS)}; by default all")
    parser.add_argument("--states", type=int, default=1_000_000, help="how many states of each kind at most")
    parser.add_argument("--all", action="store_true", help="visit also states that others stand for")
    parser.add_argument("--seeds", type=int, help="so many random dataflows, in place of kinds")
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument(
        "--monitored", type=int, default=10, help="every so many seeds all predicates are evaluated"
    )
    options = parser.parse_args()
    unknown = set(options.kinds) - set(KINDS)
    if unknown:
        parser.error(f"no kind {min(unknown)!r}: there are {', '.join(KINDS)}")
    if options.seeds:
        failed = run_seeds(options)
    else:
        failed = run_kinds(options.kinds or list(KINDS), options.states, reduced=not options.all)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
