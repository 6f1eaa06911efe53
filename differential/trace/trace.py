"""A trace: the history of a collection, at every time that a reader may still look up.

A trace holds updates as a few sorted *runs*, oldest first, sizes falling geometrically, and a small mutable
*head* for the latest rows. An insert of some rows merges them into the head (one kernel call, about 2 µs), or
appends a run if they are many; merges are paid off gradually, a few rows of merging per row inserted.

    since       antichain of times: no lookup will be at a time that is not ≥ one of them
    preserved   for every t ≥ some time of since, and every (key, value): the sum of diffs at times ≤ t
    lost        everything else; merges advance times to since, so that updates that no lookup can distinguish
                are summed up

Invariants (`check_invariants`): runs and head are sorted and consolidated; the table has one line per run and
one for the head, in this order, and each names memory that the trace holds; every run's lub is ≥ its times.

A trace belongs to one operator. Only this operator inserts, and it reads inside its activations, between
inserts: the head changes in place. A trace that several operators read is a `SharedTrace` (`shared.py`): this
one, and a tail of the inserts that some of them have not accepted yet.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Self

import numpy as np

from differential.columns.overflow import ShowRow, row_overflow, show_words
from differential.kernels.history.times import earlier_times, minimal_times
from differential.kernels.loading import load_kernels
from differential.kernels.merging.merge import insert_into_head
from differential.kernels.rows.memory import HEADER, LUB, ROWS, SIDE
from differential.kernels.rows.room import is_in_file
from differential.kernels.rows.sort import sort_consolidate
from differential.thresholds import HEAD_ROWS_MAX, LOOK_ROWS_MIN
from differential.trace.accumulated import BLOCK_ROWS, Accumulated, accumulate
from differential.trace.merging import Merging
from differential.trace.run import Run
from differential.trace.view import View
from progress.compiled.arrays import Int64s
from progress.times.anchor import Rebase
from progress.times.word_order import word_less_equal, words_are_beyond
from timely.dictionaries import Mark

HEAD_ROOM_FIRST: Final = 16
"""Room of a new head, which doubles as it is needed: most traces of a dataflow are small."""

EFFORT_PER_ROW: Final = 4
"""Rows of merging in each merge under way, paid for each row inserted; two would just do."""

EFFORT_ROWS: Final = 2048
"""Merging is paid for in pieces of at least this many rows, some 30 µs: with fewer, calls would cost more."""

SUMMED_SHARE: Final = 4
"""`sum_up` leaves out a run with more than this many times the rows to sum up: most are other rows."""

GROWTH: Final = 2
"""A run is merged with the next newer one unless it is at least this many times as large."""

LOOK_SHARE: Final = 4
"""A trace at rest checks whether most rows cancel when its rows divided by this number have been added."""

SHRINKS_MAX: Final = 8
"""Number of further attempts to shrink while a hold has prevented rows from cancelling."""

_MOVED: Final = b"moved"
"""In place of a since: times were advanced, and perhaps not as far as to any since."""


def _are_close(older: int, newer: int) -> bool:
    """Return True if neighbouring runs of these numbers of rows are to become one."""
    return older < GROWTH * newer


def _close_in_size(runs: Sequence[Run]) -> list[list[Run]]:
    """Group runs, oldest first, into lists that are to become one run each; their sizes are far apart."""
    groups: list[list[Run]] = []
    newer = 0
    for run in reversed(runs):
        if groups and _are_close(run.rows, newer):
            groups[-1].append(run)
            newer += run.rows
        else:
            groups.append([run])
            newer = run.rows
    return [group[::-1] for group in reversed(groups)]


class Trace:
    """The history of a collection of rows with `kw` key words and `vw` value words; see above.

    Requires of all rows: words int64[kw + vw + 2, n], sorted and consolidated, times of the scope of
    `guards`.

    Adds multiplicities, and raises MultiplicityOverflowError where they leave 64 bits, with the row as `show`
    prints it; after that the trace is unusable.
    """

    tail: Sequence[object] = ()
    """Inserts that are in `lines` and not in `table`: only a shared trace has some."""

    def __init__(self, kw: int, vw: int, guards: int) -> None:
        load_kernels()
        self.kw = kw
        self.vw = vw
        self.guards = guards
        self.columns = kw + vw + 2
        self._runs: list[Run] = []
        self._merges: dict[int, Merging] = {}  # by index of the older of the two runs
        self._since: Int64s = np.zeros(1, np.int64)
        self._bounds: tuple[Int64s, ...] = ()
        self._head = np.empty((2 * self.columns, min(HEAD_ROOM_FIRST, HEAD_ROWS_MAX)), np.int64)
        self.table: Int64s = np.zeros((1, HEADER + 3 * self.columns), np.int64)
        self._head_room = self._head.shape[1]
        self._head_rows = 0
        self._owed = 0
        self.inserted = 0  # rows, in total
        self._unseen = 0  # rows inserted since the last check whether most of them cancel
        self._seen = LOOK_ROWS_MIN  # number of inserted rows after which the next check comes
        self._is_shrinking = False  # all runs are to become one, at rest
        self._is_shrunk = False  # they are one, and a last merge of it has begun
        self._tried: tuple[int, bytes] = 0, b""  # remaining attempts to shrink, and the since of the last one
        self.show: ShowRow = show_words
        self.asks_corners = False
        """True if a lookup at a time also looks up its corners (`kernels/sums/reduce_sums.py`).

        Then since is one step before the bounds of `set_since`.
        """
        self.look: Callable[[], None] | None = None
        """Called before merges begin: the reader may then report, by `set_since`, what it will still look up.

        It must not end its reading there.
        """

    @property
    def lines(self) -> Int64s:
        """The lines of the run table with all rows, for kernels. Valid until the trace changes."""
        return self.table

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """Return an independent trace with the same rows.

        Runs are shared, since they never change. Merges under way are not copied: nobody reads them, and they
        begin anew.
        """
        copied = copy.copy(self)
        memo[id(self)] = copied
        copied._runs, copied._merges = self._runs.copy(), {}
        copied._head, copied.table = self._head.copy(), self.table.copy()
        if self._head_rows:
            copied.table[-1, HEADER::3] += copied._head.ctypes.data - self._head.ctypes.data
        copied.look = copy.deepcopy(self.look, memo)
        return copied

    def compared(self) -> object:
        """Return all that determines later reads: see `timely/running/checking/comparable.py`."""
        try:
            rows = sort_consolidate(self.words())
        except OverflowError:
            raise row_overflow([self.words()], self.show) from None
        return rows, self.since

    @property
    def rows(self) -> int:
        """Number of rows, those not compacted yet included."""
        return int(self.table[:, ROWS].sum())

    @property
    def bytes(self) -> int:
        """Memory for rows, merges under way included."""
        merging = sum(merge.bytes for merge in self._merges.values())
        return sum(run.bytes for run in self._runs) + merging + self._head.nbytes

    @property
    def file_bytes(self) -> int:
        """Memory for rows that lies in files."""
        memory = [run.memory for run in self._runs] + [merge.memory for merge in self._merges.values()]
        return sum(part.nbytes for part in memory if is_in_file(part))

    def insert(self, words: Int64s) -> None:
        """Add rows; the trace may keep the array, so the caller must not write to it any more.

        Cost: about 3 µs for a few, without sorting; EFFORT_PER_ROW rows of merging for each.
        """
        rows = words.shape[1]
        assert words.shape[0] == self.columns
        if rows == 0:
            return
        self._unseen += rows
        self.inserted += rows
        if self._head_rows + rows > HEAD_ROWS_MAX:
            self.freeze_head()
        if rows <= HEAD_ROWS_MAX // 2:
            if self._head_rows + rows > self._head_room:
                self._grow_head(self._head_rows + rows)
            try:
                self._head_rows = insert_into_head(
                    self._head, self.table, len(self._runs), words, self.guards
                )
            except OverflowError:
                raise row_overflow([self._head_words(), words], self.show) from None
            self._owed += EFFORT_PER_ROW * rows
            if self._owed >= EFFORT_ROWS:
                self._pay()
        else:
            self._insert_run(Run.from_words(words, self.guards))

    def insert_run(self, run: Run) -> None:
        """Insert the rows of a finished run, which its maker may still read."""
        assert run.ranges.shape[0] == self.columns
        self._unseen += run.rows
        self.inserted += run.rows
        self._insert_run(run)

    def _insert_run(self, run: Run) -> None:
        self.freeze_head()
        self._append(run)
        self._owed += EFFORT_PER_ROW * run.rows
        self._pay()

    def lend(self) -> tuple[Int64s, Int64s]:
        """Return the head, with all the room that it may have, and `lines`, for kernels that insert into the
        head.

        They insert by `table`, as `insert` does. The caller calls `take_back` before anything else happens to
        the trace.
        """
        if self._head_room < HEAD_ROWS_MAX:
            self._grow_head(HEAD_ROWS_MAX // 2)
            if self._head_rows:
                start = self._head.ctypes.data + 8 * self._head_room * self.columns * int(
                    self.table[-1, SIDE]
                )
                self.table[-1, HEADER::3] = start + 8 * self._head_room * np.arange(self.columns)
        return self._head, self.lines

    def take_back(self, rows: int, inserts: int) -> None:
        """Take note of `rows` rows that a kernel has inserted into the lent head, in `inserts` inserts."""
        self._head_rows = self.table.item(-1, ROWS)
        self._unseen += rows
        self.inserted += rows
        self._owed += EFFORT_PER_ROW * rows
        if self._owed >= EFFORT_ROWS:
            self._pay()

    def _pay(self) -> None:
        """Do the merging that inserts since the last payment owe."""
        owed, self._owed = self._owed, 0
        self._work(owed)

    def _grow_head(self, rows: int) -> None:
        """Make room for `rows` rows and as many again; the table names the new memory at the next insert."""
        larger = np.empty((2 * self.columns, min(2 * rows, HEAD_ROWS_MAX)), np.int64)
        larger[:, : self._head_rows] = self._head[:, : self._head_rows]
        self._head, self._head_room = larger, larger.shape[1]

    def freeze_head(self) -> None:
        """Make the head a run of its own."""
        rows, self._head_rows = self._head_rows, 0
        if rows == 0:
            return
        self._append(Run.from_words(self._head_words(rows).copy(), self.guards))

    def set_since(self, *bounds: Int64s) -> None:
        """Promise to look up no time that is not ≥ an element of some antichain in `bounds`.

        If all of them are empty, no time will be looked up: all rows are dropped. Requires: each time is ≥
        one of the last call. Cost: nothing now; merges do the work.
        """
        self._since, self._bounds = bounds[0], bounds if len(bounds) > 1 or self.asks_corners else ()
        if not len(bounds[0]) and not any(map(len, bounds)):
            self._runs.clear()
            self._merges.clear()
            self._head_rows = 0
            self._rewrite_table()

    @property
    def since(self) -> Int64s:
        """The minimal times that may still be looked up.

        Computed on demand, since frontiers move at every step and merges begin now and then.
        """
        if self._bounds:
            since = minimal_times(np.concatenate(self._bounds), self.guards)
            self._since = earlier_times(since, self.guards) if self.asks_corners else since
            self._bounds = ()
        return self._since

    def settle(self, rows: int) -> bool:
        """Spend `rows` rows on merges under way; return True if more is left. Begins none, unless `rest`
        decided so.

        For idle moments: the total work is that of the rows inserted, however long the trace is idle.
        """
        if self._is_shrinking:
            more = self.effort(rows)
            # At most one further merge: where `since` moves on faster than all rows are merged, it would
            # never end.
            self._is_shrinking = more and not (self._is_shrunk and not self._merges)
            return self._is_shrinking
        self._work(rows)
        return bool(self._merges)

    def rest(self) -> None:
        """Decide whether to shrink, when no rows have come for a while.

        Where most of the rows cancel, as when everything has been removed, all of them become one run in idle
        moments. Merges that inserts begin do not reach that, for no inserts come that would begin them.

        The differences of all rows add up to the same before and after merging. Where the sum is at most
        half the number of rows, the other rows may cancel. A trace checks that for each quarter more of rows,
        and a few more times as `since` moves on.
        """
        tries, since = self._tried
        if tries:
            self._look()
        is_due = self._unseen >= self._seen
        if self._is_shrinking or not (is_due or (tries and since != self.since.tobytes())):
            return
        rows = self.rows
        net = sum(run.total for run in self._runs) + int(self._head_words()[-1].sum())
        self._unseen, self._seen, self._tried = 0, max(LOOK_ROWS_MIN, rows // LOOK_SHARE), (0, b"")
        if rows < LOOK_ROWS_MIN or 2 * abs(net) > rows:
            return
        self._look()
        self._tried = SHRINKS_MAX if is_due else tries - 1, self.since.tobytes()
        if self.since.shape[0]:
            self.freeze_head()
            self._is_shrinking, self._is_shrunk = True, False

    def effort(self, rows: int) -> bool:
        """Spend `rows` rows of merging; return True if there is more to do.

        Begins merges until one run is left, with times advanced to what is since when the last of them begins
        (one that was under way before may know an earlier one): for a trace that is to be small, not for
        every idle moment.
        """
        if not self._merges:
            self._look()
            if len(self._runs) > 1:
                self._merge_at(len(self._runs) - 2)
            elif self._is_behind():
                self._is_shrunk = True
                self._merge_at(0)
        self._work(rows)
        return bool(self._merges) or len(self._runs) > 1 or self._is_behind()

    def _is_behind(self) -> bool:
        """Return True if the only run was made when earlier times could still be looked up."""
        return len(self._runs) == 1 and self._runs[0].compacted != self.since.tobytes()

    def compact(self) -> None:
        """Merge everything into one run, with all times advanced to since; a pause of some 20 ns a row."""
        self._look()
        if self.since.shape[0] == 0:
            return
        self.freeze_head()
        while self._merges or len(self._runs) > 1 or self._is_behind():
            self.effort(1 << 40)

    def sum_up(self, rows: int) -> None:
        """Merge the latest `rows` rows, or a few times as many, into one run with times advanced to since.

        It replaces merges under way there; a pause of some 20 ns a row. Rows that have become a part of a run
        much larger than that stay in it.

        For callers that have inserted the rows at many times which nobody will look up any more: merges began
        when that was not known, and a lookup of a key would meet its rows at each of these times.
        """
        self._look()
        since = self.since
        if since.shape[0] == 0:
            return
        self.freeze_head()
        first, large = len(self._runs), SUMMED_SHARE * rows
        while first > 0 and (rows > 0 or first - 1 in self._merges) and self._runs[first - 1].rows <= large:
            first -= 1
            rows -= self._runs[first].rows
        if first - 1 in self._merges:  # with one that is too large
            first += 1
        merged: Run | None = None
        for run in reversed(self._runs[first:]):
            merge = Merging(run, merged, since, self.guards)
            try:
                while not merge.is_done:
                    merge.work(1 << 40)
            except OverflowError:
                raise row_overflow(merge.sources(), self.show) from None
            merged = merge.result()
        self._runs[first:] = [] if merged is None else [merged]
        self._merges = {index: merge for index, merge in self._merges.items() if index < first}
        self._begin_merges()
        self._rewrite_table()

    def rebase(self, by: Rebase) -> None:
        """Count words from a later epoch, before which nobody will look: earlier times become times of that
        epoch.

        Neighbours too close in size become one at once. Merges under way would have to begin anew, and where
        the anchor moves faster than rows come in none would ever be done: each move would add a run. Cost: a
        sort of all rows.
        """
        self._merges.clear()
        self._rebase_holds(by)
        runs, self._runs = self._runs, []
        if self._head_rows:
            # Not by `freeze_head`, which asks readers what they will still look up: they are moving, too.
            runs.append(Run.from_words(self._head_words().copy(), self.guards))
            self._head_rows = 0
        for neighbours in _close_in_size(runs):
            moved = self._rebased(neighbours, by)
            if moved is not None:
                self._runs.append(moved)
        self._begin_merges()
        self._rewrite_table()

    def _rebase_holds(self, by: Rebase) -> None:
        self._since = by.early(self._since)
        self._bounds = tuple(map(by.early, self._bounds))

    def _rebased(self, runs: Sequence[Run], by: Rebase) -> Run | None:
        """Return neighbouring runs as one; None if all rows cancel."""
        pieces = [run.words() for run in runs]
        words = pieces[0] if len(pieces) == 1 else np.ascontiguousarray(np.concatenate(pieces, axis=1))
        is_early = any(int(run.ranges[-2, 0]) < by.step for run in runs)
        words[-2] = by.early(words[-2])
        if is_early or len(pieces) > 1:
            try:
                words = sort_consolidate(words)
            except OverflowError:
                raise row_overflow([words], self.show) from None
            if words.shape[1] == 0:
                return None
        moved = Run.from_words(words, self.guards)
        if is_early or any(run.compacted for run in runs):
            moved.compacted = _MOVED
        return moved

    def accumulated(self, besides: Sequence[Int64s] = ()) -> Accumulated:
        """Return the rows at the end of all time, and those of `besides`, arrays of rows, summed up.

        Cost: see `accumulate`.
        """

        def blocks() -> Iterator[Int64s]:
            for run in self._runs:
                yield from run.blocks(BLOCK_ROWS)
            for words in (*self._unpacked(), *besides):
                for first in range(0, words.shape[1], BLOCK_ROWS):
                    yield words[:, first : first + BLOCK_ROWS].copy()

        try:
            return accumulate(blocks, self.columns, self.rows + sum(words.shape[1] for words in besides))
        except OverflowError:
            raise row_overflow([self.words(), *besides], self.show) from None

    def sums(self, rows: int) -> tuple[Int64s, Int64s]:
        """Return `Run.sums` of all runs, one after another, and where those of each line of the table begin;
        -1: it has none.
        """
        sums = [run.sums(rows) for run in self._runs]
        sizes = np.array([0, *(each.shape[0] for each in sums), 0], np.int64)
        starts: Int64s = np.cumsum(sizes[:-1])
        starts[sizes[1:] == 0] = -1
        return np.concatenate([*sums, np.empty(0, np.int64)]), starts

    def parts(self) -> tuple[Sequence[Run], Int64s]:
        """Return all rows: those in runs, and the others in an array of the caller's own."""
        return tuple(self._runs), self._head_words().copy()

    def pin(self) -> View:
        """Return all rows as a view that stays valid."""
        return View(self.table, self._runs, self._head_words(), ())

    def words(self) -> Int64s:
        """Return all rows as they are stored, those of each run sorted, in an array of the caller's own."""
        if len(self._runs) == 1 and not any(part.shape[1] for part in self._unpacked()):
            return self._runs[0].words()
        words = np.concatenate([*(run.words() for run in self._runs), *self._unpacked()], axis=1)
        # without this, columns of one row each have the other memory order
        return np.ascontiguousarray(words)

    def symbols(self, mark: Mark) -> None:
        """Mark all words of keys and values, except those of the latest rows that cancel.

        For that a few thousand rows are summed up first. Unfinished merges have only rows of their runs.
        """
        self.sum_up(HEAD_ROWS_MAX)
        for run in self._runs:
            run.symbols(mark)
        mark.words(self._head_words()[:-2])

    def _unpacked(self) -> Sequence[Int64s]:
        """Return the rows that are in no run."""
        return (self._head_words(),)

    def _head_words(self, rows: int | None = None) -> Int64s:
        """Return the rows of the head, in its own memory; `rows`: that many instead of those it has."""
        start = self.columns * int(self.table[-1, SIDE])
        return self._head[start : start + self.columns, : self._head_rows if rows is None else rows]

    def _look(self) -> None:
        if self.look is not None:
            self.look()

    def _append(self, run: Run) -> None:
        self._look()
        self._runs.append(run)
        self._begin_merges()
        self._rewrite_table()

    def _begin_merges(self) -> None:
        """Begin merges of neighbours too close in size, newest first; a run takes part in one at a time."""
        index = len(self._runs) - 2
        while index >= 0:
            # Fast path: hardly any neighbours are close.
            if _are_close(self._runs[index].rows, self._runs[index + 1].rows) and not (
                {index - 1, index, index + 1} & self._merges.keys()
            ):
                self._merge_at(index)
            index -= 1

    def _merge_at(self, index: int) -> None:
        """Begin merging run `index` with the next newer one, if there is one."""
        newer = self._runs[index + 1] if index + 1 < len(self._runs) else None
        self._merges[index] = Merging(self._runs[index], newer, self.since, self.guards)

    def _work(self, budget: int) -> None:
        """Give every merge under way `budget` rows; put the results of finished ones in place."""
        while budget > 0 and self._merges:
            for merge in self._merges.values():
                try:
                    merge.work(budget)
                except OverflowError:
                    raise row_overflow(merge.sources(), self.show) from None
            finished = sorted((index for index, merge in self._merges.items() if merge.is_done), reverse=True)
            if not finished:
                return
            for index in finished:
                merge = self._merges.pop(index)
                result = merge.result()
                taken = 1 if merge.newer is None else 2
                self._runs[index : index + taken] = [] if result is None else [result]
                lost = taken - (result is not None)
                self._merges = {at if at < index else at - lost: other for at, other in self._merges.items()}
            self._begin_merges()
            self._rewrite_table()

    def _rewrite_table(self) -> None:
        """Write one line per run and one for the head."""
        table = np.zeros((len(self._runs) + 1, HEADER + 3 * self.columns), np.int64)
        for index, run in enumerate(self._runs):
            table[index] = run.line
        if self._head_rows:
            table[-1] = self.table[-1]
        self.table = table

    def check_invariants(self) -> None:
        """Assert the invariants of the module; reads every row."""
        head = self.table[-1]
        assert len(self.table) == len(self._runs) + 1
        assert self._head_rows == head[ROWS] <= self._head.shape[1] <= HEAD_ROWS_MAX
        pieces = [(run.words(), int(run.line[LUB])) for run in self._runs]
        pieces.append((self._head_words().copy(), int(head[LUB])))
        for index, (words, lub) in enumerate(pieces):
            assert words.shape[1] > 0 or index == len(self._runs), "an empty run"
            again = sort_consolidate(words)
            assert np.array_equal(again, words), f"piece {index} is not sorted and consolidated"
            assert all(word_less_equal(int(time), lub, self.guards) for time in words[-2]), (
                f"lub of piece {index}"
            )
            beyond = np.empty(words.shape[1], np.bool_)
            words_are_beyond(words[-2].copy(), np.zeros(1, np.int64), self.guards, beyond)
            assert beyond.all(), "a time that is not ≥ 0"
        for index, merge in self._merges.items():
            assert merge.older is self._runs[index]
            assert merge.newer is None or merge.newer is self._runs[index + 1]
