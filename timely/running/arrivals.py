"""Messages from other workers: the stage that gets each, and when.

Each worker moves the anchor of a dataflow by itself (`instance.py`). A message of a worker whose anchor is
ahead waits until words here count from an epoch from which they can hold its times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from progress.errors import InternalError
from progress.times.anchor import Anchor, Rebase
from progress.times.time_words import TimeLayout

from ..dictionaries import Mark
from ..wire.batch import Batch
from .stages.connector import Target

__all__ = ["Arrivals", "Way"]


class Way(Protocol):
    """The way of messages with one number."""

    @property
    def target(self) -> Target:
        """The stage, or compiled loop, that gets them."""
        ...

    @property
    def port(self) -> int:
        """The input of the target."""
        ...

    @property
    def location(self) -> int:
        """The location at which they are counted; -1: none, and then messages without rows need no time."""
        ...

    def check(self, batch: Batch, peer: int) -> None:
        """Raise `PeerError` for a batch that worker `peer` may not send there."""
        ...

    def confirm(self, batch: Batch, peer: int) -> None:
        """Raise `MisuseError` for a record of worker `peer` that this worker would send elsewhere."""
        ...


class Arrivals:
    """Messages of other workers, for one dataflow on one worker.

    Args:
        ways: the way of messages, by number; more may be added.
        enqueue: takes (target, port, location, word, batch).
    """

    def __init__(
        self,
        worker: int,
        layout: TimeLayout,
        anchor: Anchor,
        ways: Sequence[Way],
        enqueue: Callable[[Target, int, int, int, Batch], None],
    ) -> None:
        self._worker = worker
        self._layout = layout
        self._anchor = anchor
        self._enqueue = enqueue
        self.ways = list(ways)
        self.late: list[tuple[int, int, Batch, int]] = []
        """Messages of workers whose anchor is ahead: way, word, batch, and the anchor that they need."""

    def check(self, number: int, batch: Batch, peer: int) -> None:
        """Raise `PeerError` for a batch that worker `peer` may not send there."""
        self.ways[number].check(batch, peer)

    def confirm(self, number: int, batch: Batch, peer: int) -> None:
        """Raise `MisuseError` for a record of worker `peer` that this worker would send elsewhere."""
        self.ways[number].confirm(batch, peer)

    def receive(self, number: int, word: int, batch: Batch, anchor: int) -> None:
        """Take a message that has come in; its words count from `anchor`."""
        way, shift = self.ways[number], self._layout.shifts[0]
        is_wide = word >= self._layout.limit
        if (anchor == self._anchor.epoch and not is_wide) or (way.location < 0 and batch.rows == 0):
            self._enqueue(way.target, way.port, way.location, word, batch)
            return
        ours = word + ((anchor - self._anchor.epoch) << shift)
        if ours < 0:
            raise InternalError(
                f"worker {self._worker} got a message at {word:#x}, counted from epoch {anchor}, where it "
                f"took everything before epoch {self._anchor.epoch} for done"
            )
        batch = batch.rebased(-word)
        last = anchor + (word >> shift) + batch.latest(shift, self._layout.epochs)
        enough = last + 1 - self._layout.window
        self._arrive(number, ours, batch, enough if is_wide else min(anchor, enough))

    def put_off(self, number: int, word: int, batch: Batch) -> None:
        """Keep a message of this worker to itself until there is as much room ahead of it as ahead of rows of
        an input; `word` counts from the anchor.
        """
        needed = self._anchor.epoch + (word >> self._layout.shifts[0]) + 1 - self._layout.window
        self._arrive(number, word, batch.rebased(-word), needed)

    def _arrive(self, number: int, word: int, batch: Batch, needed: int) -> None:
        """Take a message at `word`, which may be wide; the times of its rows count from there. If it needs
        a later anchor, it waits for `needed`: then there is as much room ahead of it as there was for its
        sender, or as there is for rows of an input.
        """
        if needed > self._anchor.epoch:
            self.late.append((number, word, batch, needed))
        else:
            way = self.ways[number]
            self._enqueue(way.target, way.port, way.location, word, batch.rebased(word))

    def needed(self) -> Iterator[int]:
        """Yield the anchors that messages wait for."""
        return (needed for *_, needed in self.late)

    def rebase(self, by: Rebase) -> None:
        """Let messages arrive that have waited for the anchor, which has moved."""
        late, self.late = self.late, []
        for number, word, batch, needed in late:
            self._arrive(number, by.word(word), batch, needed)

    def late_words(self) -> list[tuple[int, int]]:
        """Return the messages that are counted and wait for the anchor, as (location, word)."""
        waiting = [(self.ways[number].location, word) for number, word, _, _ in self.late]
        return [(location, word) for location, word in waiting if location >= 0]

    def batches(self) -> Iterator[Batch]:
        """Yield the batches that wait for the anchor."""
        return (batch for _, _, batch, _ in self.late)

    def symbols(self, mark: Mark) -> None:
        """Show the words, perhaps symbols, of batches that wait for the anchor."""
        for batch in self.batches():
            mark.holder(batch)

    def compared(self) -> object:
        """Return all that decides what it will do."""
        return self.late

    def drop(self) -> None:
        """Drop everything: the dataflow has ended."""
        self.late.clear()
        self.ways.clear()
