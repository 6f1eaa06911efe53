"""What is a kernel, and what happens when it is called?

A *kernel* is a free function over integers and int64 arrays. Its first call compiles it and stores the
machine code on disk, so that the next process loads it in a millisecond or a few, without numba. Importing
numba takes a third of a second and 60 MiB; only a process that has to compile pays that.

The code lies in the user's cache folder, or below `NAIAD_CACHE`: `cache_folder.py` says where, and which
files are trusted. Where the process cannot write there, it compiles in memory, and reports that once.

`machine_code/` compiles, links, stores and calls kernels: `compiling.py`, `image.py`, `code_files.py`,
`calling.py`, `memory.py`.

Environment: `NAIAD_CHECK_BOUNDS=1` compiles with bounds checks (a tenth to a half slower; tests).
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from time import perf_counter
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar, cast

from . import cache_folder
from .arrays import Bools, Int32s, Int64s
from .machine_code import code_files
from .machine_code.image import IS_READABLE, UnknownCodeError
from .machine_code.memory import Called, function_of
from .one_process import claimed

if TYPE_CHECKING:
    from .machine_code.compiling import Compiled

__all__ = [
    "CHECK_BOUNDS",
    "COMPILE_NOTICE",
    "Bools",
    "Int32s",
    "Int64s",
    "Kernel",
    "compile_for",
    "compile_part_for",
    "compile_seconds",
    "compile_unless_kept",
    "has_all_of_list",
    "intrinsic",
    "is_cache_shared",
    "keep_list_of_used",
    "kernel",
    "kernels_compiled",
    "large_kernel",
    "load_kept",
    "on_compile",
    "on_ready",
    "say",
    "small_kernel",
]

CHECK_BOUNDS: Final = os.environ.get("NAIAD_CHECK_BOUNDS", "0") not in ("", "0")
COMPILE_NOTICE: Final = (
    "compiling kernels (each once on this machine; all of them take up to a minute on two cores) …"
)

P = ParamSpec("P")
R = TypeVar("R")


def say(what: str) -> None:
    """Print a line about compiling on the error stream; do nothing if that is closed or missing.

    The line comes in the midst of work, or of a call that has its answer: an error would end either.
    """
    with suppress(AttributeError, OSError, ValueError):
        sys.stderr.write(what + "\n")
        sys.stderr.flush()


def _print_notice() -> None:
    """Print why the first start takes so long."""
    say(COMPILE_NOTICE)


class _Watch:
    """Counts compiled and ready kernels, and calls the hooks.

    `hook` is called when the first of our kernels is really compiled; loading from disk does not count. After
    that, `each` is called for every kernel that becomes callable.
    """

    def __init__(self) -> None:
        self.hook: Callable[[], None] | None = _print_notice
        self.each: Callable[[int, int], None] | None = None
        self.compiled = 0
        self.seconds = 0.0
        self.ready = 0
        self.defined = 0

    def on_compile(self) -> None:
        """Count one compilation; announce the first."""
        self.compiled += 1
        if self.hook is not None and self.compiled == 1:
            self.hook()

    def on_ready(self) -> None:
        """Count one more kernel that is callable, compiled here or loaded."""
        self.ready += 1
        if self.each is not None and self.compiled > 0:
            self.each(self.ready, self.defined)


_watch: Final = _Watch()
_MISSING: Final = object()


def on_compile(hook: Callable[[], None] | None) -> None:
    """Set the hook that is called when this process compiles its first kernel; None: no hook."""
    _watch.hook = hook


def on_ready(each: Callable[[int, int], None] | None) -> None:
    """Set the hook for kernels that become callable, once this process has to compile.

    It gets the number of callable kernels, compiled or loaded, and the number of kernels in the imported
    modules.
    """
    _watch.each = each


def compile_for(kernel: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
    """Compile or load `kernel` for arguments like these, without calling it."""
    assert not kwargs, "kernels are called by position"
    cast("Kernel", kernel).prepare(args)


def compile_part_for(kernel: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
    """Compile `kernel`, for arguments like these, as a part of those that call it.

    Does nothing where numba compiles and calls kernels by itself: it stores no parts.
    """
    assert not kwargs, "kernels are called by position"
    cast("Kernel", kernel).prepare_part(args)


def compile_unless_kept(kernel: Callable[..., object], *args: object) -> None:  # type: ignore[explicit-any]  # of any arguments
    """Compile `kernel` for arguments like these, without calling it, unless the cache has its machine code.

    If it has, the first call loads it.
    """
    one = cast("Kernel", kernel)
    if not one.is_there():
        one.prepare(args)


def load_kept(*kernels: Callable[..., object]) -> None:  # type: ignore[explicit-any]  # of any arguments
    """Load the stored machine code of those kernels that have some, before they are called.

    The others are compiled at their first call, as ever: they may never be called.
    """
    for each in kernels:
        cast("Kernel", each).load()


def kernels_compiled() -> int:
    """Return how many kernels this process has compiled, not counting those that it loaded from disk."""
    return _watch.compiled


def compile_seconds() -> float:
    """Return how many seconds this process has been compiling kernels, by the clock."""
    return _watch.seconds


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` to machine code at its first call.

    It runs without the interpreter's lock: a thread that is merging must not stop the thread that polls
    sockets. The machine code is stored on disk: in a cluster of fresh processes each would otherwise compile
    everything. No `fastmath`: differences are exact integers, and a sum that is off by one never cancels.
    """
    return cast("Callable[P, R]", Kernel(cast("FunctionType", function)))


