"""Digests of what an output shows, by which a durable cluster checks that a restart takes nothing back.

    digest of an epoch    Σ diff · mix(row) modulo 2⁶⁴ over its changes; for records, Σ hash(packed record)

Digests are linear: those of all workers add up to the same number, however many workers there are and
whichever has which row. And the digests of several epochs add up to that of all their changes together.

What an output shows as of an epoch has a digest, too: the sum of those of all epochs up to there. It depends
on nothing but the rows of the inputs as of that epoch. So it is the same if a restart begins with the sum of
these rows. For an output that has no answer at an epoch it is a number for the kinds of its failures, and the
rows count when it answers again. Messages are no part of it: they may name a time or an address. Each worker
knows of all failures, so only the first one counts them.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final, Protocol

from ..failures import FailureLog

__all__ = ["DigestLog", "OutputDigests", "hash_of", "wrapped"]

_HALF: Final = 1 << 63
_WHOLE: Final = 1 << 64


def wrapped(number: int) -> int:
    """Return a number modulo 2⁶⁴, as a signed word."""
    return (number + _HALF) % _WHOLE - _HALF


def hash_of(data: bytes) -> int:
    """Return a word that depends on all bytes; the same on every machine and in every version."""
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little", signed=True)


class DigestLog(Protocol):
    """A log that sums up digests of the rows that it takes in."""

    def take_digests(self, stop: int) -> list[tuple[int, int]]:
        """Return (epoch, digest) of epochs before `stop`, ascending, 0 left out; and forget them."""
        ...


class OutputDigests:
    """The digests of one output on one worker. `counts_failures`: True on one worker."""

    def __init__(self, log: DigestLog, failures: FailureLog | None, counts_failures: bool) -> None:
        self._log = log
        self._failures = failures
        self._counts_failures = counts_failures
        self._ready: list[tuple[int, int]] = []
        self._before = 0
        """The digests of epochs before this one are ready, or taken."""
        self._rows = 0
        """The digest of all rows before that, also of those that are not shown."""
        self._shown = 0
        """The digest of what is shown as of the epoch before that."""

    def settle(self, stop: int) -> None:
        """Sum up the epochs before `stop`, which are complete: what they rest on may be forgotten then."""
        if stop <= self._before:
            return
        sums = self._log.take_digests(stop)
        if self._failures is not None:
            sums = self._where_shown(self._failures, sums, stop)
        self._ready += sums
        self._before = stop

    def take(self, stop: int) -> list[tuple[int, int]]:
        """Return (epoch, digest) of the epochs before `stop`, which are complete, ascending, 0 left out; and
        forget them.
        """
        self.settle(stop)
        if self._ready and self._ready[-1][0] >= stop:  # they were summed up further
            taken = [each for each in self._ready if each[0] < stop]
            self._ready = self._ready[len(taken) :]
            return taken
        taken, self._ready = self._ready, []
        return taken

    def sum_up(self, stop: int) -> None:
        """Let the digests of the epochs before `stop`, which are complete, be one digest of the last of these
        epochs: nobody asks for them one by one.
        """
        self.settle(stop)
        earlier = [digest for epoch, digest in self._ready if epoch < stop]
        later = self._ready[len(earlier) :]
        whole = wrapped(sum(earlier))
        self._ready = [(stop - 1, whole), *later] if whole else later

    def _where_shown(
        self, failures: FailureLog, sums: list[tuple[int, int]], stop: int
    ) -> list[tuple[int, int]]:
        """Return digests where readers see the changes, with the shares of failures."""
        without = failures.without(self._before, stop)
        shown: dict[int, int] = {}
        coming = iter([*sums, (stop, 0)])
        epoch, digest = next(coming)
        for start, end, kinds in [*((e.start, e.stop, e.kinds) for e in without), (stop, stop, 0)]:
            if self._before < start:
                self._show(shown, self._before, self._rows)
            while epoch < start:
                self._rows += digest
                self._show(shown, epoch, self._rows)
                epoch, digest = next(coming)
            if start < end:
                self._show(shown, start, kinds if self._counts_failures else 0)
            while epoch < end:
                self._rows += digest
                epoch, digest = next(coming)
            self._before = end
        return [(epoch, digest) for epoch, digest in shown.items() if digest]

    def _show(self, shown: dict[int, int], epoch: int, digest: int) -> None:
        """Note the digest of what is shown as of an epoch; epochs ascend."""
        self._rows, digest = wrapped(self._rows), wrapped(digest)
        if digest != self._shown:
            shown[epoch] = wrapped(shown.get(epoch, 0) + digest - self._shown)
            self._shown = digest
