"""`xxhash64`: one number for the values of several columns, the same as Spark's.

The hash of a column is the seed of the next one, from 42 on, and a null leaves it as it is. Numbers are
hashed in whole columns; of texts, all that are as long go 32 bytes further at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from differential.columns.column_types import ColumnType, integer
from differential.expressions.functions.function import NUMBERS, Function, Param, always
from timely.wire.arrow import binary_array, pc

__all__ = ["HASHES"]

_KINDS: Final = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), "int"), "float": "float", "double": "float",
}  # fmt: skip
"""Spark's names of numbers, by which their hashes differ, and our kinds."""
_OF_32_BITS: Final = ("tinyint", "smallint", "int")

_Words: TypeAlias = npt.NDArray[np.uint64]

_SEED: Final = 42
_P1, _P2, _P3, _P4, _P5 = (
    np.array([prime], np.uint64)
    for prime in (
        0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
    )
)  # fmt: skip
_LOW: Final = np.uint64(0xFFFFFFFF)
_NAN: Final = np.uint64(0x7FF8000000000000)
_STRIPE: Final = 32
_DIGITS_OF_A_LONG: Final = 18
"""Spark hashes a decimal of so many digits as a number of 64 bits, and a longer one by its bytes."""


def _turned(words: _Words, bits: int) -> _Words:
    return (words << np.uint64(bits)) | (words >> np.uint64(64 - bits))


def _mixed(words: _Words) -> _Words:
    words = (words ^ (words >> np.uint64(33))) * _P2
    words = (words ^ (words >> np.uint64(29))) * _P3
    return words ^ (words >> np.uint64(32))


def _round(lane: _Words, words: _Words) -> _Words:
    return _turned(lane + words * _P2, 31) * _P1


def _with_8(hashes: _Words, words: _Words) -> _Words:
    return _turned(hashes ^ _round(np.zeros_like(words), words), 27) * _P1 + _P4


def _with_4(hashes: _Words, words: _Words) -> _Words:
    return _turned(hashes ^ (words * _P1), 23) * _P2 + _P3


def _with_1(hashes: _Words, words: _Words) -> _Words:
    return _turned(hashes ^ (words * _P5), 11) * _P1


def _of_8(words: _Words, seeds: _Words) -> _Words:
    return _mixed(_with_8(seeds + _P5 + np.uint64(8), words))


def _of_4(words: _Words, seeds: _Words) -> _Words:
    return _mixed(_with_4(seeds + _P5 + np.uint64(4), words))


def _read(data: npt.NDArray[np.uint8], places: npt.NDArray[np.int64], count: int) -> _Words:
    """Return the `count` bytes at each place as a number, the lowest first."""
    words = np.zeros(places.size, np.uint64)
    for byte in range(count):
        words |= data[places + byte].astype(np.uint64) << np.uint64(8 * byte)
    return words


def _of_bytes(array: pa.Array, seeds: _Words) -> _Words:
    """Return the hashes of texts or bytes; of nulls any."""
    whole = array.cast(pa.large_binary())
    _, offsets, content = whole.buffers()
    bounds = np.frombuffer(offsets, np.int64)[whole.offset : whole.offset + len(whole) + 1]
    data = np.frombuffer(content, np.uint8) if content is not None else np.empty(0, np.uint8)
    places, lengths = bounds[:-1].copy(), np.diff(bounds)
    hashes = seeds + _P5
    rows = np.flatnonzero(lengths >= _STRIPE)
    if rows.size:
        hashes[rows] = _stripes(data, places, lengths, rows, seeds[rows])
    hashes += lengths.astype(np.uint64)
    left = lengths % _STRIPE
    for size, mix in ((8, _with_8), (4, _with_4), (1, _with_1)):
        rows = np.flatnonzero(left >= size)
        while rows.size:
            hashes[rows] = mix(hashes[rows], _read(data, places[rows], size))
            places[rows] += size
            left[rows] -= size
            rows = rows[left[rows] >= size]
    return _mixed(hashes)


def _stripes(
    data: npt.NDArray[np.uint8],
    places: npt.NDArray[np.int64],
    lengths: npt.NDArray[np.int64],
    rows: npt.NDArray[np.int64],
    seeds: _Words,
) -> _Words:
    """Return the hashes of the whole stripes of the texts in `rows`, and move their places behind these."""
    lanes = np.stack([seeds + _P1 + _P2, seeds + _P2, seeds.copy(), seeds - _P1])
    left, active = lengths[rows] // _STRIPE, np.arange(rows.size)
    while active.size:
        at = places[rows[active]]
        for lane in range(4):
            lanes[lane, active] = _round(lanes[lane, active], _read(data, at + 8 * lane, 8))
        places[rows[active]] += _STRIPE
        left[active] -= 1
        active = active[left[active] > 0]
    hashes = _turned(lanes[0], 1) + _turned(lanes[1], 7) + _turned(lanes[2], 12) + _turned(lanes[3], 18)
    for lane in range(4):
        hashes = (hashes ^ _round(np.zeros_like(hashes), lanes[lane])) * _P1 + _P4
    return cast("_Words", hashes)


