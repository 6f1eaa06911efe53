"""Which bytes has a value, and which word have these bytes?

The bytes are the value's msgpack form, with the keys of maps sorted, so that equal values have equal bytes.
`"ab"` and `b"ab"` are different, and so are 1, 1.0 and True. A list and a tuple are the same. Decimal("1.0")
and Decimal("1.00") are the same, and come back without zeros at the end. The word is the 64-bit hash of the
bytes, by BLAKE2b and never Python's own: it must be the same in every process. Word 0 is reserved: it stands
in the place of null.

    laws   unpack(pack(value)) == value, lists as tuples · a row has no value that `pack` does not make
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from hashlib import blake2b
from typing import Final

import msgpack
import numpy as np

from differential.columns.column_types import Int64s
from differential.errors import SchemaError, shown
from timely.limits import NESTING_LEVELS_MAX
from timely.wire.nesting import is_too_deep

__all__ = ["extension_of", "pack", "symbol_word", "symbol_words", "unpack"]

_TIMESTAMP_AS_DATETIME = 3
_DATE, _DECIMAL = 1, 2
"""Codes of msgpack's extension types: days since 1970, four bytes; and the digits as text."""

_ZEROS_MAX = 30
"""Most zeros at the end of a whole number that are written out; with more, the text has an exponent."""

_EPOCH = dt.date(1970, 1, 1).toordinal()

_PLAIN = frozenset((bool, bytes, int, str, type(None)))
"""Types whose values have one form."""


def symbol_word(payload: bytes) -> int:
    """Return the word of a value with these msgpack bytes: a signed 64-bit integer other than 0."""
    return int.from_bytes(blake2b(payload, digest_size=8).digest(), "little", signed=True) or 1


_SHORT: Final = [bytes((0xA0 | size,)) if size < 32 else bytes((0xD9, size)) for size in range(256)]
"""What msgpack has before the bytes of a text, by their number."""


def _short_text(value: str) -> bytes:
    """Return the msgpack bytes of a text of less than 256 bytes, in half of the time that msgpack takes; b""
    for others.
    """
    try:
        text = value.encode()
    except UnicodeEncodeError:  # `pack` says what is wrong with it
        return b""
    size = len(text)
    return _SHORT[size] + text if size < 256 else b""


def symbol_words(values: Sequence[str | bytes]) -> Int64s:
    """Return the words of texts or bytes: `symbol_word(pack(value))` of each, in half of the time."""
    payloads = [type(value) is str and _short_text(value) or pack(value) for value in values]
    digests = b"".join([blake2b(payload, digest_size=8).digest() for payload in payloads])
    words = np.frombuffer(digests, "<i8").astype(np.int64)
    words[words == 0] = 1
    return words


def pack(value: object) -> bytes:
    """Return the msgpack bytes of `value`: equal values have equal bytes.

    Raises SchemaError when msgpack cannot hold it, or when it is nested too deep.
    """
    if type(value) is str:
        packed_text = _short_text(value)
        if packed_text:
            return packed_text
    if is_too_deep(value):
        raise SchemaError(
            f"{shown(value)} cannot be stored: it is nested more than {NESTING_LEVELS_MAX} deep.\n"
            "  Flatten it, or store it as text."
        )
    try:
        if type(value) is not str and type(value) is not bytes:
            value = _canonical(value)
        packed: bytes = msgpack.packb(value, datetime=True)
    except (TypeError, ValueError, OverflowError) as error:
        raise SchemaError(
            f"{shown(value)} ({type(value).__name__}) cannot be stored: {error}.\n"
            "  Values may be None, bool, int (64 bits), float, Decimal, str, bytes, date, datetime with a"
            " time zone, and lists and dicts of these."
        ) from error
    return packed


