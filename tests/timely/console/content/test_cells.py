"""Cells are texts of bounded length, with all digits."""

from __future__ import annotations

import datetime

import pyarrow as pa

from timely.console.content.cells import cell, columns_of, rows_of
from timely.limits import CELL_CHARS_MAX


def test_values_are_texts_with_all_digits() -> None:
    values = (2**63 - 1, 0.1, True, None, "x", b"\x01\xab", [1, "a"], datetime.date(2026, 1, 2))
    assert [cell(value) for value in values] == [
        "9223372036854775807", "0.1", "True", None, "x", "01 ab", "[1, 'a']", "2026-01-02",
    ]  # fmt: skip


def test_a_long_text_ends_with_its_length() -> None:
    text = cell("é" * 1_000_000)
    assert text == "é" * CELL_CHARS_MAX + " … (1,000,000 characters)"
    assert cell("é" * CELL_CHARS_MAX) == "é" * CELL_CHARS_MAX


def test_times_that_python_does_not_have_are_shown() -> None:
    late = pa.table({"t": pa.array([2**62], pa.timestamp("us"))})
    ((text,),) = rows_of(late)  # type: ignore[misc]
    assert isinstance(text, str) and text


def test_columns_say_what_they_are() -> None:
    columns = columns_of(pa.schema([("a", pa.int64()), ("<b>", pa.string())]))
    assert columns == [
        {"name": "a", "type": "int64", "is_number": True},
        {"name": "<b>", "type": "string", "is_number": False},
    ]
