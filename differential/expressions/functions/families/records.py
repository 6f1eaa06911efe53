"""Functions of structs and maps: making them, their parts, and what is at a place or under a key.

`x[key]` takes elements of arrays from 0, `element_at` from 1; both fail on a place that an array does not
have, as Spark 4 does. Of a key that a map does not have the value is null. Of values of type any, whatever is
missing is null.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, cast

from differential.columns.column_types import (
    ColumnType,
    any_value,
    array_of,
    boolean,
    map_of,
    struct_of,
)
from differential.expressions.functions.families.elements import (
    array_function,
    common_type,
    element_of,
    of_nulls,
    same_as,
)
from differential.expressions.functions.function import ANY_KIND, LACKS, Combined, Function, Param
from differential.other_spellings import meant

__all__ = ["RECORDS", "field_type", "part_type"]

_MAP: Final = Param("x", ("map",))
_KEY: Final = Param("key", ("int", "string", "float", "bool", "decimal", "date", "timestamp", "bytes"))


def field_type(type_: ColumnType, name: object) -> ColumnType:
    """Return the type of a field of a struct; ValueError if there is none of this name."""
    if not isinstance(name, str) or name not in type_.names:
        close = meant(name, type_.names) if isinstance(name, str) else ""
        raise ValueError(f"takes a field: there are {', '.join(type_.names)}.{close}")
    return type_.parts[type_.names.index(name)]


def part_type(types: Sequence[ColumnType], constants: Sequence[object]) -> ColumnType:
    """Return the type of what is in `types[0]` at a place, under a key, or in a field."""
    whole, key = types
    if whole.kind == "any":
        return any_value.or_null()
    if whole.kind == "struct":
        return field_type(whole, constants[1])
    if whole.kind == "map":
        common_type([whole.parts[0], key.not_null()])
        return whole.parts[1].or_null()
    if key.kind != "int":
        raise ValueError("takes a place, an int, of an array")
    return element_of(whole)


def _at(value: object, key: object) -> object:
    """Return what is at a place, counted from 0, under a key or in a field."""
    if isinstance(value, dict):
        return cast("Mapping[object, object]", value).get(key)
    if not isinstance(value, tuple) or type(key) is not int or not 0 <= key < len(value):
        return LACKS
    return cast("object", value[key])


def _element_at(value: object, key: object) -> object:
    if isinstance(value, dict):
        return cast("Mapping[object, object]", value).get(key)
    if not isinstance(value, tuple) or type(key) is not int or not 1 <= abs(key) <= len(value):
        return LACKS
    return cast("object", value[key - 1 if key > 0 else key])


def _check_place(constants: Sequence[object]) -> None:
    if constants and constants[-1] == 0:
        raise ValueError("elements are counted from 1, or with -1 from the end; there is no element 0")


def _element_type(types: Sequence[ColumnType], constants: Sequence[object]) -> ColumnType:
    if types[0].kind != "map" and constants[1] == 0:
        _check_place(constants)
    return part_type(types, constants)


def _try_element_type(types: Sequence[ColumnType], constants: Sequence[object]) -> ColumnType:
    return _element_type(types, constants).or_null()


def _named_struct(
    values: Sequence[object], constants: Sequence[object], types: Sequence[ColumnType]
) -> object:
    del constants, types
    return dict(zip(values[::2], values[1::2], strict=True))


def _struct_type(types: Sequence[ColumnType], constants: Sequence[object]) -> ColumnType:
    names = list(constants[::2])
    if len(types) % 2 or not all(isinstance(name, str) and name for name in names):
        raise ValueError("takes a constant text, the name of a field, before each value")
    if len(set(names)) < len(names):
        raise ValueError("has a field twice")
    return struct_of(dict(zip(cast("list[str]", names), types[1::2], strict=True)))


def _create_map(*values: object) -> object:
    keys = values[::2]
    if None in keys or len(set(map(same_as, keys))) < len(keys):
        return LACKS
    return dict(zip(keys, values[1::2], strict=True))


def _create_type(types: Sequence[ColumnType], constants: Sequence[object]) -> ColumnType:
    if len(types) % 2:
        raise ValueError("takes a value behind each key")
    return _typed_map(common_type(types[::2]), common_type(types[1::2]))


def _typed_map(key: ColumnType, value: ColumnType) -> ColumnType:
    if key.is_nested or key.kind == "any" or value.kind == "any":
        raise ValueError(f"makes no map of {key} to {value}: keys are plain values, and no part is any")
    return map_of(key, value)


def _from_arrays(keys: Sequence[object], values: Sequence[object]) -> object:
    if len(keys) != len(values):
        return LACKS
    return _create_map(*(part for pair in zip(keys, values, strict=True) for part in pair))


def _from_arrays_type(types: Sequence[ColumnType], constants: Sequence[object]) -> ColumnType:
    return _typed_map(element_of(types[0]), element_of(types[1]))


def _entries(value: Mapping[object, object]) -> object:
    return [{"key": key, "value": part} for key, part in value.items()]


def _entries_type(types: Sequence[ColumnType], constants: Sequence[object]) -> ColumnType:
    key, value = types[0].parts
    return array_of(struct_of({"key": key, "value": value}))


def _contains_type(types: Sequence[ColumnType], constants: Sequence[object]) -> ColumnType:
    common_type([types[0].parts[0], types[1].not_null()])
    return boolean


def _contains(value: Mapping[object, object], key: object) -> object:
    return key in value


def _concat(*maps: Mapping[object, object]) -> object:
    return _create_map(*(part for each in maps for pair in each.items() for part in pair))


def _concat_type(types: Sequence[ColumnType], constants: Sequence[object]) -> ColumnType:
    return common_type([type_.not_null() for type_ in types])


def _part(run: Callable[[object, object], object]) -> Combined:
    def combined(
        values: Sequence[object], constants: Sequence[object], types: Sequence[ColumnType]
    ) -> object:
        del constants, types
        return run(*values)

    return combined


_TWICE: Final = "has null for a key, or a key twice"
_NO_PLACE: Final = "has no element at this place"
_WHOLE: Final = Param("x", ("any", "array", "map"))

RECORDS: Final = (
    Function(name="item", family="lists and maps", accessor="",
             params=(Param("x", ("any", "array", "map", "struct")), _KEY), gives=lambda types: any_value,
             combined=_part(_at), typed=part_type, may_lack=True, failure=_NO_PLACE, fails_on=("array",),
             calls=(), spark="x[key]", polars="list.get",
             says="The element of an array at a place, from 0; of a map the value under a key, null if there "
             "is none; of a struct a field. The same as x[key]."),
    Function(name="element_at", family="lists and maps", accessor="list", params=(_WHOLE, _KEY),
             gives=lambda types: any_value, combined=_part(_element_at), typed=_element_type, may_lack=True,
             failure=_NO_PLACE, fails_on=("array",), spark="element_at",
             says="The value of an array at a place, counted from 1, or from the end if negative; of a map "
             "under a key, null if there is none."),
    Function(name="try_element_at", family="lists and maps", accessor="list", params=(_WHOLE, _KEY),
             gives=lambda types: any_value, combined=_part(_element_at), typed=_try_element_type,
             may_lack=True, spark="try_element_at",
             says="As `element_at`, but null where an array has no such place."),
    Function(name="named_struct", family="lists and maps", accessor=None,
             params=(Param("names_and_values", ANY_KIND),), gives=lambda types: any_value, many=True,
             skips_nulls=True, combined=_named_struct, typed=_struct_type, spark="named_struct",
             polars="struct", says="A struct of names of fields, each before its value."),
    of_nulls(array_function("create_map", (Param("keys_and_values", ANY_KIND),), _create_type, _create_map,
             "A map of keys, each before its value.", "", _TWICE), many=True),
    array_function("map_from_arrays", (Param("keys", ("array",)), Param("values", ("array",))),
                   _from_arrays_type, _from_arrays, "A map of an array of keys and one of their values.", "",
                   _TWICE + ", or not as many values as keys"),
    array_function("map_entries", (_MAP,), _entries_type, _entries,
                   "The keys and values of a map, as an array of structs."),
    array_function("map_contains_key", (_MAP, _KEY), _contains_type, _contains,
                   "True if the map has the key."),
    replace(array_function("map_concat", (_MAP,), _concat_type, _concat, "All maps as one.", "",
            "has a key twice"), many=True),
)  # fmt: skip
"""The functions that this file defines."""
