"""Are the rows of two tables the same, in whatever order and however they are cut?

A commit is compared by its rows, and not by their number: an input that has changed may give as many rows as
before. Rows with a column `diff` are compared by their sums.
"""

from __future__ import annotations

from textwrap import shorten

import pyarrow as pa

from timely.client.tables import summed
from timely.spark.epochs import DIFF
from timely.wire.arrow import int64s_of, text_array

__all__ = ["difference"]

_SHOWN_CHARS = 200


def difference(before: pa.Table, now: pa.Table) -> tuple[str, int] | None:
    """Return a row that has not the same sum of `diff` in both tables, as text, and how much more of it
    `before` has; None if the tables have the same rows.

    The columns of `before` are cast to the types of `now`: a file may have read back others.
    """
    cast = [before.column(field.name).cast(field.type) for field in now.schema]
    both = pa.concat_tables(
        [_comparable(pa.Table.from_arrays(cast, names=now.column_names)), _negated(_comparable(now))]
    )
    left = summed(both)
    if not left.num_rows:
        return None
    (row,) = left.slice(0, 1).to_pylist()
    more = row.pop(DIFF)
    return shorten(", ".join(f"{name} {value!r}" for name, value in row.items()), _SHOWN_CHARS), more


def _comparable(table: pa.Table) -> pa.Table:
    """Return the table with nested values as texts, which Arrow can group, and without facts about columns
    that matter for nothing here.
    """
    columns = [
        text_array([repr(value) for value in column.to_pylist()])
        if pa.types.is_nested(column.type)
        else column
        for column in table.columns
    ]
    return pa.Table.from_arrays(columns, names=table.column_names)


def _negated(table: pa.Table) -> pa.Table:
    at = table.column_names.index(DIFF)
    return table.set_column(at, DIFF, pa.array(-int64s_of(table.column(DIFF))))
