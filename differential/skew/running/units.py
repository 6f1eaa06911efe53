"""The units of a worker: they store rows, rows probe them, and at the beginning of a version some rows move.

A unit has a store for each side. Both rows of a pair could make it: a probing row of the left meets the rows
stored of the right up to its time; a row of the right meets the rows stored of the left before its time.
"Before" is the order of the integers, which extends that of times (`operators/patterns/lookups.py`). So each
pair is made once.

**Versions.** The version of its epoch says which units store a row, and which ones it probes. From version to
version stored rows move, so that rows that probe in an epoch ≥ v find everything where v says, and those of
epochs < v where it was before:

    leave     at v, when nothing of an epoch < v can come here any more, and all that probed has its answer; a
              row leaves at the time v, with its age as data
    arrive    one iteration later: into the store, with their own times. They meet nobody: rows that probe at
              v or later wait until nothing of v can arrive any more, and rows that probed before are answered
    accept    rows of epochs ≥ v follow the new version from the start, and are stored meanwhile. Only answers
              of epochs ≥ v wait for a move

**Times.** Units are in a loop of their own. Rows come in at (epoch, 1); rows that move at v are sent at (v,
0) and arrive at (v, 1). So to wait for moving rows is to wait for a frontier, like everything else.

**Anchors.** Words count from a later epoch now and then (`progress/times/anchor.py`). A row that was stored
in an epoch before gets the first time of all, (0, 0), which is before that of each row that comes in. A
moving row carries how long before its move it came in, which is the same whatever words count from.

**Merging.** A store may be merged up to the epoch *before* the first of: the epochs of rows that may still
probe, the epochs from which versions hold that rows have not been moved for, and the epochs for which
announcements may still come here. To merge up to such an epoch itself would be too far: a row at an earlier
time would get the time of these, and be no longer before it. (The last of the three are not beyond those of
probing rows: announcements go to routers and to units on different ways, and routers may know them, and send
rows on, while those to units are still under way.)

**Loads** are rows (side, unit, bucket, what), with the amount as multiplicity, so that they add up: stored
rows (their multiplicities), rows that probed (one for each different row and time), pairs (their
multiplicities), rows that have arrived. They depend on the inputs and on announcements alone.

**Spots.** Rows are ordered by their *spot*, bucket and unit in one word (`placed_rows`), then by key. So the
rows that a version moves are together, and a move costs the rows that move, however many others the units
store.

Source of moving by version: Megaphone (Hoffmann et al., VLDB 2019). Not done here: stopping the inputs while
rows move, as the third seed does; forwarding rows that come to where their unit was.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from differential.columns.overflow import ShowRow, row_overflow
from differential.kernels.history.match import FROM_DELTA, FROM_TRACE
from differential.kernels.rows.hashing import hashes_of
from differential.kernels.rows.ranges import rows_of_keys
from differential.kernels.rows.sort import sort_consolidate
from differential.operators.patterns.half_join import HalfJoinMachine
from differential.operators.patterns.lookups import Lookup
from differential.trace.trace import Trace
from progress.compiled.arrays import Int64s
from progress.times.anchor import Rebase
from timely.dictionaries import Mark
from timely.operators.capture import FOREVER
from timely.routing.table import SIDES, RoutingTable
from timely.wire.routing import BUCKETS

from ..placements.placement import SideRows
from .schedule import Change, Schedule

__all__ = [
    "ARRIVED",
    "KEPT_ROWS",
    "PAIRS",
    "PROBED",
    "Moved",
    "Shape",
    "SideFrontiers",
    "ToTheFirst",
    "UnitStore",
    "Units",
]

KEPT_ROWS: Final = 0
PROBED: Final = 1
PAIRS: Final = 2
ARRIVED: Final = 3
"""The values of `what` in loads."""

_UNIT: Final = BUCKETS - 1
"""The bits of a spot for the unit; bucket and unit are less than `BUCKETS` both."""

_NO_TIMES: Final = np.empty(0, np.int64)


class Shape(NamedTuple):
    """The layout of rows, the unit aside: key words, then the values of either side.

    projection   for each word of a pair: the side that it comes from, and which of its words that is
    """

    keys: int
    values: tuple[int, int]
    projection: tuple[tuple[int, int], ...]


class SideFrontiers(NamedTuple):
    """The frontiers of rows that may still come in, by side; and that of announcements."""

    stored: Sequence[Int64s]
    probing: Sequence[Int64s]
    arriving: Sequence[Int64s]
    control: Int64s


class Moved(NamedTuple):
    """Rows of a side that leave at a time: spot where they go, key, values, age, that time, diff.

    The age is by how much the word of the time at which a row came in is less than that of `time`.
    """

    side: int
    time: int
    words: Int64s


class UnitStore:
    """The rows of a side, by spot and key; lookups see a table."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    @property
    def table(self) -> Int64s:
        """The lines of all rows."""
        return self.trace.table

    def set_hold(self, hold: Int64s) -> None:
        """See `Trace.set_since`."""
        self.trace.set_since(hold)


