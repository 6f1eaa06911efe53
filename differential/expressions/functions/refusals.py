"""Refuses what Python would do with an expression by itself, and says what to write instead.

`if`, `not`, `in`, `len()`, `int()` and f-strings need the value of an object at once. An expression has a
value in every row, and none before there are rows. Without a refusal some of these would be wrong and raise
no error: the f-string would hold the text "col.x". (`col.x is None`, which no class can intercept, is False.)
"""

from __future__ import annotations

from typing import Final, NoReturn, Protocol, Self

import numpy as np

from differential.errors import ExpressionError
from timely.user_code.call_site import call_site

__all__ = ["ExprRefusals", "ExprText", "check_no_bool"]

_LOGIC: Final = (
    "Write & for and, | for or, ~ for not, with parentheses: (col.a > 1) & (col.b < 2). "
    "For if and else write when(…).then(…).otherwise(…)"
)
_EQUALITY: Final = ", for `in` col.x.is_in([1, 2]), for a == b == c (a == b) & (b == c)"
_ORDER: Final = (
    ", for a < b < c (a < b) & (b < c), for max() and min() dd.max_of(…) and dd.min_of(…), for sorted() "
    "order_by(…) of a collection"
)


class _HasText(Protocol):
    def describe(self) -> str: ...
    def _receiver(self) -> str: ...


class ExprText(str):
    """The result of `str(expression)`: a text to print, which queries refuse as a constant."""

    __slots__ = ("_receiver",)
    _receiver: str

    @classmethod
    def of(cls, written: str, receiver: str) -> Self:
        """Return the text of the expression `written`, which is `receiver` before the dot of a method."""
        text = cls(written)
        text._receiver = receiver
        return text

    def __add__(self, other: object) -> NoReturn:
        self.refuse()

    def __radd__(self, other: object) -> NoReturn:
        self.refuse()

    def __format__(self, spec: str) -> NoReturn:
        self.refuse()

    def refuse(self) -> NoReturn:
        """Raise ExpressionError: the text of an expression was about to become part of a query."""
        raise ExpressionError(
            f"str({self[:]}) ({call_site()}) is a text, and not the values of the expression.\n"
            f"  Their texts are {self._receiver}.cast('string'); to print the expression, write repr(x)."
        )


class ExprRefusals:
    """The special methods that Python looks for; base of expressions."""

    __slots__ = ()

    def __bool__(self: _HasText) -> NoReturn:
        op = getattr(self, "op", "")
        more = _EQUALITY if op in ("==", "!=") else _ORDER if op in ("<", "<=", ">", ">=") else ""
        raise ExpressionError(
            f"{self.describe()} ({call_site()}) has a value in every row, so it is neither true nor false.\n"
            f"  {_LOGIC}{more}."
        )

    def __iter__(self: _HasText) -> NoReturn:
        raise ExpressionError(
            f"{self.describe()} ({call_site()}) is an expression; it cannot be iterated over.\n"
            "  A row for each element of a list is explode('x', type) of a collection; an element is "
            "col.x.list.get(0)."
        )

    def __contains__(self: _HasText, value: object) -> NoReturn:
        shown = value.describe() if isinstance(value, ExprRefusals) else repr(value)
        raise ExpressionError(
            f"{shown} in {self.describe()} ({call_site()}) has a value in every row, and Python wants one.\n"
            f"  Of a list write {self._receiver()}.list.has({shown}), of a text "
            f"{self._receiver()}.str.contains({shown})."
        )

    def __len__(self: _HasText) -> NoReturn:
        receiver = self._receiver()
        raise ExpressionError(
            f"len({self.describe()}) ({call_site()}) has a value in every row, and Python wants one.\n"
            f"  Of a text write {receiver}.str.length(), of a list or map {receiver}.list.size()."
        )

    def __int__(self: _HasText) -> NoReturn:
        _refuse_number(self, "int()", "int")

    def __index__(self: _HasText) -> int:  # noqa: PLE0305  # it never returns
        _refuse_number(self, "an index", "int")

    def __bytes__(self: _HasText) -> NoReturn:
        raise ExpressionError(
            f"bytes({self.describe()}) ({call_site()}) has a value in every row, and Python wants one.\n"
            f"  Write {self._receiver()}.cast('bytes')."
        )

    def __float__(self: _HasText) -> NoReturn:
        _refuse_number(self, "float()", "float")

    def __complex__(self: _HasText) -> NoReturn:
        _refuse_number(self, "complex()", "float")

    def __format__(self: _HasText, spec: str) -> NoReturn:
        written = self.describe()
        raise ExpressionError(
            f"{written} ({call_site()}) has a value in every row, which an f-string cannot hold.\n"
            f"  Write dd.concat({written}, '…') of a text, or "
            f"dd.concat({self._receiver()}.cast('string'), '…'); to print the expression itself, {{x!r}}."
        )

    def __str__(self: _HasText) -> str:
        return ExprText.of(self.describe(), self._receiver())

    def __xor__(self: _HasText, other: object) -> NoReturn:
        _refuse_operator(self.describe(), "^", "x != y of two conditions, or x ** y for a power")

    __rxor__ = __xor__

    def __divmod__(self: _HasText, other: object) -> NoReturn:
        _refuse_operator(self.describe(), "divmod", "two columns: x // y and x % y")

    __rdivmod__ = __divmod__

    def describe(self) -> str:
        """Return the expression as it would be written."""
        raise NotImplementedError

    def _receiver(self) -> str:
        """Return the expression as it stands before the dot of a method."""
        raise NotImplementedError


def check_no_bool(call: str, value: object) -> None:
    """Raise ExpressionError for True or False where `call` takes a condition or a column.

    They mostly come from `col.x is None` or `col.x in {1, 2}`, which Python answers by itself.
    """
    if isinstance(value, bool | np.bool_):
        raise ExpressionError(
            f"{call} ({call_site()}) is given {value!s}, which is the same for every row. Python makes it of "
            "`col.x is None`, `col.x in {1, 2}`, `isinstance(col.x, int)` and of `rows.filter == 1`, where "
            "rows.filter is a method.\n"
            "  Write col.x.is_null(), col.x.is_not_null(), col.x.is_in([1, 2]) or rows['filter'] == 1; if it "
            f"is meant, lit({value!s})."
        )


def _refuse_number(expr: _HasText, call: str, type_: str) -> NoReturn:
    written = expr._receiver()
    raise ExpressionError(
        f"{expr.describe()} ({call_site()}) has a value in every row, and {call} wants one.\n"
        f"  Write {written}.cast('{type_}'). Functions as those of math are methods: {written}.sqrt(), "
        f"{written}.floor(); what there is none for is map(function, schema) of a collection."
    )


def _refuse_operator(written: str, operator: str, instead: str) -> NoReturn:
    raise ExpressionError(f"{written} ({call_site()}) has no {operator}. Write {instead}.")
