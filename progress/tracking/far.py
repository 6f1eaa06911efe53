"""Which pointstamps are later than time words can say?

An input may be told to go on at an epoch that is further from the anchor (`anchor.py`) than the epoch's field
is wide. Rows never are at such a time, rights may be: a *far* pointstamp. It waits here for the anchor. So
that no frontier is taken for empty meanwhile, the tracker is told of a *stand-in* at every location with
something far: one event at the last value of the field, which no epoch has. What is far is no earlier, so
frontiers are no later than they should be; and they say as much as they can, that all that words have is
complete.

Invariants: no count is zero · a location has a stand-in exactly if something of it is far

Pure: changes of counts in, those for the tracker out.
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
        """All of them, as (location, word, count), sorted."""
        return sorted((location, word, count) for (location, word), count in self.pointstamps.items())

    def first_epoch(self, least: int | None) -> int | None:
        """How many epochs behind the anchor the first one is of which something is active, where `least` is
        the least word that the tracker has; None: nothing is.
        """
        if least is not None and least >= self.stand_in:
            least = min(word for _, word in self.pointstamps)
        return None if least is None else least >> self._shift

    def first_epoch_among(self, locations: Container[int]) -> int | None:
        """How many epochs behind the anchor the first far one at any of these locations is; None: none is far
        there.
        """
        found = [word for location, word in self.pointstamps if location in locations]
        return min(found) >> self._shift if found else None

    def is_wide(self, changes: Iterable[Change]) -> bool:
        """Whether a change is of something far."""
        limit = self._limit
        for change in changes:
            if change[1] >= limit:
                return True
        return False

    def sift(self, changes: Iterable[Change]) -> list[Change]:
        """Keep the changes of what is far; returns those for the tracker."""
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
        """What is active in the tracker and is no stand-in."""
        return [row for row in counts if row[1] < self.stand_in]

    def rebase(self, counts: Sequence[tuple[int, int, int]], by: Rebase) -> list[Change]:
        """The changes for the tracker, whose active pointstamps are `counts`, when words count from a later
        anchor: what was far may not be so any more.
        """
        changes = [(location, word, -count) for location, word, count in counts]
        kept = self.without_stand_ins(counts)
        before, self.pointstamps, self._locations = self.pointstamps, {}, set()
        changes += [(location, by.word(word), count) for location, word, count in kept]
        changes += self.sift((location, by.word(word), count) for (location, word), count in before.items())
        return changes

    def check_invariants(self) -> None:
        """Assert what the module says."""
        assert all(self.pointstamps.values()), self.pointstamps
        assert all(word >= self._limit for _, word in self.pointstamps), self.pointstamps
        assert self._locations == {location for location, _ in self.pointstamps}

    def _stand_ins(self) -> list[Change]:
        wanted = {location for location, _ in self.pointstamps}
        changes = [(location, self.stand_in, 1) for location in sorted(wanted - self._locations)]
        changes += [(location, self.stand_in, -1) for location in sorted(self._locations - wanted)]
        self._locations = wanted
        return changes
