"""`col("a.x")`: the column x of the rows that `alias("a")` has named, as PySpark writes it.

Behind a join the columns of a side may have other names. So `a.x` becomes a column of an owner, which is
known by its alias alone. A column whose own name is "a.x" comes first.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import ExpressionError
from ...expressions.expression import ColumnRef, Expr, Operation
from ...expressions.pending import OwnedColumn, RowsOfSchema, SqlCall, SqlExpr, changed, with_operands
from ..nodes import Node
from .origins import Origins, PairsOfSides, Wanted

__all__ = ["all_of_side", "columns_of_side", "with_sides"]


@dataclass(frozen=True)
class _NamedSide:
    """The rows that are called `alias`, among rows that are called `called`."""

    origins: Origins
    alias: str
    called: str | None

    def column_in(self, column: OwnedColumn, rows: RowsOfSchema) -> str:
        """Return what a column of the side is called in `rows`; raise ExpressionError if there is none, or if
        there are several.
        """
        names = self._names(column, rows, self.called)
        if len(names) == 1:
            return names[0]
        why = f"is ambiguous: it is {' and '.join(names)} here" if names else "is none of these rows"
        assert isinstance(rows, Node | PairsOfSides)
        if not names and column.name in self.origins.lacking(rows, self.called, self.alias):
            why = _behind_key(column.name)
        raise ExpressionError(f"{column.written!r} ({column.site}) {why}; there are: {rows.schema}.")

    def has_column_in(self, column: OwnedColumn, rows: RowsOfSchema, alias: str | None) -> bool:
        """Return True if `rows`, which are called `alias`, have a column of the side."""
        return bool(self._names(column, rows, alias))

    def _names(self, column: OwnedColumn, rows: RowsOfSchema, called: str | None) -> list[str]:
        assert isinstance(rows, Node | PairsOfSides)
        return self.origins.names(rows, called, Wanted(column.name, None, self.alias))


def with_sides(expr: Expr, rows: Node | PairsOfSides, origins: Origins, called: str | None) -> Expr:
    """Return `expr` with the columns of sides in place of `col("a.x")`, where `rows`, which are called
    `called`, have such a side; itself if there are none.
    """
    if isinstance(expr, ColumnRef):
        alias, _, name = expr.name.partition(".")
        if not name or expr.name in rows.schema or not origins.columns(rows, called, alias):
            return expr
        return OwnedColumn(expr.name, name, _NamedSide(origins, alias, called))
    if isinstance(expr, SqlExpr) and not isinstance(expr, SqlCall):
        return _text_with_sides(expr, rows, origins, called) if "." in expr.text else expr
    if not isinstance(expr, Operation | SqlCall):
        return expr
    operands = tuple(with_sides(each, rows, origins, called) for each in expr.operands)
    if all(new is old for new, old in zip(operands, expr.operands, strict=True)):
        return expr
    return changed(expr, operands=operands) if isinstance(expr, SqlCall) else with_operands(expr, operands)


def _text_with_sides(
    sql: SqlExpr, rows: Node | PairsOfSides, origins: Origins, called: str | None
) -> SqlExpr:
    sides = {each: columns_of_side(rows, origins, called, each) for each in origins.aliases(rows, called)}
    return changed(sql, sides=sides) if sides else sql


def columns_of_side(
    rows: Node | PairsOfSides, origins: Origins, called: str | None, alias: str
) -> dict[str, str]:
    """Return the columns of a side by their own names, and what they are called in `rows`; those that are
    not there any more are left out.
    """
    own_names: dict[str, str] = {}
    for name in origins.columns(rows, called, alias):
        names = origins.names(rows, called, Wanted(name, None, alias))
        if len(names) == 1:
            own_names[name] = names[0]
    return own_names


def all_of_side(rows: Node, origins: Origins, called: str | None, alias: str) -> dict[str, str]:
    """Return what `columns_of_side` does; raise ExpressionError if a column is ambiguous, or if a join has
    none of it.
    """
    for name in origins.columns(rows, called, alias):
        names = origins.names(rows, called, Wanted(name, None, alias))
        if len(names) > 1:
            raise ExpressionError(f"{alias}.{name} is ambiguous: it is {' and '.join(names)} here")
    if lacking := sorted(origins.lacking(rows, called, alias)):
        raise ExpressionError(f"{alias}.{lacking[0]} {_behind_key(lacking[0])}")
    return columns_of_side(rows, origins, called, alias)


def _behind_key(name: str) -> str:
    return (
        "is not there behind this join, which has one key for both sides: join on a condition, as in "
        f"a.{name} == b.{name}, or name the columns that you need"
    )
