"""Pending times: a set of pairs (key, time), near or far, against a set that is looked through."""

from __future__ import annotations

import random

import numpy as np
import pytest
from reference.words import as_words, beyond, less_equal, rows_of
from strategies_words import CODES

from differential.kernels.rows.marking import SymbolMarking
from differential.operators.waiting import pending
from differential.operators.waiting.pending import PendingTimes
from timely.dictionaries import Mark


@pytest.mark.parametrize("limit", [0, 3, 1024], ids=["far at once", "far soon", "near"])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_pairs_leave_when_their_time_is_complete(
    depth: int, limit: int, seed: int, effort: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pending, "_NEAR_MAX", limit)
    monkeypatch.setattr(pending, "_LOOKS_MAX", min(limit, 2))
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


def test_pairs_that_come_again_and_again_take_no_more_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending, "_NEAR_MAX", 0)
    monkeypatch.setattr(pending, "_LOOKS_MAX", 0)
    times = PendingTimes(1, CODES[1].guards)
    for _ in range(100):
        times.add(np.array([[1, 2, 3], [7, 7, 8]]))
        times.take_ready(np.array([5]))
    assert times._far.rows <= 12
    assert rows_of(times.take_ready(np.array([8]))) == [(1, 7), (2, 7)]


@pytest.mark.parametrize("near", [0, 1024])
def test_keys_of_all_pairs_are_in_use(near: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending, "_NEAR_MAX", near)
    monkeypatch.setattr(pending, "_LOOKS_MAX", 0)
    times = PendingTimes(1, CODES[1].guards)
    times.add(np.array([[1 << 40, 2 << 40], [7, 8]]))
    times.take_ready(np.array([5]))
    assert (times._far.rows > 0) == (near == 0)
    marking = SymbolMarking([1 << 40, 2 << 40, 3 << 40])
    times.symbols(Mark([marking]))
    assert marking.in_use_and_not()[1].tolist() == [3 << 40]
