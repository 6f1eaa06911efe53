"""Operators over changing collections, in loops within loops, under the predicates of progress tracking.

They hold rights for what they will send and wait for frontiers, in ways that record vertices do not.
"""

from __future__ import annotations

import random

import pytest
from reference.dataflow import Change, run_at_times
from strategies_collections import BINARY, UNARY

CASES = 2


def some_changes(choice: random.Random, depth: int) -> list[Change]:
    return [
        (
            (choice.randint(0, 3), choice.randint(0, 3)),
            tuple(choice.randint(0, 2) for _ in range(depth)),
            choice.choice([1, 1, -1]),
        )
        for _ in range(8)
    ]


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_a_loop_in_loops_keeps_the_predicates(depth: int, workers: int, seed: int, effort: int) -> None:
    for case in range(CASES * effort):
        choice = random.Random(seed + case)
        build = UNARY["least label in a loop"].build
        run_at_times(
            build,
            [some_changes(choice, depth)],
            depth=depth,
            workers=workers,
            seed=seed + case,
            monitored=True,
        )


@pytest.mark.parametrize("workers", [2, 3])
def test_joins_and_reductions_keep_the_predicates(workers: int, seed: int, effort: int) -> None:
    for case in range(CASES * effort):
        choice = random.Random(seed + case)
        build = BINARY["reach in a loop"].build
        inputs = [some_changes(choice, 2), some_changes(choice, 2)]
        run_at_times(build, inputs, depth=2, workers=workers, seed=seed + case, monitored=True)
