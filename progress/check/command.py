"""`python -m progress.check FILE:NAME`: explore a scenario, or simulate it from many seeds.

    python -m progress.check flows.py:scenario --workers 3          all orders
    python -m progress.check flows.py:scenario --seeds 10000        so many orders, one for each seed
    python -m progress.check flows.py:scenario --seed 4711          that one once more

Exit status: 0 if all was as it must be; 1 if not, with the counterexample on standard output; 2 if the file
or an argument is wrong, with one line on standard error.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from progress.checking.counterexample import Counterexample
from progress.errors import TimelyError

from .checkable import Checkable, load

__all__ = ["main"]


def main(arguments: Sequence[str], say: Callable[[str], object] | None = None) -> int:
    """Carry out the command, and return its exit status. `say` prints a line, by default to standard
    output.
    """
    assert not isinstance(arguments, str), "a list of arguments"
    tell = say or (lambda line: sys.stdout.write(f"{line}\n"))
    options = _options(arguments)
    try:
        scenario = load(options.target)
        tell(_checked(scenario, options, tell))
    except Counterexample as error:
        tell(f"progress.check: {error}")
        return 1
    except TimelyError as error:
        first, *_ = str(error).splitlines() or [""]
        sys.stderr.write(f"progress.check: {first}\n")
        return 2
    return 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m progress.check",
        description="Explores a scenario of a file: all orders in which its dataflow can happen.",
    )
    parser.add_argument("target", metavar="FILE:NAME", help="a timely.testing.Scenario: flows.py:scenario")
    parser.add_argument("--workers", type=_at_least(1), help="in place of those that the scenario says")
    parser.add_argument("--orders", choices=["steps", "all"], help="which orders are explored")
    parser.add_argument("--states", type=_at_least(1), help="visit so many states at most")
    parser.add_argument("--seeds", type=_at_least(1), help="simulate so many runs, and explore nothing")
    parser.add_argument("--seed", type=_at_least(0), help="the first seed, or, without --seeds, the only one")
    parser.add_argument("--crash", action="store_true", default=None, help="let workers crash in simulations")
    return parser.parse_args(list(arguments))


def _checked(scenario: Checkable, options: argparse.Namespace, tell: Callable[[str], object]) -> str:
    """Check a scenario, and return what to say at the end."""
    assert isinstance(scenario, Checkable), scenario
    if options.seeds is None and options.seed is None:
        explored = scenario.explore(workers=options.workers, orders=options.orders, states_max=options.states)
        return f"all is as it must be: {explored}"
    first, count = options.seed or 0, options.seeds or 1
    for number in range(count):
        run = scenario.simulate(first + number, workers=options.workers, crash=options.crash)
        if count == 1:
            tell(str(run))
        elif (number + 1) % 1_000 == 0:
            tell(f"{number + 1:,} of {count:,} seeds")
    return f"all is as it must be: seeds {first} to {first + count - 1}"


def _at_least(least: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number from {least} on")
        return int(text)

    return number
