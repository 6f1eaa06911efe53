"""Rows of older versions of inputs.

read_*      rows become those of the newer columns, as a Python function of values makes them
refused_*   changes with which some row could not be read
filled_*    tables of clients that lack a column
"""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from differential.columns.schema import Schema
from differential.columns.worker_symbols import SYMBOLS
from differential.errors import SchemaError
from differential.operators.between.evolution import (
    Evolution,
    check_evolution,
    default_columns,
    defaults_text,
    with_defaults,
)

OLD = Schema.of("a: int, price: decimal(5, 2), name: string, gone: float, b: bool?")
NEW = Schema.of(
    "b: bool?, more: string, name: string?, price: decimal(22, 4)?, a: int?, at: timestamp?, n: int"
)
DEFAULTS = pa.table({"more": ["x" * 40], "n": pa.array([-7], pa.int64())})
VALUES = st.tuples(
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-99_999, 99_999).map(lambda cents: Decimal(cents).scaleb(-2)),
    st.text(max_size=3),
    st.floats(),
    st.none() | st.booleans(),
)


@given(st.lists(VALUES, max_size=5))
def test_read_as_values_are(rows: list[tuple[object, ...]]) -> None:
    check_evolution(OLD, NEW, DEFAULTS)
    columns = list(zip(*rows, strict=True)) or [()] * 5
    table = pa.Table.from_arrays(
        [pa.array(values, field.type) for values, field in zip(columns, OLD.to_arrow(), strict=True)],
        schema=OLD.to_arrow(),
    )
    words = np.full((OLD.width + 3, len(rows)), 9, np.int64)
    OLD.encode_into(words, table, SYMBOLS)
    read = Evolution(OLD, NEW, DEFAULTS).rows(words)
    assert (read[NEW.width :] == 9).all() and read.shape == (NEW.width + 3, len(rows))
    assert [tuple(row.values()) for row in NEW.decode(read, SYMBOLS).to_pylist()] == [
        (b, "x" * 40, name, price, a, None, -7) for a, price, name, _, b in rows
    ]
    again = NEW.encode(NEW.decode(read, SYMBOLS), SYMBOLS)
    assert (again == read[: NEW.width]).all(), "the same words as of rows that clients send"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a: int?", "a: int"),
        ("a: int", "a: string"),
        ("a: int", "a: float"),
        ("a: decimal(5, 2)", "a: decimal(6, 3)?, b: int?, c: int"),
        ("a: decimal(5, 2)", "a: decimal(9, 1)"),
        ("a: decimal(5, 2)", "a: decimal(5, 3)"),
        ("a: date", "a: timestamp"),
        ("b: int", "a: int"),
    ],
)
def test_refused_if_a_row_could_not_be_read(old: str, new: str) -> None:
    with pytest.raises(SchemaError, match="may not hold it|may not be null"):
        check_evolution(Schema.of(old), Schema.of(new), None)


def test_refused_for_other_keys_all_problems_at_once() -> None:
    old, new = Schema.of("k: int, v: int?"), Schema.of("k: int, v: int, w: int")
    with pytest.raises(SchemaError) as caught:
        check_evolution(old, new, None, (("k",), ("k", "v")))
    assert str(caught.value) == (
        "the key was k, and is k, v; a value of 'v' was int?, and is int, which may not hold it; 'w' is new "
        "and may not be null: write defaults={'w': …} behind the columns of the input"
    )


def test_filled_only_with_what_is_stated() -> None:
    table = pa.table({"a": [1, 2]})
    assert with_defaults(table, None) is table
    filled = with_defaults(table, DEFAULTS)
    assert filled.to_pylist() == [{"a": a, "more": "x" * 40, "n": -7} for a in (1, 2)]
    assert with_defaults(filled, DEFAULTS) is filled
    none = pa.table({"at": pa.nulls(1, pa.date32())})
    assert with_defaults(table, none).column("at").to_pylist() == [None, None]


def test_filled_rows_that_delete_stay_so() -> None:
    table = pa.table({"k": [1, 2, 3], "v": [None, 5, None], "w": [None, None, "x"]})
    filled = with_defaults(table, DEFAULTS, ["v", "w", "more", "n"])
    assert filled.column("n").to_pylist() == [None, -7, -7]


def test_defaults_as_text_and_null_where_there_is_none() -> None:
    assert defaults_text(None) == ""
    assert defaults_text(pa.table({"n": [1], "s": ["x"]})) == " with defaults n = 1, s = 'x'"
    assert default_columns(DEFAULTS, Schema.of("n: int, at: date?")).to_pylist() == [{"n": -7, "at": None}]
