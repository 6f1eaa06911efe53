"""Consolidation: rows wait until they are complete; what cancels is never seen."""

from __future__ import annotations

import random

import numpy as np
import pytest
from machines import advanced
from reference.words import beyond, consolidated, less_equal, rows_of
from strategies_words import CODES, RandomHistory

from differential.operators.consolidate import ConsolidateMachine
from differential.operators.waiting import waiting_rows


@pytest.mark.parametrize("limit", [0, 2, 32], ids=["by time at once", "by time soon", "in parts"])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_each_row_leaves_when_its_time_is_complete(
    depth: int, limit: int, seed: int, effort: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting_rows, "_PARTS_MAX", limit)
    monkeypatch.setattr(waiting_rows, "_LOOKS_MAX", limit)
    guards = CODES[depth].guards
    for trial in range(10 * effort):
        history = RandomHistory(random.Random(f"{seed} {trial}"), depth, 2)
        machine, sent = ConsolidateMachine(2, guards), []
        for step in range(8):
            machine.recv(0, [history.next_rows()])
            history.rise() if step < 7 else history.finish()
            frontier = history.frontier
            held = machine.needs().tolist()
            some = rows_of(advanced(machine, frontier))
            assert some == consolidated(some)
            assert all(any(less_equal(word, row[-2], guards) for word in held) for row in some)
            sent += some
            complete = [row for row in history.rows if not beyond(row[-2], frontier, guards)]
            assert consolidated(sent) == consolidated(complete)
        assert machine.needs().shape == (0,)


def test_what_cancels_within_a_time_is_never_sent() -> None:
    machine = ConsolidateMachine(1, CODES[1].guards)
    machine.recv(0, [np.array([[5, 6], [3, 3], [1, 1]])])
    machine.recv(0, [np.array([[5], [3], [-1]])])
    assert rows_of(advanced(machine, np.array([4]))) == [(6, 3, 1)]
