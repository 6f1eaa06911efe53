"""Which rows need no table: few, of exactly the types of their columns. What that means for inputs of
collections, beside tables, is in `tests/differential/operators/test_table_io.py`.
"""

from __future__ import annotations

from collections import namedtuple
from enum import IntEnum

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from timely.limits import PLAIN_TEXT_CHARS_MAX, PLAIN_VALUES_MAX
from timely.operators.inputs.plain_rows import PlainRows

SCHEMA = pa.schema(
    [
        pa.field("n", pa.int64(), nullable=False),
        pa.field("x", pa.float64()),
        pa.field("b", pa.bool_(), nullable=False),
        pa.field("s", pa.string(), nullable=False),
        pa.field("d", pa.binary()),
    ]
)
ROW = (1, 2.5, True, "ä", b"\xff")
Pair = namedtuple("Pair", "n s")  # a subclass of tuple
Small = IntEnum("Small", "ONE")


class Text(str):
    __slots__ = ()


@pytest.mark.parametrize(
    "row",
    [
        ROW,
        list(ROW),
        dict(zip(SCHEMA.names, ROW, strict=True)),
        dict(reversed(list(zip(SCHEMA.names, ROW, strict=True)))),
    ],
)
def test_tuples_lists_and_dicts_are_taken_as_tuples(row: object) -> None:
    assert PlainRows(SCHEMA).of([row, ROW]) == [ROW, ROW]


@pytest.mark.parametrize("at", range(5))
def test_null_is_plain_where_the_column_may_be_null(at: int) -> None:
    row = tuple(None if place == at else value for place, value in enumerate(ROW))
    assert PlainRows(SCHEMA).of([row]) == ([row] if SCHEMA.field(at).nullable else None)


@pytest.mark.parametrize(
    ("at", "value"),
    [
        (0, 1 << 63),
        (0, -(1 << 63) - 1),
        (0, True),
        (0, 1.0),
        (0, np.int64(1)),
        (0, Small.ONE),
        (1, 1),
        (1, np.float64(1)),
        (2, 1),
        (2, np.True_),
        (3, "\ud800"),
        (3, "x" * (PLAIN_TEXT_CHARS_MAX + 1)),
        (3, Text("x")),
        (3, b"x"),
        (4, bytearray(b"x")),
        (4, b"x" * (PLAIN_TEXT_CHARS_MAX + 1)),
    ],
)
def test_other_values_are_left_to_tables(at: int, value: object) -> None:
    row = tuple(value if place == at else plain for place, plain in enumerate(ROW))
    known = PlainRows(SCHEMA)
    for _ in range(2):  # what was seen before is remembered
        assert known.of([ROW, row]) is None
        assert known.of([ROW]) == [ROW]


def test_no_rows_are_plain_where_there_could_be_some() -> None:
    assert PlainRows(SCHEMA).of([]) == []
    assert PlainRows(SCHEMA).of(SCHEMA.empty_table()) == []
    assert PlainRows(pa.schema([("at", pa.timestamp("us"))])).of([(1,)]) is None


@given(st.lists(st.tuples(st.integers(-9, 9), st.none() | st.floats(allow_nan=False)), max_size=40))
def test_a_table_of_few_rows_is_read(rows: list[tuple[int, float | None]]) -> None:
    fields = [pa.field("n", pa.int64(), nullable=False), pa.field("x", pa.float64())]
    known = PlainRows(pa.schema(fields, metadata={"of": "the input"}))
    columns = [list(column) for column in zip(*rows, strict=True)] or [[], []]
    for schema in (pa.schema(fields), pa.schema([field.with_nullable(True) for field in fields])):
        table = pa.table(columns, schema=schema.with_metadata({"pandas": "something"}))
        table = pa.concat_tables([table.slice(0, 3), table.slice(3)])
        assert known.of(table) == (rows if len(rows) <= 32 else None)


@pytest.mark.parametrize("rows", [31, 32, 33])
def test_a_table_of_more_rows_stays_a_table(rows: int) -> None:
    table = pa.table({"n": list(range(rows))})
    assert PlainRows(table.schema).of(table) == ([(n,) for n in range(rows)] if rows <= 32 else None)


def test_text_of_the_greatest_length_is_plain() -> None:
    row = (1, None, True, "x" * PLAIN_TEXT_CHARS_MAX, b"x" * PLAIN_TEXT_CHARS_MAX)
    assert PlainRows(SCHEMA).of([row]) == [row]


