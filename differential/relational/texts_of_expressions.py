"""`dd.expr`, and SQL expressions as text in operators of collections: `filter("x > 1")`.

Nothing here imports sqlglot before a text is read.
"""

from __future__ import annotations

from collections.abc import Sequence

from timely.user_code.call_site import call_site

from ..collections.texts.aggregates_as_text import GroupedText, enter_grouped_text_reader
from ..columns.schema import Schema
from ..errors import SqlError
from ..expressions.expression import Aliased, Expr
from ..expressions.pending import SqlExpr, enter_reader
from ..other_spellings import written_condition

__all__ = ["expr"]


def expr(text: str, dialect: str = "spark") -> Expr | Aliased:
    """An expression that is written as SQL: `dd.expr("price * quantity")`, or with a name for the column that
    it makes, `dd.expr("upper(name) as name")`. It stands wherever an expression can; in `agg` it may have
    aggregates: `agg(dd.expr("sum(price) / count(*) as mean"))`.

    text      one expression; docs/sql.md has the functions and operators. No windows, no subqueries
    dialect   "spark", "postgres" or "duckdb"

    What it means depends on the types of the columns, so errors of names and types come with the operator
    that uses it. Needs sqlglot: `pip install 'naiad[sql]'`.
    Raises SqlError, in one line with your line and the place in the text.
    """
    name, sql, is_named = _READER.named(text, "expr", dialect)
    if name == "*":
        raise SqlError(f"{sql.written} ({call_site()}): * stands for columns of select, and is no expression")
    return Aliased(name, sql) if is_named else sql


class _SqlglotReader:
    """Reads texts by sqlglot."""

    def named(self, text: str, call: str, dialect: str) -> tuple[str, SqlExpr, bool]:
        as_passed: object = text
        if not isinstance(as_passed, str):
            raise SqlError(f"{call} ({call_site()}) takes SQL as text, not {as_passed!r:.60}")
        sql = SqlExpr(f"{call}({_short(text)})", text, dialect)
        try:
            from .reading.texts_read import column_of
        except ModuleNotFoundError as error:
            raise _missing(error, sql) from None
        name, is_named = column_of(_name(sql), text, dialect)
        return name, sql, is_named

    def value(self, sql: SqlExpr, schema: Schema) -> Expr:
        try:
            from .reading.texts_read import value_over
        except ModuleNotFoundError as error:
            raise _missing(error, sql) from None
        return value_over(_name(sql), sql, schema)

    def has_aggregates(self, sql: SqlExpr) -> bool:
        try:
            from .reading.texts_read import has_aggregates
        except ModuleNotFoundError as error:
            raise _missing(error, sql) from None
        return has_aggregates(_name(sql), sql)

    def grouped(self, sql: SqlExpr, schema: Schema, keys: Sequence[str]) -> GroupedText:
        from .reading.texts_read import grouped_over

        return grouped_over(_name(sql), sql, schema, keys)


def _short(text: str) -> str:
    return repr(text) if len(text) <= 60 else repr(f"{text[:57]}…")


def _name(sql: SqlExpr) -> str:
    return f"{sql.written} ({sql.site}), <sql>"


def _missing(error: ModuleNotFoundError, sql: SqlExpr) -> Exception:
    """Return the error for a text where there is no sqlglot; any other missing module is an error itself."""
    if error.name != "sqlglot":
        return error
    advice = f" {written_condition(sql.form, sql.text)}" if sql.form else ""
    return SqlError(
        f"{sql.written} ({sql.site}): SQL as text needs sqlglot, which is not installed: "
        f"pip install 'naiad[sql]'.{advice}"
    )


_READER = _SqlglotReader()
enter_reader(_READER)
enter_grouped_text_reader(_READER)
