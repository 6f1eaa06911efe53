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
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, ParamSpec, TypeAlias, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt
from numba.core import event
from numba.core.types import Type, unliteral

if TYPE_CHECKING:
    from numba.core.dispatcher import Dispatcher

Int64s: TypeAlias = npt.NDArray[np.int64]
Int32s: TypeAlias = npt.NDArray[np.int32]
Bools: TypeAlias = npt.NDArray[np.bool_]

CHECK_BOUNDS: Final = os.environ.get("NAIAD_CHECK_BOUNDS", "0") not in ("", "0")
COMPILE_NOTICE: Final = "compiling kernels (first start on this machine, about 20 s) …"

P = ParamSpec("P")
R = TypeVar("R")

_stamps: dict[int, tuple[str, ...]] = {}
"""For each kernel (by identity): what its machine code was made of; see `_stamp_of`."""


def _print_notice() -> None:
    """Say once on the error stream why the first start takes so long."""
    sys.stderr.write(COMPILE_NOTICE + "\n")
    sys.stderr.flush()


class _CompileWatch(event.Listener):
    """Calls `hook` when the first of our kernels is really compiled; loading from disk is no compile."""

    def __init__(self) -> None:
        self.hook: Callable[[], None] | None = _print_notice
        self.compiled = 0

    def on_start(self, event: event.Event) -> None:
        """Count one compilation; announce the first."""
        if id(event.data["dispatcher"]) not in _stamps:
            return
        self.compiled += 1
        if self.hook is not None and self.compiled == 1:
            self.hook()

    def on_end(self, event: event.Event) -> None:
        """Nothing is said at the end: the first answer says enough."""


_watch: Final = _CompileWatch()
event.register("numba:compile", _watch)


def on_compile(hook: Callable[[], None] | None) -> None:
    """Replace what happens when the first kernel of this process has to be compiled; None: nothing."""
    _watch.hook = hook


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
    try:
        dispatcher = _dispatcher(function)
    except RuntimeError:  # numba found no place that it may write to
        numba.config.CACHE_DIR = _private_folder()  # type: ignore[attr-defined]
        dispatcher = _dispatcher(function)
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
    return cast("Callable[P, R]", dispatcher)


def _dispatcher(function: Callable[P, R]) -> Dispatcher[Callable[P, R]]:
    """The one way in which kernels are compiled."""
    return numba.njit(nogil=True, cache=True, boundscheck=CHECK_BOUNDS)(function)


def _take_numbers_as_numbers(dispatcher: Dispatcher[Callable[P, R]]) -> None:
    """Compile a kernel that another one calls with a constant for any number, and not once more for this one.

    Numba's type of a constant holds its value; the machine code for it is the same.
    """
    choose = dispatcher.get_call_template

    def choose_by_kind(args: Sequence[Type], kws: Mapping[str, Type]) -> object:
        return choose([unliteral(arg) for arg in args], {name: unliteral(arg) for name, arg in kws.items()})

    setattr(dispatcher, choose.__name__, choose_by_kind)


def _private_folder() -> str:
    """A new folder that nobody else can write to (what lies in a cache is executed), gone at exit."""
    folder = tempfile.mkdtemp(prefix="naiad-kernels-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
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
