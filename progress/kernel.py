"""How is a kernel compiled, and where is the machine code kept?

The one place that imports numba. A *kernel* is a free function over integers and int64 arrays; it is
compiled at its first call and kept on disk, so that the next process loads it within milliseconds.

Where the code is kept: in `__pycache__` beside the source; if that is not writable (an installed
package that belongs to root), in the user's cache directory; or below `NUMBA_CACHE_DIR`, if set. Where none
of these can be written, in a folder that goes with the process, so that every start compiles anew.

Environment: `NAIAD_CHECK_BOUNDS=1` compiles with bounds checks (a tenth to a half slower; tests).
"""

from __future__ import annotations

import atexit
import functools
import importlib
import importlib.util
import itertools
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar, cast

import numba
from numba.core import event
from numba.core.compiler_lock import global_compiler_lock
from numba.core.runtime.nrt import rtsys
from numba.core.types import Type, unliteral

from .arrays import Bools, Int32s, Int64s
from .one_process import claimed

if TYPE_CHECKING:
    from numba.core.base import BaseContext
    from numba.core.caching import FunctionCache, IndexDataCacheFile
    from numba.core.dispatcher import Dispatcher

__all__ = [
    "CHECK_BOUNDS",
    "COMPILE_NOTICE",
    "Bools",
    "Int32s",
    "Int64s",
    "compile_for",
    "is_cache_shared",
    "kernel",
    "kernels_compiled",
    "on_compile",
    "on_ready",
    "small_kernel",
]

CHECK_BOUNDS: Final = os.environ.get("NAIAD_CHECK_BOUNDS", "0") not in ("", "0")
COMPILE_NOTICE: Final = "compiling kernels (first start on this machine: up to a minute on two cores) …"

P = ParamSpec("P")
R = TypeVar("R")

_stamps: dict[int, tuple[str, ...]] = {}
"""For each kernel (by identity): what its machine code was made of; see `_stamp_of`."""
_private: list[str] = []
"""The folder of this process's own, where no other can be written to."""


def _print_notice() -> None:
    """Say once on the error stream why the first start takes so long."""
    sys.stderr.write(COMPILE_NOTICE + "\n")
    sys.stderr.flush()


class _CompileWatch(event.Listener):
    """Calls `hook` when the first of our kernels is really compiled; loading from disk is no compile. After
    that, `each` with every kernel that can be called.
    """

    def __init__(self) -> None:
        self.hook: Callable[[], None] | None = _print_notice
        self.each: Callable[[int, int], None] | None = None
        self.compiled = 0
        self.ready = 0

    def on_start(self, event: event.Event) -> None:
        """Count one compilation; announce the first."""
        if id(event.data["dispatcher"]) not in _stamps:
            return
        self.compiled += 1
        if self.hook is not None and self.compiled == 1:
            self.hook()

    def on_end(self, event: event.Event) -> None:
        """Nothing is said at the end: the first answer says enough."""

    def on_ready(self) -> None:
        """Count one more kernel that can be called, compiled here or loaded."""
        self.ready += 1
        if self.each is not None and self.compiled > 0:
            self.each(self.ready, len(_stamps))


_watch: Final = _CompileWatch()
event.register("numba:compile", _watch)


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
    cast("Dispatcher[Callable[P, object]]", kernel).compile(tuple(numba.typeof(each) for each in args))


