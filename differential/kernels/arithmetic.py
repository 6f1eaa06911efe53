"""Sums, differences and products of two columns of whole numbers, with a check that all fit 64 bits."""

from __future__ import annotations

from typing import Final

import numpy as np

from differential.kernels.overflow import excess, wide_multiply, wrapped_add, wrapped_subtract
from progress.compiled.kernel import Int64s, kernel

ADD: Final = 0
SUBTRACT: Final = 1
MULTIPLY: Final = 2


@kernel
def combine(operation: int, left: Int64s, right: Int64s, out: Int64s) -> bool:
    """Write left + right, left - right or left · right into `out`; return True if all results fit 64 bits.

    left, right   int64[n], or int64[1]: the same number in all rows; `out` int64[n]
    """
    rows = out.shape[0]
    if left.shape[0] != rows and operation != SUBTRACT:
        left, right = right, left
    a, b = np.int64(0), np.int64(0)
    flags = np.int64(0)
    if left.shape[0] != rows:
        a = left[0]
        for row in range(rows):
            b = right[row]
            out[row] = wrapped_subtract(a, b)
            flags |= (a ^ b) & (a ^ out[row])
        return flags >= 0
    if operation == MULTIPLY:
        last = right.shape[0] - 1
        for row in range(rows):
            high, low = wide_multiply(left[row], right[min(row, last)])
            out[row] = low
            flags |= excess(high, low)
        return flags == 0
    if right.shape[0] != rows:
        b = right[0]
        if operation == SUBTRACT:
            for row in range(rows):
                out[row] = wrapped_subtract(left[row], b)
                flags |= (left[row] ^ b) & (left[row] ^ out[row])
        else:
            for row in range(rows):
                out[row] = wrapped_add(left[row], b)
                flags |= (left[row] ^ out[row]) & (b ^ out[row])
    elif operation == SUBTRACT:
        for row in range(rows):
            out[row] = wrapped_subtract(left[row], right[row])
            flags |= (left[row] ^ right[row]) & (left[row] ^ out[row])
    else:
        for row in range(rows):
            out[row] = wrapped_add(left[row], right[row])
            flags |= (left[row] ^ out[row]) & (right[row] ^ out[row])
    return flags >= 0
