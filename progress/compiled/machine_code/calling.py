"""Machine code between Python's call of a kernel and the kernel: it takes the arguments apart.

There is one such piece for each kernel that Python calls. It checks that the arguments are of the types that
the kernel was compiled for, reads numbers and the addresses of arrays out of them, releases the interpreter's
lock, calls the kernel, and makes Python objects of its result.

Numba makes such pieces, too, one for each kernel, called or not. They rely on checks by numba's dispatcher:
that object contains half of numba, takes longer for each argument, and asks for the compiler's types before
it has read anything. The code here checks by itself, so a kernel whose machine code is on disk is called
without numba. An array that the kernel was not compiled for (with gaps, read-only, of another type) goes to
*other*, the object for which the builtin function was made: memory is never misread.

Where no result of a kernel holds memory, arrays are *lent* to it: nothing counts references to them, since
the caller holds them until the call is over. Otherwise the array that comes back may be a part of one that
went in, and numba's runtime counts references to both.

The code compares a type by identity, the descriptor of an array's items as well: numpy has one of each. It
reads the first words of numpy's arrays and Python's tuples, which have had the same layout in all releases of
numpy and Python.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, cast

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.callwrapper import PyCallWrapper, _ArgManager, _GilManager
from numba.core.pythonapi import PythonAPI
from numba.core.registry import cpu_target
from numba.np.arrayobj import make_array, populate_array
from numba.np.numpy_support import as_dtype

from .image import UnknownCodeError
from .memory import CONSTANT

if TYPE_CHECKING:
    from numba.core.compiler import CompileResult

__all__ = ["ENTRY", "calls", "code_that_calls"]

ENTRY: Final = "naiad.entry"
"""The name of the function that Python calls."""

_HEAD: Final = object.__basicsize__
_TYPE: Final = _HEAD - 8
_ITEMS: Final = tuple.__basicsize__
_DATA, _DIMENSIONS, _SHAPE, _STRIDES, _DESCRIPTOR, _FLAGS = (_HEAD + at for at in (0, 8, 16, 24, 40, 48))
_IN_ORDER, _ALIGNED, _WRITEABLE = 0x0001, 0x0100, 0x0400
_ORDINARY: Final = _IN_ORDER | _ALIGNED | _WRITEABLE
_BYTE, _INT, _LONG = ir.IntType(8), ir.IntType(32), ir.IntType(64)


class _Constants:
    """Python objects to which the code refers by address; numba takes it for an environment."""

    def __init__(self, module: ir.Module) -> None:
        self.module = module
        self.objects: list[object] = []

    def add_const(self, value: object) -> int:
        """Add an object unless it is there; return its number."""
        for number, constant in enumerate(self.objects):
            if constant is value:
                return number
        self.objects.append(value)
        return len(self.objects) - 1

    def read_const(self, number: int) -> ir.Value:
        """Return the object of that number."""
        name = f"{CONSTANT}{number}"
        variable = self.module.globals.get(name)
        return variable if variable is not None else ir.GlobalVariable(self.module, _BYTE, name)

    def __getitem__(self, value: object) -> ir.Value:
        return self.read_const(self.add_const(value))


class _Python(PythonAPI):
    """Numba's interface to Python, but the type of an array is not unpickled by numba at each call."""

    def __init__(self, context: object, builder: ir.IRBuilder, constants: _Constants) -> None:
        super().__init__(context, builder)
        self.constants = constants

    def serialize_object(self, value: object) -> object:
        """Return the object itself: nothing is serialized."""
        return value

    def unserialize(self, value: object) -> ir.Value:
        """Return the object by its address."""
        return self.constants[value]


def calls(signature: Sequence[types.Type]) -> bool:
    """Return True if the code here can take arguments of these types apart."""
    return all(_is_supported(each) for each in signature)


