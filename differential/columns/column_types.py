"""Which types can a column have, and how many words does a value of each take?

    type        one value is                      its word                           ordered
    int         -2^63 … 2^63-1                    itself                             yes
    float       IEEE double                       integer order = float order        yes
    bool        False, True                       0, 1                               yes
    timestamp   microseconds since 1970 in UTC    itself                             yes
    string      text                              a symbol (see `symbols.py`)        no
    bytes       binary                            a symbol                           no
    any         any msgpack value                 a symbol                           no

A *nullable* column (`int?`) takes two words: a flag, 0 for null and 1 for a value, then the value's word, 0
for null. So nulls are equal to one another as rows, and sort before every value. "Ordered" says whether the
order of words is the order of values, that is, whether `min`, `max`, `<` mean what the user expects: a
symbol's word is a hash, so its order is arbitrary, though the same on every worker.

A type is written as a `ColumnType`, a Python type (`int`, `str`, `datetime`, `int | None`) or a word
("int?").
"""

from __future__ import annotations

import datetime as dt
import types
import typing
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from differential.errors import SchemaError

__all__ = [
    "ANY_METADATA",
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
    "floating",
    "integer",
    "string",
    "timestamp",
]

Int64s: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Bools: TypeAlias = npt.NDArray[np.bool_]

ROW_WORDS_MAX: Final = 4_096
"""Words of a row, time and difference included. A batch that claims more is malformed, so no schema may have
more: the error should be the user's line, not the end of a worker."""

Kind: TypeAlias = Literal["int", "float", "bool", "timestamp", "string", "bytes", "any"]
_KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

# An Arrow field of binary values with this metadata holds packed values of an `any` column.
ANY_METADATA: Final = {b"differential.type": b"any"}


@dataclass(frozen=True, slots=True)
class ColumnType:
    """The type of a column: a kind, and whether nulls may occur in it."""

    kind: Kind
    nullable: bool = False

    @property
    def words(self) -> int:
        """How many words one value takes."""
        return 2 if self.nullable else 1

    @property
    def is_symbol(self) -> bool:
        """Whether its word is a hash, to be looked up in a `SymbolTable`."""
        return self.kind in ("string", "bytes", "any")

    @property
    def is_ordered(self) -> bool:
        """Whether the order of words is the order of values."""
        return not self.is_symbol

    @property
    def is_number(self) -> bool:
        """Whether arithmetic is defined on it."""
        return self.kind in ("int", "float")

    def or_null(self, nullable: bool = True) -> ColumnType:
        """The same kind with nulls allowed (or, with `nullable=False`, as it is)."""
        return ColumnType(self.kind, self.nullable or nullable)

    def not_null(self) -> ColumnType:
        """The same kind without nulls."""
        return ColumnType(self.kind)

    def to_arrow(self) -> pa.DataType:
        """The Arrow type in which `Schema.decode` returns it."""
        return _ARROW[self.kind]

    def __str__(self) -> str:
        return self.kind + "?" if self.nullable else self.kind


integer: Final = ColumnType("int")
floating: Final = ColumnType("float")
boolean: Final = ColumnType("bool")
timestamp: Final = ColumnType("timestamp")
string: Final = ColumnType("string")
binary: Final = ColumnType("bytes")
any_value: Final = ColumnType("any")

_ARROW: Final[dict[Kind, pa.DataType]] = {
    "int": pa.int64(),
    "float": pa.float64(),
    "bool": pa.bool_(),
    "timestamp": pa.timestamp("us", tz="UTC"),
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
    object: any_value,
    np.int64: integer,
    np.float64: floating,
    np.bool_: boolean,
}

_OTHER_NAMES: Final[dict[str, Kind]] = {
    "int64": "int",
    "integer": "int",
    "long": "int",
    "double": "float",
    "float64": "float",
    "boolean": "bool",
    "str": "string",
    "text": "string",
    "binary": "bytes",
    "datetime": "timestamp",
    "object": "any",
}

TypeSpec: TypeAlias = ColumnType | type | str | types.UnionType
"""What a user may write for a type: `dd.string`, `int`, `"int?"`, `int | None`."""


def as_column_type(spec: TypeSpec) -> ColumnType:
    """The column type that `spec` names.

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
    raise SchemaError(f"{spec!r} is not a column type.\n  {_choices()}")


def _from_name(name: str) -> ColumnType:
    """The type called `name`, with a question mark at its end for nullable."""
    bare = name.strip()
    nullable = bare.endswith("?")
    bare = bare.rstrip("?").strip().lower()
    kind = _OTHER_NAMES.get(bare, bare)
    for known in _KINDS:
        if kind == known:
            return ColumnType(known, nullable)
    raise SchemaError(f"{name!r} is not a column type.\n  {_choices()}")


def _choices() -> str:
    return f"Types are {', '.join(_KINDS)}; a question mark at the end allows nulls, as in int?."
