"""Aggregates as SQL in a text: `agg(dd.expr("sum(a * b) / count(*) AS mean"))`.

A text over groups is an expression of aggregates and keys. It is split into the aggregates, each a column of
the groups, and what is computed of these columns. The reader is in a room above this one, which enters it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from ...aggregates import Aggregate
from ...columns.schema import Schema
from ...errors import ExpressionError
from ...expressions.expression import Expr
from ...expressions.pending import SqlExpr

__all__ = ["GroupedText", "GroupedTextReader", "enter_grouped_text_reader", "grouped_text_reader"]


class GroupedText(NamedTuple):
    """An expression over groups: aggregates by name, and the expression over them and the keys."""

    expr: Expr
    aggregates: dict[str, Aggregate]


class GroupedTextReader(Protocol):
    """Reads texts with aggregates; raises SqlError, as `SqlReader` does."""

    def has_aggregates(self, sql: SqlExpr) -> bool:
        """Return True if there is an aggregate in the text."""

    def grouped(self, sql: SqlExpr, schema: Schema, keys: Sequence[str]) -> GroupedText:
        """Return what a text means over the groups by `keys` of rows with these columns."""


_readers: Final[list[GroupedTextReader]] = []


def enter_grouped_text_reader(reader: GroupedTextReader) -> None:
    """Make `reader` the reader of texts with aggregates."""
    _readers[:] = [reader]


def grouped_text_reader() -> GroupedTextReader:
    """Return the reader of texts with aggregates."""
    if not _readers:
        raise ExpressionError("SQL as text needs `import differential`, which enters its reader")
    return _readers[0]
