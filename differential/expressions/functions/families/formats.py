"""`format_string`: values put into a text, as `java.util.Formatter` does in Spark.

A format is parsed once into pieces: plain texts, and directives such as `%-8.2f`. Each directive formats the
different values of its column, and Arrow joins the pieces of all rows. The conversions are those of texts,
numbers and booleans (`s d x o e f g b`); the types of the columns are checked when the query is built.

A float is rounded half up from the digits with which it is printed, as Java does: 0.125 is 0.13, and so is
0.135. Whole numbers have 64 bits in `%x` and `%o`, as a bigint of Spark.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import lru_cache
from typing import Final, NamedTuple, cast

import pyarrow as pa

from differential.columns.column_types import ColumnType, string
from differential.columns.foreign.type_names import Kind
from differential.expressions.functions.function import NUMBERS, Function, Param
from timely.wire.arrow import pc

__all__ = ["FORMATS", "formatted_constants"]

_WIDTH_MAX: Final = 1_000
"""Most characters that a directive may ask for, and most digits behind its point."""
_DIGITS: Final = Context(prec=2 * _WIDTH_MAX, rounding=ROUND_HALF_UP)
_ALL_BITS: Final = (1 << 64) - 1
_DIRECTIVE: Final = re.compile(r"%(?:([0-9]+)\$|(<))?([-#+ 0,(]*)([1-9][0-9]*)?(?:\.([0-9]+))?([a-zA-Z%])")
_TAKES: Final[dict[str, tuple[Kind, ...]]] = {
    "s": (*NUMBERS, "bool", "string"), "b": (*NUMBERS, "bool", "string"), "d": ("int",), "x": ("int",),
    "o": ("int",), "e": ("float",), "f": ("float", "decimal"), "g": ("float",),
}  # fmt: skip
_FLAGS: Final = {"s": "-", "b": "-", "d": "-+ 0,(", "x": "-#0", "o": "-#0", "e": "-+ 0(", "f": "-+ 0,(",
                 "g": "-+ 0,("}  # fmt: skip
_EXACT_BELOW: Final = Decimal(10_000_000), Decimal("0.001")


class _Directive(NamedTuple):
    """One value in a text. `place`: of its column; `conversion`: in small letters."""

    place: int
    flags: str
    width: int
    precision: int | None
    conversion: str
    is_upper: bool

    def __str__(self) -> str:
        """Return the directive as it is written, without its place."""
        width = str(self.width or "")
        precision = "" if self.precision is None else f".{self.precision}"
        return (
            f"%{self.flags}{width}{precision}{self.conversion.upper() if self.is_upper else self.conversion}"
        )

    def text_of(self, value: object) -> str:
        """Return a value, None for null, as text."""
        text = self._of_number(value) if self._is_numeric(value) else self._of_any(value)
        if self.is_upper:
            text = text.upper()
        room = self.width - len(text.encode("utf-16-le")) // 2  # Java counts in units of UTF-16
        return text if room <= 0 else text + " " * room if "-" in self.flags else " " * room + text

    def _is_numeric(self, value: object) -> bool:
        return value is not None and self.conversion not in "sb"

    def _of_any(self, value: object) -> str:
        if self.conversion == "b":
            text = "false" if value is None or value is False else "true"
        elif value is None or isinstance(value, bool):
            text = "null" if value is None else str(value).lower()
        else:
            text = _java_text(value) if isinstance(value, float) else str(value)
        if self.precision is None:
            return text
        cut = text.encode("utf-16-le")[: 2 * self.precision]
        try:
            return cut.decode("utf-16-le")
        except UnicodeDecodeError:  # half of a pair of surrogates
            return cut[:-2].decode("utf-16-le") + "?"

    def _of_number(self, value: object) -> str:
        if self.conversion in "xo":
            return self._of_bits(cast("int", value))
        if isinstance(value, float) and not math.isfinite(value):
            digits, is_zero_padded = "NaN" if math.isnan(value) else "Infinity", False
            is_negative = value < 0
        else:
            number = Decimal(repr(value)) if isinstance(value, float) else Decimal(cast("int", value))
            is_negative = number < 0 or (isinstance(value, float) and math.copysign(1, value) < 0)
            digits, is_zero_padded = self._digits(abs(number)), "0" in self.flags
        if digits == "NaN":
            return digits
        before, behind = ("(", ")") if is_negative and "(" in self.flags else ("-" if is_negative else "", "")
        if not is_negative:
            before = "+" if "+" in self.flags else " " if " " in self.flags else ""
        if is_zero_padded:
            digits = digits.rjust(self.width - len(before) - len(behind), "0")
        return before + digits + behind

    def _of_bits(self, value: int) -> str:
        digits = format(value & _ALL_BITS, self.conversion)
        before = {"x": "0x", "o": "0"}[self.conversion] if "#" in self.flags else ""
        return before + (digits.rjust(self.width - len(before), "0") if "0" in self.flags else digits)

    def _digits(self, number: Decimal) -> str:
        """Return the digits of a number that is not negative."""
        precision = 6 if self.precision is None else self.precision
        if self.conversion == "d":
            return f"{number:,f}" if "," in self.flags else f"{number:f}"
        if self.conversion == "g":
            precision = precision or 1
            rounded = _rounded(number, precision)
            if number and not Decimal("0.0001") <= rounded < Decimal(10) ** precision:
                return _scientific(number, precision - 1)
            number, precision = rounded, precision - 1 - (rounded.adjusted() if rounded else 0)
        if self.conversion == "e":
            return _scientific(number, precision)
        fixed = number.quantize(Decimal(1).scaleb(-precision), context=_DIGITS)
        return f"{fixed:,f}" if "," in self.flags else f"{fixed:f}"


def _rounded(number: Decimal, digits: int) -> Decimal:
    """Return a number with so many digits from the first that is not 0."""
    return Context(prec=digits, rounding=ROUND_HALF_UP).plus(number)


def _scientific(number: Decimal, digits: int) -> str:
    rounded = _rounded(number, digits + 1)
    exponent = rounded.adjusted() if rounded else 0
    mantissa = rounded.scaleb(-exponent, _DIGITS).quantize(Decimal(1).scaleb(-digits), context=_DIGITS)
    return f"{mantissa:f}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def _java_text(value: float) -> str:
    """Return a float as Java prints it: 1.0, 1.0E7, NaN."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "-Infinity" if value < 0 else "Infinity"
    number = Decimal(repr(value))
    sign, exponent = "-" if math.copysign(1, value) < 0 else "", number.adjusted()
    digits = "".join(map(str, number.as_tuple().digits)).rstrip("0") or "0"
    if not number or _EXACT_BELOW[1] <= abs(number) < _EXACT_BELOW[0]:
        plain = f"{abs(number):f}"
        return sign + (plain if "." in plain else plain + ".0")
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