def small_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that is called for each row or key as a part of each kernel that calls it.

    It is otherwise as `kernel`, but counts no references. The compiler, left to itself, makes calls of most
    such functions. A call copies nine words for each array, and counts a reference to each up and down,
    atomically: more work than such a kernel does. This is not for all kernels, since code that is in ten
    callers is compiled ten times.

    Requires: the function makes no array, and returns none, nor does a kernel that it calls: nothing would
    free it.
    """
    return cast("Callable[P, R]", Kernel(cast("FunctionType", function), is_small=True))


def large_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function once for all kernels that call it: one that takes a second or more and is seldom
    called.

    It is otherwise as `kernel`, but its machine code is linked to that of each kernel which calls it.
    Otherwise each caller would compile it again as a part of itself, and one process would compile what
    several can share.

    The compiler does not look into it where it is called, so the work for each row belongs on one side of the
    call.
    """
    return cast("Callable[P, R]", Kernel(cast("FunctionType", function), is_large=True))


class Kernel(functools.partial[object]):
    """A function that is compiled when it is first called.

    Callers see a `partial` of machine code: of all objects that can later be replaced by another in place, a
    `partial` adds the least to a call.
    """

    py_func: FunctionType
    """The function as written in Python."""

    def __new__(cls, function: FunctionType, *, is_small: bool = False, is_large: bool = False) -> Kernel:
        """Return a kernel that is not compiled yet."""
        self = super().__new__(cls, function)
        self.__dict__["py_func"] = function
        self._is_small = is_small
        self._is_large = is_large
        self._signature = None
        self._compiled = None
        self._unready = self._first
        self._become(self._unready)
        functools.update_wrapper(self, function)
        _watch.defined += 1
        return self

    _is_small: bool
    _is_large: bool
    _unready: Called
    """The function that the first call runs. Held here, because it replaces itself while it runs."""
    _signature: str | None
    _compiled: Compiled | None

    def _become(self, called: Called) -> None:
        self.__setstate__((called, (), {}, self.__dict__))  # type: ignore[attr-defined]

    def _first(self, *arguments: object, **names: object) -> object:
        if names:
            return self._other(*arguments, **names)
        self.prepare(arguments)
        return self(*arguments)

    def prepare(self, arguments: Sequence[object]) -> None:
        """Load machine code, or compile it for arguments like these; do nothing if it is loaded.

        Two threads may load it, each its own copy: both are the same.
        """
        if self.func is not self._unready:
            return
        if IS_READABLE:
            self._become(self._load() or self._compile(arguments))
        else:
            self._become(self._numba().numba_dispatcher)

    def load(self) -> None:
        """Load the stored machine code, if there is any; never compile."""
        if self.func is self._unready and IS_READABLE and (called := self._load()) is not None:
            self._become(called)

    def is_there(self) -> bool:
        """Return True if machine code is in memory or in the cache, so that a call compiles nothing."""
        return self.func is not self._unready or cache_folder.has_files([self.file])

    def prepare_part(self, arguments: Sequence[object]) -> None:
        """Compile or load, for arguments like these, the part that other kernels call."""
        if not IS_READABLE:
            return
        from .machine_code.compiling import compile_part, signature_of

        compile_part(self._numba(), signature_of(arguments))

    def _load(self) -> Called | None:
        code = code_files.look_up(self.file, self.stamp)
        if code is None:
            return None
        try:
            called = function_of(self.py_func.__name__, code.image, code.constants, self._other)
        except UnknownCodeError:
            return None
        self._signature = code.signature
        _used.append(self)
        if self._compiled is None:
            _watch.on_ready()
        return called

    def _compile(self, arguments: Sequence[object]) -> Called:
        from .machine_code.compiling import compiler_lock, image_of, signature_of

        compiled = self._numba()
        with compiler_lock, claimed(self.file):
            called = self._load()  # another process, or thread, was quicker
            if called is not None:
                return called
            signature = signature_of(arguments)
            began = perf_counter()
            try:
                image, constants = image_of(compiled, signature)
                called = function_of(self.py_func.__name__, image, constants, self._other)
            except UnknownCodeError:
                return compiled.numba_dispatcher
            finally:
                _watch.seconds += perf_counter() - began
            self._signature = str(signature)
            _used.append(self)
            code_files.keep(self.file, self.stamp, code_files.Code(self._signature, image, constants))
        return called

    def _other(self, *arguments: object, **names: object) -> object:
        """Call the kernel with arguments that the machine code is not for: numba compiles for them, or
        refuses them.
        """
        return self._numba().numba_dispatcher(*arguments, **names)

    @property
    def signatures(self) -> list[str]:
        """The signatures that this process compiled or loaded it for."""
        signatures = [] if self._signature is None else [self._signature]
        signatures += [] if self._compiled is None else self._compiled.signatures()
        return list(dict.fromkeys(signatures))

    @property
    def _numba_type_(self) -> object:
        """The type that numba gives it in a kernel that calls it."""
        return self._numba().part._numba_type_

    def _numba(self) -> Compiled:
        from .machine_code.compiling import compiler_lock

        with compiler_lock:
            if self._compiled is None:
                self._compiled = self._new()
        return self._compiled

    def _new(self) -> Compiled:
        from .machine_code.compiling import Compiled

        return Compiled(
            self.py_func,
            is_small=self._is_small,
            is_large=self._is_large,
            checks_bounds=CHECK_BOUNDS,
            stamp=self.stamp,
            tell=_watch,
        )

    def _function(self) -> FunctionType:
        return self.__dict__["py_func"]  # type: ignore[no-any-return]

    @functools.cached_property
    def file(self) -> str:
        """The name of the file with the machine code that Python calls."""
        return code_files.file_name(code_files.name_of(self._function()), "machine", self.stamp)

    @functools.cached_property
    def stamp(self) -> str:
        """A digest of all that the machine code depends on: itself, each kernel that it calls, and the
        compiler.

        A constant is compiled into the code as a number, so its value counts, wherever it is imported from.
        """
        uses, function = [], self._function()
        names = code_files.names_in(function.__code__)
        for name in names:
            value = function.__globals__.get(name, _MISSING)
            if isinstance(value, Kernel):
                value = value.stamp
            elif isinstance(value, intrinsic):
                value = code_files.content_of(cast("FunctionType", value.function))
            elif isinstance(value, ModuleType):
                value = value.__name__, _uses_of(value, names)
            if value is not _MISSING:
                uses.append(f"{name}={value!r}")
        kind = "large" if self._is_large else "small" if self._is_small else "plain"
        does = code_files.instructions_of(function.__code__), function.__defaults__
        itself = code_files.name_of(function), repr(does)
        return code_files.stamp_of(code_files.build(), f"bounds={CHECK_BOUNDS}", kind, *itself, *uses)


