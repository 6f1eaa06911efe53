"""How do single rows, as tuples of Python values, become words and words become tuples?

This is the way for Python functions per record, tests and small lists; it costs some 100 ns per value.
Tables of any size go through `encoding.py`.

    kind         takes                                          gives
    int          int, numpy integers (not bool)                 int
    float        float, int, numpy floats                       float
    bool         bool, numpy bool                               bool
    timestamp    datetime (without a zone: read as UTC)         datetime in UTC
    date         date (not datetime)                            date
    decimal      Decimal, int                                   Decimal with the digits of the column
    string       str                                            str
    bytes        bytes, bytearray                               bytes
    any          what msgpack holds                             the same, with tuples for lists
    array, …     `nested/values.py`                             the same, with tuples for lists, dicts
"""

from __future__ import annotations

import datetime as dt
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Final, cast

import numpy as np

from differential.columns.column_types import ColumnType, Int64s
from differential.columns.float_words import float_to_word, floats_to_words, words_to_floats
from differential.columns.foreign.type_names import Kind
from differential.columns.nested.locations import ValueLocation
from differential.columns.nested.values import nested_values
from differential.columns.schema import Schema
from differential.columns.symbols.packing import pack
from differential.columns.symbols.table import SymbolTable
from differential.columns.wide.wide_words import integers_of, split_value
from differential.errors import SchemaError, shown
from timely.counted import counted

__all__ = [
    "PlainWords",
    "Row",
    "checked_values",
    "date_to_days",
    "datetime_to_micros",
    "days_to_date",
    "decimal_to_word",
    "decode_rows",
    "encode_rows",
    "is_missing",
    "micros_to_datetime",
    "row_shower",
    "values_to_words",
    "word_to_decimal",
]

Row = tuple[object, ...]

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_INT64: Final = np.dtype(np.int64)
_MICROSECOND: Final = dt.timedelta(microseconds=1)
_FIRST_DAY: Final = dt.date(1970, 1, 1).toordinal()

_ACCEPTED: Final[dict[Kind, tuple[type, ...]]] = {
    "int": (int, np.integer),
    "float": (float, int, np.floating, np.integer),
    "bool": (bool, np.bool_),
    "timestamp": (dt.datetime,),
    "date": (dt.date,),
    "decimal": (Decimal, int),
    "string": (str,),
    "bytes": (bytes, bytearray),
    "any": (object,),
    "array": (list, tuple, np.ndarray),
    "struct": (dict, tuple),
    "map": (dict, list),
}


def datetime_to_micros(value: dt.datetime) -> int:
    """Return microseconds since 1970 in UTC; a value without a time zone is read as UTC."""
    aware = value if value.tzinfo is not None else value.replace(tzinfo=dt.UTC)
    return (aware - _EPOCH) // _MICROSECOND


def micros_to_datetime(micros: int) -> dt.datetime:
    """Return the datetime; inverse of `datetime_to_micros`. OverflowError outside the years 1 to 9999."""
    return _EPOCH + dt.timedelta(microseconds=micros)


def date_to_days(value: dt.date) -> int:
    """Return days since 1970."""
    return value.toordinal() - _FIRST_DAY


def days_to_date(days: int) -> dt.date:
    """Return the date; inverse of `date_to_days`. OverflowError or ValueError outside the years 1 to 9999."""
    return dt.date.fromordinal(days + _FIRST_DAY)


def decimal_to_word(value: Decimal | int, type_: ColumnType) -> int | None:
    """Return `value` · 10^scale, or None if it has more digits than `type_`, before or behind the point.

    The words of a wide decimal are those of this number, see `split_value`.
    """
    exact = Decimal(value)
    if not exact.is_finite():
        return None
    sign, digits, exponent = exact.as_tuple()
    shift = cast(int, exponent) + type_.scale
    if len(digits) > type_.precision:
        # Python refuses to parse thousands of digits. Drop zeros at the end; the other digits have to fit.
        text = "".join(map(str, digits)).rstrip("0") or "0"
        if len(text) > type_.precision:
            return None
        shift += len(digits) - len(text)
        digits = tuple(map(int, text))
    number = int("".join(map(str, digits)))
    if number == 0:
        return 0
    if shift > type_.precision or -shift > len(digits):
        return None
    factor = int(10 ** abs(shift))
    scaled, rest = (number * factor, 0) if shift >= 0 else divmod(number, factor)
    if rest or scaled >= 10**type_.precision:
        return None
    return -scaled if sign else scaled


