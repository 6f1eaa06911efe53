"""Columns and rows of tables as JSON for a page."""

from __future__ import annotations

import pyarrow as pa

from ...client.shown.first_rows import cells_of, shown_columns
from .told import Json

__all__ = ["columns_of", "rows_of"]


def columns_of(schema: pa.Schema) -> list[Json]:
    """Return name, type and whether a column holds numbers."""
    return [column._asdict() for column in shown_columns(schema)]


def rows_of(table: pa.Table) -> list[Json]:
    """Return the cells of the rows, null as None. Numbers are texts, too: a browser's would lose digits."""
    return [list(cells) for cells in cells_of(table)]
