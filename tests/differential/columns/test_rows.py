"""Single rows to words and back: every type, and what a column does not take."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from differential.columns.rows import Row, encode_rows
from differential.columns.schema import Schema
from differential.columns.symbols.table import SymbolTable
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


PAIR = Schema.of("a: int, b: string?")


def test_from_rows_the_words_are_checked_like_the_table() -> None:
    with pytest.raises(SchemaError, match="column 'a'.*row 1: 9223372036854775808 is out of range"):
        encode_rows(PAIR, [(1, "x"), (2**63, "x")], SymbolTable())
    naive = NOON.replace(tzinfo=None)
    one = Schema.of("t: timestamp")
    assert np.array_equal(encode_rows(one, [(naive,)], None), encode_rows(one, [(NOON,)], None))