def word_to_decimal(word: int, type_: ColumnType) -> Decimal:
    """Return the inverse of `decimal_to_word`: a decimal with as many digits behind the point as `type_`."""
    return Decimal((int(word < 0), tuple(map(int, str(abs(word)))), -type_.scale))


_CONVERTED: Final = {
    ("str", "int"): "int(x)",
    ("str", "float"): "float(x)",
    ("float", "int"): "int(x) or round(x)",
    ("float64", "int"): "int(x) or round(x)",
    ("Decimal", "int"): "int(x) or round(x)",
    ("bool", "int"): "int(x)",
    ("Decimal", "float"): "float(x)",
    ("bool", "float"): "float(x)",
    ("int", "bool"): "bool(x)",
    ("str", "bool"): "x == 'true'",
    **{(of, "string"): "str(x)" for of in ("int", "float", "bool", "Decimal", "int64", "float64", "UUID")},
    ("date", "string"): "x.isoformat()",
    ("datetime", "string"): "x.isoformat()",
    ("bytes", "string"): "x.decode()",
    ("str", "bytes"): "x.encode()",
    ("int", "timestamp"): "datetime.fromtimestamp(x, UTC) of seconds",
    ("float", "timestamp"): "datetime.fromtimestamp(x, UTC) of seconds",
    ("str", "timestamp"): "datetime.fromisoformat(x)",
    ("datetime64", "timestamp"): "x.astype('datetime64[us]').item()",
    ("datetime64", "date"): "x.astype('datetime64[D]').item()",
    ("date", "timestamp"): "datetime(x.year, x.month, x.day)",
    ("str", "date"): "date.fromisoformat(x)",
    ("datetime", "date"): "x.date()",
    ("str", "decimal"): "Decimal(x)",
    ("float", "decimal"): "Decimal(str(x))",
    ("float64", "decimal"): "Decimal(str(x))",
}
"""Conversions that an error suggests, by (type of the value, kind of the column)."""


def checked_values(values: Sequence[object], place: ValueLocation) -> Sequence[object]:
    """Return `values` with None in place of pandas' NaT and NA and numpy's NaT.

    Raises SchemaError about the first value that a column of `place.type` does not take.
    """
    if place.type.is_nested:
        values = [None if _is_missing_whole(value) else value for value in values]
        return nested_values(values, place, _part_values)
    kind = place.type.kind
    accepted = _ACCEPTED[kind]
    types = set(map(type, values))
    if place.type.nullable:
        types.discard(type(None))
    if types <= {accepted[0]} and kind != "any":
        return values
    if any(type_.__name__ in _OF_MISSING for type_ in types):
        values = [None if is_missing(value) else value for value in values]
    for row, value in enumerate(values):
        if value is None:
            if not place.type.nullable:
                raise place.null_error(row)
        elif kind == "timestamp" and getattr(value, "nanosecond", None):
            mend = "Round it before: value.floor('us')."
            raise place.error(row, value, "has nanoseconds, and a timestamp has microseconds", mend)
        elif (
            not isinstance(value, accepted)
            or (isinstance(value, bool) and place.type.is_number)
            or isinstance(value, np.timedelta64)
            and kind != "any"  # numpy counts it among the whole numbers
            or (isinstance(value, dt.datetime) and kind == "date")  # Python counts it among the dates
        ):
            type_name = type(value).__name__
            how = "".join(
                f", {each}" for (of, to), each in _CONVERTED.items() if (of, to) == (type_name, kind)
            )
            mend = f"Convert it{how}, or declare another type, such as any (now: {place.type})."
            raise place.error(
                row, value, f"is a{'n' * (type_name[0] in 'aeio')} {type_name}, not {kind}", mend
            )
    return values


def _is_missing_whole(value: object) -> bool:
    """True if a value is missing as in pandas, where a column of lists may have NaN in their place."""
    return is_missing(value) or (isinstance(value, float) and value != value)


def _part_values(values: Sequence[object], place: ValueLocation) -> Sequence[object]:
    """Return plain parts of nested values, each in the form in which `pack` has one value for equal ones."""
    values = checked_values(values, place)
    kind = place.type.kind
    if kind == "float":
        return [None if value is None else float(cast(float, value)) for value in values]
    if kind == "bytes":
        return [None if value is None else bytes(cast(bytes, value)) for value in values]
    if kind == "timestamp":
        return [None if value is None else _with_zone(cast(dt.datetime, value)) for value in values]
    for row, value in enumerate(values):
        if value is None:
            continue
        if kind == "int" and not -(2**63) <= cast(int, value) < 2**63:
            raise place.error(row, value, "is out of range", "Integers are 64 bits wide.")
        if kind == "decimal" and decimal_to_word(cast(Decimal, value), place.type) is None:
            mend = "Round it, or declare the column with more digits."
            raise place.error(row, value, f"does not fit {place.type}", mend)
    if kind == "decimal":
        return [None if value is None else Decimal(cast(int, value)) for value in values]
    return values


