"""decimal_frames.py: sums, means and extremes over frames, against fractions of Python."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from differential.columns.column_types import Int64s, decimal
from differential.columns.wide.digits import mean_of_decimals, sum_of_decimals
from differential.columns.wide.wide_words import integers_of, of_integers
from differential.expressions.arithmetic.wide_numbers import Numbers
from differential.operators.reducing.decimal_frames import decimal_means, decimal_sums, wide_extremes


@st.composite
def frames_of(draw: st.DrawFn, digits: int) -> tuple[list[int], list[int], Int64s]:
    """Numbers, which of them are there (not null), and a frame for each."""
    end = 10**digits - 1
    number = st.one_of(st.integers(-2, 2), st.sampled_from([end, -end]), st.integers(-end, end))
    numbers = draw(st.lists(number, min_size=1, max_size=6))
    rows = len(numbers)
    there = draw(st.lists(st.integers(0, 1), min_size=rows, max_size=rows))
    starts = sorted(draw(st.lists(st.integers(0, rows), min_size=rows, max_size=rows)))
    stops = sorted(draw(st.lists(st.integers(0, rows), min_size=rows, max_size=rows)))
    return numbers, there, np.array([starts, np.maximum(starts, stops)], np.int64)


def _half_up(number: Fraction) -> int:
    whole = (2 * abs(number) + 1) // 2
    return int(whole if number >= 0 else -whole)


@pytest.mark.parametrize("digits", [9, 18, 19, 38])
@given(data=st.data())
def test_each_frame_has_its_exact_sum_mean_and_extremes(digits: int, data: st.DataObject) -> None:
    numbers, there, frames = data.draw(frames_of(digits))
    type_, flags = decimal(digits, 2), np.array(there, np.int64)
    exact = np.array(numbers, object)
    words = of_integers(exact) if type_.is_wide else exact.astype(np.int64)
    inside = [[numbers[at] for at in range(start, stop) if there[at]] for start, stop in frames.T.tolist()]
    counts = np.array([len(each) for each in inside], np.int64)
    column = Numbers(words, 2, type_.is_wide)
    for to, (found, failing), wanted in (
        (
            sum_of_decimals(type_),
            decimal_sums(column, flags, frames, sum_of_decimals(type_)),
            [sum(each) for each in inside],
        ),
        (
            mean_of_decimals(type_),
            decimal_means(column, flags, frames, counts, mean_of_decimals(type_)),
            [_half_up(Fraction(sum(each) * 10**4, max(len(each), 1))) for each in inside],
        ),
    ):
        read = integers_of(found) if to.is_wide else found
        fails = [False] * len(inside) if failing is None else failing.tolist()
        assert fails == [abs(number) >= 10**to.precision for number in wanted]
        assert [n for n, fail in zip(read.tolist(), fails, strict=True) if not fail] == [
            n for n, fail in zip(wanted, fails, strict=True) if not fail
        ]
    if type_.is_wide:
        for sign, choose in ((1, min), (-1, max)):
            answer = wide_extremes(words, flags, frames, sign)
            assert answer[0].tolist() == [int(bool(each)) for each in inside]
            assert integers_of(answer[1:]).tolist() == [choose(each, default=0) for each in inside]
