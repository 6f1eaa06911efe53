"""Which pointstamps are active, when there are very many?

The tracker looks through the active pointstamps pair by pair while they are few. A crowd of them is kept by
location instead: how often each time is there, and which times are *foremost*, the minimal ones of the
location.

The foremost times are all that frontiers depend on. If (l, t) could result in something, so could (l, u) with
u ≤ t, because summaries are monotone; so the frontier of a port is the antichain of the minimal elements of

    { s(t) : t foremost at l, s a minimal summary from l to a connector of the port }

In the root scope, whose times are one chain, a location has one foremost time, however many are open.

Cost: about a microsecond for each change; besides what `open_times.py` says of the minimal elements.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from progress.compiled.arrays import Int64s
from progress.graph.summary_table import SummaryTable
from progress.times.open_times import OpenTimes
from progress.times.word_antichain import minimal_words
from progress.tracking.count_changes import Change


class _ActiveLocation:
    """A location with something active: the count of each time, and the times once more in order.

    `at` is the location as often as it has foremost times, which are columns of a table together.
    """

    __slots__ = ("at", "counts", "foremost", "times")

    def __init__(self, guards: int) -> None:
        self.at: Int64s = np.empty(0, dtype=np.int64)
        self.counts: dict[int, int] = {}
        self.times = OpenTimes(guards)
        self.foremost: Int64s = np.empty(0, dtype=np.int64)


class Crowd:
    """Active pointstamps by location.

    Invariants: no count is zero · the times of a location are those that have counts · a location without
    any is not there
    """

    def __init__(self, table: SummaryTable, active: Iterable[tuple[int, int, int]]) -> None:
        self._table = table
        self._guards: list[int] = table.guards.tolist()
        self._places: dict[int, _ActiveLocation] = {}
        self._size = 0
        self.apply([(location, word, count) for location, word, count in active])
        assert self._size == sum(len(place.counts) for place in self._places.values())

    def __len__(self) -> int:
        """How many pointstamps are active."""
        return self._size

    def apply(self, changes: Sequence[Change]) -> list[int]:
        """Add to counts; returns the locations whose foremost times are now others, ascending.

        Requires: locations exist, and words are times there.
        """
        places = self._places
        touched: set[int] = set()
        for location, word, delta in changes:
            if delta == 0:
                continue
            place = places.get(location)
            if place is None:
                place = places[location] = _ActiveLocation(self._guards[location])
            before = place.counts.get(word, 0)
            if before == 0:
                self._size += 1
                place.times.add(word)
                touched.add(location)
            if before + delta:
                place.counts[word] = before + delta
            else:
                self._size -= 1
                place.times.discard(word)
                place.counts.pop(word, None)
                touched.add(location)
        assert self._size >= 0
        return sorted(location for location in touched if self._moved(location))

    def foremost(self) -> tuple[Int64s, Int64s]:
        """All foremost pointstamps, as a column of locations and one of words."""
        places = self._places.values()
        if not places:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        words = np.concatenate([place.foremost for place in places])
        locations = np.concatenate([place.at for place in places])
        assert locations.shape == words.shape
        return locations, words

    def edge(self, column: int) -> Int64s:
        """The frontier at a column of the table of summaries, ascending.

        Cost: O(f log f), f being the images of foremost times there, and that of `minimal_words`.
        """
        table = self._table
        guards, outside = int(table.guards[column]), ~int(table.valid[column])
        parts: list[Int64s] = []
        for location, place in self._places.items():
            for keep, add in table.between(location, column):
                images = (place.foremost & keep) + add
                parts.append(images[images & outside == 0])
        if not parts:
            return np.empty(0, dtype=np.int64)
        # Each part is ascending, and a stable sort is one that merges.
        images = np.sort(np.concatenate(parts), kind="stable")
        assert images.dtype == np.int64
        return minimal_words(images, guards)

    def least_word(self) -> int:
        """The least active word as an integer. Requires: something is active."""
        assert self._size > 0
        return min(place.times.first() for place in self._places.values())

    def counts(self) -> list[tuple[int, int, int]]:
        """All active pointstamps as (location, word, occurrences), sorted."""
        return [
            (location, word, self._places[location].counts[word])
            for location in sorted(self._places)
            for word in self._places[location].times.elements()
        ]

    def check_invariants(self) -> None:
        """Assert what the class says."""
        assert self._size == sum(len(place.counts) for place in self._places.values()), self._size
        for place in self._places.values():
            place.times.check_invariants()
            assert place.times.elements() == sorted(place.counts), place.counts
            assert place.counts, "an empty location is forgotten"
            assert all(place.counts.values()), place.counts
            assert place.foremost.tolist() == place.times.minimal().tolist()

    def _moved(self, location: int) -> bool:
        """Whether the foremost times of a location are others than at the last look; forget it if empty."""
        place = self._places[location]
        foremost = place.times.minimal()
        # As bytes, which for one word is ten times as quick as numpy.
        moved = foremost.tobytes() != place.foremost.tobytes()
        if foremost.shape != place.foremost.shape:
            place.at = np.full(foremost.shape[0], location, dtype=np.int64)
        place.foremost = foremost
        if not place.counts:
            del self._places[location]
        return moved
