"""Schema: user columns to words and back, and what is refused on the way.

declare_*    how a schema can be written
layout_*     which words a column takes, and in which order they stand for the values
law_*        round trips; equal rows have equal words
cast_*       what is taken although it comes as another Arrow type
refuse_*     what is not, and that the message names input, column, row, value
from_*       Python, numpy and pandas data
"""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from differential.column_types import any_value, integer, string
from differential.errors import SchemaError
from differential.float_words import float_to_word, floats_to_words, words_to_floats
from differential.rows import Row, decode_rows, encode_rows
from differential.schema import Schema
from differential.symbols import SymbolTable
from differential.tables import to_table

EVERY = Schema.of("i: int, n: int?, f: float, b: bool?, t: timestamp, s: string?, r: bytes, x: any")
NOON = dt.datetime(2024, 2, 29, 12, 0, 0, 7, tzinfo=dt.UTC)

words_64 = st.integers(-(2**63), 2**63 - 1)
moments = st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30), timezones=st.just(dt.UTC))
json_like = st.recursive(
    st.booleans() | words_64 | st.text(max_size=5) | st.binary(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3).map(tuple) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=5,
)
rows_of_every_type = st.lists(
    st.tuples(
        words_64,
        st.none() | words_64,
        st.floats(allow_nan=False),
        st.none() | st.booleans(),
        moments,
        st.none() | st.text(max_size=8),
        st.binary(max_size=8),
        json_like,
    ),
    max_size=8,
)


def test_declare_by_string_mapping_pairs_and_python_types() -> None:
    expected = Schema.of("src: int, dst: int?, text: string, x: any")
    assert Schema.of({"src": int, "dst": int | None, "text": str, "x": object}) == expected
    assert Schema.of([("src", integer), ("dst", "int?"), ("text", string), ("x", any_value)]) == expected
    assert Schema.of(str(expected)) == expected
    assert Schema.of(expected) is expected


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("src: int, src: int", "two columns are called 'src'"),
        ("src: integral", "Types are int, float"),
        ("src", "write name: type"),
        (": int", "needs a name"),
    ],
)
def test_declare_nonsense_is_refused(spec: str, said: str) -> None:
    with pytest.raises(SchemaError, match=said):
        Schema.of(spec)


def test_layout_a_nullable_column_is_a_flag_and_a_value() -> None:
    schema = Schema.of("a: int, b: string?, c: bool")
    assert schema.width == 4
    assert [list(schema.words_of(name)) for name in schema.names] == [[0], [1, 2], [3]]
    assert schema.symbol_words == (2,)
    assert schema.symbol_positions(["b"]) == (1,)
    assert schema.reordered(["c", "a"]).names == ("c", "a", "b")


def test_layout_nulls_are_one_row_whatever_lies_below_them_and_sort_first() -> None:
    values = pa.array([7, 8, -(2**63)])
    hidden = pa.Array.from_buffers(pa.int64(), 3, [pa.py_buffer(bytes([0b100])), values.buffers()[1]])
    words = Schema.of("a: int?").encode(pa.table({"a": hidden}))
    assert words.tolist() == [[0, 0, 1], [0, 0, -(2**63)]]
    assert sorted(map(tuple, words.T.tolist()))[0] == (0, 0)


@given(st.lists(st.floats(allow_nan=False), min_size=2, max_size=20))
def test_layout_the_order_of_float_words_is_that_of_floats(values: list[float]) -> None:
    words = floats_to_words(np.array(values)).tolist()
    for value, word in zip(values, words, strict=True):
        for other, other_word in zip(values, words, strict=True):
            assert (value < other) == (word < other_word)
            assert (value == other) == (word == other_word)
    assert words_to_floats(np.array(words)).tolist() == values


def test_layout_every_nan_is_one_word_above_infinity() -> None:
    strange = np.array([0xFFF8_0000_0000_0001, 0x7FF0_0000_0000_0001], dtype=np.uint64).view(np.float64)
    words = floats_to_words(strange).tolist()
    assert words == [float_to_word(float("nan"))] * 2
    assert words[0] > float_to_word(float("inf"))
    assert float_to_word(-0.0) == float_to_word(0.0)


@given(rows_of_every_type)
def test_law_rows_come_back_and_tables_and_tuples_have_the_same_words(rows: list[Row]) -> None:
    symbols = SymbolTable()
    words = encode_rows(EVERY, rows, symbols)
    assert decode_rows(EVERY, words, symbols) == rows
    table = to_table(rows, EVERY)
    assert np.array_equal(EVERY.encode(table, symbols), words)
    decoded = EVERY.decode(words, symbols)
    assert decoded.equals(table)
    assert decoded.schema == EVERY.to_arrow()
    assert words.flags.c_contiguous and words.flags.writeable
    symbols.check_invariants()


