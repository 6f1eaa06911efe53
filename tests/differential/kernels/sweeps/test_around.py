"""around.py: stretches have the changed rows, and enough of the others on either side."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from differential.columns.column_types import Int64s
from differential.kernels.rows.sort import sort_consolidate
from differential.kernels.sweeps.around import rows_around
from differential.trace.trace import Trace

Row = tuple[int, int, int]
rows = st.tuples(st.integers(0, 1), st.integers(0, 6), st.integers(0, 2))
changes = st.lists(st.tuples(rows, st.sampled_from([-1, 1, 1, 2])), max_size=12)


def words_of(changes: list[tuple[Row, int]], time: int) -> Int64s:
    lines = [(*row, time, diff) for row, diff in changes]
    return sort_consolidate(np.array(lines, np.int64).reshape(-1, 5).T.copy())


@given(st.lists(changes, max_size=4), changes, st.integers(0, 3))
def test_stretches_have_the_changes_and_what_is_around_them(
    earlier: list[list[tuple[Row, int]]], now: list[tuple[Row, int]], width: int
) -> None:
    trace = Trace(1, 2, 1 << 62)
    before: Counter[Row] = Counter()
    for time, some in enumerate(earlier):
        trace.insert(words_of(some, time))
        for row, diff in some:
            before[row] += diff
    ready = words_of(now, len(earlier))
    out = rows_around(ready, trace.lines, 1, 2, width)
    delta = {tuple(line[:3]): line[4] for line in ready.T.tolist()}
    seen: set[Row] = set()
    for number in np.unique(out[4]).tolist():
        lines = out[:, out[4] == number].T.tolist()
        stretch = [(int(ready[0, line[5]]), line[0], line[1]) for line in lines]
        assert stretch == sorted(set(stretch)), "each row once, ascending"
        for row, line in zip(stretch, lines, strict=True):
            assert (line[2], line[3]) == (before[row], delta.get(row, 0))
        own = [row for row in stretch if row in delta]
        assert own and not seen & set(own), "a change is in one stretch"
        seen |= set(own)
        there = sorted(
            row for row, count in before.items() if count > 0 and row[0] == own[0][0] and row not in delta
        )
        inside = [row for row in there if stretch[0] <= row <= stretch[-1]]
        assert [row for row in stretch if row in there] == inside, "and no row is left out"
        assert sum(row < own[0] for row in inside) == min(width, sum(row < own[0] for row in there))
        assert sum(row > own[-1] for row in inside) == min(width, sum(row > own[-1] for row in there))
    assert seen == set(delta)
