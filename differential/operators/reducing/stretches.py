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

Some answers depend on the end of the group: aggregates of all its rows, and parts of its size. There the
last row is *touched* (`kernels/sweeps/touched.py`): so the last stretch ends with the group, and knows what
that has come to. If it comes to something else, all rows may have other answers, and the group is one
stretch. Only `ntile` gives others to few rows then, where its parts begin, and these are touched, too.

Rows may be out of the order of their texts, where symbols follow equal beginnings. No mark is at such a row,
and a group is read whole if a stretch has one or ends at one.

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
from differential.kernels.sweeps.touched import group_sizes, touched_rows, unclear_spans
from differential.operators.reducing.frames import frame_stops, in_value_order, part_answers, unclear_rows
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
        self._count_line = kw + functions.width
        self.words: Int64s = np.empty((kw + functions.width + 2 + 3 * len(functions.parts), 0), np.int64)

    def count_on(self, spans: Int64s, more: Int64s) -> None:
        """Count, in the marks between a stretch and the next one of its group, so many rows more before."""
        has_next = np.flatnonzero(spans[2, 1:] == spans[2, :-1])
        if (more[has_next] == 0).all():
            return
        steps = np.zeros(self.words.shape[1] + 1, np.int64)
        np.add.at(steps, spans[5, has_next], more[has_next])
        np.add.at(steps, spans[4, has_next + 1], -more[has_next])
        self.words[self._count_line] += np.cumsum(steps[:-1])

    def renew(self, spans: Int64s, new: Int64s, of: Int64s) -> None:
        """Replace the marks within some spans by new ones; `of`: the number of the span of each."""
        old = spans[5] - spans[4]
        if not new.shape[1] and (old <= 0).all():
            return
        if np.array_equal(old, np.bincount(of, minlength=spans.shape[1])):
            ends = np.cumsum(old)
            self.words[:, np.arange(ends[-1]) + (spans[4] - ends + old)[of]] = new
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
    work = _Turn(lines, functions, marks)
    if functions.is_whole:
        work.whole(ready)
        return work.corrections()
    left, groups = work.touched(ready)
    work.whole(groups)
    limits = LIMITS if functions.compared.any() else (0,)
    for limit in limits[:-1] if functions.asks_totals and len(limits) > 1 else limits:
        if left.shape[1]:
            left, groups = work.near(left, limit)
            work.whole(groups)
    work.whole(left)
    return work.corrections()


class _Turn:
    """The corrections of a turn, made of stretches, of longer ones where these do not do, and of groups."""

    def __init__(self, lines: Int64s, functions: WindowFunctions, marks: Marks) -> None:
        self._lines, self._functions, self._marks = lines, functions, marks
        self._reach = 0
        self._parts: list[tuple[Int64s, bool]] = []

    def touched(self, ready: Int64s) -> tuple[Int64s, Int64s]:
        """Return rows to read stretches of: the changed ones, and those that decide of answers from afar; and
        those of groups to read whole.
        """
        functions, marks, none = self._functions, self._marks, ready[:, :0]
        if not functions.asks_totals:
            return ready, none
        kw, vw, places = marks.kw, functions.width, np.empty((2, 0), np.int64)
        if functions.buckets:
            begin, end, size, amount = group_sizes(ready, self._lines, marks.words, kw, vw)
            bounds = np.zeros(size.shape[0])
            for parts in functions.buckets:
                bounds += np.maximum(np.minimum(parts, size) - 1, 0)
            is_whole = bounds * (2.0 * amount + MARK_ROWS) >= size
            ready, none = _divided(ready, is_whole.repeat(end - begin))
            size, lengths = size[~is_whole], (end - begin)[~is_whole]
            places = _bucket_begins(np.cumsum(lengths) - lengths, size, functions.buckets)
            self._reach = int(amount[~is_whole].max(initial=0)) + 1
        return touched_rows(ready, self._lines, marks.words, places, kw, vw), none

    def near(self, ready: Int64s, limit: int) -> tuple[Int64s, Int64s]:
        """Work off the groups for which stretches do; return the rows of those whose stretches are too short,
        and of those to read whole.
        """
        functions, marks = self._functions, self._marks
        shape = functions.shape(marks.kw, limit, self._reach)
        rows, spans = stretch_rows(ready, self._lines, marks.words, shape)
        stretches = _Stretches(rows, spans, functions, marks)
        is_open, is_unclear = ~stretches.settled(), stretches.unclear(ready, self._lines)
        keys, of = np.unique(spans[2], return_inverse=True)
        whole, short = (_of_keys(each, of, keys.shape[0]) for each in (is_unclear, is_open))
        short &= ~whole
        whole |= _of_keys(stretches.have_other_totals(), of, keys.shape[0]) & ~short
        fine = ~(short | whole)
        if fine.any():
            if not fine.all():
                stretches = _Stretches(*_chosen(rows, spans, fine[of]), functions, marks)
            self._parts.append(stretches.changes(ready))
        sizes = np.diff(np.append(keys, ready.shape[1]))
        rest, groups = _divided(ready, whole.repeat(sizes))
        return _divided(rest, short.repeat(sizes)[~whole.repeat(sizes)])[1], groups

    def whole(self, ready: Int64s) -> None:
        """Work off groups, each as one stretch."""
        if ready.shape[1]:
            shape = self._functions.shape(self._marks.kw, None)
            rows, spans = stretch_rows(ready, self._lines, self._marks.words, shape)
            self._parts.append(_Stretches(rows, spans, self._functions, self._marks).changes(ready))

    def corrections(self) -> Int64s:
        """Return all of them, sorted and consolidated."""
        if len(self._parts) == 1 and self._parts[0][1]:
            return self._parts[0][0]
        return sort_consolidate(
            np.ascontiguousarray(np.concatenate([each for each, _ in self._parts], axis=1))
        )


