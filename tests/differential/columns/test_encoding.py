"""Arrow columns to words and back: round trips; equal rows, equal words."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import timely.wire.arrow
from differential.columns import encoding
from differential.columns.rows import Row, decode_rows, encode_rows
from differential.columns.schema import Schema
from differential.columns.symbols.table import SymbolTable
from differential.columns.tables import to_table
from differential.errors import SchemaError

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


def test_layout_nulls_are_one_row_whatever_lies_below_them_and_sort_first() -> None:
    values = pa.array([7, 8, -(2**63)])
    hidden = pa.Array.from_buffers(pa.int64(), 3, [pa.py_buffer(bytes([0b100])), values.buffers()[1]])
    words = Schema.of("a: int?").encode(pa.table({"a": hidden}))
    assert words.tolist() == [[0, 0, 1], [0, 0, -(2**63)]]
    assert sorted(map(tuple, words.T.tolist()))[0] == (0, 0)


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


@given(st.sampled_from([8, 16, 32]), st.booleans(), st.data())
def test_law_short_numbers_have_the_words_of_long_ones_and_stay_short_until_then(
    bits: int, is_signed: bool, data: st.DataObject
) -> None:
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if is_signed else (0, 2**bits - 1)
    values = data.draw(
        st.lists(st.none() | st.integers(low, high) | st.sampled_from([low, high]), max_size=9)
    )
    short = pa.array(values, getattr(pa, f"{'' if is_signed else 'u'}int{bits}")())
    skipped = data.draw(st.integers(0, len(values)))
    table = pa.table({"n": pa.chunked_array([short[:skipped], short[skipped:]])}).slice(skipped // 2)
    schema = Schema.of("n: int?")
    assert schema.conform(table).schema.field("n").type == short.type
    for start in range(table.num_rows + 1):  # of one chunk, of several, with an offset
        part = table.slice(start).drop_null()
        assert Schema.of("n: int").encode(part).tolist() == [part.column("n").to_pylist()]
    long = table.cast(pa.schema({"n": pa.int64()}))
    assert schema.encode(table).tolist() == schema.encode(long).tolist()
    parts, words = schema.in_parts(table), np.zeros((2, table.num_rows), np.int64)
    parts.write(words, 0)
    assert words.tolist() == schema.encode(long).tolist()


@pytest.mark.parametrize("kind", ["int", "float", "decimal(12, 2)"])
@pytest.mark.parametrize("given_type", [pa.int8(), pa.uint16(), pa.int32(), pa.uint32()])
def test_short_numbers_are_taken_wherever_long_ones_are(kind: str, given_type: pa.DataType) -> None:
    schema = Schema.of(f"n: {kind}")
    short = pa.table({"n": pa.array([0, 1, 127], given_type)})
    long = short.cast(pa.schema({"n": pa.int64()}))
    assert schema.encode(short).tolist() == schema.encode(long).tolist()
    empty = pa.Array.from_buffers(given_type, 0, [None, pa.py_buffer(b"")])
    assert schema.encode(pa.table({"n": empty})).shape == (1, 0)


def test_law_chunks_make_no_difference() -> None:
    table = to_table(
        [(1, None, 0.5, True, NOON, "a", b"r", 1), (2, 3, -0.5, None, NOON, None, b"", [1])], EVERY
    )
    symbols = SymbolTable()
    chunked = pa.concat_tables([table.slice(0, 1), table.slice(1), table.slice(0, 0)])
    assert np.array_equal(EVERY.encode(chunked, symbols), EVERY.encode(table, symbols))
    assert EVERY.encode(table.slice(0, 0), symbols).shape == (EVERY.width, 0)
    assert EVERY.decode(np.empty((EVERY.width, 0), dtype=np.int64), symbols).num_rows == 0


@given(st.lists(st.sampled_from(["", "a", "b", "a longer text", "é", None]), max_size=12), st.booleans())
def test_law_few_texts_have_the_words_that_they_have_among_many(
    texts: list[str | None], are_known: bool
) -> None:
    schema = Schema.of("a: string?, b: bytes?")
    table = to_table([(text, None if text is None else text.encode()) for text in texts], schema)
    symbols = SymbolTable()
    if are_known:
        symbols.intern_strings(["a", b"b"])
    few = schema.encode(table, symbols)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoding, "FEW_TEXTS_MAX", -1)
        assert np.array_equal(schema.encode(table, symbols), few)
    assert schema.decode(few, symbols).to_pylist() == table.to_pylist()
    different = {text for text in texts if text is not None}
    known = ({"a"}, {"b"}) if are_known else (set(), set())
    assert len(symbols) == sum(len(different | some) for some in known)


def test_dictionaries_with_anything_below_their_nulls_are_read_by_what_is_there() -> None:
    valid, numbers = pa.py_buffer(bytes([0b1011])), pa.py_buffer(bytes([0, 1, 127, 2]))
    indices = pa.Array.from_buffers(pa.int8(), 4, [valid, numbers])
    column = pa.DictionaryArray.from_arrays(indices, pa.array(["p", "q", "r"]), safe=False)
    schema, symbols = Schema.of("a: string?"), SymbolTable()
    for begin in range(4):
        words = schema.encode(pa.table({"a": column[begin:]}), symbols)
        assert schema.decode(words, symbols)["a"].to_pylist() == ["p", "q", None, "r"][begin:]


def test_symbols_of_more_than_2_gib_are_of_the_declared_type(monkeypatch: pytest.MonkeyPatch) -> None:
    schema, symbols = Schema.of("s: string, r: bytes"), SymbolTable()
    words = schema.encode(to_table([("ab", b"cd"), ("e", b"f")], schema), symbols)
    monkeypatch.setattr(timely.wire.arrow, "_BYTES_MAX", 1)
    table = schema.decode(words, symbols)
    assert table.schema.types == [pa.string(), pa.binary()]
    assert table.to_pylist() == [{"s": "ab", "r": b"cd"}, {"s": "e", "r": b"f"}]


def test_bytes_in_a_column_of_text_that_are_no_utf_8_are_shown() -> None:
    """Arrow lets them pass."""
    table = pa.table({"s": pa.array([b"a", b"\xff\xfe"]).view(pa.string())})
    schema = Schema.of("s: string")
    for encode in (schema.encode, schema.in_parts):
        with pytest.raises(SchemaError, match=r"no UTF-8: b'a?\\xff\\xfe'"):
            encode(table, SymbolTable())
