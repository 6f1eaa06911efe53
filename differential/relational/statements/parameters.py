"""Values in place of `:name`, as constants of the tree: their text is never read as SQL."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from decimal import Decimal
from itertools import pairwise

from sqlglot import TokenType, exp

from ...errors import SqlError
from ..reading.texts import SqlText
from .scripts import tokens_of

__all__ = ["bind", "written_out"]

_INTEGER_MAX = 1 << 63
_NAMED = (exp.Table, exp.Column, exp.Dot, exp.ColumnDef)
"""Nodes whose parts are names."""


def bind(
    text: SqlText, tree: exp.Expression, parameters: Mapping[str, object], used: set[str]
) -> exp.Expression:
    """Return a statement with constants in place of its parameters; note the names in `used`.

    Raises SqlError for a parameter without a value, or with one that no constant has.
    """
    for node in list(tree.find_all(exp.Placeholder, exp.Parameter)):
        name = node.name or (node.this.name if isinstance(node.this, exp.Expression) else "")
        if name in ("", "?"):
            raise _error(text, "?", "parameters have names: write :name, and pass name=…")
        if name not in parameters:
            there = ", ".join(parameters) or "none"
            message = f"there is no value for the parameter :{name}; there are {there}: pass {name}=…"
            raise _error(text, name, message)
        used.add(name)
        value = parameters[name]
        if isinstance(value, list | tuple) and isinstance(node.parent, exp.In):
            listed = [_constant(text, name, each) for each in value]
            if not listed:
                raise _error(text, name, f"the parameter :{name} is an empty list")
            others = [each for each in node.parent.expressions if each is not node]
            if node.arg_key == "field":  # IN :name, without brackets
                node.parent.set("field", None)
            node.parent.set("expressions", [*others, *listed])
            continue
        if node.arg_key in ("alias", "db", "catalog") or isinstance(node.parent, _NAMED):
            raise _error(text, name, f"the parameter :{name} stands where only a name can")
        constant = _constant(text, name, value)
        if node is tree:
            return constant
        node.replace(constant)
    return tree


def written_out(text: SqlText, bound: exp.Expression, parameters: Mapping[str, object]) -> str:
    """Return a statement as a text that has constants in place of its parameters, for a note. All else stays
    as it is written, since sqlglot does not write everything that it reads.

    `bound` is the tree that `bind` has made of it. Raises SqlError if the text is no longer the same.
    """
    tokens = tokens_of(text.text, text.dialect)
    written, done = "", 0
    for before, (sign, token) in zip([None, *tokens], pairwise(tokens), strict=False):
        is_sign = sign.token_type in (TokenType.COLON, TokenType.PARAMETER) and sign.end + 1 == token.start
        if not is_sign or token.token_type == TokenType.STRING or token.text not in parameters:
            continue
        value = parameters[token.text]
        values = value if isinstance(value, list | tuple) else [value]
        constants = [_constant(text, token.text, each).sql(dialect=text.dialect) for each in values]
        listed = ", ".join(constants)
        bare = isinstance(value, list | tuple) and before is not None and before.text.upper() == "IN"
        written += text.text[done : sign.start] + (f"({listed})" if bare else listed)
        done = token.end + 1
    if not done:
        return text.text
    written += text.text[done:]
    again = SqlText(written, text.dialect, text.name).statement()
    if again.sql(dialect=text.dialect) != bound.sql(dialect=text.dialect):
        raise text.error_of_place(0, "a view is stored as a text: write its parameters as constants here")
    return written


def _constant(text: SqlText, name: str, value: object) -> exp.Expression:
    if value is None:
        return exp.Null()
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, int) and -_INTEGER_MAX <= value < _INTEGER_MAX:
        number = exp.Literal.number(abs(value))
        return number if value >= 0 else exp.Paren(this=exp.Neg(this=number))
    if isinstance(value, str):
        if any("\ud800" <= letter <= "\udfff" for letter in value):
            raise _error(text, name, f"the parameter :{name} has a surrogate, which is no character")
        return exp.Literal.string(value)
    if isinstance(value, float):
        return _cast(repr(value), "DOUBLE")
    if isinstance(value, Decimal) and value.is_finite():
        _, digits, exponent = value.as_tuple()
        scale = max(0, -int(exponent))
        size = max(len(digits) + max(0, int(exponent)), scale, 1)
        return _cast(f"{value:f}", f"DECIMAL({size}, {scale})")
    if isinstance(value, dt.datetime):
        moved = value if value.tzinfo is None else value.astimezone(dt.UTC).replace(tzinfo=None)
        return _cast(moved.isoformat(" "), "TIMESTAMP")
    if isinstance(value, dt.date):
        return _cast(value.isoformat(), "DATE")
    raise _error(
        text,
        name,
        f"the parameter :{name} is a {type(value).__name__} that no constant has: pass None, a bool, a whole "
        "number of 64 bits, a float, a Decimal, a text, a date or a datetime; or a list of them behind IN",
    )


def _cast(written: str, type_: str) -> exp.Expression:
    return exp.Cast(this=exp.Literal.string(written), to=exp.DataType.build(type_))


def _error(text: SqlText, name: str, message: str) -> SqlError:
    """Return an error at a parameter. sqlglot does not remember where one stands: at its first name it is."""
    place = re.search(rf"[:$@]{re.escape(name)}\b" if name != "?" else r"\?|%s", text.text)
    return text.error_of_place(0 if place is None else place.start(), message)
