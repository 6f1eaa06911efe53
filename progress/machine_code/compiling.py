"""How is a kernel compiled? By numba, but for what only calling from Python takes.

The one file of this package that imports numba's compiler; who finds machine code on disk never imports it.

Numba makes machine code of every function that it compiles, ready to be called by Python and by C, and does
so again for the same function as a part of each that calls it. Of our kernels nine in ten are only parts. So
a kernel is kept as LLVM's *intermediate code*, hardly optimised; those that Python calls are optimised,
together with what they call and with what takes their arguments apart, and made machine code of: once. Where
the machine is not one for which `image.py` can link, or the arguments are none that `calling.py` can take
apart, numba does all of it in its own way (`in_numba_s_way`).
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import itertools
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, cast

import numba
from llvmlite.binding import parse_bitcode
from numba.core import event
from numba.core.caching import IndexDataCacheFile
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompileResult, Flags, compile_extra, compile_result
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher, _FunctionCompiler
from numba.core.registry import cpu_target
from numba.core.runtime.nrt import rtsys
from numba.core.types import Array, Type, unliteral
from numba.core.typing.typeof import Purpose, typeof
from numba.extending import intrinsic

from ..one_process import claimed
from .calling import ENTRY, code_that_calls
from .image import Image, link
from .memory import Called
from .room import with_room

if TYPE_CHECKING:
    from llvmlite.binding import ModuleRef
    from numba.core.base import BaseContext
    from numba.core.caching import FunctionCache

__all__ = [
    "Compiled",
    "Watch",
    "as_written",
    "choose_cache",
    "compile_part",
    "compiler_lock",
    "image_of",
    "signature_of",
]

_FORM: Final = 1
"""Of what is kept as a part of other kernels; another number for another form."""
compiler_lock: Final = global_compiler_lock
"""Numba's: one thread compiles at a time."""


def choose_cache(folder: str) -> None:
    """Let numba keep its files there."""
    numba.config.CACHE_DIR = folder


class Watch(Protocol):
    """Who is told."""

    def on_compile(self) -> None:
        """A kernel has to be compiled."""

    def on_ready(self) -> None:
        """A kernel is compiled, or was found."""


class _Library(JITCodeLibrary):
    """The code of one kernel as a part of those that call it."""

    @classmethod
    def found(cls, name: str, code: bytes) -> _Library:
        """That was kept."""
        library = cls(cpu_target.target_context.codegen(), name)
        library._final_module = library._shared_module = _parsed(code)
        library._finalized = True
        return library

    def _optimize_final_module(self) -> None:
        """Enough to become a part of another: the rest is done there."""
        cheap, passes = self._codegen._module_pass_manager(
            loop_vectorize=False, slp_vectorize=False, opt=0, cost="cheap"
        )
        cheap.run(self._final_module, passes)

    def _finalize_final_module(self) -> None:
        """Without handing it to the engine, which makes machine code of all that it is given."""
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def kept(self) -> bytes:
        """What `found` takes."""
        return cast("bytes", self._get_module_for_linking().as_bitcode())


class _Calling(_Library):
    """The code of one kernel, all that it calls, and what takes its arguments apart."""

    def _optimize_final_module(self) -> None:
        JITCodeLibrary._optimize_final_module(self)

    def object(self) -> bytes:
        """Machine code."""
        self._ensure_finalized()
        return cast("bytes", self._codegen._tm.emit_object(self._final_module))


def _parsed(code: bytes) -> ModuleRef:
    return parse_bitcode(code)


class _Name:
    """Stands where numba has the function that Python calls: it tells kernels apart."""


class _Compiler(_FunctionCompiler):
    """Compiles a kernel to a part of others."""

    def _compile_core(self, args: Sequence[Type], return_type: Type | None) -> CompileResult:
        flags = Flags()
        self.targetdescr.options.parse_as_flags(flags, self.targetoptions)
        for name in ("no_compile", "no_cpython_wrapper", "no_cfunc_wrapper"):
            setattr(flags, name, True)  # what Python or C would call
        library = _Library(cpu_target.target_context.codegen(), self.py_func.__qualname__)
        code = compile_extra(
            self.targetdescr.typing_context,
            self.targetdescr.target_context,
            self.py_func,
            args,
            return_type,
            flags,
            self.locals,
            library,
            self.pipeline_class,
        )
        return _usable(code)


def _usable(code: CompileResult) -> CompileResult:
    """So that others can call it."""
    usable: CompileResult = code._replace(**{"entry_point": _Name()})
    cpu_target.target_context.insert_user_function(usable.entry_point, usable.fndesc, [usable.library])
    return usable


