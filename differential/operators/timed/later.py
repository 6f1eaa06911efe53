"""Rows that go on at later epochs than those at which they came, even if no time word holds these yet.

Such rows wait here until time words count from an epoch so late (`progress/times/anchor.py`) that they hold
theirs. Meanwhile the vertex holds the right to send them, at their times, so that these are not complete.
"""

from __future__ import annotations

import numpy as np

from differential.columns.column_types import Int64s
from differential.columns.update_batch import UpdateBatch
from differential.operators.vertices import OperatorVertex
from progress.times.anchor import EPOCH_MAX, Rebase
from timely.dictionaries import Mark

__all__ = ["LaterVertex", "first_epochs"]


class LaterVertex(OperatorVertex):
    """Sends rows at epochs of its choice, none before the row's own epoch. It keeps rows of epochs far
    ahead.
    """

    def __init__(self) -> None:
        super().__init__()
        self._far: list[tuple[Int64s, Int64s]] = []
        """Rows whose times have no epoch, and the epochs."""
        self._first: dict[int, int] = {}
        """The first epoch of these rows, by iteration: a word without an epoch."""
        self._held_far: set[int] = set()

    def send_later(self, rows: Int64s, epochs: Int64s, envelope: int | None = None) -> None:
        """Send rows, whose times have no epoch, at `epochs`: under one envelope, or the tightest ones.

        It writes to `rows`.
        """
        if self._send(rows, epochs, envelope):
            self._hold_far()

    def _send(self, rows: Int64s, epochs: Int64s, envelope: int | None) -> bool:
        """Send the rows whose times have words, and keep the others; return True if there are others."""
        near = epochs < self.code.anchor.epoch + self.code.layout.epochs
        is_far = not near.all()
        if is_far:
            self._keep(np.ascontiguousarray(rows[:, ~near]), epochs[~near])
            rows, epochs = np.ascontiguousarray(rows[:, near]), epochs[near]
        rows[-2] += (epochs - self.code.anchor.epoch) << self.code.layout.shifts[0]
        if envelope is None:
            self.send_rows(rows)
        else:
            self.send(0, UpdateBatch(rows), envelope)
        return is_far

    def rebase(self, by: Rebase) -> None:
        """Count words from a later epoch; perhaps there are words now for the epochs of rows that wait."""
        super().rebase(by)
        self._held_far = {by.word(word) for word in self._held_far}
        if self._far:
            self.resume()

    def on_resume(self) -> None:
        """Send the rows whose times have words now. Cost: a look at all rows that wait."""
        far, self._far, self._first = self._far, [], {}
        if far:
            rows = np.concatenate([part for part, _ in far], axis=1)
            self._send(rows, np.concatenate([epochs for _, epochs in far]), None)
        self._hold_far()

    def symbols(self, mark: Mark) -> None:
        """Show the words of rows that wait."""
        for rows, _ in self._far:
            mark.words(rows[:-2])

    def counters(self) -> dict[str, int]:
        """Return the number of rows that wait, too."""
        return {**super().counters(), "rows_of_far_epochs": sum(rows.shape[1] for rows, _ in self._far)}

    def _keep(self, rows: Int64s, epochs: Int64s) -> None:
        """Let rows wait. Cost: that of these rows, however many others wait."""
        self._far.append((rows, epochs))
        for rest, epoch in first_epochs(rows[-2], epochs):
            self._first[rest] = min(self._first.get(rest, epoch), epoch)

    def _hold_far(self) -> None:
        """Hold the first epoch of rows that wait, for each of their iterations."""
        shift, anchor = self.code.layout.shifts[0], self.code.anchor.epoch
        needed = {((epoch - anchor) << shift) | rest for rest, epoch in self._first.items()}
        for word in needed - self._held_far:
            self.hold_word(word)
        for word in self._held_far - needed:
            self.release_word(word)
        self._held_far = needed


def first_epochs(rests: Int64s, epochs: Int64s) -> list[tuple[int, int]]:
    """Return each different one of `rests`, with the least of its epochs."""
    different, place = np.unique(rests, return_inverse=True)
    first = np.full(len(different), EPOCH_MAX, np.int64)
    np.minimum.at(first, place, epochs)
    return list(zip(different.tolist(), first.tolist(), strict=True))