class Units:
    """The units of one worker.

    `code`: guards of times, position of the epoch, the last epoch that has words, one iteration. `counts`:
    True if somebody reads the loads.

    `work` returns pairs, piece by piece; calls add to `moved` and `loads`, which the caller empties.
    """

    def __init__(
        self, shape: Shape, schedule: Schedule, code: tuple[int, int, int, int], *, counts: bool
    ) -> None:
        self.shape = shape
        self._counts = counts
        self.guards, self._shift, self._epoch_max, self._iteration = code
        self._schedule = schedule
        self._pending: deque[Change] = deque()
        kw = shape.keys + 1
        self.stores = [UnitStore(Trace(kw, values, self.guards)) for values in shape.values]
        self._probes = [self._probing(side) for side in SIDES]
        self.moved: list[Moved] = []
        self.loads: list[Int64s] = []

    def _probing(self, side: int) -> HalfJoinMachine:
        """Make the machine by which rows of `side` probe the other store; its results begin with spots."""
        words = [(FROM_DELTA, 0)]
        for source, word in self.shape.projection:
            words.append((FROM_DELTA if source == side else FROM_TRACE, 1 + word))
        lookup = Lookup(self.shape.keys + 1, None, side == 1)
        return HalfJoinMachine(lookup, self.stores[1 - side], words, self.guards, self._shift)

    # Input.

    def keep(self, side: int, words: Int64s) -> None:
        """Store rows from their time on; in cells they probe, too."""
        rows = self._sorted(side, words)
        self.stores[side].trace.insert(rows)
        self._count(side, KEPT_ROWS, rows, rows[-1])
        if self._schedule.placement.is_cells:
            self.probe(side, rows)

    def probe(self, side: int, words: Int64s) -> None:
        """Let rows look for others, once all of these are there."""
        if words.shape[1]:
            self._probes[side].recv(0, [words])

    def arrive(self, side: int, words: Int64s) -> None:
        """Store rows that moved here: spot, key, values, age, time of the move and one iteration, diff."""
        past = np.ascontiguousarray(np.delete(words, -3, 0))
        past[-2] = np.maximum(past[-2] - self._iteration - words[-3], 0)
        counted = np.ascontiguousarray(np.delete(words, -3, 0))
        self.stores[side].trace.insert(self._sorted(side, past))
        for what in (KEPT_ROWS, ARRIVED):
            self._count(side, what, counted, counted[-1])

    def note(self, words: Int64s) -> None:
        """Note announcements."""
        self._schedule.note(words)

    # Work.

    def advance(self, frontiers: SideFrontiers) -> None:
        """Do what is possible now: rows leave for their versions, rows that probe may be answered."""
        changes = self._schedule.complete(self._epoch(frontiers.control))
        self._pending.extend(changes)
        self._schedule.forget_before(self._schedule.versions.starts[-1])
        while self._pending and self._may_leave(self._pending[0].start, frontiers):
            self._leave(self._pending.popleft())
        for side in SIDES:
            bound = self._bound(side, frontiers)
            before = _NO_TIMES if bound is None else np.array([bound - (side == 1)], np.int64)
            probed = self._probes[side].take_complete(before)
            if probed is not None:
                self._count(1 - side, PROBED, probed, np.ones(probed.shape[1], np.int64))
        self._hold_back(frontiers)

    @property
    def is_idle(self) -> bool:
        """True if there is nothing that `work` could do."""
        return all(probes.is_done for probes in self._probes)

    def work(self) -> Int64s:
        """Return a piece of the pairs that can be made now, without their spots. Requires: not `is_idle`."""
        for side in SIDES:
            probes = self._probes[side]
            if not probes.is_done:
                pairs = probes.work()
                assert pairs is not None
                self._count(1 - side, PAIRS, pairs, pairs[-1])
                return pairs[1:]
        raise AssertionError("nothing can be done")

    def capabilities(self) -> list[int]:
        """Return the times at which units may still send before more comes in, ascending.

        Some may be wide words, for which the anchor moves.
        """
        first = self._first_start()
        times = {first << self._shift} if first < FOREVER else set()
        return sorted(times.union(*(probes.needs().tolist() for probes in self._probes)))

    # When.

    def _first_start(self) -> int:
        """Return the first epoch from which a version holds for which rows have not left; else `FOREVER`.

        The right to send there is one to send later: with a long lead there are many versions.
        """
        if self._pending:  # versions that are not known yet hold from later on
            return self._pending[0].start
        return min(self._schedule.starts(), default=FOREVER)

    def _epoch(self, frontier: Int64s) -> int:
        return int(frontier.min()) >> self._shift if len(frontier) else FOREVER

    def _bound(self, side: int, frontiers: SideFrontiers) -> int | None:
        """Return the time before which rows of `side` may be answered; None: all may.

        They wait until three things have come: the rows stored of the other side (for the right: those before
        them), the rows that arrive at their time, and the probing rows of that time themselves, so that these
        are counted together.
        """
        own = frontiers.stored if self._schedule.placement.is_cells else frontiers.probing
        bounds = [int(own[side].min())] if len(own[side]) else []
        if len(frontiers.stored[1 - side]):
            bounds.append(int(frontiers.stored[1 - side].min()) + (side == 1))
        if len(frontiers.arriving[1 - side]):
            bounds.append(int(frontiers.arriving[1 - side].min()))
        return min(bounds, default=None)

    def _may_leave(self, epoch: int, frontiers: SideFrontiers) -> bool:
        """Return True if nothing before `epoch` can come or waits, and all earlier moves have arrived.

        False as long as there is no word for the epoch.
        """
        rows = [*frontiers.stored, *frontiers.probing]
        start = epoch << self._shift
        if epoch > self._epoch_max or any(len(frontier) and int(frontier.min()) < start for frontier in rows):
            return False
        if any(first < start for probes in self._probes for first in probes.earliest()):
            return False
        arriving = (int(frontier.min()) for frontier in frontiers.arriving if len(frontier))
        return all(first >= start + self._iteration for first in arriving)

    def _hold_back(self, frontiers: SideFrontiers) -> None:
        """Let stores be merged up to the epoch before the first that must stay apart; see the module."""
        moving = min(self._first_start(), self._epoch(frontiers.control) + self._schedule.lead)
        moves = [min(moving, self._epoch_max) << self._shift] if moving < FOREVER else []
        for side in SIDES:
            probing = (frontiers.stored if self._schedule.placement.is_cells else frontiers.probing)[1 - side]
            first = [*moves, *self._probes[1 - side].earliest()]
            first += [int(probing.min())] if len(probing) else []
            if not first:
                self.stores[side].set_hold(_NO_TIMES)
                continue
            epoch = min(first) >> self._shift
            # In the iteration in which rows come in; otherwise rows from before the anchor would stay apart.
            hold = ((epoch - 1) << self._shift) + self._iteration if epoch > 0 else 0
            self.stores[side].set_hold(np.array([hold], np.int64))

    # Moving.

    def _leave(self, change: Change) -> None:
        """Take out the rows that are stored elsewhere from this version on."""
        start = change.start << self._shift
        for side in SIDES:
            spots = _losing(change.old, change.new, 0 if self._schedule.placement.is_cells else side)
            here = rows_of_keys(self.stores[side].table, spots.reshape(1, -1), 1)
            here = np.ascontiguousarray(here[:, here[-2] < start])
            if here.shape[1]:
                self._take_out(side, here, change, start)

    def _take_out(self, side: int, here: Int64s, change: Change, start: int) -> None:
        placement, keys = self._schedule.placement, self.shape.keys
        key_hash, row_hash = _hashes(here, 1, keys, here.shape[0] - 3)
        rows = SideRows(key_hash, row_hash, np.full(here.shape[1], side, np.int64))
        moves = placement.moves(rows, change.old, change.new)
        unit = here[0] & _UNIT
        sent = moves.sources == unit[moves.arrivals.row]
        if sent.any():
            row = moves.arrivals.row[sent]
            words = np.insert(here.take(row, 1), here.shape[0] - 1, start, axis=0)
            words[-3] = start - words[-3]
            words[0] += moves.arrivals.unit[sent] - unit[row]
            self.moved.append(Moved(side, start, self._sorted(side, np.ascontiguousarray(words))))
        gone = moves.drops.unit == unit[moves.drops.row]
        if gone.any():
            dropped = here.take(moves.drops.row[gone], 1)
            dropped[-1] *= -1
            # They cancel the stored rows when runs are merged: to rewrite all runs now would be a pause.
            self.stores[side].trace.insert(self._sorted(side, dropped))
            counted = dropped.copy()
            counted[-2] = start
            self._count(side, KEPT_ROWS, counted, counted[-1])

    # Loads, and the rest.

    def _count(self, side: int, what: int, words: Int64s, amounts: Int64s) -> None:
        """Note a load of rows that begin with a spot, and end with time and diff."""
        if not self._counts or words.shape[1] == 0:
            return
        load_rows = np.empty((6, words.shape[1]), np.int64)
        load_rows[0] = side
        load_rows[1] = words[0] & _UNIT
        load_rows[2] = words[0] // BUCKETS
        load_rows[3] = what
        load_rows[4] = words[-2]
        load_rows[5] = amounts
        self.loads.append(sort_consolidate(load_rows))

    def show_rows(self, shows: Sequence[ShowRow]) -> None:
        """Set how messages show rows of either side, the unit in front."""
        for side in SIDES:
            show = _by_unit(shows[side])
            self.stores[side].trace.show = show
            self._probes[side].show = show

    def _sorted(self, side: int, words: Int64s) -> Int64s:
        try:
            return sort_consolidate(words)
        except OverflowError:
            raise row_overflow([words], self.stores[side].trace.show) from None

    def rebase(self, by: Rebase) -> None:
        """Count words from a later epoch; the vertex moves the traces, by `ToTheFirst`."""
        self._schedule.rebase(by)
        self._pending = deque(change.rebased(by) for change in self._pending)
        for side in SIDES:
            self._probes[side].rebase(by)

    @property
    def traces(self) -> list[Trace]:
        """The traces of both sides."""
        return [store.trace for store in self.stores]

    def symbols(self, mark: Mark) -> None:
        """Show all words that are stored here or wait."""
        for trace in self.traces:
            trace.symbols(mark)
        for probes in self._probes:
            probes.symbols(mark)


