"""Compiling kernels: by numba, except for the code that Python calls.

This file, and those which it alone imports (`calling.py`, `parts.py`, `shortcuts.py`), import numba's
compiler; a process that finds machine code on disk imports none of them.

Numba makes machine code of every function that it compiles, ready to be called by Python and by C, and does
so again for the same function as a part of each caller. Nine in ten of our kernels are only parts. So a
kernel is stored as LLVM's *intermediate code*, hardly optimised, without the code of the kernels that it
calls. A kernel that Python calls is optimised together with all that it calls and with the code that takes
its arguments apart, and compiled to machine code; but each large kernel is compiled once, and its callers are
linked to it (`parts.py`). Where `image.py` cannot link for the machine, or `calling.py` cannot take the
arguments apart, numba does all of it by itself (`numba_dispatcher`).
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import pickle
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol, cast

import numba
from numba.core import event
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult, Flags, compile_extra, compile_result
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher, _FunctionCompiler
from numba.core.registry import cpu_target
from numba.core.serialize import dumps
from numba.core.types import Array, Type, unliteral
from numba.core.typing.typeof import Purpose, typeof
from numba.extending import intrinsic

from ..one_process import claimed
from . import code_files
from .image import Image
from .memory import Called
from .parts import Part, image_that_calls
from .room import with_room
from .shortcuts import Passes, with_shortcuts

if TYPE_CHECKING:
    from types import FunctionType


__all__ = [
    "Compiled",
    "Watch",
    "compile_part",
    "compiler_lock",
    "image_of",
    "intrinsic_type",
    "signature_of",
]

_Call = tuple[str, str, tuple[Type, ...], str]
"""A kernel that another one calls: its module and name, its argument types, and the name of its function."""
_Reduced = tuple[str, bytes, Sequence[_Call], object, object, Sequence[Callable[[], None]]]
"""The stored form of a part."""
compiler_lock: Final = global_compiler_lock
"""Numba's: one thread compiles at a time."""


class Watch(Protocol):
    """A listener for the progress of compiling."""

    def on_compile(self) -> None:
        """A kernel has to be compiled."""

    def on_ready(self) -> None:
        """A kernel was compiled or loaded."""


class _Name:
    """Stands where numba has the function that Python calls; numba tells kernels apart by it."""


class _Compiler(_FunctionCompiler):
    """Compiles a kernel to a part of others."""

    usable: Callable[[CompileResult], CompileResult]
    """Registers the compiled code so that others can call it."""

    def _compile_core(self, args: Sequence[Type], return_type: Type | None) -> CompileResult:
        flags = Flags()
        self.targetdescr.options.parse_as_flags(flags, self.targetoptions)
        for name in ("no_compile", "no_cpython_wrapper", "no_cfunc_wrapper"):
            setattr(flags, name, True)  # what Python or C would call
        code = compile_extra(
            self.targetdescr.typing_context,
            self.targetdescr.target_context,
            self.py_func,
            args,
            return_type,
            flags,
            self.locals,
            Part(self.py_func.__qualname__),
            self.pipeline_class,
        )
        return self.usable(code)


