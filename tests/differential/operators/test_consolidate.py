"""Consolidation: rows wait until they are complete; what cancels is never seen."""

from __future__ import annotations

import random

import numpy as np
import pytest
from reference.words import beyond, consolidated, less_equal, rows_of
from strategies_words import CODES, RandomHistory

from differential.operators.consolidate import ConsolidateMachine


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_each_row_leaves_when_its_time_is_complete(depth: int, seed: int, effort: int) -> None:
    guards = CODES[depth].guards
    for trial in range(10 * effort):
        history = RandomHistory(random.Random(f"{seed} {trial}"), depth, 2)
        machine, sent = ConsolidateMachine(2, guards), []
        for step in range(8):
            machine.recv(history.next_rows())
            history.rise() if step < 7 else history.finish()
            frontier = history.frontier
            held = machine.capabilities().tolist()
            some = rows_of(machine.advance(frontier))
            assert some == consolidated(some)
            assert all(any(less_equal(word, row[-2], guards) for word in held) for row in some)
            sent += some
            complete = [row for row in history.rows if not beyond(row[-2], frontier, guards)]
            assert consolidated(sent) == consolidated(complete)
        assert machine.capabilities().shape == (0,)


def test_what_cancels_within_a_time_is_never_sent() -> None:
    machine = ConsolidateMachine(1, CODES[1].guards)
    machine.recv(np.array([[5, 6], [3, 3], [1, 1]]))
    machine.recv(np.array([[5], [3], [-1]]))
    assert rows_of(machine.advance(np.array([4]))) == [(6, 3, 1)]
