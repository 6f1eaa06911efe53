"""The active pointstamps by location, for when there are very many.

The tracker looks through the active pointstamps pair by pair while they are few. A crowd stores them by
location instead: the count of each time, and which times are *foremost*, the minimal ones of the location.

Frontiers depend on the foremost times alone. If (l, t) could result in a pointstamp, so could (l, u) with u ≤
t, because summaries are monotone; so the frontier of a port is the antichain of the minimal elements of

    { s(t) : t foremost at l, s a minimal summary from l to a connector of the port }

In the root scope, whose times are one chain, a location has one foremost time, however many are open.

Cost: about a microsecond for each change; besides, the costs of the minimal elements in `open_times.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from progress.compiled.arrays import Int64s
from progress.graph.summary_table import SummaryTable
from progress.times.open_times import OpenTimes
from progress.times.word_antichain import minimal_words
from progress.times.word_order import word_carried
from progress.tracking.count_changes import Change

_NO_TIMES: Final[Int64s] = np.empty(0, dtype=np.int64)


class _ActiveLocation:
    """A location with active times: the count of each time and, if there are several, the times once more in
    order.
    """

    __slots__ = ("counts", "foremost", "times")

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        self.times: OpenTimes | None = None
        self.foremost: Int64s = _NO_TIMES

    def add(self, word: int, guards: int) -> None:
        """Note that a time is active now."""
        if self.times is not None:
            self.times.add(word)
        elif self.counts:
            self.times = OpenTimes(guards, [*self.counts, word])

    def discard(self, word: int) -> None:
        """Note that a time is not active any more."""
        if self.times is not None:
            self.times.discard(word)

    def minimal(self) -> Int64s:
        """Return the minimal ones of the active times, ascending."""
        return np.array(list(self.counts), dtype=np.int64) if self.times is None else self.times.minimal()

    def first(self) -> int:
        """Return the first active time, as an integer."""
        return next(iter(self.counts)) if self.times is None else self.times.first()

    def elements(self) -> list[int]:
        """Return all active times, ascending."""
        return list(self.counts) if self.times is None else self.times.elements()


class Crowd:
    """Active pointstamps by location.

    Invariants: no count is zero · the times of a location are those that have counts · a location without
    active times is not stored
    """

    def __init__(self, guards: Sequence[int], active: Iterable[tuple[int, int, int]]) -> None:
        """`guards`: those of the scope at each location."""
        self._guards = guards
        self._entries: dict[int, _ActiveLocation] = {}
        self._size = 0
        self.apply([(location, word, count) for location, word, count in active])
        assert self._size == sum(len(entry.counts) for entry in self._entries.values())

    def __len__(self) -> int:
        """Return the number of active pointstamps."""
        return self._size

    def apply(self, changes: Sequence[Change]) -> list[int]:
        """Add to counts; return the locations whose foremost times have changed, ascending.

        Requires: locations exist, and words are times there.
        """
        entries = self._entries
        touched: set[int] = set()
        for location, word, delta in changes:
            if delta == 0:
                continue
            entry = entries.get(location)
            if entry is None:
                entry = entries[location] = _ActiveLocation()
            before = entry.counts.get(word, 0)
            if before == 0:
                self._size += 1
                entry.add(word, self._guards[location])
                touched.add(location)
            if before + delta:
                entry.counts[word] = before + delta
            else:
                self._size -= 1
                entry.discard(word)
                entry.counts.pop(word, None)
                touched.add(location)
        assert self._size >= 0
        return sorted(location for location in touched if self._moved(location))

    def foremost(self) -> tuple[Int64s, Int64s]:
        """Return all foremost pointstamps, as a column of locations and one of words."""
        if not self._entries:
            return _NO_TIMES, _NO_TIMES
        foremost = [entry.foremost for entry in self._entries.values()]
        words = np.concatenate(foremost)
        locations = np.repeat(np.array(list(self._entries), dtype=np.int64), list(map(len, foremost)))
        assert locations.shape == words.shape
        return locations, words

    def foremost_at(self, location: int) -> Int64s:
        """Return the foremost times of a location, ascending."""
        entry = self._entries.get(location)
        return _NO_TIMES if entry is None else entry.foremost

    def least_word(self) -> int:
        """Return the least active word as an integer. Requires: something is active."""
        assert self._size > 0
        return min(entry.first() for entry in self._entries.values())

    def counts(self) -> list[tuple[int, int, int]]:
        """Return all active pointstamps as (location, word, occurrences), sorted."""
        return [
            (location, word, self._entries[location].counts[word])
            for location in sorted(self._entries)
            for word in self._entries[location].elements()
        ]

    def check_invariants(self) -> None:
        """Assert the invariants of the class."""
        assert self._size == sum(len(entry.counts) for entry in self._entries.values()), self._size
        for entry in self._entries.values():
            if entry.times is not None:
                entry.times.check_invariants()
            assert entry.elements() == sorted(entry.counts), entry.counts
            assert entry.counts, "an empty location is forgotten"
            assert all(entry.counts.values()), entry.counts
            assert entry.foremost.tolist() == entry.minimal().tolist()

    def _moved(self, location: int) -> bool:
        """Refresh the foremost times of a location; return True if they changed. An empty location is
        removed.
        """
        entry = self._entries[location]
        foremost = entry.minimal()
        # Compare as bytes: for one word that is ten times as quick as numpy.
        moved = foremost.tobytes() != entry.foremost.tobytes()
        entry.foremost = foremost
        if not entry.counts:
            del self._entries[location]
        return moved


def edge_of(at: Int64s, words: Int64s, table: SummaryTable, column: int) -> Int64s:
    """Return the frontier at a column of the table of summaries, ascending, of the pointstamps that
    `Crowd.foremost` gives.

    Cost: O(f log f), f being the number of images of foremost times there, and that of `minimal_words`.
    """
    guards, valid = int(table.guards[column]), int(table.valid[column])
    numbers = table.set_of[at, column]
    if not numbers.all():
        leading = np.flatnonzero(numbers)
        numbers, words = numbers[leading], words[leading]
    counts = table.sets[numbers, 0]
    most = int(counts.max(initial=0))
    if most == 0:
        return np.empty(0, dtype=np.int64)
    # One row for each summary of a set, so that the images of a location stand together, ascending: numpy's
    # stable sort merges sorted parts.
    sets = table.sets[:, : 1 + 2 * most].T[:, numbers]
    images = (words & sets[1::2]) + sets[2::2]
    images = images[0] if most == 1 else images[np.arange(most)[:, np.newaxis] < counts]
    are_far = images & ~valid != 0
    if are_far.any():
        carried = [word_carried(word, guards, valid) for word in images[are_far].tolist()]
        late = np.array([word for word in carried if word >= 0], dtype=np.int64)
        images = np.concatenate([images[~are_far], late])
    images.sort(kind="stable")
    assert images.dtype == np.int64
    return minimal_words(images, guards)
