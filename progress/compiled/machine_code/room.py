"""Two costs of Python itself while numba compiles, and how to avoid them.

They have nothing to do with compiling, and take a tenth of its time and more:

- Frames of Python's functions lie in *chunks* of 16 KiB, and Python returns an empty chunk to the system at
  once. Numba's passes nest deeply. Where their depth meets the end of a chunk, each further call asks the
  system for memory, and returns it: 700,000 times for the kernels of a first answer. A frame that needs more
  than half a chunk of many megabytes leaves the rest of the chunk to all calls below it. Nothing writes to
  the frame's own part, so the system need not provide memory for it.
- The garbage collector repeatedly visits the objects of a compiler that retains most of what it makes. During
  a compilation it runs less often; not never, for then a compilation takes a quarter more memory.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, ParamSpec, TypeVar

__all__ = ["with_room"]

P = ParamSpec("P")
R = TypeVar("R")

_WORDS: Final = (1 << 19) + 64
"""Stack size of `_call`, in words. Chunks are of 2ⁿ words: this one is of 2²⁰, nearly half of it free."""
_SELDOM: Final = (50_000, 20, 50)
"""The collector's thresholds: new objects before it runs, and runs before it visits the older generations."""


def _call(what: Callable[[], R]) -> R:
    return what()


# Declare this many intermediate results, so that the frame is that large.
_call.__code__ = _call.__code__.replace(co_stacksize=_WORDS)


def with_room(function: Callable[P, R]) -> Callable[P, R]:
    """Return `function` with room for the frames of all that it calls, and a collector that runs seldom."""

    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        with _collected_seldom():
            return _call(lambda: function(*args, **kwargs))

    return called


@contextmanager
def _collected_seldom() -> Iterator[None]:
    """Let the collector run seldom in the block, and restore its thresholds afterwards.

    Requires the compiler's lock: two threads would restore each other's thresholds.
    """
    before = gc.get_threshold()
    if before[0] == 0 or before[0] >= _SELDOM[0]:  # it never runs, or as seldom
        yield
        return
    gc.set_threshold(*_SELDOM)
    try:
        yield
    finally:
        gc.set_threshold(*before)
