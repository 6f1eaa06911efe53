"""What does Python itself cost while numba compiles, and can it be had for less?

Two things that have nothing to do with compiling, and take a tenth of it and more:

- Frames of Python's functions lie in *chunks* of 16 KiB, and a chunk that is empty goes back to the system at
  once. Numba's passes stand deep in one another. Where such a depth meets the end of a chunk, each call below
  asks the system for memory, and gives it back: for the kernels of a first answer 700,000 times. A frame that
  needs more than half a chunk of many megabytes has what is left of it for all that it calls. Nobody writes
  to the rest, so that the system has nothing to give.
- The collector looks again and again through the objects of a compiler that holds on to most of what it
  makes. It comes less often meanwhile; not never, for then a compilation keeps a quarter more memory.
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
"""Chunks are of 2ⁿ words: so this one is of a million, and nearly half of it is left."""
_SELDOM: Final = (50_000, 20, 50)
"""After how many new objects the collector comes; after how many times of that to the older ones."""


def _call(what: Callable[[], R]) -> R:
    return what()


# As if its expressions needed that many intermediate results.
_call.__code__ = _call.__code__.replace(co_stacksize=_WORDS)


def with_room(function: Callable[P, R]) -> Callable[P, R]:
    """What `function` does, with room for frames of all that it calls, and a collector that comes seldom."""

    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        with _collected_seldom():
            return _call(lambda: function(*args, **kwargs))

    return called


@contextmanager
def _collected_seldom() -> Iterator[None]:
    """Afterwards as before. Requires the compiler's lock: two threads would restore what is not theirs."""
    before = gc.get_threshold()
    if before[0] == 0 or before[0] >= _SELDOM[0]:  # it comes never, or as seldom
        yield
        return
    gc.set_threshold(*_SELDOM)
    try:
        yield
    finally:
        gc.set_threshold(*before)
