"""What is a kernel, and what happens when it is called?

A *kernel* is a free function over integers and int64 arrays; it is compiled at its first call and kept on
disk, so that the next process loads it in a millisecond or a few, and without numba: that takes a third of a
second and 60 MiB to import, which a process pays that has to compile.

The code is kept in the user's cache folder, or below `NAIAD_CACHE`: `cache_folder.py` says where, and
which files are trusted. Where nothing can be written each process compiles in memory, and says so once.

How it is compiled, linked, kept and called is in `machine_code/`: `compiling.py`, `image.py`, `kept.py`,
`calling.py`, `memory.py`.

Environment: `NAIAD_CHECK_BOUNDS=1` compiles with bounds checks (a tenth to a half slower; tests).
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar, cast

from . import cache_folder
from .arrays import Bools, Int32s, Int64s
from .machine_code import kept
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
    """On the error stream, of compiling. A program whose error stream is closed, or that has none, works on:
    it is said in the midst of work, which an error would end, or of a call that has its answer.
    """
    with suppress(AttributeError, OSError, ValueError):
        sys.stderr.write(what + "\n")
        sys.stderr.flush()


def _print_notice() -> None:
    """Say once why the first start takes so long."""
    say(COMPILE_NOTICE)


class _Watch:
    """Calls `hook` when the first of our kernels is really compiled; loading from disk is no compile. After
    that, `each` with every kernel that can be called.
    """

    def __init__(self) -> None:
        self.hook: Callable[[], None] | None = _print_notice
        self.each: Callable[[int, int], None] | None = None
        self.compiled = 0
        self.ready = 0
        self.known = 0

    def on_compile(self) -> None:
        """Count one compilation; announce the first."""
        self.compiled += 1
        if self.hook is not None and self.compiled == 1:
            self.hook()

    def on_ready(self) -> None:
        """Count one more kernel that can be called, compiled here or loaded."""
        self.ready += 1
        if self.each is not None and self.compiled > 0:
            self.each(self.ready, self.known)


_watch: Final = _Watch()
_MISSING: Final = object()


def on_compile(hook: Callable[[], None] | None) -> None:
    """Replace what happens when the first kernel of this process has to be compiled; None: nothing."""
    _watch.hook = hook


def on_ready(each: Callable[[int, int], None] | None) -> None:
    """Once this process has to compile, call `each` with every kernel: how many can be called, compiled or
    loaded, and how many there are in the modules that are imported.
    """
    _watch.each = each


def compile_for(kernel: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
    """Compile or load `kernel` for arguments like these, without calling it."""
    assert not kwargs, "kernels are called by position"
    cast("Kernel", kernel).prepare(args)


def compile_part_for(kernel: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
    """Compile `kernel`, for arguments like these, as a part of those that call it. Nothing where numba's own
    way is taken: parts are not kept apart there.
    """
    assert not kwargs, "kernels are called by position"
    cast("Kernel", kernel).prepare_part(args)


def compile_unless_kept(kernel: Callable[..., object], *args: object) -> None:  # type: ignore[explicit-any]  # of any arguments
    """Compile `kernel` for arguments like these, without calling it, unless that is in the cache already:
    then its first call loads it.
    """
    one = cast("Kernel", kernel)
    if not one.is_there():
        one.prepare(args)


def load_kept(*kernels: Callable[..., object]) -> None:  # type: ignore[explicit-any]  # of any arguments
    """Load the machine code of those kernels of which some is kept, before they are called. The others are
    compiled when they are, as ever: they may never be.
    """
    for each in kernels:
        cast("Kernel", each).load()


def kernels_compiled() -> int:
    """How many kernels this process has compiled, not counting those that it loaded from disk."""
    return _watch.compiled


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` to machine code at its first call.

    Without the interpreter's lock: a thread that is merging must not stop the thread that polls sockets.
    Kept on disk: a cluster of fresh processes would otherwise compile everything once each.
    No `fastmath`: differences are exact integers, and a sum that is off by one never cancels.
    """
    return cast("Callable[P, R]", Kernel(cast("FunctionType", function)))


def small_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """As `kernel`, for what is called for each row or key: its machine code becomes part of that of each
    kernel which calls it, and counts no references.

    The compiler, left to itself, calls most of them. A call copies nine words for each array, and counts a
    reference to each up and down, atomically: more than what such a kernel does. Not for all kernels, since
    code that is there ten times is compiled ten times.

    Requires: it makes no array, and returns none, nor does a kernel that it calls: nobody would let go of it.
    """
    return cast("Callable[P, R]", Kernel(cast("FunctionType", function), is_small=True))


def large_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """As `kernel`, for what takes a second or more to compile, and is called seldom for what it does: its
    machine code is made once, and linked to that of each kernel which calls it. Else it would be made again
    as a part of each; and one process would make what several can share.

    The compiler does not look into it where it is called, so what happens for each row belongs on one side.
    """
    return cast("Callable[P, R]", Kernel(cast("FunctionType", function), is_large=True))


