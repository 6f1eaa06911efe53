"""Which types can a column have, and how many words does a value of each take?

    type        one value is                      its word                           ordered
    int         -2^63 … 2^63-1                    itself                             yes
    float       IEEE double                       integer order = float order        yes
    bool        False, True                       0, 1                               yes
    timestamp   microseconds since 1970 in UTC    itself                             yes
    date        a day                             days since 1970                    yes
    decimal     p digits, s behind the point      value · 10^s; p ≤ 18               yes
    string      text                              a symbol (see `symbols/`)          no
    bytes       binary                            a symbol                           no
    any         any msgpack value                 a symbol                           no

A *nullable* column (`int?`) takes two words: a flag (0 for null, 1 for a value), then the value's word (0 for
null). So nulls are equal to one another as rows, and sort before every value. "Ordered" says whether the
order of words is the order of values. A symbol's word is a hash: its order is arbitrary, though the same on
every worker, so code that compares strings must look up their values. To learn what a kind can do, read the
properties of its type (`is_ordered`, `has_order`, `is_whole`, `is_number`) instead of keeping lists of kinds.

A type is written as a `ColumnType`, a Python type (`int`, `str`, `datetime`, `int | None`), a word ("int?",
"decimal(10, 2)"), or a type of Arrow, Spark, Polars, numpy or pandas, or its name ("bigint").
"""

from __future__ import annotations

import datetime as dt
import types
import typing
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from differential.columns.foreign.type_names import Kind, Named, kind_of_arrow, kind_of_name, type_text
from differential.errors import SchemaError, shown

__all__ = [
    "ANY_METADATA",
    "DECIMAL_DIGITS_MAX",
    "ROW_WORDS_MAX",
    "Bools",
    "ColumnType",
    "Floats",
    "Int64s",
    "Kind",
    "TypeSpec",
    "any_value",
    "as_column_type",
    "binary",
    "boolean",
    "date",
    "decimal",
    "floating",
    "integer",
    "string",
    "timestamp",
]

Int64s: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Bools: TypeAlias = npt.NDArray[np.bool_]

ROW_WORDS_MAX: Final = 4_096
"""Most words of a row, time and difference included.

A receiver refuses a batch with more as malformed, and that would end the worker. So no schema may have more,
and the user gets an error at the line that declares it.
"""

DECIMAL_DIGITS_MAX: Final = 18
"""Most digits of a decimal: any number of 18 digits fits into a word."""

# An Arrow field of binary values with this metadata holds packed values of an `any` column.
ANY_METADATA: Final = {b"differential.type": b"any"}


@dataclass(frozen=True, slots=True)
class ColumnType:
    """The type of a column: a kind, and whether the column may hold nulls.

    A decimal has `precision` digits, `scale` of them behind the point; elsewhere both are 0.
    """

    kind: Kind
    nullable: bool = False
    precision: int = 0
    scale: int = 0

    def __post_init__(self) -> None:
        if self.kind == "decimal" and not 0 <= self.scale <= self.precision <= DECIMAL_DIGITS_MAX:
            raise SchemaError(
                f"decimal({self.precision}, {self.scale}): at most {DECIMAL_DIGITS_MAX} digits are possible, "
                "and at most all of them behind the point. Use fewer, float, or store it as a string"
            )
        assert (self.kind == "decimal") == (self.precision > 0), self.kind

    @property
    def words(self) -> int:
        """How many words one value takes."""
        return 2 if self.nullable else 1

    @property
    def is_symbol(self) -> bool:
        """True if its word is a hash, which a `SymbolTable` resolves."""
        return self.kind in ("string", "bytes", "any")

    @property
    def is_ordered(self) -> bool:
        """True if the order of words is the order of values."""
        return not self.is_symbol

    @property
    def has_order(self) -> bool:
        """True if its values have an order, be it that of the words or another: all kinds but `any`."""
        return self.kind != "any"

    @property
    def is_number(self) -> bool:
        """True if arithmetic is defined on it."""
        return self.kind in ("int", "float", "decimal")

    @property
    def is_whole(self) -> bool:
        """True if its words are whole numbers whose sum is the word of the sum (a bool counts as 0 or 1)."""
        return self.kind in ("int", "decimal", "bool")

    def or_null(self, nullable: bool = True) -> ColumnType:
        """Return the same kind with nulls allowed (or, with `nullable=False`, the type as it is)."""
        return replace(self, nullable=True) if nullable and not self.nullable else self

    def not_null(self) -> ColumnType:
        """Return the same kind without nulls."""
        return replace(self, nullable=False) if self.nullable else self

    def to_arrow(self) -> pa.DataType:
        """Return the Arrow type in which `Schema.decode` returns such a column."""
        if self.kind == "decimal":
            return pa.decimal128(self.precision, self.scale)
        return _ARROW[self.kind]

    def __str__(self) -> str:
        name = f"decimal({self.precision}, {self.scale})" if self.kind == "decimal" else self.kind
        return name + "?" if self.nullable else name


