"""Constants in expressions: which Python values can be one, and which word each is."""

from __future__ import annotations

import datetime as dt
import math

import numpy as np
import pandas as pd
import pytest

from differential import col
from differential.columns.column_types import ColumnType, any_value, floating, integer
from differential.columns.nested.locations import ValueLocation
from differential.columns.rows import values_to_words
from differential.columns.symbols.table import SymbolTable
from differential.errors import ExpressionError
from differential.expressions.literals import constant_of, constant_word, constants_in

UTC_NOON = dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC)
EAST = dt.timezone(dt.timedelta(hours=5))


def column_of(module: str) -> object:
    """As another library has them."""
    return type("Column", (), {"__module__": module})()


@pytest.mark.parametrize(
    ("value", "declared", "kept", "kind"),
    [
        (True, None, True, "bool"),
        (3, None, 3, "int"),
        (np.int64(3), None, 3, "int"),
        (0.5, None, 0.5, "float"),
        (3, floating, 3.0, "float"),
        ("x", None, "x", "string"),
        (b"x", None, b"x", "bytes"),
        (UTC_NOON.astimezone(EAST), None, UTC_NOON, "timestamp"),
        (UTC_NOON.replace(tzinfo=None, fold=1), None, UTC_NOON, "timestamp"),
        (dt.timedelta(milliseconds=2), None, 2000, "int"),
        (None, integer, None, "int"),
        (pd.Timestamp("2024-02-29 12:00", tz="UTC"), None, UTC_NOON, "timestamp"),
        (pd.Timestamp("2024-02-29 12:00"), None, UTC_NOON, "timestamp"),
        (pd.Timedelta(microseconds=7), None, 7, "int"),
        (np.timedelta64(2_000_000, "ns"), None, 2000, "int"),
        (np.timedelta64(2, "ms"), None, 2000, "int"),
        (np.timedelta64(1, "D"), None, 86_400_000_000, "int"),
        (np.datetime64("2024-02-29T12", "ns"), None, UTC_NOON, "timestamp"),
        (np.datetime64("2024-02-29T12"), None, UTC_NOON, "timestamp"),
        (np.datetime64("2024-02"), None, dt.date(2024, 2, 1), "date"),
    ],
)
def test_constants_have_one_form_and_a_type(
    value: object, declared: ColumnType | None, kept: object, kind: str
) -> None:
    constant, type_ = constant_of(value, declared, "here")
    assert (repr(constant), type_.kind) == (repr(kept), kind)
    assert type_.nullable == (value is None)


@pytest.mark.parametrize(
    ("value", "declared", "said"),
    [
        (None, None, "needs a type"),
        ([1], None, "is a list, no constant"),
        (lambda row: row.x, None, r"Write an expression of columns, such as col\.x \+ 1"),
        (col.t.dt.hour, None, r"is a method, no constant.* write \.hour\(\)"),
        (column_of("pyspark.sql.classic.column"), None, r"of PySpark, .* Write it .* col\.x"),
        (column_of("pyspark.sql.classic.column"), any_value, "is a Column of PySpark, and no expression"),
        (column_of("polars.expr.expr"), None, "is a Column of Polars, and no expression"),
        (2**63, None, "out of range"),
        (pd.Timestamp(1), None, "exact to the microsecond"),
        (pd.Timedelta(1), None, "exact to the microsecond"),
        (pd.NaT, None, "exact to the microsecond.*lit\\(None, 'timestamp'\\)"),
        (np.timedelta64(1, "ns"), None, "exact to the microsecond"),
        (np.datetime64(1, "ns"), None, "exact to the microsecond"),
        (np.datetime64("NaT"), None, "exact to the microsecond"),
        (np.timedelta64(1, "M"), None, "exact to the microsecond"),
        (np.timedelta64(2**62, "s"), None, "exact to the microsecond"),
        (np.datetime64("20000-01-01"), None, "exact to the microsecond"),
        ("x", integer, "is of type string, not int: write lit\\('x'\\).cast\\('int'\\)"),
        (object(), any_value, "is no constant"),
    ],
)
def test_other_values_are_refused_with_the_line(
    value: object, declared: ColumnType | None, said: str
) -> None:
    with pytest.raises(ExpressionError, match=f"(?s){said}"):
        constant_of(value, declared, "here")


@pytest.mark.parametrize("value", [True, 3, -0.5, math.nan, "x", b"x", UTC_NOON])
def test_a_constant_has_the_word_that_the_value_has_in_a_column(value: object) -> None:
    constant, type_ = constant_of(value, None, "here")
    out = np.empty((1, 1), dtype=np.int64)
    values_to_words([value], type_, out, SymbolTable(), ValueLocation("input", "c", type_))
    assert constant_word(constant, type_, None) == out[0, 0]
    symbols = SymbolTable()
    assert constant_word(constant, type_, symbols) == out[0, 0]
    assert len(symbols) == type_.is_symbol, "it can be output"
    assert constant_word(None, type_, None) == 0


def test_constants_between_parentheses_are_one_by_one_or_a_list_and_a_text_is_a_constant() -> None:
    """`is_in("abc")`, as PySpark has it, is not one of a, b, c."""
    for given, meant in [
        (("abc",), ["abc"]), ((b"ab",), [b"ab"]), (("a", "b"), ["a", "b"]), ((["a", "b"],), ["a", "b"]),
        ((range(2),), [0, 1]), ((np.array([3, 4]),), [3, 4]), ((5,), [5]), ((), []), (([],), []),
    ]:  # fmt: skip
        assert list(constants_in(given)) == meant
    assert repr(col.k.is_in("abc")) == "col.k.is_in(['abc'])" == repr(col.k.isin(["abc"]))
