"""Functions of arrays, under the names and with the nulls of Spark 4.

null array     the result is null
null elements  are values: `array_distinct` keeps one, `array_union` counts them as the same;
               `array_min` and `array_max` leave them out
places         are counted from 1, and from the end if negative
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, cast

from differential.columns.column_types import ColumnType, array_of, boolean, integer
from differential.expressions.functions.families.elements import (
    ARRAY,
    array_function,
    common_type,
    element_of,
    in_order,
    of_nulls,
    same_arrays,
    same_as,
)
from differential.expressions.functions.function import ANY_KIND, LACKS, Param, Typed

__all__ = ["ARRAYS"]

_Elements = Sequence[object]
_OTHER: Final = Param("other", ("array",))
_VALUE: Final = Param("value", ANY_KIND)
_INT: Final = ("int",)
_START: Final = Param("start", _INT)
_STOP: Final = Param("stop", _INT)
_SEQUENCE_MAX: Final = 1_000_000
"""Most elements that `array_repeat` and `sequence` make: more would be a mistake, and fill the memory."""


def _of(type_: ColumnType) -> Typed:
    return lambda types, constants: type_


def _first(types: Sequence[ColumnType], constants: Sequence[object]) -> ColumnType:
    return types[0].not_null()


def _searched(type_: ColumnType) -> Typed:
    """Return the typing of a function that looks for a value among elements."""

    def typed(types: Sequence[ColumnType], constants: Sequence[object]) -> ColumnType:
        common_type([element_of(types[0]), types[1]])
        return type_

    return typed


def _without(types: Sequence[ColumnType], constants: Sequence[object]) -> ColumnType:
    _searched(integer)(types, constants)
    return types[0].not_null()


def _with_one(types: Sequence[ColumnType], constants: Sequence[object]) -> ColumnType:
    return array_of(common_type([element_of(types[0]), types[1]]))


def _ordered(type_: ColumnType) -> ColumnType:
    if not type_.has_order:
        raise ValueError(f"needs elements that have an order, not {type_}")
    return type_


def _compared(a: _Elements, b: _Elements) -> bool | None:
    mine = {same_as(value) for value in a if value is not None}
    if any(same_as(value) in mine for value in b if value is not None):
        return True
    return None if a and b and (None in a or None in b) else False


def _overlap_type(types: Sequence[ColumnType], constants: Sequence[object]) -> ColumnType:
    common = element_of(same_arrays(types, constants))
    return boolean.or_null(common.nullable)


def _in_order_of_first(values: _Elements) -> list[object]:
    first: dict[object, object] = {}
    for value in values:
        first.setdefault(same_as(value), value)
    return list(first.values())


def _union(a: _Elements, b: _Elements) -> list[object]:
    return _in_order_of_first([*a, *b])


def _intersect(a: _Elements, b: _Elements) -> list[object]:
    other = {same_as(value) for value in b}
    return _in_order_of_first([value for value in a if same_as(value) in other])


def _except(a: _Elements, b: _Elements) -> list[object]:
    other = {same_as(value) for value in b}
    return _in_order_of_first([value for value in a if same_as(value) not in other])


def _position(values: _Elements, value: object) -> int:
    key = same_as(value)
    return next((place for place, each in enumerate(values, 1) if same_as(each) == key), 0)


def _remove(values: _Elements, value: object) -> list[object]:
    key = same_as(value)
    return [each for each in values if each is None or same_as(each) != key]


def _append(values: _Elements | None, value: object) -> object:
    return None if values is None else [*values, value]


def _prepend(values: _Elements | None, value: object) -> object:
    return None if values is None else [value, *values]


def _slice(values: _Elements, start: int, length: int) -> object:
    if start == 0 or length < 0:
        return LACKS
    first = start - 1 if start > 0 else len(values) + start
    return values[first : first + length] if first >= 0 else ()


def _flatten(lists: Sequence[_Elements | None]) -> object:
    if None in lists:
        return None
    return [value for values in cast("Sequence[_Elements]", lists) for value in values]


def _flatten_type(types: Sequence[ColumnType], constants: Sequence[object]) -> ColumnType:
    inner = element_of(types[0])
    if inner.kind != "array":
        raise ValueError("takes an array of arrays")
    return inner


def _extreme(is_least: bool) -> Callable[[_Elements], object]:
    def of(values: _Elements) -> object:
        present = sorted((value for value in values if value is not None), key=_key)
        return present[0 if is_least else -1] if present else None

    return of


def _key(value: object) -> tuple[bool, int]:
    return cast("tuple[bool, int]", in_order(value))  # of one kind


def _extreme_type(types: Sequence[ColumnType], constants: Sequence[object]) -> ColumnType:
    return _ordered(element_of(types[0])).or_null()


def _array(*values: object) -> object:
    return values


def _array_type(types: Sequence[ColumnType], constants: Sequence[object]) -> ColumnType:
    return array_of(common_type(types))


def _repeat(value: object, count: int | None) -> object:
    if count is None:
        return None
    return [value] * count if count <= _SEQUENCE_MAX else LACKS


def _repeat_type(types: Sequence[ColumnType], constants: Sequence[object]) -> ColumnType:
    return array_of(types[0]).or_null(types[1].nullable)


def _append_type(types: Sequence[ColumnType], constants: Sequence[object]) -> ColumnType:
    return _with_one(types, constants).or_null(types[0].nullable)


def _compact(values: _Elements) -> object:
    return [value for value in values if value is not None]


def _compact_type(types: Sequence[ColumnType], constants: Sequence[object]) -> ColumnType:
    return array_of(element_of(types[0]).not_null())


def _sequence(start: int, stop: int, step: int | None = None) -> object:
    if step is None:
        step = 1 if start <= stop else -1
    if step == 0 and start == stop:
        return [start]
    if step == 0 or (stop - start) * step < 0 or (stop - start) // step >= _SEQUENCE_MAX:
        return LACKS
    return list(range(start, stop + (1 if step > 0 else -1), step))


_HAS_OR_NULL: Final = "is null if there is none, and the array has nulls"

ARRAYS: Final = (
    of_nulls(array_function("array", (Param("values", ANY_KIND),), _array_type, _array,
             "The values as an array; nulls are elements.", "concat_list"), many=True),
    array_function("array_distinct", (ARRAY,), _first, _in_order_of_first,
                   "Each value of an array once, in the order of the first of each.", "list.unique"),
    array_function("array_union", (ARRAY, _OTHER), same_arrays, _union,
                   "The values of both arrays, each once.", "list.set_union"),
    array_function("array_intersect", (ARRAY, _OTHER), same_arrays, _intersect,
                   "The values that are in both arrays, each once.", "list.set_intersection"),
    array_function("array_except", (ARRAY, _OTHER), same_arrays, _except,
                   "The values of the first array that are not in the second, each once.",
                   "list.set_difference"),
    array_function("arrays_overlap", (ARRAY, _OTHER), _overlap_type, _compared,
                   f"True if both arrays have a value; the result {_HAS_OR_NULL}."),
    array_function("array_position", (ARRAY, _VALUE), _searched(integer), _position,
                   "Where the value is first, counted from 1; 0: nowhere."),
    array_function("array_remove", (ARRAY, _VALUE), _without, _remove,
                   "The array without all elements that are the value."),
    of_nulls(array_function("array_append", (ARRAY, _VALUE), _append_type, _append,
             "The array with the value behind it.")),
    of_nulls(array_function("array_prepend", (ARRAY, _VALUE), _append_type, _prepend,
             "The array with the value in front.")),
    array_function("array_compact", (ARRAY,), _compact_type, _compact, "The array without nulls.",
                   "list.drop_nulls"),
    of_nulls(array_function("array_repeat", (_VALUE, Param("count", _INT)), _repeat_type, _repeat,
             "The value `count` times.", "repeat_by", f"would have more than {_SEQUENCE_MAX:,} elements")),
    replace(array_function("array_slice", (ARRAY, Param("start", _INT), Param("length", _INT)), _first,
            _slice, "`length` elements from the place `start` on, counted from 1, or from the end if "
            "negative.", "list.slice", "starts at 0, or has a negative length"),
            spark="slice", calls=("array_slice", "slice")),
    array_function("flatten", (ARRAY,), _flatten_type, _flatten,
                   "The elements of all arrays in an array; null if one of them is."),
    array_function("array_min", (ARRAY,), _extreme_type, _extreme(True),
                   "The least element that is not null.", "list.min"),
    array_function("array_max", (ARRAY,), _extreme_type, _extreme(False),
                   "The greatest element that is not null; NaN is greatest.", "list.max"),
    array_function("sequence", (_START, _STOP, Param("step", _INT, is_optional=True)),
                   _of(array_of(integer)), _sequence,
                   "The whole numbers from `start` to `stop`, both in it.", "int_ranges",
                   f"never ends, or has more than {_SEQUENCE_MAX:,} elements"),
)  # fmt: skip
"""The functions that this file defines."""
