"""wide_numbers.py, wide_integers.py: against fractions, for numbers of one word, of two, and of both."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from differential.columns.column_types import ColumnType, Int64s, decimal, integer
from differential.columns.wide.digits import of_difference, of_product, of_quotient, of_remainder
from differential.columns.wide.wide_words import integers_of, of_integers
from differential.expressions.arithmetic.wide_numbers import (
    Numbers,
    compared,
    computed,
    rescaled,
    whole_parts,
)

OPERATORS: dict[
    str, tuple[Callable[[Fraction, Fraction], Fraction], Callable[[ColumnType, ColumnType], ColumnType]]
] = {
    "+": (operator.add, of_difference),
    "-": (operator.sub, of_difference),
    "*": (operator.mul, of_product),
    "/": (operator.truediv, of_quotient),
    "%": (lambda x, y: x - y * math.floor(x / y), of_remainder),
    "//": (lambda x, y: Fraction(math.floor(x / y)), lambda x, y: integer),
}
COMPARISONS: dict[str, Callable[[Fraction, Fraction], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def half_up(number: Fraction) -> int:
    whole = math.floor(abs(number) + Fraction(1, 2))
    return whole if number >= 0 else -whole


@st.composite
def columns(draw: st.DrawFn) -> tuple[list[int], ColumnType, bool]:
    """Two numbers of one type; or one that all rows have."""
    precision = draw(st.one_of(st.integers(1, 18), st.integers(1, 38)))
    end = 10 ** (precision if draw(st.booleans()) else min(precision, 6)) - 1
    words_end = [sign * (size + more) for size in (2**63, 2**64) for sign in (1, -1) for more in (-1, 0, 1)]
    edges = [0, 1, -1, end, -end, *(number for number in words_end if abs(number) <= end)]
    number = st.one_of(st.sampled_from(edges), st.integers(-end, end))
    is_constant = draw(st.integers(0, 5)) == 0
    numbers = [draw(number)] * 2 if is_constant else [draw(number), draw(number)]
    return numbers, decimal(precision, draw(st.integers(0, precision))), is_constant


def numbers_of(numbers: list[int], type_: ColumnType, is_constant: bool) -> Numbers:
    if type_.is_wide:
        words = of_integers(np.array(numbers, object))
        return Numbers(words[:, :1] if is_constant else words, type_.scale, True)
    one_word = np.array(numbers, np.int64)
    return Numbers(one_word[0] if is_constant else one_word, type_.scale, False)


def read(words: Int64s) -> list[int]:
    found = integers_of(words) if words.ndim == 2 else np.atleast_1d(words)
    return [int(number) for number in np.broadcast_to(found, (2,))]


def judged(found: Int64s, failing: object, exact: list[Fraction], to: ColumnType) -> None:
    """The results are the exact ones, rounded, or said not to fit."""
    fails = np.broadcast_to(np.asarray(failing if failing is not None else False), (2,)).tolist()
    for number, fail, value in zip(read(found), fails, exact, strict=True):
        rounded = half_up(value * 10**to.scale)
        fits = -(2**63) <= rounded < 2**63 if to.kind == "int" else abs(rounded) < 10**to.precision
        assert fail != fits
        assert fail or number == rounded


@given(columns(), columns(), st.sampled_from(list(OPERATORS)))
def test_arithmetic_is_exact_and_rounded_once(
    left: tuple[list[int], ColumnType, bool], right: tuple[list[int], ColumnType, bool], op: str
) -> None:
    (one, one_type, _), (other, other_type, is_constant) = left, right
    if op in ("/", "%", "//"):
        other = [number or 7 for number in other] if not is_constant else [other[0] or 7] * 2
    exact, type_of = OPERATORS[op]
    to = type_of(one_type, other_type)
    found, failing = computed(op, numbers_of(*left), numbers_of(other, other_type, is_constant), to)
    values = [
        exact(Fraction(x, 10**one_type.scale), Fraction(y, 10**other_type.scale))
        for x, y in zip(one, other, strict=True)
    ]
    judged(found, failing, values, to)


@given(columns(), columns())
def test_comparisons_are_exact_whatever_the_scales(
    left: tuple[list[int], ColumnType, bool], right: tuple[list[int], ColumnType, bool]
) -> None:
    for op, holds in COMPARISONS.items():
        found = np.broadcast_to(compared(op, numbers_of(*left), numbers_of(*right)), (2,)).tolist()
        assert found == [
            holds(Fraction(x, 10 ** left[1].scale), Fraction(y, 10 ** right[1].scale))
            for x, y in zip(left[0], right[0], strict=True)
        ]


@given(columns(), columns())
def test_digits_are_dropped_by_the_rule_that_is_asked_for(
    given_: tuple[list[int], ColumnType, bool], target: tuple[list[int], ColumnType, bool]
) -> None:
    numbers, type_, _ = given_
    to = target[1]
    exact = [Fraction(number, 10**type_.scale) * 10**to.scale for number in numbers]
    unit = Fraction(1, 10**to.scale)
    for options, rule in (({}, half_up), ({"toward_zero": True}, math.trunc), ({"to_even": True}, round)):
        found, failing = rescaled(numbers_of(*given_), to, **options)  # type: ignore[arg-type]
        judged(found, failing, [rule(value) * unit for value in exact], to)
    if type_.is_wide:
        whole = decimal(38)
        for up, rule in ((False, math.floor), (True, math.ceil)):
            found = whole_parts(numbers_of(*given_).words, type_.scale, whole, up=up)
            judged(found, None, [Fraction(rule(Fraction(n, 10**type_.scale))) for n in numbers], whole)


def test_a_carry_between_words_is_no_overflow() -> None:
    type_ = decimal(20)
    edges = [sign * (size + more) for size in (0, 2**63, 2**64) for sign in (1, -1) for more in (-1, 0, 1)]
    for one in edges:
        for other in edges:
            left, right = (numbers_of([number] * 2, type_, False) for number in (one, other))
            for op in ("+", "-"):
                found, failing = computed(op, left, right, decimal(21))
                judged(found, failing, [OPERATORS[op][0](Fraction(one), Fraction(other))] * 2, decimal(21))
