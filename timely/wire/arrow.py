"""Arrow arrays without pandas, and buffers that Arrow likes.

The first `pyarrow.array` of a process imports pandas, to see whether its argument is a series: a third of a
second that a first small query would wait for. These make the same arrays from buffers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["aligned_buffer", "binary_array", "int64_array"]

_ALIGNMENT_BYTES = 16


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
