"""`INSERT INTO t (a, b) VALUES (1, 'x'), …`, read without a tree, if its rows are plain constants.

A tree costs a millisecond for each row, and a regular expression some microseconds. What it does not match is
read as a tree: this module refuses nothing, so errors, with their places, come from there. What it matches
has the same rows either way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from typing import Final

from sqlglot import TokenType
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError

from ...columns.column_types import ColumnType
from ...errors import ExpressionError
from ...expressions.expression import LiteralValue, lit
from .expressions.values import Value, as_type

__all__ = ["WrittenRows", "columns_of", "written_rows_at"]

_HEAD: Final = re.compile(
    r"\s*(INSERT)\s+(INTO)\s+([A-Za-z_]\w*)\s*(\(\s*[A-Za-z_]\w*(?:\s*,\s*[A-Za-z_]\w*)*\s*\)\s*)?(?<!\w)VALUES(?!\w)",
    re.IGNORECASE | re.ASCII,
)
_STRINGS: Final = {
    "spark": r"""'[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*\"""",
    "postgres": r"'[^']*(?:''[^']*)*'",
    "duckdb": r"'[^']*(?:''[^']*)*'",
}
"""Texts in quotes. With a backslash or two quotes inside, sqlglot says what one means."""

_NUMBER: Final = r"-?\d{1,18}(?:\.\d{1,18})?"
_INT: Final = r"(-?\d{1,18})"
_FLOAT_CHARACTERS_MAX: Final = 16
"""A number of up to 15 digits and a point is the same float, with or without a decimal between."""


@dataclass(frozen=True)
class WrittenRows:
    """The place of such a statement in a text, and of its rows; `columns` are those that it names."""

    dialect: str
    table: str
    columns: tuple[str, ...] | None
    start: int
    rows_start: int
    stop: int

    def moved(self, by: int) -> WrittenRows:
        """Return the same statement in a text that begins elsewhere."""
        return replace(self, start=self.start + by, rows_start=self.rows_start + by, stop=self.stop + by)


def written_rows_at(text: str, start: int, dialect: str) -> WrittenRows | None:
    """Return the statement that begins here, behind white space, and ends with the text or a semicolon."""
    head = _HEAD.match(text, start)
    if head is None or head[3].lower() == "table":  # Spark's INSERT INTO TABLE t
        return None
    rows = _rows(dialect).match(text, head.end())
    if rows is None:
        return None
    columns = None if head[4] is None else tuple(re.findall(r"\w+", head[4]))
    return WrittenRows(dialect, head[3], columns, head.start(1), head.end(), rows.end(1))


@lru_cache
def _rows(dialect: str) -> re.Pattern[str]:
    """Return what matches the rows of a statement, whatever the types of the columns."""
    constant = rf"(?:{_NUMBER}|(?:(?i:DATE|TIMESTAMP)\s*)?(?:{_STRINGS[dialect]})|(?i:NULL|TRUE|FALSE)\b)"
    row = rf"\(\s*{constant}\s*(?:,\s*{constant}\s*)*\)"
    return re.compile(rf"(\s*{row}(?:\s*,\s*{row})*)\s*(?:;|\Z)", re.ASCII | re.DOTALL)


def columns_of(text: str, rows: WrittenRows, types: Sequence[ColumnType]) -> list[list[object]] | None:
    """Return the values of each column; None if they need a tree to be read, or are wrong."""
    kinds = [_of_type(rows.dialect, each) for each in types]
    if None in kinds:
        return None
    constants = [rf"(?:{each.pattern}|(?i:NULL)\b)" for each in kinds if each is not None]
    between = r"\s*,\s*"
    row = re.compile(rf"\s*\(\s*{between.join(constants)}\s*\)\s*,?", re.ASCII | re.DOTALL)
    written: list[tuple[str | None, ...]] = []
    at, match = rows.rows_start, row.match
    while at < rows.stop:
        found = match(text, at, rows.stop)
        if found is None:
            return None
        written.append(found.groups())
        at = found.end()
    columns: list[list[object]] = []
    try:
        for kind, type_, column in zip(kinds, types, zip(*written, strict=True), strict=True):
            assert kind is not None, "columns of other types were refused above"
            if None in column:
                if not type_.nullable:
                    return None
                columns.append([None if each is None else kind.value(each) for each in column])
            else:
                columns.append(list(map(kind.value, column)))
    except (ValueError, ExpressionError, SqlglotError):
        return None
    return columns


@dataclass(frozen=True)
class _Kind:
    """How constants of a column are written, with the text of the constant as a group, and what each is."""

    pattern: str
    value: Callable[[str], object]


def _of_type(dialect: str, type_: ColumnType) -> _Kind | None:
    """Return how constants of a type are read; None for types that others read."""
    text = rf"({_STRINGS[dialect]})"
    if type_.kind == "int":
        return _Kind(_INT, int)
    if type_.kind == "float":
        return _Kind(rf"({_NUMBER})", _float_of)
    if type_.kind == "decimal":
        fraction = rf"(?:\.\d{{1,{type_.scale}}})?" if type_.scale else ""
        return _Kind(rf"(-?\d{{1,18}}{fraction})", _exact_of)
    if type_.kind == "bool":
        return _Kind(r"((?i:TRUE|FALSE)\b)", _bool_of)
    if type_.kind == "string":
        return _Kind(text, _text_reader(dialect))
    if type_.kind in ("date", "timestamp"):
        return _Kind(rf"(?:(?i:{type_.kind})\s*)?{text}", _Times(_text_reader(dialect), type_).value)
    return None


def _float_of(written: str) -> object:
    if "." not in written:
        return int(written)
    if len(written) > _FLOAT_CHARACTERS_MAX:
        raise ValueError(written)
    return float(written) + 0.0  # a decimal has no -0


def _exact_of(written: str) -> object:
    return Decimal(written) if "." in written else int(written)


def _bool_of(written: str) -> object:
    return written.lower() == "true"


def _text_reader(dialect: str) -> Callable[[str], str]:
    """Return what reads a text in quotes."""
    tokenize = Dialect.get_or_raise(dialect).tokenize

    def text_of(written: str) -> str:
        inner = written[1:-1]
        if "\\" not in inner and "'" not in inner and '"' not in inner:
            return inner
        (token,) = tokenize(written)  # ValueError: it is more than one text
        if token.token_type != TokenType.STRING:
            raise ValueError(written)
        return str(token.text)

    return text_of


class _Times:
    """Reads texts as dates or times, each text once: many rows have the same."""

    def __init__(self, text_of: Callable[[str], str], type_: ColumnType) -> None:
        self._text_of, self._type = text_of, type_.not_null()
        self._known: dict[str, object] = {}

    def value(self, written: str) -> object:
        """Return the time; raises ExpressionError for a text that is none."""
        if written not in self._known:
            constant = lit(self._text_of(written))
            typed = as_type(Value(constant, constant.type), self._type).expr
            assert isinstance(typed, LiteralValue), "a constant text becomes a constant"
            self._known[written] = typed.value
        return self._known[written]
