"""Functions of lists and maps in columns of type any."""

from __future__ import annotations

import pytest
from expression_values import values_of

from differential import Schema, col
from differential.columns.rows import Row
from differential.errors import RowError
from differential.expressions.expression import Expr

NESTED = Schema.of("x: any?")
ROWS: list[Row] = [((1, "a", None),), ({"k": (2,), 5: 6},), ("text",), (None,), (("a", "b"),)]


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (col.x.list.size(), [3, 2, None, None, 2]),
        (col.x.list.get(0), [1, None, None, None, "a"]),
        (col.x.list.get(-1), [None, None, None, None, "b"]),
        (col.x.list.get(2**40), [None] * 5),
        (col.x.list.field("k"), [None, (2,), None, None, None]),
        (col.x.list.field(5), [None, 6, None, None, None]),
        (col.x.list.field("k").list.get(0).cast("int"), [None, 2, None, None, None]),
        (col.x.list.has("a"), [True, None, None, None, True]),
        (col.x.list.has(True), [False, None, None, None, False]),
        (col.x.list.join("-"), [None, None, None, None, "a-b"]),
        (col.x.try_cast("string"), [None, None, "text", None, None]),
        (col.x.list.get(0).try_cast("int"), [1, None, None, None, None]),
    ],
)
def test_what_is_taken_out_of_nested_values(expr: Expr, expected: list[object]) -> None:
    assert values_of(expr, ROWS, NESTED) == expected


def test_a_value_of_another_type_is_not_cast() -> None:
    with pytest.raises(RowError, match=r"is no int in the row with x=\('a', 'b'\)"):
        values_of(col.x.list.get(0).cast("int"), ROWS, NESTED)