class _Store(NullCache):
    """The store in which numba's dispatcher looks for code that an earlier process compiled.

    It replaces numba's own cache. That one unpickles an index before it is known whether the index is
    damaged, and whose it is; it goes by the time of the source file, and has no place of its own for a
    package in a zip.
    """

    def __init__(
        self,
        name: str,
        stamp: str,
        reduce: Callable[[CompileResult], object],
        rebuild: Callable[[object], CompileResult],
    ) -> None:
        super().__init__()
        self._name = name
        self._stamp = stamp
        self._reduce = reduce
        self._rebuild = rebuild

    def file(self, signature: object) -> tuple[str, str]:
        """Return the file's name and its stamp: other arguments, or another processor, have another file."""
        stamp = code_files.stamp_of(self._stamp, str(signature), _target())
        return code_files.file_name(self._name, "part", stamp), stamp

    def load_overload(self, sig: object, target_context: object) -> CompileResult | None:
        """Return the stored code, or None if it has to be compiled.

        The loaded file is whole, and was written by this user, or by root.
        """
        cpu_target.target_context.refresh()  # this may be the first use of numba in this process
        data = code_files.look_up_bytes(*self.file(sig))
        if data is None:
            return None
        try:
            return self._rebuild(pickle.loads(data))
        except MemoryError:
            raise  # it does not mean that the file is unusable
        except Exception:  # a kernel that it calls was compiled anew, under another name
            return None

    def save_overload(self, sig: object, cres: CompileResult) -> None:
        """Replace the stored code, if another process can use it."""
        if not cres.lifted and not cres.library.has_dynamic_globals:
            code_files.keep_bytes(*self.file(sig), dumps(self._reduce(cres)))


@functools.cache
def _target() -> str:
    """Return the processor and its features, as the compiler knows them."""
    return str(cpu_target.target_context.codegen().magic_tuple())


def _reduced_whole(code: CompileResult) -> object:
    return code._reduce()


def _rebuilt_whole(reduced: object) -> CompileResult:
    parts = cast("Sequence[object]", reduced)
    code: CompileResult = CompileResult._rebuild(cpu_target.target_context, *parts)
    return code


class Compiled:
    """A kernel as numba knows it.

    `stamp` is a digest of all that its code depends on.
    """

    def __init__(
        self,
        function: Called,
        *,
        is_small: bool,
        is_large: bool,
        checks_bounds: bool,
        stamp: str,
        tell: Watch,
    ) -> None:
        self.function = function
        self._is_large = is_large
        # Set both for each kernel: a kernel that is compiled for another one takes over the options that it
        # does not set itself.
        small = {"forceinline": is_small, "_nrt": not is_small}
        compiler: Callable[[object], Dispatcher[Called]]
        compiler = numba.njit(nogil=True, cache=False, boundscheck=checks_bounds, **small)  # type: ignore[call-overload]
        self._compiler = compiler
        self._stamp = stamp
        self._name = code_files.name_of(cast("FunctionType", function))
        self._tell = tell
        self.part = self._dispatcher("", _reduced, functools.partial(_rebuilt, usable=self._usable))
        _compile_to_a_part(self.part, self._usable)
        self._finish(self.part)

    def _dispatcher(
        self,
        suffix: str,
        reduce: Callable[[CompileResult], object],
        rebuild: Callable[[object], CompileResult],
    ) -> Dispatcher[Called]:
        dispatcher = self._compiler(self.function)
        dispatcher._cache = _Store(self._name + suffix, self._stamp, reduce, rebuild)
        return dispatcher

    def _finish(self, dispatcher: Dispatcher[Called]) -> None:
        _take_numbers_as_numbers(dispatcher)
        _compile_in_one_process(dispatcher, self._tell)
        _dispatchers.append((dispatcher, self._tell))

    @functools.cached_property
    def numba_dispatcher(self) -> Dispatcher[Called]:
        """The dispatcher for calls that only numba can handle."""
        dispatcher = self._dispatcher(".any", _reduced_whole, _rebuilt_whole)
        self._finish(dispatcher)
        return dispatcher

    def _usable(self, code: CompileResult) -> CompileResult:
        """Register the code so that other kernels can call it."""
        usable: CompileResult = code._replace(**{"entry_point": _Name()})
        part = cast("Part", usable.library)
        part.code = usable
        if self._is_large:
            part.machine_code = functools.cache(lambda: self._machine_code(part))
        cpu_target.target_context.insert_user_function(usable.entry_point, usable.fndesc, [part])
        return usable

    def _machine_code(self, part: Part) -> bytes:
        """Return the machine code of a large kernel. Other processes that need it at the same time wait for
        it.
        """
        # It refers to other kernels by names, and each compiling process numbers these names by itself.
        stamp = code_files.stamp_of(self._stamp, *part.symbols())
        file = code_files.file_name(self._name, "object", stamp)
        with claimed(file):
            code = code_files.look_up_bytes(file, stamp)
            if code is None:
                code = part.object()
                code_files.keep_bytes(file, stamp, code)
        return code

    def signatures(self) -> list[str]:
        """Return the signatures that it was compiled for."""
        other = self.__dict__.get("numba_dispatcher")
        all_signatures = [*self.part.signatures, *(other.signatures if other is not None else [])]
        return list(dict.fromkeys(map(str, all_signatures)))


