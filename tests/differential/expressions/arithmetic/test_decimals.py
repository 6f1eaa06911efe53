"""Decimals in expressions: exact, against Python's; too many digits stop the dataflow or are refused."""

from __future__ import annotations

import operator
from decimal import Decimal

import numpy as np
import pytest
from expression_values import values_of
from hypothesis import given
from hypothesis import strategies as st

import differential as dd
from differential import Schema, col, lit, when
from differential.columns.column_types import decimal
from differential.columns.rows import Row
from differential.errors import ExpressionError, RowError
from differential.expressions.arithmetic.decimals import beyond_digits, scaled_to
from differential.expressions.compiled import word_constant
from differential.expressions.expression import Expr

MONEY = Schema.of("p: decimal(10, 2), q: decimal(6, 3)?, i: int, w: decimal(18, 0), v: decimal(18, 17)")


def words_of(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    return st.integers(-(10**precision) + 1, 10**precision - 1).map(lambda word: Decimal(word).scaleb(-scale))


rows_of_money = st.lists(
    st.tuples(
        words_of(10, 2),
        st.none() | words_of(6, 3),
        st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3),
        words_of(18, 0),
        words_of(18, 17),
    ),
    min_size=1,
    max_size=4,
)


@given(rows_of_money)
def test_arithmetic_is_exact(rows: list[tuple[Decimal, Decimal | None, int, Decimal, Decimal]]) -> None:
    for op in (operator.add, operator.sub, operator.mul):
        expected = [None if q is None else op(p, q) for p, q, *_ in rows]
        assert values_of(op(col.p, col.q), list(rows), MONEY) == expected
    claims: list[tuple[Expr, list[object]]] = [
        (-col.p, [-p for p, *_ in rows]),
        (abs(col.p), [abs(p) for p, *_ in rows]),
        (col.p * 3, [p * 3 for p, *_ in rows]),
        (1 - col.p, [1 - p for p, *_ in rows]),
        (col.q.fill_null(Decimal("0.5")), [Decimal("0.5") if q is None else q for _, q, *_ in rows]),
        (dd.max_of(col.p, 0, Decimal("0.001")), [max(p, Decimal("0.001")) for p, *_ in rows]),
        (dd.least(col.p, col.q), [p if q is None else min(p, q) for p, q, *_ in rows]),
        (when(col.p > 0).then(col.p).otherwise(1), [p if p > 0 else Decimal(1) for p, *_ in rows]),
        (col.p // 7, [(p * 100) // 700 - (p % 7 != 0 and p < 0) for p, *_ in rows]),
        (col.p % 7, [(p % 7 + 7) % 7 for p, *_ in rows]),
    ]
    for expr, expected in claims:
        assert values_of(expr, list(rows), MONEY) == expected, expr


@given(rows_of_money)
def test_comparisons_are_exact_whatever_the_digits(
    rows: list[tuple[Decimal, Decimal | None, int, Decimal, Decimal]],
) -> None:
    for op in (operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge):
        for expr, at in ((op(col.p, col.i), (0, 2)), (op(col.w, col.v), (3, 4)), (op(col.i, col.v), (2, 4))):
            expected = [op(row[at[0]], row[at[1]]) for row in rows]
            assert values_of(expr, list(rows), MONEY) == expected, expr


@pytest.mark.parametrize("expr", [col.w + col.w, col.w * 10, col.w - col.p, col.i + col.p])
def test_results_of_too_many_digits_stop_the_dataflow(expr: Expr) -> None:
    row: Row = (Decimal("-12345678.90"), None, 2**62, Decimal(10**18 - 1), Decimal(1))
    with pytest.raises(RowError, match="has more than 18 digits|leaves 64 bits"):
        values_of(expr, [row], MONEY)


@pytest.mark.parametrize(
    ("expr", "said"),
    [
        (col.p + 0.5, "exact numbers or floats, not both: cast"),
        (col.v * col.v, "34 digits behind the point, of 18: cast"),
        (dd.max_of(col.w, col.v), "would have 35 digits, of 18: cast"),
        (col.q.fill_null(col.i), "cast one to a decimal of fewer"),
        (col.p == 0.5, "takes values of one type; col.p is decimal"),
    ],
)
def test_what_is_not_exact_says_what_to_cast(expr: Expr, said: str) -> None:
    with pytest.raises(ExpressionError, match=said):
        expr.type_in(MONEY)


def test_types_have_the_digits_that_results_can_have() -> None:
    claims = {
        "decimal(13, 3)?": col.p + col.q, "decimal(16, 5)?": col.p * col.q, "decimal(11, 2)": col.p * 2,
        "float?": col.p / col.q, "int": col.p // 2, "decimal(18, 2)": col.p + col.i,
    }  # fmt: skip
    assert {str(expr.type_in(MONEY)) for expr in claims.values()} <= {*claims, "decimal(12, 3)?"}
    assert str(lit(Decimal("-1.50")).type_in(MONEY)) == "decimal(3, 2)"


def test_constants_are_scaled_at_once_and_clipped() -> None:
    scaled = scaled_to(word_constant(decimal(18), 10**17), 17)
    assert scaled.constant is not None and int(scaled.constant[0]) == 2**63 - 1
    assert beyond_digits(np.array([10**18 - 1])) is None
    found = beyond_digits(np.array([10**18, 1]))
    assert found is not None and found.tolist() == [True, False]
