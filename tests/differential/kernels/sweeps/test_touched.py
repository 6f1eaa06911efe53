"""touched.py: rows by their place in a group, and rows whose order is not that of their texts."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from differential.columns.column_types import Int64s
from differential.kernels.rows.sort import sort_consolidate
from differential.kernels.sweeps.touched import group_sizes, touched_rows, unclear_spans
from differential.trace.trace import Trace

Line = tuple[int, int, int, int]
NO_MARKS = np.empty((4, 0), np.int64)
NO_PLACES = np.empty((2, 0), np.int64)


def words_of(lines: list[Line]) -> Int64s:
    """Rows (key, two words, diff), all of epoch 0."""
    return sort_consolidate(np.array([(*line[:3], 0, line[3]) for line in lines], np.int64).T.copy())


def table_of(*parts: list[Line]) -> Trace:
    """Return a table that keeps each part as a run of its own: it has too many parts to merge any."""
    trace = Trace(1, 2, 1 << 62)
    for part in parts:
        trace.insert(words_of(part))
    return trace


def marks_of(there: dict[int, list[tuple[int, int]]], every: int) -> Int64s:
    """A mark at each so manieth row of each key, with the number of rows up to it."""
    marks = [
        (key, *rows[at], at + 1)
        for key, rows in sorted(there.items())
        for at in range(every, len(rows), every)
        if rows[at : at + 2] != [rows[at]] * 2
    ]
    return np.array(marks, np.int64).reshape(-1, 4).T.copy()


@pytest.mark.parametrize("every", [2, 5, 1000])
def test_law_sizes_and_places_count_copies(every: int) -> None:
    rng = random.Random(every)
    for _ in range(60):
        counts: Counter[tuple[int, int, int]] = Counter()
        parts: list[list[Line]] = []
        for _ in range(4):
            part = [
                (rng.randrange(3), rng.randrange(9), rng.randrange(2), rng.choice([1, 1, 2, -1]))
                for _ in range(12)
            ]
            for *row, diff in part:
                counts[row[0], row[1], row[2]] += diff
            parts.append(part)
        trace = table_of(*parts)
        there = {
            key: sorted(row[1:] for row, count in counts.items() if row[0] == key for _ in range(count))
            for key in range(3)
        }
        marks = marks_of(there, every)
        ready = words_of([(key, 4, 0, 2) for key in (0, 2, 5)])
        sizes = group_sizes(ready, trace.lines, marks, 1, 2)
        assert sizes.T.tolist() == [[at, at + 1, len(there.get(k, [])), 2] for at, k in enumerate((0, 2, 5))]
        places = [(at, number) for at, key in enumerate((0, 2)) for number in range(1, len(there[key]), 7)]
        rows = touched_rows(
            ready, trace.lines, marks, np.array(places, np.int64).reshape(-1, 2).T.copy(), 1, 2
        )
        changed, touched = (
            [(*row,) for row in rows[:3, which].T.tolist()] for which in (rows[4] != 0, rows[4] == 0)
        )
        assert changed == [(*row,) for row in ready[:3].T.tolist()] and not {*changed} & {*touched}
        assert sorted([*changed, *touched]) == [(*row,) for row in rows[:3].T.tolist()]
        wanted = {((0, 2)[at], *there[(0, 2)[at]][number]) for at, number in places}
        wanted |= {(key, *max(there[key])) for key in (0, 2) if max(there[key]) == last_in(parts, key)}
        assert wanted <= {*changed, *touched}
        gone = {*touched} - wanted
        assert all((*row,) >= max(there[key]) for key, *row in gone), "they may have gone"


def last_in(parts: list[list[Line]], key: int) -> tuple[int, int]:
    """The last row of a key that ever came, and did not go with the rows it came with."""
    rows = [
        (int(one), int(two)) for part in parts for k, one, two in words_of(part)[:3].T.tolist() if k == key
    ]
    return max(rows)


def test_a_touched_row_among_the_changed_ones_is_a_changed_one() -> None:
    trace = table_of([(0, 1, 0, 1), (0, 2, 0, 1), (0, 3, 0, 1)])
    ready = words_of([(0, 2, 0, -1), (0, 3, 0, 5)])
    places = np.array([[0, 0], [0, 1]], np.int64)
    rows = touched_rows(ready, trace.lines, NO_MARKS, places, 1, 2)
    assert rows.T.tolist() == [[0, 1, 0, 0, 0], [0, 2, 0, 0, -1], [0, 3, 0, 0, 5]]
    assert touched_rows(ready[:, :1].copy(), trace.lines, NO_MARKS, NO_PLACES, 1, 2)[1].tolist() == [2, 3]


@pytest.mark.parametrize("symbols", [[1], [1, 2]])
@pytest.mark.parametrize(
    ("stretch", "is_unclear"),
    [
        ([(1, 5), (2, 6)], 0),
        ([(2, 6), (3, 4)], 1),  # another symbol of 3 is behind its end
        ([(3, 8), (4, 4)], 1),  # and before its begin
        ([(3, 4), (3, 8)], 1),
        ([(2, 6), (3, 4), (3, 8), (4, 4)], 1),
        ([(4, 4), (5, 1)], 0),
        ([(5, 1), (5, 1)], 0),
        ([], 0),
    ],
)
def test_rows_are_unclear_that_have_other_symbols_behind_equal_words(
    stretch: list[tuple[int, int]], is_unclear: int, symbols: list[int]
) -> None:
    """Also if these are behind symbols that are equal."""
    lines = [(0, 1, 5, 1), (0, 2, 6, 1), (0, 3, 4, 1), (0, 3, 8, 1), (0, 4, 4, 1), (0, 5, 1, 1), (1, 4, 9, 1)]
    equal = [7] * (len(symbols) - 1)
    trace = Trace(1, 2 + len(equal), 1 << 62)
    trace.insert(np.insert(words_of(lines), [2] * len(equal), 7, axis=0))
    rows = np.array([(one, *equal, two) for one, two in stretch], np.int64).reshape(-1, 2 + len(equal))
    spans = np.zeros((9, 1), np.int64)
    spans[1] = len(stretch)
    ready = np.insert(words_of([(0, 1, 1, 1)]), [2] * len(equal), 7, axis=0)
    flags = unclear_spans(ready, trace.lines, rows.T.copy(), spans, 1, np.array(symbols, np.int64))
    assert flags.tolist() == [is_unclear]
