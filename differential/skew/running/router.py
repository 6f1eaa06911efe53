"""Send rows of one side to their units; each row waits until the version of its epoch is known.

A router is on each worker, before rows are exchanged. A row of epoch e leaves when all announcements of
epochs ≤ e - lead are known, by the version that holds in e. Its own epoch decides, not that of the message
that it came in, nor when it comes. It leaves once for each unit that stores it, and once for each unit where
it looks for rows of the other side; if these are the same units (cells), once for both.

Each row leaves with its spot in front (bucket and unit in one word), then the key, then the other words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

import numpy as np

from differential.columns.column_types import Int64s
from differential.columns.update_batch import UpdateBatch, words_of
from differential.operators.patterns.lookups import WaitingByOrigin
from differential.operators.vertices import OperatorVertex, joined_words
from progress.times.anchor import Rebase
from timely.dictionaries import Mark
from timely.operators.capture import FOREVER
from timely.wire.batch import Batch

from ..placements.placement import Placement
from .schedule import Schedule

__all__ = ["CONTROL", "KEPT", "PROBING", "ROWS", "UnitRouterVertex"]

ROWS: Final = 0
CONTROL: Final = 1
"""Input ports."""
KEPT: Final = 0
PROBING: Final = 1
"""Outputs."""


class UnitRouterVertex(OperatorVertex):
    """Places rows of `side`; their first `keys` words are the key."""

    wants_frontier: ClassVar[bool] = True

    def __init__(self, side: int, keys: int, placement: Placement, lead: int) -> None:
        super().__init__()
        self._side = side
        self._keys = keys
        self._placement = placement
        self._lead = lead

    def on_start(self) -> None:
        """Begin with the first table, which holds until announcements come."""
        self._shift, _ = self.code.fields[0]
        self._schedule = Schedule(self._placement, self._lead, self._shift, self.code.anchor)
        self._waiting = WaitingByOrigin(None, self.code.guards)

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        """Send rows whose version is known, keep the others; note announcements until their epoch ends."""
        if port == CONTROL:
            for _, batch in messages:
                self._schedule.note(words_of(batch))
            return
        words = joined_words(messages)
        is_known = words[-2] >> self._shift < self._schedule.known_before
        if is_known.all():
            self._place(words)
            return
        if is_known.any():
            self._place(np.ascontiguousarray(words[:, is_known]))
        self._waiting.add(np.ascontiguousarray(words[:, ~is_known]))
        self.hold_exactly(self._waiting.times())

    def on_frontier(self) -> None:
        """Send rows that waited for announcements that are known now."""
        schedule = self._schedule
        schedule.complete(self._first_epoch(CONTROL))
        bound = schedule.known_before
        for part in self._waiting.take(None if bound >= FOREVER else bound << self._shift):
            self._place(part)
        self.hold_exactly(self._waiting.times())
        # Rows that still wait are of epochs behind all known versions: they need none but the last.
        schedule.forget_before(self._first_epoch(ROWS))

    def rebase(self, by: Rebase) -> None:
        """Rebase waiting rows, and the epochs at which versions begin."""
        super().rebase(by)
        self._schedule.rebase(by)
        self._waiting.rebase(by)

    def symbols(self, mark: Mark) -> None:
        """Show the words of waiting rows."""
        self._waiting.symbols(mark)

    def counters(self) -> dict[str, int]:
        """Return how many epochs rows wait for, and how many versions are still needed."""
        return {"epochs_waiting": len(self._waiting), "versions": len(self._schedule.versions.tables)}

    def _first_epoch(self, port: int) -> int:
        frontier = self.frontier_words(port)
        return int(frontier[0]) >> self._shift if len(frontier) else FOREVER

    def _place(self, words: Int64s) -> None:
        """Send rows whose versions are known."""
        versions = self._schedule.versions
        number = versions.index_of(words[-2] >> self._shift)
        first, last = int(number.min()), int(number.max())
        for version in range(first, last + 1):
            part = words if first == last else np.ascontiguousarray(words[:, number == version])
            if part.shape[1] == 0:
                continue
            placement, keys, table = self._placement, np.arange(self._keys), versions.tables[version]
            self._send(KEPT, placement.storing(part, keys, self._side, table, as_spots=True))
            if not placement.is_cells:
                self._send(PROBING, placement.probing(part, keys, self._side, table, as_spots=True))

    def _send(self, output: int, placed: Int64s) -> None:
        for envelope, rows in self.parts_by_envelope(placed):
            self.send(output, UpdateBatch(rows), envelope)
