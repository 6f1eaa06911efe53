"""around.py: stretches have the changed rows, and enough of the others on either side."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from differential.columns.column_types import Int64s
from differential.kernels.rows.sort import sort_consolidate
from differential.kernels.sweeps.around import (
    AHEAD,
    BACK,
    BLOCKS,
    DISTANCE,
    EDGE,
    FLAG,
    KW,
    LIMIT,
    MARKED,
    NEAR,
    VW,
    WHOLE,
    WORD,
    find_row,
    stretch_rows,
)
from differential.trace.trace import Trace

Row = tuple[int, int, int]
Pair = tuple[int, int]
rows = st.tuples(st.integers(0, 1), st.integers(0, 9), st.integers(0, 2))
PAIR = st.tuples(st.integers(0, 3), st.integers(0, 3))
changes = st.lists(st.tuples(rows, st.sampled_from([-1, 1, 1, 2])), max_size=12)


def words_of(changes: list[tuple[Row, int]], time: int) -> Int64s:
    lines = [(*row, time, diff) for row, diff in changes]
    return sort_consolidate(np.array(lines, np.int64).reshape(-1, 5).T.copy())


def there_of(before: Counter[Row], key: int) -> list[Row]:
    """The rows of a key that are there, ascending."""
    return sorted(row for row, count in before.items() if count > 0 and row[0] == key)


def least_before(there: list[Row], row: Row, near: int, blocks: int, distance: int) -> list[Row]:
    """The rows before a row that are seen from there, at least; blocks go by the first value of the order."""
    earlier = [each for each in there if each < row]
    values = sorted({each[1] for each in earlier if each[1] < row[1]})[::-1][: max(blocks, 0)]
    wanted = earlier[max(len(earlier) - near, 0) :]
    wanted += [each for each in earlier if blocks >= 0 and each[1] in (row[1], *values)]
    return wanted + [each for each in earlier if distance >= 0 and each[1] >= row[1] - distance]


def seen_before(
    there: list[Row], change: Row, first: tuple[int, int, int], then: tuple[int, int, int]
) -> list[Row]:
    """The rows before a change that its stretch has at least: those that see it, and what these see."""
    seeing = least_before(there, change, *first)
    return seeing + least_before(there, min([change, *seeing]), *then)


def mirrored(row: Row) -> Row:
    return row[0], -row[1], -row[2]


@given(
    st.lists(changes, max_size=4),
    changes,
    st.tuples(PAIR, st.integers(0, 3), PAIR, PAIR, st.booleans(), st.booleans(), st.booleans()),
    st.lists(rows, max_size=4),
)
def test_stretches_have_the_changes_and_what_is_around_them(
    earlier: list[list[tuple[Row, int]]],
    now: list[tuple[Row, int]],
    options: tuple[Pair, int, Pair, Pair, bool, bool, bool],
    marked: list[Row],
) -> None:
    near, limit, blocks, distance, has_blocks, has_distance, is_whole = options
    blocks = blocks if has_blocks or has_distance else (-1, -1)
    distance = distance if has_distance else (-1, -1)
    back, ahead = zip(near, blocks, distance, strict=True)
    trace = Trace(1, 2, 1 << 62)
    before: Counter[Row] = Counter()
    for time, some in enumerate(earlier):
        trace.insert(words_of(some, time))
        for row, diff in some:
            before[row] += diff
    ready = words_of(now, len(earlier))
    marks = np.array(sorted(set(marked)), np.int64).reshape(-1, 3).T.copy()
    shape = np.zeros(14, np.int64)
    shape[[KW, VW, LIMIT, EDGE, FLAG]] = 1, 2, limit, 1, -1
    shape[[WORD, WHOLE, MARKED]] = 0 if has_distance else -1, is_whole, bool(marked)
    for side in (BACK, AHEAD):
        shape[[NEAR + side, BLOCKS + side, DISTANCE + side]] = (
            near[side],
            blocks[side],
            max(distance[side], 0),
        )
    out, spans = stretch_rows(ready, trace.lines, marks, shape)
    delta = {tuple(line[:3]): line[4] for line in ready.T.tolist()}
    seen, last_row = list[Row](), (-1, -1, -1)
    for first, end, of, mark, marks_from, marks_to, last, at_end, last_seeing in spans.T.tolist():
        key = int(ready[0, of])
        there = there_of(before, key)
        lines = out[:, first:end].T.tolist()
        stretch: list[Row] = [(key, line[0], line[1]) for line in lines]
        assert stretch == sorted(set(stretch)) and last_row < stretch[0]
        last_row = stretch[-1]
        for row, line in zip(stretch, lines, strict=True):
            assert (line[2], line[3]) == (before[row], delta.get(row, 0))
        own = [row for row in stretch if row in delta]
        assert own and own[-1] == stretch[last - first]
        seen += own
        assert [row for row in there if stretch[0] <= row <= stretch[-1]] == [
            row for row in stretch if row in there
        ], "no row is left out"
        for change in own:
            assert set(seen_before(there, change, ahead, back)) <= set(stretch)
        behind = sorted(map(mirrored, there))
        last_change, reach = mirrored(own[-1]), (max(back[0], limit), *back[1:])
        seeing = least_before(behind, last_change, *reach)
        assert set(map(mirrored, seen_before(behind, last_change, reach, ahead))) <= set(stretch)
        assert at_end or mirrored(min([last_change, *seeing])) <= stretch[last_seeing - first]
        assert not at_end or not there or there[-1] <= stretch[-1]
        if is_whole:
            assert at_end and set(there) <= set(stretch) and mark == -1
        of_key = [at for at, each in enumerate(marks.T.tolist()) if each[0] == key]
        inside = [
            at
            for at in of_key
            if stretch[0] <= tuple(marks[:, at]) and (at_end or tuple(marks[:, at]) <= stretch[-1])
        ]
        if not is_whole and marked:
            assert mark == max((at for at in of_key if tuple(marks[:, at]) < stretch[0]), default=-1)
            begin = there_of(Counter(dict.fromkeys(there, 1)), key)
            assert (
                stretch[0] == min([row for row in (*begin, *own) if mark < 0 or row > tuple(marks[:, mark])])
                or before[stretch[0]] <= 0
            )
            assert list(range(marks_from, marks_to)) == inside
    assert seen == sorted(delta)


def test_a_search_in_a_span_of_a_run_starts_at_its_beginning() -> None:
    trace = Trace(1, 1, 1 << 62)
    lines = np.array([[0, value, 0, 1] for value in (1, 3, 3, 5, 7)], np.int64).T.copy()
    lines[2] = range(5)
    trace.insert(lines)
    wanted = np.array([[3, 9]], np.int64)
    run = trace.lines.shape[0] - 1
    for span, past, place in (((0, 5), 0, 1), ((0, 5), 1, 3), ((2, 5), 0, 2), ((3, 3), 0, 3)):
        assert find_row(trace.lines, run, span, (1, 1), (wanted, 0, 0), past) == place
    assert find_row(trace.lines, run, (0, 5), (1, 1), (wanted, 1, 0), 0) == 5