def _is_supported(kind: types.Type) -> bool:
    if isinstance(kind, types.BaseTuple):
        return isinstance(kind, types.UniTuple | types.NamedUniTuple) and _is_supported(kind.dtype)
    if isinstance(kind, types.Array):
        return kind.layout == "C" and kind.mutable and kind.aligned and type(kind) is types.Array
    return kind in (types.int64, types.boolean)


def code_that_calls(code: CompileResult) -> tuple[ir.Module, list[object]]:
    """Return a module that defines `ENTRY` and refers to the compiled kernel, and the constants of that
    module.

    Raises `UnknownCodeError` for arguments that `calls` does not support.
    """
    if not calls(code.signature.args):
        raise UnknownCodeError(f"arguments of {code.signature}")
    context = cpu_target.target_context.subtarget(enable_nrt=True)
    module = context.create_module("calling")
    form = context.call_conv.get_function_type(code.fndesc.restype, code.fndesc.argtypes)
    kernel = ir.Function(module, form, code.fndesc.llvm_func_name)
    constants = _Constants(module)
    _Entry(context, module, kernel, code.fndesc, constants).build()
    return module, constants.objects


class _Entry(PyCallWrapper):
    """The function that Python calls: as numba builds it, but with its own handling of arguments."""

    def __init__(
        self,
        context: object,
        module: ir.Module,
        kernel: ir.Function,
        description: object,
        constants: _Constants,
    ) -> None:
        super().__init__(context, module, kernel, description, None, None, release_gil=True)
        self.constants = constants

    def build(self) -> None:
        """Add the function to the module."""
        pointer = self.context.get_argument_type(types.pyobject)
        entry = ir.Function(self.module, ir.FunctionType(pointer, [pointer] * 3), ENTRY)
        self.builder = ir.IRBuilder(entry.append_basic_block("entry"))
        self.python = _Python(self.context, self.builder, self.constants)
        self.other = entry.append_basic_block("other")
        self.build_wrapper(self.python, self.builder, *entry.args)

    def build_wrapper(
        self, api: object, builder: ir.IRBuilder, other: ir.Value, arguments: ir.Value, names: ir.Value
    ) -> None:
        """Build the function. It checks all arguments before it takes any: a call of `other` has nothing to
        give back.
        """
        description = self.fndesc
        self._require(builder.icmp_unsigned("==", names, ir.Constant(names.type, None)))
        self._require_size(arguments, len(description.argtypes))
        operands = [(self._item(arguments, at), kind) for at, kind in enumerate(description.argtypes)]
        for value, kind in operands:
            self._require_kind(value, kind)
        numbers = [self._taken(value, kind) if kind is types.int64 else None for value, kind in operands]
        failed = builder.append_basic_block("failed")
        manager = _ArgManager(self.context, builder, self.python, self.constants, failed, len(operands))
        lent = not _has_memory(description.restype)
        values = [
            number
            if number is not None
            else self._taken(value, kind)
            if lent
            else manager.add_arg(value, kind)
            for number, (value, kind) in zip(numbers, operands, strict=True)
        ]
        unlocked = _GilManager(builder, self.python, manager)
        status, result = self.context.call_conv.call_function(
            builder, self.func, description.restype, description.argtypes, values, attrs=("noinline",)
        )
        unlocked.emit_cleanup()
        with builder.if_then(status.is_ok, likely=True):
            with builder.if_then(status.is_none):
                self.python.return_none()
            builder.ret(
                self.python.from_native_return(self._simplified_return_type(), result, self.constants)
            )
        self.context.call_conv.raise_error(builder, self.context.get_python_api(builder), status)
        builder.ret(self.python.get_null_object())
        with builder.goto_block(failed):
            builder.ret(self.python.get_null_object())
        with builder.goto_block(self.other):
            builder.ret(self.python.call(other, arguments, names))

    def _require(self, fits: ir.Value) -> None:
        """Go to `other` unless `fits`."""
        rest = self.builder.append_basic_block("fits")
        self.builder.cbranch(fits, rest, self.other).set_weights([99, 1])
        self.builder.position_at_end(rest)

    def _require_type(self, value: ir.Value, *ones: type) -> None:
        actual = self._word(value, _TYPE, _BYTE.as_pointer())
        is_one = [self.builder.icmp_unsigned("==", actual, self.constants[one]) for one in ones]
        self._require(is_one[0] if len(is_one) == 1 else self.builder.or_(*is_one))

    def _require_size(self, items: ir.Value, count: int) -> None:
        self._require(self.builder.icmp_signed("==", self._word(items, _HEAD, _LONG), _LONG(count)))

    def _require_kind(self, value: ir.Value, kind: types.Type) -> None:
        """Go to `other` unless the Python object is exactly what numba would take for one of this kind."""
        builder = self.builder
        if isinstance(kind, types.BaseTuple):
            self._require_type(value, getattr(kind, "instance_class", tuple))
            self._require_size(value, kind.count)
            for at in range(kind.count):
                self._require_kind(self._item(value, at), kind.dtype)
        elif isinstance(kind, types.Array):
            self._require_type(value, np.ndarray)
            self._require(builder.icmp_signed("==", self._word(value, _DIMENSIONS, _INT), _INT(kind.ndim)))
            items = self._word(value, _DESCRIPTOR, _BYTE.as_pointer())
            self._require(builder.icmp_unsigned("==", items, self.constants[as_dtype(kind.dtype)]))
            flags = builder.and_(self._word(value, _FLAGS, _INT), _INT(_ORDINARY))
            self._require(builder.icmp_signed("==", flags, _INT(_ORDINARY)))
        elif kind == types.boolean:
            self._require_type(value, bool, np.bool_)
        else:
            self._require_type(value, int, np.int64)

    def _taken(self, value: ir.Value, kind: types.Type) -> ir.Value:
        """Return the native value of a Python object, lent to the kernel."""
        builder = self.builder
        if isinstance(kind, types.BaseTuple):
            items = [self._taken(self._item(value, at), kind.dtype) for at in range(kind.count)]
            return self.context.make_tuple(builder, kind, items)
        if isinstance(kind, types.Array):
            return self._lent(value, kind)
        if kind == types.boolean:
            return self.python.to_native_value(kind, value).value
        number = self.python.long_as_longlong(value)
        with builder.if_then(builder.icmp_signed("==", number, _LONG(-1)), likely=False):
            failed = cgutils.is_not_null(builder, self.python.err_occurred())
            with builder.if_then(failed, likely=False):  # it does not fit 64 bits
                self.python.err_clear()
                builder.branch(self.other)
        return number

    def _lent(self, value: ir.Value, kind: types.Array) -> ir.Value:
        array = make_array(kind)(self.context, self.builder)
        data = self._word(value, _DATA, self.context.get_value_type(kind.dtype).as_pointer())
        data = self.builder.bitcast(data, array.data.type)
        shape, strides = (
            [
                self._word(self._word(value, field, _BYTE.as_pointer()), 8 * at, _LONG)
                for at in range(kind.ndim)
            ]
            for field in (_SHAPE, _STRIDES)
        )
        size = as_dtype(kind.dtype).itemsize
        populate_array(
            array, data=data, shape=shape, strides=strides, itemsize=size, meminfo=None, parent=None
        )
        return array._getvalue()

    def _item(self, items: ir.Value, at: int) -> ir.Value:
        return self._word(items, _ITEMS + 8 * at, self.context.get_argument_type(types.pyobject))

    def _word(self, value: ir.Value, offset: int, kind: ir.Type) -> ir.Value:
        """Load a value of type `kind` from `offset` bytes behind the beginning of an object."""
        return self.builder.load(cgutils.pointer_add(self.builder, value, offset, kind.as_pointer()))


def _has_memory(kind: types.Type) -> bool:
    """Return True if a result of this type may hold an argument."""
    inner = cast("Iterable[types.Type]", kind) if isinstance(kind, types.BaseTuple) else [kind]
    return not all(isinstance(each, types.Integer | types.Boolean | types.NoneType) for each in inner)
