"""Sums, differences and products of two columns of whole numbers, none of which may leave 64 bits."""

from __future__ import annotations

from typing import Final

import numpy as np

from differential.kernels.overflow import excess, wide_multiply
from progress._compile import Int64s, kernel

ADD: Final = 0
SUBTRACT: Final = 1
MULTIPLY: Final = 2


@kernel
def combine(operation: int, left: Int64s, right: Int64s, out: Int64s) -> bool:
    """Write left + right, left - right or left · right into `out`; whether all results fit 64 bits.

    left, right   int64[n], or int64[1]: the same number in all rows; `out` int64[n]
    """
    rows = out.shape[0]
    if left.shape[0] != rows:
        for row in range(rows):
            out[row] = left[0]
        left = out
    elif right.shape[0] != rows:
        for row in range(rows):
            out[row] = right[0]
        right = out
    flags = np.int64(0)
    if operation == ADD:
        for row in range(rows):
            a, b = left[row], right[row]
            out[row] = a + b
            flags |= (a ^ out[row]) & (b ^ out[row])
    elif operation == SUBTRACT:
        for row in range(rows):
            a, b = left[row], right[row]
            out[row] = a - b
            flags |= (a ^ b) & (a ^ out[row])
    else:
        excesses = np.int64(0)
        for row in range(rows):
            high, low = wide_multiply(left[row], right[row])
            out[row] = low
            excesses |= excess(high, low)
        flags = -np.int64(excesses != 0)
    return flags >= 0
