"""Merging small tables: the same as sorting them together."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from reference.words import Row, as_words, consolidated, less_equal, rows_of
from strategies_words import CODES, rows

from differential.kernels.merging.merge import insert_into_head, merge
from differential.kernels.rows.memory import HEADER, LUB, ROWS, SIDE

GUARDS = CODES[2].guards


@given(rows(2), rows(2))
def test_merge_is_sorting_together(one: list[Row], other: list[Row]) -> None:
    merged = merge(as_words(consolidated(one), 4), as_words(consolidated(other), 4))
    assert rows_of(merged) == consolidated(one + other)


@given(st.lists(rows(2, rows_max=10), max_size=6))
def test_a_head_holds_all_that_went_in(inserts: list[list[Row]]) -> None:
    head, table = np.empty((8, 64), np.int64), np.zeros((1, HEADER + 12), np.int64)
    held: list[Row] = []
    for some in inserts:
        held += some
        count = insert_into_head(head, table, 0, as_words(consolidated(some), 4), GUARDS)
        start = 4 * int(table[0, SIDE])
        assert count == table[0, ROWS]
        assert rows_of(head[start : start + 4, :count]) == consolidated(held)
        assert all(less_equal(row[2], int(table[0, LUB]), GUARDS) for row in consolidated(held))
