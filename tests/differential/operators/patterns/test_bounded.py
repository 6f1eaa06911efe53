"""Rows between bounds: accumulates, at every time, to the plain join of its accumulated inputs."""

from __future__ import annotations

import random

import numpy as np
import pytest
from reference.words import Row, accumulated, closure_of, rows_of
from strategies_words import CODES, RandomHistory

from differential.kernels.history.within import LEAST, MOST
from differential.operators.join import LEFT, RIGHT, JoinInput, OwnRows, whole_pairs
from differential.operators.patterns.bounded import BoundedJoinMachine, BoundTest, bounds_of
from differential.trace.trace import Trace

TESTS: list[list[BoundTest]] = [
    [(">", 0)],
    [("<=", 1)],
    [(">=", 0), ("<", 1)],
    [("==", 0)],
    [("<", 0), (">", 1)],
]
COMPARE = {"<": int.__lt__, "<=": int.__le__, ">": int.__gt__, ">=": int.__ge__, "==": int.__eq__}


def machine_of(tests: list[BoundTest], guards: int) -> BoundedJoinMachine:
    inputs = [JoinInput(LEFT, OwnRows(Trace(1, 1, guards))), JoinInput(RIGHT, OwnRows(Trace(1, 1, guards)))]
    return BoundedJoinMachine(1, tests, guards, whole_pairs(1, 1, 0), inputs)


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("tests", TESTS, ids=str)
def test_meaning_at_every_time(depth: int, tests: list[BoundTest], seed: int, effort: int) -> None:
    guards = CODES[depth].guards
    for trial in range(2 * effort):
        rng = random.Random(f"{seed} {trial}")
        machine = machine_of(tests, guards)
        sides = [RandomHistory(rng, depth, 2) for _ in range(2)]
        sent: list[Row] = []
        for _ in range(10):
            port = rng.choice([LEFT, RIGHT])
            sent += rows_of(machine.recv(port, sides[port].next_rows()))
            while not machine.is_done:
                sent += rows_of(machine.work())
            moving = rng.choice(sides)
            moving.finish() if rng.random() < 0.05 else moving.rise()
            machine.set_frontiers(sides[0].frontier, sides[1].frontier)
            for trace in machine.traces:
                if rng.random() < 0.3:
                    trace.compact()
            machine.check_invariants()
        for time in closure_of({row[-2] for side in sides for row in side.rows}, guards):
            rows, bounds = (accumulated(side.rows, time, guards) for side in sides)
            wanted = {
                row: times
                * sum(n for b, n in bounds.items() if all(COMPARE[op](row[0], b[at]) for op, at in tests))
                for row, times in rows.items()
            }
            assert accumulated(sent, time, guards) == {row: n for row, n in wanted.items() if n}


@pytest.mark.parametrize("word", [LEAST, -1, 0, MOST])
def test_bounds_at_the_ends_of_words(word: int) -> None:
    rows = np.array([[word], [7], [1]], np.int64)
    found = {op: bounds_of(rows, [(op, 0)])[:2].T.tolist() for op in COMPARE}  # type: ignore[list-item]
    assert found == {
        "<": [] if word == LEAST else [[LEAST, word - 1]],
        "<=": [[LEAST, word]],
        ">": [] if word == MOST else [[word + 1, MOST]],
        ">=": [[word, MOST]],
        "==": [[word, word]],
    }
    assert not bounds_of(rows, [("<", 0), (">=", 0)]).size


def test_a_change_reads_the_rows_between() -> None:
    machine = machine_of([(">", 0)], CODES[1].guards)
    numbers = np.arange(10_000)
    machine.recv(LEFT, np.stack([numbers, numbers, 0 * numbers, 0 * numbers + 1]))
    while not machine.is_done:
        machine.work()
    first = machine.recv(RIGHT, np.array([[5_000], [0], [0], [1]], np.int64))
    assert first.shape[1] == 4_999
    change = machine.recv(RIGHT, np.array([[5_000, 5_003], [0, 0], [0, 0], [-1, 1]], np.int64))
    assert rows_of(change) == [(n, n, 0, -1) for n in (5_001, 5_002, 5_003)]
