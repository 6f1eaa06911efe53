"""near.py: what is near a changed row is gone through again, and nothing else.

law_*    what is accumulated at every time is what whole groups give, in any order of times, compacted or not
spans_*  which rows are near
"""

from __future__ import annotations

import random

import numpy as np
import pytest
from machines import advanced
from reference.words import Row, accumulated, as_words, beyond, closure_of, rows_of
from strategies_words import CODES, RandomHistory

from differential.kernels.sweeps import near
from differential.operators import reduce
from differential.operators.reduce import ReduceMachine
from differential.operators.timed.sweep import SweepFunction
from differential.trace.trace import Trace
from progress.compiled.arrays import Int64s

GAP = 3
RIGHTS = [(1, 0), (2, 0), (3, 9)]
BACKWARD, FORWARD = (0, 1)
RULES = {
    "sessions": SweepFunction("sessions", (), 5),
    "before": SweepFunction("nearest", (1, BACKWARD, -1, 0, 2, 1, 2, 3), 3),
    "before, not at": SweepFunction("nearest", (0, BACKWARD, -1, 1, 2, 1, 2, 3), 3),
    "after": SweepFunction("nearest", (1, FORWARD, -1, 0, 2, 1, 2, 3), 3),
    "after, not at, within": SweepFunction("nearest", (0, FORWARD, 2, 0, 2, 1, 2, 3), 3),
}


def laid_out(words: Int64s, rule: str) -> Int64s:
    """Rows of five small values as the machine takes them: a key, the value words of the rule."""
    key, high, low, side, mark = words[:5]
    at = 4 * high + low
    if rule == "sessions":
        return np.array([key, at, at + GAP, mark, *words[5:]], np.int64)
    right = side & 1
    return np.array([key, right, at, mark * (1 - right), mark * right, *words[5:]], np.int64)


def answers(rows: dict[Row, int], rule: str) -> dict[Row, int]:
    """The definition, of the rows that are there."""
    found: dict[Row, int] = {}
    present = [row for row, count in rows.items() if count > 0]
    for row in present:
        others = [other for other in present if other[0] == row[0]]
        if rule == "sessions":
            start = stop = row[1]
            while any(start - GAP < other[1] < start for other in others):
                start = min(other[1] for other in others if start - GAP < other[1] < start)
            while any(stop < other[1] < stop + GAP for other in others):
                stop = max(other[1] for other in others if stop < other[1] < stop + GAP)
            found[(*row, start, stop + GAP)] = rows[row]
        elif row[1] == 0:
            exact, forward, limit, inner = RULES[rule].options[:4]
            sign = 1 if forward else -1
            apart = {(sign * (other[2] - row[2]), sign * other[4]): other for other in others if other[1]}
            close = [each for each in apart if each[0] >= 1 - exact]
            nearest = apart[min(close)] if close else None
            if nearest is not None and 0 <= limit < min(close)[0]:
                nearest = None
            if nearest is not None or not inner:
                found[(row[0], row[2], row[3], nearest[4] if nearest else 0)] = rows[row]
    return found


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("rule", RULES)
def test_law_at_every_time_answers_are_those_of_whole_groups(
    rule: str, depth: int, seed: int, effort: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reduce, "NEAR_SHARE", 0)
    guards = CODES[depth].guards
    for trial in range(4 * effort):
        rng = random.Random(f"{seed} {trial}")
        machine = ReduceMachine(1, 3 if rule == "sessions" else 4, guards, RULES[rule])
        history = RandomHistory(rng, depth, 5)
        history.diffs = [1, 1, 2] if trial % 2 else [1, 1, 2, -1]
        rows: list[Row] = []
        sent: list[Row] = []
        for step in range(8):
            some = laid_out(history.next_rows(), rule)
            rows += rows_of(some)
            machine.recv(0, [some])
            history.rise() if step < 7 else history.finish()
            sent += rows_of(advanced(machine, history.frontier))
            if rng.random() < 0.3:
                machine.input.compact()
            machine.check_invariants()
            for time in closure_of({row[-2] for row in rows}, guards):
                if not beyond(time, history.frontier, guards):
                    want = answers(accumulated(rows, time, guards), rule)
                    assert accumulated(sent, time, guards) == want, CODES[depth].unpack(time)