class Compiled:
    """A kernel as numba knows it.

    `stamp` is what its code depends on, `name` what it is called in files beside those of numba.
    """

    def __init__(
        self,
        function: Called,
        *,
        is_small: bool,
        checks_bounds: bool,
        stamp: tuple[str, ...],
        tell: Watch,
    ) -> None:
        self.function = function
        # Both are said of each: what is not said, a kernel that is compiled for another one takes over from
        # it.
        small = {"forceinline": is_small, "_nrt": not is_small}
        compiler: Callable[[object], Dispatcher[Called]]
        compiler = numba.njit(nogil=True, cache=True, boundscheck=checks_bounds, **small)  # type: ignore[call-overload]
        self._compiler = compiler
        self._stamp = (*stamp, f"form={_FORM}")
        self._tell = tell
        self.part = self._dispatcher("", _compile_to_a_part)

    def _dispatcher(
        self, suffix: str, prepare: Callable[[Dispatcher[Called]], None] | None
    ) -> Dispatcher[Called]:
        """With its files under a name with `suffix`."""
        dispatcher = self._compiler(self.function)
        cache = dispatcher._cache
        # Numba keys code by the caller's source file alone. A kernel that calls one of another file would
        # keep the old body of the callee for ever.
        self.folder: str = cache._cache_path
        file = IndexDataCacheFile(cache._cache_path, cache._impl.filename_base + suffix, self._stamp)
        cache._cache_file = file
        _renew_code_before_index(file)
        _compile_anew_what_is_damaged(cache)
        if prepare is not None:
            prepare(dispatcher)
        _take_numbers_as_numbers(dispatcher)
        _compile_in_one_process(dispatcher, cache._cache_path, file._index_name, self._tell)
        _dispatchers.append((dispatcher, self._tell))
        return dispatcher

    @functools.cached_property
    def in_numba_s_way(self) -> Dispatcher[Called]:
        """For what cannot be called otherwise."""
        return self._dispatcher(".any", None)

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
        return with_room(_image_of)(kernel, signature)


def _image_of(kernel: Compiled, signature: tuple[Type, ...]) -> tuple[Image, list[object]]:
    kernel.part.compile(signature)
    code = kernel.part.overloads[signature]
    module, constants = code_that_calls(code)
    library = _Calling(cpu_target.target_context.codegen(), f"calling {code.fndesc.qualname}")
    library.add_ir_module(module)
    library.add_linking_library(code.library)
    library.add_linking_library(rtsys.library)
    return link([library.object()], ENTRY), constants


def compile_part(kernel: Compiled, signature: tuple[Type, ...]) -> None:
    """What others can call, and Python cannot."""
    with global_compiler_lock:
        with_room(kernel.part.compile)(signature)


def _reduced(code: CompileResult) -> tuple[object, ...]:
    """What is kept of a kernel: enough for those that call it."""
    description = code.fndesc
    description.typemap = description.calltypes = None
    return code.library.name, code.library.kept(), description, code.signature, code.reload_init


def _rebuilt(
    context: object, kept: tuple[str, bytes, object, object, Sequence[Callable[[], None]]]
) -> object:
    name, code, description, signature, again = kept
    for each in again:
        each()
    return _usable(
        compile_result(
            typing_context=cpu_target.typing_context,
            target_context=cpu_target.target_context,
            library=_Library.found(name, code),
            fndesc=description,
            signature=signature,
            objectmode=False,
            lifted=(),
            reload_init=again,
            referenced_envs=(),
        )
    )


def as_written(function: Called) -> object:
    """Numba's type of an intrinsic: what writes intermediate code itself."""
    if function not in _intrinsics:
        _intrinsics[function] = intrinsic(function)
        cpu_target.typing_context.refresh()
    return cpu_target.typing_context.resolve_value_type(_intrinsics[function])


_intrinsics: dict[Called, object] = {}


def _compile_to_a_part(dispatcher: Dispatcher[Called]) -> None:
    """Let numba's dispatcher compile, and keep, parts. It does so without a list of times: numba tells each
    listener of each of the hundred thousand calls of LLVM.
    """
    cache = dispatcher._cache
    cache._impl.reduce, cache._impl.rebuild = _reduced, _rebuilt
    options = dispatcher.targetdescr, dispatcher.targetoptions, dispatcher.locals
    compiler = _Compiler(dispatcher.py_func, *options, dispatcher._compiler.pipeline_class)
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


def _compile_in_one_process(dispatcher: Dispatcher[Called], folder: str, name: str, tell: Watch) -> None:
    """Let whoever needs this kernel at the same time wait for the one who compiles it.

    The claim is taken before numba looks into its cache: what is being written there is never read by half.
    """
    compile_or_load = dispatcher.compile

    def compile_in_turn(signature: tuple[Type, ...]) -> object:
        known = dispatcher.overloads.get(tuple(signature))
        if known is not None:
            return known.entry_point
        is_new = not dispatcher.overloads
        with global_compiler_lock, claimed(folder, name):
            _look_for_scipy()
            code = compile_or_load(signature)
        if is_new:
            tell.on_ready()
        return code

    dispatcher.compile = compile_in_turn  # type: ignore[assignment, method-assign]


def _compile_anew_what_is_damaged(cache: FunctionCache) -> None:
    """As after a power failure. Kept, the file would stop each start until somebody finds it."""
    load_overload: Callable[[tuple[Type, ...], BaseContext], object] = cache.load_overload

    def load(signature: tuple[Type, ...], context: BaseContext) -> object:
        try:
            return load_overload(signature, context)
        except (OSError, MemoryError):
            raise  # which says nothing of what is in the file
        except Exception:  # what reading raises depends on which bytes are damaged
            with suppress(OSError):
                cache.flush()
            return None

    setattr(cache, load_overload.__name__, load)


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


def _renew_code_before_index(cache: IndexDataCacheFile) -> None:
    """Remove old machine code before an index names it as new.

    Numba writes the index first. Who ends in between, by force or because the user is tired of waiting, would
    leave the code of another source under the stamp of this one, for all later starts.
    """
    save: Callable[[object, object], None] = cache.save

    def save_anew(key: object, data: object) -> None:
        known = set(cache._load_index().values())
        for number in itertools.count(1):
            name = cache._data_name(number)
            code = Path(cache._data_path(name))
            if not code.exists():
                break
            if name not in known:
                code.unlink(missing_ok=True)
        save(key, data)

    setattr(cache, save.__name__, save_anew)
