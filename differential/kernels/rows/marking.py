"""Which words of a set occur in arrays? For the symbols of a table, while all holders of words show theirs.

    slots   int64[2 · size], size a power of two: pairs (word, 1 if it was met), each at the first free pair
            from the one on that the lowest bits of the word select; word 0 is a free pair

    bits    int64[n / 8 or more, a power of two]: for each word of the set a bit is 1, by all bits of the word

Words of the set are hashes, so their lowest bits are as good as random. At most half of the pairs are taken.
Most words that are not in the set meet a bit that is 0: the bits fit a cache, the pairs do not.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from progress.compiled.kernel import Int64s, kernel

__all__ = ["SymbolMarking", "bits_of", "mark_words", "met_and_not", "slots_of"]


@kernel
def slots_of(words: Int64s) -> Int64s:
    """Return the table of a set: `words` int64[n] are different, and none is 0."""
    size = np.int64(16)
    while size < 2 * words.shape[0]:
        size *= 2
    slots = np.zeros(2 * size, np.int64)
    for index in range(words.shape[0]):
        at = words[index] & (size - 1)
        while slots[2 * at] != 0:
            at = (at + 1) & (size - 1)
        slots[2 * at] = words[index]
    return slots


@kernel
def _bit_of(word: int) -> int:
    """Return a number of 40 bits. Each bit depends on all lower bits of the word, and on more of them."""
    mixed = np.uint64(word) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64(mixed >> np.uint64(24))


@kernel
def bits_of(words: Int64s) -> Int64s:
    """Return the bits of a set `words` int64[n]: 8 to 16 for each."""
    size = np.int64(16)
    while size * 64 < 8 * words.shape[0]:
        size *= 2
    bits = np.zeros(size, np.int64)
    for index in range(words.shape[0]):
        bit = _bit_of(words[index]) & (64 * size - 1)
        bits[bit >> 6] |= np.int64(1) << (bit & 63)
    return bits


@kernel
def mark_words(words: Int64s, slots: Int64s, bits: Int64s, least: int) -> None:
    """Mark each of `words` int64[n] as met, if it is in the set.

    least   no word of the set is nearer to 0; most integers that are no hashes are, and cost nothing
    Cost: about 1 ns for a word that is left out, or is the same as the one before, else an access to memory.
    """
    mask = slots.shape[0] // 2 - 1
    within = 64 * bits.shape[0] - 1
    last = np.int64(0)
    for index in range(words.shape[0]):
        word = words[index]
        if word == last or -least < word < least:
            continue
        last = word
        bit = _bit_of(word) & within
        if (bits[bit >> 6] >> (bit & 63)) & 1 == 0:
            continue
        at = word & mask
        while slots[2 * at] != 0:
            if slots[2 * at] == word:
                slots[2 * at + 1] = 1
                break
            at = (at + 1) & mask


@kernel
def met_and_not(slots: Int64s) -> tuple[Int64s, Int64s]:
    """Return the words of the set that were met, and the others."""
    size = slots.shape[0] // 2
    met = np.int64(0)
    taken = np.int64(0)
    for at in range(size):
        if slots[2 * at] != 0:
            taken += 1
            met += slots[2 * at + 1]
    in_use = np.empty(met, np.int64)
    gone = np.empty(taken - met, np.int64)
    met = np.int64(0)
    taken = np.int64(0)
    for at in range(size):
        if slots[2 * at] != 0:
            if slots[2 * at + 1] != 0:
                in_use[met] = slots[2 * at]
                met += 1
            else:
                gone[taken] = slots[2 * at]
                taken += 1
    return in_use, gone


class SymbolMarking:
    """The symbols `words`, none of them in use at first.

    Memory: 40 to 80 bytes for each symbol. Cost: some 0.1 µs each in the beginning; for each word shown about
    2 ns if it is nearer to 0 than any symbol, as small numbers are, or the same as the one before it; some 10
    for others that are no symbols; an access to that memory, 10 to 50, for one that is.
    """

    def __init__(self, words: Collection[int]) -> None:
        """`words`: different ones, none of them 0."""
        symbols = np.fromiter(words, np.int64, len(words))
        self._slots = slots_of(symbols)
        self._bits = bits_of(symbols)
        symbols.sort()
        self._sorted = symbols
        positive = int(np.searchsorted(symbols, 0))
        nearest = [-int(word) for word in symbols[:positive][-1:]]
        nearest += [int(word) for word in symbols[positive:][:1]]
        self._least = min([*nearest, (1 << 63) - 1])
        self.words_shown = 0
        """Number of words that were shown."""

    def add(self, words: Int64s) -> None:
        """Mark all words of an array of any shape as in use, if they are symbols of the table."""
        flat = np.ascontiguousarray(words).reshape(-1)
        self.words_shown += flat.shape[0]
        mark_words(flat, self._slots, self._bits, self._least)

    def has_between(self, low: int, high: int) -> bool:
        """Return True if there is a symbol in a range, both ends included."""
        at = int(np.searchsorted(self._sorted, low))
        return at < self._sorted.shape[0] and int(self._sorted[at]) <= high

    def in_use_and_not(self) -> tuple[Int64s, Int64s]:
        """Return the symbols that were shown, and the others."""
        return met_and_not(self._slots)
