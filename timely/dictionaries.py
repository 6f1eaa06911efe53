"""Which words stand for values, and may be forgotten once nothing refers to them any more?

Words of a batch may be *symbols*: names for values that a *dictionary* of the worker has, and that workers
send one another (`Batch.to_frames`). `timely` does not interpret words; it knows that they are in arrays of
64-bit integers, which batches, vertices and inputs may hold, and when a dictionary may forget the words that
are in none of these (`running/forgetting.py`).

    Dictionary   can forget words; the package that has one registers it
    Marking      collects which words of one dictionary are in use
    Mark         is passed to each holder in turn, which shows it all its arrays

A holder shows too many arrays rather than too few: a word that is no symbol costs one lookup, but a symbol
that is not shown ends the dataflow wrongly when its value is needed. A holder that does not know its words
reports that (`Mark.unknown`), and then nothing is forgotten. One that for a while has words of which only
sums are left says so (`HidesWords`), and workers forget later.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from progress.compiled.arrays import Int64s

__all__ = ["Dictionary", "HidesWords", "Holder", "Mark", "Marking", "dictionaries", "register_dictionary"]


class Marking(Protocol):
    """Which words of one dictionary are in use."""

    def add(self, words: Int64s) -> None:
        """Mark all words of an array of any shape as in use; words that the dictionary lacks are ignored."""
        ...

    def has_between(self, low: int, high: int) -> bool:
        """Return True if the dictionary has a word in a range, both ends included."""
        ...


class Dictionary(Protocol):
    """Words and their values on this worker; see `SymbolTable` of `differential`."""

    def __len__(self) -> int:
        """Return the number of words."""
        ...

    @property
    def is_full(self) -> bool:
        """True if it has so many words that a search for unused ones pays."""
        ...

    def withdraw(self, peer: int) -> None:
        """Note that worker `peer` may have forgotten words that it was sent."""
        ...

    def begin(self) -> None:
        """Note from now on all words sent to and received from others: the next `forget` keeps them."""
        ...

    def marking(self) -> Marking:
        """Return a marking in which only words that are never forgotten, and noted words, are in use."""
        ...

    def forget(self, marking: Marking) -> int:
        """Forget all words that are not in use; return their number. Notes end."""
        ...

    def give_up(self) -> None:
        """Keep all words, since some holder does not know its words. Notes end."""
        ...

    def report(self) -> dict[str, int]:
        """Return statistics for people, by name."""
        ...


@runtime_checkable
class Holder(Protocol):
    """An object that may hold words: a batch, an input, the log of an output."""

    def symbols(self, mark: Mark) -> None:
        """Show `mark` all arrays that may have symbols; extra arrays do no harm."""
        ...


@runtime_checkable
class HidesWords(Protocol):
    """A vertex that may have symbols which it cannot show."""

    def hides_words(self, waits: bool) -> bool:
        """Return True while it has symbols of which only sums are left; `waits`: batches wait for it."""
        ...


class Mark:
    """Passed to all holders one after another; marks the words that they hold as in use."""

    def __init__(self, markings: Iterable[Marking]) -> None:
        self._markings = list(markings)
        self.not_known: list[str] = []
        """The holders that do not know their words."""

    def words(self, words: Int64s) -> None:
        """Mark the symbols in this array, of any shape."""
        for marking in self._markings:
            marking.add(words)

    def has_between(self, low: int, high: int) -> bool:
        """Return True if some dictionary has symbols in a range. If not, a holder may leave out arrays whose
        values are all in the range.
        """
        return any(marking.has_between(low, high) for marking in self._markings)

    def holder(self, holder: object, who: str = "") -> None:
        """Mark the symbols of this batch or other object; `who`: its name if it does not know its words."""
        if isinstance(holder, Holder):
            holder.symbols(self)
        else:
            self.unknown(who or f"a {type(holder).__name__}")

    def unknown(self, who: str) -> None:
        """Note that `who` does not know its words."""
        if who not in self.not_known:
            self.not_known.append(who)


_dictionaries: list[Dictionary] = []


def register_dictionary(dictionary: Dictionary) -> None:
    """Let the workers of this process forget words of `dictionary` that nothing refers to."""
    _dictionaries.append(dictionary)


def dictionaries() -> list[Dictionary]:
    """Return the dictionaries of this process."""
    return _dictionaries
