"""Expressions evaluated on whole columns.

fail_*      rows without a value: which row, and how `when` keeps them away
against_*   random expressions against the row by row twin in reference/expressions.py
"""

from __future__ import annotations

import datetime as dt
import math
from typing import cast

import numpy as np
import pytest
from expression_values import evaluate
from hypothesis import given
from hypothesis import strategies as st
from reference.expressions import NoValue, value_in_row

from differential.columns.rows import Row, decode_rows, encode_rows, micros_to_datetime
from differential.columns.schema import Column, Schema
from differential.columns.symbols.table import SymbolTable
from differential.errors import RowError
from differential.expressions.calls.catalogued import concat
from differential.expressions.evaluation import OTHERS_LENGTH_MAX, Compiler
from differential.expressions.expression import Expr, col, greatest, least, lit, max_of, min_of, when
from differential.expressions.projection import CONSTANT, Projection

SCHEMA = Schema.of(
    "i: int, n: int?, f: float, g: float?, b: bool, c: bool?, t: timestamp, s: string, z: string?, d: date"
)


NOON = dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC)


def values_of(expr: Expr, rows: list[Row], schema: Schema = SCHEMA) -> list[object]:
    """The values of `expr` in each row, as Python values."""
    symbols = SymbolTable()
    words = evaluate(expr, encode_rows(schema, rows, symbols), schema, symbols)
    result = Schema((Column("value", expr.type_in(schema)),))
    return [value for (value,) in decode_rows(result, words, symbols)]


ROW: Row = (7, None, 0.5, None, True, None, NOON, "x", None, NOON.date())


