"""Which function of ours each expression of Spark's is, and where it differs, ours written out.

A form says what the operands are: `e` an expression, `k` a constant; behind `?` are those that may be
missing, and `*` are any number. docs/expressions.md has the table of the functions that differ.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from ...columns.column_types import array_of, floating, string
from ...errors import ExpressionError
from ...expressions.calls import catalogued, composed
from ...expressions.expression import Expr, coalesce, greatest, least, lit, when

__all__ = ["SPARK_FUNCTIONS", "SparkFunction", "plain_separator"]


@dataclass(frozen=True)
class SparkFunction:  # type: ignore[explicit-any]  # any function
    """What makes an expression of the operands, and their form."""

    make: Callable[..., Expr]  # type: ignore[explicit-any]  # any function
    form: str


def _above(least_value: float, make: Callable[[Expr], Expr]) -> Callable[[Expr], Expr]:
    """Return a logarithm that is null, as in Spark, where it is no finite number."""
    return lambda x: when(x > least_value).then(make(x))


def _replaced_by_pattern(text: Expr, pattern: str, new: str, start: int = 1) -> Expr:
    if start != 1:
        raise ExpressionError("takes no place to begin at")
    if "\\" in new:
        raise ExpressionError(f"{new!r}: a text with \\ in place of a match is not supported")
    return catalogued.regexp_replace(text, _pattern(pattern), re.sub(r"\$([0-9])", r"\\\1", new))


def _extracted_by_pattern(text: Expr, pattern: str, group: int = 1) -> Expr:
    extracted = catalogued.regexp_extract(text, _pattern(pattern), group)
    return when(text.is_not_null()).then(coalesce(extracted, lit("")))


def _pattern(pattern: str) -> str:
    """Return a regular expression of Java that RE2 reads alike; raise ExpressionError for others."""
    if re.search(r"\(\?[=!<]|[*+?}]\+|\\[1-9]|\\[pPkGQEZ]|&&", pattern):
        raise ExpressionError(f"{pattern!r}: this pattern of Java's is none of RE2's")
    return pattern


def plain_separator(pattern: str) -> str:
    """Return the text that a regular expression stands for; raise ExpressionError if it is no plain text."""
    plain = re.sub(r"\\([^a-zA-Z0-9])|\[([^a-zA-Z0-9\^\\])\]", lambda m: m[1] or m[2], pattern)
    if not pattern or re.search(r"[.$|()\[{^?*+\\]", re.sub(r"\\[^a-zA-Z0-9]|\[[^\^\\]\]", "", pattern)):
        raise ExpressionError(f"splits by a plain text, and {pattern!r} is a pattern")
    return plain


def _split(text: Expr, pattern: str, limit: int = -1) -> Expr:
    if limit != -1:
        raise ExpressionError("takes no limit")
    return catalogued.split(text, plain_separator(pattern)).cast(array_of(string))


def _padded(make: Callable[[Expr, int, str], Expr]) -> Callable[[Expr, int, str], Expr]:
    return lambda text, width, fill: catalogued.left(make(text, width, fill), width)


def _replaced(text: Expr, old: str, new: str = "") -> Expr:
    return text if old == "" else catalogued.replace(text, old, new)


def _like(text: Expr, pattern: str) -> Expr:
    return text.like(pattern)


def _between_signs(a: Expr, n: Expr) -> Expr:
    """Return Spark's pmod: what is left, made positive for a positive divisor."""
    rest = _rest(a, n)
    return when(rest < 0).then(_rest(rest + n, n)).otherwise(rest)


def _rest(a: Expr, n: Expr) -> Expr:
    rest = a.abs() % n.abs()
    return when(a < 0).then(-rest).otherwise(rest)


def _located(part: str, text: Expr, start: int) -> Expr:
    return composed.locate(part, text, start)


def _joined(separator: str, *texts: Expr) -> Expr:
    return composed.concat_ws(separator, *texts)


def _months_between(end: Expr, start: Expr, is_rounded: bool = True) -> Expr:
    if not is_rounded:
        raise ExpressionError("is rounded to 8 digits here")
    return catalogued.months_between(end, start)


def _gotten(list_: Expr, index: Expr) -> Expr:
    return when(index >= 0).then(catalogued.get(list_, index))


