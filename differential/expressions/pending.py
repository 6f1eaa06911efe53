"""Expressions that have a meaning only over the columns of a collection: SQL as text, columns of an owner.

`dd.expr("x + 1")` does not say which type x has, and SQL's operators depend on types. Operators of
collections know the types. `rows.x` is a column of the collection `rows`, its owner; behind a join it may
have another name. Each operator replaces what is pending in its expressions before a node enters the plan.

The reader of texts is in a room above this one (`relational`), which enters it here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NoReturn, Protocol, TypeVar

from differential.columns.schema import Column, Schema
from differential.errors import ExpressionError
from differential.expressions.expression import ColumnRef, Expr, Operation, When
from differential.expressions.tree import PendingTree
from differential.other_spellings.table import COLLECTIONS
from timely.user_code.call_site import call_site

__all__ = [
    "ColumnOwner",
    "OwnedColumn",
    "PendingExpr",
    "RowsOfSchema",
    "SqlCall",
    "SqlExpr",
    "SqlReader",
    "changed",
    "enter_reader",
    "label_of",
    "names_without_owner",
    "over_rows",
    "sql_reader",
    "with_columns_of",
    "with_operands",
]


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
    sides: Mapping[str, Mapping[str, str]] = field(default_factory=dict, kw_only=True)
    """By the name of a side, `a` in a.x, what its columns are called in the rows."""


@dataclass(frozen=True, eq=False, repr=False)
class SqlCall(SqlExpr):
    """A function of SQL over expressions; in `text` they are the columns `0`, `1`, …"""

    operands: tuple[Expr, ...] = ()
    label: str = ""
    """What PySpark calls the column of it."""

    def columns(self) -> frozenset[str]:
        """Return the names of the columns it reads."""
        return frozenset[str]().union(*(operand.columns() for operand in self.operands))


S = TypeVar("S", bound=SqlExpr)


class RowsOfSchema(Protocol):
    """Rows with columns: a node of a plan, or the pairs of a join."""

    @property
    def schema(self) -> Schema:
        """The columns."""


class ColumnOwner(Protocol):
    """A collection with columns that expressions name as its own."""

    def column_in(self, column: OwnedColumn, rows: RowsOfSchema) -> str:
        """Return what one of its columns is called among the columns of `rows`.

        Raises ExpressionError with the user's line if `rows` do not have the column, or several that it may
        be.
        """

    def has_column_in(self, column: OwnedColumn, rows: RowsOfSchema, alias: str | None) -> bool:
        """Return True if `rows`, which are called `alias`, have one of its columns."""


@dataclass(frozen=True, eq=False, repr=False)
class OwnedColumn(PendingExpr):
    """A column of a certain collection: `rows.x`."""

    name: str
    owner: ColumnOwner

    def __call__(self, *args: object, **named: object) -> NoReturn:
        """Raise ExpressionError: a method that collections do not have, and the name of a column."""
        missing = f"a collection has no method {self.name!r} ({call_site()})"
        raise ExpressionError(
            f"{COLLECTIONS.message(missing, self.name)}. It is a column here: rows[{self.name!r}]"
        )


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


def label_of(sql: SqlExpr) -> str:
    """Return what a column of a text is called, if nobody gives it a name."""
    return sql.label if isinstance(sql, SqlCall) else sql_reader().named(sql.text, "expr", sql.dialect)[0]


def over_rows(expr: Expr, rows: RowsOfSchema) -> Expr:
    """Return `expr` with its texts and owned columns as they are over the columns of `rows`; itself if it has
    none.
    """

    def read(pending: PendingExpr) -> Expr:
        if isinstance(pending, OwnedColumn):
            return ColumnRef(pending.owner.column_in(pending, rows))
        assert isinstance(pending, SqlExpr), "no other kind is pending"
        if isinstance(pending, SqlCall):
            operands = {str(n): over_rows(each, rows) for n, each in enumerate(pending.operands)}
            columns = [Column(name, each.type_in(rows.schema)) for name, each in operands.items()]
            return with_columns_of(sql_reader().value(pending, Schema(tuple(columns))), operands)
        return sql_reader().value(pending, rows.schema)

    return _replaced(expr, read) if expr.is_pending else expr


def names_without_owner(expr: Expr, rows: RowsOfSchema) -> frozenset[str]:
    """Return the columns of `rows` that `expr` names without an owner, also in texts."""
    if isinstance(expr, OwnedColumn):
        return frozenset()
    if isinstance(expr, SqlExpr) and not isinstance(expr, SqlCall):
        return _names_without_side(expr, rows.schema)
    if not (expr.is_pending and isinstance(expr, Operation | SqlCall)):
        return expr.columns()
    return frozenset[str]().union(*(names_without_owner(operand, rows) for operand in expr.operands))


def _names_without_side(sql: SqlExpr, schema: Schema) -> frozenset[str]:
    """Return the columns that a text names without a side."""
    apart = {
        alias: {own: f"\0{alias}\0{name}" for own, name in columns.items()}
        for alias, columns in sql.sides.items()
    }
    more = [
        Column(apart[alias][own], schema[name].type)
        for alias, columns in sql.sides.items()
        for own, name in columns.items()
    ]
    value = sql_reader().value(changed(sql, sides=apart), Schema((*schema, *more)))
    return value.columns() & frozenset(schema.names)


def changed(sql: S, **parts: object) -> S:
    """Return a text or function of SQL with other parts, from the same line."""
    other = replace(sql, **parts)  # type: ignore[arg-type]  # what the callers pass fits
    object.__setattr__(other, "site", sql.site)
    return other


def with_columns_of(expr: Expr, columns: Mapping[str, Expr]) -> Expr:
    """Return `expr`, which has nothing pending, with other expressions in place of some columns, by name."""
    if isinstance(expr, ColumnRef):
        return columns.get(expr.name, expr)
    if not isinstance(expr, Operation):
        return expr
    return with_operands(expr, [with_columns_of(operand, columns) for operand in expr.operands])


def _replaced(expr: Expr, replace: Callable[[PendingExpr], Expr]) -> Expr:
    if isinstance(expr, PendingExpr):
        return replace(expr)
    if not (expr.is_pending and isinstance(expr, Operation)):
        return expr
    return with_operands(expr, [_replaced(operand, replace) for operand in expr.operands])


def with_operands(expr: Operation, operands: Sequence[Expr]) -> Expr:
    """Return an operation with other operands."""
    make = When if isinstance(expr, When) else Operation
    rewritten = make(expr.op, tuple(operands), expr.to)
    object.__setattr__(rewritten, "site", expr.site)
    return rewritten