@given(rows_of_every_type)
def test_law_different_rows_have_different_words(rows: list[Row]) -> None:
    words = encode_rows(EVERY, rows, SymbolTable())
    columns = [tuple(column) for column in words.T.tolist()]
    for row, one in zip(rows, columns, strict=True):
        for other, another in zip(rows, columns, strict=True):
            # repr tells True from 1, which `any` keeps apart; dicts are compared in any order.
            assert (one == another) == (row == other and _shape(row) == _shape(other))


def _shape(value: object) -> object:
    if isinstance(value, tuple):
        return tuple(_shape(part) for part in value)
    if isinstance(value, dict):
        return sorted((key, _shape(part)) for key, part in value.items())
    return repr(type(value)) if isinstance(value, bool | int) else ""


def test_law_chunks_make_no_difference() -> None:
    table = to_table(
        [(1, None, 0.5, True, NOON, "a", b"r", 1), (2, 3, -0.5, None, NOON, None, b"", [1])], EVERY
    )
    symbols = SymbolTable()
    chunked = pa.concat_tables([table.slice(0, 1), table.slice(1), table.slice(0, 0)])
    assert np.array_equal(EVERY.encode(chunked, symbols), EVERY.encode(table, symbols))
    assert EVERY.encode(table.slice(0, 0), symbols).shape == (EVERY.width, 0)
    assert EVERY.decode(np.empty((EVERY.width, 0), dtype=np.int64), symbols).num_rows == 0


@pytest.mark.parametrize(
    ("declared", "array", "words"),
    [
        ("int", pa.array([1, 2], pa.int8()), [1, 2]),
        ("int", pa.array([1, 2**63 - 1], pa.uint64()), [1, 2**63 - 1]),
        ("int", pa.array([5, 6, 5]).dictionary_encode(), [5, 6, 5]),
        ("float", pa.array([0, 2**53]), [0, float_to_word(2.0**53)]),
        ("float", pa.array([0.5], pa.float32()), [float_to_word(0.5)]),
        ("timestamp", pa.array([1], pa.timestamp("s")), [1_000_000]),
        ("timestamp", pa.array([2000], pa.timestamp("ns", tz="Europe/Berlin")), [2]),
        ("timestamp", pa.array([1], pa.date32()), [86_400_000_000]),
    ],
)
def test_cast_what_loses_nothing(declared: str, array: pa.Array, words: list[int]) -> None:
    assert Schema.of({"a": declared}).encode(pa.table({"a": array})).tolist() == [words]


@pytest.mark.parametrize(
    "array",
    [
        pa.array(["x", None, "y", "x"], pa.large_string()),
        pa.array(["x", None, "y", "x"]).dictionary_encode(),
        pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 0]), pa.array(["x", None, "y"])),
        pa.array(["x", None, "y", "x"], pa.string_view()),
    ],
)
def test_cast_every_form_of_strings(array: pa.Array) -> None:
    symbols = SymbolTable()
    schema = Schema.of("a: string?")
    words = schema.encode(pa.table({"a": array}), symbols)
    assert schema.decode(words, symbols).column("a").to_pylist() == ["x", None, "y", "x"]


def test_cast_any_takes_every_arrow_type_and_its_own_packed_form() -> None:
    symbols = SymbolTable()
    schema = Schema.of("a: any?")
    words = schema.encode(pa.table({"a": pa.array([[1, 2], None, []])}), symbols)
    assert decode_rows(schema, words, symbols) == [((1, 2),), (None,), ((),)]
    assert np.array_equal(schema.encode(schema.decode(words, symbols), symbols), words)


def test_cast_a_column_of_nulls_only_has_no_type_to_be_wrong() -> None:
    table = pa.table({"n": pa.nulls(2), "s": pa.nulls(2)})
    words = Schema.of("n: int?, s: string?").encode(table, SymbolTable())
    assert not words.any()


NULL_BELOW = pa.DictionaryArray.from_arrays(pa.array([0]), pa.array([None, "x"]))


@pytest.mark.parametrize(
    ("spec", "table", "said"),
    [
        ("a: int", {"a": pa.array([1, None])}, r"input 'edges', column 'a' \(int\), row 1: None is null.*: int\?"),
        ("a: int", {"a": pa.array([3.0])}, r"row 0: 3\.0 comes as double, not int.*\"a: float\""),
        ("a: int", {"a": pa.array([1, 2**63], pa.uint64())}, r"row 1: 9223372036854775808 \(uint64\)"),
        ("a: float", {"a": pa.array([0, 1, 2**53 + 1])}, r"row 2: 9007199254740993 \(int64\).*without loss"),
        ("a: timestamp", {"a": pa.array([1000, 1], pa.timestamp("ns"))}, r"row 1: '1970-01-01.*1'"),
        ("a: bool", {"a": pa.array([1])}, "row 0: 1 comes as int64, not bool"),
        ("a: string", {"a": pa.array([None, 5])}, "row 1: 5 comes as int64, not string"),
        ("a: string", {"a": NULL_BELOW}, "row 0: None is null"),
        ("a: int, b: int", {"a": pa.array([1]), "c": pa.array([1])}, "columns a, b; missing 'b'; not declared 'c'"),
    ],
)  # fmt: skip
def test_refuse_what_does_not_fit(spec: str, table: dict[str, pa.Array], said: str) -> None:
    with pytest.raises(SchemaError, match=f"(?s){said}"):
        Schema.of(spec).encode(pa.table(table), SymbolTable(), "edges")


