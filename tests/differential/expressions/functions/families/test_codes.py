"""Digests, codes and digits of texts and bytes, against DuckDB, zlib and the examples of standards."""

from __future__ import annotations

import zlib

import pytest
from duckdb_values import against_duckdb
from expression_values import values_of

import differential as dd
from differential import Schema, col
from differential.errors import ExpressionError, RowError
from differential.expressions.expression import Expr

TEXTS = [None, "", "a", "é", "😀", "\x00", "ß ", "zz top", *("ab" * n + chr(200 + n) for n in range(60))]
RAW = [None, b"", b"\x00", b"\xff\xfe", *(bytes(range(n, 2 * n)) for n in range(1, 64))]
NUMBERS = [
    None,
    0,
    1,
    -1,
    255,
    256,
    2**63 - 1,
    -(2**63),
    *(3**n for n in range(39)),
    *(-(7**n) for n in range(22)),
]


def of(expr: Expr, *values: object, type_: str = "string?") -> list[object]:
    """The values of an expression over `v`."""
    return values_of(expr, [(value,) for value in values], Schema.of(f"v: {type_}"))


def test_texts_bytes_and_numbers_have_the_codes_of_duckdb() -> None:
    v = col.v
    both = [
        (v.str.md5(), "md5(v)"), (v.str.sha1(), "sha1(v)"), (v.str.sha2(256), "sha256(v)"),
        (v.hex(), "hex(v)"), (v.str.octet_length(), "octet_length(v::BLOB)"),
    ]  # fmt: skip
    against_duckdb("bytes?", RAW, [*both, (v.str.base64(), "base64(v)")])
    both[-1] = (v.str.octet_length(), "strlen(v)")
    against_duckdb(
        "string?", TEXTS, [*both, (v.str.base64(), "base64(encode(v))"), (v.str.ascii(), "ascii(v)")]
    )
    against_duckdb("int?", NUMBERS, [(v.hex(), "hex(v)"), (v.bin(), "bin(v)")])


def test_digests_are_those_of_their_standards() -> None:
    assert of(col.v.str.sha2(0), "abc") == of(col.v.str.sha2(256), "abc")
    assert of(col.v.str.sha2(224), "abc") == ["23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7"]
    assert str(of(col.v.str.sha2(384), "abc")[0]).startswith("cb00753f45a35e8bb5a03d699ac65007")
    assert str(of(col.v.str.sha2(512), "abc")[0]).startswith("ddaf35a193617abacc417349ae204131")
    assert of(col.v.str.crc32(), "Spark", None) == [1557323817, None]
    assert of(dd.crc32(col.v), b"\xff", type_="bytes") == [zlib.crc32(b"\xff")]


def test_what_is_written_in_a_code_is_read_again() -> None:
    assert of(dd.unbase64(dd.base64(col.v)), *RAW, type_="bytes?") == RAW
    assert of(dd.unhex(dd.hex(col.v)), *RAW, type_="bytes?") == RAW
    assert of(dd.unbase64(col.v), "YQ", "Y Q=\n=", "", None) == [b"a", b"a", b"", None], "as MIME reads it"
    assert of(dd.unhex(col.v), "F", "0g", "", None) == [b"\x0f", None, b"", None]
    with pytest.raises(RowError, match="is no base64"):
        of(dd.unbase64(col.v), "YWFhY")
    with pytest.raises(ExpressionError, match="SHA-2 has 224, 256, 384 or 512 bits"):
        col.v.str.sha2(1).type_in(Schema.of("v: string"))


def test_a_character_is_made_of_the_last_8_bits_as_by_spark() -> None:
    assert of(dd.chr(col.v), 65, 321, 233, 0, 256, -1, None, type_="int?") == [
        "A", "A", "é", "\x00", "\x00", "", None,
    ]  # fmt: skip