def near_rows(rule: int, forward: int, there: list[Row], changed: list[Row]) -> list[Row]:
    """The rows of one key, at the first time, that have to be looked at: numbers of spans in front."""
    guards = CODES[1].guards
    trace, none = Trace(1, 3, guards), Trace(1, 3, guards)
    trace.insert(as_words(sorted((7, *row, 0, 1) for row in there), 6))
    ready = as_words(sorted((7, *row, 1, 1) for row in changed), 6)
    shape = np.array([1, 3, guards, 3, rule, forward], np.int64)
    found, rows, _ = near.rows_near(ready, trace.lines, none.lines, shape)
    assert sorted(row[2:] for row in rows_of(found)) == sorted(row[1:] for row in rows_of(ready))
    return sorted((row[1], *row[2:-2]) for row in rows_of(rows))


def test_spans_of_sessions_end_where_no_row_lasts() -> None:
    there = [(at, at + 3, 0) for at in (0, 2, 10, 12, 14, 20, 30)]
    assert near_rows(near.SESSIONS, 0, there, [(16, 19, 0)]) == [(0, at, at + 3, 0) for at in (10, 12, 14)]
    both = near_rows(near.SESSIONS, 0, there, [(4, 7, 0), (28, 31, 0)])
    assert both == [(0, 0, 3, 0), (0, 2, 5, 0), (1, 30, 33, 0)]
    assert near_rows(near.SESSIONS, 0, there, [(6, 9, 0)]) == []
    assert len(near_rows(near.SESSIONS, 0, there, [(7, 10, 0), (8, 11, 0)])) == 3


def test_spans_of_nearest_reach_to_the_next_right_row() -> None:
    lefts = [(0, at, 0) for at in range(0, 100, 2)]
    rights = [(1, at, 0) for at in (11, 31, 51, 71)]
    there = lefts + rights
    inserted = near_rows(near.NEAREST, BACKWARD, there, [(1, 41, 5)])
    assert [row[2] for row in inserted if row[1] == 0] == list(range(42, 52, 2))
    assert [row[2] for row in inserted if row[1] == 1] == [31, 51]
    before = near_rows(near.NEAREST, FORWARD, there, [(1, 41, 5)])
    assert [row[2] for row in before if row[1] == 0] == list(range(32, 42, 2))
    assert [row[2] for row in before if row[1] == 1] == [31, 51]


def test_spans_of_a_left_row_are_that_row_and_what_it_may_take() -> None:
    there = [(0, at, 0) for at in range(100)] + [(1, 10, 0), (1, 90, 0)]
    assert near_rows(near.NEAREST, BACKWARD, there, [(0, 50, 1)]) == [(0, 0, 50, 0), (0, 1, 10, 0)]
    assert near_rows(near.NEAREST, FORWARD, there, [(0, 50, 1)]) == [(0, 0, 50, 0), (0, 1, 90, 0)]
    assert near_rows(near.NEAREST, FORWARD, there, [(0, 95, 1)]) == [(0, 0, 95, 0)]


def test_spans_go_past_right_rows_that_are_not_surely_there() -> None:
    guards = CODES[1].guards
    trace, none = Trace(1, 3, guards), Trace(1, 3, guards)
    trace.insert(
        as_words([(7, 0, 5, 0, 0, 1), (7, 1, 1, 0, 0, 1), (7, 1, 2, 0, 0, 1), (7, 1, 3, 0, 9, 1)], 6)
    )
    trace.insert(as_words([(7, 1, 2, 0, 4, -1)], 6))
    shape = np.array([1, 3, guards, 3, near.NEAREST, BACKWARD], np.int64)
    ready = as_words([(7, 0, 5, 1, 6, 1), (7, 1, 4, 0, 6, -1)], 6)
    _, rows, _ = near.rows_near(ready, trace.lines, none.lines, shape)
    # 4 has changed, 3 comes later than the change, 2 has gone: 1 is the first that is surely there.
    assert {row[3] for row in rows_of(rows) if row[2] == 1} == {1, 2, 3}
