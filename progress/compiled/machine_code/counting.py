"""Reference counts of arrays within a kernel, as code that LLVM can optimise.

Numba counts by functions that LLVM does not look into, each of which changes the count in one step that no
other thread can interrupt: 6 ns, wherever an array is an argument of a function that is not inlined, and
again where that call ends. LLVM removes pairs that cancel out where it sees both; with branches in between it
seldom does.

Here counting is an ordinary addition, which LLVM sees. That is safe because the arrays that a kernel makes
are its own: it has one thread, and Python sees them only when it is over. Python's own arrays are not counted
(`calling.py`), or by a count that is made for the call.
"""

from __future__ import annotations

from typing import Final

from llvmlite import ir

__all__ = ["COUNTING", "define_counting"]

COUNTING: Final = ("NRT_incref", "NRT_decref")
"""The functions that numba's code calls to count, each with the address of a count or a null pointer."""

_BYTES = ir.IntType(8).as_pointer()
_COUNT = ir.IntType(64)
_TAKES = ir.FunctionType(ir.VoidType(), [_BYTES])


def define_counting(module: ir.Module) -> None:
    """Define the functions of `COUNTING` in `module`."""
    for name, change in zip(COUNTING, (1, -1), strict=True):
        _define(module, name, change)


def _define(module: ir.Module, name: str, change: int) -> None:
    function = ir.Function(module, _TAKES, name)
    function.linkage = "linkonce_odr"
    function.attributes.add("alwaysinline")
    (counted,) = function.args
    builder = ir.IRBuilder(function.append_basic_block())
    with builder.if_then(builder.icmp_unsigned("!=", counted, ir.Constant(_BYTES, None))):
        address = builder.bitcast(counted, _COUNT.as_pointer())
        count = builder.add(builder.load(address), _COUNT(change))
        builder.store(count, address)
        if change < 0:
            with builder.if_then(builder.icmp_unsigned("==", count, _COUNT(0)), likely=False):
                ends = ir.Function(module, _TAKES, "NRT_MemInfo_call_dtor")
                builder.call(ends, [counted])
    builder.ret_void()
