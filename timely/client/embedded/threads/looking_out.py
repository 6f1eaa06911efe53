"""How does a thread wait for another one without going to sleep, and without the interpreter's lock?

A kernel looks at a word of memory again and again. To wake a thread takes tens of microseconds if its core
sleeps, too; a small change goes from thread to thread eight times.
"""

from __future__ import annotations

import time
from functools import cache
from typing import Final

import numpy as np

from progress.compiled.kernel import Int64s, kernel

__all__ = ["CALLS", "looks_within", "new_words", "sees_another"]

CALLS: Final = 0
"""The index of the word that a waiting thread looks at."""
_BESIDE: Final = 8
"""The index, in another cache line, of the word that the waiting thread itself writes."""
_TRIES: Final = 20_000


def new_words() -> Int64s:
    """Return memory for `sees_another`."""
    return np.zeros(2 * _BESIDE, np.int64)


@kernel
def _look(words: Int64s, expected: int, beside: int, looks: int) -> bool:
    # The store could change the word that is read, as far as the compiler knows: so it reads it each time.
    for number in range(looks):
        if words[CALLS] != expected:
            return True
        words[beside] = number
    return bool(words[CALLS] != expected)


def sees_another(words: Int64s, expected: int, looks: int) -> bool:
    """Look at the word `looks` times; return True as soon as it is not `expected`."""
    return bool(_look(words, expected, _BESIDE, looks))


@cache
def looks_within(seconds: float) -> int:
    """Return how many looks take about `seconds` on this machine."""
    words = new_words()
    sees_another(words, 0, 1)  # it may have to be compiled
    least = float("inf")
    for _ in range(3):
        began = time.perf_counter()
        sees_another(words, 0, _TRIES)
        least = min(least, time.perf_counter() - began)
    return max(1, int(_TRIES * seconds / max(least, 1e-9)))
