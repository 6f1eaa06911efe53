"""running.py: running sums and extremes, and the answers that differ, beside plain Python."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from differential.kernels.sweeps.running import (
    FLOAT_SUM,
    GREATEST,
    LEAST,
    WHOLE_SUM,
    answer_changes,
    order_of,
    run_on,
    spread,
)

TOP = (1 << 63) - 1
numbers = st.one_of(st.integers(-3, 3), st.sampled_from([-TOP - 1, TOP]))
some_rows = st.lists(st.tuples(numbers, st.booleans(), st.integers(0, 2)), max_size=9)


@given(some_rows, st.lists(st.tuples(st.integers(0, 2), numbers), min_size=3, max_size=3))
def test_states_go_on_from_those_before(
    lines: list[tuple[int, bool, int]], begins: list[tuple[int, int]]
) -> None:
    lines.sort(key=lambda each: each[2])
    values = np.array([value for value, *_ in lines], np.int64)
    there = np.array([is_there for _, is_there, _ in lines], np.int64)
    number = np.array([number for *_, number in lines], np.int64)
    state = np.array(
        [[count, -(word < 0) * (count > 0), word * (count > 0)] for count, word in begins], np.int64
    )
    for kind in (WHOLE_SUM, LEAST, GREATEST):
        out = run_on(values, there, number, state.T.copy(), kind)
        for row in range(len(lines)):
            count, word = begins[number[row]]
            seen = [word] * min(count, 1)
            mine = range(row + 1)
            seen += [int(values[at]) for at in mine if number[at] == number[row] and there[at]]
            assert out[0, row] == count + len(seen) - min(count, 1)
            if kind == WHOLE_SUM:
                assert (int(out[1, row]) << 64) + (int(out[2, row]) & (1 << 64) - 1) == sum(seen)
            elif seen:
                assert out[2, row] == (min if kind == LEAST else max)(seen)


def test_floats_are_added_one_by_one_behind_the_sum_before() -> None:
    values = np.array([0.1, 0.2, 1e16, 1.0], np.float64).view(np.int64)
    state = np.array([[1], [0], [np.float64(0.3).view(np.int64)]], np.int64)
    out = run_on(values, np.array([1, 1, 0, 1]), np.zeros(4, np.int64), state, FLOAT_SUM)
    assert out[2].view(np.float64).tolist() == [
        0.3 + 0.1,
        0.3 + 0.1 + 0.2,
        0.3 + 0.1 + 0.2,
        0.3 + 0.1 + 0.2 + 1.0,
    ]
    assert out[0].tolist() == [2, 3, 3, 4]


@given(st.lists(st.tuples(st.integers(-1, 2), st.integers(-1, 2), st.booleans()), max_size=6), st.data())
def test_answers_that_differ_come_and_go(lines: list[tuple[int, int, bool]], data: st.DataObject) -> None:
    """Rows with their counts before and then; a stretch begins with each that is marked."""
    counts = np.array([[before, then - before] for before, then, _ in lines], np.int64).reshape(-1, 2).T
    rows = np.concatenate([np.arange(len(lines))[np.newaxis], counts]).copy()
    begins = sorted({0, *(at for at, each in enumerate(lines) if each[2])}) if lines else []
    spans = np.array([begins, [*begins[1:], len(lines)][: len(begins)], begins], np.int64)
    ready = np.array(
        [[at // 2 for at in range(len(lines))], range(len(lines)), [7] * len(lines), [1] * len(lines)],
        np.int64,
    )
    copies = [[(at, max(each[side], 0)) for at, each in enumerate(lines)] for side in (0, 1)]
    of = [at for side in copies for at, count in side for _ in range(count)]
    answers = np.array([data.draw(st.integers(0, 1)) for _ in of], np.int64).reshape(1, -1)
    out, is_sorted = answer_changes(ready, 1, rows, spans, answers)
    expected: Counter[tuple[int, ...]] = Counter()
    old = sum(count for _, count in copies[0])
    for at, row in enumerate(of):
        begin = max(each for each in begins if each <= row)
        expected[int(ready[0, begin]), row, int(answers[0, at]), 7] += 1 if at >= old else -1
    got: Counter[tuple[int, ...]] = Counter()
    for *line, diff in out.T.tolist():
        got[tuple(line)] += diff
    assert {line: diff for line, diff in got.items() if diff} == {
        line: diff for line, diff in expected.items() if diff
    }
    if is_sorted:
        listed = [tuple(line[:-1]) for line in out.T.tolist()]
        assert listed == sorted(set(listed))
    assert is_sorted or any(max(before, then) > 1 for before, then, _ in lines)


def test_answers_are_compared_word_by_word() -> None:
    answers = np.array([[1, 1, 1], [2, 3, 2]], np.int64)
    assert [order_of(answers, 0, at) for at in range(3)] == [0, -1, 0] and order_of(answers, 1, 2) == 1


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(-1, 2), st.integers(-1, 2)), max_size=8),
    st.integers(0, 4),
)
def test_copies_know_their_groups_and_peers(lines: list[tuple[int, int, int]], cut: int) -> None:
    cut = min(cut, len(lines))
    lines = sorted(lines[:cut]) + sorted(lines[cut:])
    rows = np.array([[value for value, *_ in lines]], np.int64).reshape(1, -1)
    times = np.array([[line[1] for line in lines], [line[2] for line in lines]], np.int64).reshape(2, -1)
    bounds = np.array([[0, cut], [cut, len(lines)]], np.int64)
    out = spread(rows, times, bounds, 1)
    expected = [
        (row, 2 * version + (row >= cut), lines[row][0])
        for version in (0, 1)
        for row in range(len(lines))
        for _ in range(lines[row][1 + version])
    ]
    groups, peers = [number for _, number, _ in expected], [(number, value) for _, number, value in expected]
    assert out[:2].T.tolist() == [[row, number] for row, number, _ in expected]
    for at in range(len(expected)):
        for begin, end, of in ((out[2], out[3], groups), (out[4], out[5], peers)):
            assert (begin[at], end[at]) == (of.index(of[at]), len(of) - of[::-1].index(of[at]))
