"""Numbers for the rows of a table by some of its columns: those that `record_hash.py` gives to the same keys.

So a row of a table goes where the tuple, or the dict, of its values would go as a record. Numbers, text and
bytes are numbered column by column, without a Python object for each row. Columns of other types (dates,
times, decimals) have few distinct values mostly, and each of these is numbered once.

CRC-32 is linear: bytes 0 in front of a text change its register only by what the register was at the
beginning. So texts are read from their ends, eight bytes of each at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final, TypeAlias, cast
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from progress.compiled.arrays import Int32s, Int64s
from progress.errors import MisuseError

from ...wire.arrow import numbers_of, validity_of
from ..record_hash import number_of_key

__all__ = ["crc_of_words", "numbers_of_integers", "numbers_of_rows", "order_by_worker"]

_Numbers: TypeAlias = npt.NDArray[np.uint32]
_Words: TypeAlias = npt.NDArray[np.uint64]

_MODULUS: Final = (1 << 61) - 1
"""Python's hash of a number is the number modulo this prime."""
_HASH_OF_INFINITY: Final = 314_159
_BLOCK_BYTES: Final = 8
_SHORT_BYTES_MAX: Final = 1_024
"""Longer texts are numbered one by one: then Python costs less than the text."""


_ROWS_AT_ONCE: Final = 16_384
"""Their words, and the tables, are in the processor's caches."""


@cache
def _by_byte() -> Int32s:
    """Return the tables of CRC-32: entry [n, b] is the effect of the byte b with n bytes behind it."""
    single = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        single = np.where(
            single & 1, np.uint32(0xEDB88320) ^ (single >> np.uint32(1)), single >> np.uint32(1)
        )
    tables = [single]
    for _ in range(_BLOCK_BYTES - 1):
        before = tables[-1]
        tables.append(single[before & np.uint32(255)] ^ (before >> np.uint32(8)))
    return np.stack(tables).view(np.int32)


@cache
def _tables() -> npt.NDArray[np.uint32]:
    """Return the same by pairs of bytes: entry [n, b] is the effect of the pair b with n pairs behind it."""
    by_byte, pairs = _by_byte().view(np.uint32), np.arange(1 << 16)
    return np.stack(
        [by_byte[at + 1][pairs & 255] ^ by_byte[at][pairs >> 8] for at in range(0, _BLOCK_BYTES, 2)]
    )


_ALL: Final = np.uint32(0xFFFFFFFF)


def numbers_of_rows(table: pa.Table, places: Sequence[str | int], name: str) -> _Numbers:
    """Return the number of each row by the columns `places`: names, or positions; by all columns, in order,
    if there are none. Raise `MisuseError`, which begins with `name`, for a column that there is not, or whose
    values are no keys.
    """
    whole = not places
    columns = [_column(table, place, name) for place in (places or range(table.num_columns))]
    numbers = [_numbers_of(table.column(at), table.column_names[at], name) for at in columns]
    if len(numbers) == 1 and not whole:
        return numbers[0]
    return crc_of_words(numbers, table.num_rows, 4)


def _column(table: pa.Table, place: str | int, name: str) -> int:
    if isinstance(place, int):
        if -table.num_columns <= place < table.num_columns:
            return place % int(table.num_columns)
    elif table.column_names.count(place) == 1:
        return int(table.column_names.index(place))
    raise MisuseError(
        f"{name}: a table with the columns {', '.join(table.column_names)[:200] or '(none)'} has no column "
        f"{place!r}, or several: name one that all tables have"
    )


def _numbers_of(column: pa.ChunkedArray, column_name: str, name: str) -> _Numbers:
    if isinstance(column.type, pa.DictionaryType):
        column = column.cast(column.type.value_type)
    where = f"{name}, column {column_name!r}"
    parts = [
        _of_array(chunk.slice(start, _ROWS_AT_ONCE), where)
        for chunk in column.chunks
        for start in range(0, len(chunk), _ROWS_AT_ONCE)
    ]
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, np.uint32), *parts])


def _of_array(array: pa.Array, where: str) -> _Numbers:
    kind = array.type
    if pa.types.is_null(kind):
        return np.full(len(array), number_of_key(None), np.uint32)
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        numbers = numbers_of_integers(numbers_of(array, _dtype_of(kind)))
    elif pa.types.is_floating(kind):
        numbers = _of_floats(numbers_of(array, _dtype_of(kind)).astype(np.float64))
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        numbers = _of_texts(array, 0)
    elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        numbers = _of_texts(array, 3)
    else:
        return _of_values(array, where)
    if array.null_count:
        numbers[~validity_of(array)] = number_of_key(None)
    return numbers


def _dtype_of(kind: pa.DataType) -> type[np.int64]:
    """Return NumPy's type of the values of a column of numbers or truth values."""
    dtype = np.bool_ if pa.types.is_boolean(kind) else np.dtype(kind.to_pandas_dtype()).type
    return cast("type[np.int64]", dtype)


def _of_values(array: pa.Array, where: str) -> _Numbers:
    """Number each distinct value once, by `record_hash`."""
    try:
        encoded = array.dictionary_encode()
        distinct = [number_of_key(value) for value in encoded.dictionary.to_pylist()]
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise MisuseError(
            f"{where} of type {array.type} is no key: {error}. A key is a column of numbers, text, bytes, "
            "dates or times"
        ) from error
    numbers = np.array([*distinct, number_of_key(None)], np.uint32)  # the last one for nulls
    places = encoded.indices.fill_null(len(distinct)).to_numpy(zero_copy_only=False)
    return cast(_Numbers, numbers[places])


