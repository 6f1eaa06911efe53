"""Groups read in full: what the aggregates of one group are. At every time and frontier: `test_reduce.py`."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from reference.words import Row, accumulated, as_words, consolidated, reduced, rows_of
from strategies_words import CODES, rows

from differential.kernels.history.groups import COUNT, GREATEST, LEAST, collect_groups, evaluate
from differential.trace.trace import Trace

GUARDS = CODES[2].guards
PARTS = [("count", 0), ("min", 0), ("max", 1), ("min", 1)]
KINDS = {"count": COUNT, "min": LEAST, "max": GREATEST}


@given(
    rows(2, rows_max=12), st.lists(st.sampled_from(PARTS), max_size=4), st.integers(0, 3), st.integers(0, 3)
)
def test_aggregates_of_a_group_at_a_time(
    some: list[Row], parts: list[tuple[str, int]], epoch: int, i: int
) -> None:
    held, time = consolidated(some), CODES[2].pack((epoch, i))
    aggregates = np.array([(KINDS[kind], word) for kind, word in parts], np.int64).reshape(-1, 2).T.copy()
    wanted = np.zeros(len(parts) + 2, np.int64)
    present = evaluate(as_words(held, 4), len(held), time, GUARDS, aggregates, wanted)
    want = reduced(accumulated(held, time, GUARDS), 0, parts)
    assert present == bool(want)
    if present:
        assert want == {tuple(wanted[: len(parts)].tolist()): 1}


def test_a_function_is_shown_each_group_at_each_of_its_times() -> None:
    code = CODES[2]
    times = [code.pack(time) for time in [(0, 0), (0, 1), (1, 0), (1, 1)]]
    trace, answers = Trace(1, 1, GUARDS), Trace(1, 1, GUARDS)
    trace.insert(as_words([(1, 5, times[1], 1), (2, 6, times[0], 1)], 4))
    answers.insert(as_words([(1, 50, times[1], 1), (2, 60, times[0], 1)], 4))
    ready, none = as_words([(1, 7, times[2], 2)], 4), np.empty((2, 0), np.int64)
    frontier, shape = np.array([code.pack((2, 0))]), np.array([1, 1, GUARDS, 1, -1])
    groups, members, history, pended = collect_groups(
        ready, none, trace.table, answers.table, frontier, shape
    )
    assert rows_of(groups) == [(1, times[2], 0, 1, 0, 1), (1, times[3], 1, 3, 0, 1)]
    assert rows_of(members) == [(7, 2), (5, 1), (7, 2)]
    assert rows_of(history) == [(50, times[3], 1)], "advanced to the earliest time that is asked about"
    assert rows_of(pended) == []
