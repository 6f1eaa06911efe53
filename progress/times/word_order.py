"""Which of two times comes first, and which one is the earliest behind both, when times are words?

`time_words.py` explains what a word is and why one subtraction compares all fields at once. `guards` is that
of the scope: the guard bit of the top level of each chain.
"""

from __future__ import annotations

from collections.abc import Sequence

from progress.compiled.kernel import Bools, Int64s, kernel, small_kernel

# -- one time --


@small_kernel
def word_less_equal(a: int, b: int, guards: int) -> bool:
    """Return True if time `a` comes before `b` or is `b`."""
    return ((b | guards) - a) & guards == guards


@small_kernel
def word_lub(a: int, b: int, guards: int) -> int:
    """Return the earliest time that both `a` and `b` come before: the larger field, chain by chain."""
    larger = ((b | guards) - a) & guards
    if larger == guards:
        return b
    chosen = 0
    low = 1
    rest = guards
    while rest != 0:
        guard = rest & -rest
        field = guard - low
        chosen |= (b if larger & guard else a) & field
        low = guard << 1
        rest ^= guard
    return chosen


@small_kernel
def word_glb(a: int, b: int, guards: int) -> int:
    """Return the latest time that comes before both `a` and `b`: of each chain the field that `word_lub` did
    not take.
    """
    return a + b - word_lub(a, b, guards)


@small_kernel
def word_carried(word: int, guards: int, valid: int) -> int:
    """Return the earliest time at or behind a word whose counters may have left their fields by half; -1 if
    there is none.

    A counter that begins a chain holds nothing later. Behind any other one the counter before it in the chain
    goes on: the earliest time behind (1, 8), if a counter holds 7, is (2, 0).
    """
    if word & guards != 0:
        return -1
    low = 1
    rest = guards
    while rest != 0:
        guard = rest & -rest
        chain = guard - low
        over = word & chain & ~valid
        while over != 0:
            top = over
            while top & (top - 1) != 0:
                top &= top - 1
            word = (word & ~((top << 1) - low)) + (top << 1)
            if word & guard != 0:
                return -1
            over = word & chain & ~valid
        low = guard << 1
        rest ^= guard
    return word


@small_kernel
def word_advance(word: int, frontier: Int64s, guards: int) -> int:
    """Return the time that stands for `word` once nobody looks before `frontier`.

    See `TimeShape.advance_by`.
    """
    if frontier.shape[0] == 0:
        return word
    advanced = word_lub(word, frontier[0], guards)
    for index in range(1, frontier.shape[0]):
        advanced = word_glb(advanced, word_lub(word, frontier[index], guards), guards)
    return advanced


@small_kernel
def word_is_beyond(word: int, frontier: Int64s, guards: int) -> bool:
    """Return True if some element of `frontier` is ≤ `word`: the time can still be seen."""
    for index in range(frontier.shape[0]):
        if word_less_equal(frontier[index], word, guards):
            return True
    return False


# -- a few times, in the interpreter: up to some dozens, a kernel and its arrays cost more --


def few_are_beyond(words: Sequence[int], frontier: Sequence[int], guards: int) -> bool:
    """Return True if each of `words` is at or behind some element of `frontier`."""
    for word in words:
        guarded = word | guards
        for bound in frontier:
            if (guarded - bound) & guards == guards:
                break
        else:
            return False
    return True


# -- whole columns; `out` has the length of `words` and may be the same array --


@kernel
def words_are_beyond(words: Int64s, frontier: Int64s, guards: int, out: Bools) -> None:
    """Write `word_is_beyond` of every time to `out`. Cost: O(words · frontier), no allocation."""
    for index in range(words.shape[0]):
        out[index] = word_is_beyond(words[index], frontier, guards)
