"""Consolidation: rows wait until they are complete; what cancels is never seen."""

from __future__ import annotations

import random

import numpy as np
import pytest
from machines import advanced
from reference.words import beyond, consolidated, less_equal, rows_of
from strategies_words import CODES, RandomHistory

from differential.columns.packed.block import Block
from differential.operators import consolidate
from differential.operators.consolidate import ConsolidateMachine, WaitingRows


@pytest.mark.parametrize("limit", [0, 2, 32], ids=["by time at once", "by time soon", "in parts"])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_each_row_leaves_when_its_time_is_complete(
    depth: int, limit: int, seed: int, effort: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consolidate, "_PARTS_MAX", limit)
    monkeypatch.setattr(consolidate, "_LOOKS_MAX", limit)
    monkeypatch.setattr(consolidate, "_PAIRS_MAX", limit)
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


@pytest.mark.parametrize("limit", [0, 32], ids=["by time", "in parts"])
def test_waiting_rows_know_how_many_they_are_and_their_minimal_times(
    limit: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consolidate, "_PARTS_MAX", limit)
    monkeypatch.setattr(consolidate, "_LOOKS_MAX", limit)
    guards = CODES[2].guards
    for trial in range(10):
        history = RandomHistory(random.Random(f"{seed} {trial}"), 2, 1)
        waiting = WaitingRows(3, guards)
        for step in range(6):
            waiting.add(history.next_rows())
            left = [row for row in history.rows if beyond(row[-2], history.frontier, guards)]
            if step % 2:
                waiting.consolidate()
            times = {row[-2] for row in left}
            minimal = sorted(t for t in times if not any(o != t and less_equal(o, t, guards) for o in times))
            bounds = waiting.times(np.empty(0, np.int64)).tolist()
            assert step % 2 or bounds == minimal, "consolidation may have cancelled some"
            waiting.check_invariants()
            assert waiting.rows == len(left) or (step and waiting.rows <= len(left))
            history.rise()
            waiting.take_ready(history.frontier)
            waiting.check_invariants()
        waiting.take_ready(np.empty(0, np.int64))
        assert waiting.rows == 0 and waiting.times(np.empty(0, np.int64)).tolist() == []


@pytest.mark.parametrize("least", [1, 100], ids=["many", "few"])
@pytest.mark.parametrize("times", [[3, 3, 3], [3, 4, 3]], ids=["of one time", "of several"])
def test_rows_that_come_packed_wait_as_others(
    times: list[int], least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consolidate, "PILED_ROWS_MIN", least)
    waiting = WaitingRows(3, CODES[1].guards)
    waiting.add(Block(np.array([[5, 6, 5], times, [1, 1, 1]])))
    waiting.add(np.array([[6], [3], [-1]]))
    waiting.check_invariants()
    assert waiting.rows == 4
    assert rows_of(waiting.take_ready(np.array([3]))) == []
    ready = rows_of(waiting.take_ready(np.array([4])))
    later = rows_of(waiting.take_ready(np.empty(0, np.int64)))
    if len(set(times)) == 1:
        assert (ready, later) == ([(5, 3, 2)], [])
    else:
        assert (ready, later) == ([(5, 3, 2), (6, 3, -1)], [(6, 4, 1)])


def test_rows_that_were_looked_through_often_count_once() -> None:
    """Those of one part are cut by time in the end."""
    epochs = np.arange(200)
    waiting = WaitingRows(3, CODES[1].guards)
    waiting.add(np.stack([epochs, epochs, np.ones_like(epochs)]))
    for epoch in epochs.tolist():
        assert rows_of(waiting.take_ready(np.array([epoch + 1]))) == [(epoch, epoch, 1)]
        assert waiting.rows == 199 - epoch
        waiting.check_invariants()


def test_rows_of_many_epochs_that_leave_one_by_one_are_not_looked_through_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One part with all epochs, and a part for each."""
    looked_at = 0
    split_ready = consolidate.split_ready

    def counted(
        words: np.typing.NDArray[np.int64], column: int, frontier: np.typing.NDArray[np.int64], guards: int
    ) -> tuple[np.typing.NDArray[np.int64], np.typing.NDArray[np.int64]]:
        nonlocal looked_at
        looked_at += words.shape[1]
        ready, later = split_ready(words, column, frontier, guards)
        return ready, later

    monkeypatch.setattr(consolidate, "split_ready", counted)
    epochs = np.arange(5_000)
    waiting = WaitingRows(3, CODES[1].guards)
    waiting.add(np.stack([epochs, epochs, np.ones_like(epochs)]))
    for epoch in epochs.tolist():
        waiting.add(np.array([[epoch], [epoch], [1]]))
    for epoch in epochs.tolist():
        assert rows_of(waiting.take_ready(np.array([epoch + 1]))) == [(epoch, epoch, 2)]
    assert waiting.rows == 0
    assert looked_at <= 2 * 33 * len(epochs)
