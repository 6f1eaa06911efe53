"""Is this value one of that nested type, exactly in the form in which it is kept?

Values come packed from clients, and a client of another kind may have packed anything.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Final, TypeAlias, cast

from differential.columns.column_types import ColumnType
from differential.columns.symbols.packing import unpack
from differential.errors import SchemaError, shown

__all__ = ["Fits", "fitting", "unpacked"]

Fits: TypeAlias = Callable[[object], bool]

_PYTHON: Final[dict[str, type]] = {
    "int": int,
    "float": float,
    "bool": bool,
    "string": str,
    "bytes": bytes,
    "timestamp": dt.datetime,
    "date": dt.date,
}


def unpacked(payloads: Sequence[bytes], type_: ColumnType) -> list[object]:
    """Return the values with these bytes; SchemaError for one that is not of a nested type."""
    fits = fitting(type_.not_null())
    values = [unpack(payload) for payload in payloads]
    for value in values:
        if not fits(value):
            raise SchemaError(
                f"{shown(value)} came packed for a column of type {type_}, and is none of its values"
            )
    return values


def fitting(type_: ColumnType) -> Fits:
    """Return the test whether a value, as `unpack` returns it, is one of this type."""
    fits = _fitting(type_)
    return (lambda value: value is None or fits(value)) if type_.nullable else fits


def _fitting(type_: ColumnType) -> Fits:
    if type_.kind == "array":
        element = fitting(type_.parts[0])
        return lambda value: type(value) is tuple and all(map(element, cast("tuple[object, ...]", value)))
    if type_.kind == "map":
        key, entry = map(fitting, type_.parts)

        def is_map(value: object) -> bool:
            if type(value) is not dict:
                return False
            items = cast("dict[object, object]", value)
            return all(map(key, items)) and all(map(entry, items.values()))

        return is_map
    if type_.kind == "struct":
        fields = list(zip(type_.names, map(fitting, type_.parts), strict=True))

        def is_struct(value: object) -> bool:
            if type(value) is not dict:
                return False
            items = cast("dict[object, object]", value)
            return len(items) == len(fields) and all(
                name in items and fits(items[name]) for name, fits in fields
            )

        return is_struct
    if type_.kind == "decimal":
        return lambda value: type(value) is Decimal and _has_digits(value, type_)
    python = _PYTHON[type_.kind]
    return lambda value: type(value) is python and (python is not int or -(2**63) <= cast(int, value) < 2**63)


def _has_digits(value: Decimal, type_: ColumnType) -> bool:
    exponent = cast(int, value.as_tuple().exponent)
    return -exponent <= type_.scale and value.adjusted() < type_.precision - type_.scale
