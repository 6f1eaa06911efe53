"""What `group_by(…).agg(…)` can compute of a group: count, sum, min, max.

An aggregate is data: a kind and a column. It says which type its result has; how it is computed incrementally
is in `operators/reduce.py`, and its plain definition in `tests/reference/collection.py`:

    count    Σ multiplicity
    sum      Σ value · multiplicity
    min      the least value among rows whose multiplicity is positive
    max      the greatest one

A group is present while some row of it has a multiplicity other than 0; if min or max is asked for, while
some row's is positive. Its rows have the columns that the keys and the aggregates name, and no others: rows
that differ elsewhere count as one, whose multiplicity is the sum of theirs. So one row taken away too often
can hide another of the same value, and comes to nothing when it is added.

sum and count are exact: if the total at a time leaves 64 bits, the dataflow ends with a SumOverflowError that
names the group; the order in which rows came does not matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from differential.columns.column_types import ColumnType
from differential.columns.schema import Schema
from differential.errors import ExpressionError

__all__ = ["Aggregate", "AggregateKind", "count", "max", "min", "sum"]

AggregateKind = Literal["count", "sum", "min", "max"]


@dataclass(frozen=True)
class Aggregate:
    """One aggregate of a group; `column` is None for `count`."""

    kind: AggregateKind
    column: str | None = None

    def describe(self) -> str:
        """As the user wrote it."""
        return f"{self.kind}({'' if self.column is None else self.column})"

    def type_in(self, schema: Schema) -> ColumnType:
        """The type of its result over groups of rows of `schema`; raises ExpressionError when it has none."""
        if self.column is None:
            return Schema.of("count: int").columns[0].type
        column = schema[self.column]
        if column.type.nullable:
            raise ExpressionError(
                f"{self.describe()}: column {self.column!r} may be null ({column.type}); "
                f"fill it first, as in select({self.column}=col.{self.column}.fill_null(0))"
            )
        if self.kind == "sum" and column.type.kind not in ("int", "bool"):
            raise ExpressionError(
                f"{self.describe()}: sums are exact and need a column of whole numbers, not {column.type}. "
                "Scale the values and cast them to int"
            )
        if self.kind in ("min", "max") and not column.is_ordered:
            raise ExpressionError(
                f"{self.describe()}: {column.type} values are kept as symbols, whose order is not that of "
                "the values. Use reduce(fn), which sees the values"
            )
        return Schema.of("sum: int").columns[0].type if self.kind == "sum" else column.type


def count() -> Aggregate:
    """How many rows the group has, multiplicities counted."""
    return Aggregate("count")


def sum(column: str) -> Aggregate:
    """The sum of a column of whole numbers over the group's rows."""
    return Aggregate("sum", column)


def min(column: str) -> Aggregate:
    """The least value of a column in the group."""
    return Aggregate("min", column)


def max(column: str) -> Aggregate:
    """The greatest value of a column in the group."""
    return Aggregate("max", column)
