"""The digests of the changes of one output, by epoch, as far as they come to this worker.

Rows count as they come: neither their order nor rows that cancel matter (`kernels/rows/digest.py`).
Words of rows are the same on every worker and after every restart: symbols are hashes of their values.
"""

from __future__ import annotations

import numpy as np

from differential.columns.column_types import Int64s
from differential.kernels.rows.digest import digest_at_one_time, digest_by_time
from differential.thresholds import UNREAD_BATCH_ROWS_MAX
from progress.times.time_words import TimeCode
from timely.limits import UNREAD_ROWS_MAX
from timely.operators.outputs.output_digests import wrapped

__all__ = ["RowDigests"]


class RowDigests:
    """Sums up digests by epoch. `code`: how times are packed."""

    def __init__(self, code: TimeCode) -> None:
        self._code = code
        self._sums: dict[int, int] = {}
        self._few: list[Int64s] = []
        """Few rows, as they came: many changes of one row each are added up together."""
        self._few_rows = 0

    def add(self, words: Int64s) -> None:
        """Take in rows, which nobody changes any more; time and diff are the last words."""
        rows = words.shape[1]
        if rows > UNREAD_BATCH_ROWS_MAX:
            self._add_up(words)
        elif rows:
            self._few.append(words)
            self._few_rows += rows
            if self._few_rows > UNREAD_ROWS_MAX:
                self.settle()

    def settle(self) -> None:
        """Add up rows that wait. Call it before times count from a later epoch."""
        if self._few:
            few, self._few, self._few_rows = self._few, [], 0
            self._add_up(few[0] if len(few) == 1 else np.concatenate(few, axis=1))

    def take(self, stop: int) -> list[tuple[int, int]]:
        """Return the digests of epochs before `stop` that are not 0, by epoch, and forget them."""
        self.settle()
        taken = sorted((epoch, digest) for epoch, digest in self._sums.items() if epoch < stop)
        for epoch, _ in taken:
            del self._sums[epoch]
        return [each for each in taken if each[1]]

    def _add_up(self, words: Int64s) -> None:
        sums: Int64s = np.empty(1, np.int64)
        if digest_at_one_time(words, sums):
            self._count(int(words[-2, 0]), int(sums[0]))
            return
        times = np.unique(words[-2])
        sums = np.zeros(times.shape[0], np.int64)
        digest_by_time(words, times, sums)
        for time, digest in zip(times.tolist(), sums.tolist(), strict=True):
            self._count(time, digest)

    def _count(self, time: int, digest: int) -> None:
        epoch = self._code.epoch_of(time)
        self._sums[epoch] = wrapped(self._sums.get(epoch, 0) + digest)