def _of_floats(values: npt.NDArray[np.float64]) -> _Numbers:
    """Return the numbers of floats: m · 2^e modulo 2^61 - 1 is m, rotated by e in 61 bits."""
    finite = np.isfinite(values)
    mantissas, exponents = np.frexp(np.abs(np.where(finite, values, 0.0)))
    whole = np.ldexp(mantissas, 53).astype(np.uint64)
    turns = ((exponents.astype(np.int64) - 53) % 61).astype(np.uint64)
    size = ((whole << turns) & np.uint64(_MODULUS)) | (whole >> (np.uint64(61) - turns))
    hashes = np.where(values < 0, -size.astype(np.int64), size.astype(np.int64))
    hashes = np.where(hashes == -1, np.int64(-2), hashes)
    hashes = np.where(np.isinf(values), np.where(values > 0, _HASH_OF_INFINITY, -_HASH_OF_INFINITY), hashes)
    numbers = numbers_of_integers(hashes)  # the hash of a hash is itself
    numbers[np.isnan(values)] = number_of_key(float("nan"))
    return numbers


def numbers_of_integers(values: npt.NDArray[np.int64]) -> _Numbers:
    """Return the number of each whole number of at most 64 bits, of any type of NumPy's."""
    from .row_kernels import number_integers

    if values.dtype == np.uint64:
        values = (values.view(np.uint64) % np.uint64(_MODULUS)).astype(np.int64)
    numbers = np.empty(len(values), np.int32)
    own = np.array(values, np.int64)  # kernels are compiled for arrays that may be written to
    number_integers(own, _by_byte(), _MODULUS, numbers)
    return numbers.view(np.uint32)


def order_by_worker(numbers: _Numbers, owners: Int64s, workers: int) -> tuple[Int64s, Int64s]:
    """Return the rows with these numbers in the order of their workers, each worker's in the order that they
    have, and the bounds of each worker's. `owners` has the worker of each bucket.
    """
    from .row_kernels import order_by_owner

    order: Int64s = np.empty(len(numbers), np.int64)
    bounds: Int64s = np.empty(workers + 1, np.int64)
    order_by_owner(numbers.view(np.int32), owners, order, bounds)
    return order, bounds


def _block(words: _Words) -> _Numbers:
    """Return the register after eight bytes, into which its state before was mixed already."""
    tables, pairs = _tables(), np.ascontiguousarray(words).view(np.uint16).reshape(-1, 4)
    register: _Numbers = tables[3].take(pairs[:, 0])
    for place in range(1, 4):
        register ^= tables[3 - place].take(pairs[:, place])
    return register


def crc_of_words(numbers: Sequence[_Numbers], rows: int, start: int) -> _Numbers:
    """Return `crc32` of the numbers of each row, four bytes each, from `start` on."""
    tables = _tables()
    register = np.full(rows, int(_ALL) ^ start, np.uint32)
    for each in numbers:
        pairs = (register ^ each).view(np.uint16).reshape(-1, 2)
        register = tables[1].take(pairs[:, 0]) ^ tables[0].take(pairs[:, 1])
    return register ^ _ALL


def _of_texts(array: pa.Array, start: int) -> _Numbers:
    """Return `crc32(text, start)` of each text; arbitrary numbers at nulls."""
    is_large = array.type in (pa.large_string(), pa.large_binary())
    offset_type = np.int64 if is_large else np.int32
    _, offset_buffer, data_buffer = array.buffers()
    count = len(array)
    if not count or offset_buffer is None:
        return np.zeros(count, np.uint32)
    width = np.dtype(offset_type).itemsize
    offsets = np.frombuffer(offset_buffer, offset_type, count + 1, array.offset * width).astype(np.int64)
    data = np.frombuffer(data_buffer or b"", np.uint8)[: int(offsets[-1])]
    lengths = np.diff(offsets)
    is_long = lengths > _SHORT_BYTES_MAX
    short = np.where(is_long, 0, lengths)
    numbers = np.zeros(count, np.uint32)
    _add_blocks(numbers, data, offsets, short)
    numbers ^= _of_zeros(start)[short]
    for row in np.flatnonzero(is_long).tolist():
        numbers[row] = crc32(data[offsets[row] : offsets[row + 1]].tobytes(), start)
    return numbers


@cache
def _of_zeros(start: int) -> _Numbers:
    """Return `crc32` of each number of bytes 0: what the beginning adds depends on the length alone."""
    return np.array([crc32(bytes(length), start) for length in range(_SHORT_BYTES_MAX + 1)], np.uint32)


def _add_blocks(
    register: _Numbers,
    data: npt.NDArray[np.uint8],
    offsets: npt.NDArray[np.int64],
    lengths: npt.NDArray[np.int64],
) -> None:
    """Add the effect of each text, filled up with bytes 0 in front to whole blocks, to the registers."""
    blocks = -(-lengths // _BLOCK_BYTES)
    behind = np.concatenate(
        [np.zeros(_BLOCK_BYTES, np.uint8), data]
    )  # a block may begin before the first text
    windows = np.lib.stride_tricks.sliding_window_view(behind, _BLOCK_BYTES)
    ends = offsets[1:] + _BLOCK_BYTES
    for block in range(int(blocks.max(initial=0)), 0, -1):
        rows = np.flatnonzero(blocks >= block)
        words = np.ascontiguousarray(windows[ends[rows] - block * _BLOCK_BYTES]).view(np.uint64).reshape(-1)
        before = np.maximum(block * _BLOCK_BYTES - lengths[rows], 0).astype(np.uint64)  # bytes of other texts
        words = np.where(before > 0, words >> (before * np.uint64(8)) << (before * np.uint64(8)), words)
        register[rows] = _block(words ^ register[rows].astype(np.uint64))
