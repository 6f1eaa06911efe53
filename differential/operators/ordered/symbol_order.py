"""In which order are symbols, whose words are hashes?

In that of the values: text by code points (as Python compares it), bytes by bytes. Both are the order of
bytes, since UTF-8 keeps that of code points. So the first bytes of a value, as words, have the order of
values as far as they go:

    beginning   the first 32 bytes, zeros behind shorter ones, big-endian, each word with its highest bit
                turned, so that signed words have the order of bytes; then a word for the place among longer
                values that begin alike (`places.py`), 0 for those that are not longer

Two values with one beginning, which are rare, are compared themselves where somebody needs to know: `ranks`.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from differential.columns.column_types import Int64s
from differential.columns.symbols.table import SymbolTable
from differential.operators.ordered.places import places_of

__all__ = ["BEGINNING_WORDS", "beginnings", "ranks"]

_BYTES: Final = 32
BEGINNING_WORDS: Final = _BYTES // 8 + 1

_HIGHEST: Final = np.uint64(1 << 63)
_FEW_ROWS: Final = 64
"""Up to here looking for those that are the same costs more than taking each by itself."""


def beginnings(symbols: Int64s, table: SymbolTable) -> Int64s:
    """The beginnings of the values of some words: int64[BEGINNING_WORDS, n]; zeros for null, which is 0.

    Cost: about 0.5 µs for each different one; longer ones seen for the first time a few µs.
    """
    if symbols.shape[0] > _FEW_ROWS:
        different, places = np.unique(symbols, return_inverse=True)
        return _of_each(different, table).take(places.reshape(-1), 1)
    return _of_each(symbols, table)


def _of_each(symbols: Int64s, table: SymbolTable) -> Int64s:
    """The same, one by one."""
    present = symbols != 0
    values = [_comparable(value) for value in table.lookup(symbols[present])]
    encoded = [_as_bytes(value) for value in values]
    words = np.frombuffer(b"".join(each[:_BYTES].ljust(_BYTES, b"\0") for each in encoded), ">u8")
    found = np.zeros((BEGINNING_WORDS, symbols.shape[0]), np.int64)
    found[:-1, present] = (words.astype(np.uint64) ^ _HIGHEST).view(np.int64).reshape(-1, _BYTES // 8).T
    long = [index for index, each in enumerate(encoded) if len(each) > _BYTES]
    if long:
        where = np.flatnonzero(present)[long]
        begins = [encoded[index][:_BYTES] for index in long]
        found[-1, where] = places_of(table).of(
            symbols[where].tolist(), [values[index] for index in long], begins
        )
    return found


def ranks(symbols: Int64s, table: SymbolTable) -> Int64s:
    """Numbers ≥ 0 in the order of the values; those of text and of bytes are not to be compared.

    Cost: about 1 µs each.
    """
    values = [_as_bytes(_comparable(value)) for value in table.lookup(symbols)]
    found = np.empty(len(values), np.int64)
    found[sorted(range(len(values)), key=values.__getitem__)] = np.arange(len(values))
    return found


def _comparable(value: object) -> str | bytes:
    assert isinstance(value, str | bytes), value
    return value


def _as_bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value