@lru_cache(maxsize=256)
def _pieces(pattern: str) -> tuple[str | _Directive, ...]:
    """Return the pieces of a format; ValueError for one that is none."""
    pieces: list[str | _Directive] = []
    place, ordinary, last = 0, 0, -1
    while place < len(pattern):
        end = pattern.find("%", place)
        if end != place:
            end = len(pattern) if end < 0 else end
            pieces.append(pattern[place:end])
            place = end
            continue
        match = _DIRECTIVE.match(pattern, place)
        if match is None:
            raise ValueError(f"{pattern[place : place + 12]!r} is no directive; for a percent sign write %%")
        number, previous, flags, width, precision, letter = match.groups()
        place = match.end()
        if letter in "n%":
            pieces.append(_constant_piece(match))
            continue
        if number is not None:
            last = int(number) - 1
        elif previous is None:
            last, ordinary = ordinary, ordinary + 1
        if last < 0:
            raise ValueError(f"{match[0]!r}: values are counted from 1, and %< repeats the one before")
        directive = _Directive(
            last, flags, int(width or 0), None if precision is None else int(precision), letter.lower(),
            letter.isupper(),
        )  # fmt: skip
        _check(directive, match[0])
        pieces.append(directive)
    return tuple(pieces)


def _constant_piece(match: re.Match[str]) -> str:
    flags, width, letter = match[3], int(match[4] or 0), match[6]
    if match[5] or (letter == "n" and (flags or width)) or flags.strip("-") or width > _WIDTH_MAX:
        raise ValueError(f"{match[0]!r}: a percent sign is written %%, and the end of a line %n")
    if flags and not width:
        raise ValueError(f"{match[0]!r}: the flag {flags[0]!r} needs a width")
    return "\n" if letter == "n" else "%".ljust(width) if flags else "%".rjust(width)