@pytest.mark.parametrize(
    "table",
    [
        pa.table({"n": pa.array([1], pa.int32()), "e": [b""]}),
        pa.table({"n": [1]}),
        pa.table({"e": [b""], "n": [1]}),
        pa.table({"n": [1], "e": [b""], "diff": [1]}),
        pa.table({"n": [None], "e": [b""]}, schema=pa.schema({"n": pa.int64(), "e": pa.binary()})),
        pa.table(
            {"n": [1], "e": [b""]},
            schema=pa.schema(
                [("n", pa.int64()), pa.field("e", pa.binary(), metadata={"differential.type": "any"})]
            ),
        ),
        pa.table({"n": [1], "e": pa.array([b""], pa.large_binary())}),
        pa.RecordBatch.from_pydict({"n": [1], "e": [b""]}),
    ],
    ids=str,
)
def test_other_tables_stay_tables(table: object) -> None:
    schema = pa.schema([pa.field("n", pa.int64(), nullable=False), pa.field("e", pa.binary())])
    assert PlainRows(schema).of(table) is None
    assert PlainRows(schema).of(pa.table({"n": [1], "e": [b""]})) == [(1, b"")]


@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize(
    "column",
    [
        pytest.param(pa.array([1 << 61], pa.timestamp("us", tz="UTC")), id="a moment far away"),
        pytest.param(pa.array([1 << 30], pa.int32()).cast(pa.date32()), id="a day far away"),
        pytest.param(pa.array(["ab"]).cast(pa.binary()).view(pa.string()), id="text"),
        pytest.param(pa.array([b"\xff\xfe"]).view(pa.string()), id="text that is no UTF-8"),
    ],
)
def test_a_table_whose_values_python_does_not_have_stays_a_table(column: pa.Array, rows: int) -> None:
    table = pa.table([column.slice(0, rows)], ["c"])
    is_plain = rows == 0 or column == pa.array(["ab"])
    assert PlainRows(table.schema).of(table) == ([("ab",)] * rows if is_plain else None)


@pytest.mark.parametrize("n", [-(1 << 63), (1 << 63) - 1])
def test_all_integers_of_64_bits_are_plain(n: int) -> None:
    assert PlainRows(SCHEMA.remove(4).remove(3).remove(2).remove(1)).of([(n,)]) == [(n,)]


@pytest.mark.parametrize(
    "data",
    [
        (ROW,),
        pytest.param(iter([ROW]), id="an iterator"),
        [ROW[:4]],
        [(*ROW, 1)],
        [{**dict(zip(SCHEMA.names, ROW, strict=True)), "more": 1}],
        [{"n": 1, "x": 1.0, "b": True, "s": "", "e": b""}],
        ["abcde"],
        [5],
        [Pair(1, "x")],
        pa.table({"n": [1]}),
        None,
        [ROW] * (PLAIN_VALUES_MAX // 5 + 1),
    ],
    ids=repr,
)
def test_other_data_are_left_to_tables(data: object) -> None:
    assert PlainRows(SCHEMA).of(data) is None


def test_as_many_rows_as_the_limit_says_are_plain() -> None:
    assert PlainRows(SCHEMA).of([ROW] * (PLAIN_VALUES_MAX // 5)) == [ROW] * (PLAIN_VALUES_MAX // 5)


@pytest.mark.parametrize(
    "field",
    [
        pa.field("t", pa.timestamp("us", tz="UTC")),
        pa.field("t", pa.date32()),
        pa.field("t", pa.decimal128(5, 2)),
        pa.field("t", pa.int32()),
        pa.field("t", pa.binary(), metadata={b"differential.type": b"any"}),
    ],
)
def test_columns_of_other_types_have_no_plain_values(field: pa.Field) -> None:
    assert PlainRows(pa.schema([field])).of([(None,)]) is None
    assert PlainRows(pa.schema([])).of([()]) is None


def test_rows_that_were_found_plain_are_so_for_the_same_columns_alone() -> None:
    plain = PlainRows(SCHEMA).of([ROW])
    assert PlainRows(SCHEMA).of(plain) is plain
    renamed = SCHEMA.with_metadata({b"keys": b"x"})
    assert PlainRows(renamed).of(plain) is plain
    others = SCHEMA.set(0, pa.field("n", pa.string(), nullable=False))
    assert PlainRows(others).of(plain) is None


def test_very_many_forms_of_rows_are_looked_at_anew() -> None:
    wide = pa.schema([pa.field(f"c{n}", pa.int64()) for n in range(12)])
    known = PlainRows(wide)
    for bits in range(1 << 11):
        row = tuple(None if bits >> place & 1 else place for place in range(12))
        assert known.of([row]) == [row]
    assert len(known._forms) <= 1_024