_dispatchers: list[tuple[object, Watch]] = []


class _Listener(event.Listener):
    """Reports real compilations; loading from disk is none."""

    def on_start(self, event: event.Event) -> None:
        """Report the start of a compilation of one of our kernels, not of a user's own function."""
        compiled = event.data["dispatcher"]
        for dispatcher, tell in _dispatchers:
            if dispatcher is compiled:
                tell.on_compile()

    def on_end(self, event: event.Event) -> None:
        """Do nothing: the first answer shows that compiling is over."""


event.register("numba:compile", _Listener())


def signature_of(arguments: Sequence[object]) -> tuple[Type, ...]:
    """Return the types of a kernel's arguments.

    Arrays count as ordinary ones (without gaps, writeable): the first call must not decide for which kind of
    array the kernel is compiled.
    """
    return tuple(_ordinary(typeof(each, Purpose.argument)) for each in arguments)


def _ordinary(kind: Type) -> Type:
    return kind.copy(layout="C", readonly=False) if isinstance(kind, Array) else unliteral(kind)


def image_of(kernel: Compiled, signature: tuple[Type, ...]) -> tuple[Image, list[object]]:
    """Return what Python can call, and its constants. Raises `UnknownCodeError` where that is impossible."""
    with global_compiler_lock:
        return with_room(with_shortcuts(_image_of))(kernel, signature)


def _image_of(kernel: Compiled, signature: tuple[Type, ...]) -> tuple[Image, list[object]]:
    kernel.part.compile(signature)
    return image_that_calls(kernel.part.overloads[signature].library)


def compile_part(kernel: Compiled, signature: tuple[Type, ...]) -> None:
    """Compile the part that other kernels call and Python cannot; if it is large, also its machine code."""
    with global_compiler_lock:
        with_room(with_shortcuts(_make_part))(kernel, signature)


def _make_part(kernel: Compiled, signature: tuple[Type, ...]) -> None:
    kernel.part.compile(signature)
    part: Part = kernel.part.overloads[signature].library
    if part.machine_code is not None:
        part.machine_code()


def _reduced(code: CompileResult) -> tuple[object, ...]:
    """Return the stored form of a kernel: enough for those that call it."""
    description, part = code.fndesc, cast("Part", code.library)
    description.typemap = description.calltypes = None
    calls = [
        (each.code.fndesc.modname, each.code.fndesc.qualname, each.code.signature.args, each.symbol)
        for each in part.calls
    ]
    return part.name, part.bitcode(), calls, description, code.signature, code.reload_init


def _rebuilt(reduced: object, usable: Callable[[CompileResult], CompileResult]) -> CompileResult:
    name, code, calls, description, signature, again = cast("_Reduced", reduced)
    for each in again:
        each()
    return usable(
        compile_result(
            typing_context=cpu_target.typing_context,
            target_context=cpu_target.target_context,
            library=Part.of_bitcode(name, code, [_called_part(*call) for call in calls]),
            fndesc=description,
            signature=signature,
            objectmode=False,
            lifted=(),
            reload_init=again,
            referenced_envs=(),
        )
    )


