"""What stands for something, and may be forgotten once nothing refers to it any more?

Words of a batch may be *symbols*: names for values that a *dictionary* of the worker holds, and that come to
know one another from worker to worker (`Batch.to_frames`). `timely` knows no words; it knows that they stand
in arrays of 64-bit integers, where batches, vertices and inputs may have them, and when a dictionary may
forget what is in none of these (`running/forgetting.py`).

    Dictionary   what can forget; whoever has one registers it
    Marking      which of its words are in use, while that is found out
    Mark         goes from holder to holder, and is shown all that they hold

Whoever holds something shows too much rather than too little: a word in an array that is no symbol costs a
look, a symbol that is not shown is a wrong stop when somebody asks for its value. Who does not know what it
holds says so (`Mark.unknown`), and then nothing is forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from progress.compiled.arrays import Int64s

__all__ = ["Dictionary", "Holder", "Mark", "Marking", "dictionaries", "register_dictionary"]


class Marking(Protocol):
    """Which words of one dictionary are in use."""

    def add(self, words: Int64s) -> None:
        """All words of an array of any shape are in use, as far as they are in the dictionary at all."""
        ...

    def has_between(self, low: int, high: int) -> bool:
        """Whether there is a word of the dictionary in a range, both ends included."""
        ...


class Dictionary(Protocol):
    """What stands for something on this worker; see `SymbolTable` of `differential`."""

    def __len__(self) -> int:
        """How many words it has."""
        ...

    @property
    def is_full(self) -> bool:
        """Whether there is so much that it is worth looking for what may be forgotten."""
        ...

    def withdraw(self, peer: int) -> None:
        """Worker `peer` may not know any more what it knew."""
        ...

    def begin(self) -> None:
        """From now on keep note of what others are told and what they tell: it is not forgotten next."""
        ...

    def marking(self) -> Marking:
        """An account of words in use; nothing is yet, but for what never goes, and what was noted."""
        ...

    def forget(self, marking: Marking) -> int:
        """Forget all that is not in use; returns how many words that were. What was noted counts no more."""
        ...

    def give_up(self) -> None:
        """Keep everything: somebody does not know what it holds. What was noted counts no more."""
        ...

    def report(self) -> dict[str, int]:
        """Numbers for people, by name."""
        ...


@runtime_checkable
class Holder(Protocol):
    """What may hold words: a batch, an input, the log of an output."""

    def symbols(self, mark: Mark) -> None:
        """Show `mark` all arrays in which there may be symbols; too many do no harm."""
        ...


class Mark:
    """Shown to holders one after another; what they hold is in use."""

    def __init__(self, markings: Iterable[Marking]) -> None:
        self._markings = list(markings)
        self.not_known: list[str] = []
        """Who does not know what it holds."""

    def words(self, words: Int64s) -> None:
        """There may be symbols in this array, of any shape."""
        for marking in self._markings:
            marking.add(words)

    def has_between(self, low: int, high: int) -> bool:
        """Whether there are symbols in a range at all: arrays whose values are all in it may be left out."""
        return any(marking.has_between(low, high) for marking in self._markings)

    def holder(self, holder: object, who: str = "") -> None:
        """There may be symbols in this batch, or whatever it is; `who`: its name if it cannot say."""
        if isinstance(holder, Holder):
            holder.symbols(self)
        else:
            self.unknown(who or f"a {type(holder).__name__}")

    def unknown(self, who: str) -> None:
        """`who` holds something of which it does not know what."""
        if who not in self.not_known:
            self.not_known.append(who)


_dictionaries: list[Dictionary] = []


def register_dictionary(dictionary: Dictionary) -> None:
    """Let the workers of this process forget of `dictionary` what nothing refers to."""
    _dictionaries.append(dictionary)


def dictionaries() -> list[Dictionary]:
    """Those of this process."""
    return _dictionaries
