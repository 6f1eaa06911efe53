"""Conditions of SQL are written as expressions, or not at all."""

from __future__ import annotations

import pytest

from differential import col
from differential.expressions.expression import Expr
from differential.other_spellings.conditions import condition_of, written_condition


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("k > 1", "col.k > 1"),
        ("name = 'a b'", "col.name == 'a b'"),
        ("name = 'it''s'", 'col.name == "it\'s"'),
        ("n<>2.5", "col.n != 2.5"),
        ("flag", "col.flag"),
        ("not flag", "~col.flag"),
        ("k > 1 and d < 2", "(col.k > 1) & (col.d < 2)"),
        ("not (k > 1 or flag) and d < 2", "~((col.k > 1) | col.flag) & (col.d < 2)"),
        ("k = 1 or k = 2 and d = 3", "(col.k == 1) | (col.k == 2) & (col.d == 3)"),
        ("k + 2 * d > -1", "col.k + 2 * col.d > -1"),
        ("(k + 2) * d - (d - 1) > 0", "(col.k + 2) * col.d - (col.d - 1) > 0"),
        ("1 < k <= 3", "(1 < col.k) & (col.k <= 3)"),
        ("k between 1 and 2 and flag", "col.k.between(1, 2) & col.flag"),
        ("k not between 1 and d", "~col.k.between(1, col.d)"),
        ("k + d IN (1, 2)", "(col.k + col.d).is_in([1, 2])"),
        ("k IS NOT NULL", "col.k.is_not_null()"),
        ("s not rlike '^a'", "~col.s.rlike('^a')"),
        ("`a b` >= true", "col('a b') >= True"),
    ],
)
def test_a_condition_of_sql_is_written_as_an_expression(text: str, code: str) -> None:
    assert condition_of(text) == code
    assert isinstance(eval(code, {"col": col}), Expr)
    assert written_condition("filter({})", text) == f"Write filter({code})"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1",
        "1 = 1",
        "upper(s) = 'A'",
        "k >",
        "k = null",
        "k in (d, 1)",
        "k not 1",
        "(k > 1",
        "k > 1)",
        "a.b = 1",
    ],
)
def test_other_conditions_are_left_to_the_user(text: str) -> None:
    assert condition_of(text) is None
    assert written_condition("where={}", text).startswith("Write it with columns, as in where=(")
