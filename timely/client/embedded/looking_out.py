"""How does a thread wait for another one without going to sleep, and without the interpreter's lock?

In a kernel, which looks at a word of memory again and again. To be woken from sleep takes tens of
microseconds where the core has gone to sleep, too; a small change goes from thread to thread eight times.
"""

from __future__ import annotations

import time
from functools import cache
from typing import Final

import numpy as np

from progress.compiled.kernel import Int64s, kernel

__all__ = ["CALLS", "looks_within", "new_words", "sees_another"]

CALLS: Final = 0
"""Where the word is that is looked at."""
_BESIDE: Final = 8
"""In another cache line: where who looks writes."""
_TRIES: Final = 20_000


def new_words() -> Int64s:
    """Memory for `sees_another`."""
    return np.zeros(2 * _BESIDE, np.int64)


@kernel
def _look(words: Int64s, known: int, beside: int, looks: int) -> bool:
    # What is written might be what is looked at, for all that the compiler knows: so it looks anew each time.
    for number in range(looks):
        if words[CALLS] != known:
            return True
        words[beside] = number
    return bool(words[CALLS] != known)


def sees_another(words: Int64s, known: int, looks: int) -> bool:
    """Whether the word becomes another than `known` while it is looked at so often."""
    return bool(_look(words, known, _BESIDE, looks))


@cache
def looks_within(seconds: float) -> int:
    """How many looks take about so long on this machine."""
    words = new_words()
    sees_another(words, 0, 1)  # it may have to be compiled
    least = float("inf")
    for _ in range(3):
        began = time.perf_counter()
        sees_another(words, 0, _TRIES)
        least = min(least, time.perf_counter() - began)
    return max(1, int(_TRIES * seconds / max(least, 1e-9)))
