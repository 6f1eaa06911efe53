"""Which version of a routing table holds from which epoch on, and up to which epoch versions are known.

Announcements are rows of an ordinary input. An announcement that is sealed in epoch a holds for rows of epoch
a + `lead` and later: its time decides, never its arrival. So once all announcements of epochs before e are
known, so are the versions of all epochs before e + lead.

Each router and each vertex of units has a schedule of its own. All of them agree, since they get the same
announcements and look at nothing else.
"""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple

from differential.columns.schema import Schema
from progress.compiled.arrays import Int64s
from progress.times.anchor import EPOCH_MAX, Anchor, Rebase
from timely.errors import MisuseError
from timely.operators.capture import FOREVER
from timely.routing.announcement import Announcement
from timely.routing.table import RoutingTable, RoutingVersions

from ..placements.placement import Placement

__all__ = ["ANNOUNCED", "Change", "Schedule"]

ANNOUNCED: Final = Schema.of(", ".join(f"{name}: int" for name in Announcement._fields))
"""The columns of announcements."""


class Change(NamedTuple):
    """From the epoch `start` on, `new` holds in place of `old`."""

    start: int
    old: RoutingTable
    new: RoutingTable

    def rebased(self, by: Rebase) -> Change:
        """Return the same change, where epochs count from a later one."""
        return self._replace(start=max(self.start - by.epochs, 0))


class Schedule:
    """The versions of the table of a placement.

    `shift`: position of the lowest bit of the epoch in a time; `anchor`: the epoch from which its epochs
    count, for messages.
    """

    def __init__(self, placement: Placement, lead: int, shift: int, anchor: Anchor | None = None) -> None:
        self.placement = placement
        self.lead = lead
        self.versions = RoutingVersions.begin(placement.first)
        self.known_before = lead
        """The versions of epochs before this one are known."""
        self._shift = shift
        self._anchor = Anchor() if anchor is None else anchor
        self._noted: dict[int, Counter[Announcement]] = {}

    def note(self, words: Int64s) -> None:
        """Note announcements that have come in: eight words, time and difference each."""
        for *row, time, diff in words.T.tolist():
            self._noted.setdefault(time >> self._shift, Counter())[Announcement(*row)] += diff

    def starts(self) -> list[int]:
        """Return the epochs from which announced versions hold that are not known yet, ascending."""
        starts = (max(epoch + self.lead, 0) for epoch in self._noted)
        return sorted(start for start in starts if self._may_come(start))

    def complete(self, before: int) -> list[Change]:
        """Take announcements of epochs before this one as known; return the changes of those new here.

        Raises MisuseError, with the epoch, for announcements that are impossible, or contradict each other.
        """
        changes: list[Change] = []
        for epoch in sorted(epoch for epoch in self._noted if epoch < before):
            counts, name = self._noted.pop(epoch), self._anchor.epoch + epoch
            if any(count < 0 for count in counts.values()):
                raise MisuseError(
                    f"an announcement of epoch {name} takes one back: what holds instead is to be announced"
                )
            rows = [row for row, count in counts.items() if count > 0]
            if not rows:
                continue
            old = self.versions.tables[-1]
            try:
                new = self.placement.changed(old, rows)
            except MisuseError as error:
                raise MisuseError(f"announcements of epoch {name}: {error}") from error
            start = max(epoch + self.lead, 0)
            starts, tables = (*self.versions.starts, start), (*self.versions.tables, new)
            if start == 0:  # it holds from the first epoch on that may still have rows
                starts, tables = (0,), (new,)
            self.versions = RoutingVersions(starts, tables)
            if self._may_come(start):
                changes.append(Change(start, old, new))
        self.known_before = max(self.known_before, min(before + self.lead, FOREVER))
        return changes

    def _may_come(self, epoch: int) -> bool:
        """Return True if rows of an epoch can ever come."""
        return self._anchor.epoch + epoch <= EPOCH_MAX

    def rebase(self, by: Rebase) -> None:
        """Count epochs from a later one.

        A noted announcement may be of an epoch before that one, if `complete` was not called since its epoch
        was complete. Versions that hold from before that epoch on hold from it on.
        """
        versions = self.versions.since(by.epochs)
        starts = (0, *(start - by.epochs for start in versions.starts[1:]))
        self.versions = RoutingVersions(starts, versions.tables)
        self._noted = {epoch - by.epochs: counts for epoch, counts in self._noted.items()}
        if self.known_before < FOREVER:
            self.known_before = max(self.known_before - by.epochs, 0)

    def forget_before(self, epoch: int) -> None:
        """Forget versions that only rows of earlier epochs need: no such row will come."""
        self.versions = self.versions.since(epoch)
