"""Kernels over the rows of a table: the numbers of whole numbers, and which rows go to which worker.

They are imported where rows are divided, so that a program which only talks to workers loads no kernel.
"""

from __future__ import annotations

from progress.compiled.kernel import Int32s, Int64s, kernel

__all__ = ["number_integers", "order_by_owner"]


@kernel
def number_integers(values: Int64s, by_byte: Int32s, modulus: int, out: Int32s) -> None:
    """Write `crc32(hash(value).to_bytes(8, "little", signed=True), 1)` of each value to `out`.

    `by_byte[n, b]` is the effect of the byte b with n bytes behind it on the register of CRC-32. The hash of
    a whole number is its size modulo `modulus`, with its sign; -2 stands for -1.
    """
    for row in range(values.shape[0]):
        value = values[row]
        if value >= modulus:
            value = value % modulus
        elif value <= -modulus:
            value = -(-(value + modulus) % modulus)  # the least value of 64 bits has no opposite
        if value == -1:
            value = -2
        rest = value ^ 0xFFFFFFFE  # the register begins with the opposite of 1
        register = by_byte[7, rest & 255] ^ by_byte[6, (rest >> 8) & 255]
        register ^= by_byte[5, (rest >> 16) & 255] ^ by_byte[4, (rest >> 24) & 255]
        register ^= by_byte[3, (rest >> 32) & 255] ^ by_byte[2, (rest >> 40) & 255]
        register ^= by_byte[1, (rest >> 48) & 255] ^ by_byte[0, (rest >> 56) & 255]
        out[row] = ~register


@kernel
def order_by_owner(numbers: Int32s, owners: Int64s, order: Int64s, bounds: Int64s) -> None:
    """Write the rows in the order of their workers to `order`, each worker's in the order that they have.

    The bucket of a row is in the low bits of its number, and `owners` has the worker of each bucket. The rows
    of worker w are those from bounds[w] to bounds[w + 1] of `order`.
    """
    low_bits, workers = owners.shape[0] - 1, bounds.shape[0] - 1
    bounds[:] = 0
    for row in range(numbers.shape[0]):
        bounds[owners[numbers[row] & low_bits] + 1] += 1
    for worker in range(workers):
        bounds[worker + 1] += bounds[worker]
    for row in range(numbers.shape[0]):
        worker = owners[numbers[row] & low_bits]
        order[bounds[worker]] = row
        bounds[worker] += 1
    for worker in range(workers, 0, -1):  # each bound has moved to where the next worker begins
        bounds[worker] = bounds[worker - 1]
    bounds[0] = 0
