"""Adding and multiplying whole numbers, with a check that results fit 64 bits.

A kernel that meets a larger number raises Python's `OverflowError`, and returns no number: its caller then
finds the row slowly, with Python's integers, for a message (`differential/columns/overflow.py`). Numba loses
the memory that the kernel had allocated. If the error ends the dataflow, this happens once; if the sum of a
group fails, each time that the group is reduced (`differential/operators/reducing/overflowing.py`).

A sum that fits is right however its partial sums wrapped, so only the final sum is checked. It is computed in
two words, which costs one more addition with carry:

    number = high · 2⁶⁴ + (low as an unsigned number)

Numba tells the compiler that `a + b`, `a - b` and `a * b` of signed words never leave 64 bits. Where they do,
their bits are right, but the compiler may draw false conclusions and remove tests: such as the test whether a
sum of two positive numbers is below 0. Unsigned words wrap: code that examines a wrapped sum uses
`wrapped_add`.

Where many sums are made from few rows, as in a reduce, the kernel examines the rows first: numbers of less
than `SMALL_BITS` bits cannot add up to one of more than 63, for a kernel never has 2³² rows at once.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from progress.compiled.kernel import Int64s, intrinsic, kernel, small_kernel

INT64_MIN: Final = -(1 << 63)
SMALL_BITS: Final = 31


@intrinsic
def _multiply_add(typing_context, high, low, a, b):  # type: ignore[no-untyped-def]
    """Return (high, low) of high · 2⁶⁴ + low + a · b, in 128 bits: one multiplication, two additions."""
    import numba
    from llvmlite import ir

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        wide, word = ir.IntType(128), ir.IntType(64)
        high_part, a_part, b_part = (builder.sext(arguments[index], wide) for index in (0, 2, 3))
        shift = ir.Constant(wide, 64)
        total = builder.or_(builder.shl(high_part, shift), builder.zext(arguments[1], wide))
        total = builder.add(total, builder.mul(a_part, b_part))
        parts = (builder.trunc(builder.ashr(total, shift), word), builder.trunc(total, word))
        return context.make_tuple(builder, signature.return_type, parts)

    word = numba.types.int64
    return numba.types.UniTuple(word, 2)(word, word, word, word), generate


@small_kernel
def wide_add(high: int, low: int, a: int) -> tuple[int, int]:
    """Return (high, low) of a number plus `a`."""
    return _multiply_add(high, low, a, np.int64(1))


@small_kernel
def wide_multiply(a: int, b: int) -> tuple[int, int]:
    """Return (high, low) of a · b."""
    return _multiply_add(np.int64(0), np.int64(0), a, b)


@small_kernel
def wrapped_add(a: int, b: int) -> int:
    """Return the low 64 bits of a + b."""
    return np.int64(np.uint64(a) + np.uint64(b))


@small_kernel
def wrapped_multiply(a: int, b: int) -> int:
    """Return the low 64 bits of a · b."""
    return np.int64(np.uint64(a) * np.uint64(b))


@small_kernel
def wrapped_subtract(a: int, b: int) -> int:
    """Return the low 64 bits of a - b."""
    return np.int64(np.uint64(a) - np.uint64(b))


@small_kernel
def excess(high: int, low: int) -> int:
    """Return 0 iff the number fits one word, which is then `low`."""
    return high ^ (low >> 63)


@small_kernel
def is_positive(high: int, low: int) -> bool:
    """Return True if the number is greater than 0."""
    return high > 0 or (high == 0 and low != 0)


@small_kernel
def refuse(excesses: int) -> None:
    """Raise OverflowError unless all the `excess` values, or-ed together, are 0."""
    if excesses != 0:
        raise OverflowError("a sum leaves 64 bits")


@small_kernel
def checked_add(a: int, b: int) -> int:
    """Return a + b; raise OverflowError if it leaves 64 bits."""
    total = wrapped_add(a, b)
    if ((a ^ total) & (b ^ total)) < 0:
        raise OverflowError("a sum leaves 64 bits")
    return total


@small_kernel
def magnitude(value: int) -> int:
    """Return a number ≥ 0 with about as many bits as `value` has; or-ed together they show the longest."""
    return value ^ (value >> 63)


@kernel
def negate_all(values: Int64s) -> None:
    """Negate every value, in place; raise OverflowError for the smallest number."""
    for index in range(values.shape[0]):
        if values[index] == INT64_MIN:
            raise OverflowError("a number without its negative")
        values[index] = -values[index]
