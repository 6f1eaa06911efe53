"""Which types can a column have, and how many words does a value of each take?

    type        one value is                      its word                           ordered
    int         -2^63 … 2^63-1                    itself                             yes
    float       IEEE double                       integer order = float order        yes
    bool        False, True                       0, 1                               yes
    timestamp   microseconds since 1970 in UTC    itself                             yes
    date        a day                             days since 1970                    yes
    decimal     p digits, s behind the point      value · 10^s                       yes
    string      text                              a symbol (see `symbols/`)          no
    bytes       binary                            a symbol                           no
    any         any msgpack value                 a symbol                           no
    array<T>    a list of values of type T        a symbol                           no
    struct<…>   fields with names and types       a symbol                           no
    map<K, V>   values by key                     a symbol                           no

An array, struct or map has the word that the same value has in a column of type any.

A decimal of 19 to 38 digits is *wide*: it takes two words, which order as the values do
(`wide/wide_words.py`).

A *nullable* column (`int?`) takes a word more: a flag (0 for null, 1 for a value), then the value's words (0
for null). So nulls are equal to one another as rows, and sort before every value. "Ordered" says whether the
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
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Final, NoReturn, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from differential.columns.foreign.nested_names import field_text
from differential.columns.foreign.type_names import (
    Kind,
    Named,
    kind_of_arrow,
    kind_of_name,
    kind_of_object,
    type_text,
)
from differential.errors import ExpressionError, SchemaError, shown

__all__ = [
    "ANY_METADATA",
    "DECIMAL_DIGITS_MAX",
    "ROW_WORDS_MAX",
    "TYPE_KEY",
    "WORD_DIGITS_MAX",
    "Bools",
    "ColumnType",
    "Floats",
    "Int64s",
    "Kind",
    "TypeSpec",
    "any_value",
    "array_of",
    "as_column_type",
    "binary",
    "boolean",
    "date",
    "decimal",
    "floating",
    "integer",
    "list_type",
    "map_of",
    "string",
    "struct_of",
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

DECIMAL_DIGITS_MAX: Final = 38
"""Most digits of a decimal: any number of 38 digits fits into two words."""

WORD_DIGITS_MAX: Final = 18
"""Most digits of a decimal in one word."""

TYPE_KEY: Final = b"differential.type"
"""The metadata of an Arrow field of packed values has the type of the column under this key."""

# An Arrow field of binary values with this metadata holds packed values of an `any` column.
ANY_METADATA: Final = {TYPE_KEY: b"any"}


@dataclass(frozen=True, slots=True)
class ColumnType:
    """The type of a column: a kind, and whether the column may hold nulls.

    A decimal has `precision` digits, `scale` of them behind the point; elsewhere both are 0. `parts` are the
    types of the elements of an array, of the fields of a struct, called `names`, or of the keys and the
    values of a map.
    """

    kind: Kind
    nullable: bool = False
    precision: int = 0
    scale: int = 0
    parts: tuple[ColumnType, ...] = ()
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.parts:
            self._check_parts()
        if self.kind == "decimal" and not 0 <= self.scale <= self.precision <= DECIMAL_DIGITS_MAX:
            raise SchemaError(
                f"decimal({self.precision}, {self.scale}): at most {DECIMAL_DIGITS_MAX} digits are possible, "
                "and at most all of them behind the point. Use fewer, float, or store it as a string"
            )
        assert (self.kind == "decimal") == (self.precision > 0), self.kind
        assert self.is_nested == bool(self.parts), self.kind

    if not TYPE_CHECKING:

        def __call__(self, *arguments: object, **options: object) -> NoReturn:
            """Refuse the call: PySpark and SQL have a function `any_value`."""
            if self.kind == "any":
                raise ExpressionError(
                    "dd.any_value is a type of columns. For one of the values of each group write "
                    "dd.any_value_of('x')"
                )
            raise ExpressionError(
                f"{self} is a type of columns, and no function: to convert values write col.x.cast('{self}')"
            )

    def _check_parts(self) -> None:
        if any(part.kind == "any" for part in self.parts):
            raise SchemaError(f"{self}: no part can be of type any. Declare the whole column as any")
        if self.kind == "map" and (self.parts[0].is_nested or self.parts[0].nullable):
            raise SchemaError(f"{self}: the keys of a map are never null, and no arrays, structs or maps")
        twice = sorted({name for name in self.names if self.names.count(name) > 1})
        if twice:
            raise SchemaError(f"{self}: two fields are called {twice[0]!r}")
        assert len(self.parts) == {"array": 1, "map": 2}.get(self.kind, len(self.names)), self.kind

    @property
    def words(self) -> int:
        """How many words one value takes."""
        return self.value_words + self.nullable

    @property
    def value_words(self) -> int:
        """How many of these words are not the flag of a null: 2 for a wide decimal."""
        return 2 if self.precision > WORD_DIGITS_MAX else 1

    @property
    def is_wide(self) -> bool:
        """True for a decimal of more digits than fit into one word."""
        return self.precision > WORD_DIGITS_MAX

    @property
    def is_symbol(self) -> bool:
        """True if its word is a hash, which a `SymbolTable` resolves."""
        return self.kind in ("string", "bytes", "any") or self.is_nested

    @property
    def is_nested(self) -> bool:
        """True if its values have parts of declared types: arrays, structs and maps."""
        return self.kind in ("array", "struct", "map")

    @property
    def is_ordered(self) -> bool:
        """True if the order of words is the order of values."""
        return not self.is_symbol

    @property
    def has_order(self) -> bool:
        """True if its values have an order, be it that of the words or another: those without parts."""
        return self.kind != "any" and not self.is_nested

    @property
    def is_number(self) -> bool:
        """True if arithmetic is defined on it."""
        return self.kind in ("int", "float", "decimal")

    @property
    def is_whole(self) -> bool:
        """True if its words are whole numbers whose sums are those of the sum (a bool counts as 0 or 1)."""
        return self.kind in ("int", "decimal", "bool")

    def or_null(self, nullable: bool = True) -> ColumnType:
        """Return the same kind with nulls allowed (or, with `nullable=False`, the type as it is)."""
        return replace(self, nullable=True) if nullable and not self.nullable else self

    def not_null(self) -> ColumnType:
        """Return the same kind without nulls."""
        return replace(self, nullable=False) if self.nullable else self

    def to_arrow(self) -> pa.DataType:
        """Return the Arrow type in which `Schema.decode` returns such a column.

        Values of any kind, and nested ones, are packed there: rows of them can be compared and sorted.
        """
        if self.kind == "decimal":
            return pa.decimal128(self.precision, self.scale)
        return pa.binary() if self.is_nested else _ARROW[self.kind]

    def arrow_of_values(self) -> pa.DataType:
        """Return the Arrow type in which clients get such a column; nested values are Arrow's own there."""
        if self.kind == "array":
            return pa.list_(self.parts[0]._arrow_field("item"))
        if self.kind == "map":
            return pa.map_(self.parts[0].arrow_of_values(), self.parts[1]._arrow_field("value"))
        if self.kind == "struct":
            pairs = zip(self.names, self.parts, strict=True)
            return pa.struct([type_._arrow_field(name) for name, type_ in pairs])
        return self.to_arrow()

    def _arrow_field(self, name: str) -> pa.Field:
        return pa.field(name, self.arrow_of_values(), nullable=self.nullable)

    @property
    def metadata(self) -> dict[bytes, bytes] | None:
        """What an Arrow field of packed values says of their type; None for types that are not packed."""
        return {TYPE_KEY: str(self.not_null()).encode()} if self.kind == "any" or self.is_nested else None

    def holds(self, other: ColumnType) -> bool:
        """True if each value of `other` is one of this type, with the same word."""
        if (other.nullable and not self.nullable) or self.kind != other.kind:
            return False
        if not self.is_nested:
            return (self.precision, self.scale) == (other.precision, other.scale)
        return self.names == other.names and all(map(ColumnType.holds, self.parts, other.parts))

    def with_nulls_of(self, other: ColumnType) -> ColumnType | None:
        """Return the least type that holds this type and `other`; None unless nulls alone tell them apart."""
        if not self.is_nested:
            same = self.not_null() == other.not_null()
            return self.or_null(other.nullable) if same else None
        if (self.kind, self.names) != (other.kind, other.names):
            return None
        parts = tuple(mine.with_nulls_of(its) for mine, its in zip(self.parts, other.parts, strict=True))
        if any(part is None for part in parts):
            return None
        parts_of_both = tuple(part for part in parts if part is not None)
        return replace(self, parts=parts_of_both, nullable=self.nullable or other.nullable)

    def __str__(self) -> str:
        name: str = self.kind
        if self.kind == "decimal":
            name = f"decimal({self.precision}, {self.scale})"
        elif self.kind == "struct":
            name = f"struct<{', '.join(map(field_text, self.names, self.parts))}>"
        elif self.parts:
            name = f"{self.kind}<{', '.join(map(str, self.parts))}>"
        return name + "?" if self.nullable else name