def kernels_compiled() -> int:
    """How many kernels this process has compiled, not counting those that it loaded from disk."""
    return _watch.compiled


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` to machine code at its first call.

    `nogil`: a thread that is merging must not stop the thread that polls sockets.
    `cache`: a cluster of fresh processes would otherwise compile everything once each.
    No `fastmath`: differences are exact integers, and a sum that is off by one never cancels.

    What is returned is numba's own dispatcher: one more Python call would double the cost of a call.
    """
    return _compiled(function, is_small=False)


def small_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """As `kernel`, for what is called for each row or key: its machine code becomes part of that of each
    kernel which calls it, and counts no references.

    The compiler, left to itself, calls most of them. A call copies nine words for each array, and counts a
    reference to each up and down, atomically: more than what such a kernel does. Not for all kernels, since
    code that is there ten times is compiled ten times.

    Requires: it makes no array, and returns none, nor does a kernel that it calls: nobody would let go of it.
    """
    return _compiled(function, is_small=True)


def _compiled(function: Callable[P, R], is_small: bool) -> Callable[P, R]:
    try:
        dispatcher = _dispatcher(function, is_small)
    except RuntimeError:  # numba found no place that it may write to
        numba.config.CACHE_DIR = _private_folder()  # type: ignore[attr-defined]
        dispatcher = _dispatcher(function, is_small)
    # Numba keys machine code by the caller's source file alone. A kernel that calls one of another file
    # would keep the old body of the callee for ever, so the stamp also names the files it draws on.
    cache = dispatcher._cache._cache_file  # type: ignore[attr-defined]
    assert cache._source_stamp, "numba has renamed what the stamp is kept in"
    stamp = _stamp_of(function, str(cache._source_stamp))
    assert stamp, "machine code without a stamp would never be renewed"
    assert id(dispatcher) not in _stamps, "dispatchers live as long as the process"
    cache._source_stamp = stamp
    _stamps[id(dispatcher)] = stamp
    _take_numbers_as_numbers(dispatcher)
    _compile_in_one_process(dispatcher, cache._cache_path, cache._index_name)
    _load_without_registries(dispatcher._cache)  # type: ignore[attr-defined]
    _renew_code_before_index(cache)
    return cast("Callable[P, R]", dispatcher)


def _dispatcher(function: Callable[P, R], is_small: bool) -> Dispatcher[Callable[P, R]]:
    """The one way in which kernels are compiled."""
    # Both are said of each: what is not said, a kernel that is compiled for another one takes over from it.
    small = {"forceinline": is_small, "_nrt": not is_small}
    compiler: Callable[[Callable[P, R]], Dispatcher[Callable[P, R]]]
    compiler = numba.njit(nogil=True, cache=True, boundscheck=CHECK_BOUNDS, **small)  # type: ignore[call-overload]
    return compiler(function)


def _take_numbers_as_numbers(dispatcher: Dispatcher[Callable[P, R]]) -> None:
    """Compile a kernel that another one calls with a constant for any number, and not once more for this one.

    Numba's type of a constant holds its value; the machine code for it is the same.
    """
    choose = dispatcher.get_call_template

    def choose_by_kind(args: Sequence[Type], kws: Mapping[str, Type]) -> object:
        return choose([unliteral(arg) for arg in args], {name: unliteral(arg) for name, arg in kws.items()})

    setattr(dispatcher, choose.__name__, choose_by_kind)


def _compile_in_one_process(dispatcher: Dispatcher[Callable[P, R]], folder: str, name: str) -> None:
    """Let whoever needs this kernel at the same time wait for the one who compiles it.

    The claim is taken before numba looks into its cache: what is being written there is never read by half.
    """
    compile_or_load = dispatcher.compile

    def compile_in_turn(signature: tuple[Type, ...]) -> object:
        is_new = not dispatcher.overloads
        with global_compiler_lock, claimed(folder, name):
            code = compile_or_load(signature)
        if is_new:
            _watch.on_ready()
        return code

    setattr(dispatcher, compile_or_load.__name__, compile_in_turn)


def _load_without_registries(cache: FunctionCache) -> None:
    """Load machine code without all that numba knows of Python's functions, which is for who compiles: it
    would read that before it looks into the cache, a third of a second in each process. Of it machine code
    needs what counts references to arrays. What cannot be read is compiled anew.
    """

    def load(signature: tuple[Type, ...], context: BaseContext) -> object:
        rtsys.initialize(context)
        _look_for_scipy()
        try:
            with cache._guard_against_spurious_io_errors():
                return cache._load_overload(signature, context)
        except (OSError, MemoryError):
            raise  # which says nothing of what is in the file
        except Exception:  # what reading raises depends on which bytes are damaged
            # As after a power failure. Kept, the file would stop each start until somebody finds it.
            with suppress(OSError):
                cache.flush()
            return None

    setattr(cache, cache.load_overload.__name__, load)


@functools.cache
def _look_for_scipy() -> None:
    """Let numba see whether scipy is there without loading its linear algebra, which it does in each process
    that compiles, or loads a kernel of certain arrays: a quarter of a second and 13 MiB for what no kernel
    uses. A user's own compiled function that multiplies matrices loads it when it is compiled.
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


def is_cache_shared() -> bool:
    """Whether other processes can use what this one compiles."""
    return not _private


def _private_folder() -> str:
    """A new folder that nobody else can write to (what lies in a cache is executed), gone at exit."""
    folder = tempfile.mkdtemp(prefix="naiad-kernels-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    _private.append(folder)
    return folder


def _stamp_of(function: Callable[P, R], own: str) -> tuple[str, ...]:
    """What the machine code of `function` depends on: its file, the kernels in its sight, constants, flags.

    A constant is compiled into the code as a number, so its value counts, wherever it is imported from.
    """
    assert own, "numba stamps every file that it caches for"
    parts = {f"bounds={CHECK_BOUNDS}", own}
    seen = getattr(function, "__globals__", {})
    for value in seen.values():
        parts.update(_stamps.get(id(value), ()))
    for name in function.__code__.co_names:
        if isinstance(seen.get(name), int | float | str | tuple):
            parts.add(f"{name}={seen[name]!r}")
    return tuple(sorted(parts))
