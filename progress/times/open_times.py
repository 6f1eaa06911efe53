"""Many times of one scope: which are the minimal ones, and which are complete?

A set of time words that answers its two frequent queries without looking at all words:

    minimal()                the antichain of the minimal elements
    take_complete(frontier)  takes out the words for which no element of a frontier is ≤

The words lie sorted in *blocks* of some hundreds. Each block has its *edge*, the minimal elements of the
block, and its *floor*, the latest time that comes before all of the block: a block whose floor is beyond a
frontier is beyond it as a whole, and is skipped.

Cost, with n words, b = n / 256 blocks: `add` and `discard` O(log n), and a block's worth of moving. In scopes
of one chain `minimal` and `take_complete` cost nothing but what they return. In others: a comparison for each
block, and a look into those that can contribute to the answer. An antichain of n elements is returned as a
whole, so calling `minimal` after each of n changes costs n².

For few words a list with a linear search is quicker; callers with few words use that.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import Final

import numpy as np

from progress.compiled.arrays import Int64s
from progress.times.word_antichain import antichain_is_beyond, floor_of, minimal_words, not_beyond

BLOCK_MAX: Final = 512
_NOTHING: Final = np.empty(0, dtype=np.int64)


class OpenTimes:
    """A set of words; `guards` defines their order.

    Laws: it is a set · minimal() are the elements that no other one is ≤ · after take_complete(F) every
    element is ≥ one of F, and nothing else is gone
    """

    __slots__ = (
        "_blocks",
        "_edges",
        "_floors",
        "_guards",
        "_is_chain",
        "_lasts",
        "_minimal",
        "_size",
        "_stale",
    )

    def __init__(self, guards: int, words: Iterable[int] = ()) -> None:
        self._guards = guards
        self._is_chain = guards & (guards - 1) == 0
        self._blocks: list[list[int]] = []
        self._lasts: list[int] = []
        self._edges: list[Int64s] = []
        self._floors: Int64s = _NOTHING
        # For each block 1 if its edge and floor must be recomputed; bytes are searched quickly.
        self._stale = bytearray()
        self._minimal: Int64s | None = _NOTHING
        self._size = 0
        ascending = sorted(set(words))
        for start in range(0, len(ascending), BLOCK_MAX // 2):
            self._put_block(len(self._blocks), ascending[start : start + BLOCK_MAX // 2])
        self._size = len(ascending)
        assert self._size == sum(map(len, self._blocks))

    def __len__(self) -> int:
        return self._size

    def add(self, word: int) -> None:
        """Add a word; a word that is in the set stays in it once."""
        assert word >= 0, word
        if not self._blocks:
            self._put_block(0, [word])
            self._size = 1
            return
        at = bisect_left(self._lasts, word)
        if at == len(self._blocks):
            at -= 1
        block = self._blocks[at]
        position = bisect_left(block, word)
        if position < len(block) and block[position] == word:
            return
        block.insert(position, word)
        self._size += 1
        if len(block) > BLOCK_MAX:
            half = len(block) // 2
            self._put_block(at + 1, block[half:])
            del block[half:]
        self._changed(at)

    def discard(self, word: int) -> None:
        """Remove a word, if it is there."""
        at = bisect_left(self._lasts, word)
        if at == len(self._blocks):
            return
        block = self._blocks[at]
        position = bisect_left(block, word)
        if block[position] != word:
            return
        del block[position]
        self._size -= 1
        self._shrunk(at)
        assert self._size >= 0

    def first(self) -> int:
        """Return the least word as an integer: no other one comes before it. Requires: not empty."""
        assert self._size > 0
        return self._blocks[0][0]

    def minimal(self) -> Int64s:
        """Return the minimal elements, ascending; the same array until something changes, not to be written
        to.
        """
        if self._minimal is None:
            self._minimal = self._find_minimal()
        assert (self._minimal.shape[0] == 0) == (self._size == 0)
        return self._minimal

    def has_before(self, word: int) -> bool:
        """Return True if some element is ≤ `word`."""
        guards = self._guards
        if self._size == 0 or self._blocks[0][0] > word:
            return False
        if self._is_chain:
            return True
        self._refresh()
        for at in np.flatnonzero(((word | guards) - self._floors) & guards == guards).tolist():
            edge = self._edges[at]
            if antichain_is_beyond(edge, edge.shape[0], word, guards):
                return True
        return False

    def take_complete(self, frontier: Int64s) -> list[int]:
        """Take out the words for which no element of `frontier`, a sorted antichain, is ≤; return them
        ascending.
        """
        assert frontier.ndim == 1
        if self._size == 0:
            return []
        if frontier.shape[0] == 0:
            return self._take_before(self._lasts[-1] + 1)
        if self._is_chain:
            return self._take_before(int(frontier[0]))
        self._refresh()
        taken: list[int] = []
        # From the last block on, so that removing a block moves none of the blocks that are still to be
        # visited.
        for at in reversed(not_beyond(self._floors, frontier, self._guards).tolist()):
            block = self._blocks[at]
            chosen = not_beyond(np.array(block, dtype=np.int64), frontier, self._guards).tolist()
            if not chosen:
                continue
            taken += [block[position] for position in reversed(chosen)]
            gone = set(chosen)
            block[:] = [word for position, word in enumerate(block) if position not in gone]
            self._size -= len(chosen)
            self._shrunk(at)
        assert self._size >= 0
        return taken[::-1]

    def elements(self) -> list[int]:
        """Return all words, ascending."""
        return [word for block in self._blocks for word in block]

    def check_invariants(self) -> None:
        """Assert that words are sorted and different, blocks within bounds, and edges and floors right."""
        elements = self.elements()
        assert elements == sorted(set(elements)), "sorted, and no word twice"
        assert len(elements) == self._size, self._size
        assert all(1 <= len(block) <= BLOCK_MAX for block in self._blocks), list(map(len, self._blocks))
        assert self._lasts == [block[-1] for block in self._blocks]
        assert len(self._edges) == len(self._blocks)
        if not self._is_chain:
            assert self._floors.shape[0] == len(self._blocks)
            assert len(self._stale) == len(self._blocks)
            for at, block in enumerate(self._blocks):
                words = np.array(block, dtype=np.int64)
                is_right = self._edges[at].tolist() == minimal_words(words, self._guards).tolist()
                assert self._stale[at] or (is_right and self._floors[at] == floor_of(words, self._guards)), at

    def _find_minimal(self) -> Int64s:
        if not self._blocks:
            return _NOTHING
        if self._is_chain:
            return np.array([self._blocks[0][0]], dtype=np.int64)
        self._refresh()
        first = self._edges[0]
        others = not_beyond(self._floors, first, self._guards).tolist()
        edges = [self._edges[at] for at in others if at > 0]
        return minimal_words(np.concatenate([first, *edges]), self._guards) if edges else first

    def _refresh(self) -> None:
        """Recompute the edges and floors of the blocks that have changed."""
        at = self._stale.find(1)
        while at >= 0:
            edge = minimal_words(np.array(self._blocks[at], dtype=np.int64), self._guards)
            self._edges[at] = edge
            # A time before the minimal elements is before all elements.
            self._floors[at] = floor_of(edge, self._guards)
            self._stale[at] = 0
            at = self._stale.find(1, at)
        assert self._floors.shape[0] == len(self._blocks)

    def _take_before(self, bound: int) -> list[int]:
        """Take out and return all words below `bound` as integers."""
        taken: list[int] = []
        whole = bisect_left(self._lasts, bound)
        for block in self._blocks[:whole]:
            taken += block
        del self._blocks[:whole], self._lasts[:whole], self._edges[:whole]
        self._floors = self._floors[whole:]
        del self._stale[:whole]
        self._minimal = None
        if self._blocks:
            block = self._blocks[0]
            position = bisect_left(block, bound)
            if position:
                taken += block[:position]
                del block[:position]
                self._changed(0)
        self._size -= len(taken)
        assert taken == [] or taken[-1] < bound
        return taken

    def _put_block(self, at: int, block: list[int]) -> None:
        assert block, "there are no empty blocks"
        self._blocks.insert(at, block)
        self._lasts.insert(at, block[-1])
        self._edges.insert(at, _NOTHING)
        if not self._is_chain:
            self._floors = np.insert(self._floors, at, 0)
            self._stale.insert(at, 1)
        self._minimal = None

    def _changed(self, at: int) -> None:
        self._lasts[at] = self._blocks[at][-1]
        if not self._is_chain:
            self._stale[at] = 1
        self._minimal = None

    def _shrunk(self, at: int) -> None:
        """Remove the block if it has become empty, or join it with the next one if both are small."""
        block = self._blocks[at]
        behind = at + 1
        if block and behind < len(self._blocks) and len(block) + len(self._blocks[behind]) <= BLOCK_MAX // 4:
            block += self._blocks[behind]
        elif block:
            self._changed(at)
            return
        else:
            behind = at
        if block:
            self._changed(at)
        del self._blocks[behind], self._lasts[behind], self._edges[behind]
        if not self._is_chain:
            self._floors = np.delete(self._floors, behind)
            del self._stale[behind]
        self._minimal = None
