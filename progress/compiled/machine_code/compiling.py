"""How is a kernel compiled? By numba, but for what only calling from Python takes.

This file, and those which it alone imports (`calling.py`, `parts.py`, `shortcuts.py`), import numba's
compiler; who finds machine code on disk imports none of them.

Numba makes machine code of every function that it compiles, ready to be called by Python and by C, and does
so again for the same function as a part of each that calls it. Of our kernels nine in ten are only parts. So
a kernel is kept as LLVM's *intermediate code*, hardly optimised, without what it calls. Those that Python
calls are optimised, together with what they call and with what takes their arguments apart, and made machine
code of; but large kernels are that once, and others are linked to it (`parts.py`). Where the machine is not
one for which `image.py` can link, or the arguments are none that `calling.py` can take apart, numba does all
of it in its own way (`in_numba_s_way`).
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
from . import kept
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
    "as_written",
    "compile_part",
    "compiler_lock",
    "image_of",
    "signature_of",
]

_Call = tuple[str, str, tuple[Type, ...], str]
"""Of a kernel that another one calls: its module and name, for which types, and the name of its function."""
_Reduced = tuple[str, bytes, Sequence[_Call], object, object, Sequence[Callable[[], None]]]
"""What is kept of a part."""
compiler_lock: Final = global_compiler_lock
"""Numba's: one thread compiles at a time."""


class Watch(Protocol):
    """Who is told."""

    def on_compile(self) -> None:
        """A kernel has to be compiled."""

    def on_ready(self) -> None:
        """A kernel is compiled, or was found."""


class _Name:
    """Stands where numba has the function that Python calls: it tells kernels apart."""


class _Compiler(_FunctionCompiler):
    """Compiles a kernel to a part of others."""

    usable: Callable[[CompileResult], CompileResult]
    """Lets others call it."""

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
    """What numba's dispatcher asks for code that an earlier process has compiled, in place of numba's own
    cache.

    Numba's pickles an index before anything says whether it is damaged, and whose it is; it goes by the time
    of the source file, and has no place of its own for a package in a zip.
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
        """Its name and its stamp: for other arguments, and another processor, it is another file."""
        stamp = kept.stamp_of(self._stamp, str(signature), _target())
        return kept.file_name(self._name, "part", stamp), stamp

    def load_overload(self, sig: object, target_context: object) -> CompileResult | None:
        """None if it is to be compiled. What is loaded is whole, and was written by this user, or by root."""
        cpu_target.target_context.refresh()  # what is loaded may be all that this process knows of numba
        data = kept.look_up_bytes(*self.file(sig))
        if data is None:
            return None
        try:
            return self._rebuild(pickle.loads(data))
        except MemoryError:
            raise  # which says nothing of what is in the file
        except Exception:  # a kernel that it calls was compiled anew, under another name
            return None

    def save_overload(self, sig: object, cres: CompileResult) -> None:
        """Replace what is kept, if it can be used by another process."""
        if not cres.lifted and not cres.library.has_dynamic_globals:
            kept.keep_bytes(*self.file(sig), dumps(self._reduce(cres)))


@functools.cache
def _target() -> str:
    """The processor and its features, as the compiler knows them."""
    return str(cpu_target.target_context.codegen().magic_tuple())


def _whole(code: CompileResult) -> object:
    return code._reduce()


def _whole_again(reduced: object) -> CompileResult:
    parts = cast("Sequence[object]", reduced)
    code: CompileResult = CompileResult._rebuild(cpu_target.target_context, *parts)
    return code


class Compiled:
    """A kernel as numba knows it.

    `stamp` is a digest of what its code depends on.
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
        # Both are said of each: what is not said, a kernel that is compiled for another one takes over from
        # it.
        small = {"forceinline": is_small, "_nrt": not is_small}
        compiler: Callable[[object], Dispatcher[Called]]
        compiler = numba.njit(nogil=True, cache=False, boundscheck=checks_bounds, **small)  # type: ignore[call-overload]
        self._compiler = compiler
        self._stamp = stamp
        self._name = kept.name_of(cast("FunctionType", function))
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
    def in_numba_s_way(self) -> Dispatcher[Called]:
        """For what cannot be called otherwise."""
        dispatcher = self._dispatcher(".any", _whole, _whole_again)
        self._finish(dispatcher)
        return dispatcher

    def _usable(self, code: CompileResult) -> CompileResult:
        """So that others can call it."""
        usable: CompileResult = code._replace(**{"entry_point": _Name()})
        part = cast("Part", usable.library)
        part.code = usable
        if self._is_large:
            part.machine_code = functools.cache(lambda: self._machine_code(part))
        cpu_target.target_context.insert_user_function(usable.entry_point, usable.fndesc, [part])
        return usable

    def _machine_code(self, part: Part) -> bytes:
        """Of a large kernel. Who needs it at the same time waits for it."""
        # Other kernels are in it by names, which each process that compiles counts for itself.
        stamp = kept.stamp_of(self._stamp, *part.symbols())
        file = kept.file_name(self._name, "object", stamp)
        with claimed(file):
            found = kept.look_up_bytes(file, stamp)
            if found is None:
                found = part.object()
                kept.keep_bytes(file, stamp, found)
        return found

    def signatures(self) -> list[str]:
        """What it was compiled for."""
        other = self.__dict__.get("in_numba_s_way")
        found = [*self.part.signatures, *(other.signatures if other is not None else [])]
        return list(dict.fromkeys(map(str, found)))


