"""The long form: rounds until the time is over, each from a seed of its own.

    ./scripts/soak                           ten minutes
    ./scripts/soak --minutes 2 --seed 918273
    ./scripts/soak --round 1234567           one round again
    ./scripts/soak --durable --minutes 30    durable clusters; also with --round

A failure prints the round's seed and how to repeat it, and ends the soak with status 1.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import traceback

from .durable.rounds import DurableRound
from .rounds import Round


def durable(options: argparse.Namespace) -> int:
    """Play rounds with durable clusters."""
    choose = random.Random(options.seed)
    began = time.monotonic()
    faults = 0
    print(f"seed {options.seed}", flush=True)
    while True:
        number = choose.randrange(2**31) if options.round is None else options.round
        game = DurableRound(number, options.faults)
        print(f"round {number}: {game.title}", flush=True)
        try:
            verdict = game.run()
        except BaseException:
            traceback.print_exc()
            replay = f"./scripts/soak --durable --faults {options.faults} --round {number}"
            print(f"round {number} failed: {game.title}\nreplay: {replay}", flush=True)
            return 1
        faults += verdict.faults
        seconds = time.monotonic() - began
        print(
            f"    {verdict.epochs} epochs checked: {verdict.what}; {faults} faults in {seconds:.0f} s",
            flush=True,
        )
        if options.round is not None or seconds > 60 * options.minutes:
            return 0


def main() -> int:
    """Play rounds."""
    parser = argparse.ArgumentParser(prog="scripts/soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=random.randrange(2**31))
    parser.add_argument("--round", type=int)
    parser.add_argument("--seconds", type=float, default=12.0)
    parser.add_argument("--durable", action="store_true")
    parser.add_argument("--faults", type=int, default=5, help="mishaps of a durable round")
    options = parser.parse_args()
    if options.durable:
        return durable(options)
    choose = random.Random(options.seed)
    until = time.monotonic() + 60 * options.minutes
    print(f"seed {options.seed}", flush=True)
    while True:
        number = choose.randrange(2**31) if options.round is None else options.round
        game = Round(number, options.seconds)
        print(f"round {number}: {game.title}", flush=True)
        try:
            verdict = game.run()
        except BaseException:
            traceback.print_exc()
            print(f"round {number} failed: {game.title}\nreplay: ./scripts/soak --round {number}", flush=True)
            return 1
        print(f"    {verdict.epochs} epochs checked, {verdict.calls} calls: {verdict.what}", flush=True)
        if options.round is not None or time.monotonic() > until:
            return 0


if __name__ == "__main__":
    sys.exit(main())
