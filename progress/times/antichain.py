"""A set of times of which none comes before another: the lower edge of what can still happen.

A *frontier* is an antichain F read as the set of times beyond it: { t : some f in F is ≤ t }. The frontier
{minimum} says that everything can still happen, the empty one that nothing can.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from progress.kernel import Int64s, kernel
from progress.times.time_words import word_glb, word_less_equal
from progress.times.timestamp import TimeShape, Timestamp


class Antichain:
    """The minimal elements of the times inserted so far.

    Laws: no element is ≤ another · is_beyond(t) iff some inserted time is ≤ t · order of insertion is
    irrelevant
    """

    __slots__ = ("_elements", "shape")

    def __init__(self, shape: TimeShape, times: Iterable[Timestamp] = ()) -> None:
        self.shape = shape
        self._elements: list[Timestamp] = []
        for time in times:
            self.insert(time)

    def insert(self, time: Timestamp) -> bool:
        """Add a time and drop what comes after it; whether it was minimal."""
        assert self.shape.is_timestamp(time), f"{time} is no time of scope {self.shape}"
        if self.is_beyond(time):
            return False
        self._elements = [element for element in self._elements if not self.shape.less_equal(time, element)]
        self._elements.append(time)
        assert self.is_beyond(time)
        return True

    def is_beyond(self, time: Timestamp) -> bool:
        """Whether some element is ≤ `time`."""
        assert self.shape.is_timestamp(time), f"{time} is no time of scope {self.shape}"
        return any(self.shape.less_equal(element, time) for element in self._elements)

    def elements(self) -> list[Timestamp]:
        """The elements, sorted."""
        assert len(set(self._elements)) == len(self._elements), self._elements
        assert all(self.shape.is_timestamp(element) for element in self._elements), self._elements
        return sorted(self._elements, key=self.shape.sort_key)

    def check_invariants(self) -> None:
        """Assert that no element comes before another."""
        for index, element in enumerate(self._elements):
            assert self.shape.is_timestamp(element), element
            others = self._elements[:index] + self._elements[index + 1 :]
            assert not any(self.shape.less_equal(other, element) for other in others), self

    def __iter__(self) -> Iterator[Timestamp]:
        return iter(self.elements())

    def __len__(self) -> int:
        return len(self._elements)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Antichain) and self.shape == other.shape and self.elements() == other.elements()
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "{" + ", ".join(map(str, self.elements())) + "}"


# -- the same on words --
#
# In a sorted antichain of a scope of two chains the first chain rises from element to element and the second
# falls. So of all elements whose first chain is ≤ that of a word, the last one has the least second chain:
# if any of them is ≤ the word, that one is. One binary search decides. With one chain there is one element.


@kernel
def search_from(elements: Int64s, count: int, guards: int) -> int:
    """From how many elements on to search binarily: never in scopes of three chains or more."""
    without_lowest = guards & (guards - 1)
    return 8 if without_lowest & (without_lowest - 1) == 0 else count + elements.shape[0] + 1


@kernel
def after_in_order(elements: Int64s, count: int, word: int) -> int:
    """How many of the ascending `elements[:count]` are ≤ `word` as integers."""
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
    """Whether some element of the sorted antichain `elements[:count]` is ≤ `word`.

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

    Requires: room for one more element. Ensures: sorted by integer, none ≤ another. Cost: O(count), of which
    all but O(log count) is moving what stands behind in scopes of one and two chains.
    """
    position = 0
    if count >= search_from(elements, count, guards):
        position = after_in_order(elements, count, word)
        if position > 0 and word_less_equal(elements[position - 1], word, guards):
            return count
        # What comes after `word` in the order of times stands together, directly behind it.
        kept = position
        while kept < count and word_less_equal(word, elements[kept], guards):
            kept += 1
        gone = kept - position
        if gone == 0:
            for index in range(count, position, -1):
                elements[index] = elements[index - 1]
        else:
            for index in range(kept, count):
                elements[index - gone + 1] = elements[index]
        elements[position] = word
        return count - gone + 1
    while position < count and elements[position] <= word:
        if word_less_equal(elements[position], word, guards):
            return count
        position += 1
    # What comes after `word` in the order of times comes after it as an integer, too.
    kept = position
    for index in range(position, count):
        if not word_less_equal(word, elements[index], guards):
            elements[kept] = elements[index]
            kept += 1
    for index in range(kept, position, -1):
        elements[index] = elements[index - 1]
    elements[position] = word
    return kept + 1


@kernel
def minimal_words(words: Int64s, guards: int) -> Int64s:
    """The minimal elements of ascending words (doubles allowed), ascending.

    Going up, the first chain can be left out of sight: a word is minimal iff what is left of it without that
    chain is beyond no such rest before. The rests form an antichain of one chain less.

    Cost: O(n) in scopes of one and two chains; with three, O(n log a) and moving up to `a` words for each
    that is kept, a being the size of the antichain of rests; with more, O(n · a).
    """
    minimal = np.empty(words.shape[0], np.int64)
    kept = 0
    rest = guards & (guards - 1)
    if rest & (rest - 1) == 0:
        below = (guards & -guards) - 1
        least = -1
        for index in range(words.shape[0]):
            left = words[index] & below
            if kept == 0 or left < least:
                least = left
                minimal[kept] = words[index]
                kept += 1
        return minimal[:kept].copy()
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
            minimal[kept] = words[index]
            kept += 1
    return minimal[:kept].copy()


@kernel
def not_beyond(words: Int64s, frontier: Int64s, guards: int) -> Int64s:
    """The positions of those words that no element of `frontier`, a sorted antichain, is ≤."""
    found = np.empty(words.shape[0], np.int64)
    count = 0
    for index in range(words.shape[0]):
        if not antichain_is_beyond(frontier, frontier.shape[0], words[index], guards):
            found[count] = index
            count += 1
    return found[:count].copy()


@kernel
def floor_of(words: Int64s, guards: int) -> int:
    """The latest time that comes before all of `words`, of which there is at least one."""
    floor = int(words[0])
    for index in range(1, words.shape[0]):
        floor = word_glb(floor, words[index], guards)
    return floor