_dispatchers: list[tuple[object, Watch]] = []


class _Listener(event.Listener):
    """Tells of what is really compiled; loading from disk is no compile."""

    def on_start(self, event: event.Event) -> None:
        """One of ours, or a user's own function."""
        compiled = event.data["dispatcher"]
        for dispatcher, tell in _dispatchers:
            if dispatcher is compiled:
                tell.on_compile()

    def on_end(self, event: event.Event) -> None:
        """Nothing is said at the end: the first answer says enough."""


event.register("numba:compile", _Listener())


def signature_of(arguments: Sequence[object]) -> tuple[Type, ...]:
    """The types of a kernel's arguments. Arrays are taken for ordinary ones (without gaps, writeable):
    what comes first does not say for what the kernel is compiled.
    """
    return tuple(_ordinary(typeof(each, Purpose.argument)) for each in arguments)


def _ordinary(kind: Type) -> Type:
    return kind.copy(layout="C", readonly=False) if isinstance(kind, Array) else unliteral(kind)


def image_of(kernel: Compiled, signature: tuple[Type, ...]) -> tuple[Image, list[object]]:
    """What Python can call, and the constants in it. Raises `UnknownCodeError` where that cannot be made."""
    with global_compiler_lock:
        return with_room(with_shortcuts(_image_of))(kernel, signature)


def _image_of(kernel: Compiled, signature: tuple[Type, ...]) -> tuple[Image, list[object]]:
    kernel.part.compile(signature)
    return image_that_calls(kernel.part.overloads[signature].library)


def compile_part(kernel: Compiled, signature: tuple[Type, ...]) -> None:
    """What others can call, and Python cannot; the machine code of it, too, if it is large."""
    with global_compiler_lock:
        with_room(with_shortcuts(_make_part))(kernel, signature)


def _make_part(kernel: Compiled, signature: tuple[Type, ...]) -> None:
    kernel.part.compile(signature)
    part: Part = kernel.part.overloads[signature].library
    if part.machine_code is not None:
        part.machine_code()


def _reduced(code: CompileResult) -> tuple[object, ...]:
    """What is kept of a kernel: enough for those that call it."""
    description, part = code.fndesc, cast("Part", code.library)
    description.typemap = description.calltypes = None
    calls = [
        (each.code.fndesc.modname, each.code.fndesc.qualname, each.code.signature.args, each.symbol)
        for each in part.calls
    ]
    return part.name, part.kept(), calls, description, code.signature, code.reload_init


def _rebuilt(reduced: object, usable: Callable[[CompileResult], CompileResult]) -> CompileResult:
    name, code, calls, description, signature, again = cast("_Reduced", reduced)
    for each in again:
        each()
    return usable(
        compile_result(
            typing_context=cpu_target.typing_context,
            target_context=cpu_target.target_context,
            library=Part.found(name, code, [_called(*call) for call in calls]),
            fndesc=description,
            signature=signature,
            objectmode=False,
            lifted=(),
            reload_init=again,
            referenced_envs=(),
        )
    )


def _called(module: str, name: str, signature: tuple[Type, ...], symbol: str) -> Part:
    """The part of a kernel that is called by what was kept. Raises if it is no longer the one that was
    called then: names of functions have a number that each process counts for itself.
    """
    kernel = getattr(importlib.import_module(module), name)
    dispatcher = kernel._numba_type_.dispatcher
    dispatcher.compile(signature)
    part: Part = dispatcher.overloads[signature].library
    if part.symbol != symbol:
        raise LookupError(f"{symbol} was compiled anew, as {part.symbol}")
    return part


def as_written(function: Called) -> object:
    """Numba's type of an intrinsic: what writes intermediate code itself."""
    if function not in _intrinsics:
        _intrinsics[function] = intrinsic(function)
        cpu_target.typing_context.refresh()
    return cpu_target.typing_context.resolve_value_type(_intrinsics[function])


_intrinsics: dict[Called, object] = {}


def _compile_to_a_part(
    dispatcher: Dispatcher[Called], usable: Callable[[CompileResult], CompileResult]
) -> None:
    """Let numba's dispatcher compile, and keep, parts. It does so without a list of times: numba tells each
    listener of each of the hundred thousand calls of LLVM.
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
    """Let whoever needs this kernel at the same time wait for the one who compiles it."""
    compile_or_load, store = dispatcher.compile, cast("_Store", dispatcher._cache)

    def compile_in_turn(signature: tuple[Type, ...]) -> object:
        known = dispatcher.overloads.get(tuple(signature))
        if known is not None:
            return known.entry_point
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
    """Let numba see whether scipy is there without loading its linear algebra, which it does in each process
    that compiles: a quarter of a second and 13 MiB for what no kernel uses. A user's own compiled function
    that multiplies matrices loads it when it is compiled.
    """
    if "numba.np.arraymath" in sys.modules:  # which is who looks for it, once
        return
    linalg = importlib.import_module("numba.np.linalg")
    load = linalg.ensure_blas

    def look() -> None:
        setattr(linalg, load.__name__, load)
        if importlib.util.find_spec("scipy") is None:
            load()  # says what is missing

    setattr(linalg, load.__name__, look)
