"""Conditions taken apart."""

from __future__ import annotations

from differential import col, lit
from differential.collections.conditions.equalities import (
    STRONG,
    conjuncts,
    equality_between,
    implied,
    is_null_with,
    strength,
)

A, B, C = col.a == 1, col.b == 2, col.c == 3


def test_what_all_branches_of_an_or_share_stands_in_front() -> None:
    parts = [part.describe() for part in conjuncts((A & B) | (A & C))]
    assert parts == [A.describe(), (B | C).describe()]
    assert [part.describe() for part in conjuncts(A | (A & C))] == [A.describe()]
    assert [part.describe() for part in conjuncts(A & (B | C))] == [A.describe(), (B | C).describe()]


def test_equalities_of_two_sides_and_of_one() -> None:
    left, right = frozenset("ab"), frozenset("cd")
    found = equality_between(col.c + 1 == col.a, left, right)
    assert found is not None
    assert found.left.equals(col.a)
    assert found.right.equals(col.c + 1)
    assert not found.is_null_safe
    safe = equality_between(col.a.eq_null_safe(col.d), left, right)
    assert safe is not None and safe.is_null_safe
    alike = (col.a == col.d).fill_null(False) | (col.b == 1)
    for other in (alike, col.a == col.b, col.a == 1, col.a < col.c, col.a + col.c == col.d, lit(True)):
        assert equality_between(other, left, right) is None


def test_an_or_over_two_parts_says_something_of_each() -> None:
    both = ((col.a == 1) & (col.c == 2)) | ((col.a == 3) & (col.c == 4) & (col.b == 5))
    assert [each.describe() for each in implied(both, frozenset("a"))] == [
        ((col.a == 1) | (col.a == 3)).describe()
    ]
    assert not list(implied(both, frozenset("b")))
    assert not list(implied(both, frozenset("abc")))
    assert not list(implied(col.a == col.c, frozenset("a")))


def test_expressions_that_are_null_with_their_columns() -> None:
    columns = frozenset("n")
    for strict in (col.n, col.n + 1, col.x < col.n * 2, ~(col.n == 1), col.n.cast("float")):
        assert is_null_with(strict, columns), strict
    for other in (col.x, lit(1), col.n.fill_null(0), col.n.is_null(), (col.n == 1) | (col.x == 1)):
        assert not is_null_with(other, columns), other


def test_filters_that_ask_for_certain_values_are_strong() -> None:
    names = frozenset("ab")
    either = (A & (col.b > 2)) | ((col.b == 3) & (col.a < 1))
    for condition in (A, lit(1) == col.a, col.a.is_in([1, 2]), either):
        assert strength(names, [condition]) == STRONG
    for condition in (col.a > 1, col.a == col.b, A | (col.b > 2), ~A):
        assert strength(names, [condition]) == 1
    assert strength(names, [C, col.a == col.c, lit(True)]) == 0
