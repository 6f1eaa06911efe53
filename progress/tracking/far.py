"""Pointstamps at epochs that are too late for time words.

A client may advance an input to an epoch that is further from the anchor (`anchor.py`) than the epoch's field
is wide. Rows never are at such a time, rights may be: a *far* pointstamp. It waits here for the anchor. So
that no frontier looks empty meanwhile, the tracker gets a *stand-in* at every location with a far pointstamp:
one event at the last value of the field, which no epoch has. Far pointstamps are no earlier than the
stand-in, so frontiers are no later than they should be; and they are as late as they can be: past all times
that have words.

Invariants: no count is zero · a location has a stand-in exactly if it has a far pointstamp

Pure: takes changes of counts, returns those for the tracker.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from progress.times.anchor import Rebase
from progress.times.time_words import TimeLayout
from progress.tracking.count_changes import Change

__all__ = ["FarPointstamps"]


class FarPointstamps:
    """The far pointstamps of one worker's view; words are wide, and count from its anchor."""

    def __init__(self, layout: TimeLayout) -> None:
        self._limit = layout.limit
        self._shift = layout.shifts[0]
        self.stand_in = layout.limit
        """The word of stand-ins."""
        self.pointstamps: dict[tuple[int, int], int] = {}
        """(location, word) and their counts."""
        self._locations: set[int] = set()

    def counts(self) -> list[tuple[int, int, int]]:
        """Return all far pointstamps as (location, word, count), sorted."""
        return sorted((location, word, count) for (location, word), count in self.pointstamps.items())

    def least_word(self) -> int:
        """Return the least word of a far pointstamp. Requires: there is one."""
        return min([word for _, word in self.pointstamps])

    def first_epoch_among(self, locations: Container[int]) -> int | None:
        """Return by how many epochs the first far pointstamp at one of `locations` is later than the anchor;
        None if none of them has one.
        """
        words = [word for location, word in self.pointstamps if location in locations]
        return min(words) >> self._shift if words else None

    def sift(self, changes: Iterable[Change]) -> list[Change]:
        """Take in the changes of far pointstamps; return those for the tracker."""
        near: list[Change] = []
        for location, word, delta in changes:
            if word < self._limit:
                near.append((location, word, delta))
                continue
            count = self.pointstamps.pop((location, word), 0) + delta
            if count:
                self.pointstamps[location, word] = count
        return near + self._stand_ins()

    def without_stand_ins(self, counts: Iterable[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
        """Return the counts of the tracker without those of stand-ins."""
        return [row for row in counts if row[1] < self.stand_in]

    def rebase(self, counts: Sequence[tuple[int, int, int]], by: Rebase) -> list[Change]:
        """Return the changes for the tracker when words count from a later anchor.

        `counts` are the tracker's active pointstamps. Pointstamps that were far may now have words.
        """
        changes = [(location, word, -count) for location, word, count in counts]
        near = self.without_stand_ins(counts)
        before, self.pointstamps, self._locations = self.pointstamps, {}, set()
        changes += [(location, by.word(word), count) for location, word, count in near]
        changes += self.sift((location, by.word(word), count) for (location, word), count in before.items())
        return changes

    def check_invariants(self) -> None:
        """Assert the invariants of the module."""
        assert all(self.pointstamps.values()), self.pointstamps
        assert all(word >= self._limit for _, word in self.pointstamps), self.pointstamps
        assert self._locations == {location for location, _ in self.pointstamps}

    def _stand_ins(self) -> list[Change]:
        locations = {location for location, _ in self.pointstamps}
        changes = [(location, self.stand_in, 1) for location in sorted(locations - self._locations)]
        changes += [(location, self.stand_in, -1) for location in sorted(self._locations - locations)]
        self._locations = locations
        return changes