integer: Final = ColumnType("int")
floating: Final = ColumnType("float")
boolean: Final = ColumnType("bool")
timestamp: Final = ColumnType("timestamp")
date: Final = ColumnType("date")
string: Final = ColumnType("string")
binary: Final = ColumnType("bytes")
any_value: Final = ColumnType("any")


def array_of(element: ColumnType) -> ColumnType:
    """Return the type of lists of such elements."""
    return ColumnType("array", parts=(element,))


def list_type(element: ColumnType) -> ColumnType:
    """Return the type of lists of values of this type without null; any, if these are of any kind."""
    return any_value if element.kind == "any" else array_of(element.not_null())


def struct_of(fields: Mapping[str, ColumnType]) -> ColumnType:
    """Return the type of values with these fields."""
    return ColumnType("struct", parts=tuple(fields.values()), names=tuple(fields))


def map_of(key: ColumnType, value: ColumnType) -> ColumnType:
    """Return the type of values by key."""
    return ColumnType("map", parts=(key.not_null(), value))


def decimal(precision: int, scale: int = 0) -> ColumnType:
    """Return the type of exact numbers of `precision` digits (at most 38), `scale` of them behind the point.

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
            return _of_parts(named)
    elif (named := kind_of_object(spec)) is not None:
        return _of_parts(named)
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
    if named.parts:
        parts = tuple(_typed(part).or_null(part.nullable) for part in named.parts)
        return ColumnType(named.kind, parts=parts, names=named.names)
    return ColumnType(named.kind)


def _of_parts(named: Named) -> ColumnType:
    """Return the type that another library means; `any` if no column holds one of its parts."""
    try:
        return _typed(named)
    except SchemaError:
        if named.parts:
            return any_value
        raise


def _choices() -> str:
    kinds = ", ".join(kind for kind in get_args(Kind) if kind not in _WITH_MORE)
    return (
        f"Types are {kinds}, decimal(p, s), array<T>, struct<a: T, b: U>, map<K, V>; a question mark at the "
        "end allows nulls, as in int?."
    )


_WITH_MORE: Final = ("decimal", "array", "struct", "map")
