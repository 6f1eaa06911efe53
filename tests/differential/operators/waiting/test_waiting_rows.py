"""Rows wait until their times are complete, however many they are; and so do pending times, a set of pairs
(key, time), near or far, against a set that is looked through.
"""

from __future__ import annotations

import random

import numpy as np
import pytest
from reference.words import as_words, beyond, less_equal, rows_of
from strategies_words import CODES, RandomHistory

from differential.columns.packed.block import Block
from differential.kernels.rows.marking import SymbolMarking
from differential.operators.waiting import waiting_rows
from differential.operators.waiting.waiting_rows import PendingTimes, WaitingRows
from progress.times.anchor import Rebase
from timely.dictionaries import Mark


@pytest.mark.parametrize("limit", [0, 32], ids=["by time", "in parts"])
def test_waiting_rows_know_how_many_they_are_and_their_minimal_times(
    limit: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting_rows, "_PARTS_MAX", limit)
    monkeypatch.setattr(waiting_rows, "_LOOKS_MAX", limit)
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
    monkeypatch.setattr(waiting_rows, "PACKED_ROWS_MIN", least)
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
    split_ready = waiting_rows.split_ready

    def counted(
        words: np.typing.NDArray[np.int64], column: int, frontier: np.typing.NDArray[np.int64], guards: int
    ) -> tuple[np.typing.NDArray[np.int64], np.typing.NDArray[np.int64]]:
        nonlocal looked_at
        looked_at += words.shape[1]
        ready, later = split_ready(words, column, frontier, guards)
        return ready, later

    monkeypatch.setattr(waiting_rows, "split_ready", counted)
    epochs = np.arange(5_000)
    waiting = WaitingRows(3, CODES[1].guards)
    waiting.add(np.stack([epochs, epochs, np.ones_like(epochs)]))
    for epoch in epochs.tolist():
        waiting.add(np.array([[epoch], [epoch], [1]]))
    for epoch in epochs.tolist():
        assert rows_of(waiting.take_ready(np.array([epoch + 1]))) == [(epoch, epoch, 2)]
    assert waiting.rows == 0
    assert looked_at <= 2 * 33 * len(epochs)


@pytest.mark.parametrize("limit", [0, 3, 1024], ids=["far at once", "far soon", "near"])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_pairs_leave_when_their_time_is_complete(
    depth: int, limit: int, seed: int, effort: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting_rows, "_NEAR_MAX", limit)
    monkeypatch.setattr(waiting_rows, "_LOOKS_MAX", min(limit, 2))
    code = CODES[depth]
    for trial in range(10 * effort):
        rng = random.Random(f"{seed} {depth} {trial}")
        times, known = PendingTimes(2, code.guards), set()
        for step in range(12):
            lowest = step // 2
            some = {
                (
                    rng.randint(0, 3),
                    rng.randint(-1, 1),
                    code.pack(tuple(rng.randint(lowest, lowest + 4) for _ in range(depth))),
                )
                for _ in range(rng.randint(0, 10))
            }
            if some:
                times.add(as_words(sorted(some), 3))
            known |= some
            frontier = np.array(
                sorted({code.pack(tuple(rng.randint(lowest, lowest + 2) for _ in range(depth)))}), np.int64
            )
            expected = sorted(pair for pair in known if not beyond(pair[2], frontier, code.guards))
            assert rows_of(times.take_ready(frontier)) == expected
            known -= set(expected)
            times.check_invariants()
            words = {pair[2] for pair in known}
            minimal = sorted(
                word
                for word in words
                if not any(o != word and less_equal(o, word, code.guards) for o in words)
            )
            assert times.times(np.empty(0, np.int64)).tolist() == minimal
        assert rows_of(times.take_ready(np.empty(0, np.int64))) == sorted(known)


@pytest.mark.parametrize("near", [0, 1024], ids=["far", "near"])
def test_pairs_are_the_same_when_words_count_from_a_later_epoch(
    near: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting_rows, "_NEAR_MAX", near)
    monkeypatch.setattr(waiting_rows, "_LOOKS_MAX", 0)
    times = PendingTimes(1, CODES[1].guards)
    pairs = np.array([[1, 2, 3], [7, 8, 9]])
    times.add(pairs)
    times.take_ready(np.array([5]))
    assert (times._far.rows > 0) == (near == 0)
    times.rebase(Rebase(5, 0))
    times.check_invariants()
    assert pairs.tolist() == [[1, 2, 3], [7, 8, 9]], "others may have it"
    assert times.times(np.empty(0, np.int64)).tolist() == [2]
    assert rows_of(times.take_ready(np.array([4]))) == [(1, 2), (2, 3)]
    assert rows_of(times.take_ready(np.empty(0, np.int64))) == [(3, 4)]


@pytest.mark.parametrize("parts", [0, 32], ids=["by time", "in parts"])
def test_rows_are_the_same_when_words_count_from_a_later_epoch(
    parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting_rows, "_PARTS_MAX", parts)
    waiting = WaitingRows(4, CODES[1].guards)
    waiting.add(np.array([[6, 7, 8], [1, 2, 3], [7, 8, 9], [1, 1, -1]]))
    assert bool(waiting._by_time) == (parts == 0)
    waiting.rebase(Rebase(5, 0), 0)
    waiting.check_invariants()
    assert waiting.times(np.empty(0, np.int64)).tolist() == [2]
    assert rows_of(waiting.take_ready(np.array([4]))) == [(1, 1, 2, 1), (2, 2, 3, 1)]
    assert rows_of(waiting.take_ready(np.empty(0, np.int64))) == [(3, 3, 4, -1)]


def test_pairs_that_come_again_and_again_take_no_more_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting_rows, "_NEAR_MAX", 0)
    monkeypatch.setattr(waiting_rows, "_LOOKS_MAX", 0)
    times = PendingTimes(1, CODES[1].guards)
    for _ in range(100):
        times.add(np.array([[1, 2, 3], [7, 7, 8]]))
        times.take_ready(np.array([5]))
    assert times._far.rows <= 12
    assert rows_of(times.take_ready(np.array([8]))) == [(1, 7), (2, 7)]


@pytest.mark.parametrize("near", [0, 1024])
def test_keys_of_all_pairs_are_in_use(near: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting_rows, "_NEAR_MAX", near)
    monkeypatch.setattr(waiting_rows, "_LOOKS_MAX", 0)
    times = PendingTimes(1, CODES[1].guards)
    times.add(np.array([[1 << 40, 2 << 40], [7, 8]]))
    times.take_ready(np.array([5]))
    assert (times._far.rows > 0) == (near == 0)
    marking = SymbolMarking([1 << 40, 2 << 40, 3 << 40])
    times.symbols(Mark([marking]))
    assert marking.in_use_and_not()[1].tolist() == [3 << 40]
