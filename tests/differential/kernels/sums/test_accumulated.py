"""accumulated.py: answers of components are those of the values that these were made of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from reference import collection as plainly
from strategies_words import CODES

from differential.columns.column_types import Int64s
from differential.columns.float_words import floats_to_words, words_to_floats
from differential.kernels.overflow import refuse
from differential.kernels.rows.sort import sort_consolidate
from differential.kernels.sums import accumulated as a
from differential.kernels.sums import components as c
from progress.compiled.kernel import kernel


@kernel
def answer_word(totals: Int64s, asked: Int64s, column: int) -> int:
    """The word that a column of the table asks for; raises if the answer does not fit it."""
    word, excess = a.answer_and_excess(totals, asked, column)
    refuse(excess)
    return word


Values = list[tuple[float, int]]
COUNTS = st.sampled_from([-2, -1, 1, 1, 1, 2, 3])
HARD = st.sampled_from([1e308, -1e308, 1e-320, 0.1, 0.2, -0.3, 1e16, 1.0, math.inf, -math.inf, math.nan])
FLOATS = st.lists(st.tuples(st.one_of(st.floats(), HARD), COUNTS), max_size=8)
WHOLE = st.lists(st.tuples(st.one_of(st.integers(-9, 9), st.integers(-(2**62), 2**62)), COUNTS), max_size=8)
NAMES = {
    "avg": a.MEAN,
    "variance_pop": a.VARIANCE,
    "stddev_pop": a.DEVIATION,
    "variance": a.SAMPLE_VARIANCE,
    "stddev": a.SAMPLE_DEVIATION,
}


def _evaluated(
    values: Values, asked: Sequence[int], is_float: bool, is_decimal: bool = False, digits: int = 0
) -> list[int] | None:
    """The words that are asked for of a column without nulls; None if the group is absent."""
    number, square, limbs = (
        (c.FLOAT, c.FLOAT_SQUARE, c.FLOAT_LIMBS) if is_float else (c.WHOLE, c.WHOLE_SQUARE, c.WHOLE_LIMBS)
    )
    behind = 1 + limbs + (c.NOT_FINITE if is_float else 0)
    makers = np.array([(c.ROWS, 0, -1, 0), (number, 0, -1, 1), (square, 0, -1, behind)], np.int64).T.copy()
    given = np.array([value for value, _ in values], np.float64 if is_float else np.int64)
    words = floats_to_words(given) if is_float else given
    diffs = [count for _, count in values]
    rows = np.array([words.tolist(), [CODES[2].pack((0, 1))] * len(values), diffs], np.int64)
    made = sort_consolidate(c.components_of(rows, 0, makers))
    totals = np.zeros(400, np.int64)
    totals[made[0]] = made[2]
    largest = 10**18 - 1
    sizes = [
        largest if what == a.DECIMAL_MEAN else is_decimal * largest if what == a.TOTAL else limbs
        for what in asked
    ]
    columns = [(what, 1, 0, size, digits, 400, 1) for what, size in zip(asked, sizes, strict=True)]
    table = np.array(columns, np.int64).T.copy()
    if totals[0] == 0:
        return None
    return [answer_word(totals, table, column) for column in range(len(asked))]


def _same(left: float | None, right: float | None) -> bool:
    if left is None or right is None:
        return left is right
    return left == right or (math.isnan(left) and math.isnan(right))


def _check(values: Values, is_float: bool) -> None:
    rows = plainly.collection({})
    for value, count in values:
        rows[math.nan if value != value else value,] += count  # one NaN for all
    rows = plainly.collection(rows)
    total = sum(rows.values())
    found = _evaluated(values, [*NAMES.values(), *([a.FLOAT_TOTAL] if is_float else [])], is_float)
    if total == 0:
        assert found is None
        return
    assert found is not None
    answers = words_to_floats(np.array(found, np.int64)).tolist()
    for name, answer in zip([*NAMES, "sum"], answers, strict=False):
        want = plainly.added_up(name, rows)
        assert isinstance(want, float | None)
        assert _same(answer, want) or (want is None and answer == 0), (name, answer, want)


@given(FLOATS)
@example([(1e308, 2), (-1e308, 2), (0.1, 1)])
@example([(0.1, 1), (0.2, 1), (0.3, -1)])
@example([(6e307, 3), (math.inf, -2)])
@example([(1e308, 2), (-math.inf, 1)])
def test_floats_are_as_if_summed_exactly_and_rounded_once(values: Values) -> None:
    _check(values, is_float=True)


@given(WHOLE)
def test_means_and_spreads_of_whole_numbers(values: Values) -> None:
    _check(values, is_float=False)


@given(WHOLE)
@example([(2**62, 1), (2**62 - 1, 1)])
@example([(-(2**62), 2)])
@example([(2**62, 2)])
@example([(-(2**62), 2), (-1, 1)])
def test_totals_are_exact_or_refused(values: Values) -> None:
    total, rows = sum(int(value) * count for value, count in values), sum(count for _, count in values)
    if rows != 0 and not -(2**63) <= total < 2**63:
        with pytest.raises(OverflowError):
            _evaluated(values, [a.TOTAL], is_float=False)
    else:
        assert _evaluated(values, [a.TOTAL], is_float=False) == (None if rows == 0 else [total])


@given(WHOLE)
@example([(10**17, 10)])
@example([(10**17, -10)])
@example([(10**17, 10), (-1, 1)])
@example([(-(10**17), 10), (1, 1)])
@example([(-(2**62), 2)])
def test_totals_of_decimals_have_18_digits_at_most(values: Values) -> None:
    total, rows = sum(int(value) * count for value, count in values), sum(count for _, count in values)
    if rows != 0 and abs(total) >= 10**18:
        with pytest.raises(OverflowError):
            _evaluated(values, [a.TOTAL], is_float=False, is_decimal=True)
    else:
        found = _evaluated(values, [a.TOTAL], is_float=False, is_decimal=True)
        assert found == (None if rows == 0 else [total])


@given(WHOLE, st.integers(0, 4))
@example([(1, 1), (2, 1)], 0)
@example([(-1, 1), (-2, 1)], 0)
@example([(1, 1), (0, 2)], 4)
@example([(10**18 - 1, 3)], 0)
@example([(10**14, 1)], 4)
@example([(-(10**14) + 1, 2)], 4)
@example([(2**62, 3), (2**62, -2)], 0)
@example([(10**18, 1), (10**18 - 1, 1)], 0)
@example([(2**62, -1)], 4)
def test_means_of_decimals_are_exact_and_rounded_half_up_or_refused(values: Values, digits: int) -> None:
    total = sum(int(value) * count for value, count in values) * 10**digits
    rows = sum(count for _, count in values)
    if rows == 0:
        assert _evaluated(values, [a.DECIMAL_MEAN], is_float=False, digits=digits) is None
        return
    sign = 1 if (total >= 0) == (rows > 0) else -1
    mean = sign * ((2 * abs(total) + abs(rows)) // (2 * abs(rows)))
    if abs(mean) >= 10**18:
        with pytest.raises(OverflowError):
            _evaluated(values, [a.DECIMAL_MEAN], is_float=False, digits=digits)
    else:
        assert _evaluated(values, [a.DECIMAL_MEAN], is_float=False, digits=digits) == [mean]


@given(st.lists(st.tuples(st.integers(-(10**18), 10**18), st.integers(1, 3)), max_size=8), st.integers(0, 18))
@example([(10**18 - 1, 3), (-(10**18) + 1, 2)], 18)
@example([(7, 2)], 18)
def test_spreads_of_decimals_are_those_of_the_values_and_not_of_their_digits(
    values: list[tuple[int, int]], digits: int
) -> None:
    rows = sum(count for _, count in values)
    given = [Fraction(value, 10**digits) for value, count in values for _ in range(count)]
    found = _evaluated(list(values), list(NAMES.values())[1:], is_float=False, digits=digits)
    if rows == 0:
        assert found is None
        return
    assert found is not None
    mean = sum(given, Fraction(0)) / rows
    squares = sum(((value - mean) ** 2 for value in given), Fraction(0))
    wanted = [float(squares / below) if below else 0.0 for below in (rows, rows - 1)]
    answers = words_to_floats(np.array(found, np.int64)).tolist()
    for place, want in enumerate(wanted):
        assert math.isclose(answers[2 * place], want, rel_tol=1e-15)
        assert math.isclose(answers[2 * place + 1], math.sqrt(want), rel_tol=1e-15)
