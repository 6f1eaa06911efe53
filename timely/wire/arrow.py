"""Arrow arrays without pandas, and buffers that Arrow likes.

The first `pyarrow.array` of a process imports pandas, to see whether its argument is a series, and so does
the first `to_numpy`: a third of a second that a first small query would wait for, and each Python process of
Spark. These go from values to the same arrays, and back, by their buffers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["aligned_buffer", "binary_array", "int64_array", "int64s_of", "text_array"]

_ALIGNMENT_BYTES = 16
_NO_INTEGERS = np.empty(0, dtype=np.int64)


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
    words = np.ascontiguousarray(values, dtype=np.int64)
    return pa.Array.from_buffers(pa.int64(), len(words), [None, pa.py_buffer(words)])


def int64s_of(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """The integers of a column of int64 without nulls; of one chunk they are shared, not copied. What is none
    of int64, or has nulls, is what Arrow makes of it.
    """
    if column.type != pa.int64() or column.null_count:
        return cast("npt.NDArray[np.int64]", column.to_numpy())
    found = [np.asarray(np.from_dlpack(chunk), dtype=np.int64) for chunk in column.chunks]
    return found[0] if len(found) == 1 else np.concatenate([_NO_INTEGERS, *found])


def binary_array(values: Sequence[bytes]) -> pa.Array:
    """The byte strings as an array without nulls, of `binary`, or of `large_binary` beyond 2 GiB in all."""
    ends = np.zeros(len(values) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, values), dtype=np.int64, count=len(values)), out=ends[1:])
    is_large = int(ends[-1]) > np.iinfo(np.int32).max
    offsets = ends if is_large else ends.astype(np.int32)
    kind = pa.large_binary() if is_large else pa.binary()
    return pa.Array.from_buffers(
        kind, len(values), [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(values))]
    )


def text_array(values: Sequence[str]) -> pa.Array:
    """The texts as an array without nulls, of `string`, or of `large_string` beyond 2 GiB in all."""
    packed = binary_array([value.encode() for value in values])
    return packed.view(pa.large_string() if packed.type == pa.large_binary() else pa.string())
