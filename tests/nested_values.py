"""Nested types and values of them at random, for tests; and what a value is once it was in a row."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from typing import cast

from differential.columns.column_types import ColumnType, array_of, as_column_type, map_of, struct_of

__all__ = ["nested_type", "plainly", "value_of_type"]

LEAVES = tuple(
    map(as_column_type, ("int", "float", "bool", "string", "bytes", "date", "timestamp", "decimal(5, 2)"))
)
NAMES = ("a", "b", "c d", "`", "é", "long_name")
PLAIN: dict[str, tuple[object, ...]] = {
    "int": (0, 1, -1, 2**63 - 1, -(2**63), 300),
    "float": (0.0, -0.0, 1.5, float("inf"), 1e-300),
    "bool": (True, False),
    "string": ("", "a", "é\n", "\0", "b" * 40),
    "bytes": (b"", b"\xff", b"ab"),
    "date": (dt.date(1, 1, 1), dt.date(2024, 2, 29), dt.date(9999, 12, 31)),
    "timestamp": (dt.datetime(1969, 12, 31, 23, tzinfo=dt.UTC), dt.datetime(2024, 1, 1, 0, 0, 0, 1, dt.UTC)),
    "decimal": (Decimal("0.00"), Decimal("-999.99"), Decimal("1.50")),
}


def nested_type(seed: random.Random, depth: int = 2) -> ColumnType:
    """An array, struct or map, perhaps with others within it."""

    def part() -> ColumnType:
        is_leaf = depth == 0 or seed.random() < 0.6
        type_ = seed.choice(LEAVES) if is_leaf else nested_type(seed, depth - 1)
        return type_.or_null(seed.random() < 0.5)

    kind = seed.choice(("array", "map", "struct"))
    if kind == "array":
        type_ = array_of(part())
    elif kind == "map":
        type_ = map_of(seed.choice(LEAVES), part())
    else:
        type_ = struct_of({name: part() for name in seed.sample(NAMES, seed.randint(1, 3))})
    return type_.or_null(seed.random() < 0.5)


def value_of_type(seed: random.Random, type_: ColumnType) -> object:
    """A value of a type, or null if it allows that."""
    if type_.nullable and seed.random() < 0.3:
        return None
    if type_.kind == "array":
        return [value_of_type(seed, type_.parts[0]) for _ in range(seed.randint(0, 3))]
    if type_.kind == "map":
        key, value = type_.parts
        return {value_of_type(seed, key): value_of_type(seed, value) for _ in range(seed.randint(0, 3))}
    if type_.kind == "struct":
        pairs = zip(type_.names, type_.parts, strict=True)
        return {name: value_of_type(seed, part) for name, part in pairs}
    return seed.choice(PLAIN[type_.kind])


def plainly(value: object, type_: ColumnType) -> object:
    """A value as `unpack` returns it: tuples for lists, and 0.0 for -0.0."""
    if value is None:
        return None
    if type_.kind == "array":
        return tuple(plainly(part, type_.parts[0]) for part in cast("list[object]", value))
    if type_.kind == "map":
        items = cast("dict[object, object]", value).items()
        return {key: plainly(part, type_.parts[1]) for key, part in items}
    if type_.kind == "struct":
        record = cast("dict[str, object]", value)
        pairs = zip(type_.names, type_.parts, strict=True)
        return {name: plainly(record[name], part) for name, part in pairs}
    return value + 0.0 if isinstance(value, float) else value
