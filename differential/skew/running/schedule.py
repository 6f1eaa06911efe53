"""Which version of a routing table holds from which epoch on, when is that known, and what has it replaced?

Announcements are rows of an ordinary input. What is sealed in epoch a holds for rows of epoch a + `lead` and
later: the time of an announcement decides, never its arrival. So once all announcements of epochs before e
are known, so are the versions of all epochs before e + lead.

Each router and each vertex of units has a schedule of its own, and all of them say the same, since they are
told the same and look at nothing else.
"""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple, NoReturn

from differential.columns.schema import Schema
from progress.arrays import Int64s
from progress.errors import TimeOverflowError
from progress.times.time_words import TimeCode
from timely.errors import MisuseError
from timely.operators.capture import FOREVER
from timely.routing.announcement import Announcement
from timely.routing.table import RoutingTable, RoutingVersions

from ..placements.placement import Placement

__all__ = ["ANNOUNCED", "Change", "Schedule", "refuse_rebase"]

ANNOUNCED: Final = Schema.of(", ".join(f"{name}: int" for name in Announcement._fields))
"""The columns of announcements."""


def refuse_rebase(title: str, code: TimeCode) -> NoReturn:
    """Raise TimeOverflowError: what moves between units has its past times as data, which nobody moves along
    when words count from a later epoch.
    """
    raise TimeOverflowError(
        f"{title}: beside a balanced join epochs go no further than about {code.layout.window:,} from the "
        f"first; the dataflow's layout has {code.layout.level_bits} bits per level, and has more for epochs "
        "where loops nest less deeply"
    )


class Change(NamedTuple):
    """From the epoch `start` on it is `new` in place of `old`."""

    start: int
    old: RoutingTable
    new: RoutingTable


class Schedule:
    """Versions of the table of a placement; `shift`: position of the lowest bit of the epoch in a time."""

    def __init__(self, placement: Placement, lead: int, shift: int) -> None:
        self.placement = placement
        self.lead = lead
        self.versions = RoutingVersions.begin(placement.first)
        self.known_before = lead
        """The versions of epochs before this one are known."""
        self._shift = shift
        self._noted: dict[int, Counter[Announcement]] = {}

    def note(self, words: Int64s) -> None:
        """Announcements have come in: eight words, time and difference each."""
        for *row, time, diff in words.T.tolist():
            self._noted.setdefault(time >> self._shift, Counter())[Announcement(*row)] += diff

    def starts(self) -> list[int]:
        """The epochs from which versions hold that are announced and not known yet, ascending."""
        return sorted(epoch + self.lead for epoch in self._noted)

    def complete(self, before: int) -> list[Change]:
        """All announcements of epochs before this one are known now: the changes that come of those new here.

        Raises MisuseError, with the epoch, for what cannot be, or contradicts itself.
        """
        found: list[Change] = []
        for epoch in sorted(epoch for epoch in self._noted if epoch < before):
            said = self._noted.pop(epoch)
            if any(count < 0 for count in said.values()):
                raise MisuseError(
                    f"an announcement of epoch {epoch} takes one back: what holds instead is to be announced"
                )
            rows = [row for row, count in said.items() if count > 0]
            if not rows:
                continue
            old = self.versions.tables[-1]
            try:
                new = self.placement.changed(old, rows)
            except MisuseError as error:
                raise MisuseError(f"announcements of epoch {epoch}: {error}") from error
            start = epoch + self.lead
            starts, tables = (*self.versions.starts, start), (*self.versions.tables, new)
            if start == 0:  # announced in the first epoch, without a lead: there was nothing before it
                starts, tables = (0,), (new,)
            self.versions = RoutingVersions(starts, tables)
            found.append(Change(start, old, new))
        self.known_before = max(self.known_before, min(before + self.lead, FOREVER))
        return found

    def forget_before(self, epoch: int) -> None:
        """No row of an earlier epoch will be asked about."""
        self.versions = self.versions.since(epoch)