def _called_part(module: str, name: str, signature: tuple[Type, ...], symbol: str) -> Part:
    """Return the part of a kernel that stored code calls.

    Raises `LookupError` if it is no longer the one that was called then: names of functions have a number
    that each process counts for itself.
    """
    kernel = getattr(importlib.import_module(module), name)
    dispatcher = kernel._numba_type_.dispatcher
    dispatcher.compile(signature)
    part: Part = dispatcher.overloads[signature].library
    if part.symbol != symbol:
        raise LookupError(f"{symbol} was compiled anew, as {part.symbol}")
    return part


def intrinsic_type(function: Called) -> object:
    """Return numba's type of an intrinsic, a function that writes intermediate code itself."""
    if function not in _intrinsics:
        _intrinsics[function] = intrinsic(function)
        cpu_target.typing_context.refresh()
    return cpu_target.typing_context.resolve_value_type(_intrinsics[function])


_intrinsics: dict[Called, object] = {}


def _compile_to_a_part(
    dispatcher: Dispatcher[Called], usable: Callable[[CompileResult], CompileResult]
) -> None:
    """Let numba's dispatcher compile and store parts.

    It does so without a record of times: numba notifies each listener of each of the hundred thousand calls
    of LLVM.
    """
    cache = dispatcher._cache
    options = dispatcher.targetdescr, dispatcher.targetoptions, dispatcher.locals
    compiler = _Compiler(dispatcher.py_func, *options, Passes)
    compiler.usable = usable
    dispatcher._compiler = compiler

    def compile_or_load(signature: tuple[Type, ...]) -> object:
        code = cache.load_overload(signature, cpu_target.target_context)
        if code is not None:
            dispatcher.overloads[signature] = code
            return code.entry_point
        with event.trigger_event("numba:compile", data={"dispatcher": dispatcher, "args": signature}):
            code = compiler.compile(signature, None)
            dispatcher.overloads[signature] = code
        cache.save_overload(signature, code)
        return code.entry_point

    dispatcher.compile = compile_or_load  # type: ignore[assignment, method-assign]


def _take_numbers_as_numbers(dispatcher: Dispatcher[Called]) -> None:
    """Compile a kernel that another one calls with a constant for any number, and not once more for this one.

    Numba's type of a constant holds its value; the machine code for it is the same.
    """
    choose = dispatcher.get_call_template

    def choose_by_kind(args: Sequence[Type], kws: Mapping[str, Type]) -> object:
        return choose([unliteral(arg) for arg in args], {name: unliteral(arg) for name, arg in kws.items()})

    setattr(dispatcher, choose.__name__, choose_by_kind)


def _compile_in_one_process(dispatcher: Dispatcher[Called], tell: Watch) -> None:
    """Let one process compile this kernel while all others that need it wait."""
    compile_or_load, store = dispatcher.compile, cast("_Store", dispatcher._cache)

    def compile_in_turn(signature: tuple[Type, ...]) -> object:
        overload = dispatcher.overloads.get(tuple(signature))
        if overload is not None:
            return overload.entry_point
        is_new = not dispatcher.overloads
        with global_compiler_lock, claimed(store.file(signature)[0]):
            _look_for_scipy()
            code = compile_or_load(signature)
        if is_new:
            tell.on_ready()
        return code

    dispatcher.compile = compile_in_turn  # type: ignore[assignment, method-assign]


@functools.cache
def _look_for_scipy() -> None:
    """Let numba see whether scipy is installed without loading its linear algebra.

    Numba would load it in each process that compiles: a quarter of a second and 13 MiB that no kernel uses. A
    user's own compiled function that multiplies matrices loads it when it is compiled.
    """
    if "numba.np.arraymath" in sys.modules:  # this module looks for it, once
        return
    linalg = importlib.import_module("numba.np.linalg")
    load = linalg.ensure_blas

    def look() -> None:
        setattr(linalg, load.__name__, load)
        if importlib.util.find_spec("scipy") is None:
            load()  # it raises an error that names what is missing

    setattr(linalg, load.__name__, look)
