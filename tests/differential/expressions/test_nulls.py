"""nulls.py: what a condition that is true says of nulls.

law_*    random conditions, row by row
known_*  what is concluded, and what is not
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.expressions import NoValue, UnknownFunction, value_in_row
from sql.expressions import CONSTANTS, expression

import differential as dd
from differential import Expr, col
from differential.columns.schema import Schema
from differential.expressions.nulls import not_null_where

COLUMNS = {"i": "int", "j": "int", "x": "float", "s": "string", "b": "bool"}
SCHEMA = Schema.of({name: f"{kind}?" for name, kind in COLUMNS.items()})


@given(st.data())
def test_law_in_a_row_for_which_it_is_true_these_are_not_null(data: st.DataObject) -> None:
    condition = data.draw(st.composite(lambda draw: expression(draw, COLUMNS, "bool", 4).ours)())
    values = [data.draw(st.one_of(st.none(), CONSTANTS[kind])) for kind in COLUMNS.values()]
    known = not_null_where(condition)
    assert known <= condition.columns()
    record = dict(zip(COLUMNS, values, strict=True))
    try:
        is_true = value_in_row(condition, record, SCHEMA) is True
    except (NoValue, UnknownFunction):
        return
    assert not is_true or all(record[name] is not None for name in known)


@pytest.mark.parametrize(
    ("condition", "known"),
    [
        (col.i.is_not_null(), "i"),
        (col.i.is_null(), ""),
        (~col.i.is_null() & (col.s == "a"), "i s"),
        (col.i > 3, "i"),
        ((col.i + col.j) * 2 < 3, "i j"),
        (~(col.i > 3), "i"),
        ((col.i > 3) | (col.j > 3), ""),
        ((col.i > 3) | (col.i < col.j), "i"),
        (((col.i > 3) & (col.j > 3)) | (col.i < 0), "i"),
        (~((col.i > 3) | (col.j > 3)), "i j"),
        (~(~((col.i > 3) | (col.j > 3)) | (col.i < 0)), "i"),
        (~((col.i > 3) & (col.j > 3)), ""),
        (~((col.i > 3) & (col.i > col.j)), "i"),
        (~(col.i.is_null() | (col.x > 0.5)), "i x"),
        (col.b, "b"),
        (~col.b, "b"),
        ((col.b & (col.i > 1)).is_not_null(), ""),
        ((col.i > 3).is_not_null(), "i"),
        (col.i.is_in([1, 2]), "i"),
        (col.i.between(1, col.j), "i j"),
        (col.i.fill_null(0) > 3, ""),
        (col.i.fill_null(col.i + 1) > 3, "i"),
        (dd.least(col.i, col.j) > 3, ""),
        (dd.min_of(col.i, col.j) > 3, "i j"),
        (dd.coalesce(col.i, col.j) > 3, ""),
        (col.i.eq_null_safe(col.j), ""),
        (col.s.str.contains("a"), "s"),
        (dd.length(col.s.str.upper()) > col.i.cast("int"), "i s"),
        (col.s.try_cast("int") > 3, "s"),
        (dd.when(col.i > 3).then(col.j).otherwise(1) > 0, ""),
        (dd.lit(True), ""),
    ],
    ids=repr,
)
def test_known_columns(condition: Expr, known: str) -> None:
    assert not_null_where(condition) == set(known.split())


def test_known_of_what_is_one_object_in_many_places() -> None:
    number: Expr = col.i
    for _ in range(12):
        number = number + number
    assert not_null_where(number > 3) == {"i"}
