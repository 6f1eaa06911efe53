"""The part of a table that a page sees: filtered, sorted, the first rows."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa

from ...client.shown.first_rows import count_shown, first_rows
from ...limits import SHOWN_ROWS_MAX
from .cells import columns_of, rows_of
from .told import Json

__all__ = ["TableView", "shown"]


@dataclass(frozen=True)
class TableView:
    """What a page wants to see.

    sort           the column by which rows are sorted; empty: by all, the first one counts most
    is_descending  the largest first
    wanted         a text that some cell must contain, in upper or lower case; empty: all rows
    """

    sort: str = ""
    is_descending: bool = False
    wanted: str = ""


def shown(table: pa.Table | None, view: TableView) -> dict[str, Json]:
    """Return the rows of a view as texts, the columns, and how many rows there are. A column `diff` says how
    often a row is there: if each is there once, it is left out.
    """
    if table is None:
        return {"columns": [], "rows": [], "total": 0, "matching": 0}
    import pyarrow.compute as pc

    total = table.num_rows
    if "diff" in table.column_names and pc.all(pc.equal(table.column("diff"), 1)).as_py() is not False:
        table = table.drop_columns(["diff"])
    if view.wanted:
        table = _filtered(table, view.wanted)
    matching = table.num_rows
    table = _first(table, view)
    return {
        "columns": columns_of(table.schema),
        "rows": rows_of(table),
        "total": total,
        "matching": matching,
    }


def _filtered(table: pa.Table, wanted: str) -> pa.Table:
    import pyarrow.compute as pc

    mask = None
    for column in table.columns:
        with suppress(pa.ArrowException):  # a list, say, which has no text in Arrow
            texts = column if pa.types.is_string(column.type) else column.cast(pa.string())
            has = pc.fill_null(pc.match_substring(texts, wanted, ignore_case=True), False)
            mask = has if mask is None else pc.or_(mask, has)
    return table.slice(0, 0) if mask is None else table.filter(mask)


def _first(table: pa.Table, view: TableView) -> pa.Table:
    """Return the first rows in the order of a view."""
    names = table.column_names
    order = "descending" if view.is_descending else "ascending"
    keys = [(view.sort, order)] if view.sort in names else []
    rest = [(name, order if not keys else "ascending") for name in names if name != view.sort]
    return first_rows(table, count_shown(SHOWN_ROWS_MAX, len(names)), keys + rest)
