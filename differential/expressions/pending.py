"""Expressions that have a meaning only over the columns of a collection: SQL as text.

`dd.expr("x + 1")` does not say which type x has, and SQL's operators depend on types. Operators of
collections know the types. Each replaces what is pending in its expressions before a node enters the plan.

The reader of texts is in a room above this one (`relational`), which enters it here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from differential.columns.schema import Schema
from differential.errors import ExpressionError
from differential.expressions.expression import Expr, Operation, When
from differential.expressions.tree import PendingTree

__all__ = ["PendingExpr", "SqlExpr", "SqlReader", "enter_reader", "over_schema", "sql_reader"]


@dataclass(frozen=True, eq=False, repr=False)
class PendingExpr(Expr, PendingTree):
    """An expression that an operator of a collection replaces."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "is_pending", True)


@dataclass(frozen=True, eq=False, repr=False)
class SqlExpr(PendingExpr):
    """SQL as text; `written` is the call that has it, as in expr('x + 1'), and begins its errors."""

    text: str
    dialect: str
    form: str = ""
    """Of a condition: how its call is written with columns, as in "filter({})"."""


class SqlReader(Protocol):
    """Reads SQL expressions. Raises SqlError, in one line, with the user's line and the place in the text."""

    def named(self, text: str, call: str, dialect: str) -> tuple[str, SqlExpr, bool]:
        """Return the name of the column that `text` makes in a SELECT, its expression, and whether the text
        gives the name by AS. "*" stands for all columns.
        """

    def value(self, sql: SqlExpr, schema: Schema) -> Expr:
        """Return what a text means over the columns of `schema`."""


_readers: Final[list[SqlReader]] = []


def enter_reader(reader: SqlReader) -> None:
    """Make `reader` the reader of SQL expressions."""
    _readers[:] = [reader]


def sql_reader() -> SqlReader:
    """Return the reader of SQL expressions."""
    if not _readers:
        raise ExpressionError("SQL as text needs `import differential`, which enters its reader")
    return _readers[0]


def over_schema(expr: Expr, schema: Schema) -> Expr:
    """Return `expr` with its texts read over the columns of `schema`; itself if it has none."""

    def read(pending: PendingExpr) -> Expr:
        assert isinstance(pending, SqlExpr), "no other kind is pending"
        return sql_reader().value(pending, schema)

    return _replaced(expr, read) if expr.is_pending else expr


def _replaced(expr: Expr, replace: Callable[[PendingExpr], Expr]) -> Expr:
    if isinstance(expr, PendingExpr):
        return replace(expr)
    if not (expr.is_pending and isinstance(expr, Operation)):
        return expr
    operands = tuple(_replaced(operand, replace) for operand in expr.operands)
    make = When if isinstance(expr, When) else Operation
    rewritten = make(expr.op, operands, expr.to)
    object.__setattr__(rewritten, "site", expr.site)
    return rewritten
