"""Which place has a long value among those that begin as it does?

Values whose first bytes are all alike, as addresses and paths often are, need a word more that has their
order. Each gets a *place* when it is first asked for, a number between those of its neighbours, which it
keeps until the value is forgotten.

    values   of one kind (text or bytes) and one beginning, sorted, each once
    places   ascending with them, 1 to 2^62 - 1; those of neighbours may be equal where no number was left
             between them, so that only they need be compared themselves

The first values of a beginning share the middle half of the numbers evenly. What comes behind the last of
them, as dates and counters do, goes a fixed step further; what comes between two halves the gap, which goes
well some dozens of times in the worst case, a value always just before the last one. Numbering them anew then
would help, but rows with the old numbers are in traces.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Sequence, Set
from typing import Final, TypeVar

from differential.columns.symbols.table import SymbolTable

__all__ = ["Places", "places_of"]

T = TypeVar("T")

_TOP: Final = 1 << 62
_STEP: Final = 1 << 36
"""Between one value and the next behind the last: there is room for 16 million of these."""

_GAPS_FEW: Final = 32
"""Up to here new values are put between the others gap by gap, which moves all behind each time."""


class Places:
    """The places of long values of one symbol table.

    Memory: some 150 bytes for each value asked for, beside the value; they are forgotten with it: rows that
    have the place of a value have its symbol, too.
    """

    def __init__(self) -> None:
        self._known: dict[int, int] = {}
        self._siblings: dict[tuple[type, bytes], _Siblings] = {}
        self._lock = threading.Lock()  # workers in several threads of a process share the table

    def of(self, symbols: Sequence[int], values: Sequence[str | bytes], begins: Sequence[bytes]) -> list[int]:
        """The places of long values, with their symbols and beginnings.

        Cost: a look into a dictionary for those asked for before; else a binary search, and in the list of
        those that begin alike everything behind moves.
        """
        with self._lock:
            new: dict[tuple[type, bytes], dict[str | bytes, int]] = {}
            for symbol, value, begin in zip(symbols, values, begins, strict=True):
                if symbol not in self._known:
                    new.setdefault((type(value), begin), {})[value] = symbol
            for key, some in new.items():
                siblings = self._siblings.setdefault(key, _Siblings())
                in_order = sorted(some)
                for value, place in zip(in_order, siblings.add(in_order), strict=True):
                    self._known[some[value]] = place
            return [self._known[symbol] for symbol in symbols]

    def forget(self, words: Sequence[int], values: Sequence[str | bytes]) -> None:
        """Values that are in use nowhere, with their symbols; if they come again they get another place.

        Cost: a look for each, and a pass over all values that have places if some of these have.
        """
        with self._lock:
            gone = {value for word, value in zip(words, values, strict=True) if self._known.pop(word, 0) != 0}
            if not gone:
                return
            for key, siblings in list(self._siblings.items()):
                siblings.drop(gone)
                if not siblings.values:
                    del self._siblings[key]


class _Siblings:
    """Long values with one beginning, and their places."""

    def __init__(self) -> None:
        self.values: list[str | bytes] = []
        self.places: list[int] = []

    def add(self, new: list[str | bytes]) -> list[int]:
        """Give places to values that are not here, ascending; at least one."""
        gaps: list[tuple[int, int]] = []  # where in `values`, and how many of the new ones come there
        for value in new:
            at = bisect_left(self.values, value)
            if gaps and gaps[-1][0] == at:
                gaps[-1] = (at, gaps[-1][1] + 1)
            else:
                gaps.append((at, 1))
        given = [place for at, count in gaps for place in self._between(at, count)]
        if len(gaps) <= _GAPS_FEW:
            taken = len(new)
            for at, count in reversed(gaps):
                self.values[at:at] = new[taken - count : taken]
                self.places[at:at] = given[taken - count : taken]
                taken -= count
        else:
            self.values = _woven(self.values, new, gaps)
            self.places = _woven(self.places, given, gaps)
        return given

    def drop(self, gone: Set[str | bytes]) -> None:
        """Let go of values; those that stay keep their places."""
        kept = [number for number, value in enumerate(self.values) if value not in gone]
        if len(kept) < len(self.values):
            self.places = [self.places[number] for number in kept]
            self.values = [self.values[number] for number in kept]

    def _between(self, at: int, count: int) -> list[int]:
        """Places for `count` values in front of number `at`."""
        places = self.places
        if not places:
            low, high = _TOP // 4, 3 * (_TOP // 4)
        elif at == len(places):
            low = places[-1]
            high = min(low + (count + 1) * _STEP, _TOP)
        elif at == 0:
            high = places[0]
            low = max(high - (count + 1) * _STEP, 0)
        else:
            low, high = places[at - 1], places[at]
        # Without room the places are those of the neighbour before, or 1, which is nobody's beginning.
        return [max(1, low + (high - low) * number // (count + 1)) for number in range(1, count + 1)]


def _woven(old: list[T], new: list[T], gaps: list[tuple[int, int]]) -> list[T]:
    """`old` with the new ones in its gaps."""
    made: list[T] = []
    start = taken = 0
    for at, count in gaps:
        made += old[start:at]
        made += new[taken : taken + count]
        start, taken = at, taken + count
    return made + old[start:]


def places_of(table: SymbolTable) -> Places:
    """The places of the values of a table."""
    found = table.beside.get(Places)
    if found is None:
        found = table.beside.setdefault(Places, Places())
    assert isinstance(found, Places)
    return found