def _uses_of(module: ModuleType, names: Iterable[str]) -> list[str]:
    """Return what a kernel may use of a module: its kernels and constants that have one of these names."""
    uses = []
    for name in names:
        value = module.__dict__.get(name, _MISSING)
        if isinstance(value, Kernel):
            uses.append(f"{name}={value.stamp}")
        elif isinstance(value, (bool, int, float, str, tuple)):
            uses.append(f"{name}={value!r}")
    return uses


_used: list[Kernel] = []
"""The kernels whose machine code this process has in memory, some of them twice."""


class intrinsic:
    """A function that writes LLVM's intermediate code.

    It does the same as numba's `intrinsic`, without importing numba before a kernel that uses it is compiled.
    """

    def __init__(self, function: Callable[P, R]) -> None:
        self.function = function

    def __call__(self, *arguments: object) -> object:
        """Raise `TypeError`; the method exists for the type checker, since only kernels call an intrinsic."""
        raise TypeError(f"{self.function.__name__} is called by kernels only")

    @property
    def _numba_type_(self) -> object:
        from .machine_code.compiling import intrinsic_type

        return intrinsic_type(cast("Called", self.function))


def is_cache_shared() -> bool:
    """Return True if other processes can use what this one compiles."""
    return cache_folder.can_write()


def keep_list_of_used(name: str, *of: Callable[..., object]) -> None:  # type: ignore[explicit-any]  # of any arguments
    """Store a list of the machine code that this process uses, for a name and the stamps of some kernels."""
    code_files.keep_list(_list_file(name, of), sorted(each.file for each in _used))


def has_all_of_list(name: str, *of: Callable[..., object]) -> bool:  # type: ignore[explicit-any]  # of any arguments
    """Return True if a process has stored that list, and all files on it still exist."""
    file = _list_file(name, of)
    listed = code_files.look_up_list(file)
    return listed is not None and cache_folder.has_files([file, *listed])


def _list_file(name: str, of: Sequence[object]) -> str:
    return code_files.file_name(
        name, "list", code_files.stamp_of(*(cast("Kernel", each).stamp for each in of))
    )


def _say_not_kept(reason: str) -> None:
    say(
        f"compiled kernels are not kept, so that each start compiles them anew: {reason}. "
        f"{cache_folder.VARIABLE} can name a folder that is your own and can be written to."
    )


cache_folder.on_unwritable(_say_not_kept)
