"""digits.py: the types that Spark 4.3 gives, as its own analysis says them.

The figures are what Spark says of `sum(x)`, `avg(x)` and so on.
"""

from __future__ import annotations

import pytest

from differential.columns.column_types import decimal
from differential.columns.wide import digits

OTHER = decimal(12, 2)
INT = decimal(20)


@pytest.mark.parametrize(
    ("type_", "sum_", "mean", "added", "product", "quotient", "inverse"),
    [
        ((9, 2), (19, 2), (13, 6), (13, 2), (22, 4), (24, 15), (24, 12)),
        ((5, 0), (15, 0), (9, 4), (13, 2), (18, 2), (20, 13), (18, 8)),
        ((18, 2), (28, 2), (22, 6), (19, 2), (31, 4), (33, 15), (33, 21)),
        ((38, 10), (38, 10), (38, 14), (38, 9), (38, 6), (38, 8), (38, 18)),
        ((38, 38), (38, 38), (38, 38), (38, 27), (38, 27), (38, 36), (38, 6)),
        ((30, 25), (38, 25), (34, 29), (36, 25), (38, 22), (38, 31), (38, 6)),
        ((34, 4), (38, 4), (38, 8), (35, 4), (38, 6), (38, 6), (38, 24)),
    ],
)
def test_results_have_the_digits_that_spark_gives_them(
    type_: tuple[int, int],
    sum_: tuple[int, int],
    mean: tuple[int, int],
    added: tuple[int, int],
    product: tuple[int, int],
    quotient: tuple[int, int],
    inverse: tuple[int, int],
) -> None:
    x = decimal(*type_)
    assert digits.sum_of_decimals(x) == decimal(*sum_)
    assert digits.mean_of_decimals(x) == decimal(*mean)
    assert digits.of_difference(x, OTHER) == decimal(*added)
    assert digits.of_product(x, OTHER) == decimal(*product)
    assert digits.of_quotient(x, OTHER) == decimal(*quotient)
    assert digits.of_quotient(OTHER, x) == decimal(*inverse)


@pytest.mark.parametrize(
    ("type_", "to_one", "to_hundreds"),
    [
        ((9, 2), (9, 1), (8, 0)),
        ((5, 0), (6, 0), (6, 0)),
        ((38, 10), (30, 1), (29, 0)),
        ((38, 38), (2, 1), (3, 0)),
    ],
)
def test_rounded_numbers_have_the_digits_that_spark_gives_them(
    type_: tuple[int, int], to_one: tuple[int, int], to_hundreds: tuple[int, int]
) -> None:
    assert digits.of_rounding(decimal(*type_), 1) == decimal(*to_one)
    assert digits.of_rounding(decimal(*type_), -2) == decimal(*to_hundreds)


def test_a_remainder_has_the_digits_of_its_divisor_before_the_point() -> None:
    assert digits.of_remainder(decimal(1), decimal(9, 2)) == decimal(9, 2)
    assert digits.of_remainder(INT, decimal(9, 2)) == decimal(9, 2)
    assert digits.of_remainder(decimal(9, 5), decimal(4)) == decimal(9, 5)
