"""From which epoch do time words count?

The epoch of a word is as wide as the loops leave room for: with four loops, 18 bits. The width bounds how
many epochs are *open* at once, not how many there are: the field holds how many epochs a time is after the
*anchor* of its dataflow on its worker, and the anchor moves up.

    epoch of a word   =   anchor + (word >> position of the epoch's field)

`timely/running/instance.py` moves the anchor. It knows that nothing is outstanding before the new anchor, in
a view that is never ahead of the truth. As the epoch is the topmost field, moving is a subtraction of one
constant from every word that the dataflow stores: a *rebase*. Words of the past, which are in traces only,
become words of the new anchor first; every lookup from then on is at a time that is not before the new
anchor, and sees no difference:

    lub(t, (anchor, 0, …))   is t with the epoch of the anchor, for epochs are a chain of their own

Epochs that users see are whole numbers up to `EPOCH_MAX`. A time of an epoch that no word holds yet is a
*wide* word: a Python integer whose epoch has as many bits as it needs. Only rights have wide words, never
rows.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from progress.compiled.arrays import Int64s
from progress.errors import InternalError

__all__ = ["EPOCH_MAX", "Anchor", "Rebase"]

EPOCH_MAX: Final = (1 << 62) - 2
"""The last possible epoch, in a dataflow of any depth."""


class Anchor:
    """The epoch from which the words of one dataflow on one worker count.

    All codes of the dataflow share this one object.
    """

    __slots__ = ("epoch",)

    def __init__(self, epoch: int = 0) -> None:
        self.epoch = epoch

    def __repr__(self) -> str:
        return f"Anchor({self.epoch})"


class Rebase:
    """One move of an anchor by `epochs`; `shift` is the position of the epoch's lowest bit.

    Laws: `early` keeps order, and lubs with times from the new anchor on · where a word is not before the new
    anchor, `early` and `word` are one and the same

    Arrays are copied, never written to; an array with several holders is copied once.
    """

    def __init__(self, epochs: int, shift: int) -> None:
        assert epochs > 0, epochs
        self.epochs = epochs
        self.step = epochs << shift
        self._rest = (1 << shift) - 1
        self._moved: dict[int, tuple[Int64s, Int64s]] = {}

    def word(self, word: int) -> int:
        """Return a word, perhaps a wide one, as counted from the new anchor.

        Raises `InternalError` if it is before the new anchor: outstanding events never are.
        """
        if word < self.step:
            raise self._before(word)
        return word - self.step

    def words(self, words: Int64s) -> Int64s:
        """Return `word` of each word of an array."""
        moved = words - self.step if self.step < 1 << 63 else np.full_like(words, -1)
        if words.size and int(moved.min()) < 0:
            raise self._before(int(words.min()))
        return moved

    def early(self, words: Int64s) -> Int64s:
        """Return words as counted from the new anchor; those before it become words of its epoch."""
        if self.step >= 1 << 63:
            return words & self._rest
        moved = words - self.step
        return np.where(moved < 0, words & self._rest, moved)

    def early_word(self, word: int) -> int:
        """Return `early` of one word."""
        return word - self.step if word >= self.step else word & self._rest

    def rows(self, rows: Int64s) -> Int64s:
        """Return a table of rows, whose row before the last holds their times, with the times rebased."""
        entry = self._moved.get(id(rows))
        if entry is None:
            moved = rows.copy()
            moved[-2] = self.words(rows[-2])
            # Keep the old array too, so that no other array gets its id.
            entry = self._moved[id(rows)] = rows, moved
        return entry[1]

    def _before(self, word: int) -> InternalError:
        return InternalError(
            f"time words are to count from {self.epochs} epochs later on, which {word:#x} is before: "
            "something was outstanding that progress tracking took for done"
        )
