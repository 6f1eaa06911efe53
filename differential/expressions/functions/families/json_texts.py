"""Texts of JSON: what is at a path of one, values of a declared type made of one, and one made of values.

A path of `get_json_object` is `$`, followed by any number of `.name`, `['name']` and `[number]`, which are
those of Spark that have at most one result; `*` and `..` are refused.

`from_json` reads as Spark does by default (PERMISSIVE): every part of its result may be null. A part that
does not fit its type is null, and the parts beside it are there. Of a text that is no JSON every field of a
struct is null, and an array or map is null as a whole.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from functools import lru_cache
from json.encoder import encode_basestring
from typing import Final, NoReturn, TypeAlias, cast

from differential.columns.column_types import ColumnType, any_value, as_column_type, string
from differential.errors import SchemaError
from differential.expressions.functions.function import Function, Param, always

__all__ = ["JSON", "every_part_or_null"]

_TEXT: Final = Param("text", ("string",))
_STEP: Final = re.compile(r"\.([^.\[\]'*]+)|\['([^']+)'\]|\[([0-9]{1,18})\]")
_DAY: Final = re.compile(r"\s*([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})(?=[ T]|$)")
_EXACT: Final = Context(prec=60, traps=[InvalidOperation])
_BAD: Final = object()
"""What a reader returns for a part that does not fit its type."""

_Reader: TypeAlias = Callable[[object], object]


@lru_cache(maxsize=256)
def _path_steps(path: str) -> tuple[str | int, ...]:
    """Return the names and numbers of a path; raises ValueError for one that is not of this form."""
    steps: list[str | int] = []
    place = 1
    while path.startswith("$") and place < len(path):
        match = _STEP.match(path, place)
        if match is None:
            break
        steps.append(int(match[3]) if match[3] is not None else match[1] or match[2])
        place = match.end()
    if not path.startswith("$") or place < len(path):
        raise ValueError(f"{path!r} is no path of the form $.name, $['name'] or $[0], or several of these")
    return tuple(steps)


def _check_path(constants: Sequence[object]) -> None:
    _path_steps(cast("str", constants[0]))


def _first_of_each(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return an object of JSON; of a name that it has twice, the first counts, as in Spark."""
    first: dict[str, object] = {}
    for name, value in pairs:
        first.setdefault(name, value)
    return first


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _get_json_object(text: object, constants: Sequence[object]) -> object:
    try:
        value: object = json.loads(
            cast("str", text), object_pairs_hook=_first_of_each, parse_constant=_refuse
        )
        for step in _path_steps(cast("str", constants[0])):
            if isinstance(value, dict) and isinstance(step, str):
                value = cast("dict[str, object]", value).get(step)
            elif isinstance(value, list) and isinstance(step, int) and step < len(value):
                value = cast("list[object]", value)[step]
            else:
                return None
        if value is None:
            return None
        result = value if isinstance(value, str) else _written(value)
        result.encode()  # half of a pair of surrogates is JSON, but no text
    except (ValueError, RecursionError):
        return None
    return result


