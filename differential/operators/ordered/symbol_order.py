"""Words with the order of symbols, whose own words are hashes.

Symbols are ordered as their values: text by code points (as Python compares it), bytes by bytes. Both are the
order of bytes, since UTF-8 keeps that of code points. So the first bytes of a value, as words, have the order
of values as far as they go:

    beginning   the first 32 bytes, zeros behind shorter ones, big-endian, each word with its highest bit
                flipped, so that signed words have the order of bytes; then a word for the place among longer
                values that begin alike (`places.py`), 0 for a value that is not longer

Two values with equal beginnings, which are rare, are compared themselves if their order matters: `ranks`.
"""

from __future__ import annotations

from typing import Final, cast

import numpy as np

from differential.columns.column_types import Bools, Int64s
from differential.columns.symbols.table import SymbolTable
from differential.operators.ordered.places import places_of
from differential.thresholds import ENCODED_ROWS_MAX
from timely.wire.arrow import int64_array, numbers_of

__all__ = ["BEGINNING_WORDS", "beginnings", "ranks"]

_BYTES: Final = 32
BEGINNING_WORDS: Final = _BYTES // 8 + 1
_OFFSETS: Final = np.arange(_BYTES)
_PIECE_ROWS: Final = 1 << 16
"""Values whose first bytes are gathered at a time: 16 MiB of places in their texts."""

_HIGHEST: Final = np.uint64(1 << 63)


def beginnings(symbols: Int64s, table: SymbolTable) -> Int64s:
    """Return the beginnings of the values of symbols: int64[BEGINNING_WORDS, n]; zeros for null, which is 0.

    Cost: about 0.5 µs for each different symbol; 2 µs for a longer value that is seen for the first time.
    """
    if symbols.shape[0] > ENCODED_ROWS_MAX:
        encoded = int64_array(symbols).dictionary_encode()  # in the order in which they come, as in memory
        different, places = numbers_of(encoded.dictionary, np.int64), numbers_of(encoded.indices, np.int32)
        return _of_each(different, table).take(places, 1)
    return _of_each(symbols, table)


def _of_each(symbols: Int64s, table: SymbolTable) -> Int64s:
    """Return what `beginnings` returns, some symbols at a time."""
    out = np.zeros((BEGINNING_WORDS, symbols.shape[0]), np.int64)
    present = np.flatnonzero(symbols)
    values = cast("list[str | bytes]", table.lookup(symbols[present]))
    kinds = set(map(type, values))
    assert kinds <= {str, bytes}, kinds
    are_long = np.zeros(present.size, np.bool_)
    for first in range(0, present.size, _PIECE_ROWS):
        piece = slice(first, first + _PIECE_ROWS)
        out[:-1, present[piece]], are_long[piece] = _first_words(list(map(_as_bytes, values[piece])))
    long = np.flatnonzero(are_long)
    if long.size:
        where = present[long]
        out[-1, where] = _places(symbols[where].tolist(), [values[at] for at in long.tolist()], table)
    return out


def _first_words(values: list[bytes]) -> tuple[Int64s, Bools]:
    """Return (the words of the first bytes of each value, whether it is longer)."""
    lengths = np.fromiter(map(len, values), np.int64, len(values))
    starts = np.cumsum(lengths) - lengths
    together = np.frombuffer(b"".join(values) + b"\0" * _BYTES, np.uint8)
    first = together[starts[:, None] + _OFFSETS]
    first[lengths[:, None] <= _OFFSETS] = 0
    return (first.view(">u8").astype(np.uint64) ^ _HIGHEST).view(np.int64).T, lengths > _BYTES


def _places(symbols: list[int], values: list[str | bytes], table: SymbolTable) -> list[int]:
    """Return the places of long values, whose symbols are `symbols`."""
    places = places_of(table)
    known = places.known(symbols)
    if None not in known:
        return cast("list[int]", known)
    return places.of(symbols, values, [_as_bytes(value)[:_BYTES] for value in values])


def ranks(symbols: Int64s, table: SymbolTable) -> Int64s:
    """Return a number ≥ 0 for each symbol, in the order of the values; 0 for null, which is 0.

    Numbers of text and of bytes must not be compared with one another, nor that of null with others.

    Cost: about 1 µs for each symbol.
    """
    present = np.flatnonzero(symbols)
    values = [_as_bytes(_comparable(value)) for value in table.lookup(symbols[present])]
    numbers = np.zeros(symbols.shape[0], np.int64)
    numbers[present[sorted(range(len(values)), key=values.__getitem__)]] = np.arange(len(values))
    return numbers


def _comparable(value: object) -> str | bytes:
    assert isinstance(value, str | bytes), value
    return value


def _as_bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value
