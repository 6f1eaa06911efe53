"""What the live tables of notebooks and of the console have in common: the rows that they keep, the first of
these in an order, and how columns and values are written.

How they read an output differs. The table of a notebook belongs to the program that reads there, too: it has
a position, so that no `forget` of that program takes changes from it, and it says which epoch has no answer.
The console looks at clusters of others: a position would keep changes for a page that may be gone, and would
stand among the readers that the page itself shows. So it has none, and begins again with a snapshot if what
it has not read yet is forgotten.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from ...errors import MisuseError
from ...limits import CELL_CHARS_MAX, LIVE_BYTES_MAX, LIVE_CELLS_COUNT_MAX, LIVE_ROWS_MAX
from ...user_code.html_tables import cell_text
from ...wire.arrow import pc, stored
from ..tables import summed, with_values
from .pictures import columns_of

__all__ = [
    "ShownColumn", "cells_of", "check_size", "count_shown", "first_rows", "merged_rows", "shown_columns",
    "summed_changes",
]  # fmt: skip


class ShownColumn(NamedTuple):
    """A column: its name, its type, and whether it holds numbers, which stand at the right."""

    name: str
    type: str
    is_number: bool


def shown_columns(schema: pa.Schema) -> list[ShownColumn]:
    """Return what stands above each column."""
    return [
        ShownColumn(str(name), kind[:CELL_CHARS_MAX], _is_number(field.type))
        for (name, kind), field in zip(columns_of(schema), schema, strict=True)
    ]


def _is_number(type_: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_integer(type_) or types.is_floating(type_) or types.is_decimal(type_))


def summed_changes(changes: pa.Table) -> pa.Table:
    """Return changes of all epochs together, in the form in which Arrow sorts and compares values."""
    table = stored(changes)
    return summed(table.drop_columns(["epoch"]) if "epoch" in table.column_names else table)


def merged_rows(rows: pa.Table | None, changes: pa.Table) -> pa.Table:
    """Return rows with changes of them, both from here. `diff` says how often each row is there. Raise
    `MisuseError` if there are too many then.
    """
    table = changes
    if rows is not None:
        table = summed(pa.concat_tables([rows, changes.select(rows.column_names)]))
    check_size(table.num_rows, table.nbytes)
    return table


def check_size(rows: int, size: int = 0) -> None:
    """Raise `MisuseError` if a live table does not keep so many rows, of so many bytes."""
    if rows > LIVE_ROWS_MAX or size > LIVE_BYTES_MAX:
        of = f" in {size >> 20:,} MiB" if size else ""
        raise MisuseError(
            f"the output has about {rows:,} rows{of}, and a live table keeps {LIVE_ROWS_MAX:,} rows in "
            f"{LIVE_BYTES_MAX >> 20} MiB at most: ask for a part of them by SQL, or let another output have "
            "the first of them, by order_by(…).limit(…), or counts and sums of groups"
        )


def count_shown(most: int, columns: int) -> int:
    """Return how many rows of so many columns are shown: not more cells than a page can draw."""
    return max(1, min(most, LIVE_CELLS_COUNT_MAX // max(1, columns)))


def first_rows(table: pa.Table, count: int, order: Sequence[tuple[str, str]]) -> pa.Table:
    """Return the first rows in an order: of each column by which they are sorted its name, and "ascending" or
    "descending". Columns that Arrow cannot sort by count not.
    """
    # Checked before: `select_k_unstable` of pyarrow 26 ends the process at a list, a struct or an extension.
    keys = [(name, direction) for name, direction in order if _is_sortable(table.schema.field(name).type)]
    if not keys:
        return table.slice(0, count)
    if table.num_rows > count:
        return table.take(pc.select_k_unstable(table, k=count, sort_keys=keys))
    return table.take(pc.sort_indices(table, sort_keys=keys))


def _is_sortable(type_: pa.DataType) -> bool:
    types = pa.types
    is_text = types.is_string(type_) or types.is_large_string(type_)
    is_bytes = types.is_binary(type_) or types.is_large_binary(type_) or types.is_fixed_size_binary(type_)
    is_time = types.is_temporal(type_) and not types.is_interval(type_)
    is_other = types.is_boolean(type_) or is_text or is_bytes or is_time
    return bool(is_other or (_is_number(type_) and not types.is_float16(type_)))


def cells_of(table: pa.Table) -> list[tuple[str | None, ...]]:
    """Return the cells of the rows as texts; null is None."""
    columns = [
        [None if value is None else cell_text(value) for value in _values(column)]
        for column in with_values(table).columns
    ]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def _values(column: pa.ChunkedArray) -> list[object]:
    try:
        values: list[object] = column.to_pylist()
    except (OverflowError, ValueError):  # Python has no such time
        values = [_value(each) for each in column]
    return values


def _value(scalar: pa.Scalar) -> object:
    """Return the value of a scalar, with texts for times that Python does not have."""
    value: object
    try:
        value = scalar.as_py()
    except (OverflowError, ValueError):
        if isinstance(scalar, pa.MapScalar):
            value = [(_value(each["key"]), _value(each["value"])) for each in scalar.values]
        elif isinstance(scalar, pa.ListScalar):
            value = [_value(each) for each in scalar.values]
        elif isinstance(scalar, pa.StructScalar):
            value = {name: _value(scalar[name]) for name in scalar}
        else:
            value = scalar.cast(pa.string()).as_py()
    return value
