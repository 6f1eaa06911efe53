"""Rows that are there between two epochs that they name themselves. The vertex keeps hardly any state: it
sends a removal at once, with the epoch at which the row leaves (`later.py`).

A row's time may be later than that of its message. So an update d of a row at time t becomes

    + d   at t, or at the row's first epoch if that is later
    - d   at t, or at the epoch from which on it is gone, if that is later

and nothing at all if the two are the same. At the time T these add up to d if t ≤ T and T's epoch is from the
first of the two on and before the second, and to 0 otherwise. Loop counters do not change, so this holds in
loops, too. An epoch after `EPOCH_MAX` never comes.

A stage that waits for complete times keeps removals until then: a row that leaves in a million epochs takes
memory until then.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from differential.columns.column_types import Bools, Int64s
from differential.columns.overflow import negate_diffs
from differential.columns.update_batch import UpdateBatch, words_of
from differential.operators.timed.later import LaterVertex
from differential.operators.vertices import PassingVertex
from progress.times.anchor import EPOCH_MAX
from progress.times.time_words import TimeCode
from timely.dictionaries import Mark
from timely.wire.batch import Batch

__all__ = ["DuringVertex", "OnTimeVertex", "during_rows", "on_time_rows"]

_FOREVER: Final = EPOCH_MAX + 1


def during_rows(
    words: Int64s, epoch_field: tuple[int, int], bounds: tuple[int, int]
) -> tuple[Int64s, Int64s]:
    """Return rows without their bounds, with times that have no epoch, and the epochs at which they come
    and leave.

    words         int64[width + bound words + 2, n]
    epoch_field   the position of the epoch in a time word, and the epoch that it counts from: (shift, anchor)
    bounds        the number of words of the two bounds, at the end of a row: 2 for one that may be null,
                  else 1
    """
    shift, anchor = epoch_field
    at = words.shape[0] - 2
    times = words[at] & ((1 << shift) - 1)
    epochs = (words[at] >> shift) + anchor
    starts = np.maximum(_bound(words, at - bounds[1], bounds[0], 0), epochs)
    stops = np.maximum(_bound(words, at, bounds[1], _FOREVER), epochs)
    comes = (starts < stops) & (starts <= EPOCH_MAX)
    leaves = comes & (stops <= EPOCH_MAX)
    width = at - sum(bounds)
    coming = _moved(words, width, comes, times)
    if not leaves.any():
        return coming, starts[comes]
    leaving = _moved(words, width, leaves, times)
    negate_diffs(leaving)
    return np.concatenate([coming, leaving], axis=1), np.concatenate([starts[comes], stops[leaves]])


def on_time_rows(words: Int64s, epoch_field: tuple[int, int], bound: int, late: bool) -> Int64s:
    """Return, without their deadline, the rows that come at an epoch up to it, or (`late`) after it. A row
    whose deadline is null is never late.
    """
    shift, anchor = epoch_field
    at = words.shape[0] - 2
    epochs = (words[at] >> shift) + anchor
    is_late = epochs > _bound(words, at, bound, _FOREVER)
    return _moved(words, at - bound, is_late if late else ~is_late, words[at])


def _bound(words: Int64s, stop: int, size: int, instead: int) -> Int64s:
    """Return the column of `size` words that ends before the word `stop`; `instead` where it is null."""
    return words[stop - 1] if size == 1 else np.where(words[stop - 2] != 0, words[stop - 1], instead)


def _moved(words: Int64s, width: int, chosen: Bools, times: Int64s) -> Int64s:
    """Return the first `width` words of the chosen rows, at these times."""
    rows = np.flatnonzero(chosen)
    out = np.empty((width + 2, rows.size), dtype=np.int64)
    out[:width] = words[:width].take(rows, 1)
    out[width] = times.take(rows)
    out[width + 1] = words[-1].take(rows)
    return out


def _field(code: TimeCode) -> tuple[int, int]:
    """Return the position of the epoch in a time word, and the epoch that it counts from."""
    return code.layout.shifts[0], code.anchor.epoch


class DuringVertex(LaterVertex):
    """Takes rows that end in two bounds (of `bounds` words): each is there from the first to before the
    second.
    """

    def __init__(self, bounds: tuple[int, int]) -> None:
        super().__init__()
        self._bounds = bounds

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        """Send the rows on at once, under the times of their messages."""
        for word, batch in messages:
            rows, epochs = during_rows(words_of(batch), _field(self.code), self._bounds)
            self.send_later(rows, epochs, word)

    def symbols(self, mark: Mark) -> None:
        """Show the words of rows of far epochs."""
        super().symbols(mark)


class OnTimeVertex(PassingVertex):
    """Takes rows that end in a deadline (of `bound` words), and passes those that meet it, or the others."""

    def __init__(self, bound: int, late: bool, words: int) -> None:
        """`words`: the number of words of a row with its deadline."""
        super().__init__(words, words - bound)
        self._deadline_words = bound
        self._late = late

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        """Send the rows on at once, under the times of their messages."""
        for word, batch in messages:
            for rows in self.passed(words_of(batch)):
                self.send(0, UpdateBatch(rows), word)

    def passed(self, words: Int64s) -> Iterable[Int64s]:
        """Return the rows that meet their deadline, or the others."""
        return (on_time_rows(words, _field(self.code), self._deadline_words, self._late),)

    def symbols(self, mark: Mark) -> None:
        """Show nothing: it keeps nothing."""
