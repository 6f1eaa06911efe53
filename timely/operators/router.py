"""Changes of a routing: each holds from one epoch on, the same on all workers.

Changes of a routing are rows of an ordinary input, the *control*: (bucket, worker). A change sealed in
epoch a holds for the rows of epoch a + `lead` and later. So the time of a change decides, never its
arrival. Each change goes to all workers. A `RouterVertex` sits on each worker before the rows are
exchanged. It keeps those of epoch e until its frontier says that all changes of epochs ≤ e - lead are
known, then sends them by the version of their epoch. A row whose version is not known has not left yet, on
any worker.

Rows of one batch may be later than its envelope: the batch waits for the version of its latest row, and the
route looks at the time of each row.

Source: Megaphone (Hoffmann et al., VLDB 2019), without moving state.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import ClassVar

import pyarrow as pa

from progress.compiled.arrays import Int64s
from progress.errors import InternalError, MisuseError
from progress.times.anchor import Rebase

from ..dictionaries import Mark
from ..wire.batch import Batch, Records
from ..wire.routing import BUCKETS, Routing
from .capture import FOREVER
from .inputs.codecs import RecordsIn
from .vertex import Vertex

__all__ = ["CONTROL", "ROWS", "RouterVertex", "RoutingIn"]

ROWS = 0
CONTROL = 1
"""Input ports."""


class RoutingIn(RecordsIn):
    """The codec of a control: records (bucket, worker). A worker counts modulo the number of workers."""

    def encode(self, table: pa.Table, diff: int | Int64s, epoch_word: int) -> Batch:
        """Encode as `RecordsIn` does; each record must be a pair of whole numbers, the first of them a
        bucket.
        """
        batch = super().encode(table, diff, epoch_word)
        if not isinstance(batch, Records):
            raise InternalError(f"the codec of records made a {type(batch).__name__}")
        for record in batch.records:
            match record:
                case (int(bucket), int(worker)) if 0 <= bucket < BUCKETS and worker >= 0:
                    pass
                case _:
                    raise MisuseError(
                        "a change of routing is a pair (bucket, worker) with a bucket from 0 to "
                        f"{BUCKETS - 1} and a worker from 0 on, not {record!r}"
                    )
        return batch

    def describe(self) -> str:
        """Return the name that clients see: it is an input of records."""
        return "records"


class RouterVertex(Vertex):
    """Keeps rows until the routing of their epoch is known; its connectors then send them by that routing."""

    word_times: ClassVar[bool] = True
    wants_frontier: ClassVar[bool] = True

    def __init__(self, lead: int) -> None:
        self._lead = lead
        self._versions_before = lead  # versions of epochs before this one are known
        self._complete = 0  # changes of epochs before this one are known
        self._changes: dict[int, list[tuple[int, int]]] = {}
        self._waiting: list[tuple[int, int, int, Batch]] = []  # a heap: latest epoch, order of arrival, word
        self._arrived = 0

    def on_start(self) -> None:
        """Begin with the default routing."""
        self._shift, bits = self.code.fields[0]
        self._mask = (1 << bits) - 1
        self._use(Routing.default(self.workers))

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        """Send rows on, or let them wait; let changes wait for the end of their epoch."""
        for word, batch in messages:
            if port == CONTROL:
                self._note(self.code.epoch_of(word), batch)
                continue
            latest = max(word >> self._shift, batch.latest(self._shift, self._mask))
            epoch = self.code.anchor.epoch + latest
            if epoch < self._versions_before:
                self.send(0, batch, word)
            else:
                self.hold_word(word)
                self._arrived += 1
                heapq.heappush(self._waiting, (epoch, self._arrived, word, batch))

    def on_frontier(self) -> None:
        """Take over the changes of complete epochs, and send the rows that waited for them."""
        self._complete, code = self._first_epoch(CONTROL), self.code
        self._versions_before = max(self._versions_before, min(self._complete + self._lead, FOREVER))
        oldest = min([self._first_epoch(ROWS), *(code.epoch_of(word) for _, _, word, _ in self._waiting)])
        oldest_word = code.within(max(oldest - code.anchor.epoch, 0) << self._shift)
        self._use(self._with_complete(self.routing).since(oldest_word))
        while self._waiting and self._waiting[0][0] < self._versions_before:
            _, _, word, batch = heapq.heappop(self._waiting)
            self.send(0, batch, word)
            self.release_word(word)

    def rebase(self, by: Rebase) -> None:
        """Move the versions, and the rows that wait."""
        self._waiting = [
            (epoch, number, by.word(word), batch.rebased(-by.step))
            for epoch, number, word, batch in self._waiting
        ]
        # Now, not later: the rows for which the anchor moved may come before any other call.
        self._use(self._with_complete(self.routing.rebased(by)))

    def compared(self) -> object:
        """Return what is known and what waits: of its batches the order, and not how many came before."""
        waiting = [(epoch, word, batch) for epoch, _, word, batch in sorted(self._waiting)]
        return self.routing, self._versions_before, self._complete, self._changes, waiting

    def symbols(self, mark: Mark) -> None:
        """Show the words of rows that wait for the routing of their epoch."""
        for _, _, _, batch in self._waiting:
            mark.holder(batch)

    def counters(self) -> dict[str, int]:
        """Return the number of batches that wait, and of versions that are still needed."""
        return {"batches_kept": len(self._waiting), "routing_versions": self.routing.versions}

    def _with_complete(self, routing: Routing) -> Routing:
        """Return `routing` with the changes of complete epochs that concern an epoch with words."""
        first, layout = self.code.anchor.epoch, self.code.layout
        for epoch in sorted(epoch for epoch in self._changes if epoch < self._complete):
            ahead = epoch + self._lead - first
            # A version that begins at an epoch without words yet concerns no row that there is; one that has
            # begun before the first epoch with words concerns all rows.
            if ahead < layout.epochs:
                # If two changes name one bucket, the higher worker counts.
                changes = dict(sorted(self._changes.pop(epoch)))
                routing = routing.changed(max(ahead, 0) << self._shift, changes)
        return routing

    def _note(self, epoch: int, batch: Batch) -> None:
        if not isinstance(batch, Records):
            raise InternalError(f"a control of routing got a {type(batch).__name__}")
        listed = self._changes.setdefault(epoch, [])
        for record in batch.records:
            match record:
                case (int(bucket), int(worker)):
                    listed.append((bucket, worker % self.workers))
                case _:
                    raise InternalError(f"{record!r} is no change of routing")

    def _use(self, routing: Routing) -> None:
        self.routing = routing
        for outlet in self.connectors(0):
            outlet.routing = routing

    def _first_epoch(self, port: int) -> int:
        frontier = self.frontier_words(port)
        return self.code.epoch_of(int(frontier[0])) if len(frontier) else FOREVER
