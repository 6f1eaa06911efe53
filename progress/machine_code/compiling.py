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
import itertools
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, cast

import numba
from numba.core import event
from numba.core.caching import IndexDataCacheFile
from numba.core.compiler import CompileResult, Flags, compile_extra, compile_result
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher, _FunctionCompiler
from numba.core.registry import cpu_target
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

_FORM: Final = 4
"""Of what is kept as a part of other kernels; another number for another form."""
_Call = tuple[str, str, tuple[Type, ...], str]
"""Of a kernel that another one calls: its module and name, for which types, and the name of its function."""
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


class Compiled:
    """A kernel as numba knows it.

    `stamp` is what its code depends on, `name` what it is called in files beside those of numba.
    """

    def __init__(
        self,
        function: Called,
        *,
        is_small: bool,
        is_large: bool,
        checks_bounds: bool,
        stamp: tuple[str, ...],
        tell: Watch,
    ) -> None:
        self.function = function
        self._is_large = is_large
        # Both are said of each: what is not said, a kernel that is compiled for another one takes over from
        # it.
        small = {"forceinline": is_small, "_nrt": not is_small}
        compiler: Callable[[object], Dispatcher[Called]]
        compiler = numba.njit(nogil=True, cache=True, boundscheck=checks_bounds, **small)  # type: ignore[call-overload]
        self._compiler = compiler
        self._stamp = (*stamp, f"form={_FORM}")
        self._tell = tell
        self.part = self._dispatcher("")

    def _dispatcher(self, suffix: str) -> Dispatcher[Called]:
        """With its files under a name with `suffix`; without one it compiles to parts of others."""
        dispatcher = self._compiler(self.function)
        cache = dispatcher._cache
        # Numba keys code by the caller's source file alone. A kernel that calls one of another file would
        # keep the old body of the callee for ever.
        self.folder: str = cache._cache_path
        file = IndexDataCacheFile(cache._cache_path, cache._impl.filename_base + suffix, self._stamp)
        cache._cache_file = file
        _renew_code_before_index(file)
        _keep_with_digest(file)
        _compile_anew_what_is_damaged(cache)
        if not suffix:
            _compile_to_a_part(dispatcher, self._usable)
        _take_numbers_as_numbers(dispatcher)
        _compile_in_one_process(dispatcher, cache._cache_path, file._index_name, self._tell)
        _dispatchers.append((dispatcher, self._tell))
        return dispatcher

    @functools.cached_property
    def in_numba_s_way(self) -> Dispatcher[Called]:
        """For what cannot be called otherwise."""
        return self._dispatcher(".any")

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
        function = cast("FunctionType", self.function)
        source, name = function.__code__.co_filename, kept.name_of(function)
        stamp = (*kept.build(), *self._stamp, *part.symbols())
        with claimed(self.folder, f"{name}.object"):
            found = kept.look_up_object(source, name, stamp)
            if found is None:
                found = part.object()
                kept.keep_object(source, name, stamp, found)
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


def _rebuilt(
    context: object,
    what: tuple[str, bytes, Sequence[_Call], object, object, Sequence[Callable[[], None]]],
    usable: Callable[[CompileResult], CompileResult],
) -> object:
    name, code, calls, description, signature, again = what
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
    cache._impl.reduce = _reduced
    cache._impl.rebuild = functools.partial(_rebuilt, usable=usable)
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


def _keep_with_digest(cache: IndexDataCacheFile) -> None:
    """Numba keeps code as it is. LLVM reads it with some of its bytes damaged, too: what comes of that ends
    the process, or is machine code that does something else.
    """
    save: Callable[[str, object], None] = cache._save_data
    load: Callable[[str], object] = cache._load_data

    def save_with_digest(name: str, data: object) -> None:
        save(name, data)
        path = Path(cache._data_path(name))
        try:  # numba reads no further than its own part
            path.write_bytes(kept.with_digest(path.read_bytes()))
        except OSError:  # what cannot be kept is compiled again by the next process
            with suppress(OSError):
                path.unlink()

    def load_whole(name: str) -> object:
        if not kept.is_whole(Path(cache._data_path(name)).read_bytes()):
            raise ValueError(f"{name} is damaged")
        return load(name)

    setattr(cache, save.__name__, save_with_digest)
    setattr(cache, load.__name__, load_whole)


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