def _sorted(list_: Expr, ascending: bool = True) -> Expr:
    return catalogued.sort_array(list_, ascending)


def _float(make: Callable[..., Expr]) -> Callable[..., Expr]:  # type: ignore[explicit-any]  # any number
    return lambda *operands: make(*(each.cast(floating) for each in operands))


def _e(make: Callable[..., Expr], form: str = "e") -> SparkFunction:  # type: ignore[explicit-any]  # any
    return SparkFunction(make, form)


_C, _T = catalogued, composed

SPARK_FUNCTIONS: Final[Mapping[str, SparkFunction]] = {
    # texts
    "Upper": _e(_C.upper), "Lower": _e(_C.lower), "Length": _e(_C.length), "Reverse": _e(_C.reverse),
    "InitCap": _e(_C.initcap), "Ascii": _e(_C.ascii), "Chr": _e(_C.chr), "Md5": _e(_C.md5),
    "Sha1": _e(_C.sha1), "Sha2": _e(_C.sha2, "ek"), "Crc32": _e(_C.crc32), "Base64": _e(_C.base64),
    "UnBase64": _e(_C.unbase64), "Hex": _e(_C.hex), "Bin": _e(_C.bin), "BitLength": _e(
        lambda text: _C.octet_length(text) * 8), "OctetLength": _e(_C.octet_length),
    "StringTrim": _e(_T.trim, "e?k"), "StringTrimLeft": _e(_T.ltrim, "e?k"),
    "StringTrimRight": _e(_T.rtrim, "e?k"), "StringTrimBoth": _e(_T.trim, "e?k"),
    "Contains": _e(_C.contains, "ek"), "StartsWith": _e(_C.startswith, "ek"),
    "EndsWith": _e(_C.endswith, "ek"), "Like": _e(_like, "ek"),
    "ILike": _e(lambda text, pattern: _C.lower(text).like(pattern.lower()), "ek"),
    "RLike": _e(lambda text, pattern: _C.rlike(text, _pattern(pattern)), "ek"),
    "RegExpReplace": _e(_replaced_by_pattern, "ekk?k"), "RegExpExtract": _e(_extracted_by_pattern, "ek?k"),
    "Substring": _e(_T.substring, "ekk"), "Left": _e(_C.left, "ek"), "Right": _e(_C.right, "ek"),
    "StringLPad": _e(_padded(_C.lpad), "ekk"), "StringRPad": _e(_padded(_C.rpad), "ekk"),
    "StringRepeat": _e(_C.repeat, "ek"), "StringReplace": _e(_replaced, "ek?k"),
    "StringTranslate": _e(_C.translate, "ekk"), "StringInstr": _e(_C.instr, "ek"),
    "StringLocate": _e(_located, "kek"), "SubstringIndex": _e(_C.substring_index, "ekk"),
    "SplitPart": _e(_C.split_part, "ekk"), "StringSplit": _e(_split, "ek?k"),
    "Concat": _e(_C.concat, "*"), "ConcatWs": _e(_joined, "k*"), "FormatNumber": _e(_C.format_number, "ek"),
    "FormatString": _e(_T.format_string, "k*"), "XxHash64": _e(_C.xxhash64, "e*"),
    "GetJsonObject": _e(_C.get_json_object, "ek"),
    # numbers
    "Abs": _e(_T.abs), "Floor": _e(_C.floor), "Ceil": _e(_C.ceil), "Signum": _e(_C.signum),
    "Sqrt": _e(_float(_C.sqrt)), "Exp": _e(_float(_C.exp)),
    "Log": _e(_above(0, _C.log)), "Log2": _e(_above(0, _C.log2)), "Log10": _e(_above(0, _C.log10)),
    "Log1p": _e(_above(-1, _C.log1p)), "Expm1": _e(_C.expm1), "Pow": _e(_float(_C.power), "ee"),
    "Sin": _e(_C.sin), "Cos": _e(_C.cos), "Tan": _e(_C.tan), "Asin": _e(_C.asin), "Acos": _e(_C.acos),
    "Atan": _e(_C.atan), "Sinh": _e(_C.sinh), "Cosh": _e(_C.cosh), "Tanh": _e(_C.tanh),
    "Cbrt": _e(_C.cbrt), "ToDegrees": _e(_C.degrees), "ToRadians": _e(_C.radians),
    "Atan2": _e(_C.atan2, "ee"), "Hypot": _e(_C.hypot, "ee"), "Round": _e(_C.round, "ek"),
    "BRound": _e(_C.bround, "ek"), "Pmod": _e(_between_signs, "ee"), "Greatest": _e(greatest, "*"),
    "Least": _e(least, "*"), "IsNaN": _e(_T.isnan), "NaNvl": _e(_T.nanvl, "ee"),
    "BitwiseAnd": _e(_C.bitwise_and, "ee"), "BitwiseOr": _e(_C.bitwise_or, "ee"),
    "BitwiseXor": _e(_C.bitwise_xor, "ee"), "BitwiseNot": _e(_C.bitwise_not),
    "BitwiseCount": _e(_C.bit_count), "ShiftLeft": _e(_C.shiftleft, "ee"),
    "ShiftRight": _e(_C.shiftright, "ee"),
    # arrays, maps, structs
    "Size": _e(_C.size), "ArraySize": _e(_C.size), "ArrayContains": _e(_C.array_contains, "ee"),
    "Get": _e(_gotten, "ee"), "ElementAt": _e(_C.element_at, "ee"), "CreateArray": _e(_C.array, "*"),
    "CreateMap": _e(_C.create_map, "*"), "MapKeys": _e(_C.map_keys), "MapValues": _e(_C.map_values),
    "MapEntries": _e(_C.map_entries), "SortArray": _e(_sorted, "ek"),
    "ArrayDistinct": _e(_C.array_distinct), "ArrayUnion": _e(_C.array_union, "ee"),
    "ArrayIntersect": _e(_C.array_intersect, "ee"), "ArrayExcept": _e(_C.array_except, "ee"),
    "ArraysOverlap": _e(_C.arrays_overlap, "ee"), "ArrayJoin": _e(_C.array_join, "ek?k"),
    "ArrayPosition": _e(_C.array_position, "ee"), "ArrayRemove": _e(_C.array_remove, "ee"),
    "ArrayAppend": _e(_C.array_append, "ee"), "ArrayPrepend": _e(_C.array_prepend, "ee"),
    "ArrayCompact": _e(_C.array_compact), "ArrayRepeat": _e(_C.array_repeat, "ee"),
    "Slice": _e(_C.slice, "eee"), "Flatten": _e(_C.flatten), "ArrayMin": _e(_C.array_min),
    "ArrayMax": _e(_C.array_max), "Sequence": _e(_C.sequence, "ee?e"), "MapConcat": _e(_C.map_concat, "*"),
    "MapContainsKey": _e(_C.map_contains_key, "ee"), "MapFromArrays": _e(_C.map_from_arrays, "ee"),
    # dates without zones
    "LastDay": _e(_C.last_day), "NextDay": _e(_C.next_day, "ek"), "DateDiff": _e(_T.datediff, "ee"),
    "MonthsBetween": _e(_months_between, "ee?k"), "MakeDate": _e(_C.make_date, "eee"),
    "UnixDate": _e(_T.unix_date), "SecondsToTimestamp": _e(_T.timestamp_seconds),
    "MillisToTimestamp": _e(_T.timestamp_millis), "MicrosToTimestamp": _e(_T.timestamp_micros),
    "UnixSeconds": _e(_C.unix_seconds), "UnixMillis": _e(_T.unix_millis), "UnixMicros": _e(_T.unix_micros),
    "DayOfWeek": _e(_T.dayofweek), "WeekDay": _e(_T.weekday), "DayOfYear": _e(_C.dayofyear),
    "Year": _e(_C.year), "YearOfWeek": _e(lambda t: _T.extract("yearofweek", t)),
    "Quarter": _e(_C.quarter), "Month": _e(_C.month), "WeekOfYear": _e(_C.weekofyear),
    "DayOfMonth": _e(_C.dayofmonth), "DayName": _e(_T.dayname), "MonthName": _e(_T.monthname),
    "AddMonths": _e(lambda day, count: day.dt.add_months(count), "ee"),
    "DateAdd": _e(lambda day, count: day.dt.add_days(count), "ee"),
    "DateSub": _e(lambda day, count: day.dt.add_days(-count), "ee"),
    "TruncDate": _e(_T.trunc, "ek"),
}  # fmt: skip