def unpack(payload: bytes | memoryview) -> object:
    """Return the value with these msgpack bytes; lists come back as tuples, so that most can be hashed."""
    value: object = msgpack.unpackb(
        payload, use_list=False, strict_map_key=False, timestamp=_TIMESTAMP_AS_DATETIME, ext_hook=_extended
    )
    return value


def _extended(code: int, payload: bytes) -> object:
    """Return the value of an extension type; ValueError for bytes that `pack` does not make."""
    if code == _DATE and len(payload) == 4:
        return dt.date.fromordinal(_EPOCH + int.from_bytes(payload, "big", signed=True))
    if code == _DECIMAL:
        try:
            value = Decimal(payload.decode("ascii"))
        except ArithmeticError:
            raise ValueError(f"{payload[:60]!r} is no decimal") from None
        if value.is_finite() and str(value).encode() == payload:
            return value
    raise ValueError(f"there is no extension type {code} of {len(payload)} bytes")


def _canonical(value: object) -> object:
    """Return `value` in the one form whose bytes are taken."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, dict):
        items = [(_canonical(key), _canonical(entry)) for key, entry in value.items()]
        return dict(sorted(items, key=lambda item: pack(item[0])))
    if isinstance(value, list | tuple):
        if _PLAIN.issuperset(map(type, value)):  # a list may have a hundred thousand of them
            return list(value)
        return [_canonical(entry) for entry in value]
    if isinstance(value, dt.datetime) and value != value:  # pandas' NaT is a datetime, too
        raise TypeError("no time; write None")
    if isinstance(value, np.datetime64 | np.timedelta64):
        raise TypeError(f"a {type(value).__name__} of numpy")  # of nanoseconds `item` would make an int
    if isinstance(value, np.generic):
        plain = value.item()
        if isinstance(plain, np.generic):
            raise TypeError(f"Python has no value for a numpy.{type(value).__name__}")
        return _canonical(plain)
    if isinstance(value, float):
        return float("nan") if value != value else value + 0.0
    if type(value) is dt.date or isinstance(value, Decimal):
        return extension_of(value)
    if isinstance(value, msgpack.ExtType):
        raise TypeError("a msgpack.ExtType")  # it would come back as something else, or not at all
    if isinstance(value, dt.datetime):
        return _in_utc(value)
    if isinstance(value, msgpack.Timestamp):
        # It comes back as a datetime, which may have other bytes.
        raise TypeError("a msgpack.Timestamp; use a datetime with a time zone")
    return value


def extension_of(value: object) -> msgpack.ExtType:
    """Return the form of a date or a Decimal; TypeError for others."""
    if type(value) is dt.date:
        return msgpack.ExtType(_DATE, (value.toordinal() - _EPOCH).to_bytes(4, "big", signed=True))
    if not isinstance(value, Decimal):
        raise TypeError(f"a {type(value).__name__}")
    if not value.is_finite():
        raise TypeError("a decimal that is no number")
    return msgpack.ExtType(_DECIMAL, _decimal_text(value).encode())


def _in_utc(value: dt.datetime) -> dt.datetime:
    """Return the same moment as a Python datetime in UTC; OverflowError for one before year 1 there."""
    if value.tzinfo is None:
        raise TypeError("a datetime without a time zone")
    if getattr(value, "nanosecond", 0):  # of pandas
        raise TypeError("a time with nanoseconds; round it to microseconds")
    utc = value.astimezone(dt.UTC)
    return utc if type(utc) is dt.datetime else dt.datetime.combine(utc.date(), utc.time(), dt.UTC)


def _decimal_text(value: Decimal) -> str:
    """Return one text for equal decimals: 1, 1.0 and 1.00 are one value, as in a column of decimals."""
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int), "it is a number"
    text = "".join(map(str, digits))
    number = text.rstrip("0")
    if not number:
        return "0"
    exponent += len(text) - len(number)
    if 0 < exponent <= _ZEROS_MAX:
        number, exponent = number + "0" * exponent, 0
    return str(Decimal((sign, tuple(map(int, number)), exponent)))
