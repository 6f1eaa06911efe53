"""Lists, structs and maps of Arrow become the rows that the same Python values are."""

from __future__ import annotations

import datetime as dt
import random

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nested_values import nested_type, plainly, value_of_type

from differential.columns.column_types import ColumnType
from differential.columns.nested.arrays import packed_array
from differential.columns.nested.values import with_pairs
from differential.columns.rows import decode_rows, encode_rows
from differential.columns.schema import Column, Schema
from differential.columns.symbols.arrow_values import with_values
from differential.columns.symbols.packing import pack
from differential.columns.symbols.table import SymbolTable
from differential.columns.tables import to_table
from differential.errors import SchemaError

SEEDS = st.builds(random.Random, st.integers(0, 2**32))


def column_of(seed: random.Random) -> tuple[ColumnType, list[object]]:
    type_ = nested_type(seed)
    return type_, [value_of_type(seed, type_) for _ in range(seed.randint(0, 4))]


@given(SEEDS)
def test_rows_and_arrow_have_the_same_words_and_come_back(seed: random.Random) -> None:
    type_, values = column_of(seed)
    schema = Schema((Column("x", type_),))
    symbols = SymbolTable()
    words = encode_rows(schema, [(value,) for value in values], symbols)
    symbols.check_invariants()
    assert [row[0] for row in decode_rows(schema, words, symbols)] == [plainly(v, type_) for v in values]
    table = to_table({"x": values}, schema)
    assert (schema.encode(table, symbols) == words).all()
    given_out = with_values(schema.decode(words, symbols))
    assert given_out.schema.field("x").type == type_.arrow_of_values()
    backwards = given_out.take(pa.array(range(len(values))[::-1], pa.int64()))
    for again in (given_out, given_out.slice(1), backwards):
        arrow = schema.encode(to_table(again, schema), symbols)
        rows = [(value,) for value in again.column("x").to_pylist()]
        assert (arrow == encode_rows(schema, rows, symbols)).all()


@given(SEEDS)
def test_the_bytes_of_a_value_are_those_that_pack_makes(seed: random.Random) -> None:
    type_, values = column_of(seed)
    array = pa.array([with_pairs(value, type_) for value in values], type_.arrow_of_values())
    packed = [None if value is None else pack(plainly(value, type_)) for value in values]
    assert packed_array(array, type_).to_pylist() == packed


SAME = "x: array<int?>?, s: struct<a: int, b: string?>?, m: map<string, float>"
ROWS = [{"x": [1, None], "s": {"a": 1, "b": "u"}, "m": {"k": 2.0, "j": 1.0}}, {"x": None, "s": None, "m": {}}]


@pytest.mark.parametrize(
    "table",
    [
        pa.table(
            {
                "x": pa.array([[1, None], None], pa.large_list(pa.int8())),
                "s": pa.array([{"b": "u", "a": 1}, None], pa.struct([("b", pa.string()), ("a", pa.int8())])),
                "m": pa.array([[("j", 1), ("k", 2)], []], pa.map_(pa.string(), pa.int64())),
            }
        ),
        pa.table(
            {
                "x": pa.array([[1, None], None], pa.list_(pa.int64(), 2)),
                "s": pa.StructArray.from_arrays(
                    [pa.array([1, 0]), pa.array(["u", None]).dictionary_encode()],
                    names=["a", "b"],
                    mask=pa.array([False, True]),
                ),
                "m": pa.array([[("k", 2.0), ("j", 1.0)], []], pa.map_(pa.string(), pa.float32())),
            }
        ),
    ],
    ids=["wide", "fixed"],
)
def test_every_form_of_arrow_is_the_same_value(table: pa.Table) -> None:
    schema, symbols = Schema.of(SAME), SymbolTable()
    words = schema.encode(to_table(ROWS, schema), symbols)
    assert (schema.encode(to_table(table, schema), symbols) == words).all()
    without = table.drop_columns("m").append_column(
        "m", pa.array([[("k", 2.0), ("j", 1.0)], []], pa.map_(pa.string(), pa.float64()))
    )
    assert (schema.encode(to_table(without, schema), symbols) == words).all()


def test_frames_of_polars_and_pandas() -> None:
    schema, symbols = (
        Schema.of("x: array<int?>?, s: struct<a: int, b: string?>, t: array<timestamp>"),
        SymbolTable(),
    )
    noon = dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)
    rows = [
        {"x": [1, None], "s": {"a": 1, "b": "u"}, "t": [noon]},
        {"x": None, "s": {"a": 2, "b": None}, "t": []},
    ]
    words = schema.encode(to_table(rows, schema), symbols)
    for frame in (pl.DataFrame(rows), pd.DataFrame(rows), pa.Table.from_pylist(rows).to_pandas()):
        assert (schema.encode(to_table(frame, schema), symbols) == words).all()


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (pa.array([[1], [1.5]]), r"column 'x', element \(int\?\), row 0: 1.0 comes as double, not int"),
        (
            pa.array([[], None, [1, 2**63]], pa.list_(pa.uint64())),
            r"element \(int\?\), row 2: 9223372036854775808 \(uint64\) cannot",
        ),
        (pa.array(["a"]), r"column 'x' \(array<int\?>\?\), row 0: 'a' comes as string, not array"),
        (pa.array([[1]], pa.list_(pa.duration("s"))), r"comes as duration\[s\], not int"),
    ],
)
def test_what_does_not_fit_is_told_with_its_row(array: pa.Array, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        to_table(pa.table({"x": array}), Schema.of("x: array<int?>?"))


def test_nulls_fields_and_keys_that_there_may_not_be() -> None:
    schema = Schema.of("x: struct<a: array<int>, b: map<string, int>?>")
    kind = pa.struct([("a", pa.list_(pa.int64())), ("b", pa.map_(pa.string(), pa.int64()))])
    for values, message in (
        ([{"a": [1]}, {"a": [2, None]}], r"field 'a', element \(int\), row 1: None is null"),
        ([{"a": None}], r"field 'a' \(array<int>\), row 0: None is null"),
        ([None], r"column 'x' \(struct<.*>\), row 0: None is null"),
        ([{"a": [], "b": [("u", 1), ("v", 2), ("u", 3)]}], "row 0: 'u' is there twice as a key"),
    ):
        with pytest.raises(SchemaError, match=message):
            to_table(pa.table({"x": pa.array(values, kind)}), schema)
    with pytest.raises(SchemaError, match="has 'z', which is no field of it"):
        to_table(pa.table({"x": pa.array([{"a": [], "z": 1}])}), schema)
