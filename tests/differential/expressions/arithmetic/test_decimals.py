"""Decimals in expressions: exact, against Python's; too many digits stop the dataflow or are refused.

`test_wide_numbers.py` asks the same of the numbers alone; here they are columns, some null, and constants.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from decimal import ROUND_HALF_UP, Context, Decimal, localcontext

import pytest
from expression_values import values_of
from hypothesis import given
from hypothesis import strategies as st

import differential as dd
from differential import Schema, col, lit, when
from differential.columns.column_types import decimal
from differential.columns.rows import Row
from differential.errors import ExpressionError, RowError
from differential.expressions.arithmetic.decimals import scaled_to
from differential.expressions.compiled import word_constant
from differential.expressions.expression import Expr

MONEY = Schema.of(
    "p: decimal(10, 2), q: decimal(6, 3)?, i: int, w: decimal(18, 0), v: decimal(18, 17), x: decimal(30, 4), "
    "y: decimal(38, 2)?"
)
EXACT = Context(prec=200)


Money = tuple[Decimal, Decimal | None, int, Decimal, Decimal, Decimal, Decimal | None]


@pytest.fixture(autouse=True)
def _exact() -> Iterator[None]:
    """Python's decimals keep all digits."""
    with localcontext(EXACT):
        yield


def words_of(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    return st.integers(-(10**precision) + 1, 10**precision - 1).map(lambda word: Decimal(word).scaleb(-scale))


rows_of_money = st.lists(
    st.tuples(
        words_of(10, 2),
        st.none() | words_of(6, 3),
        st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3),
        words_of(18, 0),
        words_of(18, 17),
        words_of(30, 4) | words_of(6, 4),
        st.none() | words_of(38, 2) | words_of(6, 2),
    ),
    min_size=1,
    max_size=4,
)


@given(rows_of_money)
def test_arithmetic_is_exact(rows: list[Money]) -> None:
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
    rows: list[Money],
) -> None:
    for op in (operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge):
        for expr, at in ((op(col.p, col.i), (0, 2)), (op(col.w, col.v), (3, 4)), (op(col.i, col.v), (2, 4))):
            expected = [op(row[at[0]], row[at[1]]) for row in rows]
            assert values_of(expr, list(rows), MONEY) == expected, expr


def rounded(value: Decimal, scale: int) -> Decimal:
    return value.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)


@given(rows_of_money)
def test_numbers_of_two_words_are_as_exact_as_those_of_one(rows: list[Money]) -> None:
    def on_y(make: Callable[[Decimal, Money], object]) -> list[object]:
        return [None if row[6] is None else make(row[6], row) for row in rows]

    claims: list[tuple[Expr, list[object]]] = [
        (col.x + col.i, [x + i for _, _, i, *_, x, _ in rows]),
        (col.p - col.x, [p - x for p, *_, x, _ in rows]),
        (col.w * col.p, [w * p for p, _, _, w, *_ in rows]),
        (col.p * col.p, [p * p for p, *_ in rows]),
        (col.p / 7, [rounded(p / 7, 6) for p, *_ in rows]),
        (col.x / 3, [rounded(x / 3, 6) for *_, x, _ in rows]),
        (-col.y, on_y(lambda y, _: -y)),
        (abs(col.y), on_y(lambda y, _: abs(y))),
        (col.y > col.v, on_y(lambda y, row: y > row[4])),
        (col.y == col.p, on_y(lambda y, row: y == row[0])),
        (col.y.fill_null(col.p), [p if y is None else y for p, *_, y in rows]),
        (dd.least(col.p, col.y, 5), [min(p, 5, 5 if y is None else y) for p, *_, y in rows]),
        (dd.max_of(col.x, col.i), [max(x, i) for _, _, i, *_, x, _ in rows]),
        (when(col.y.is_null()).then(col.p).otherwise(col.x), [p if y is None else x for p, *_, x, y in rows]),
        (when(col.x > 0).then(col.y), [y if x > 0 else None for *_, x, y in rows]),
        (col.y.is_in([1, Decimal("1e36"), Decimal("0.001")]), on_y(lambda y, _: y in (1, Decimal("1e36")))),
        (col.x.cast("string"), [f"{x:.4f}" for *_, x, _ in rows]),
        (col.x.cast("string").cast("decimal(30, 4)"), [x for *_, x, _ in rows]),
        (col.y.cast("float"), on_y(lambda y, _: float(y))),
        (col.p.cast("decimal(20, 2)?"), [p for p, *_ in rows]),
        (col.x.try_cast("int"), [int(x) if abs(int(x)) < 2**63 else None for *_, x, _ in rows]),
    ]
    for expr, expected in claims:
        assert values_of(expr, list(rows), MONEY) == expected, expr


