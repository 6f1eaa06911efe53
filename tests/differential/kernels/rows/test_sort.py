"""Sorting and consolidating: the same as a dictionary, whatever the values and however many.

any_*      hypothesis, values of all widths
large_*    the ways that are taken for many rows
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.words import Row, as_words, consolidated, rows_of
from strategies_words import rows

from differential.kernels.rows.packing import survey
from differential.kernels.rows.sort import (
    PackedRows,
    is_consolidated,
    sort_consolidate,
    sort_indexed,
    sort_many,
    sort_parts,
)
from differential.thresholds import MANY_ROWS


@given(st.integers(0, 3).flatmap(lambda words: st.tuples(st.just(words + 2), rows(words))))
def test_any_few_values_are_packed_and_summed(case: tuple[int, list[Row]]) -> None:
    columns, some = case
    assert rows_of(sort_consolidate(as_words(some, columns))) == consolidated(some)


@given(st.integers(1, 3).flatmap(lambda words: st.tuples(st.just(words + 2), rows(words, wide=True))))
def test_any_values_of_all_64_bits(case: tuple[int, list[Row]]) -> None:
    columns, some = case
    assert rows_of(sort_consolidate(as_words(some, columns))) == consolidated(some)


@pytest.mark.parametrize("more", range(9))
def test_a_sum_may_leave_64_bits_on_its_way_and_not_at_its_end(more: int) -> None:
    """However few rows there are; whichever way is taken for them."""
    others: list[Row] = [(number, 0, 1) for number in range(more)]
    back = [(7, 3, 2**62), (7, 3, 2**62), *others, (7, 3, -(2**62))]
    assert rows_of(sort_consolidate(as_words(back, 3))) == consolidated(back)
    for sign in (1, -1):
        beyond = [(7, 3, sign * 2**62), *others, (7, 3, sign * 2**62), (7, 3, sign)]
        with pytest.raises(OverflowError):
            sort_consolidate(as_words(beyond, 3))


@given(rows(2, wide=True, rows_max=80).filter(len))
def test_any_sorting_by_index_is_the_same(some: list[Row]) -> None:
    words = as_words(some, 4)
    seen = np.empty((4, 4), np.int64)
    survey(words, seen, 1)
    assert rows_of(sort_indexed(words, seen)) == consolidated(some)


@given(rows(2, rows_max=6))
def test_any_rows_are_known_to_be_consolidated(some: list[Row]) -> None:
    assert is_consolidated(as_words(some, 4)) == (some == consolidated(some))
    assert is_consolidated(as_words(consolidated(some), 4))


@given(rows(2, rows_max=40).filter(len), st.integers(1, 9), st.integers(0, 2))
def test_any_rows_are_unpacked_in_blocks_that_keep_keys_together(
    some: list[Row], at_a_time: int, columns: int
) -> None:
    packed = sort_many([as_words(some, 4)])
    assert isinstance(packed, PackedRows)
    blocks = [rows_of(block) for block in packed.blocks(at_a_time, columns)]
    assert [row for block in blocks for row in block] == consolidated(some)
    for block, following in itertools.pairwise(blocks):
        assert len(block) <= at_a_time
        if block[-1][:columns] == following[0][:columns]:  # one key has more rows than a block
            assert {row[:columns] for row in block} == {following[0][:columns]}
            assert len(block) == at_a_time
        else:  # the next key had no room
            more = sum(row[:columns] == following[0][:columns] for row in consolidated(some))
            assert len(block) + more > at_a_time


@pytest.mark.parametrize(
    ("at_a_time", "columns", "sizes"),
    [
        (3, 0, [3, 3, 3, 1]),
        (3, 1, [3, 3, 1, 3]),
        (7, 1, [7, 3]),
        (9, 1, [7, 3]),
        (1, 1, [1] * 10),
        (10, 1, [10]),
    ],
)
def test_blocks_are_as_large_as_they_may_be(at_a_time: int, columns: int, sizes: list[int]) -> None:
    some = [(5, value, 0, 1) for value in range(7)] + [(6, value, 0, -1) for value in range(3)]
    packed = sort_many([as_words(some, 4)])
    assert isinstance(packed, PackedRows)
    blocks = [rows_of(block) for block in packed.blocks(at_a_time, columns)]
    assert [len(block) for block in blocks] == sizes
    assert [row for block in blocks for row in block] == some


@pytest.mark.parametrize("count", [25, 300, 5_000, MANY_ROWS + 17])
@pytest.mark.parametrize("high", [50, 2**20, 2**62])
def test_large_tables_in_parts_and_whole(count: int, high: int) -> None:
    rng = np.random.default_rng(count)
    words = rng.integers(-high, high, (4, count))
    words[2] = rng.integers(0, 5, count)
    words[3] = rng.choice([-1, 1], count)
    words[:3, count // 2 :] = words[:3, : count - count // 2]
    want = consolidated(rows_of(words))
    assert rows_of(sort_consolidate(words)) == want
    parts = [np.ascontiguousarray(words[:, :7]), np.ascontiguousarray(words[:, 7:])]
    assert rows_of(sort_parts(parts)) == want


def test_large_sorted_rows_stay_as_they_are() -> None:
    words = np.stack([np.arange(100), np.arange(100), np.zeros(100, np.int64), np.ones(100, np.int64)])
    assert np.array_equal(sort_consolidate(words), words)


@given(rows(2, rows_max=40).filter(consolidated), st.integers(1, 9))
def test_any_rows_are_drained_some_at_a_time_and_lie_within_their_ranges(
    some: list[Row], at_a_time: int
) -> None:
    packed = sort_many([as_words(some, 4)])
    assert isinstance(packed, PackedRows)
    ranges = packed.ranges()
    drained = [rows_of(words) for words in packed.drained(at_a_time)]
    assert all(len(block) == at_a_time for block in drained[:-1])
    every = [row for block in drained for row in block]
    assert every == consolidated(some)
    for (low, high), column in zip(ranges.tolist(), zip(*every, strict=True), strict=True):
        assert low <= min(column) <= max(column) <= high
