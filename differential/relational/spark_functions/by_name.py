"""The functions of rows by Spark's names: which expression of Spark's each is."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

from ...errors import ExpressionError
from ...expressions.calls import catalogued, composed
from ...expressions.expression import Expr, lit, when
from .by_class import SPARK_FUNCTIONS, SparkFunction
from .formats import strftime_of

__all__ = ["BY_FORM", "BY_TEXT", "CASTS", "IN_TEXTS", "NAMED"]

BY_TEXT: Final = (
    "abs", "add_months", "ceil", "ceiling", "char_length", "character_length", "coalesce", "concat",
    "crc32", "date_add", "date_diff", "date_sub", "date_trunc", "dateadd", "datediff", "day",
    "dayofyear", "exp", "floor", "greatest", "hour", "ifnull", "instr", "last_day", "lcase", "least", "left",
    "length", "ln", "locate", "lower", "md5", "minute", "month", "nullif", "nvl", "pow",
    "power", "quarter", "repeat", "reverse", "right", "round", "second", "sign", "signum", "sqrt",
    "substr", "substring", "trim", "trunc", "ucase", "upper", "year",
)  # fmt: skip
"""Functions that our reader of SQL has: what they mean depends on the types of their operands."""

_CLASSES: Final[Mapping[str, str]] = {
    # texts
    "ascii": "Ascii", "base64": "Base64", "bin": "Bin", "bit_length": "BitLength", "char": "Chr",
    "concat_ws": "ConcatWs", "contains": "Contains", "endswith": "EndsWith", "format_number": "FormatNumber",
    "format_string": "FormatString", "printf": "FormatString", "xxhash64": "XxHash64",
    "get_json_object": "GetJsonObject", "hex": "Hex", "ilike": "ILike", "initcap": "InitCap",
    "like": "Like", "ltrim": "StringTrimLeft", "lpad": "StringLPad", "octet_length": "OctetLength",
    "regexp": "RLike", "regexp_extract": "RegExpExtract", "regexp_like": "RLike",
    "regexp_replace": "RegExpReplace", "replace": "StringReplace", "rlike": "RLike",
    "rpad": "StringRPad", "rtrim": "StringTrimRight", "sha": "Sha1", "sha1": "Sha1", "sha2": "Sha2",
    "split": "StringSplit", "split_part": "SplitPart", "startswith": "StartsWith",
    "substring_index": "SubstringIndex",
    "translate": "StringTranslate", "unbase64": "UnBase64",
    # numbers
    "acos": "Acos", "asin": "Asin", "atan": "Atan", "atan2": "Atan2", "bit_count": "BitwiseCount",
    "bitwise_not": "BitwiseNot", "bround": "BRound", "cbrt": "Cbrt", "cos": "Cos", "cosh": "Cosh",
    "degrees": "ToDegrees", "expm1": "Expm1", "hypot": "Hypot", "isnan": "IsNaN", "log10": "Log10",
    "log1p": "Log1p", "log2": "Log2", "nanvl": "NaNvl", "pmod": "Pmod", "radians": "ToRadians",
    "shiftleft": "ShiftLeft", "shiftright": "ShiftRight", "sin": "Sin", "sinh": "Sinh", "tan": "Tan",
    "tanh": "Tanh",
    # arrays, maps
    "array": "CreateArray", "array_append": "ArrayAppend", "array_compact": "ArrayCompact",
    "array_contains": "ArrayContains", "array_distinct": "ArrayDistinct", "array_except": "ArrayExcept",
    "array_intersect": "ArrayIntersect", "array_join": "ArrayJoin", "array_max": "ArrayMax",
    "array_min": "ArrayMin", "array_position": "ArrayPosition", "array_prepend": "ArrayPrepend",
    "array_remove": "ArrayRemove", "array_repeat": "ArrayRepeat", "array_size": "ArraySize",
    "array_union": "ArrayUnion", "arrays_overlap": "ArraysOverlap", "cardinality": "Size",
    "create_map": "CreateMap", "element_at": "ElementAt", "flatten": "Flatten", "get": "Get",
    "map_concat": "MapConcat", "map_contains_key": "MapContainsKey", "map_entries": "MapEntries",
    "map_from_arrays": "MapFromArrays", "map_keys": "MapKeys", "map_values": "MapValues",
    "sequence": "Sequence", "size": "Size", "slice": "Slice",
    # dates
    "dayname": "DayName", "dayofmonth": "DayOfMonth", "dayofweek": "DayOfWeek", "make_date": "MakeDate",
    "monthname": "MonthName", "months_between": "MonthsBetween", "next_day": "NextDay",
    "timestamp_micros": "MicrosToTimestamp", "timestamp_millis": "MillisToTimestamp",
    "timestamp_seconds": "SecondsToTimestamp", "unix_date": "UnixDate", "unix_micros": "UnixMicros",
    "unix_millis": "UnixMillis", "unix_seconds": "UnixSeconds", "weekday": "WeekDay",
    "weekofyear": "WeekOfYear",
}  # fmt: skip


def _formatted(t: Expr, pattern: str) -> Expr:
    return catalogued.date_format(t, strftime_of(pattern))


def _from_unixtime(seconds: Expr, pattern: str = "yyyy-MM-dd HH:mm:ss") -> Expr:
    return _formatted(composed.timestamp_seconds(seconds), pattern)


def _parsed(kind: str, make: Callable[[Expr, str], Expr]) -> Callable[..., Expr]:  # type: ignore[explicit-any]
    def parsed(text: Expr, pattern: str | None = None) -> Expr:
        return text.cast(kind) if pattern is None else make(text, strftime_of(pattern))

    return parsed


def _sort_array(array: Expr, asc: bool = True) -> Expr:
    return catalogued.sort_array(array, asc)


BY_FORM: Final[Mapping[str, SparkFunction]] = {
    **{name: SPARK_FUNCTIONS[kind] for name, kind in _CLASSES.items()},
    "date_format": SparkFunction(_formatted, "ek"),
    "from_unixtime": SparkFunction(_from_unixtime, "e?k"),
    "from_utc_timestamp": SparkFunction(catalogued.from_utc_timestamp, "ek"),
    "to_utc_timestamp": SparkFunction(catalogued.to_utc_timestamp, "ek"),
    "sort_array": SparkFunction(_sort_array, "e?k"),
    "to_date": SparkFunction(_parsed("date", catalogued.to_date), "e?k"),
    "to_timestamp": SparkFunction(_parsed("timestamp", catalogued.to_timestamp), "e?k"),
    "try_to_date": SparkFunction(_parsed("date", catalogued.try_to_date), "ek"),
    "try_to_timestamp": SparkFunction(_parsed("timestamp", catalogued.try_to_timestamp), "ek"),
    "isnull": SparkFunction(lambda x: x.is_null(), "e"),
    "isnotnull": SparkFunction(lambda x: x.is_not_null(), "e"),
    "negative": SparkFunction(lambda x: -x, "e"),
    "negate": SparkFunction(lambda x: -x, "e"),
    "nvl2": SparkFunction(composed.nvl2, "eee"),
    "try_element_at": SparkFunction(catalogued.try_element_at, "ee"),
    "unix_timestamp": SparkFunction(composed.unix_timestamp, "e"),
    "to_unix_timestamp": SparkFunction(composed.unix_timestamp, "e"),
}
"""Functions that are one of ours, or are made of ours."""


def _filled(function: SparkFunction) -> Callable[..., Expr]:  # type: ignore[explicit-any]
    return lambda text, width, fill=" ": function.make(text, width, fill)


def _logarithm(base: float, x: Expr) -> Expr:
    if base <= 0:
        raise ExpressionError("takes a positive base")
    return when(x > 0).then(catalogued.log(x, base))


def _trimmed(make: Callable[[Expr, str], Expr]) -> Callable[[str, Expr], Expr]:
    return lambda characters, text: make(text, characters)


def _extracted(field: str, t: Expr) -> Expr:
    return composed.extract(field, t)


def _truncated_time(unit: str, t: Expr) -> Expr:
    return composed.date_trunc(unit, t.cast("timestamp"))


def _seconds_of_text(text: Expr, pattern: str = "yyyy-MM-dd HH:mm:ss") -> Expr:
    return composed.unix_timestamp(catalogued.to_timestamp(text, strftime_of(pattern)))


IN_TEXTS: Final[Mapping[str, tuple[SparkFunction, ...]]] = {
    **{name: (function,) for name, function in BY_FORM.items()},
    "btrim": (SparkFunction(composed.trim, "e?k"),),
    "ltrim": (SparkFunction(composed.ltrim, "e"), SparkFunction(_trimmed(composed.ltrim), "ke")),
    "rtrim": (SparkFunction(composed.rtrim, "e"), SparkFunction(_trimmed(composed.rtrim), "ke")),
    "log": (SPARK_FUNCTIONS["Log"], SparkFunction(_logarithm, "ke")),
    "ln": (SPARK_FUNCTIONS["Log"],),
    "lpad": (SparkFunction(_filled(SPARK_FUNCTIONS["StringLPad"]), "ek?k"),),
    "rpad": (SparkFunction(_filled(SPARK_FUNCTIONS["StringRPad"]), "ek?k"),),
    "crc32": (SPARK_FUNCTIONS["Crc32"],),
    "chr": (SPARK_FUNCTIONS["Chr"],),
    "instr": (SPARK_FUNCTIONS["StringInstr"],),
    "locate": (SparkFunction(composed.locate, "ke?k"),),
    "replace": (SPARK_FUNCTIONS["StringReplace"],),
    "bround": (SparkFunction(catalogued.bround, "e?k"),),
    "map": (SPARK_FUNCTIONS["CreateMap"],),
    "from_json": (SparkFunction(composed.from_json, "ek"),),
    "to_json": (SparkFunction(catalogued.to_json, "e"),),
    "unhex": (SparkFunction(catalogued.unhex, "e"),),
    "shiftrightunsigned": (SparkFunction(catalogued.shiftrightunsigned, "ee"),),
    "date_part": (SparkFunction(_extracted, "ke"),),
    "datepart": (SparkFunction(_extracted, "ke"),),
    "trunc": (SPARK_FUNCTIONS["TruncDate"],),
    "date_trunc": (SparkFunction(_truncated_time, "ke"),),
    "unix_timestamp": (SparkFunction(composed.unix_timestamp, "e"), SparkFunction(_seconds_of_text, "ek")),
    "e": (SparkFunction(lambda: lit(math.e), ""),),
    "pi": (SparkFunction(lambda: lit(math.pi), ""),),
}
"""Functions of SQL texts, with the operands as a text has them; the form is the first that has as many."""

CASTS: Final = frozenset(
    ("bigint", "binary", "boolean", "date", "double", "int", "smallint", "string", "timestamp", "tinyint")
)
"""Functions that cast to the type of that name."""

_ALIKE: Final = (
    "ascii", "atan", "atan2", "cbrt", "concat_ws", "cos", "cosh", "degrees", "octet_length", "radians", "sin",
    "sinh", "tan", "tanh", "translate",
)  # fmt: skip
"""What Postgres and DuckDB have under the same name in the same sense."""

NAMED: Final[Mapping[str, frozenset[str]]] = {
    "spark": frozenset((*IN_TEXTS, *CASTS, "struct", "named_struct"))
    - {"bitwise_not", "create_map", "negate"},
    "postgres": frozenset(_ALIKE),
    "duckdb": frozenset((*_ALIKE, "bit_count", "sha1")) - {"octet_length"},
}
"""By dialect, the functions that texts call by Spark's name, and in its sense."""