def _check(directive: _Directive, written: str) -> None:
    conversion, flags = directive.conversion, directive.flags
    if conversion not in _TAKES or (directive.is_upper and conversion in "dof"):
        otherwise = {"t": "; of a time write date_format(…), and %s", "c": "; write chr(…), and %s"}
        raise ValueError(
            f"{written!r}: the conversions are %s, %d, %x, %o, %e, %f, %g and %b"
            f"{otherwise.get(conversion, '')}"
        )
    wrong = next((flag for flag in flags if flag not in _FLAGS[conversion] or flags.count(flag) > 1), None)
    if wrong is not None:
        raise ValueError(f"{written!r}: the flag {wrong!r} says nothing there, or is there twice")
    if {"-", "0"} <= set(flags) or {"+", " "} <= set(flags):
        raise ValueError(f"{written!r}: these flags exclude each other")
    if not directive.width and set(flags) & {"-", "0"}:
        raise ValueError(f"{written!r}: the flag {'-' if '-' in flags else '0'!r} needs a width")
    if directive.precision is not None and conversion in "dxo":
        raise ValueError(f"{written!r}: a whole number has no digits behind a point")
    if directive.width > _WIDTH_MAX or (directive.precision or 0) > _WIDTH_MAX:
        raise ValueError(f"{written!r}: a width or precision is at most {_WIDTH_MAX:,}")


def _format_type(types: Sequence[ColumnType], constants: Sequence[object]) -> ColumnType:
    """Return the type of the result; ValueError if a directive does not take its column."""
    for piece in _pieces(cast("str", constants[0])):
        if isinstance(piece, str):
            continue
        if piece.place + 1 >= len(types):
            raise ValueError(f"{str(piece)!r} stands for value {piece.place + 1}, which is not there")
        type_ = types[piece.place + 1]
        if type_.kind not in _TAKES[piece.conversion]:
            advice = {"date": "date_format(…), and %s", "timestamp": "date_format(…), and %s"}.get(
                type_.kind, "%f" if type_.kind in ("float", "decimal") else "%s"
            )
            raise ValueError(
                f"{str(piece)!r} takes {' or '.join(_TAKES[piece.conversion])}, and value "
                f"{piece.place + 1} is {type_}; write {advice}"
            )
    return string


def _check_pattern(constants: Sequence[object]) -> None:
    _pieces(cast("str", constants[0]))


def formatted_constants(pattern: str) -> str:
    """Return a format without values as text; ValueError if a directive lacks its value."""
    _format_type((string,), (pattern,))
    return "".join(piece for piece in _pieces(pattern) if isinstance(piece, str))


def _format_string(columns: Sequence[pa.Array], constants: Sequence[object]) -> pa.Array:
    pieces = [
        piece if isinstance(piece, str) else _column_text(columns[piece.place], piece.text_of, str(piece))
        for piece in _pieces(cast("str", constants[0]))
    ]
    if all(isinstance(piece, str) for piece in pieces):
        return pa.array(["".join(cast("list[str]", pieces))] * len(columns[0]), pa.string())
    return pc.binary_join_element_wise(*pieces, "", null_handling="emit_null")


def _column_text(column: pa.Array, text_of: Callable[[object], str], directive: str) -> pa.Array:
    if directive == "%s" and pa.types.is_string(column.type):
        return pc.fill_null(column, "null")
    if directive in ("%s", "%d") and pa.types.is_integer(column.type):
        return pc.fill_null(column.cast(pa.string()), "null")
    encoded = column.dictionary_encode()
    texts = pa.array([text_of(value) for value in encoded.dictionary.to_pylist()], pa.string())
    return pc.fill_null(texts.take(encoded.indices), text_of(None))


FORMATS: Final = (
    Function(name="format_string", family="strings", accessor=None,
             params=(Param("pattern", ("string",), is_constant=True),
                     Param("value", (*NUMBERS, "bool", "date", "timestamp", "string"))),
             many=True, gives=lambda types: string, typed=_format_type, arrow=_format_string,
             check=_check_pattern, skips_nulls=True, calls=(), spark="format_string",
             polars="pl.format", says="The values put into a text, as in '%s has %,d, or %.1f'."),
)  # fmt: skip
"""The functions that this file defines."""