class ToTheFirst(Rebase):
    """A rebase by which all times before the new anchor become its first time, whatever their iteration."""

    def early(self, words: Int64s) -> Int64s:
        """Return the words of times that may be before the new anchor, as the class says."""
        if self.step >= 1 << 63:
            return np.zeros_like(words)
        return np.maximum(words - self.step, 0)

    def early_word(self, word: int) -> int:
        """Return the same for one word."""
        return max(word - self.step, 0)


def _losing(old: RoutingTable, new: RoutingTable, half: int) -> Int64s:
    """Return the spots, ascending, where `half` of `old` may store rows that `new` stores elsewhere."""
    spots: set[int] = set()
    for bucket, (before, after) in enumerate(zip(old.buckets[half], new.buckets[half], strict=True)):
        if before is not after and before != after:
            spots.update(bucket * BUCKETS + unit for unit in before.all_units)
    for key in {*old.exceptions[half], *new.exceptions[half]}:
        if old.exceptions[half].get(key) != new.exceptions[half].get(key):
            spots.update(key % BUCKETS * BUCKETS + unit for unit in old.grid_of(half, key).all_units)
    return np.array(sorted(spots), np.int64)


def _by_unit(show: ShowRow) -> ShowRow:
    """Return `show` for rows that have the spot in place of the unit."""
    return lambda row: show([row[0] & _UNIT, *row[1:]])


def _hashes(words: Int64s, first: int, keys: int, width: int) -> tuple[Int64s, Int64s]:
    """Return the hashes of keys, and of whole rows, whose `width` words, keys first, begin
    with word `first`.
    """
    return hashes_of(words, np.arange(first, first + keys)), hashes_of(words, np.arange(first, first + width))
