"""Changes of ordered windows from the stretches that the changed rows touch.

A stretch of a group (`kernels/sweeps/around.py`) is a group here, before and after the change. It begins so
early, and goes on for so long, that the rows beyond it have the answers that they had. Where a stretch is cut
off, answers of rows near the cut are wrong, and equal before and after: they cancel.

A running sum depends on all rows before. So large groups have *marks*: some rows, with the states
(`running.py`) up to and with each. A stretch begins behind a mark, with its state, and reads the rows from
there to the change. It ends where the states before and after are equal, from the first one on that a row
behind it sees; if they never are, with its group.
Each stretch renews the marks within. Marks follow from the rows: without a mark a stretch begins with its
group.

    marks   int64[kw + vw + 2 + 3 · parts, ·]: key, row, state; sorted

Where windows have frames by peers, a mark is the last of its peers; it is the last copy of its row anyway.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from differential.columns.column_types import Bools, Int64s
from differential.kernels.rows.sort import sort_consolidate
from differential.kernels.sweeps.around import BACK, BLOCKS, MARKED, stretch_rows
from differential.kernels.sweeps.running import answer_changes
from differential.operators.reducing.frames import frame_stops, in_value_order, part_answers
from differential.operators.reducing.running import run_states, states_at
from differential.operators.reducing.window_parts import Copies, WindowFunctions, copies_of

__all__ = ["LIMITS", "MARK_ROWS", "Marks", "window_changes"]

MARK_ROWS: Final = 1024
"""About so many rows are between two marks: a stretch reads half of them in vain, some 0.1 ms."""

LIMITS: Final = (256, 16_384, 1 << 62)
"""How many rows behind the last change are read to find equal states: at first, and if there are none."""


class Marks:
    """The marks of all groups of a window."""

    def __init__(self, kw: int, functions: WindowFunctions) -> None:
        self.kw = kw
        self.words: Int64s = np.empty((kw + functions.width + 2 + 3 * len(functions.parts), 0), np.int64)

    def renew(self, spans: Int64s, new: Int64s, of: Int64s) -> None:
        """Replace the marks within some spans by new ones; `of`: the number of the span of each."""
        if not new.shape[1] and (spans[4] >= spans[5]).all():
            return
        count = self.words.shape[1]
        ends = np.zeros(count + 1, np.int64)
        np.add.at(ends, spans[4], 1)
        np.add.at(ends, spans[5], -1)
        stays = np.flatnonzero(np.cumsum(ends[:count]) == 0)
        order = np.argsort(np.concatenate([2 * stays + 1, 2 * spans[4, of]]), kind="stable")
        words = np.concatenate([self.words[:, stays], new], axis=1)
        self.words = np.ascontiguousarray(words[:, order])


def window_changes(ready: Int64s, lines: Int64s, functions: WindowFunctions, marks: Marks) -> Int64s:
    """Return the corrections for changed rows, each key at one time, sorted and consolidated; renew marks.

    Requires: all rows of the run table `lines` count at these times.
    """
    parts: list[Int64s] = []
    in_order = True
    limits = LIMITS if functions.compared.any() and not functions.is_whole else (0,)
    for limit in limits:
        shape = functions.shape(marks.kw, limit)
        rows, spans = stretch_rows(ready, lines, marks.words, shape)
        stretches = _Stretches(rows, spans, functions, marks)
        settled = stretches.settled()
        if settled.all():
            break
        # The others are read once more, for longer.
        keys, inverse = np.unique(spans[2], return_inverse=True)
        is_settled = np.ones(keys.shape[0], np.bool_)
        is_settled[inverse[~settled]] = False
        if is_settled.any():
            stays = is_settled[inverse]
            corrections, _ = _Stretches(*_chosen(rows, spans, stays), functions, marks).changes(ready)
            parts.append(corrections)
            in_order = False
        sizes = np.diff(np.append(keys, ready.shape[1]))
        ready = np.ascontiguousarray(ready[:, ~is_settled.repeat(sizes)])
    corrections, is_sorted = stretches.changes(ready)
    if in_order and is_sorted:
        return corrections
    return sort_consolidate(np.ascontiguousarray(np.concatenate([*parts, corrections], axis=1)))


def _chosen(rows: Int64s, spans: Int64s, stays: Bools) -> tuple[Int64s, Int64s]:
    """Return some spans, and their rows."""
    sizes = spans[1] - spans[0]
    spans = np.ascontiguousarray(spans[:, stays])
    spans[1] = np.cumsum(sizes[stays])
    spans[0] = spans[1] - sizes[stays]
    return np.ascontiguousarray(rows[:, stays.repeat(sizes)]), spans


class _Stretches:
    """Some stretches, each a group before, and another one behind these, after the change."""

    def __init__(self, rows: Int64s, spans: Int64s, functions: WindowFunctions, marks: Marks) -> None:
        vw = functions.width
        ordered = in_value_order(rows, spans[:2], functions)
        self.rows, self.spans, self.functions, self.marks = ordered, spans, functions, marks
        self._in_order = ordered is rows
        self._count = spans.shape[1]
        times = np.array([ordered[vw], ordered[vw] + ordered[vw + 1]], np.int64)
        self.copies: Copies = copies_of(ordered, times, spans, functions)
        self.before = self._states_of_marks()
        self.states = run_states(self.copies, functions, self.before)

    def _states_of_marks(self) -> Int64s:
        """Return the state before each group."""
        states = np.zeros(
            (self.marks.words.shape[0] - self.marks.kw - self.functions.width, self._count), np.int64
        )
        marked = self.spans[3] >= 0
        states[:, marked] = self.marks.words[self.marks.kw + self.functions.width :, self.spans[3, marked]]
        return np.concatenate([states, states], axis=1)

    def settled(self) -> Bools:
        """Return for each stretch whether rows behind it have the answers that they had."""
        settled: Bools = self.spans[7] == 1
        compared = self.functions.compared
        if settled.all() or not compared.any():
            return np.ones(self._count, np.bool_)
        starts = self._places_behind(self.spans[0] - 1)
        last = self._places_behind(self.spans[8]) - 1
        states = self._states_at(starts, last)
        if (self.functions.frame.stop or 0) < 0 and any(self.functions.runs):
            states[2:] = self._states_at(starts, self._first_seen(starts, last))[2:]
        same = states[:, : self._count] == states[:, self._count :]
        settled |= same[compared].all(axis=0)
        return settled

    def _places_behind(self, rows: Int64s) -> Int64s:
        """Return for each group the first copy behind those of a row of its stretch."""
        size = np.int64(self.rows.shape[1] + 1)
        of_copies = self.copies.number * size + self.copies.which
        of_rows = np.arange(2 * self._count) * size + np.append(rows, rows)
        return np.searchsorted(of_copies, of_rows, "right").astype(np.int64)

    def _states_at(self, starts: Int64s, places: Int64s) -> Int64s:
        """Return the state at a copy of each group; before that, if the copy is before its first one."""
        states, there = self.before.copy(), places >= starts
        states[:, there] = states_at(self.copies, self.functions, self.states, self.before, places[there])
        return states

    def _first_seen(self, starts: Int64s, last: Int64s) -> Int64s:
        """Return the first copy whose state a row behind the copy `last` sees, where frames end before their
        row: the last one of that copy's frame, but none before the last change, up to where later rows see
        all.
        """
        stops = np.append(frame_stops(self.copies, self.functions), 0)
        seen = np.where(last >= starts, stops[last], starts)
        first: Int64s = np.maximum(seen, self._places_behind(self.spans[6])) - 1
        return first

    def changes(self, ready: Int64s) -> tuple[Int64s, bool]:
        """Return corrections, and True if these are sorted and consolidated; renew the marks."""
        answers = part_answers(self.copies, self.functions, self.states, self.before)
        corrections, is_sorted = answer_changes(ready, self.marks.kw, self.rows, self.spans, answers)
        shape = self.functions.shape(self.marks.kw, 0)
        if shape[MARKED]:
            self._renew_marks(ready, by_peers=bool(shape[BLOCKS + BACK] >= 0))
        return corrections, is_sorted and self._in_order

    def _renew_marks(self, ready: Int64s, *, by_peers: bool) -> None:
        copies, count = self.copies, self._count
        first = int(np.searchsorted(copies.number, count))
        sizes = np.bincount(copies.number[first:] - count, minlength=count)
        starts = first + np.cumsum(sizes) - sizes
        many = sizes // MARK_ROWS
        of = np.arange(count).repeat(many)
        at = starts[of] + MARK_ROWS * (np.arange(of.shape[0]) - (np.cumsum(many) - many)[of] + 1) - 1
        if at.shape[0]:
            ends = (starts + sizes)[of]
            if by_peers:
                at = copies.peers[1, at] - 1
            else:
                is_last = np.append(copies.which[1:] != copies.which[:-1], True)
                lasts = np.flatnonzero(is_last)
                at = lasts[np.searchsorted(lasts, at)]
            at = np.minimum(at, ends - 1)
            at, places = np.unique(at, return_index=True)
            of = of[places]
        new = np.empty((self.marks.words.shape[0], at.shape[0]), np.int64)
        kw, vw = self.marks.kw, self.functions.width
        if at.shape[0]:
            rows = copies.which[at]
            new[kw : kw + vw] = self.rows[:vw, rows]
            new[kw + vw :] = states_at(copies, self.functions, self.states, self.before, at)
        new[:kw] = ready[:kw, self.spans[2, of]]
        self.marks.renew(self.spans, new, of)
