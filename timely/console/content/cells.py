"""Rows of Arrow tables as texts for a page, of bounded length."""

from __future__ import annotations

import pyarrow as pa

from ...limits import CELL_CHARS_MAX
from .told import Json

__all__ = ["cell", "columns_of", "rows_of"]


def columns_of(schema: pa.Schema) -> list[Json]:
    """Return name, type and whether a column holds numbers, which stand at the right."""
    return [
        {
            "name": str(field.name),
            "type": str(field.type)[:CELL_CHARS_MAX],
            "is_number": bool(
                pa.types.is_integer(field.type)
                or pa.types.is_floating(field.type)
                or pa.types.is_decimal(field.type)
            ),
        }
        for field in schema
    ]


def rows_of(table: pa.Table) -> list[Json]:
    """Return the cells of the rows, null as None. Numbers are texts, too: a browser's would lose digits."""
    columns = [[cell(value) for value in column] for column in table.columns]
    return [list(row) for row in zip(*columns, strict=True)]


def cell(value: object) -> str | None:
    """Return a value as text: what is longer than a cell ends with how long it is."""
    if isinstance(value, pa.Scalar):
        scalar: pa.Scalar = value
        try:
            value = scalar.as_py()
        except (OverflowError, ValueError):  # Python has no such time
            value = scalar.cast(pa.string()).as_py()
    if value is None:
        return None
    text = value if isinstance(value, str) else value.hex(" ") if isinstance(value, bytes) else repr(value)
    if not isinstance(value, str | bytes | bool | int | float | list | dict | tuple):
        text = str(value)
    if len(text) > CELL_CHARS_MAX:
        return f"{text[:CELL_CHARS_MAX]} … ({len(text):,} characters)"
    return text
