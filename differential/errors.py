"""Errors of queries over collections, beyond those of `progress.errors`.

    TimelyError
    ├─ MisuseError
    │  ├─ SchemaError           data do not fit the declared columns
    │  ├─ ExpressionError       an expression does not fit the columns that it is applied to
    │  ├─ RowError              an expression has no value for one row, as in a division by zero
    │  ├─ MultiplicityOverflowError   the multiplicity of a row leaves 64 bits
    │  ├─ SumOverflowError      a sum or count of a group leaves 64 bits, one of decimals its digits
    │  ├─ NotEmptyError         a claim of assert_empty or assert_equal does not hold
    │  ├─ RuleError             a rule of Datalog cannot be read, does not fit its relations, or is unsafe
    │  ├─ SqlError              a SQL text cannot be read, or has no meaning
    │  └─ UserFunctionError     a Python function passed to map, flat_map, map_batches or reduce failed
    └─ InternalError
       ├─ SymbolCollisionError  two different values have the same 64-bit word
       └─ UnknownSymbolError    a word arrived before the value that it stands for

Users import all of them from `differential`, and tracebacks show that name: `differential.SchemaError`.

Every message says which input, column, row or line of the user's program it is about, and how to mend it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from timely.errors import InternalError, MisuseError, import_from

__all__ = [
    "ONE_COLUMN",
    "ExpressionError",
    "FailingRows",
    "MultiplicityOverflowError",
    "NotEmptyError",
    "RowError",
    "RuleError",
    "SchemaError",
    "SqlError",
    "SumOverflowError",
    "SymbolCollisionError",
    "UnknownSymbolError",
    "UserFunctionError",
    "no_columns",
    "shown",
]

ONE_COLUMN: Final = "'one: int' for the columns, and rows (1,)"
"""Text of messages: what to write in place of a schema without columns."""

_SHOWN_CHARACTERS_MAX = 80

_Indices: TypeAlias = npt.NDArray[np.int64]


class SchemaError(MisuseError):
    """Data do not fit the declared columns, or the declaration itself makes no sense."""


class ExpressionError(MisuseError):
    """An expression names a column that is not there, or applies an operator to types it does not take."""


class RowError(MisuseError):
    """An expression has no value for one row: an integer divided by zero, a result or a cast out of range.

    `failing`: what is known beside the text, for code that tries the other rows.
    """

    failing: FailingRows | None = None


class FailingRows(NamedTuple):
    """The rows of a batch for which an expression has no value. Functions take indices of rows, int64[k].

    Attributes:
        rows: bool[n], true where a row fails. n is the number of rows passed to the expression.
        expression: the expression as text, without the line where it is written.
        why: what is wrong with each row, such as "divides by zero"; k texts.
        show: each row as text, first the columns that the expression reads; k texts.
        words: all words of the rows, int64[words, k]: rows that look alike may be different ones.
        line: the line of the user's function that failed; None: there is no such function.
    """

    rows: npt.NDArray[np.bool_]
    expression: str
    why: Callable[[_Indices], Sequence[str]]
    show: Callable[[_Indices], Sequence[str]]
    words: Callable[[_Indices], npt.NDArray[np.int64]]
    line: Callable[[_Indices], Sequence[str]] | None = None


class MultiplicityOverflowError(MisuseError):
    """The multiplicity of a row leaves 64 bits; the operator's state is of no use after it."""


class SumOverflowError(MisuseError):
    """A sum of a group leaves 64 bits, or one of decimals its digits; a count that does ends the dataflow."""


class NotEmptyError(MisuseError):
    """A collection that was claimed to be empty has rows, or two that were claimed to be equal differ."""


class RuleError(MisuseError):
    """A rule of Datalog cannot be read, does not fit its relations, is unsafe, or negates a dependent."""


class SqlError(MisuseError):
    """A SQL text, or the plan of a function of DataFrames, cannot be read, names what is not there, or says
    what is not supported. The message is one line, and begins with the place: file, line and column.
    """


class UserFunctionError(MisuseError):
    """A Python function of the user raised, or returned what its declared columns cannot hold.

    The user's own exception, if there was one, is the `__cause__`. `row`: the index of the record among those
    that the function was called for, if it is called record by record; -1: unknown. `failing`: as of a
    RowError, if groups on which a function failed come as rows.
    """

    row: int = -1
    failing: FailingRows | None = None


class SymbolCollisionError(InternalError):
    """Two different values have the same 64-bit word, so that rows holding them cannot be told apart."""


class UnknownSymbolError(InternalError):
    """A word stands for a value that this worker does not have: an entry was lost on its way here."""


import_from("differential", [globals()[name] for name in __all__ if name.endswith("Error")])


def shown(value: object) -> str:
    """Return `repr(value)`, cut to a length that leaves an error message readable.

    `repr` of a value is code of the user and may raise. Python refuses to print a whole number of thousands
    of digits.
    """
    try:
        text = repr(value)
    except RecursionError:
        return f"a {type(value).__name__} that is nested too deep to be shown"
    except Exception as error:
        if isinstance(value, int):
            return f"a whole number of {int.bit_length(value):,} bits"
        return f"a {type(value).__name__} whose __repr__ raised {type(error).__name__}"
    if len(text) <= _SHOWN_CHARACTERS_MAX:
        return text
    return text[: _SHOWN_CHARACTERS_MAX - 1] + "…"


def no_columns(what: str, write: str) -> SchemaError:
    """Return the error that `what` would be a collection without columns; it says what to write instead."""
    return SchemaError(
        f"{what}: a collection has one column at least. Where only the number of rows matters, give them all "
        f"the same one: write {write}"
    )