def _bytes_of(number: int) -> bytes:
    """Return a number as Java's BigInteger does: in as few bytes as it needs, the highest first."""
    size = (number + (number < 0)).bit_length() // 8 + 1
    return number.to_bytes(size, "big", signed=True)


def _hashed(array: pa.Array, seeds: _Words, name: str) -> _Words:
    type_ = array.type
    if pa.types.is_decimal(type_):
        start = 2 * array.offset
        words = np.frombuffer(array.buffers()[1], np.uint64)[start : start + 2 * len(array)]
        if type_.precision <= _DIGITS_OF_A_LONG:
            return _of_8(words[::2], seeds)
        pairs = zip(words[::2].tolist(), words[1::2].view(np.int64).tolist(), strict=True)
        return _of_bytes(binary_array([_bytes_of(high << 64 | low) for low, high in pairs]), seeds)
    if pa.types.is_string(type_) or pa.types.is_binary(type_) or pa.types.is_large_binary(type_):
        return _of_bytes(array, seeds)
    if pa.types.is_boolean(type_):
        return _of_4(_numbers(array.cast(pa.int64())).view(np.uint64), seeds)
    if pa.types.is_floating(type_):
        floats = pc.fill_null(array, 0.0).to_numpy(zero_copy_only=False) + 0.0  # -0.0 is 0.0
        if name == "float":
            short = floats.astype(np.float32)
            return _of_4(
                np.where(np.isnan(short), np.uint32(0x7FC00000), short.view(np.uint32)).astype(np.uint64),
                seeds,
            )
        return _of_8(np.where(np.isnan(floats), _NAN, floats.view(np.uint64)), seeds)
    words = _numbers(array if pa.types.is_int64(type_) else _as_int64(array)).view(np.uint64)
    is_narrow = name in _OF_32_BITS or pa.types.is_date32(type_)
    return _of_4(words & _LOW, seeds) if is_narrow else _of_8(words, seeds)


def _as_int64(array: pa.Array) -> pa.Array:
    return array.cast(pa.int32() if pa.types.is_date32(array.type) else pa.int64()).cast(pa.int64())


def _numbers(array: pa.Array) -> npt.NDArray[np.int64]:
    return cast("npt.NDArray[np.int64]", pc.fill_null(array, 0).to_numpy(zero_copy_only=False))


def _xxhash64(columns: Sequence[pa.Array], constants: Sequence[object]) -> pa.Array:
    names = _names(constants[0]) if constants else [""] * len(columns)
    hashes = np.full(len(columns[0]), _SEED, np.uint64)
    for array, name in zip(columns, names, strict=True):
        new = _hashed(array, hashes, name)
        is_null = array.is_null().to_numpy(zero_copy_only=False)
        hashes = np.where(is_null, hashes, new) if array.null_count else new
    return pa.array(hashes.view(np.int64), pa.int64())


def _names(types: object) -> list[str]:
    return [name.strip() for name in cast("str", types).split(",")]


def _check_types(types: Sequence[ColumnType], constants: Sequence[object]) -> ColumnType:
    """Return the type of the result; ValueError if Spark's types are not those of the values."""
    names = _names(constants[0])
    if len(names) != len(types) - 1:
        raise ValueError(f"{constants[0]!r} names {len(names)} types, and there are {len(types) - 1} values")
    for name, type_ in zip(names, types[1:], strict=True):
        if _KINDS.get(name, type_.kind) != type_.kind:
            raise ValueError(f"{name!r} is no type of a value that is {type_}")
        if name not in _KINDS and type_.kind in ("int", "float"):
            raise ValueError(f"{name!r}: write tinyint, smallint, int, bigint, float or double for {type_}")
    return integer


_VALUES: Final = Param("values", (*NUMBERS, "bool", "date", "timestamp", "bytes", "string"))

HASHES: Final = (
    Function(name="xxhash64", family="numbers", accessor=None, params=(_VALUES,), many=True,
             gives=always(integer), typed=lambda types, constants: integer, arrow=_xxhash64,
             skips_nulls=True, spark="xxhash64",
             says="One number for the values, the same as Spark's; whole numbers count as its bigint."),
    Function(name="xxhash64_as", family="numbers", accessor=None,
             params=(Param("types", ("string",), is_constant=True), _VALUES), many=True,
             gives=always(integer), typed=_check_types, arrow=_xxhash64, skips_nulls=True,
             calls=(), spark="xxhash64",
             says="The same for values of these types in Spark, as 'int, string': an int has 32 bits."),
)  # fmt: skip
"""The functions that this file defines."""
