"""Join: accumulates, at every time, to the plain join of its accumulated inputs (D5).

meaning_*   random rows, frontiers and compactions, times of depth 1 to 3
pieces_*    large outputs come in pieces, memory goes when a side is complete
"""

from __future__ import annotations

import random

import numpy as np
import pytest
from reference.words import Row, accumulated, closure_of, joined, rows_of
from strategies_words import CODES, RandomHistory

from differential.operators import join as join_module
from differential.operators.join import LEFT, RIGHT, JoinMachine


def _run(rng: random.Random, depth: int, kw: int, values: tuple[int, int]) -> None:
    guards = CODES[depth].guards
    machine = JoinMachine(kw, *values, guards)
    sides = [RandomHistory(rng, depth, kw + vw) for vw in values]
    sent: list[Row] = []
    for _ in range(10):
        port = rng.choice([LEFT, RIGHT])
        for words in machine.recv(port, sides[port].next_rows()):
            sent += rows_of(words)
        moving = rng.choice(sides)
        moving.finish() if rng.random() < 0.05 else moving.rise()
        machine.set_frontiers(sides[0].frontier, sides[1].frontier)
        for trace in machine.traces:
            if trace is not None and rng.random() < 0.3:
                trace.compact()
        machine.check_invariants()
    for time in closure_of({row[-2] for side in sides for row in side.rows}, guards):
        left, right = (accumulated(side.rows, time, guards) for side in sides)
        assert accumulated(sent, time, guards) == joined(left, right, kw)


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize(("kw", "values"), [(1, (1, 1)), (0, (1, 1)), (2, (0, 1)), (1, (2, 0))])
def test_meaning_at_every_time(depth: int, kw: int, values: tuple[int, int], seed: int, effort: int) -> None:
    for trial in range(6 * effort):
        _run(random.Random(f"{seed} {trial}"), depth, kw, values)


def test_pieces_together_are_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join_module, "MATCHED_ROWS_MAX", 1000)
    machine = JoinMachine(0, 1, 1, CODES[1].guards, [("left", 0), ("constant", 4), ("right", 0)])
    column = np.arange(100)
    words = np.stack([column, np.zeros_like(column), np.ones_like(column)])
    assert list(machine.recv(LEFT, words)) == []
    pieces = list(machine.recv(RIGHT, words))
    assert len(pieces) == 10
    pairs = [row[:3] for piece in pieces for row in rows_of(piece)]
    assert sorted(pairs) == [(a, 4, b) for a in range(100) for b in range(100)]


def test_pieces_of_history_that_nobody_will_match_are_dropped() -> None:
    machine = JoinMachine(1, 1, 1, CODES[1].guards)
    words = np.array([[1], [2], [0], [1]])
    assert list(machine.recv(LEFT, words)) == []
    machine.set_frontiers(np.array([1]), np.empty(0, np.int64))
    assert machine.traces[LEFT] is None, "no row will come in on the right"
    assert list(machine.recv(LEFT, words)) == []
    assert not machine.effort(100)
