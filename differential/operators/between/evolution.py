"""Rows of an older version of an input as rows of a newer one, which has other columns.

    same         the column stays as it is, perhaps at another place
    wider        every value of the old type is one of the new: null is allowed, or a decimal has more digits
    new          each row has the default of the column, or null if there is none
    gone         the column is left out. Rows that differ there alone are one row, as often as both

A change is refused unless every row can be read: no value is rounded, and none is guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from differential.columns.column_types import ColumnType, Int64s
from differential.columns.schema import Column, Schema
from differential.columns.worker_symbols import SYMBOLS
from differential.errors import SchemaError

__all__ = ["Evolution", "check_evolution", "default_columns", "defaults_text", "with_defaults"]


def check_evolution(
    old: Schema, new: Schema, defaults: pa.Table | None, keys: tuple[Sequence[str], Sequence[str]] = ((), ())
) -> None:
    """Raise SchemaError unless each row of `old` can be read as one of `new`. `keys`: those of both, for
    inputs that keep the last value by key.
    """
    problems: list[str] = []
    if list(keys[0]) != list(keys[1]):
        problems.append(f"the key was {', '.join(keys[0]) or 'none'}, and is {', '.join(keys[1]) or 'none'}")
    for column in new:
        if column.name in old:
            before = old[column.name].type
            if not _is_wider(before, column.type):
                problems.append(
                    f"a value of {column.name!r} was {before}, and is {column.type}, which may not hold it"
                )
        elif not column.type.nullable and (defaults is None or column.name not in defaults.column_names):
            problems.append(
                f"{column.name!r} is new and may not be null: write defaults={{{column.name!r}: …}} behind "
                "the columns of the input"
            )
    if problems:
        raise SchemaError("; ".join(problems))


def _is_wider(old: ColumnType, new: ColumnType) -> bool:
    """Return True if each value of one type is a value of the other."""
    if old.nullable and not new.nullable:
        return False
    if old.kind != "decimal" or new.kind != "decimal":
        return old.not_null() == new.not_null()
    return new.scale >= old.scale and new.precision - new.scale >= old.precision - old.scale


class Evolution:
    """Makes rows with the columns `new` of rows with the columns `old`; `defaults` are for new columns.

    Requires: `check_evolution`.
    """

    def __init__(self, old: Schema, new: Schema, defaults: pa.Table | None) -> None:
        self._old, self._new = old, new
        self._defaults = defaults
        self._steps = [self._step(column) for column in new]

    def rows(self, rows: Int64s) -> Int64s:
        """Return the rows with the words of the new columns; the words behind the columns stay."""
        width, behind = self._new.width, rows.shape[0] - self._old.width
        words: Int64s = np.empty((width + behind, rows.shape[1]), np.int64)
        for column, step in zip(self._new, self._steps, strict=True):
            span = self._new.words_of(column.name)
            step(rows, words[span.start : span.stop])
        words[width:] = rows[self._old.width :]
        return words

    def _step(self, column: Column) -> Callable[[Int64s, Int64s], None]:
        """Return the function that writes the words of one column."""
        if column.name not in self._old:
            return self._filling(column)
        before, span = self._old[column.name].type, self._old.words_of(column.name)
        if before.not_null() != column.type.not_null():
            return self._casting(column)
        words = before.not_null().words

        def move(rows: Int64s, out: Int64s) -> None:
            if before == column.type:
                out[:] = rows[span.start : span.stop]
            else:  # null is allowed now: a flag says that there is a value
                out[0] = 1
                out[1:] = rows[span.stop - words : span.stop]

        return move

    def _filling(self, column: Column) -> Callable[[Int64s, Int64s], None]:
        """Return the function that writes the default of a new column. It makes the words anew each time: the
        text behind a word is forgotten once nothing refers to it.
        """
        own = Schema((column,))
        value = default_columns(self._defaults, own)

        def fill(rows: Int64s, out: Int64s) -> None:
            del rows
            out[:] = own.encode(value, SYMBOLS, "defaults")

        return fill

    def _casting(self, column: Column) -> Callable[[Int64s, Int64s], None]:
        """Return the function that writes the values of a wider type."""
        own = Schema((column,))

        def cast(rows: Int64s, out: Int64s) -> None:
            out[:] = own.encode(self._old.decode(rows, SYMBOLS, [column.name]), SYMBOLS, "older rows")

        return cast


def default_columns(defaults: pa.Table | None, columns: Schema) -> pa.Table:
    """Return one row of the default values of `columns`; null where there is none."""
    has = [] if defaults is None else defaults.column_names
    arrays = [
        defaults.column(name) if defaults is not None and name in has else pa.nulls(1, field.type)
        for name, field in zip(columns.names, columns.to_arrow(), strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=columns.to_arrow())


def with_defaults(table: pa.Table, defaults: pa.Table | None, beside_keys: Sequence[str] = ()) -> pa.Table:
    """Return the table; a column that it lacks, and that has a default, has that in all rows.

    `beside_keys`: the columns of an input by key in which a row of nulls deletes its key: there it is null.
    """
    lacking = (
        [] if defaults is None else [each for each in defaults.schema if each.name not in table.column_names]
    )
    if defaults is None or not lacking:
        return table
    is_null = [table.column(name).is_null() for name in beside_keys if name in table.column_names]
    for field in lacking:
        filled = pa.repeat(defaults.column(field.name)[0], table.num_rows)
        if is_null:
            import pyarrow.compute as pc  # few tables lack columns; to load it takes 0.05 s

            deletes = is_null[0]
            for each in is_null[1:]:
                deletes = pc.and_(deletes, each)
            filled = pc.if_else(deletes, pa.scalar(None, field.type), filled)
        table = table.append_column(field.with_nullable(True), filled)
    return table


def defaults_text(defaults: pa.Table | None) -> str:
    """Return the defaults for the description of an input: an empty text if there are none."""
    if defaults is None:
        return ""
    (row,) = defaults.to_pylist()
    return " with defaults " + ", ".join(f"{name} = {value!r}" for name, value in row.items())