class Kernel(functools.partial[object]):
    """A function that is compiled when it is first called.

    To whoever calls it, it is a `partial` of machine code: of all objects that can be another one tomorrow
    the one that adds least to a call.
    """

    py_func: FunctionType
    """The function as it is written."""

    def __new__(cls, function: FunctionType, *, is_small: bool = False, is_large: bool = False) -> Kernel:
        """Nothing is compiled yet."""
        made = super().__new__(cls, function)
        made.__dict__["py_func"] = function
        made._is_small = is_small
        made._is_large = is_large
        made._signature = None
        made._compiled = None
        made._unready = made._first
        made._become(made._unready)
        functools.update_wrapper(made, function)
        _watch.known += 1
        return made

    _is_small: bool
    _is_large: bool
    _unready: Called
    """What is called at first. Kept: it replaces itself while it runs."""
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
        """Load machine code, or compile it for arguments like these; nothing once that is done.

        Two threads may load it, each its own: it is the same.
        """
        if self.func is not self._unready:
            return
        if IS_READABLE:
            self._become(self._load() or self._compile(arguments))
        else:
            self._become(self._numba().in_numba_s_way)

    def load(self) -> None:
        """Load machine code that is kept, if there is any; never compile."""
        if self.func is self._unready and IS_READABLE and (called := self._load()) is not None:
            self._become(called)

    def is_there(self) -> bool:
        """Whether machine code is in memory or in the cache, so that a call compiles nothing."""
        return self.func is not self._unready or cache_folder.has_files([self.file])

    def prepare_part(self, arguments: Sequence[object]) -> None:
        """Compile what other kernels call, for arguments like these, or load it."""
        if not IS_READABLE:
            return
        from .machine_code.compiling import compile_part, signature_of

        compile_part(self._numba(), signature_of(arguments))

    def _load(self) -> Called | None:
        code = kept.look_up(self.file, self.stamp)
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
            found = self._load()  # another process, or thread, was quicker
            if found is not None:
                return found
            signature = signature_of(arguments)
            try:
                image, constants = image_of(compiled, signature)
                called = function_of(self.py_func.__name__, image, constants, self._other)
            except UnknownCodeError:
                return compiled.in_numba_s_way
            self._signature = str(signature)
            _used.append(self)
            kept.keep(self.file, self.stamp, kept.Code(self._signature, image, constants))
        return called

    def _other(self, *arguments: object, **names: object) -> object:
        """Arguments that the machine code is not for: numba compiles for these, too, or refuses them."""
        return self._numba().in_numba_s_way(*arguments, **names)

    @property
    def signatures(self) -> list[str]:
        """What it was compiled or loaded for in this process."""
        found = [] if self._signature is None else [self._signature]
        found += [] if self._compiled is None else self._compiled.signatures()
        return list(dict.fromkeys(found))

    @property
    def _numba_type_(self) -> object:
        """What numba takes it for in a kernel that calls it."""
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
        """The name under which the machine code that Python calls is kept."""
        return kept.file_name(kept.name_of(self._function()), "machine", self.stamp)

    @functools.cached_property
    def stamp(self) -> str:
        """A digest of what the machine code depends on: itself, each kernel that it calls, and the compiler.

        A constant is compiled into the code as a number, so its value counts, wherever it is imported from.
        """
        uses, function = [], self._function()
        for name in kept.names_in(function.__code__):
            value = function.__globals__.get(name, _MISSING)
            if isinstance(value, Kernel):
                value = value.stamp
            elif isinstance(value, intrinsic):
                value = kept.content_of(cast("FunctionType", value.function))
            elif isinstance(value, ModuleType):
                value = value.__name__
            if value is not _MISSING:
                uses.append(f"{name}={value!r}")
        kind = "large" if self._is_large else "small" if self._is_small else "plain"
        does = kept.instructions_of(function.__code__), function.__defaults__
        itself = kept.name_of(function), repr(does)
        return kept.stamp_of(kept.build(), f"bounds={CHECK_BOUNDS}", kind, *itself, *uses)


_used: list[Kernel] = []
"""Those whose machine code this process has in memory, some of them twice."""


class intrinsic:
    """A function that writes LLVM's intermediate code, as numba's `intrinsic`, without importing numba before
    a kernel that uses it is compiled.
    """

    def __init__(self, function: Callable[P, R]) -> None:
        self.function = function

    def __call__(self, *arguments: object) -> object:
        """For types alone: it is only called by kernels."""
        raise TypeError(f"{self.function.__name__} is called by kernels only")

    @property
    def _numba_type_(self) -> object:
        from .machine_code.compiling import as_written

        return as_written(cast("Called", self.function))


def is_cache_shared() -> bool:
    """Whether other processes can use what this one compiles."""
    return cache_folder.can_write()


def keep_list_of_used(name: str, *of: Callable[..., object]) -> None:  # type: ignore[explicit-any]  # of any arguments
    """Keep a list of the machine code that this process uses, for a name and the stamps of these kernels."""
    kept.keep_list(_list_file(name, of), sorted(each.file for each in _used))


def has_all_of_list(name: str, *of: Callable[..., object]) -> bool:  # type: ignore[explicit-any]  # of any arguments
    """Whether a process has kept that list, and all that is on it is still there."""
    file = _list_file(name, of)
    listed = kept.look_up_list(file)
    return listed is not None and cache_folder.has_files([file, *listed])


def _list_file(name: str, of: Sequence[object]) -> str:
    return kept.file_name(name, "list", kept.stamp_of(*(cast("Kernel", each).stamp for each in of)))


def _say_not_kept(reason: str) -> None:
    say(
        f"compiled kernels are not kept, so that each start compiles them anew: {reason}. "
        f"{cache_folder.VARIABLE} can name a folder that is your own and can be written to."
    )


cache_folder.on_unwritable(_say_not_kept)