def _written(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class _Float(float):
    """A number of JSON with its text, which a decimal is made of."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> _Float:
        number = super().__new__(cls, text)
        number.text = text
        return number


_DECODER: Final = json.JSONDecoder(parse_float=_Float)
"""What is behind the first value of a text does not count, as in Spark."""


def every_part_or_null(type_: ColumnType) -> ColumnType:
    """Return the type with nulls allowed in every part, and as a whole."""
    parts = tuple(map(every_part_or_null, type_.parts))
    if type_.kind == "map":
        parts = (type_.parts[0], parts[1])
    return ColumnType(type_.kind, True, type_.precision, type_.scale, parts, type_.names)


@lru_cache(maxsize=256)
def _declared(schema: str) -> ColumnType:
    """Return the type of the result; ValueError for a text that names none."""
    try:
        type_ = as_column_type(schema)
    except SchemaError as error:
        raise ValueError(str(error).partition("\n")[0]) from None
    if not type_.is_nested:
        raise ValueError(f"{schema!r} is no type of a struct, array or map, as 'struct<a: int, b: string>'")
    if _has_other_keys(type_):
        raise ValueError(f"{schema!r}: JSON has texts for keys of maps")
    return every_part_or_null(type_)


def _has_other_keys(type_: ColumnType) -> bool:
    return (type_.kind == "map" and type_.parts[0].kind != "string") or any(map(_has_other_keys, type_.parts))


def _check_schema(constants: Sequence[object]) -> None:
    _declared(cast("str", constants[0]))


def _from_json_type(types: Sequence[ColumnType], constants: Sequence[object]) -> ColumnType:
    return _declared(cast("str", constants[1]))


def _from_json(text: object, constants: Sequence[object]) -> object:
    type_ = _declared(cast("str", constants[0]))
    if not cast("str", text).strip():
        return None
    try:
        value, _ = _DECODER.raw_decode(cast("str", text).lstrip())
        if type_.kind == "array" and type_.parts[0].kind == "struct" and isinstance(value, dict):
            value = [value]
        result = _BAD if value is None else _reader(type_)(value)
    except (ValueError, RecursionError):
        result = _BAD
    if result is not _BAD:
        return result
    return dict.fromkeys(type_.names) if type_.kind == "struct" else None


@lru_cache(maxsize=1_024)
def _reader(type_: ColumnType) -> _Reader:
    """Return the function from a value of JSON to one of this type."""
    read = {"struct": _struct_reader, "array": _array_reader, "map": _map_reader}.get(
        type_.kind, _plain_reader
    )(type_)
    return lambda value: None if value is None else read(value)


def _part(read: _Reader, value: object) -> object:
    result = read(value)
    return None if result is _BAD else result


def _struct_reader(type_: ColumnType) -> _Reader:
    fields = [(name, _reader(part)) for name, part in zip(type_.names, type_.parts, strict=True)]

    def read(value: object) -> object:
        if type(value) is not dict:
            return _BAD
        record = cast("Mapping[str, object]", value)
        return {name: _part(part, record.get(name)) for name, part in fields}

    return read


def _array_reader(type_: ColumnType) -> _Reader:
    element = _reader(type_.parts[0])

    def read(value: object) -> object:
        if type(value) is not list:
            return _BAD
        parts = [element(part) for part in cast("list[object]", value)]
        return _BAD if _BAD in parts else parts

    return read


def _map_reader(type_: ColumnType) -> _Reader:
    entry = _reader(type_.parts[1])

    def read(value: object) -> object:
        if type(value) is not dict:
            return _BAD
        items = cast("Mapping[str, object]", value).items()
        parts = {_whole_text(key): entry(part) for key, part in items}
        return _BAD if _BAD in parts.values() else parts

    return read


def _whole_text(text: str) -> str:
    """Return the text with a question mark in place of half of a pair of surrogates."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _plain_reader(type_: ColumnType) -> _Reader:
    if type_.kind == "decimal":
        return lambda value: _decimal(value, type_)
    return {
        "int": _int, "float": _float, "bool": lambda value: value if type(value) is bool else _BAD,
        "string": _string, "bytes": _bytes, "date": _date, "timestamp": _timestamp,
    }[type_.kind]  # fmt: skip


def _int(value: object) -> object:
    return value if type(value) is int and -(2**63) <= value < 2**63 else _BAD


_NO_NUMBERS: Final = {
    "NaN": math.nan, "+INF": math.inf, "Infinity": math.inf, "+Infinity": math.inf, "-INF": -math.inf,
    "-Infinity": -math.inf,
}  # fmt: skip


def _float(value: object) -> object:
    if isinstance(value, float):
        return float(value)
    if type(value) is int:
        return float(value)
    return _NO_NUMBERS.get(value, _BAD) if isinstance(value, str) else _BAD


def _string(value: object) -> object:
    return _whole_text(value if isinstance(value, str) else _written(value))


def _decimal(value: object, type_: ColumnType) -> object:
    text = value.text if isinstance(value, _Float) else value
    if type(text) is bool or not isinstance(text, str | int):
        return _BAD
    try:
        number = Decimal(text).quantize(Decimal(1).scaleb(-type_.scale), ROUND_HALF_UP, _EXACT)
    except InvalidOperation:
        return _BAD
    whole = 10 ** (type_.precision - type_.scale)
    return number if number.is_finite() and abs(number) < whole else _BAD


def _bytes(value: object) -> object:
    try:
        return base64.b64decode(value, validate=True) if isinstance(value, str) else _BAD
    except (binascii.Error, ValueError):
        return _BAD


def _date(value: object) -> object:
    match = _DAY.match(value) if isinstance(value, str) else None
    try:
        return _BAD if match is None else dt.date(*map(int, match.groups()))
    except ValueError:
        return _BAD


def _timestamp(value: object) -> object:
    try:
        if type(value) is int:
            return dt.datetime.fromtimestamp(value, dt.UTC)
        match = _DAY.match(value) if isinstance(value, str) else None
        if match is None:
            return _BAD
        year, month, day = match.groups()
        read = dt.datetime.fromisoformat(
            f"{year}-{month:0>2}-{day:0>2}{match.string[match.end() :].rstrip()}"
        )
    except (ValueError, OverflowError, OSError):
        return _BAD
    return read.replace(tzinfo=dt.UTC) if read.tzinfo is None else read


def _to_json(values: Sequence[object], constants: Sequence[object], types: Sequence[ColumnType]) -> object:
    del constants
    return _text(values[0], types[0])


def _text(value: object, type_: ColumnType) -> str:
    """Return a value as Spark writes it: fields that are null are left out."""
    if value is None:
        return "null"
    if type_.kind == "struct":
        record = cast("Mapping[str, object]", value)
        pairs = zip(type_.names, type_.parts, strict=True)
        return _object(
            [(name, _text(record[name], part)) for name, part in pairs if record[name] is not None]
        )
    if type_.kind == "array":
        return f"[{','.join(_text(part, type_.parts[0]) for part in cast('Sequence[object]', value))}]"
    if type_.kind == "map":
        items = cast("Mapping[object, object]", value).items()
        return _object([(_key(key), _text(part, type_.parts[1])) for key, part in items])
    if isinstance(value, tuple):  # of type any
        return f"[{','.join(_text(part, type_) for part in value)}]"
    if isinstance(value, dict):
        return _object([(_key(key), _text(part, type_)) for key, part in value.items()])
    return _leaf(value)


def _object(pairs: Sequence[tuple[str, str]]) -> str:
    return f"{{{','.join(f'{encode_basestring(name)}:{text}' for name, text in pairs)}}}"


def _key(key: object) -> str:
    return key if isinstance(key, str) else _leaf(key).strip('"')


def _leaf(value: object) -> str:
    if isinstance(value, str):
        return encode_basestring(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _float_text(value)
    if isinstance(value, bytes):
        return f'"{base64.b64encode(value).decode()}"'
    if isinstance(value, dt.datetime):
        plain = value.astimezone(dt.UTC).replace(tzinfo=None)
        return f'"{plain.isoformat(timespec="milliseconds")}Z"'
    if isinstance(value, dt.date):
        return f'"{value.isoformat()}"'
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def _float_text(value: float) -> str:
    """Return the text of a number as Java writes it: from 10^7 on, and below 10^-3, with an exponent."""
    if not math.isfinite(value):
        return '"NaN"' if value != value else '"Infinity"' if value > 0 else '"-Infinity"'
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    exact = Decimal(repr(value))
    digits = "".join(map(str, exact.as_tuple().digits)).rstrip("0")
    return f"{'-' * (value < 0)}{digits[0]}.{digits[1:] or '0'}E{exact.adjusted()}"


JSON: Final = (
    Function(name="get_json_object", family="lists and maps", accessor="str",
             params=(_TEXT, Param("path", ("string",), is_constant=True)),
             gives=always(string), python=_get_json_object, may_lack=True, check=_check_path,
             says="What is in a text of JSON at a path as '$.name[0]', as text; null if there is nothing.",
             spark="get_json_object", polars="str.json_path_match"),
    Function(name="from_json", family="lists and maps", accessor="str", calls=(),
             params=(_TEXT, Param("schema", ("string",), is_constant=True)),
             gives=lambda types: any_value, typed=_from_json_type, python=_from_json, may_lack=True,
             check=_check_schema, spark="from_json", polars="str.json_decode",
             says="The value of a text of JSON, of a type as 'struct<a: int, b: array<string>>'; each part "
             "that does not fit is null."),
    Function(name="to_json", family="lists and maps", accessor="list",
             params=(Param("x", ("any", "array", "struct", "map")),), gives=always(string), combined=_to_json,
             spark="to_json", polars="struct.json_encode",
             says="The value as a text of JSON; fields of structs that are null are left out."),
)  # fmt: skip
"""The functions that this file defines."""
