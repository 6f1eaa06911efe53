"""Casts: each against Python's own conversion; what has no value fails with its row, or is null when
tried.
"""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import pytest
from expression_values import EVERY, ROWS, values_of
from hypothesis import given
from hypothesis import strategies as st

from differential import Schema, col, lit
from differential.columns.column_types import ColumnType, as_column_type
from differential.columns.rows import Row
from differential.errors import ExpressionError, RowError
from differential.expressions.functions.casts import COLUMN_CASTS, VALUE_CASTS, never_fails

TEXT = Schema.of("s: string")
NUMBER = Schema.of("f: float, i: int, p: decimal(9, 3)")


def cast_of(text: str, type_: str) -> object:
    """What `text` becomes, or None."""
    (value,) = values_of(col.s.try_cast(type_), [(text,)], TEXT)
    if value is None:
        with pytest.raises(RowError, match=r"is no .* in the row with s="):
            values_of(col.s.cast(type_), [(text,)], TEXT)
    else:
        assert repr(values_of(col.s.cast(type_), [(text,)], TEXT)) == repr([value])
    return value


@pytest.mark.parametrize(
    ("text", "type_", "value"),
    [
        (" 12 ", "int", 12), ("-9223372036854775808", "int", -(2**63)), ("9223372036854775808", "int", None),
        ("1.0", "int", None), ("1_000", "int", None), ("", "int", None), ("٣", "int", None),
        ("1e3", "float", 1000.0), (".5", "float", 0.5), ("-inf", "float", -math.inf), ("1_0", "float", None),
        ("Yes", "bool", True), ("0", "bool", False), ("maybe", "bool", None),
        ("1.005", "decimal(5, 2)", Decimal("1.01")), ("-1.005", "decimal(5, 2)", Decimal("-1.01")),
        ("1000", "decimal(5, 2)", None), ("1e2", "decimal(5, 2)", Decimal("100.00")),
        ("nan", "decimal(5, 2)", None),
        ("2024-02-29", "date", dt.date(2024, 2, 29)), ("2023-02-29", "date", None),
        ("20240229", "date", None),
        ("2024-02-29", "timestamp", dt.datetime(2024, 2, 29, tzinfo=dt.UTC)),
        ("2024-02-29T01:00:00+01:00", "timestamp", dt.datetime(2024, 2, 29, tzinfo=dt.UTC)),
        ("2024-02-29 25:00", "timestamp", None),
        ("é", "bytes", "é".encode()),
    ],
)  # fmt: skip
def test_text_is_read_strictly(text: str, type_: str, value: object) -> None:
    assert repr(cast_of(text, type_)) == repr(value)


@given(st.floats(), st.integers(-(2**63), 2**63 - 1), st.integers(-(10**9) + 1, 10**9 - 1))
def test_what_is_written_as_text_is_read_back(number: float, whole: int, word: int) -> None:
    exact = Decimal(word).scaleb(-3)
    row: Row = (number, whole, exact)
    for column, type_, value in (
        (col.f, "float", number + 0.0),
        (col.i, "int", whole),
        (col.p, "decimal(9, 3)", exact),
    ):
        assert repr(values_of(column.cast("string").cast(type_), [row], NUMBER)) == repr(
            [value.quantize(Decimal("0.001")) if isinstance(value, Decimal) else value]
        )
    (as_float,) = values_of(col.p.cast("float"), [row], NUMBER)
    assert as_float == pytest.approx(float(exact))
    assert values_of(col.p.cast("int"), [row], NUMBER) == [math.trunc(exact)]
    fits = abs(whole) < 10**7
    assert values_of(col.i.try_cast("decimal(9, 2)"), [row], NUMBER) == [Decimal(whole) if fits else None]


@given(st.integers(-(10**8), 10**8))
def test_floats_become_the_nearest_decimal(halves: int) -> None:
    row: Row = (halves / 8, 0, Decimal(0))
    exact = Decimal(halves) / 8
    nearest = exact.quantize(Decimal("0.01"), "ROUND_HALF_UP")
    assert values_of(col.f.cast("decimal(12, 2)"), [row], NUMBER) == [nearest]


@pytest.mark.parametrize(
    ("expr", "value"),
    [
        (col.f.try_cast("int"), None),
        (col.f.try_cast("decimal(4, 1)"), None),
        (col.p.cast("decimal(5, 1)"), Decimal("1.3")),
        (col.p.try_cast("decimal(2, 2)"), None),
        (lit(3).cast("decimal(4, 1)"), Decimal("3.0")),
        (lit(dt.date(2024, 2, 29)).cast("int"), 19_782),
        (lit(2**40).try_cast("date"), None),
        (lit(True).cast("decimal(1, 0)"), Decimal(1)),
        (lit(7).cast("any"), 7),
    ],
)
def test_numbers_and_times_become_one_another(expr: object, value: object) -> None:
    row: Row = (math.nan, 7, Decimal("1.25"))
    assert values_of(expr, [row], NUMBER) == [value]  # type: ignore[arg-type]  # literals are expressions, too


def test_every_cast_of_the_table_works_or_fails_as_it_says() -> None:
    columns = {column.type.kind: col(column.name) for column in EVERY}
    types = {
        type_.kind: type_ for type_ in map(as_column_type, ("decimal(18, 3)", int, float, bool, str, bytes))
    }
    types |= {kind: ColumnType(kind) for kind in ("date", "timestamp", "any")}
    types |= {kind: EVERY[name].type for kind, name in (("array", "l"), ("struct", "k"), ("map", "m"))}
    for source, target in {**COLUMN_CASTS, **VALUE_CASTS}:
        tried = values_of(columns[source].try_cast(types[target]))
        assert len(tried) == len(ROWS)
        if never_fails(EVERY[columns[source].name].type, types[target]):
            nulls = [value is None for value in values_of(columns[source])]
            assert [value is None for value in tried] == nulls, (source, target)


def test_what_no_cast_does_says_what_there_is() -> None:
    with pytest.raises(ExpressionError, match=r"is not possible; bytes can become: string, any"):
        col.r.cast("int").type_in(EVERY)
