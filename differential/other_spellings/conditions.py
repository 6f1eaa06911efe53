"""Write a condition of SQL as an expression: "x > 1 and s like 'a%'" as (col.x > 1) & col.s.like('a%').

Covers comparisons, arithmetic, IS NULL, IN, BETWEEN, LIKE, RLIKE, NOT, AND and OR. Functions, casts and
subqueries are left to the user.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

__all__ = ["condition_of", "written_condition"]

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<text>'(?:[^']|'')*'|\"[^\"]*\")|(?P<number>\d+(?:\.\d+)?)(?![\w.])|(?P<quoted>`[^`]+`)"
    r"|(?P<word>[A-Za-z_]\w*)|(?P<sign><=|>=|<>|!=|==|//|[-+*/%(),<>=]))"
)
_KEYWORDS: Final = frozenset(
    ("and", "or", "not", "is", "null", "in", "between", "like", "rlike", "true", "false")
)
_COMPARISONS: Final = {
    **{sign: sign for sign in ("<", "<=", ">", ">=", "==", "!=")},
    "=": "==",
    "<>": "!=",
}

_COMPARISON, _OR, _AND, _SUM, _PRODUCT, _UNARY, _ATOM = range(7)
"""How strongly the parts of an expression of Python bind."""


@dataclass(frozen=True)
class _Code:
    """A part of an expression, as code."""

    code: str
    binds: int = _ATOM
    is_constant: bool = False

    def within(self, surrounding: int) -> str:
        """Return the code, in parentheses if it binds less strongly than its `surrounding`."""
        return f"({self.code})" if self.binds < surrounding else self.code

    def receiver(self) -> str:
        """Return the code as it stands before the dot of a method."""
        if self.is_constant:
            raise _UnknownError
        return self.within(_ATOM)


class _UnknownError(Exception):
    """The condition has something that this module does not translate."""


def written_condition(form: str, text: str) -> str:
    """Return the advice for a condition that a user has written as a text; `form` is "filter({})"."""
    condition = condition_of(text)
    if condition is not None:
        return f"Write {form.format(condition)}"
    example = form.format("(col.x > 1) & (col.key == 'a')")
    return f"Write it with columns, as in {example}"


def condition_of(text: str) -> str | None:
    """Return the condition `text` as code of an expression; None if it is beyond this module."""
    try:
        part = _Reader(text).condition()
    except (_UnknownError, RecursionError):
        return None
    return None if part.is_constant else part.code


class _Reader:
    """Reads a condition from left to right."""

    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, str]] = []
        at, text = 0, text.rstrip()
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                raise _UnknownError
            kind = str(match.lastgroup)
            token = match[kind]
            is_keyword = kind == "word" and token.lower() in _KEYWORDS
            self._tokens.append(("sign", token.lower()) if is_keyword else (kind, token))
            at = match.end()
        self._at = 0

    def condition(self) -> _Code:
        """Return the whole text as one condition."""
        part = self._either()
        if self._at < len(self._tokens):
            raise _UnknownError
        return part

    def _takes(self, *signs: str) -> str | None:
        """Return the next token and go behind it, if it is one of `signs`; else None."""
        if self._at < len(self._tokens):
            kind, token = self._tokens[self._at]
            if kind == "sign" and token in signs:
                self._at += 1
                return token
        return None

    def _expects(self, sign: str) -> None:
        if self._takes(sign) is None:
            raise _UnknownError

    def _joined(self, operand: Callable[[], _Code], word: str, operator: str, binds: int) -> _Code:
        parts = [operand()]
        while self._takes(word):
            parts.append(operand())
        if len(parts) == 1:
            return parts[0]
        if any(part.is_constant for part in parts):
            raise _UnknownError
        return _Code(f" {operator} ".join(part.within(binds) for part in parts), binds)

    def _either(self) -> _Code:
        return self._joined(self._both, "or", "|", _OR)

    def _both(self) -> _Code:
        return self._joined(self._negated, "and", "&", _AND)

    def _negated(self) -> _Code:
        return _not(self._negated()) if self._takes("not") else self._compared()

    def _compared(self) -> _Code:
        left = self._sum()
        negates = self._takes("not") is not None
        if self._takes("between"):
            low = self._sum().code
            self._expects("and")
            part = _Code(f"{left.receiver()}.between({low}, {self._sum().code})")
        elif self._takes("in"):
            part = _Code(f"{left.receiver()}.is_in([{', '.join(self._listed())}])")
        elif (method := self._takes("like", "rlike")) is not None:
            part = _Code(f"{left.receiver()}.{method}({self._sum().code})")
        elif negates:
            raise _UnknownError
        elif self._takes("is"):
            negates = self._takes("not") is not None
            self._expects("null")
            return _Code(f"{left.receiver()}.is_{'not_' * negates}null()")
        else:
            return self._chained(left)
        return _not(part) if negates else part

    def _chained(self, left: _Code) -> _Code:
        comparisons: list[_Code] = []
        while (sign := self._takes(*_COMPARISONS)) is not None:
            right = self._sum()
            if left.is_constant and right.is_constant:
                raise _UnknownError
            code = f"{left.within(_OR)} {_COMPARISONS[sign]} {right.within(_OR)}"
            comparisons.append(_Code(code, _COMPARISON))
            left = right
        if len(comparisons) < 2:
            return comparisons[0] if comparisons else left
        return _Code(" & ".join(part.within(_AND) for part in comparisons), _AND)

    def _listed(self) -> list[str]:
        self._expects("(")
        values = [self._sum()]
        while self._takes(","):
            values.append(self._sum())
        self._expects(")")
        if not all(value.is_constant for value in values):
            raise _UnknownError
        return [value.code for value in values]

    def _sum(self) -> _Code:
        return self._computed(self._product, ("+", "-"), _SUM)

    def _product(self) -> _Code:
        return self._computed(self._value, ("*", "/", "//", "%"), _PRODUCT)

    def _computed(self, operand: Callable[[], _Code], signs: tuple[str, ...], binds: int) -> _Code:
        part = operand()
        while (sign := self._takes(*signs)) is not None:
            right = operand()
            code = f"{part.within(binds)} {sign} {right.within(binds + 1)}"
            part = _Code(code, binds, part.is_constant and right.is_constant)
        return part

    def _value(self) -> _Code:
        if self._takes("-"):
            part = self._value()
            return _Code(f"-{part.within(_UNARY)}", _UNARY, part.is_constant)
        if self._takes("("):
            part = self._either()
            self._expects(")")
            return part
        if (truth := self._takes("true", "false")) is not None:
            return _Code(truth.capitalize(), is_constant=True)
        if self._at == len(self._tokens):
            raise _UnknownError
        kind, token = self._tokens[self._at]
        self._at += 1
        if kind == "number":
            return _Code(token, is_constant=True)
        if kind == "text":
            return _Code(
                repr(token[1:-1].replace("''", "'") if token[0] == "'" else token[1:-1]), is_constant=True
            )
        if kind == "quoted":
            return _Code(f"col({token[1:-1]!r})")
        if kind == "word":
            return _Code(f"col.{token}")
        raise _UnknownError


def _not(part: _Code) -> _Code:
    if part.is_constant:
        raise _UnknownError
    return _Code(f"~{part.within(_UNARY)}", _UNARY)
