"""The position of a long value among the values that begin as it does.

Values whose first bytes are all equal, as addresses and paths often are, need one word more that has their
order. A value gets a *place* when it is first looked up: a number between those of its neighbours, which it
keeps until the value is forgotten.

    values   of one kind (text or bytes) and one beginning, sorted, each once
    places   ascending with them, 1 to 2^62 - 1. Neighbours have equal places if no number was left between
             them; only such values have to be compared themselves

The first values of a beginning share the middle half of the numbers evenly. A value behind the last one, as
dates and counters are, goes a fixed step further. A value between two others halves the gap; in the worst
case, a value always just before the last one, that works some dozens of times. New numbers for all would help
then, but rows with the old numbers are in traces.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Sequence, Set
from typing import Final, TypeVar

from differential.columns.symbols.table import SymbolTable
from differential.thresholds import INSERTED_GAPS_MAX

__all__ = ["Places", "places_of"]

T = TypeVar("T")

_TOP: Final = 1 << 62
_STEP: Final = 1 << 36
"""The step from the last value to a new one behind it: there is room for 16 million of these."""


class Places:
    """The places of long values of one symbol table.

    Memory: some 150 bytes for each value that was looked up, beside the value. A place is forgotten with its
    value: rows that have the place of a value have its symbol, too.
    """

    def __init__(self) -> None:
        self._places: dict[int, int] = {}
        self._siblings: dict[tuple[type, bytes], _Siblings] = {}
        self._lock = threading.Lock()  # workers in several threads of a process share the table

    def known(self, symbols: Sequence[int]) -> list[int | None]:
        """Return the places of long values that have one, None for others."""
        return list(map(self._places.get, symbols))

    def of(self, symbols: Sequence[int], values: Sequence[str | bytes], begins: Sequence[bytes]) -> list[int]:
        """Return the places of long values, whose symbols and beginnings are `symbols` and `begins`.

        Cost: a look into a dictionary for a value that has a place; for a new one a binary search, and all
        values behind it with its beginning move in their list.
        """
        with self._lock:
            for key, some in self._new(symbols, values, begins).items():
                siblings = self._siblings.setdefault(key, _Siblings())
                in_order = sorted(some)
                self._places.update(zip(map(some.__getitem__, in_order), siblings.add(in_order), strict=True))
            return list(map(self._places.__getitem__, symbols))

    def _new(
        self, symbols: Sequence[int], values: Sequence[str | bytes], begins: Sequence[bytes]
    ) -> dict[tuple[type, bytes], dict[str | bytes, int]]:
        """Return the values without a place and their symbols, by their kind and beginning."""
        kinds = set(map(type, values))
        if len(kinds) == 1 and self._places.keys().isdisjoint(symbols) and len(set(begins)) == 1:
            return {(kinds.pop(), begins[0]): dict(zip(values, symbols, strict=True))}
        new: dict[tuple[type, bytes], dict[str | bytes, int]] = {}
        for symbol, value, begin in zip(symbols, values, begins, strict=True):
            if symbol not in self._places:
                new.setdefault((type(value), begin), {})[value] = symbol
        return new

    def forget(self, words: Sequence[int], values: Sequence[str | bytes]) -> None:
        """Drop values that are in use nowhere, with their symbols; if they come again they get new places.

        Cost: a look for each, and a pass over all values with places if any of these has one.
        """
        with self._lock:
            gone = {
                value for word, value in zip(words, values, strict=True) if self._places.pop(word, 0) != 0
            }
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
        """Add at least one value, ascending, none of which is here yet. Return their places."""
        if not self.values:
            self.values, self.places = new, self._between(0, len(new))
            return self.places.copy()
        gaps: list[tuple[int, int]] = []  # an index into `values`, and the number of new values before it
        for value in new:
            at = bisect_left(self.values, value)
            if gaps and gaps[-1][0] == at:
                gaps[-1] = (at, gaps[-1][1] + 1)
            else:
                gaps.append((at, 1))
        places = [place for at, count in gaps for place in self._between(at, count)]
        if len(gaps) <= INSERTED_GAPS_MAX:
            taken = len(new)
            for at, count in reversed(gaps):
                self.values[at:at] = new[taken - count : taken]
                self.places[at:at] = places[taken - count : taken]
                taken -= count
        else:
            self.values = _woven(self.values, new, gaps)
            self.places = _woven(self.places, places, gaps)
        return places

    def drop(self, gone: Set[str | bytes]) -> None:
        """Drop values; those that stay keep their places."""
        staying = [number for number, value in enumerate(self.values) if value not in gone]
        if len(staying) < len(self.values):
            self.places = [self.places[number] for number in staying]
            self.values = [self.values[number] for number in staying]

    def _between(self, at: int, count: int) -> list[int]:
        """Return places for `count` values in front of number `at`."""
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
        # Without room the values get the place of the neighbour before, or 1: 0 is for values that are short.
        return [max(1, low + (high - low) * number // (count + 1)) for number in range(1, count + 1)]


def _woven(old: list[T], new: list[T], gaps: list[tuple[int, int]]) -> list[T]:
    """Return `old` with the new values in its gaps."""
    woven: list[T] = []
    start = taken = 0
    for at, count in gaps:
        woven += old[start:at]
        woven += new[taken : taken + count]
        start, taken = at, taken + count
    return woven + old[start:]


def places_of(table: SymbolTable) -> Places:
    """Return the places of the values of a table."""
    places = table.beside.get(Places)
    if places is None:
        places = table.beside.setdefault(Places, Places())
    assert isinstance(places, Places)
    return places