def _divided(rows: Int64s, those: Bools) -> tuple[Int64s, Int64s]:
    """Return the other rows, and those."""
    if not those.any():
        return rows, rows[:, :0]
    return np.ascontiguousarray(rows[:, ~those]), np.ascontiguousarray(rows[:, those])


def _of_keys(flags: Bools, of: Int64s, keys: int) -> Bools:
    """Return for each key whether one of its stretches has the flag."""
    out = np.zeros(keys, np.bool_)
    out[of[flags]] = True
    return out


def _bucket_begins(columns: Int64s, sizes: Int64s, buckets: tuple[int, ...]) -> Int64s:
    """Return the places where buckets begin, but the first ones: see `touched_rows`."""
    out = [np.empty((2, 0), np.int64)]
    for parts in buckets:
        count = np.maximum(np.minimum(parts, sizes) - 1, 0)
        of = np.arange(sizes.shape[0]).repeat(count)
        number = np.arange(of.shape[0]) - (np.cumsum(count) - count)[of] + 1
        least, larger = sizes // parts, sizes % parts
        out.append(np.array([columns[of], number * least[of] + np.minimum(number, larger[of])], np.int64))
    return np.ascontiguousarray(np.unique(np.concatenate(out, axis=1), axis=1))


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
        self._read = rows
        self._in_order = ordered is rows
        self._count = spans.shape[1]
        self._is_group: Bools = (spans[3] < 0) & (spans[7] == 1) & functions.is_marked
        """Which stretches are their whole groups."""
        times = np.array([ordered[vw], ordered[vw] + ordered[vw + 1]], np.int64)
        self.copies: Copies = copies_of(ordered, times, spans, functions)
        self.before = self._states_of_marks()
        self._earlier = self._more_rows()
        self.before[0, self._count :] += self._earlier[0]
        self.states = run_states(self.copies, functions, self.before)

    def _states_of_marks(self) -> Int64s:
        """Return the state before each group."""
        states = np.zeros(
            (self.marks.words.shape[0] - self.marks.kw - self.functions.width, self._count), np.int64
        )
        marked = self.spans[3] >= 0
        states[:, marked] = self.marks.words[self.marks.kw + self.functions.width :, self.spans[3, marked]]
        return np.concatenate([states, states], axis=1)

    def _more_rows(self) -> Int64s:
        """Return by how many copies stretches grow, all before each one and this one included, in the groups
        of windows with buckets: int64[2, stretches]. There the states of marks count on.
        """
        if not self.functions.buckets:
            return np.zeros((2, self._count), np.int64)
        sizes = np.bincount(self.copies.number, minlength=2 * self._count)
        more = sizes[self._count :] - sizes[: self._count]
        upto = np.cumsum(more)
        first = np.searchsorted(self.spans[2], self.spans[2])
        earlier = upto - more - (upto - more)[first]
        return np.array([earlier, earlier + more], np.int64)

    def unclear(self, ready: Int64s, lines: Int64s) -> Bools:
        """Return which stretches have rows, or end at rows, that are not in the order of values."""
        symbols = np.array([at for at, _ in self.functions.symbols], np.int64)
        if not symbols.shape[0]:
            return np.zeros(self._count, np.bool_)
        flags = unclear_spans(ready, lines, self._read, self.spans, self.marks.kw, symbols)
        unclear: Bools = (flags != 0) & ~self._is_group
        return unclear

    def have_other_totals(self) -> Bools:
        """Return which stretches have others before and after the change. Requires: all are settled."""
        lines = self.functions.totals
        if not lines.any():
            return np.zeros(self._count, np.bool_)
        totals = self._totals()
        other: Bools = (totals[lines, : self._count] != totals[lines, self._count :]).any(axis=0)
        return other & ~self._is_group

    def _totals(self) -> Int64s:
        """Return for each group the states at the end of the last stretch of its key."""
        starts, last = self._places_behind(self.spans[0] - 1), self._places_behind(self.spans[1] - 1) - 1
        ends = self._states_at(starts, last)
        final = np.searchsorted(self.spans[2], self.spans[2], "right") - 1
        return ends[:, np.append(final, final + self._count)]

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
        totals = self._totals() if self.functions.asks_totals else None
        answers = part_answers(self.copies, self.functions, self.states, self.before, totals)
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
            if not self._in_order:  # what is before such a row in the table is not what its state counts
                unclear = unclear_rows(self.rows, self.spans[:2], self.functions)[copies.which[at]]
                at, of = at[~unclear], of[~unclear]
        new = np.empty((self.marks.words.shape[0], at.shape[0]), np.int64)
        kw, vw = self.marks.kw, self.functions.width
        if at.shape[0]:
            rows = copies.which[at]
            new[kw : kw + vw] = self.rows[:vw, rows]
            new[kw + vw :] = states_at(copies, self.functions, self.states, self.before, at)
        new[:kw] = ready[:kw, self.spans[2, of]]
        if self.functions.buckets:
            self.marks.count_on(self.spans, self._earlier[1])
        self.marks.renew(self.spans, new, of)
