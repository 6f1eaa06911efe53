"""Which values may a record hold, and which bytes stand for them?

msgpack, with four additions: a date, a datetime with a time zone, which arrives in UTC, a Decimal, with its
digits as they are, and an Arrow table. So rows of all collections may travel as records. A list arrives as a
tuple.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Final

import msgpack
import pyarrow as pa

from ..claims import checked_table

__all__ = ["VALUES", "pack_value", "unpack_value"]

VALUES: Final = (
    "None, bool, int (64 bits), float, Decimal, str, bytes, date, datetime with a time zone, Arrow tables, "
    "and tuples or dicts of these"
)
"""Text of messages: what a record may hold."""

_DATE, _DECIMAL, _TABLE = 1, 2, 3
"""Codes of msgpack's extension types: the day since year 1, four bytes; the digits as text; an Arrow IPC
stream.
"""

_AS_DATETIME: Final = 3


def pack_value(value: object) -> bytes:
    """Return the bytes of a record, or of a list of them. Raise TypeError, ValueError or OverflowError for a
    value that is not among `VALUES`.
    """
    packed: bytes = msgpack.packb(value, use_bin_type=True, datetime=True, default=_extended)
    return packed


def unpack_value(packed: bytes | memoryview) -> object:
    """Return the value with these bytes. Raise one of `UNPACK_ERRORS` (`batch.py`) if they stand for none."""
    value: object = msgpack.unpackb(
        packed, use_list=False, raw=False, strict_map_key=False, timestamp=_AS_DATETIME, ext_hook=_value_of
    )
    return value


def _extended(value: object) -> msgpack.ExtType:
    if type(value) is dt.date:
        return msgpack.ExtType(_DATE, value.toordinal().to_bytes(4, "big"))
    if isinstance(value, Decimal):
        return msgpack.ExtType(_DECIMAL, str(value).encode())
    if isinstance(value, pa.Table):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, value.schema) as writer:
            writer.write_table(value)
        return msgpack.ExtType(_TABLE, sink.getvalue().to_pybytes())
    if isinstance(value, dt.datetime):
        raise TypeError("a datetime without a time zone: write value.replace(tzinfo=datetime.UTC)")
    raise TypeError(f"can not serialize {type(value).__name__!r} object")


def _value_of(code: int, payload: bytes) -> object:
    if code == _DATE and len(payload) == 4:
        return dt.date.fromordinal(int.from_bytes(payload, "big"))
    if code == _DECIMAL:
        try:
            return Decimal(payload.decode("ascii"))
        except ArithmeticError:
            raise ValueError(f"{payload[:60]!r} is no decimal") from None
    if code == _TABLE:
        try:
            return checked_table(pa.py_buffer(payload))
        except Exception as error:  # damaged bytes make Arrow raise more than its own errors
            raise ValueError(f"it is no valid Arrow IPC stream: {str(error)[:500]}") from error
    raise ValueError(f"there is no extension type {code} of {len(payload)} bytes")
