"""The run table, through which one kernel call reads all runs of a trace, whatever their widths.

It has one line of integers per run, `table int64[runs, HEADER + 3·columns]`:

    rows, lub, side, directory, shift, low, buckets, then for each column: address, width, base

`lub` is ≥ every time of the run; only a trace's head uses `side`; the directory is that of `search.py`. A
column of width 1, 2, 3 or 4 holds unsigned offsets from `base`; of width 8, the values themselves (base 0,
unless a copy of the line moves them all); of width 0, nothing: all are `base`. Reading width 3 touches one
byte more, so memory ends with one to spare. Addresses instead of arrays: a kernel then has one signature for
any number of runs and any widths.

Safety: the `Run` (or head) named by a line owns the memory, and the `Trace` that owns the table holds it; a
trace rewrites its table in the same step in which it drops a run, and calls no kernel in between. With
`NAIAD_CHECK_BOUNDS=1`, functions that take row numbers compare them with the line's `rows`: `read`, and those
that find (`search.py`) or unpack (`columns.py`) many rows; `load` itself does not know how many rows there
are.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from typing import Final, cast

from progress.compiled.kernel import CHECK_BOUNDS, Int64s, intrinsic, kernel, small_kernel

HEADER: Final = 7
ROWS: Final = 0
LUB: Final = 1
SIDE: Final = 2
DIRECTORY: Final = 3
SHIFT: Final = 4
LOW: Final = 5
BUCKETS: Final = 6

_HAS_PAUSE: Final = platform.machine() in ("x86_64", "AMD64")


def _loader(bits: int):  # type: ignore[no-untyped-def]
    """Return an intrinsic: the unsigned integer of `bits` bits at `address`, `index` items further."""

    def load(typing_context, address, index):  # type: ignore[no-untyped-def]
        import numba
        from llvmlite import ir

        def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            start = builder.inttoptr(arguments[0], ir.IntType(bits).as_pointer())
            value = builder.load(builder.gep(start, [arguments[1]]), align=1)
            return value if bits == 64 else builder.zext(value, ir.IntType(64))

        return numba.types.int64(numba.types.int64, numba.types.int64), generate

    return intrinsic(load)


def _storer(bits: int):  # type: ignore[no-untyped-def]
    """Return an intrinsic that writes the low `bits` bits of `value` at `address`, `index` items further."""

    def store(typing_context, address, index, value):  # type: ignore[no-untyped-def]
        import numba
        from llvmlite import ir

        def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            start = builder.inttoptr(arguments[0], ir.IntType(bits).as_pointer())
            short = arguments[2] if bits == 64 else builder.trunc(arguments[2], ir.IntType(bits))
            builder.store(short, builder.gep(start, [arguments[1]]), align=1)
            return context.get_dummy_value()

        return numba.types.void(numba.types.int64, numba.types.int64, numba.types.int64), generate

    return intrinsic(store)


def _prefetch(typing_context, address):  # type: ignore[no-untyped-def]
    """Intrinsic: request the cache line at `address` without waiting. The address may be invalid."""
    from llvmlite import ir
    from numba import types

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        ask = builder.module.declare_intrinsic("llvm.prefetch", [pointer], kind)
        to_read, in_all_caches, data = (ir.Constant(number, what) for what in (0, 3, 1))
        builder.call(ask, [builder.inttoptr(arguments[0], pointer), to_read, in_all_caches, data])
        return context.get_dummy_value()

    return types.void(types.int64), generate


def _copy_words(typing_context, target, source, count):  # type: ignore[no-untyped-def]
    """Intrinsic: copy `count` words from the address `source` to `target`, which do not overlap."""
    from llvmlite import ir
    from numba import types

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        pointer, size, bit = ir.IntType(8).as_pointer(), ir.IntType(64), ir.IntType(1)
        copy = builder.module.declare_intrinsic("llvm.memcpy", [pointer, pointer, size])
        target, source, count = arguments
        pointers = [builder.inttoptr(each, pointer) for each in (target, source)]
        builder.call(copy, [*pointers, builder.mul(count, size(8)), bit(0)])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


prefetch = cast("Callable[[int], None]", intrinsic(_prefetch))
copy_words = cast("Callable[[int, int, int], None]", intrinsic(_copy_words))
_load_8, _load_16, _load_32, _load_64 = (_loader(bits) for bits in (8, 16, 32, 64))
_store_8, _store_16, _store_32, _store_64 = (_storer(bits) for bits in (8, 16, 32, 64))


@small_kernel
def load(address: int, width: int, base: int, row: int) -> int:
    """Return the value in `row` of a column. Requires: the column has that row."""
    if width == 4:
        return base + _load_32(address, row)
    if width == 8:
        return base + _load_64(address, row)
    if width == 1:
        return base + _load_8(address, row)
    if width == 3:
        return base + (_load_32(address + 3 * row, 0) & 0xFFFFFF)
    if width == 2:
        return base + _load_16(address, row)
    return base


@small_kernel
def load_count(address: int, index: int) -> int:
    """Return number `index` of an array of uint32 at `address`."""
    return _load_32(address, index)


@small_kernel
def store_count(address: int, index: int, count: int) -> None:
    """Write number `index` of an array of uint32 at `address`."""
    _store_32(address, index, count)


@small_kernel
def store(address: int, width: int, row: int, offset: int) -> None:
    """Write `offset` (value minus base) into `row` of a column of `width` bytes; width 0 writes nothing."""
    if width == 4:
        _store_32(address, row, offset)
    elif width == 8:
        _store_64(address, row, offset)
    elif width == 1:
        _store_8(address, row, offset)
    elif width == 3:
        _store_16(address + 3 * row, 0, offset)
        _store_8(address + 3 * row + 2, 0, offset >> 16)
    elif width == 2:
        _store_16(address, row, offset)


@small_kernel
def read(table: Int64s, run: int, column: int, row: int) -> int:
    """Return the word in (`column`, `row`) of a run. Requires: `row` is less than the run's rows."""
    if CHECK_BOUNDS:
        if row < 0 or row >= table[run, ROWS]:
            raise IndexError("row outside its run")
    at = HEADER + 3 * column
    return load(table[run, at], table[run, at + 1], table[run, at + 2], row)