integer: Final = ColumnType("int")
floating: Final = ColumnType("float")
boolean: Final = ColumnType("bool")
timestamp: Final = ColumnType("timestamp")
date: Final = ColumnType("date")
string: Final = ColumnType("string")
binary: Final = ColumnType("bytes")
any_value: Final = ColumnType("any")


def decimal(precision: int, scale: int = 0) -> ColumnType:
    """Return the type of exact numbers of `precision` digits (at most 18), `scale` of them behind the point.

    Raises SchemaError for other numbers of digits.
    """
    if precision < 1:
        raise SchemaError(f"decimal({precision}, {scale}): a decimal has at least one digit")
    return ColumnType("decimal", False, precision, scale)


_ARROW: Final[dict[Kind, pa.DataType]] = {
    "int": pa.int64(),
    "float": pa.float64(),
    "bool": pa.bool_(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "date": pa.date32(),
    "string": pa.string(),
    "bytes": pa.binary(),
    "any": pa.binary(),
}

_PYTHON: Final[dict[object, ColumnType]] = {
    int: integer,
    float: floating,
    bool: boolean,
    str: string,
    bytes: binary,
    dt.datetime: timestamp,
    dt.date: date,
    object: any_value,
    np.int64: integer,
    np.float64: floating,
    np.bool_: boolean,
}

TypeSpec: TypeAlias = object
"""A type as users may write it: `dd.string`, `int`, `"int?"`, `int | None`, `pa.int64()`, `"bigint"`, and
dtypes of numpy, pandas and Polars.
"""


def as_column_type(spec: TypeSpec) -> ColumnType:
    """Return the column type that `spec` names.

    Raises SchemaError, listing the types there are, when it names none.
    """
    if isinstance(spec, ColumnType):
        return spec
    if isinstance(spec, str):
        return _from_name(spec)
    if typing.get_origin(spec) in (types.UnionType, typing.Union):
        members = [member for member in get_args(spec) if member is not types.NoneType]
        if len(members) == 1:
            return as_column_type(members[0]).or_null(len(get_args(spec)) > 1)
    elif isinstance(spec, type) and spec in _PYTHON:
        return _PYTHON[spec]
    elif spec is Decimal:
        raise SchemaError(
            "Decimal does not say how many digits: write dd.decimal(10, 2), or 'decimal(10, 2)'."
        )
    elif isinstance(spec, pa.DataType):
        named = kind_of_arrow(spec)
        if named is not None:
            return _typed(named)
    elif (text := type_text(spec)) is not None:
        return _from_name(text)
    raise SchemaError(f"{shown(spec)} is not a column type.\n  {_choices()}")


def _from_name(name: str) -> ColumnType:
    """Return the type called `name`; a question mark at its end makes it nullable."""
    bare = name.strip()
    named = kind_of_name(bare.rstrip("?"))
    if named is None:
        raise SchemaError(f"{name!r} is not a column type.\n  {_choices()}")
    return _typed(named).or_null(bare.endswith("?"))


def _typed(named: Named) -> ColumnType:
    if named.kind == "decimal":
        return decimal(named.precision, named.scale)
    return ColumnType(named.kind)


def _choices() -> str:
    kinds = ", ".join(kind for kind in get_args(Kind) if kind != "decimal")
    return f"Types are {kinds}, decimal(p, s); a question mark at the end allows nulls, as in int?."
