"""Arrow arrays without importing pandas, and buffers that Arrow can compute on.

The first `pyarrow.array` of a process imports pandas, to check whether its argument is a series, and so does
the first `to_numpy`. That takes a third of a second, for which a first small query and each Python process of
Spark would wait. The functions here convert values to the same arrays, and back, through the arrays' buffers;
they leave only very many strings to Arrow.

`pc` is `pyarrow.compute`, imported at the first call of one of its functions. Importing it creates some three
hundred functions, which takes a twelfth of the time until a first answer, and modules that merely name such
functions in tables would import it for queries that call none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Sized
from importlib import import_module
from typing import TYPE_CHECKING, Final, Protocol, TypeVar, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..errors import MisuseError
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
    "stored",
    "text_array",
    "to_pandas",
    "to_polars",
    "validity_of",
    "write_numbers",
]

_Number = TypeVar("_Number", np.int64, np.int32, np.float64, np.bool_)

_ALIGNMENT_BYTES = 16
_BYTES_MAX = int(np.iinfo(np.int32).max)
_NO_INTEGERS = np.empty(0, dtype=np.int64)


def stored(table: pa.Table) -> pa.Table:
    """Return the table with columns of extension types as what they are stored as, which workers take."""
    for at, field in enumerate(table.schema):
        if isinstance(field.type, pa.BaseExtensionType):
            metadata = {**(field.metadata or {}), **getattr(field.type, "storage_metadata", {})}
            storage = field.type.storage_type
            column = pa.chunked_array([chunk.storage for chunk in table.column(at).chunks], storage)
            table = table.set_column(at, pa.field(field.name, storage, field.nullable, metadata), column)
    return table


def to_pandas(table: pa.Table) -> object:
    """Return a table as a DataFrame of pandas: columns of values are columns of objects."""
    frame = stored(table).to_pandas()
    for name, kind in zip(table.column_names, table.schema.types, strict=True):
        if isinstance(kind, pa.BaseExtensionType):
            frame[name] = _objects(table.column(name).to_pylist())
    return frame


class _Frames(Protocol):
    """The one function of Polars that is used here."""

    from_arrow: Callable[[pa.Table], object]


def to_polars(table: pa.Table) -> object:
    """Return a table as a DataFrame of Polars; raise MisuseError if that is not installed."""
    try:
        polars = cast("_Frames", import_module("polars"))
    except ModuleNotFoundError:
        raise MisuseError("to_polars needs polars, which is not installed: pip install polars") from None
    return polars.from_arrow(table)


def _objects(values: list[object]) -> npt.NDArray[np.object_]:
    """An array of these, of which some may be lists."""
    objects = np.empty(len(values), np.object_)
    for place, value in enumerate(values):
        objects[place] = value
    return objects


class _Function(Protocol):
    def __call__(self, *arguments: object, **options: object) -> object: ...


class _Late:
    """Stands for `pyarrow.compute`: each attribute is a function that imports the module when called."""

    def __getattr__(self, name: str) -> _Function:
        if name.startswith("__"):
            raise AttributeError(name)

        def call(*arguments: object, **options: object) -> object:
            function: _Function = getattr(import_module("pyarrow.compute"), name)
            return function(*arguments, **options)

        setattr(self, name, call)
        return call


if not TYPE_CHECKING:
    pc = _Late()


def aligned_buffer(frame: memoryview) -> pa.Buffer:
    """Return the bytes of `frame` as a buffer that Arrow may compute on.

    It shares the memory of `frame` if that is aligned to 16 bytes, and is a copy otherwise.
    """
    buffer = pa.py_buffer(frame)
    if buffer.address % _ALIGNMENT_BYTES == 0:
        return buffer
    moved = pa.allocate_buffer(buffer.size)
    np.frombuffer(moved, dtype=np.uint8)[:] = np.frombuffer(buffer, dtype=np.uint8)
    return moved


def int64_array(values: Sequence[int] | npt.NDArray[np.int64]) -> pa.Array:
    """Return the integers as an array without nulls; an int64 array is shared, not copied."""
    return number_array(np.asarray(values, dtype=np.int64))


def int64s_of(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """Return the integers of an int64 column without nulls; a single chunk is shared, not copied.

    For a column of another type, or with nulls, return the result of its `to_numpy`.
    """
    if column.type != pa.int64() or column.null_count:
        return cast("npt.NDArray[np.int64]", column.to_numpy())
    chunks = [numbers_of(chunk, np.int64) for chunk in column.chunks]
    return chunks[0] if len(chunks) == 1 else np.concatenate([_NO_INTEGERS, *chunks])


def as_int64s(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """Return the integers of a column of any width, without nulls.

    Raises `pa.ArrowInvalid` if an integer does not fit into 64 bits. Only a column that is not int64 is cast,
    which imports `pyarrow.compute`.
    """
    return int64s_of(column if column.type == pa.int64() else column.cast(pa.int64()))


def number_array(values: npt.NDArray[_Number], null: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """Return an array of the numbers or booleans, with nulls where `null` is true (None: no nulls).

    Numbers are shared, not copied.
    """
    is_bool = values.dtype == np.bool_
    bits = values.astype(np.bool_, copy=False) if is_bool else None
    data = pa.py_buffer(np.ascontiguousarray(values)) if bits is None else _packed(bits)
    valid = None if null is None else _packed(~null)
    kind = pa.bool_() if is_bool else pa.from_numpy_dtype(values.dtype)
    return pa.Array.from_buffers(kind, len(values), [valid, data])


def numbers_of(array: pa.Array, kind: type[_Number]) -> npt.NDArray[_Number]:
    """Return the numbers or booleans of an array of this kind; the values at nulls are arbitrary.

    Numbers are shared, not copied.
    """
    buffer = array.buffers()[1]
    if pa.types.is_boolean(array.type):
        return _bits(buffer, array.offset, len(array)).view(kind)
    bits = np.dtype(kind).itemsize * 8
    assert array.type.bit_width == bits, (array.type, kind)
    if buffer is None or not len(array):
        return np.empty(0, kind)
    return np.frombuffer(buffer, kind, len(array), array.offset * (bits // 8))


_WHOLE: Final = {
    type_.id: np.dtype(str(type_))
    for type_ in (
        *(pa.int8(), pa.int16(), pa.int32(), pa.int64()),
        *(pa.uint8(), pa.uint16(), pa.uint32()),
    )
}
"""Types of numbers that fit 64 bits with a sign, by what Arrow calls them."""


def write_numbers(array: pa.Array, out: npt.NDArray[np.int64]) -> None:
    """Write the whole numbers of an array, of any width, into `out`; the values at nulls are arbitrary."""
    kind, buffer, rows = _WHOLE[array.type.id], array.buffers()[1], len(array)
    if buffer is not None and rows:
        out[:] = np.frombuffer(buffer, kind, rows, array.offset * kind.itemsize)


def validity_of(array: pa.Array) -> npt.NDArray[np.bool_]:
    """Return for each entry of an array whether it is not null.

    Not for types that keep their nulls outside the validity buffer (unions, run-end encoded arrays).
    """
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
    """Return the byte strings as an array without nulls: `binary`, or `large_binary` beyond 2 GiB in all."""
    if len(values) >= ARROW_VALUES_MIN and sum(map(len, values)) < _BYTES_MAX:
        return pa.array(values, pa.binary())
    return _of_bytes(values, b"".join(values))


def text_array(values: Sequence[str]) -> pa.Array:
    """Return the texts as an array without nulls: `string`, or `large_string` beyond 2 GiB in all."""
    if len(values) >= ARROW_VALUES_MIN and 4 * sum(map(len, values)) < _BYTES_MAX:
        return pa.array(values, pa.string())
    together = "".join(values)
    if together.isascii():  # then a text has as many bytes as characters
        packed = _of_bytes(values, together.encode())
    else:
        packed = binary_array([value.encode() for value in values])
    return packed.view(pa.large_string() if packed.type == pa.large_binary() else pa.string())


def _of_bytes(lengths: Sequence[Sized], together: bytes) -> pa.Array:
    """Return `together`, cut into consecutive pieces as long as the entries of `lengths`, as a binary
    array.
    """
    ends = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, lengths), dtype=np.int64, count=len(lengths)), out=ends[1:])
    is_large = int(ends[-1]) > _BYTES_MAX
    offsets = ends if is_large else ends.astype(np.int32)
    kind = pa.large_binary() if is_large else pa.binary()
    return pa.Array.from_buffers(kind, len(lengths), [None, pa.py_buffer(offsets), pa.py_buffer(together)])