@pytest.mark.parametrize("number", [1e37, -2.5, 1e-20, 1.7976931348623157e308, float("nan"), 123456.7890625])
def test_floats_become_wide_decimals_by_their_printed_digits(number: float) -> None:
    schema = Schema.of("f: float")
    (found,) = values_of(col.f.try_cast("decimal(38, 5)"), [(number,)], schema)
    exact = Decimal(repr(number))
    fits = exact.is_finite() and abs(exact) < 10**33
    assert found == (rounded(exact, 5) if fits else None)


@pytest.mark.parametrize(
    ("expr", "why"),
    [
        (col.y + col.y, "has more than 38 digits"),
        (col.y * 10, "has more than 38 digits"),
        (col.y.cast("int"), "is no int"),
        (col.y.cast("decimal(37, 2)"), "is no decimal"),
        (col.y // 1, "leaves 64 bits"),
        (col.p / (col.i - col.i), "divides by zero"),
        (col.y % (col.x - col.x), "divides by zero"),
    ],
)
def test_results_of_too_many_digits_stop_the_dataflow_and_nulls_do_not(expr: Expr, why: str) -> None:
    most = Decimal("9" * 36 + ".99")
    row: Row = (Decimal("-12345678.90"), None, 2**62, Decimal(10**18 - 1), Decimal(1), Decimal(1), most)
    with pytest.raises(RowError, match=why):
        values_of(expr, [row], MONEY)
    if "y" in expr.columns() and "zero" not in why:
        assert values_of(expr, [(*row[:-1], None)], MONEY) == [None]
        assert values_of(when(col.y < 0).then(expr).otherwise(0), [row], MONEY) == [0]


@pytest.mark.parametrize(
    ("expr", "said"),
    [
        (col.p + 0.5, "exact numbers or floats, not both: cast"),
        (dd.max_of(col.y, col.v), "would have 53 digits, of 38: cast"),
        (col.y.fill_null(col.q), "cast one to a decimal of fewer"),
        (col.p == 0.5, "takes values of one type; col.p is decimal"),
    ],
)
def test_what_is_not_exact_says_what_to_cast(expr: Expr, said: str) -> None:
    with pytest.raises(ExpressionError, match=said):
        expr.type_in(MONEY)


def test_types_have_the_digits_that_results_have_in_spark() -> None:
    claims = {
        "decimal(12, 3)?": col.p + col.q, "decimal(17, 5)?": col.p * col.q, "decimal(12, 2)": col.p * 2,
        "decimal(20, 9)?": col.p / col.q, "int": col.p // 2, "decimal(23, 2)": col.p + col.i,
        "float": col.p / 2.0, "decimal(38, 6)?": col.x * col.y,
    }  # fmt: skip
    assert [str(expr.type_in(MONEY)) for expr in claims.values()] == list(claims)
    assert str(lit(Decimal("-1.50")).type_in(MONEY)) == "decimal(3, 2)"


def test_constants_are_scaled_at_once_and_clipped() -> None:
    scaled = scaled_to(word_constant(decimal(18), 10**17), 17)
    assert scaled.constant is not None and int(scaled.constant[0]) == 2**63 - 1