def test_refuse_finds_the_first_misfit_in_a_long_chunked_column() -> None:
    good = np.arange(10_000, dtype=np.uint64)
    bad = good.copy()
    bad[[777, 778]] = 2**63
    table = pa.concat_tables([pa.table({"a": good}), pa.table({"a": bad})])
    with pytest.raises(SchemaError, match="row 10777"):
        Schema.of("a: int").encode(table)


PAIR = Schema.of("a: int, b: string?")
EXPECTED = [(1, "x"), (2, None)]


@pytest.mark.parametrize(
    "data",
    [
        EXPECTED,
        [list(row) for row in EXPECTED],
        [{"b": "x", "a": 1}, {"a": 2, "b": None}],
        {"a": [1, 2], "b": ["x", None]},
        {"b": pa.array(["x", None]), "a": np.array([1, 2], dtype=np.int32)},
        {"b": pa.chunked_array([["x"], [None]]), "a": range(1, 3)},
        pd.DataFrame({"a": [1, 2], "b": ["x", None]}, index=[5, 6]),
        pd.DataFrame({"a": [1, 2], "b": pd.array(["x", pd.NA], dtype="string")}),
        pd.DataFrame({"a": [1, 2], "b": pd.Categorical(["x", None])}),
        pa.table({"b": ["x", None], "a": [1, 2]}),
        pa.RecordBatch.from_pylist([{"a": 1, "b": "x"}, {"a": 2, "b": None}]),
        np.array([(1, "x"), (2, None)], dtype=[("a", np.int16), ("b", object)]),
    ],
)
def test_from_every_form_of_table(data: object) -> None:
    table = to_table(data, PAIR)
    assert table.column_names == ["a", "b"]
    assert [tuple(row.values()) for row in table.to_pylist()] == EXPECTED


def test_from_pandas_whole_numbers_with_gaps_and_times() -> None:
    frame = pd.DataFrame({"n": [1, None], "t": pd.to_datetime(["2024-02-29 12:00:00.000007", None])})
    table = to_table(frame, Schema.of("n: int?, t: timestamp?"))
    assert [tuple(row.values()) for row in table.to_pylist()] == [(1, NOON), (None, None)]
    nan = to_table(pd.DataFrame({"f": [0.5, None]}), Schema.of("f: float")).column("f").to_pylist()
    assert nan[0] == 0.5 and np.isnan(nan[1])
    assert to_table(pd.DataFrame({"f": [0.5, None]}), Schema.of("f: float?")).column("f").to_pylist() == [
        0.5,
        None,
    ]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (5, "int is not a table"),
        ("text", "str is not a table"),
        ([5], "row 0: 5 is neither a tuple nor a dict"),
        ([(1, "x"), (1,)], r"row 1: \(1,\) has 1 values for 2 columns"),
        ([{"a": 1}], "row 0: .* has not exactly the keys a, b"),
        ([(True, "x")], r"column 'a' \(int\), row 0: True is a bool, not int"),
        ([(1, "x"), (2.0, "x")], r"column 'a' \(int\), row 1: 2\.0 is a float, not int"),
        ([(1, 2)], r"column 'b' \(string\?\), row 0: 2 is a int, not string"),
        ([(None, "x")], r"column 'a' \(int\), row 0: None is null"),
        ([(2**63, "x")], "row 0: 9223372036854775808 is out of range"),
        ({"a": [1], "b": ["x", "y"]}, r"different lengths \(a: 1, b: 2\)"),
        ({"a": [1]}, "missing 'b'"),
        ({"a": [1], "b": ["x"], "c": [1]}, "not declared 'c'"),
        ({"a": np.zeros((2, 2)), "b": ["x", "y"]}, "the array is 2×2"),
        (pd.DataFrame({"a": [1.5], "b": ["x"]}), r"row 0: 1\.5 comes as double"),
    ],
)
def test_from_other_data_is_refused(data: object, said: str) -> None:
    with pytest.raises(SchemaError, match=said):
        to_table(data, PAIR, "edges")


def test_from_rows_the_words_are_checked_like_the_table() -> None:
    with pytest.raises(SchemaError, match="column 'a'.*row 1: 9223372036854775808 is out of range"):
        encode_rows(PAIR, [(1, "x"), (2**63, "x")], SymbolTable())
    naive = NOON.replace(tzinfo=None)
    one = Schema.of("t: timestamp")
    assert np.array_equal(encode_rows(one, [(naive,)], None), encode_rows(one, [(NOON,)], None))
