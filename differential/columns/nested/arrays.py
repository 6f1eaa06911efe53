"""How do Arrow's lists, structs and maps become those of a declared type, and the bytes of symbols?

Parts are cast and checked by the rules for columns of their types, all parts of a column at once. Each value
then has the bytes that `pack` makes of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, cast

import msgpack
import numpy as np
import pyarrow as pa

from differential.columns.column_types import ColumnType, Int64s
from differential.columns.nested.locations import ValueLocation
from differential.columns.nested.values import with_pairs
from differential.columns.symbols.packing import extension_of, pack, unpack
from differential.errors import SchemaError
from timely.wire.arrow import numbers_of, pc

__all__ = ["Cast", "conform_nested", "nested_array", "packed_array", "takes_nested"]

Cast: TypeAlias = Callable[[pa.ChunkedArray, ValueLocation], pa.ChunkedArray]
"""Casts a column to the type of the location; raises SchemaError for what does not fit."""


def takes_nested(type_: ColumnType, arrow: pa.DataType) -> bool:
    """True if a column of this nested type takes values of the Arrow type, if their parts fit."""
    if type_.kind == "map":
        return bool(pa.types.is_map(arrow))
    if type_.kind == "struct":
        return bool(pa.types.is_struct(arrow))
    is_list = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list, _is_list_view)
    return any(test(arrow) for test in is_list)


def _is_list_view(arrow: pa.DataType) -> bool:
    return bool(pa.types.is_list_view(arrow) or pa.types.is_large_list_view(arrow))


def conform_nested(column: pa.ChunkedArray, place: ValueLocation, cast_part: Cast) -> pa.ChunkedArray:
    """Return a column of lists, structs or maps in the type of `place`, which takes its Arrow type."""
    if (plain := _without_views(column.type)) != column.type:
        column = column.cast(plain)
    of_kind = {"array": _list, "struct": _struct, "map": _map}[place.type.kind]
    start, chunks = 0, []
    for chunk in column.chunks:
        is_there = numbers_of(chunk.is_valid(), np.bool_)
        rows = np.flatnonzero(is_there) + start
        formed = of_kind(chunk.filter(chunk.is_valid()), rows, place, cast_part)
        if chunk.null_count:
            places = np.where(is_there, np.cumsum(is_there) - 1, 0)
            formed = formed.take(pa.array(places, mask=~is_there))
        chunks.append(formed)
        start += len(chunk)
    return pa.chunked_array(chunks, place.type.arrow_of_values())


def _without_views(arrow: pa.DataType) -> pa.DataType:
    """Return the same type with texts and bytes in the form that Arrow's functions take."""
    if pa.types.is_string_view(arrow):
        return pa.large_string()
    if pa.types.is_binary_view(arrow):
        return pa.large_binary()
    if pa.types.is_map(arrow):
        return pa.map_(_without_views(arrow.key_type), _field_without_views(arrow.item_field))
    if pa.types.is_struct(arrow):
        return pa.struct([_field_without_views(field) for field in arrow])
    if pa.types.is_fixed_size_list(arrow):
        return pa.list_(_field_without_views(arrow.value_field), arrow.list_size)
    if pa.types.is_list(arrow):
        return pa.list_(_field_without_views(arrow.value_field))
    if pa.types.is_large_list(arrow) or _is_list_view(arrow):
        return pa.large_list(_field_without_views(arrow.value_field))
    return arrow


def _field_without_views(field: pa.Field) -> pa.Field:
    return field.with_type(_without_views(field.type))


def _part(array: pa.Array, place: ValueLocation, cast_part: Cast) -> pa.Array:
    """Return one part of all values, cast."""
    formed = cast_part(pa.chunked_array([array]), place).combine_chunks()
    target = place.type.arrow_of_values()
    return formed if formed.type == target else formed.cast(target)


def _list(present: pa.Array, rows: Int64s, place: ValueLocation, cast_part: Cast) -> pa.Array:
    lengths, offsets = _lengths(present)
    inner = place.inside("element", place.type.parts[0], np.repeat(rows, lengths))
    elements = _part(present.flatten(), inner, cast_part)
    return pa.ListArray.from_arrays(offsets, elements, type=place.type.arrow_of_values())


