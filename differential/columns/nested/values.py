"""Do these Python values fit a nested type, and what is each in its one form?

    type        takes                                     its one form
    array       list, tuple, numpy array                  tuple
    struct      dict, named tuple, row of Spark           dict with all fields
    map         dict, list of pairs                       dict

All values of one part are checked together, by the rules of a column of its type. A field that may be null
may be left out.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Final, TypeAlias, cast

import numpy as np

from differential.columns.column_types import ColumnType
from differential.columns.nested.locations import ValueLocation

__all__ = ["Check", "nested_values", "some_value", "with_pairs"]

Check: TypeAlias = Callable[[Sequence[object], ValueLocation], Sequence[object]]
"""Returns plain values in their one form; raises SchemaError about the first that does not fit."""

_SEQUENCES: Final = (list, tuple, np.ndarray)


def nested_values(values: Sequence[object], place: ValueLocation, check: Check) -> list[object]:
    """Return values of a nested type in their one form; `check` does so for the parts without parts."""
    present = [row for row, value in enumerate(values) if value is not None]
    if len(present) < len(values) and not place.type.nullable:
        raise place.null_error(next(row for row, value in enumerate(values) if value is None))
    of_kind = {"array": _arrays, "struct": _structs, "map": _maps}[place.type.kind]
    formed = iter(of_kind([values[row] for row in present], present, place, check))
    return [None if value is None else next(formed) for value in values]


def with_pairs(value: object, type_: ColumnType) -> object:
    """Return a value with each map in it as a list of pairs, which Arrow takes for a map."""
    if value is None or not type_.is_nested:
        return value
    if type_.kind == "array":
        element = type_.parts[0]
        return [with_pairs(part, element) for part in cast("Sequence[object]", value)]
    items = cast("Mapping[object, object]", value)
    if type_.kind == "map":
        return [(key, with_pairs(part, type_.parts[1])) for key, part in items.items()]
    return {
        name: with_pairs(items.get(name), part) for name, part in zip(type_.names, type_.parts, strict=True)
    }


def some_value(type_: ColumnType) -> object:
    """Return any value of a nested type, or of a part of one, that is not null."""
    if type_.kind in ("array", "map"):
        return [] if type_.kind == "array" else {}
    if type_.kind == "struct":
        return {name: some_value(part) for name, part in zip(type_.names, type_.parts, strict=True)}
    return _SOME[type_.kind]


_SOME: Final[dict[str, object]] = {
    "int": 0,
    "float": 0.0,
    "bool": False,
    "string": "",
    "bytes": b"",
    "decimal": Decimal(0),
    "date": dt.date(1970, 1, 1),
    "timestamp": dt.datetime(1970, 1, 1, tzinfo=dt.UTC),
}


def _checked(values: list[object], place: ValueLocation, check: Check) -> Sequence[object]:
    if place.type.is_nested:
        return nested_values(values, place, check)
    return check(values, place)


def _arrays(values: list[object], rows: list[int], place: ValueLocation, check: Check) -> Iterator[object]:
    for row, value in zip(rows, values, strict=True):
        if not isinstance(value, _SEQUENCES):
            raise place.error(row, value, f"is a {type(value).__name__}, not a list", "Write a list.")
    lists = [_of_numpy(value, place.type.parts[0]) for value in values]
    parents = [row for row, parts in zip(rows, lists, strict=True) for _ in range(len(parts))]
    inner = place.inside("element", place.type.parts[0], parents)
    flat = _checked([part for parts in lists for part in parts], inner, check)
    start = 0
    for parts in lists:
        yield tuple(flat[start : start + len(parts)])
        start += len(parts)


def _of_numpy(values: object, element: ColumnType) -> Sequence[object]:
    """Return an array of numpy as a list; pandas has whole numbers with gaps as floats, NaN in the gaps."""
    if not isinstance(values, np.ndarray):
        return cast("Sequence[object]", values)
    if values.dtype.kind == "M":
        exact = values.astype("M8[us]")
        return cast("list[object]", (exact if (exact == values).all() else values).tolist())
    if element.kind == "int" and values.dtype.kind == "f":
        missing = np.isnan(values)
        whole = values[~missing]
        if ((whole == np.floor(whole)) & (np.abs(whole) < 2.0**53)).all():
            return [None if gap else int(value) for gap, value in zip(missing, values, strict=True)]
    return cast("list[object]", values.tolist())


def _structs(values: list[object], rows: list[int], place: ValueLocation, check: Check) -> Iterator[object]:
    names = place.type.names
    records = []
    for row, value in zip(rows, values, strict=True):
        fields = getattr(value, "_fields", None) or getattr(value, "__fields__", None)
        if isinstance(value, Mapping):
            record = cast("Mapping[object, object]", value)
        elif fields is not None and isinstance(value, tuple):
            record = dict(zip(cast("Sequence[object]", fields), value, strict=True))
        else:
            raise place.error(
                row, value, f"is a {type(value).__name__}, not a dict", "Write a dict with the fields."
            )
        extra = [name for name in record if name not in names]
        if extra:
            raise place.error(
                row, value, f"has {extra[0]!r}, which is no field of it", f"Fields are {', '.join(names)}."
            )
        records.append(record)
    columns = [
        _checked(
            [record.get(name) for record in records], place.inside(f"field {name!r}", type_, rows), check
        )
        for name, type_ in zip(names, place.type.parts, strict=True)
    ]
    return (dict(zip(names, parts, strict=True)) for parts in zip(*columns, strict=True))


def _maps(values: list[object], rows: list[int], place: ValueLocation, check: Check) -> Iterator[object]:
    items: list[list[tuple[object, object]]] = []
    for row, value in zip(rows, values, strict=True):
        pairs: object = list(value.items()) if isinstance(value, Mapping) else value
        if not isinstance(pairs, _SEQUENCES) or not all(
            isinstance(pair, tuple | list) and len(pair) == 2 for pair in pairs
        ):
            raise place.error(row, value, f"is a {type(value).__name__}, not a dict", "Write a dict.")
        items.append(cast("list[tuple[object, object]]", pairs))
    parents = [row for row, pairs in zip(rows, items, strict=True) for _ in pairs]
    key_type, value_type = place.type.parts
    keys = iter(
        _checked([key for pairs in items for key, _ in pairs], place.inside("key", key_type, parents), check)
    )
    parts = iter(
        _checked(
            [part for pairs in items for _, part in pairs], place.inside("value", value_type, parents), check
        )
    )
    for row, pairs in zip(rows, items, strict=True):
        formed = {next(keys): next(parts) for _ in pairs}
        if len(formed) < len(pairs):
            raise place.error(row, pairs, "has a key twice", "A key of a map has one value.")
        yield formed
