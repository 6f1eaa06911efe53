"""Functions that find, cut, repeat and print texts, with the meaning that they have in Spark.

Characters are counted from 1 where Spark does so: in `instr` and `split_part`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal
from functools import lru_cache
from typing import Final, cast

import pyarrow as pa

from differential.columns.column_types import ColumnType, integer, string
from differential.expressions.functions.function import NUMBERS, Arrow, Function, Param, Python, always
from timely.wire.arrow import pc

__all__ = ["TEXTS"]

_CHARACTERS_MAX: Final = 1 << 33
"""More characters than a text has."""

_DIGITS_MAX: Final = 340
_WIDE: Final = Context(prec=2 * _DIGITS_MAX)
"""Digits enough for every float: the greatest has 309 before the point."""

_TEXT: Final = Param("text", ("string",))
_COUNT: Final = Param("count", ("int",), is_constant=True)


def _bounded(count: object) -> int:
    return max(0, min(_CHARACTERS_MAX, cast("int", count)))


def _left(columns: Sequence[pa.Array], constants: Sequence[object]) -> pa.Array:
    return pc.utf8_slice_codeunits(columns[0], 0, _bounded(constants[0]))


def _right(columns: Sequence[pa.Array], constants: Sequence[object]) -> pa.Array:
    count = _bounded(constants[0])
    return pc.utf8_slice_codeunits(columns[0], -count) if count else _left(columns, constants)


def _instr(columns: Sequence[pa.Array], constants: Sequence[object]) -> pa.Array:
    part, start = cast("str", constants[0]), cast("int", constants[1]) if len(constants) > 1 else 1
    if start == 1 and pc.all(pc.string_is_ascii(columns[0])).as_py() is not False:
        return pc.add(pc.find_substring(columns[0], part).cast(pa.int64()), 1)  # which counts bytes
    texts = cast("list[str | None]", columns[0].to_pylist())
    return pa.array([None if text is None else _place(text, part, start) for text in texts], pa.int64())


def _place(text: str, part: str, start: int) -> int:
    if start < 1:
        return 0
    return text.find(part, start - 1) + 1 if part else 1


def _split_part(text: object, constants: Sequence[object]) -> object:
    separator, index = cast("str", constants[0]), cast("int", constants[1])
    parts = cast("str", text).split(separator) if separator else [cast("str", text)]
    place = index - 1 if index > 0 else len(parts) + index
    return parts[place] if 0 <= place < len(parts) else ""


def _check_part(constants: Sequence[object]) -> None:
    if constants[1] == 0:
        raise ValueError("parts are counted from 1, or with -1 from the end; there is no part 0")


def _substring_index(text: object, constants: Sequence[object]) -> object:
    whole, separator, count = cast("str", text), cast("str", constants[0]), cast("int", constants[1])
    if not separator or not count:
        return ""
    if count > 0:
        return separator.join(whole.split(separator)[:count])
    end = len(whole)
    for _ in range(-count):  # matches are looked for from the end, which matters where they overlap
        place = whole.rfind(separator, 0, max(0, end + len(separator) - 1))
        if place < 0:
            return whole
        end = place
    return whole[end + len(separator) :]


def _repeat(columns: Sequence[pa.Array], constants: Sequence[object]) -> pa.Array:
    return pc.binary_repeat(columns[0], _bounded(constants[0]))


@lru_cache(maxsize=64)
def _exchanges(old: str, new: str) -> dict[int, str | None]:
    table: dict[int, str | None] = {}
    for place, letter in enumerate(old):
        table.setdefault(ord(letter), new[place] if place < len(new) else None)
    return table


def _translate(text: object, constants: Sequence[object]) -> object:
    return cast("str", text).translate(_exchanges(cast("str", constants[0]), cast("str", constants[1])))


def _format_number(value: object, constants: Sequence[object]) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "-∞" if value < 0 else "∞"
    digits = cast("int", constants[0])
    # As Java, a float has the digits with which it is printed; but which way it is rounded, its bits say.
    number = Decimal(repr(value) if isinstance(value, float) else cast("int | Decimal", value))
    if isinstance(value, float) and cast("int", number.as_tuple().exponent) < -digits:
        number = Decimal(value)
    return f"{number.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_EVEN, _WIDE):,f}"


def _check_digits(constants: Sequence[object]) -> None:
    if not 0 <= cast("int", constants[0]) <= _DIGITS_MAX:
        raise ValueError(f"there are 0 to {_DIGITS_MAX} digits behind the point")


def _function(
    name: str,
    params: tuple[Param, ...],
    run: Arrow | Python,
    says: str,
    *,
    in_arrow: bool = False,
    spark: str = "",
    polars: str = "",
    gives: ColumnType = string,
) -> Function:
    return Function(
        name=name, family="strings", accessor="str", params=(_TEXT, *params), gives=always(gives), says=says,
        spark=spark or name, polars=polars, arrow=cast("Arrow", run) if in_arrow else None,
        python=None if in_arrow else cast("Python", run),
    )  # fmt: skip


def _constant(name: str) -> Param:
    return Param(name, ("string",), is_constant=True)


TEXTS: Final = (
    _function("left", (_COUNT,), _left, "The first `count` characters.", in_arrow=True, polars="str.head"),
    _function("right", (_COUNT,), _right, "The last `count` characters.", in_arrow=True, polars="str.tail"),
    _function("instr", (_constant("part"), Param("start", ("int",), is_constant=True, is_optional=True)),
              _instr, "Where `part` begins, at `start` or later, counted from 1; 0: nowhere.", in_arrow=True,
              spark="instr, locate", polars="str.find(literal=True) + 1", gives=integer),
    Function(name="split_part", family="strings", accessor="str",
             params=(_TEXT, _constant("separator"), Param("index", ("int",), is_constant=True)),
             gives=always(string), python=_split_part, check=_check_part,
             says="The part between separators at `index`, counted from 1, or from the end if negative; "
             "'' if there is none.",
             spark="split_part", polars="str.split(…).list.get(…)"),
    _function("substring_index", (_constant("separator"), _COUNT), _substring_index,
              "All before separator `count`, or behind the one from the end, if negative."),
    _function("repeat", (_COUNT,), _repeat, "`count` times one after another.", in_arrow=True),
    _function("translate", (_constant("old"), _constant("new")), _translate,
              "Each character of `old` replaced by the one of `new` at its place, or left out if there is "
              "none.",
              polars="str.replace_many"),
    Function(name="format_number", family="strings", accessor="",
             params=(Param("x", NUMBERS), Param("digits", ("int",), is_constant=True)),
             gives=always(string), python=_format_number, check=_check_digits,
             says="As text with `digits` digits behind the point and commas between thousands; halves go to "
             "the even digit.",
             spark="format_number"),
)  # fmt: skip
"""The functions that this file defines."""
