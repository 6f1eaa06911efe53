"""Operators that call Python functions for records or batches: no state, no stage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Self

from ..columns.column_types import ColumnType, TypeSpec, any_value, as_column_type, integer
from ..columns.schema import Column, Schema, SchemaSpec
from ..errors import SchemaError
from ..linear.user_functions import BatchFunction, FlatMapFunction, MapFunction
from ..plan.origins.origins import JoinSide
from .handle import Name, Row, name_of
from .selecting import RowOperators

__all__ = ["FunctionOperators"]


class FunctionOperators(RowOperators):
    """Operators that call functions; `linear/user_functions.py` says what functions must observe."""

    def map(self, function: MapFunction, schema: SchemaSpec | None = None) -> Self:
        """`function(record)` in place of each record; about 1 µs a record, so prefer `select` if it suffices.

        `schema` declares the columns of the function's results; without it they are those of this collection.
        Rust: `map`. LINQ: `Select`.
        """
        return self.applied("map", function, schema)

    def flat_map(self, function: FlatMapFunction, schema: SchemaSpec | None = None) -> Self:
        """All the records that `function(record)` returns, for each record; costs as `map`.

        Rust: `flat_map`. LINQ: `SelectMany`.
        """
        return self.applied("flat_map", function, schema)

    def map_batches(self, function: BatchFunction, schema: SchemaSpec | None = None) -> Self:
        """The rows that `function(batch)` returns for a batch of changes, an Arrow table.

        The batch has the columns of this collection and the int64 column `diff`, the change of each row's
        multiplicity. The result has the columns of `schema`, and `diff`. If it has no `diff`, its row i comes
        from row i of the batch, and it must have as many rows. All rows of a batch are changes of one time.

        Which rows meet in a batch is arbitrary. The function must observe a law: it is linear, so that its
        result for two batches together is the sum of its results for each. (So it cannot sum, rank, or drop
        duplicates; it passes `diff` on, or multiplies it.) Costs what the function does, and some 50 µs per
        batch; a batch of several times is cut up.
        """
        return self.applied("map_batches", function, schema)

    def explode(
        self,
        column: Name,
        type_: TypeSpec | None = None,
        *,
        outer: bool = False,
        position: Name | None = None,
    ) -> Self:
        """One row for each element of the array in `column`, in its place.

        Of a map there is a row for each key, with two columns in its place, `key` and `value`.

        type_      the type of the elements of a list of type any, as in `explode("tags", "string")`
        outer      True: a row whose list is empty, null, or not a list stays, with null; False: it goes
        position   the name of a further column with the number of the element, from 0

        PySpark: `explode`, `explode_outer`, `posexplode`. LINQ: `SelectMany`. Costs as `flat_map`.
        """
        column = name_of(column, "explode", self)
        position = None if position is None else name_of(position, "explode")
        names = self.schema.names
        place = names.index(self.schema[column].name)
        if position in names:
            raise SchemaError(f"explode: there is a column {position!r} already")
        parts = _exploded(self.schema[column], None if type_ is None else as_column_type(type_))
        columns = [*self.schema.columns[:place], *parts, *self.schema.columns[place + 1 :]]
        if position is not None:
            parts.append(Column(position, integer))
            columns.append(parts[-1])
        if outer:
            columns = [Column(each.name, each.type.or_null()) if each in parts else each for each in columns]
        width = len(parts) - (position is not None)
        rows = self.flat_map(_exploding(place, outer, position is not None, width), Schema(tuple(columns)))
        others = {name: name for name in names if name != column and name in rows.schema}
        self.plan.origins.joined(rows.node, (JoinSide(self.node, self.called, others),))
        return rows

    def inspect(self, function: Callable[[Row, tuple[int, ...], int], None]) -> Self:
        """Call `function(row, time, diff)` for each update that passes; the collection stays as it is.

        Rust: `inspect`.
        """
        return replace(self, node=self.plan.inspect(self.node, function))


def _exploded(column: Column, type_: ColumnType | None) -> list[Column]:
    """Return the columns in the place of an exploded one."""
    whole = column.type
    if whole.kind == "any":
        return [Column(column.name, any_value if type_ is None else type_)]
    if whole.kind == "map" and type_ is None:
        key, value = whole.parts
        return [Column("key", key), Column("value", value)]
    if whole.kind != "array":
        raise SchemaError(
            f"explode: {column.name!r} is {whole}. There is a row for each element of an array, for each key "
            "of a map, or for each element of a list of type any"
        )
    element = whole.parts[0]
    if type_ is not None and not type_.holds(element):
        raise SchemaError(
            f"explode: the elements of {column.name!r} are {element}, not {type_}. Leave the type out, and "
            "cast the column behind it"
        )
    return [Column(column.name, element if type_ is None else type_)]


def _exploding(place: int, outer: bool, numbered: bool, width: int) -> Callable[[Row], list[Row]]:
    """Return a new function for each use: it closes over plain values only, so that it can travel."""

    def exploded(record: Row) -> list[Row]:
        elements = record[place]
        listed: list[tuple[object, tuple[object, ...]]] = []
        if width == 2 and isinstance(elements, dict):
            listed += enumerate(elements.items())
        elif isinstance(elements, tuple | list):
            listed += enumerate((element,) for element in elements)
        if outer and not listed:
            listed.append((None, (None,) * width))
        rows = []
        for number, parts in listed:
            row = (*record[:place], *parts, *record[place + 1 :])
            rows.append((*row, number) if numbered else row)
        return rows

    return exploded
