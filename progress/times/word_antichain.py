"""An antichain of words: sorted, in an array that may have room for more.

The compiled twin of `antichain.py`. In a sorted antichain of a scope of two chains the first chain rises from
element to element and the second falls. So of all elements whose first chain is ≤ that of a word, the last
one has the least second chain: if any of them is ≤ the word, that one is. One binary search decides. With one
chain there is one element.
"""

from __future__ import annotations

import numpy as np

from progress.compiled.kernel import Int64s, kernel
from progress.times.word_order import word_glb, word_less_equal


@kernel
def search_from(elements: Int64s, count: int, guards: int) -> int:
    """Return from how many elements on to search binarily: never in scopes of three chains or more."""
    without_lowest = guards & (guards - 1)
    return 8 if without_lowest & (without_lowest - 1) == 0 else count + elements.shape[0] + 1


@kernel
def after_in_order(elements: Int64s, count: int, word: int) -> int:
    """Return how many of the ascending `elements[:count]` are ≤ `word` as integers."""
    low = 0
    high = count
    while low < high:
        middle = (low + high) >> 1
        if elements[middle] <= word:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def antichain_is_beyond(elements: Int64s, count: int, word: int, guards: int) -> bool:
    """Return True if some element of the sorted antichain `elements[:count]` is ≤ `word`.

    Cost: O(log count) in scopes of one and two chains, else O(count).
    """
    if count >= search_from(elements, count, guards):
        position = after_in_order(elements, count, word)
        return position > 0 and word_less_equal(elements[position - 1], word, guards)
    for index in range(count):
        if word_less_equal(elements[index], word, guards):
            return True
    return False


@kernel
def insert_word(elements: Int64s, count: int, word: int, guards: int) -> int:
    """Insert `word` into the sorted antichain `elements[:count]`; return the new count.

    Requires: room for one more element. Ensures: sorted by integer, none ≤ another. Cost: O(count); in scopes
    of one and two chains all of that but O(log count) is moving the elements behind the new one.
    """
    position = 0
    if count >= search_from(elements, count, guards):
        position = after_in_order(elements, count, word)
        if position > 0 and word_less_equal(elements[position - 1], word, guards):
            return count
        # The elements after `word` in the order of times stand together, directly behind it.
        end = position
        while end < count and word_less_equal(word, elements[end], guards):
            end += 1
        gone = end - position
        if gone == 0:
            for index in range(count, position, -1):
                elements[index] = elements[index - 1]
        else:
            for index in range(end, count):
                elements[index - gone + 1] = elements[index]
        elements[position] = word
        return count - gone + 1
    while position < count and elements[position] <= word:
        if word_less_equal(elements[position], word, guards):
            return count
        position += 1
    # An element after `word` in the order of times is after it as an integer, too.
    end = position
    for index in range(position, count):
        if not word_less_equal(word, elements[index], guards):
            elements[end] = elements[index]
            end += 1
    for index in range(end, position, -1):
        elements[index] = elements[index - 1]
    elements[position] = word
    return end + 1


@kernel
def minimal_words(words: Int64s, guards: int) -> Int64s:
    """Return the minimal elements of ascending words (duplicates allowed), ascending.

    In ascending order the first chain can be ignored: a word is minimal iff the rest of it, without that
    chain, is beyond the rest of no earlier word. The minimal rests form an antichain of one chain less.

    Cost: O(n) in scopes of one and two chains; with three, O(n log a) and moving up to `a` words for each
    minimal one, a being the size of the antichain of rests; with more, O(n · a).
    """
    minimal = np.empty(words.shape[0], np.int64)
    size = 0
    rest = guards & (guards - 1)
    if rest & (rest - 1) == 0:
        below = (guards & -guards) - 1
        least = -1
        for index in range(words.shape[0]):
            left = words[index] & below
            if size == 0 or left < least:
                least = left
                minimal[size] = words[index]
                size += 1
        return minimal[:size].copy()
    highest = guards
    while highest & (highest - 1) != 0:
        highest &= highest - 1
    others = guards ^ highest
    second = others
    while second & (second - 1) != 0:
        second &= second - 1
    rests = np.empty(words.shape[0] + 1, np.int64)
    count = 0
    for index in range(words.shape[0]):
        left = words[index] & (second - 1)
        if not antichain_is_beyond(rests, count, left, others):
            count = insert_word(rests, count, left, others)
            minimal[size] = words[index]
            size += 1
    return minimal[:size].copy()


@kernel
def not_beyond(words: Int64s, frontier: Int64s, guards: int) -> Int64s:
    """Return the positions of those words that no element of `frontier`, a sorted antichain, is ≤."""
    positions = np.empty(words.shape[0], np.int64)
    count = 0
    for index in range(words.shape[0]):
        if not antichain_is_beyond(frontier, frontier.shape[0], words[index], guards):
            positions[count] = index
            count += 1
    return positions[:count].copy()


@kernel
def floor_of(words: Int64s, guards: int) -> int:
    """Return the latest time that comes before all of `words`. Requires: at least one word."""
    floor = int(words[0])
    for index in range(1, words.shape[0]):
        floor = word_glb(floor, words[index], guards)
    return floor
