"""Arrow arrays without pandas, and buffers that Arrow likes.

The first `pyarrow.array` of a process imports pandas, to see whether its argument is a series, and so does
the first `to_numpy`: a third of a second that a first small query would wait for, and each Python process of
Spark. These go from values to the same arrays, and back, by their buffers; only very many strings are left to
Arrow. And `pc` is `pyarrow.compute`, loaded when one of its functions is called: it makes some three hundred
of them when it is imported, a twelfth of the time until a first answer, and tables that name such functions
would import it for queries that call none.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..thresholds import ARROW_VALUES_MIN

if TYPE_CHECKING:
    import pyarrow.compute as pc

__all__ = [
    "aligned_buffer",
    "as_int64s",
    "binary_array",
    "int64_array",
    "int64s_of",
    "number_array",
    "numbers_of",
    "pc",
    "text_array",
    "validity_of",
    "write_short_numbers",
]

_Number = TypeVar("_Number", np.int64, np.int32, np.float64, np.bool_)

_ALIGNMENT_BYTES = 16
_BYTES_MAX = int(np.iinfo(np.int32).max)
_NO_INTEGERS = np.empty(0, dtype=np.int64)


class _Function(Protocol):
    def __call__(self, *arguments: object, **options: object) -> object: ...


class _Late:
    """What is asked for is a function that asks the module when it is called."""

    def __getattr__(self, name: str) -> _Function:
        if name.startswith("__"):
            raise AttributeError(name)

        def call(*arguments: object, **options: object) -> object:
            found: _Function = getattr(import_module("pyarrow.compute"), name)
            return found(*arguments, **options)

        setattr(self, name, call)
        return call


if not TYPE_CHECKING:
    pc = _Late()


def aligned_buffer(frame: memoryview) -> pa.Buffer:
    """The bytes of `frame` where Arrow may compute on them; copied only if they came at an odd address."""
    buffer = pa.py_buffer(frame)
    if buffer.address % _ALIGNMENT_BYTES == 0:
        return buffer
    moved = pa.allocate_buffer(buffer.size)
    np.frombuffer(moved, dtype=np.uint8)[:] = np.frombuffer(buffer, dtype=np.uint8)
    return moved


def int64_array(values: Sequence[int] | npt.NDArray[np.int64]) -> pa.Array:
    """The integers as an array without nulls; an int64 array is shared, not copied."""
    return number_array(np.asarray(values, dtype=np.int64))


def int64s_of(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """The integers of a column of int64 without nulls; of one chunk they are shared, not copied. What is none
    of int64, or has nulls, is what Arrow makes of it.
    """
    if column.type != pa.int64() or column.null_count:
        return cast("npt.NDArray[np.int64]", column.to_numpy())
    found = [numbers_of(chunk, np.int64) for chunk in column.chunks]
    return found[0] if len(found) == 1 else np.concatenate([_NO_INTEGERS, *found])


def as_int64s(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """The integers of a column of any width, without nulls. Raises `pa.ArrowInvalid` if 64 bits do not hold
    them. Casting loads `pyarrow.compute`: what is none of int64 alone pays for that.
    """
    return int64s_of(column if column.type == pa.int64() else column.cast(pa.int64()))


def number_array(values: npt.NDArray[_Number], null: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """An array of the numbers or truth values, and of nulls where `null` says so (None: nowhere); numbers are
    shared, not copied.
    """
    is_bool = values.dtype == np.bool_
    bits = values.astype(np.bool_, copy=False) if is_bool else None
    kept = pa.py_buffer(np.ascontiguousarray(values)) if bits is None else _packed(bits)
    valid = None if null is None else _packed(~null)
    kind = pa.bool_() if is_bool else pa.from_numpy_dtype(values.dtype)
    return pa.Array.from_buffers(kind, len(values), [valid, kept])


def numbers_of(array: pa.Array, kind: type[_Number]) -> npt.NDArray[_Number]:
    """The numbers or truth values of an array of this kind; at its nulls anything. Numbers are shared, not
    copied.
    """
    buffer = array.buffers()[1]
    if pa.types.is_boolean(array.type):
        return _bits(buffer, array.offset, len(array)).view(kind)
    bits = np.dtype(kind).itemsize * 8
    assert array.type.bit_width == bits, (array.type, kind)
    if buffer is None or not len(array):
        return np.empty(0, kind)
    return np.frombuffer(buffer, kind, len(array), array.offset * (bits // 8))


def write_short_numbers(array: pa.Array, out: npt.NDArray[np.int64]) -> None:
    """Write the whole numbers of an array, of 8 to 32 bits each, into `out`; at its nulls anything."""
    kind = np.dtype(str(array.type))
    buffer = array.buffers()[1]
    assert kind.kind in "iu" and kind.itemsize < out.itemsize, array.type
    if buffer is not None and len(array):
        out[:] = np.frombuffer(buffer, kind, len(array), array.offset * kind.itemsize)


def validity_of(array: pa.Array) -> npt.NDArray[np.bool_]:
    """Where an array has a value, and no null. Not of types that keep their nulls elsewhere."""
    buffer = array.buffers()[0] if array.null_count else None
    return np.ones(len(array), dtype=np.bool_) if buffer is None else _bits(buffer, array.offset, len(array))


def _packed(bits: npt.NDArray[np.bool_]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(bits, bitorder="little"))


def _bits(buffer: pa.Buffer | None, offset: int, count: int) -> npt.NDArray[np.bool_]:
    if buffer is None or not count:
        return np.zeros(count, dtype=np.bool_)
    first = offset // 8
    octets = np.frombuffer(buffer, np.uint8, (offset + count + 7) // 8 - first, first)
    return np.unpackbits(octets, bitorder="little")[offset % 8 :][:count].view(np.bool_)


def binary_array(values: Sequence[bytes]) -> pa.Array:
    """The byte strings as an array without nulls, of `binary`, or of `large_binary` beyond 2 GiB in all."""
    if len(values) >= ARROW_VALUES_MIN and sum(map(len, values)) < _BYTES_MAX:
        return pa.array(values, pa.binary())
    return _of_bytes(values, b"".join(values))


def text_array(values: Sequence[str]) -> pa.Array:
    """The texts as an array without nulls, of `string`, or of `large_string` beyond 2 GiB in all."""
    if len(values) >= ARROW_VALUES_MIN and 4 * sum(map(len, values)) < _BYTES_MAX:
        return pa.array(values, pa.string())
    together = "".join(values)
    if together.isascii():  # then a text has as many bytes as characters
        packed = _of_bytes(values, together.encode())
    else:
        packed = binary_array([value.encode() for value in values])
    return packed.view(pa.large_string() if packed.type == pa.large_binary() else pa.string())


def _of_bytes(lengths: Sequence[Sized], together: bytes) -> pa.Array:
    """The pieces of `together` that are as long as these."""
    ends = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, lengths), dtype=np.int64, count=len(lengths)), out=ends[1:])
    is_large = int(ends[-1]) > _BYTES_MAX
    offsets = ends if is_large else ends.astype(np.int32)
    kind = pa.large_binary() if is_large else pa.binary()
    return pa.Array.from_buffers(kind, len(lengths), [None, pa.py_buffer(offsets), pa.py_buffer(together)])
