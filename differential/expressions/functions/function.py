"""A function over columns as data: its name, its parameters, its result's type, how it is computed.

`types.py` reads here which operands fit, `text.py` how the function is written, `running.py` how to compute
it, `signatures.py` which functions and methods to make of it, and the documents what other libraries call it.
A function is computed in one of four ways:

    numpy     on whole columns in natural form (`compiled.py`); returns values, and where there are any
    arrow     on whole Arrow arrays; if the result is null where no operand is, there is no value. With one
              column of symbols it runs on the different values only
    python    on each different value of its one column; None is no value
    combined  on each different combination of the values of its columns; None is null, `LACKS` is no value

A function of texts that takes nested values, too, has two of them: the fourth is for nested values.

Without a value the result is null; but if the function has a `failure`, the row fails with a RowError that
gives it as the reason. Parameters that must be constants are passed as Python values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import pyarrow as pa

from differential.columns.column_types import Bools, ColumnType, Floats, Int64s
from differential.columns.foreign.type_names import Kind
from timely.wire.arrow import int64_array, text_array

__all__ = [
    "ANY_KIND",
    "LACKS",
    "NESTED_KINDS",
    "NUMBERS",
    "TIMES",
    "Argument",
    "Arrow",
    "Combined",
    "Function",
    "Gives",
    "Numpy",
    "Param",
    "Python",
    "Typed",
    "Values",
    "always",
]

Values: TypeAlias = Int64s | Floats | Bools
Argument: TypeAlias = object
"""An array (numpy's or Arrow's), or the Python value of a constant."""

Numpy: TypeAlias = Callable[
    [Sequence[Values], Sequence[object], Sequence[ColumnType]], tuple[Values, Bools | None]
]
"""From columns, constants and the types of the columns to values, and where there are any (None: everywhere).
"""

Arrow: TypeAlias = Callable[[Sequence[pa.Array], Sequence[object]], pa.Array]
"""From columns and constants to a column."""

Python: TypeAlias = Callable[[object, Sequence[object]], object]
"""From a value and constants to a value."""

Combined: TypeAlias = Callable[[Sequence[object], Sequence[object], Sequence[ColumnType]], object]
"""From the values of a row, constants, and the types of the columns to a value."""

LACKS: Final = object()
"""What a `Combined` returns where it has no value; so null can be a value that it has."""

Typed: TypeAlias = Callable[[Sequence[ColumnType], Sequence[object]], ColumnType]
"""From the types of the operands, and for each its value if it is a constant, else None, to the type of the
result. ValueError says why operands do not fit together.
"""

Gives: TypeAlias = Callable[[Sequence[ColumnType]], ColumnType]
"""From the types of the operands to that of the result, nulls aside."""

NUMBERS: Final[tuple[Kind, ...]] = ("int", "float", "decimal")
TIMES: Final[tuple[Kind, ...]] = ("date", "timestamp")
NESTED_KINDS: Final[tuple[Kind, ...]] = ("array", "struct", "map")
ANY_KIND: Final[tuple[Kind, ...]] = (*NUMBERS, "bool", *TIMES, "string", "bytes", "any", *NESTED_KINDS)

_ONE: Final[dict[Kind, pa.Array]] = {
    "timestamp": pa.Array.from_buffers(pa.timestamp("us", tz="UTC"), 1, int64_array([0]).buffers()),
    "string": text_array([""]),
}
"""Operands with which `refusal` tries a function, to see if its constants are valid."""


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter: its name, the kinds that an operand may have, and whether it must be a constant.

    `choices`: the constants that are allowed. `is_optional`: the operand may be left out, and so may all
    operands behind it.
    """

    name: str
    takes: tuple[Kind, ...]
    is_constant: bool = False
    choices: tuple[str, ...] = ()
    is_optional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A function over columns; see the module's docstring.

    `accessor`: the function is written `x.str.name(…)`; "" for `x.name(…)`, None for `name(x, …)`. `says`:
    its docstring. `calls`: the names of the functions in `calls/catalogued.py` that write it; None: one with
    its own name. `usage`: hint of such a function for arguments that it does not take. `many`: the last
    parameter may be repeated. `may_lack`: there may be no value where all operands have one; the result is
    then null, unless there is a `failure`. `skips_nulls`: a null operand does not make the result null.
    `of_different`: an Arrow function so slow that it runs on the different values of its one column only.
    `check` raises ValueError for constants that make no sense. `gives_by`: the type of the result, if
    constants decide of it, too.

    `typed`, where it is not None, decides the type in place of `gives` and `may_lack`, nulls in operands
    aside. `fails_on`: the kinds of the first operand with which there is a `failure`; with others the result
    is null.
    """

    name: str
    family: str
    accessor: str | None
    params: tuple[Param, ...]
    gives: Gives
    says: str
    spark: str = ""
    polars: str = ""
    calls: tuple[str, ...] | None = None
    usage: str = ""
    numpy: Numpy | None = None
    arrow: Arrow | None = None
    python: Python | None = None
    combined: Combined | None = None
    typed: Typed | None = None
    fails_on: tuple[Kind, ...] = ANY_KIND
    many: bool = False
    may_lack: bool = False
    failure: str | None = None
    skips_nulls: bool = False
    of_different: bool = False
    check: Callable[[Sequence[object]], None] | None = None
    gives_by: Callable[[Sequence[ColumnType], Sequence[object]], ColumnType] | None = None

    def __post_init__(self) -> None:
        ways = sum(run is not None for run in (self.numpy, self.arrow, self.python))
        assert ways == 1 or (not ways and self.combined is not None), self.name
        assert self.failure is None or self.may_lack, self.name

    def refusal(self, constants: Sequence[object]) -> str | None:
        """Return why the function cannot be computed with these constants; None if it can.

        A reason is, for instance, a pattern that is no regular expression.
        """
        if not constants:
            return None
        try:
            if self.check is not None:
                self.check(constants)
            if self.arrow is not None and self.typed is None:
                columns = [param for param in self.params if not param.is_constant]
                self.arrow([_ONE.get(param.takes[-1], _ONE["string"]) for param in columns], constants)
        except ValueError as error:  # Arrow's errors are ValueErrors, too
            return str(error).partition("\n")[0]
        return None

    def result(self, types: Sequence[ColumnType], constants: Sequence[object]) -> ColumnType:
        """Return the type of the result for operands of these types, nulls aside."""
        type_ = self.gives(types) if self.gives_by is None else self.gives_by(types, constants)
        return type_.not_null()

    @property
    def can_fail(self) -> bool:
        """True if there may be rows for which it has no value, and which therefore fail."""
        return self.failure is not None

    def failure_of(self, types: Sequence[ColumnType]) -> str | None:
        """Return why a row without a value fails, for operands of these types; None if the result is null."""
        return self.failure if not types or types[0].kind in self.fails_on else None

    def is_combined(self, types: Sequence[ColumnType]) -> bool:
        """True if it is computed on combinations of values, with operands of these types."""
        others = (self.numpy, self.arrow, self.python)
        return self.combined is not None and (
            all(run is None for run in others) or any(type_.is_nested for type_ in types)
        )

    def param(self, index: int) -> Param | None:
        """Return the parameter of operand `index`; None if the function takes fewer operands."""
        if index < len(self.params):
            return self.params[index]
        return self.params[-1] if self.many else None

    @property
    def called(self) -> tuple[str, ...]:
        """The names of the functions in `calls/catalogued.py` that write it."""
        return (self.name,) if self.calls is None else self.calls

    @property
    def operands_min(self) -> int:
        """The least number of operands."""
        return sum(not param.is_optional for param in self.params)


def always(type_: ColumnType) -> Gives:
    """Return the same type whatever the operands are."""
    return lambda types: type_
