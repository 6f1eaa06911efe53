"""Columns and rows come as JSON has them."""

from __future__ import annotations

import pyarrow as pa

from timely.console.content.cells import columns_of, rows_of


def test_columns_say_what_they_are() -> None:
    columns = columns_of(pa.schema([pa.field("a", pa.int64(), False), ("<b>", pa.string())]))
    assert columns == [
        {"name": "a", "type": "int64", "is_number": True},
        {"name": "<b>", "type": "string?", "is_number": False},
    ]


def test_a_null_is_none_and_all_else_a_text() -> None:
    table = pa.table({"a": [1, None], "b": ["null", None]})
    assert rows_of(table) == [["1", "null"], [None, None]]