@kernel
def describe_column(table: Int64s, run: int, column: int, address: int) -> None:
    """Enter in line `run` that a column is plain words from `address` on."""
    at = HEADER + 3 * column
    table[run, at] = address
    table[run, at + 1] = 8
    table[run, at + 2] = 0


@kernel
def describe_words(words: Int64s, rows: int, table: Int64s, run: int) -> None:
    """Enter a plain table of words in line `run`; its `lub` is left alone."""
    table[run, ROWS] = rows
    for column in range(words.shape[0]):
        describe_column(table, run, column, words.ctypes.data + 8 * column * words.shape[1])


def _table_at(typing_context, address, lines, columns):  # type: ignore[no-untyped-def]
    """Intrinsic: return the words at `address` as int64[lines, columns]. Requires: an owner holds them
    meanwhile.
    """
    from numba import types
    from numba.np.arrayobj import make_array, populate_array

    kind = types.Array(types.int64, 2, "C")

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        start, lines, columns = arguments
        array = make_array(kind)(context, builder)
        eight = context.get_constant(types.intp, 8)
        populate_array(
            array,
            data=builder.inttoptr(start, array.data.type),
            shape=[lines, columns],
            strides=[builder.mul(columns, eight), eight],
            itemsize=eight,
            meminfo=None,
        )
        return array._getvalue()

    return kind(types.int64, types.int64, types.int64), generate


table_at = cast("Callable[[int, int, int], Int64s]", intrinsic(_table_at))


# words that other processes write, too


def _load_acquire(typing_context, address):  # type: ignore[no-untyped-def]
    """Intrinsic: load the word at an address; later loads are no older."""
    from llvmlite import ir
    from numba import types

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        pointer = builder.inttoptr(arguments[0], ir.IntType(64).as_pointer())
        return builder.load_atomic(pointer, "acquire", 8)

    return types.int64(types.int64), generate


def _store_release(typing_context, address, value):  # type: ignore[no-untyped-def]
    """Intrinsic: write a word; a process that sees it sees all earlier stores."""
    from llvmlite import ir
    from numba import types

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        pointer = builder.inttoptr(arguments[0], ir.IntType(64).as_pointer())
        builder.store_atomic(arguments[1], pointer, "release", 8)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


def _fence(typing_context):  # type: ignore[no-untyped-def]
    """Intrinsic: make all earlier stores visible to others before any later load."""
    from numba import types

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), generate


def _pause(typing_context):  # type: ignore[no-untyped-def]
    """Intrinsic: let another thread of the core work for a moment."""
    from llvmlite import ir
    from numba import types

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        if _HAS_PAUSE:
            kind = ir.FunctionType(ir.VoidType(), [])
            builder.call(builder.module.declare_intrinsic("llvm.x86.sse2.pause", (), kind), [])
        return context.get_dummy_value()

    return types.void(), generate


load_acquire = cast("Callable[[int], int]", intrinsic(_load_acquire))
store_release = cast("Callable[[int, int], None]", intrinsic(_store_release))
fence = cast("Callable[[], None]", intrinsic(_fence))
pause = cast("Callable[[], None]", intrinsic(_pause))
