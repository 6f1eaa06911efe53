"""Operators on single rows: no state, no stage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Self

from ..columns.schema import SchemaSpec
from ..errors import SchemaError
from ..expressions.expression import Expr, ExprLike, as_expr, col
from ..linear.user_functions import FlatMapFunction, MapFunction
from ..plan.nodes import Filter, Negate, Select
from .handle import Handle, Row

__all__ = ["RowOperators"]


class RowOperators(Handle):
    """What each row becomes, by itself."""

    def select(self, *columns: str | Expr, **named: ExprLike) -> Self:
        """Columns by name, and columns computed by expressions: `select("src", label=col.dst + 1)`."""
        chosen: dict[str, Expr] = {}
        for column in columns:
            reference = col(column) if isinstance(column, str) else column
            names = [column] if isinstance(column, str) else sorted(reference.columns())
            if len(names) != 1 or (not isinstance(column, str) and repr(reference) != repr(col(names[0]))):
                raise SchemaError(f"select: {reference!r} needs a name: write select(name={reference!r})")
            chosen[names[0]] = reference
        chosen.update({name: as_expr(value) for name, value in named.items()})
        return self.with_node(Select(self.node, tuple(chosen.items())))

    def with_columns(self, **named: ExprLike) -> Self:
        """All columns, those named here replaced or added at the end: `with_columns(degree=col.n + 1)`."""
        kept: dict[str, Expr] = {name: col(name) for name in self.schema.names}
        kept.update({name: as_expr(value) for name, value in named.items()})
        return self.with_node(Select(self.node, tuple(kept.items())))

    def filter(self, condition: ExprLike) -> Self:
        """The rows for which `condition` is true (not false, not null)."""
        return self.with_node(Filter(self.node, as_expr(condition)))

    def map(self, function: MapFunction, schema: SchemaSpec | None = None) -> Self:
        """`function(record)` in place of each record; about 1 µs a record, so prefer `select` where it can
        say it.

        `schema` declares the columns of what the function gives; without it they are those of this
        collection.
        """
        return self.applied("map", function, schema)

    def flat_map(self, function: FlatMapFunction, schema: SchemaSpec | None = None) -> Self:
        """All the records that `function(record)` gives, for each record; costs as `map`."""
        return self.applied("flat_map", function, schema)

    def negate(self) -> Self:
        """All multiplicities with the other sign."""
        return self.with_node(Negate(self.node))

    def inspect(self, function: Callable[[Row, tuple[int, ...], int], None]) -> Self:
        """Call `function(row, time, diff)` for each update that passes; the collection stays what it is."""
        return replace(self, node=self.plan.inspect(self.node, function))
