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

from typing import Final

import numpy as np

from differential.columns.column_types import Int64s
from differential.columns.symbols.table import SymbolTable
from differential.operators.ordered.places import places_of
from differential.thresholds import ENCODED_ROWS_MAX

__all__ = ["BEGINNING_WORDS", "beginnings", "ranks"]

_BYTES: Final = 32
BEGINNING_WORDS: Final = _BYTES // 8 + 1

_HIGHEST: Final = np.uint64(1 << 63)


def beginnings(symbols: Int64s, table: SymbolTable) -> Int64s:
    """Return the beginnings of the values of symbols: int64[BEGINNING_WORDS, n]; zeros for null, which is 0.

    Cost: about 0.5 µs for each different symbol; a few µs for a longer value that is seen for the first time.
    """
    if symbols.shape[0] > ENCODED_ROWS_MAX:
        different, places = np.unique(symbols, return_inverse=True)
        return _of_each(different, table).take(places.reshape(-1), 1)
    return _of_each(symbols, table)


def _of_each(symbols: Int64s, table: SymbolTable) -> Int64s:
    """Return what `beginnings` returns, one symbol at a time."""
    present = symbols != 0
    values = [_comparable(value) for value in table.lookup(symbols[present])]
    encoded = [_as_bytes(value) for value in values]
    words = np.frombuffer(b"".join(each[:_BYTES].ljust(_BYTES, b"\0") for each in encoded), ">u8")
    out = np.zeros((BEGINNING_WORDS, symbols.shape[0]), np.int64)
    out[:-1, present] = (words.astype(np.uint64) ^ _HIGHEST).view(np.int64).reshape(-1, _BYTES // 8).T
    long = [index for index, each in enumerate(encoded) if len(each) > _BYTES]
    if long:
        where = np.flatnonzero(present)[long]
        begins = [encoded[index][:_BYTES] for index in long]
        out[-1, where] = places_of(table).of(
            symbols[where].tolist(), [values[index] for index in long], begins
        )
    return out


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