def test_fail_division_by_zero_shows_the_row_and_where_it_was_written() -> None:
    with pytest.raises(
        RowError, match=r"col.i // \(col.n - 2\) \(.*:\d+\) divides by zero in the row with i=8, n=2"
    ):
        values_of(col.i // (col.n - 2), [(7, 1, *ROW[2:]), (8, 2, *ROW[2:])])
    assert values_of(col.i // col.n, [ROW]) == [None], "a null is divided by nothing"
    assert values_of(col.i % 0.0, [ROW])[0] != 0
    with pytest.raises(RowError, match="not a 64-bit number in the row with f=nan"):
        values_of(col.f.cast(int), [(*ROW[:2], math.nan, *ROW[3:])])


def test_fail_what_is_shown_of_a_row_ends_with_the_columns_that_are_not_read() -> None:
    schema = Schema.of("id: int, n: int, text: string")
    rows: list[Row] = [(1, 1, "x"), (2, 0, "y"), (3, 0, "z" * 2 * OTHERS_LENGTH_MAX)]
    with pytest.raises(RowError) as raised:
        values_of(1 // col.n, rows, schema)
    failing = raised.value.failing
    assert failing is not None
    short, long = failing.show(np.array([1, 2]))
    assert short == "n=0, id=2, text='y'"
    assert long.startswith("n=0, id=3, text='zzz") and long.endswith("z…")
    assert len(long) == len("n=0, ") + OTHERS_LENGTH_MAX + 1


def test_fail_when_keeps_the_other_rows_away() -> None:
    rows: list[Row] = [(7, n, *ROW[2:]) for n in (0, 2, None, 7)]
    guarded = (
        when(col.n == 0).then(-1).when(col.i // col.n == 1).then(col.n).otherwise(col.i % col.n.fill_null(5))
    )
    assert values_of(guarded, rows) == [-1, 1, 2, 7]
    assert values_of(when(col.n != 0).then(col.i // col.n), rows) == [None, 3, None, 1]
    assert values_of(when(col.b).then(1).otherwise(lit(1) // lit(0)), rows) == [1, 1, 1, 1]


def test_a_column_is_read_where_the_projection_says() -> None:
    projection = Projection((2, CONSTANT), (0, 40))
    compiled = Compiler(Schema.of("a: int, b: int"), projection).compile(col.a + col.b)
    out = np.empty((1, 2), dtype=np.int64)
    compiled.writer()(np.array([[0, 0], [0, 0], [1, 2], [0, 0], [1, 1]]), out)
    assert out.tolist() == [[41, 42]]


ints = st.integers(-3, 3) | st.sampled_from([2**63 - 1, -(2**63), 2**53 + 1])


floats = st.sampled_from([0.0, -1.5, 2.0, 1e300, math.inf, -math.inf, math.nan, 9.3e18])


texts = st.sampled_from(["", "x", "é"])


times = st.integers(-(10**13), 10**15).map(micros_to_datetime)
rows_of_all = st.lists(
    st.tuples(
        ints,
        st.none() | ints,
        floats,
        st.none() | floats,
        st.booleans(),
        st.none() | st.booleans(),
        times,
        texts,
        st.none() | texts,
        st.dates(dt.date(1600, 1, 1), dt.date(2400, 1, 1)),
    ),
    min_size=1,
    max_size=6,
)


@st.composite
def exprs(draw: st.DrawFn, kind: str, depth: int = 3) -> Expr:
    """A well-typed expression of a kind."""
    leaf = {
        "int": st.sampled_from([col.i, col.n]) | ints.map(lit),
        "float": st.sampled_from([col.f, col.g]) | floats.map(lit),
        "bool": st.sampled_from([col.b, col.c]) | st.booleans().map(lit),
        "string": st.sampled_from([col.s, col.z]) | texts.map(lit),
        "timestamp": st.just(col.t) | times.map(lit),
    }[kind]
    if depth == 0 or draw(st.integers(0, 4)) == 0:
        return draw(cast(st.SearchStrategy[Expr], leaf))

    def part(kind: str) -> Expr:
        return draw(exprs(kind, depth - 1))

    choice = draw(st.integers(0, 6))
    number = draw(st.sampled_from(["int", kind if kind == "float" else "int"]))
    if choice == 0:
        return when(part("bool")).then(part(kind)).otherwise(part(kind))
    if choice == 1:
        return part(kind).fill_null(part(kind))
    if choice == 2:
        return draw(st.sampled_from([min_of, max_of, least, greatest]))(part(kind), part(kind))
    if kind == "int" and choice == 5:
        dates = draw(st.sampled_from([col.t, col.d]))
        functions = [
            part("string").str.length(),
            dates.dt.year(),
            col.d.dt.day_of_week(),
            dates.dt.date_diff(col.d),
        ]
        return draw(st.sampled_from(functions))
    if kind == "string" and choice >= 3:
        text = part("string")
        start, length = draw(st.integers(0, 2)), draw(st.integers(0, 2))
        made = [
            text.str.upper(),
            text.str.reverse(),
            text.str.slice(start, length),
            concat(text, part("string")),
        ]
        return draw(st.sampled_from([*made, part("int").cast("string")]))
    if kind in ("int", "float"):
        if choice == 3:
            return part("bool").cast(kind) if kind == "int" else part("int").cast(kind)
        if choice == 4:
            negated = part(kind)
            return -negated if draw(st.booleans()) else abs(negated)
        ops = ["+", "-", "*"] + (["//", "%"] if kind == "int" else ["/"])
        return _operated(draw(st.sampled_from(ops)), part(number), part(kind))
    if kind == "bool":
        side = draw(st.sampled_from(["int", "float", "bool", "string"]))
        if choice == 3:
            return draw(st.sampled_from([part(side).is_null(), part("string").str.contains(draw(texts))]))
        if choice == 4 and side == "int":
            return part("int").is_in(draw(st.lists(ints, max_size=3)))
        if choice == 5:
            return _operated(draw(st.sampled_from(["&", "|"])), part("bool"), part("bool"))
        if choice == 6:
            return ~part("bool")
        ops = ["==", "!=", "<", "<=", ">", ">="]
        return _operated(draw(st.sampled_from(ops)), part(side), part(side))
    return draw(cast(st.SearchStrategy[Expr], leaf))


def _operated(op: str, left: Expr, right: Expr) -> Expr:
    return cast(Expr, eval(f"left {op} right", {"left": left, "right": right}))


@given(st.sampled_from(["int", "float", "bool", "string", "timestamp"]).flatmap(exprs), rows_of_all)
def test_against_the_row_by_row_definition(expr: Expr, rows: list[Row]) -> None:
    records = [dict(zip(SCHEMA.names, row, strict=True)) for row in rows]
    try:
        expected = [value_in_row(expr, record, SCHEMA) for record in records]
    except NoValue:
        with pytest.raises(RowError):
            values_of(expr, rows)
        return
    assert list(map(repr, values_of(expr, rows))) == [repr(_normal(value)) for value in expected]


def _normal(value: object) -> object:
    return value + 0.0 if isinstance(value, float) else value
