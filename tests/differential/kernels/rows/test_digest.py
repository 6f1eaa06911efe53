"""The digest of rows: linear, whatever their order and times, and fixed for ever."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from reference.words import Row, as_words
from strategies_words import rows

from differential.kernels.rows.digest import digest_at_one_time, digest_by_time

WHOLE = 2**64
OF_ONE_ROW = 2974821367069230258


def _mix(word: int) -> int:
    """splitmix64's finaliser in exact integers."""
    word %= WHOLE
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 % WHOLE
    word = (word ^ word >> 27) * 0x94D049BB133111EB % WHOLE
    return word ^ word >> 31


def slow_digest(some: list[Row]) -> int:
    """The digest of rows in exact integers."""
    total = 0
    for *row, _, diff in some:
        factors = [_mix((column + 1) * 0x1E3779B97F4A7C15) | 1 for column in range(len(row))]
        total += diff * _mix(sum(word * factor for word, factor in zip(row, factors, strict=True)))
    return total % WHOLE


def digest_of(some: list[Row], columns: int) -> tuple[int, bool]:
    sums = np.zeros(1, np.int64)
    is_one_time = digest_at_one_time(as_words(some, columns), sums)
    return int(sums[0]) % WHOLE, bool(is_one_time)


@given(st.integers(0, 3).flatmap(lambda width: st.tuples(st.just(width), rows(width, wide=True))))
def test_the_digest_is_the_sum_over_rows(case: tuple[int, list[Row]]) -> None:
    width, some = case
    if some:
        is_one_time = len({row[-2] for row in some}) == 1
        assert digest_of(some, width + 2) == (slow_digest(some), is_one_time)


@given(rows(2, wide=True))
def test_rows_of_several_times_are_added_up_by_time(some: list[Row]) -> None:
    times = sorted({row[-2] for row in some})
    sums = np.zeros(len(times), np.int64)
    digest_by_time(as_words(some, 4), np.array(times, np.int64), sums)
    assert [digest % WHOLE for digest in sums.tolist()] == [
        slow_digest([row for row in some if row[-2] == time]) for time in times
    ]


@given(st.integers(0, 3_000), st.integers(-5, 5))
def test_many_rows_are_added_up_in_pieces(count: int, diff: int) -> None:
    some: list[Row] = [(index, index % 7, 5, diff) for index in range(count + 1)]
    assert digest_of(some, 4) == (slow_digest(some), True)


def test_the_digest_of_a_row_never_changes() -> None:
    """Digests of one release are compared by the next."""
    assert digest_of([(1, -5, 3, 2)], 4)[0] == slow_digest([(1, -5, 9, 2)]) == OF_ONE_ROW
