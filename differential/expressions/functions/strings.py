"""Functions of strings, by Arrow's kernels; characters are counted, not bytes.

Patterns are regular expressions of RE2, as in Arrow, DuckDB and Polars (no look-around, and no text on which
they take exponential time); a match may be anywhere in the string. In a replacement, `\\1` stands for a
group.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias, cast

import pyarrow as pa

from differential.columns.column_types import ColumnType, any_value, boolean, integer, string
from differential.expressions.functions.families.elements import same_arrays
from differential.expressions.functions.function import Arrow, Function, Gives, Param, always
from timely.wire.arrow import pc, text_array

__all__ = ["STRINGS"]

_CHARACTERS_MAX: Final = 1 << 33
"""More characters than a text has."""

_TEXT: Final = Param("text", ("string",))
_PATTERN: Final = Param("pattern", ("string",), is_constant=True)
_OTHER: Final = Param("part", ("string",), is_constant=True)


def _plain(
    name: str,
    kernel: Callable[[pa.Array], pa.Array],
    says: str,
    spark: str,
    polars: str,
    gives: Gives,
    calls: tuple[str, ...] | None = None,
) -> Function:
    return Function(
        name=name,
        family="strings",
        accessor="str",
        params=(_TEXT,),
        gives=gives,
        says=says,
        spark=spark,
        polars=polars,
        calls=calls,
        arrow=lambda columns, constants: kernel(columns[0]),
    )


def _with(
    name: str,
    params: tuple[Param, ...],
    run: Arrow,
    says: str,
    spark: str,
    polars: str,
    gives: Gives,
    calls: tuple[str, ...] | None = None,
) -> Function:
    return Function(
        name=name,
        family="strings",
        accessor="str",
        params=(_TEXT, *params),
        gives=gives,
        says=says,
        spark=spark,
        polars=polars,
        calls=calls,
        arrow=run,
    )


def _constant(name: str, optional: bool = False) -> Param:
    return Param(name, ("string",), is_constant=True, is_optional=optional)


def _count(name: str, optional: bool = False) -> Param:
    return Param(name, ("int",), is_constant=True, is_optional=optional)


def _stripped(plain: Callable[[pa.Array], pa.Array], kernel: Callable[[pa.Array, str], pa.Array]) -> Arrow:
    return lambda columns, constants: (
        kernel(columns[0], cast("str", constants[0])) if constants else plain(columns[0])
    )


def _slice(columns: Sequence[pa.Array], constants: Sequence[object]) -> pa.Array:
    start = _within(cast("int", constants[0]))
    if len(constants) < 2:
        return pc.utf8_slice_codeunits(columns[0], start)
    stop = start + max(0, _within(cast("int", constants[1])))
    # Both count from the end, as in Python, except that a stop of 0 is the end. Positions before the
    # beginning of a shorter text count, as in Spark and Polars: 'ab' from -5 on, 4 characters, is 'a'.
    return pc.utf8_slice_codeunits(columns[0], start, None if start < 0 <= stop else stop)


def _within(count: int) -> int:
    return max(-_CHARACTERS_MAX, min(_CHARACTERS_MAX, count))


def _extract(columns: Sequence[pa.Array], constants: Sequence[object]) -> pa.Array:
    pattern = cast("str", constants[0])
    group = cast("int", constants[1]) if len(constants) > 1 else 1
    named, groups = _named_groups(pattern)
    if not 0 <= group <= groups:
        raise ValueError(f"there is no group {group} in {pattern!r}, which has {groups}")
    match = pc.extract_regex(columns[0], pattern=f"(?P<g0>{named})")
    field = pc.struct_field(match, f"g{group}") if len(match) else pa.array([], pa.string())
    return pc.if_else(match.is_valid(), field, pa.scalar(None, pa.string()))


_GROUP: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\((?:\?P?<[A-Za-z_]\w*>|(?!\?))", re.DOTALL)


def _named_groups(pattern: str) -> tuple[str, int]:
    """Return the pattern with its groups called g1, g2, …, as Arrow needs them, and their number."""
    count = 0

    def name(match: re.Match[str]) -> str:
        nonlocal count
        if not match[0].startswith("("):
            return match[0]
        count += 1
        return f"(?P<g{count}>"

    return _GROUP.sub(name, pattern), count


def _concat(columns: Sequence[pa.Array], constants: Sequence[object]) -> pa.Array:
    return pc.binary_join_element_wise(*columns, "", null_handling="emit_null")


def _concat_ws(columns: Sequence[pa.Array], constants: Sequence[object]) -> pa.Array:
    # Arrow would leave out a row in which all are null; so there the first one becomes an empty text.
    is_nothing = columns[0].is_null()
    for column in columns[1:]:
        is_nothing = pc.and_(is_nothing, column.is_null())
    first = pc.if_else(is_nothing, "", columns[0])
    return pc.binary_join_element_wise(first, *columns[1:], cast("str", constants[0]), null_handling="skip")


def _padded(kernel: Callable[[pa.Array, int, str], pa.Array]) -> Arrow:
    return lambda columns, constants: kernel(
        columns[0], cast("int", constants[0]), cast("str", constants[1]) if len(constants) > 1 else " "
    )


def _matching(kernel: Callable[[pa.Array, str], pa.Array]) -> Arrow:
    return lambda columns, constants: kernel(columns[0], cast("str", constants[0]))


def _replacing(kernel: Callable[[pa.Array, str, str], pa.Array]) -> Arrow:
    return lambda columns, constants: kernel(columns[0], cast("str", constants[0]), cast("str", constants[1]))


_Kernel: TypeAlias = Callable[[pa.Array], pa.Array]


def _cased(kernel: _Kernel, python: Callable[[str], str]) -> _Kernel:
    """Return Arrow's kernel for texts of ASCII, with Python for others, once for each different value.

    Arrow's kernel has no letter that becomes several, as ß becomes SS, and no final sigma.
    """

    def cased(array: pa.Array) -> pa.Array:
        if pc.all(pc.string_is_ascii(array)).as_py() is not False:
            return kernel(array)
        recased = text_array([python(text or "") for text in array.to_pylist()]).cast(array.type)
        return (
            pc.if_else(array.is_valid(), recased, pa.nulls(len(recased), recased.type))
            if array.null_count
            else recased
        )

    return cased


def _initcap(text: str) -> str:
    return " ".join(word[:1].title() + word.lower()[len(word[:1].lower()) :] for word in text.split(" "))


def _check_old(constants: Sequence[object]) -> None:
    if constants[0] == "":
        raise ValueError("an empty text is everywhere, and cannot be replaced")


def _check_separator(constants: Sequence[object]) -> None:
    if constants[0] == "":
        raise ValueError("an empty text separates nothing; of single characters write x.str.slice(0, 1)")


_STRING: Final = always(string)
_YES_OR_NO: Final = always(boolean)


def _concat_type(types: Sequence[ColumnType], constants: Sequence[object]) -> ColumnType:
    return string if types[0].kind == "string" == types[-1].kind else same_arrays(types, constants)


def _concat_arrays(
    values: Sequence[object], constants: Sequence[object], types: Sequence[ColumnType]
) -> object:
    del constants, types
    return [part for each in values for part in cast("Sequence[object]", each)]


STRINGS: Final = (
    _plain("upper", _cased(pc.utf8_upper, str.upper), "In capital letters.", "upper",
           "str.to_uppercase", _STRING),
    _plain("lower", _cased(pc.utf8_lower, str.lower), "In small letters.", "lower",
           "str.to_lowercase", _STRING),
    _plain("title", _cased(pc.utf8_title, str.title),
           "Each word with a capital letter; a word is a run of letters.", "", "str.to_titlecase",
           _STRING, ()),
    Function(name="initcap", family="strings", accessor="str", params=(_TEXT,), gives=_STRING,
             says="Each word with a capital letter; a word begins behind a space.", spark="initcap",
             python=lambda text, constants: _initcap(cast("str", text))),
    _plain("length", pc.utf8_length, "The number of characters.", "length", "str.len_chars", always(integer)),
    Function(name="reverse", family="strings", accessor="str", params=(Param("x", ("string", "array")),),
             gives=_STRING, arrow=lambda columns, constants: pc.utf8_reverse(columns[0]),
             typed=lambda types, constants: types[0].not_null(),
             combined=lambda values, constants, types: cast("tuple[object, ...]", values[0])[::-1],
             says="A text, or an array, from the end to the beginning.", spark="reverse",
             polars="str.reverse"),
    _with("strip", (_constant("characters", True),), _stripped(pc.utf8_trim_whitespace, pc.utf8_trim),
          "Without the white space, or the characters, at both ends.", "trim (spaces)", "str.strip_chars",
          _STRING, ()),
    _with("lstrip", (_constant("characters", True),), _stripped(pc.utf8_ltrim_whitespace, pc.utf8_ltrim),
          "Without the white space, or the characters, at the beginning.", "ltrim (spaces)",
          "str.strip_chars_start", _STRING, ()),
    _with("rstrip", (_constant("characters", True),), _stripped(pc.utf8_rtrim_whitespace, pc.utf8_rtrim),
          "Without the white space, or the characters, at the end.", "rtrim (spaces)",
          "str.strip_chars_end", _STRING, ()),
    _with("slice", (_count("offset"), _count("length", True)), _slice,
          "`length` characters from `offset` on, counted from 0, or from the end if negative.",
          "substring (counts from 1)", "str.slice", _STRING, ()),
    Function(name="replace", family="strings", accessor="str",
             params=(_TEXT, _constant("old"), _constant("new")), gives=_STRING,
             arrow=_replacing(pc.replace_substring), check=_check_old,
             says="With every `old` replaced by `new`.", spark="replace",
             polars="str.replace_all(literal=True)"),
    _with("replace_regex", (_PATTERN, _constant("new")), _replacing(pc.replace_substring_regex),
          "With every match of `pattern` replaced by `new`.", "regexp_replace", "str.replace_all",
          _STRING, ("regexp_replace",)),
    _with("contains", (_OTHER,), _matching(pc.match_substring), "True where `part` is somewhere in it.",
          "contains", "str.contains(literal=True)", _YES_OR_NO),
    _with("startswith", (_OTHER,), _matching(pc.starts_with), "True where it begins with `part`.",
          "startswith", "str.starts_with", _YES_OR_NO),
    _with("endswith", (_OTHER,), _matching(pc.ends_with), "True where it ends with `part`.", "endswith",
          "str.ends_with", _YES_OR_NO),
    _with("like", (_PATTERN,), _matching(pc.match_like),
          "True where it is like `pattern`: % stands for any text, _ for one character.", "like", "",
          _YES_OR_NO),
    _with("matches", (_PATTERN,), _matching(pc.match_substring_regex),
          "True where `pattern` matches somewhere.", "rlike", "str.contains", _YES_OR_NO, ("rlike",)),
    Function(name="extract", family="strings", accessor="str",
             params=(_TEXT, _PATTERN, _count("group", True)), gives=_STRING, arrow=_extract,
             may_lack=True,
             says="The part of the first match of `pattern` in `group` (1; 0: all of it); null if there is "
             "none.",
             spark="regexp_extract (gives '')", polars="str.extract", calls=("regexp_extract",)),
    Function(name="split", family="strings", accessor="str", params=(_TEXT, _constant("separator")),
             gives=always(any_value), says="The list of the parts between separators.",
             spark="split (of a regex)",
             polars="str.split", check=_check_separator,
             python=lambda text, constants: cast("str", text).split(cast("str", constants[0]))),
    _with("lpad", (_count("width"), _constant("fill", True)), _padded(pc.utf8_lpad),
          "Filled up to `width` characters at the beginning; never shortened.", "lpad (shortens)",
          "str.pad_start", _STRING),
    _with("rpad", (_count("width"), _constant("fill", True)), _padded(pc.utf8_rpad),
          "Filled up to `width` characters at the end; never shortened.", "rpad (shortens)", "str.pad_end",
          _STRING),
    Function(name="concat", family="strings", accessor=None, params=(Param("values", ("string", "array")),),
             many=True, gives=_STRING, arrow=_concat, typed=_concat_type, combined=_concat_arrays,
             says="The texts, or arrays, one after another; null if one of them is.", spark="concat",
             polars="concat_str"),
    Function(name="concat_ws", family="strings", accessor=None, params=(_constant("separator"), _TEXT),
             many=True, gives=_STRING, arrow=_concat_ws, skips_nulls=True, calls=(),
             says="The texts with a separator between them; nulls are left out.", spark="concat_ws",
             polars="concat_str(ignore_nulls=True)"),
)  # fmt: skip
"""The functions that this file defines."""
