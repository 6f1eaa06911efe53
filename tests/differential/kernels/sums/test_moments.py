"""moments.py: covariances and moments are those of exact fractions, also where floats would cancel."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from differential.columns.float_words import floats_to_words, words_to_floats
from differential.kernels.rows.sort import sort_consolidate
from differential.kernels.sums import components as c
from differential.kernels.sums.moments import FLAG, KURT, SKEW, covariance_word, moment_word

HARD = st.sampled_from([1e150, -1e150, 1e-300, 0.1, 0.2, -0.3, 1e16, 1.0, 5e-324])
NUMBERS = st.one_of(st.floats(-1e70, 1e70), HARD, st.integers(-3, 3).map(float))
PAIRS = st.lists(
    st.tuples(NUMBERS, NUMBERS, st.integers(1, 3)),
    min_size=2, max_size=6,
)  # fmt: skip
AT_X, AT_Y, AT_BOTH = 1, 1000, 2000
AT_SQUARES, AT_CUBES = 1 + c.FLOAT_LIMBS + c.NOT_FINITE, 3000


def _totals(pairs: list[tuple[float, float, int]]) -> np.ndarray:  # type: ignore[type-arg]
    makers = [
        (c.ROWS, 0, -1, 0), (c.FLOAT, 0, -1, AT_X), (c.FLOAT_SQUARE, 0, -1, AT_SQUARES),
        (c.FLOAT, 1, -1, AT_Y), (c.FLOAT_PRODUCT, 0, 1, AT_BOTH), (c.FLOAT_CUBE, 0, -1, AT_CUBES),
        (c.FLOAT_FOURTH, 0, -1, AT_CUBES + c.FLOAT_CUBE_LIMBS),
    ]  # fmt: skip
    columns = [floats_to_words(np.array([pair[at] for pair in pairs])) for at in (0, 1)]
    rows = np.array([*columns, [0] * len(pairs), [pair[2] for pair in pairs]], np.int64)
    made = sort_consolidate(c.components_of(rows, 0, np.array(makers, np.int64).T.copy()))
    totals = np.zeros(4000, np.int64)
    totals[made[0]] = made[2]
    return totals


def _float(word: int) -> float:
    return float(words_to_floats(np.array([word], np.int64))[0])


def _near(have: float, want: Fraction) -> bool:
    if abs(want) > Fraction(10) ** 300:
        return abs(have) > 1e299
    return math.isclose(have, float(want), rel_tol=1e-14, abs_tol=1e-300)


@given(PAIRS)
@example([(1e16 + 2, 1.0, 1), (1e16, 1.0, 1), (1e16 + 4, 2.0, 3)])
def test_moments_and_covariances_are_those_of_fractions(pairs: list[tuple[float, float, int]]) -> None:
    totals = _totals(pairs)
    n = sum(count for *_, count in pairs)
    each = [(Fraction(x), Fraction(y)) for x, y, count in pairs for _ in range(count)]
    mean_x, mean_y = (sum(pair[at] for pair in each) / n for at in (0, 1))
    both = sum((x - mean_x) * (y - mean_y) for x, y in each)
    for below in (n, n - 1):
        assert _near(_float(covariance_word(totals, (AT_X, AT_Y, AT_BOTH), n, below)), both / below)
    places = (AT_X, AT_SQUARES, AT_CUBES)
    second, third, fourth = (sum((x - mean_x) ** power for x, _ in each) / n for power in (2, 3, 4))
    assert moment_word(FLAG, totals, places, n) == int(second != 0)
    if second != 0:
        squared = third * third / second**3
        skew = _float(moment_word(SKEW, totals, places, n))
        assert math.isclose(skew * skew, float(squared), rel_tol=1e-13, abs_tol=1e-300)
        assert skew == 0 or (skew > 0) == (third > 0)
        kurtosis = _float(moment_word(KURT, totals, places, n))
        assert math.isclose(kurtosis + 3, float(fourth / second**2), rel_tol=1e-13)


def test_values_that_are_not_finite_make_nan() -> None:
    for odd in (math.nan, math.inf, -math.inf):
        totals = _totals([(odd, 1.0, 1), (1.0, 2.0, 1)])
        assert math.isnan(_float(covariance_word(totals, (AT_X, AT_Y, AT_BOTH), 2, 1)))
        assert math.isnan(_float(covariance_word(totals, (AT_Y, AT_X, AT_BOTH), 2, 1)))
        assert math.isnan(_float(moment_word(SKEW, totals, (AT_X, AT_SQUARES, AT_CUBES), 2)))
