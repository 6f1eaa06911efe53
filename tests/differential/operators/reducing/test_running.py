"""running.py: a state is all that later rows need of those before: a group may be cut anywhere."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from differential.columns.column_types import Int64s, decimal
from differential.operators.reducing.frames import part_answers
from differential.operators.reducing.running import run_states, states_at
from differential.operators.reducing.window_parts import (
    Copies,
    Frame,
    WindowFunctions,
    WindowPart,
    copies_of,
)

WORDS = 4
"""The order; a flag, a whole number; the word of a float."""

PARTS = (
    WindowPart("row_number"),
    WindowPart("rank"),
    WindowPart("dense_rank"),
    WindowPart("count"),
    WindowPart("count", value=2, flag=1),
    WindowPart("sum", value=2, flag=1),
    WindowPart("sum", value=2, flag=1, of=decimal(18, 2), to=decimal(28, 2)),
    WindowPart("sum", value=2, flag=1, of=decimal(18, 2), to=decimal(18, 2)),
    WindowPart("avg", value=2, flag=1, of=decimal(18, 2), to=decimal(22, 6)),
    WindowPart("avg", value=2, flag=1),
    WindowPart("sum", value=3, is_float=True),
    WindowPart("avg", value=3, is_float=True),
    WindowPart("min", value=2, flag=1),
    WindowPart("max", value=3, is_float=True),
    WindowPart("first_value", value=2, flag=1),
    WindowPart("nth_value", value=2, flag=1, amount=3),
    WindowPart("last_value", value=2, flag=1),
)

numbers = st.one_of(st.integers(-9, 9), st.sampled_from([-(1 << 63), (1 << 63) - 1, 10**18]))
line = st.tuples(
    st.integers(0, 5), st.booleans(), numbers, st.sampled_from([0.1, 1e16, -3.5]), st.integers(1, 2)
)


def answers_of(rows: Int64s, functions: WindowFunctions, before: Int64s) -> tuple[Copies, Int64s, Int64s]:
    """Return the copies of one group, their answers, and the state at the last one."""
    bounds = np.array([[0], [rows.shape[1]]], np.int64)
    copies = copies_of(rows, np.ascontiguousarray(rows[-1:]), bounds, functions)
    states = run_states(copies, functions, before)
    last = np.array([copies.number.shape[0] - 1])
    answers = part_answers(copies, functions, states, before)
    return copies, answers, states_at(copies, functions, states, before, last)


@given(
    st.lists(line, min_size=2, max_size=9),
    st.sampled_from([("rows", 0), ("range", 0), ("groups", 0)]),
    st.data(),
)
def test_answers_behind_a_cut_follow_from_the_state_before_it(
    lines: list[tuple[int, bool, int, float, int]], frame: tuple[str, int], data: st.DataObject
) -> None:
    lines.sort(key=lambda each: each[0])
    rows = np.zeros((WORDS + 1, len(lines)), np.int64)
    for at, (order, is_there, value, number, count) in enumerate(lines):
        word = np.float64(number).view(np.int64)
        rows[:, at] = order, is_there, value * is_there, word if word >= 0 else word ^ ((1 << 63) - 1), count
    functions = WindowFunctions(PARTS, Frame(frame[0], None, frame[1]), WORDS, 1)  # type: ignore[arg-type]
    nothing = np.zeros((2 + 3 * len(PARTS), 1), np.int64)
    _, whole, end = answers_of(rows, functions, nothing)
    cuts = [at for at in range(1, len(lines)) if lines[at][0] != lines[at - 1][0]]  # between peers
    if not cuts:
        return
    cut = data.draw(st.sampled_from(cuts))
    _, front, state = answers_of(np.ascontiguousarray(rows[:, :cut]), functions, nothing)
    _, back, same_end = answers_of(np.ascontiguousarray(rows[:, cut:]), functions, state)
    assert np.array_equal(np.concatenate([front, back], axis=1), whole)
    assert np.array_equal(end, same_end)