def _with_zone(value: dt.datetime) -> dt.datetime:
    return value if value.tzinfo is not None else value.replace(tzinfo=dt.UTC)


_OF_MISSING: Final = ("NaTType", "NAType", "datetime64", "timedelta64")
"""Names of types that have a value for what is missing; checked by name, so that pandas need not be imported.
"""


def is_missing(value: object) -> bool:
    """True if `value` is None, NaT of pandas or numpy, or NA of pandas. NaN is a number."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    return value is None or type(value).__name__ in ("NaTType", "NAType")


def values_to_words(
    values: Sequence[object],
    type_: ColumnType,
    out: Int64s,
    symbols: SymbolTable | None,
    place: ValueLocation,
) -> None:
    """Write the words of Python values into `out`, int64[type_.words, n].

    Raises SchemaError about the first value that does not fit.
    """
    values = checked_values(values, place)
    null: list[bool] | None = None
    if type_.nullable:
        null = [value is None for value in values]
        out[0] = np.logical_not(null)
        values = [_NULLS[type_.kind] if value is None else value for value in values]
    if type_.kind == "decimal":
        _write_decimals(values, out[-type_.value_words :], place)
    else:
        _write_plain(values, type_.kind, out[-1], symbols, place)
    if null is not None:
        out[1:, null] = 0


def _write_decimals(values: Sequence[object], out: Int64s, place: ValueLocation) -> None:
    for row, value in enumerate(values):
        word = decimal_to_word(cast(Decimal, value), place.type)
        if word is None:
            mend = "Round it, or declare the column with more digits."
            raise place.error(row, value, f"does not fit {place.type}", mend)
        out[:, row] = split_value(word) if place.type.is_wide else word


def _write_plain(
    values: Sequence[object], kind: Kind, out: Int64s, symbols: SymbolTable | None, place: ValueLocation
) -> None:
    try:
        out[:] = _plain_words(values, kind, symbols)
    except OverflowError:
        row = next(row for row, value in enumerate(values) if not -(2**63) <= cast(int, value) < 2**63)
        mend = "Integers are 64 bits wide. Scale the values, or write float(x) for a column of floats."
        raise place.error(row, values[row], "is out of range", mend) from None
    except SchemaError:  # it says which value cannot be stored, but not in which row
        for row, value in enumerate(values):
            try:
                pack(value)
            except SchemaError as error:
                raise place.error(row, value, "cannot be stored", str(error)) from error
        raise


_NULLS: Final[dict[Kind, object]] = {
    "int": 0,
    "float": 0.0,
    "bool": False,
    "timestamp": _EPOCH,
    "date": _EPOCH.date(),
    "decimal": 0,
    "string": "",
    "bytes": b"",
    **dict.fromkeys(("any", "array", "struct", "map"), False),
}


def _plain_words(values: Sequence[object], kind: Kind, symbols: SymbolTable | None) -> Int64s:
    """Return the words of values of the right type, none of them null."""
    if kind == "float":
        return floats_to_words(np.array(values, dtype=np.float64))
    if kind == "timestamp":
        return np.array([datetime_to_micros(cast(dt.datetime, value)) for value in values], dtype=np.int64)
    if kind == "date":
        return np.array([date_to_days(cast(dt.date, value)) for value in values], dtype=np.int64)
    if kind in ("string", "bytes", "any", "array", "struct", "map"):
        assert symbols is not None
        if kind == "string":
            return symbols.intern_strings(cast(Sequence[str], values))
        if kind == "bytes":
            return symbols.intern_strings([bytes(cast(bytes, value)) for value in values])
        return symbols.intern(values)
    return np.array(values, dtype=np.int64)


def encode_rows(
    schema: Schema, rows: Sequence[Sequence[object]], symbols: SymbolTable | None, input_name: str = "input"
) -> Int64s:
    """Return the words of rows given as tuples in the order of the columns: int64[width, n].

    Raises SchemaError naming the row, for a row of another length or a value that does not fit its column.
    """
    words = np.empty((schema.width, len(rows)), dtype=np.int64)
    if not rows:
        return words
    for row, values in enumerate(rows):
        if len(values) != len(schema):
            raise SchemaError(
                f"input {input_name!r}, row {row}: {shown(values)} has "
                f"{counted(len(values), 'value')} for {counted(len(schema), 'column')} ({schema})."
            )
    for column, values in zip(schema, zip(*rows, strict=True), strict=True):
        offset = schema.offset(column.name)
        place = ValueLocation(input_name, column.name, column.type)
        values_to_words(values, column.type, words[offset : offset + column.words], symbols, place)
    return words


class PlainWords:
    """Turns few plain rows (`timely.operators.inputs.plain_rows`) of the columns of a schema into words.

    For few rows it is quicker than `encode_rows`, where arrays would cost more than their contents. It checks
    nothing: the caller has checked the rows.
    """

    def __init__(self, schema: Schema, symbols: SymbolTable) -> None:
        self._symbols = symbols
        self._width = schema.width
        self._types = [column.type for column in schema]
        self._are_whole = all(type_.kind in ("int", "bool") and not type_.nullable for type_ in self._types)

    def of(self, rows: Sequence[Row], *behind: Sequence[int]) -> Int64s:
        """Return the words of the rows, and behind them a row of words for each of `behind`.

        The result is int64[width + len(behind), n].
        """
        words: list[int] = []
        columns = zip(*rows, strict=True)
        if self._are_whole:
            for values in columns:
                words += values
        else:
            for type_, values in zip(self._types, columns, strict=True):
                if type_.nullable:
                    words += [value is not None for value in values]
                words += self._column(values, type_.kind)
        for more in behind:
            words += more
        # A quarter of the time that `np.array` takes for a few lists.
        return np.ndarray((self._width + len(behind), len(rows)), _INT64, array("q", words))

    def _column(self, values: Sequence[object], kind: Kind) -> Sequence[int]:
        if kind in ("string", "bytes"):
            of_one: Callable[[object], int] = self._symbols.intern_one
        elif kind == "float":
            of_one = cast("Callable[[object], int]", float_to_word)
        else:
            of_one = cast("Callable[[object], int]", int)
        return [0 if value is None else of_one(value) for value in values]


def decode_rows(schema: Schema, words: Int64s, symbols: SymbolTable | None) -> list[Row]:
    """Return the rows of `words`, int64[width or more, n], as tuples in the order of the columns."""
    if not schema.columns:
        return [()] * words.shape[1]
    return list(zip(*_decode_columns(schema, words, symbols), strict=True))


def row_shower(schema: Schema, symbols: SymbolTable | None) -> Callable[[Sequence[int]], str]:
    """Return a function that shows the words of one row in a message: (k=1, name='ada')."""

    def show(words: Sequence[int]) -> str:
        column = np.array([*words, 0, 0], dtype=np.int64).reshape(-1, 1)
        (values,) = decode_rows(schema, column, symbols)
        return "(" + ", ".join(f"{n}={shown(v)}" for n, v in zip(schema.names, values, strict=True)) + ")"

    return show


def _decode_columns(schema: Schema, words: Int64s, symbols: SymbolTable | None) -> Iterator[Iterable[object]]:
    for column in schema:
        place = schema.words_of(column.name)
        yield _decode_values(words[place.start : place.stop], column.type, symbols)


def _decode_values(words: Int64s, type_: ColumnType, symbols: SymbolTable | None) -> list[object]:
    """Return the Python values of one column, int64[type_.words, n]."""
    if type_.nullable:
        present = words[0] != 0
        decoded = iter(_decode_values(words[1:, present], type_.not_null(), symbols))
        return [next(decoded) if is_present else None for is_present in present.tolist()]
    values = words[-1]
    if type_.is_symbol:
        assert symbols is not None
        return symbols.lookup(values)
    if type_.kind == "float":
        return cast(list[object], words_to_floats(values).tolist())
    if type_.kind == "bool":
        return cast(list[object], (values != 0).tolist())
    if type_.kind == "timestamp":
        return [micros_to_datetime(micros) for micros in values.tolist()]
    if type_.kind == "date":
        return [days_to_date(days) for days in values.tolist()]
    if type_.kind == "decimal":
        wholes = integers_of(words) if type_.is_wide else values
        return [word_to_decimal(whole, type_) for whole in wholes.tolist()]
    return cast(list[object], values.tolist())