def _lengths(present: pa.Array) -> tuple[Int64s, pa.Array]:
    """Return the lengths of lists, none of them null, and where each begins and ends."""
    if pa.types.is_fixed_size_list(present.type):
        lengths = np.full(len(present), present.type.list_size, np.int64)
    elif pa.types.is_map(present.type):
        lengths = np.diff(numbers_of(present.offsets, np.int32)).astype(np.int64)
    else:
        lengths = numbers_of(pc.list_value_length(present).cast(pa.int64()), np.int64)
    return lengths, pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))


def _struct(present: pa.Array, rows: Int64s, place: ValueLocation, cast_part: Cast) -> pa.Array:
    type_ = place.type
    there = [field.name for field in present.type]
    extra = [name for name in there if name not in type_.names]
    twice = [name for name in there if there.count(name) > 1]
    if (extra or twice) and len(rows):
        what = f"has {extra[0]!r}, which is no field of it" if extra else f"has {twice[0]!r} twice"
        raise place.error(int(rows[0]), present[0].as_py(), what, f"Fields are {', '.join(type_.names)}.")
    columns = dict(zip(there, present.flatten(), strict=True))
    parts = [
        _part(
            columns[name] if name in columns else pa.nulls(len(present), part.arrow_of_values()),
            place.inside(f"field {name!r}", part, rows),
            cast_part,
        )
        for name, part in zip(type_.names, type_.parts, strict=True)
    ]
    return pa.StructArray.from_arrays(parts, fields=list(type_.arrow_of_values()))


def _map(present: pa.Array, rows: Int64s, place: ValueLocation, cast_part: Cast) -> pa.Array:
    lengths, offsets = _lengths(present)
    parents = np.repeat(rows, lengths)
    first, pairs_count = numbers_of(present.offsets[:1], np.int32).sum(), len(parents)
    keys, values = (part.slice(first, pairs_count) for part in (present.keys, present.items))
    key_type, value_type = place.type.parts
    keys = _part(keys, place.inside("key", key_type, parents), cast_part)
    numbers = numbers_of(keys.dictionary_encode().indices.cast(pa.int64()), np.int64)
    pairs = np.stack([parents, numbers], axis=1)
    different, first = np.unique(pairs, axis=0, return_index=True)
    if len(different) < len(pairs):
        again = int(np.setdiff1d(np.arange(len(pairs)), first)[0])
        raise place.error(
            int(parents[again]), keys[again].as_py(), "is there twice as a key",
            "A key of a map has one value.",
        )  # fmt: skip
    values = _part(values, place.inside("value", value_type, parents), cast_part)
    return pa.MapArray.from_arrays(offsets, keys, values, type=place.type.arrow_of_values())


def packed_array(array: pa.Array, type_: ColumnType) -> pa.Array:
    """Return the bytes of the values of a nested column, which conforms to `type_`; null where they are."""
    values = array.to_pylist()
    if _has(type_, "map"):
        values = [_with_dicts(value, type_) for value in values]
    elif not _has(type_, "float") and not _has(type_, "struct"):
        packer = msgpack.Packer(datetime=True, default=extension_of)
        return pa.array([None if value is None else packer.pack(value) for value in values], pa.binary())
    return pa.array([None if value is None else pack(value) for value in values], pa.binary())


def nested_array(payloads: Sequence[bytes | None], type_: ColumnType) -> pa.Array:
    """Return the Arrow array of values with these bytes, and of nulls."""
    values = [None if payload is None else unpack(payload) for payload in payloads]
    if _has(type_, "map"):
        values = [with_pairs(value, type_) for value in values]
    try:
        return pa.array(values, type_.arrow_of_values())
    except pa.ArrowException as error:
        raise SchemaError(f"values of a column of {type_} have another type: {error}") from error


def _has(type_: ColumnType, kind: str) -> bool:
    return type_.kind == kind or any(_has(part, kind) for part in type_.parts)


def _with_dicts(value: object, type_: ColumnType) -> object:
    """Return a value of Arrow with its maps, which are lists of pairs there, as dicts."""
    if value is None or not type_.is_nested:
        return value
    if type_.kind == "array":
        return [_with_dicts(part, type_.parts[0]) for part in cast("Sequence[object]", value)]
    if type_.kind == "map":
        pairs = cast("Sequence[tuple[object, object]]", value)
        return {key: _with_dicts(part, type_.parts[1]) for key, part in pairs}
    fields = cast("Mapping[str, object]", value)
    return {
        name: _with_dicts(fields[name], part) for name, part in zip(type_.names, type_.parts, strict=True)
    }
