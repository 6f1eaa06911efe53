"""How do the columns of an Arrow table become words, and words become Arrow again?

Both directions work on whole columns. Only symbols pass through the interpreter, once per *different* value
where there are many: Arrow's dictionary encoding finds these. All input has passed `conforming.py`, so
nothing is checked here.

    laws   decode(encode(array)) == array, but for -0.0 and the payload of NaN
           a null's value words are 0, whatever Arrow's buffer holds below the null: equal rows, equal words
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

import numpy as np
import pyarrow as pa

from differential.columns.column_types import Bools, ColumnType, Int64s
from differential.columns.float_words import floats_to_words, words_to_floats
from differential.columns.nested.fitting import unpacked
from differential.columns.symbols.packing import unpack
from differential.columns.symbols.table import SymbolTable
from differential.columns.wide.wide_words import halves_of, of_halves
from differential.errors import SchemaError, shown
from differential.thresholds import FEW_TEXTS_MAX
from timely.wire.arrow import (
    binary_array,
    number_array,
    numbers_of,
    text_array,
    validity_of,
    write_numbers,
)

__all__ = ["EncodedParts", "decode_column", "encode_column", "is_short", "with_symbols"]

_SHORT: Final = frozenset({pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16(), pa.uint32()})


def is_short(type_: pa.DataType) -> bool:
    """True if all values of the type are whole numbers that fit an int column."""
    return type_ in _SHORT


def encode_column(array: pa.Array, type_: ColumnType, out: Int64s, symbols: SymbolTable | None) -> None:
    """Write the words of `array`, which conforms to `type_`, into `out`, int64[type_.words, n]."""
    assert out.shape == (type_.words, len(array))
    valid: Bools | None = None
    if type_.nullable:
        valid = validity_of(array)
        out[0] = valid
    else:
        assert array.null_count == 0
    values = out[-1]
    if type_.is_symbol:
        assert symbols is not None
        values[:] = _symbol_words(array, type_, symbols)
    elif type_.kind == "float":
        values[:] = floats_to_words(numbers_of(array, np.float64))
    elif type_.is_wide:
        of_halves(_halves(array), out[-2:])
    elif type_.kind == "decimal":
        values[:] = _halves(array)[:, 0]
    elif type_.kind == "bool":
        values[:] = numbers_of(array, np.bool_)
    elif type_.kind == "date":
        values[:] = numbers_of(array, np.int32)
    elif is_short(array.type):
        write_numbers(array, values)
    else:
        values[:] = numbers_of(array, np.int64)
    if valid is not None and array.null_count:
        out[1:, ~valid] = 0


def _halves(array: pa.Array) -> Int64s:
    """Return the halves of 128-bit numbers, the low ones first; at nulls, any words.

    The low half holds all digits of a decimal of 18.
    """
    buffer = array.buffers()[1]
    if buffer is None or not len(array):
        return np.zeros((len(array), 2), dtype=np.int64)
    return np.frombuffer(buffer, np.int64)[2 * array.offset :][: 2 * len(array)].reshape(-1, 2)


def _decimals(words: Int64s, null: Bools | None, type_: ColumnType) -> pa.Array:
    """Return decimals of these words: the inverse of what `encode_column` writes."""
    values = words[-1]
    if type_.is_wide:
        halves = halves_of(words[-2:])
    else:
        halves = np.empty((len(values), 2), dtype=np.int64)
        halves[:, 0] = values
        halves[:, 1] = values >> 63
    valid = number_array(values, null).buffers()[0]
    return pa.Array.from_buffers(type_.to_arrow(), len(values), [valid, pa.py_buffer(halves)])


def with_symbols(array: pa.Array, type_: ColumnType, symbols: SymbolTable) -> pa.Array:
    """Return a column of strings, bytes, packed or nested values as a dictionary of their words.

    Slices of it can be encoded one by one without looking values up again.
    """
    if not pa.types.is_dictionary(array.type):
        array = array.dictionary_encode()
    words = number_array(_interned(array.dictionary, type_, symbols))
    return pa.DictionaryArray.from_arrays(array.indices, words)


def _interned(array: pa.Array, type_: ColumnType, symbols: SymbolTable) -> Int64s:
    """Return the words of values, or of their words; at nulls, any word."""
    if array.type == pa.int64():
        return numbers_of(array, np.int64)
    try:
        values = array.to_pylist()
    except UnicodeDecodeError as error:  # Arrow does not check its texts
        raise SchemaError(
            f"a text of a column of strings is no UTF-8: {shown(error.object)}. Decode it before, or declare "
            "the column as bytes"
        ) from error
    if array.null_count:
        some = next((value for value in values if value is not None), None)
        if some is None:
            return np.zeros(len(values), dtype=np.int64)
        values = [some if value is None else value for value in values]
    if type_.kind == "any":
        return symbols.intern([unpack(payload) for payload in values])
    if type_.is_nested:
        return symbols.intern(unpacked(values, type_))
    return symbols.intern_strings(values)


def _symbol_words(array: pa.Array, type_: ColumnType, symbols: SymbolTable) -> Int64s:
    """Return the words of a column of symbols, or of `with_symbols` of one; at nulls, any word."""
    if not pa.types.is_dictionary(array.type):
        if len(array) <= FEW_TEXTS_MAX and not (type_.kind == "any" or type_.is_nested):
            return _interned(array, type_, symbols)
        array = array.dictionary_encode()
    words = _interned(array.dictionary, type_, symbols)
    if not len(words):
        return np.zeros(len(array), dtype=np.int64)
    indices = numbers_of(array.indices.cast(pa.int64()), np.int64)  # a user may bring any width
    if array.indices.null_count:
        indices = np.where(validity_of(array.indices), indices, 0)
    taken: Int64s = words.take(indices)
    return taken


class EncodedParts:
    """The columns of a table, which conform to `types`, for writing as words, some rows at a time.

    The words of a column stand at its offset. All symbols are entered when the object is made.
    """

    def __init__(
        self,
        columns: Sequence[pa.ChunkedArray],
        types: Sequence[ColumnType],
        offsets: Sequence[int],
        symbols: SymbolTable | None,
    ) -> None:
        self._symbols = symbols
        self._columns: list[tuple[ColumnType, int, list[pa.Array]]] = []
        for column, type_, offset in zip(columns, types, offsets, strict=True):
            chunks = column.chunks
            if type_.is_symbol:
                assert symbols is not None
                chunks = [with_symbols(chunk, type_, symbols) for chunk in chunks]
            self._columns.append((type_, offset, chunks))

    def write(self, words: Int64s, first: int) -> None:
        """Write rows from `first` on: as many as `words`, int64[width or more, n], has room for."""
        rows = words.shape[1]
        for type_, offset, chunks in self._columns:
            start = 0
            for chunk in chunks:
                # Where these rows begin and end in this chunk.
                begin, end = max(first - start, 0), min(first + rows - start, len(chunk))
                if begin < end:
                    at = start + begin - first
                    out = words[offset : offset + type_.words, at : at + end - begin]
                    encode_column(chunk.slice(begin, end - begin), type_, out, self._symbols)
                start += len(chunk)


def decode_column(words: Int64s, type_: ColumnType, symbols: SymbolTable | None) -> pa.Array:
    """Return the Arrow array with these words, int64[type_.words, n]; of type `type_.to_arrow()`."""
    assert words.shape[0] == type_.words
    null: Bools | None = words[0] == 0 if type_.nullable else None
    values = words[-1]
    if type_.is_symbol:
        assert symbols is not None
        return _symbol_values(values, null, type_, symbols)
    if type_.kind == "float":
        return number_array(words_to_floats(values), null)
    if type_.kind == "bool":
        return number_array(values != 0, null)
    if type_.kind == "decimal":
        return _decimals(words, null, type_)
    if type_.kind == "date":
        return number_array(values.astype(np.int32), null).view(pa.date32())
    array = number_array(values, null)
    return array.view(type_.to_arrow()) if type_.kind == "timestamp" else array


def _symbol_values(words: Int64s, null: Bools | None, type_: ColumnType, symbols: SymbolTable) -> pa.Array:
    """Return the strings, bytes or packed values of a column of symbols."""
    encoded = number_array(words, null).dictionary_encode()
    distinct = numbers_of(encoded.dictionary, np.int64)
    is_packed = type_.metadata is not None
    payloads = symbols.payloads(distinct) if is_packed else symbols.lookup(distinct)
    if type_.kind == "string":
        values = text_array(cast("list[str]", payloads))
    else:
        values = binary_array(cast("list[bytes]", payloads))
    if values.type != type_.to_arrow():  # beyond 2 GiB, where Arrow makes chunks
        values = pa.array(payloads, type_.to_arrow())
    return values.take(encoded.indices)
