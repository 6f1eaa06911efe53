"""What outputs have shown, as digests: how many epochs have one, and what a restart must give again.

Each worker writes `digest` records for what its outputs have changed (`operators/outputs`). They say "epochs
before this one", so an epoch without changes needs none of its own.

Laws:
  1. A worker shows an epoch of an output once the epoch is durable, and the log has told its own digest:
     synced, and looked at as everything else. So whoever has heard from all workers that an epoch is complete
     has heard of one whose digests are all synced. No worker waits for the digests of others.
  2. An epoch has a digest if *all* workers of some incarnation have written theirs. Else what some of them
     have written of it counts for nothing: nobody has heard of it from all workers.
  3. Each worker writes its digest of an epoch behind all that it has of this epoch and those before, and
     worker 0 behind the decision that has sealed it. So by law 2 an epoch that has a digest rests on rows and
     decisions that all count after a restart, however much of the logs is lost.
  4. An incarnation writes digests of epochs that have none. Those that have one it compares, and shows them
     once they agree.
  5. A base has the sum of the digests up to the epoch f as of which it has the rows, if all of these epochs
     have one. A restart from it makes this sum again, as one change: it is the digest of all that is there as
     of f.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

__all__ = ["DigestNote", "PastDigests"]

DigestNote: TypeAlias = tuple[int, int, int, int, list[tuple[int, int]]]
"""Incarnation, its number of workers, worker, the epoch before which it has written digests, and those that
are not 0, by epoch. With no workers: see `PastDigests.is_whole`."""

_PARTIAL: Final[DigestNote] = (0, 0, 0, 0, [])


@dataclass
class PastDigests:
    """The digests of one output."""

    before: int = 0
    """The epochs before this one have digests."""
    sums: dict[int, int] = field(default_factory=dict)
    """The digests that are not 0, by epoch; those of all workers added up, modulo 2⁶⁴."""
    is_whole: bool = True
    """False if a base lacks digests of epochs that it sums up, so that nobody knows what they add up to."""
    makers: list[tuple[int, int]] = field(default_factory=list)
    """Epoch and incarnation, ascending: the incarnation has made the digests before that epoch."""
    _incarnation: int = 0
    _workers: int = 0
    _told: dict[int, int] = field(default_factory=dict)
    _coming: dict[int, int] = field(default_factory=dict)
    _notes: dict[tuple[int, int, int], tuple[int, dict[int, int]]] = field(default_factory=dict)
    """What each worker of an incarnation has written, by incarnation, its number of workers, and worker."""

    @classmethod
    def of(cls, notes: Iterable[DigestNote]) -> PastDigests:
        """Return the digests with these notes of a base taken in."""
        digests = cls()
        for incarnation, workers, worker, before, sums in notes:
            digests.note(incarnation, workers, worker, before, sums)
        return digests

    def notes(self, after: int) -> list[DigestNote]:
        """Return what was noted, for a base that sums up the epochs up to `after`. It is one note of all
        incarnations but the last, which may go on: nothing comes of the others any more.
        """
        notes: list[DigestNote] = []
        is_known = self._before(self._incarnation) > after
        if ended := [each for each in self.makers if each[1] != self._incarnation]:
            before, incarnation = ended[-1]
            sums = {epoch: digest for epoch, digest in self.sums.items() if epoch < before}
            notes.append((incarnation, 1, 0, before, _summed(sums, min(after, before - 1))))
            is_known = is_known or before > after
        last = min(after, self._before(self._incarnation) - 1)
        notes += [
            (*key, told, _summed(sums, last))
            for key, (told, sums) in self._notes.items()
            if key[0] == self._incarnation
        ]
        return notes if self.is_whole and is_known else [*notes, _PARTIAL]

    def _before(self, incarnation: int) -> int:
        """Return the epoch before which all workers of an incarnation have written digests."""
        noted = {key: told for key, (told, _) in self._notes.items() if key[0] == incarnation}
        return min(noted.values()) if noted and all(each[1] == len(noted) for each in noted) else 0

    def note(
        self, incarnation: int, workers: int, worker: int, before: int, sums: Iterable[tuple[int, int]]
    ) -> None:
        """Take in a record of one of so many workers. Those of an incarnation come together, incarnations in
        order.
        """
        if not workers:
            self.is_whole = False
            return
        if incarnation != self._incarnation:
            self.end_incarnation()
            self._incarnation, self._workers = incarnation, workers
        self._told[worker] = max(before, self._told.get(worker, 0))
        noted = self._notes.get((incarnation, workers, worker), (0, {}))[1]
        for epoch, digest in sums:
            self._coming[epoch] = self._coming.get(epoch, 0) + digest
            noted[epoch] = digest
        self._notes[incarnation, workers, worker] = self._told[worker], noted

    def end_incarnation(self) -> None:
        """Note that all records of an incarnation have come: epochs count that all workers have told."""
        before = min(self._told.values(), default=0)
        if len(self._told) == self._workers and before > self.before:
            for epoch, digest in self._coming.items():
                if self.before <= epoch < before and (whole := digest % (1 << 64)):
                    self.sums[epoch] = whole
            self.before = before
            self.makers.append((before, self._incarnation))
        self._told, self._coming = {}, {}

    def total(self, stop: int) -> int:
        """Return the sum of the digests before `stop`, modulo 2⁶⁴."""
        return sum(digest for epoch, digest in self.sums.items() if epoch < stop) % (1 << 64)

    def made_by(self, epoch: int) -> int:
        """Return the incarnation that has made the digest of an epoch, which has one."""
        return self.makers[bisect_right(self.makers, epoch, key=lambda each: each[0])][1]


def _summed(sums: dict[int, int], last: int) -> list[tuple[int, int]]:
    """Return digests by epoch, those up to `last` as one."""
    later = [(epoch, _signed(digest)) for epoch, digest in sums.items() if epoch > last]
    summed = _signed(sum(digest for epoch, digest in sums.items() if epoch <= last))
    return [(last, summed), *later] if summed else later


def _signed(digest: int) -> int:
    return (digest + (1 << 63)) % (1 << 64) - (1 << 63)
