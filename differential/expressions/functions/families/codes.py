"""Functions from texts and bytes to digests, codes and digits, and back.

A text counts as its bytes in UTF-8. Whole numbers have 64 bits, as a bigint of Spark.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import zlib
from collections.abc import Callable, Sequence
from typing import Final, cast

from differential.columns.column_types import ColumnType, binary, integer, string
from differential.columns.foreign.type_names import Kind
from differential.expressions.functions.function import Function, Param, always

__all__ = ["CODES"]

_ALL_BITS: Final = (1 << 64) - 1
_SHA2: Final = {
    0: hashlib.sha256, 224: hashlib.sha224, 256: hashlib.sha256, 384: hashlib.sha384, 512: hashlib.sha512,
}  # fmt: skip
_NOT_BASE64: Final = re.compile(r"[^A-Za-z0-9+/=]")
_HEX: Final = re.compile(r"[0-9A-Fa-f]*")


def _raw(value: object) -> bytes:
    return value.encode() if isinstance(value, str) else cast("bytes", value)


def _sha2(value: object, constants: Sequence[object]) -> object:
    return _SHA2[cast("int", constants[0])](_raw(value)).hexdigest()


def _check_bits(constants: Sequence[object]) -> None:
    if constants[0] not in _SHA2:
        raise ValueError("SHA-2 has 224, 256, 384 or 512 bits; 0 stands for 256")


def _unbase64(text: str) -> bytes | None:
    """Return the bytes, as a decoder of MIME: what is no digit is passed over, padding may be left out."""
    digits, _, rest = _NOT_BASE64.sub("", text).partition("=")
    if rest.strip("=") or len(digits) % 4 == 1:
        return None
    try:
        return base64.b64decode(digits + "=" * (-len(digits) % 4))
    except binascii.Error:
        return None


def _hex(value: object) -> str:
    return f"{value & _ALL_BITS:X}" if isinstance(value, int) else _raw(value).hex().upper()


def _unhex(text: str) -> bytes | None:
    return bytes.fromhex("0" * (len(text) % 2) + text) if _HEX.fullmatch(text) else None


def _chr(number: int) -> str:
    return chr(number & 0xFF) if number >= 0 else ""


def _code(
    name: str,
    takes: tuple[Kind, ...],
    run: Callable[[object], object],
    gives: ColumnType,
    says: str,
    *,
    polars: str = "",
    may_lack: bool = False,
    failure: str | None = None,
) -> Function:
    accessor = "" if takes[-1] == "int" else "str"
    return Function(
        name=name, family="numbers" if takes == ("int",) else "strings", accessor=accessor,
        params=(Param("x" if takes[-1] == "int" else "text", takes),), gives=always(gives), says=says,
        spark=name, polars=polars, python=lambda value, constants: run(value), may_lack=may_lack,
        failure=failure,
    )  # fmt: skip


_BYTES: Final[tuple[Kind, ...]] = ("string", "bytes")
_ONE_TEXT: Final[tuple[Kind, ...]] = ("string",)

CODES: Final = (
    _code("md5", _BYTES, lambda value: hashlib.md5(_raw(value), usedforsecurity=False).hexdigest(), string,
          "The MD5 digest, in hexadecimal digits."),
    _code("sha1", _BYTES, lambda value: hashlib.sha1(_raw(value), usedforsecurity=False).hexdigest(), string,
          "The SHA-1 digest, in hexadecimal digits."),
    Function(name="sha2", family="strings", accessor="str",
             params=(Param("text", _BYTES), Param("bits", ("int",), is_constant=True)), gives=always(string),
             python=_sha2, check=_check_bits, spark="sha2",
             says="The SHA-2 digest of 224, 256, 384 or 512 bits, in hexadecimal digits; 0: 256."),
    _code("crc32", _BYTES, lambda value: zlib.crc32(_raw(value)), integer, "The checksum CRC-32."),
    _code("base64", _BYTES, lambda value: base64.b64encode(_raw(value)).decode(), string,
          "The bytes as text of base64, in one line.", polars="bin.encode('base64')"),
    _code("unbase64", _ONE_TEXT, lambda value: _unbase64(cast("str", value)), binary,
          "The bytes that a text of base64 stands for.", polars="str.decode('base64')", may_lack=True,
          failure="is no base64"),
    _code("unhex", _ONE_TEXT, lambda value: _unhex(cast("str", value)), binary,
          "The bytes that hexadecimal digits stand for; null if there are others.",
          polars="str.decode('hex')", may_lack=True),
    _code("ascii", _ONE_TEXT, lambda value: ord(cast("str", value)[0]) if value else 0, integer,
          "The number of the first character in Unicode; 0 of an empty text."),
    _code("octet_length", _BYTES, lambda value: len(_raw(value)), integer, "The number of bytes.",
          polars="str.len_bytes"),
    _code("hex", ("string", "bytes", "int"), _hex, string,
          "In hexadecimal digits, which are capitals: the bytes of a text, the 64 bits of a number.",
          polars="bin.encode('hex')"),
    _code("bin", ("int",), lambda value: f"{cast('int', value) & _ALL_BITS:b}", string,
          "The 64 bits of a number, from the first that is 1."),
    _code("chr", ("int",), lambda value: _chr(cast("int", value)), string,
          "The character whose number the last 8 bits are; '' of a negative number."),
)  # fmt: skip
"""The functions that this file defines."""
