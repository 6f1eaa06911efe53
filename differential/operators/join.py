"""Join: every pair of rows of two collections with equal keys, kept current.

    output = { (words of the pair, lub of the two times, product of the two diffs) }

    accept    rows that come in on one side are matched with what was accepted of the other side, and are
              accepted themselves then. So each pair is made once, by whichever of its rows is accepted later,
              and a join never has to wait for a frontier; with many rows it does (`join_vertex.py`).

A side is the sum of one or more inputs. An input is either rows that come to this join alone, which it keeps
itself (`OwnRows`), or an arrangement that is kept elsewhere, of which it is a reader with a position. A join
of an arrangement with itself has two positions in it.

A join needs frontiers only to forget. Rows that come in on the right are matched with the left, at their
times or later: so the left history may be compacted to the right frontier, and dropped when the right is
complete for ever; and the same the other way round. Batches that were sent and not received yet count in
that frontier.

Pairs that are too many for one activation are put off: acceptance has decided which they are, and the rows
that they are made of are pinned. So rows that are accepted later do not change them, and they hold nothing
back.

This is the logic alone: words and frontiers in, words out. `match.py` in `differential/kernels` does the
work.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple

import numpy as np

from differential.columns.overflow import ShowRow, product_overflow, row_overflow, show_words
from differential.columns.packed.parts import Part, in_order, words_in
from differential.kernels.history.match import CONSTANT, FROM_DELTA, FROM_TRACE, match, prepare_matches
from differential.kernels.history.ready import lower_bounds, minimal_times
from differential.kernels.rows.columns import decode_words
from differential.kernels.rows.memory import HEADER, ROWS
from differential.kernels.rows.sort import PackedRows, unpacked
from differential.operators.arrangement import ArrangedBatch
from differential.thresholds import PACKED_ROWS_MIN
from differential.trace.readers import Path, Reader, delayed
from differential.trace.run import Run
from differential.trace.trace import Trace
from differential.trace.view import View
from progress.compiled.arrays import Int64s
from progress.errors import InternalError
from progress.times.anchor import Rebase
from timely.dictionaries import Mark

LEFT: Final = 0
RIGHT: Final = 1
MATCHED_PIECE_ROWS: Final = 1 << 14
"""About how many rows a piece has. With five words each they are two thirds of a MiB, and the next stages
make two or three times as much of them: little enough for the processor's caches.
"""

_NO_TIMES: Final = np.empty(0, np.int64)

Source = tuple[Literal["key", "left", "right", "constant"], int]
"""The source of a word of the output: a word of the key, by index, a word of a side's values, or a
constant."""


class OwnRows:
    """Rows that come to one join alone: its trace, read as `Reader` reads one that is kept elsewhere."""

    __slots__ = ("is_done", "path", "trace")

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.path = Path()
        self.is_done = False

    @property
    def look(self) -> Callable[[], None] | None:
        """See `Trace.look`."""
        return self.trace.look

    @look.setter
    def look(self, look: Callable[[], None] | None) -> None:
        self.trace.look = look

    @property
    def table(self) -> Int64s:
        """The lines of all rows that were accepted."""
        return self.trace.table

    def pin(self) -> View:
        """Return a view of all rows that were accepted, which later inserts do not change."""
        return self.trace.pin()

    def set_frontier(self, *frontiers: Int64s) -> None:
        """See `Reader.set_frontier`."""
        self.is_done = not any(map(len, frontiers))
        self.trace.set_since(*frontiers)


class JoinInput(NamedTuple):
    """One input of a side of a join: the whole side, or a part of it."""

    side: int
    source: OwnRows | Reader


class _Work:
    """Accepted rows of a side; those before `start` are matched already with the rows that `lines`
    describe.
    """

    __slots__ = ("_times", "delta", "lines", "pins", "rest", "rest_from", "side", "start")

    def __init__(
        self, side: int, delta: Int64s | Run, start: int, lines: Int64s, pins: Sequence[View]
    ) -> None:
        self.side = side
        self.start = start
        self.lines = lines
        self.pins = pins  # they own the memory that `lines` point to
        self._times: tuple[int, Int64s] | None = None
        self.rest: Run | None = None
        """The rows behind `delta`, from row `rest_from` on: a large run becomes words piece by piece."""
        self.rest_from = 0
        if isinstance(delta, Run):
            self.rest = delta
            self.delta: Int64s = np.empty((delta.ranges.shape[0], 0), np.int64)
            self.go_on()
        else:
            self.delta = delta

    def go_on(self) -> bool:
        """Return True if rows are left to match; some of them are in `delta` then, from `start` on."""
        if self.start < self.delta.shape[1]:
            return True
        if self.rest is None:
            return False
        stop = min(self.rest_from + MATCHED_PIECE_ROWS, self.rest.rows)
        self.delta, self.start, self._times = self.rest.between(self.rest_from, stop), 0, None
        self.rest_from = stop
        if stop == self.rest.rows:
            self.rest = None
        return True

    def rebase(self, by: Rebase, pins: Sequence[View], lines: Int64s) -> None:
        """Count words from a later epoch, as those of `lines` do. Rows before `start` are dropped.

        The rows are copied, since traces, views and other readers may hold the same array.
        """
        rows = self.delta[:, self.start :]
        if self.rest is not None:
            rows = np.concatenate([rows, self.rest.between(self.rest_from, self.rest.rows)], axis=1)
        self.delta, self.start, self.rest = by.rows(np.ascontiguousarray(rows)), 0, None
        self.pins, self.lines, self._times = pins, lines, None

    def times(self, guards: int) -> Int64s:
        """Return the minimal times of the rows not matched yet, as int64[1, ·]."""
        if self._times is None or self._times[0] != self.start:
            times = self.delta[-2, self.start :]
            if self.rest is not None:
                if (only := self.rest.only_time) is not None:
                    later = np.array([only])
                else:
                    later = self.rest.between(self.rest_from, self.rest.rows)[-2]
                times = np.concatenate([times, later])
            times = minimal_times(times, guards)
            self._times = (self.start, times.reshape(1, -1))
        return self._times[1]


class JoinMachine:
    """Joins two sides on `kw` key words; the left has `vw_left` value words, the right `vw_right`.

    projection   for each word of the output where it comes from; None: key, left values, right values
    inputs       in the order of the ports; by default each side has rows of its own
    flags        key words that are 0 where a key is null; such rows match nothing, and are not kept here
    Output rows: int64[words of the projection + 2, m], neither sorted nor consolidated.

    `recv` matches a first piece, and `work` each of the others. So a large output never has to be in memory,
    nor be waited for, as a whole.
    """

    def __init__(
        self,
        kw: int,
        vw_left: int,
        vw_right: int,
        guards: int,
        projection: Sequence[Source] | None = None,
        inputs: Sequence[JoinInput] | None = None,
        flags: Sequence[int] = (),
    ) -> None:
        if projection is None:
            projection = whole_pairs(kw, vw_left, vw_right)
        if inputs is None:
            widths = ((LEFT, vw_left), (RIGHT, vw_right))
            inputs = [JoinInput(side, OwnRows(Trace(kw, vw, guards))) for side, vw in widths]
        self.kw = kw
        self.guards = guards
        self.words = len(projection)
        self.inputs = tuple(inputs)
        self._sources = [[one.source for one in inputs if one.side == side] for side in (LEFT, RIGHT)]
        self._ports = [[n for n, one in enumerate(inputs) if one.side == side] for side in (LEFT, RIGHT)]
        self.projections = [projection_array(projection, kw, side) for side in (LEFT, RIGHT)]
        prepare_matches()
        self._unfinished: deque[_Work] = deque()
        self._nothing: Int64s = np.empty((self.words + 2, 0), np.int64)
        self._shows: tuple[ShowRow, ShowRow] = (show_words, show_words)
        self.flags = tuple(flags)

    def recv(self, port: int, words: Int64s) -> Int64s:
        """Accept rows of this join's own that came in at `port`, and return the first piece of their pairs.

        If other pairs wait already, theirs wait behind these, and the piece is empty. The array may be kept.
        """
        side, source = self.inputs[port]
        assert isinstance(source, OwnRows)
        parts: list[Part] = [words]
        del words  # to free its memory before that of the sorted rows is taken
        return self.recv_parts(port, parts)

    def recv_parts(self, port: int, parts: list[Part]) -> Int64s:
        """Do the same for rows in several parts, which leave their list and are dropped on the way.

        Many rows are packed for the trace first of all, and become words again piece by piece, when they are
        matched.
        """
        side, source = self.inputs[port]
        assert isinstance(source, OwnRows)
        rows = self._sorted(side, parts)
        if isinstance(rows, PackedRows) and rows.rows >= PACKED_ROWS_MIN and not self.flags:
            run = Run.from_sorted(rows, self.guards)
            del rows
            pairs = self._accepted(side, run)
            if not source.is_done:
                source.trace.insert_run(run)
            return pairs
        rows = unpacked(rows)
        delta = self._with_keys(rows)
        pairs = self._accepted(side, delta)
        if not source.is_done:
            source.trace.insert(delta)
        return pairs

    def recv_arranged(self, port: int, batches: Sequence[ArrangedBatch]) -> Int64s:
        """Accept all inserts of an arrangement whose batches came in at `port`; otherwise as `recv`.

        Raises InternalError unless they follow the last accepted insert one by one.
        """
        side, source = self.inputs[port]
        assert isinstance(source, Reader) and source.position is not None
        for number, batch in enumerate(batches, source.position + 1):
            if batch.sequence != number:
                raise InternalError(f"{source.name!r} received insert {batch.sequence}, not {number}")
        delta = batches[0].words
        if len(batches) > 1:
            rows = self._sorted(side, [batch.words for batch in batches])
            delta = unpacked(rows)
        # Match first: `accept` may change the lines that are read.
        pairs = self._accepted(side, self._with_keys(delta))
        source.accept(batches[-1].sequence)
        return pairs

    def _with_keys(self, delta: Int64s) -> Int64s:
        """Return the rows that have no null in their key."""
        for flag in self.flags:
            has_key = delta[flag] != 0
            if not has_key.all():
                delta = np.ascontiguousarray(delta[:, has_key])
        return delta

    def _accepted(self, side: int, delta: Int64s | Run) -> Int64s:
        """Return the first piece of the pairs of `delta`; the others wait."""
        pairs, start = self._nothing, 0
        sources = self._sources[1 - side]
        if isinstance(delta, Run):
            if any(source.table[:, ROWS].any() for source in sources):
                is_first = not self._unfinished
                pins = [source.pin() for source in sources]
                lines = self._lines([pin.table for pin in pins], 1 - side)
                self._unfinished.append(_Work(side, delta, 0, lines, pins))
                pairs = self.work() if is_first else pairs
            return pairs
        if not self._unfinished:
            lines = self._lines([source.table for source in sources], 1 - side)
            pairs, start = self._match(side, delta, 0, lines)
        if start < delta.shape[1]:
            pins = [source.pin() for source in sources]
            lines = self._lines([pin.table for pin in pins], 1 - side)
            self._unfinished.append(_Work(side, delta, start, lines, pins))
        return pairs

    @property
    def is_done(self) -> bool:
        """True if no pairs wait."""
        return not self._unfinished

    def work(self) -> Int64s:
        """Return one more piece of the pairs that wait, first come first; it may be empty.

        It takes as many waiting rows as it needs to be a whole piece. Otherwise new rows would wait for ever
        behind rows that came in at the same time, one small piece after the other. Requires: not `is_done`.
        """
        pieces: list[Int64s] = []
        rows = 0
        while self._unfinished and rows < MATCHED_PIECE_ROWS:
            work = self._unfinished[0]
            pairs, work.start = self._match(work.side, work.delta, work.start, work.lines)
            if not work.go_on():
                self._unfinished.popleft()
            if pairs.shape[1]:
                pieces.append(pairs)
                rows += pairs.shape[1]
        if len(pieces) == 1:
            return pieces[0]
        return _beside(pieces) if pieces else self._nothing

    def _match(self, side: int, delta: Int64s, start: int, lines: Int64s) -> tuple[Int64s, int]:
        """Return a piece, and the row where the next one begins. Without the pairs of the last row matched
        the piece has less than MATCHED_PIECE_ROWS rows.
        """
        if delta.shape[1] == 0:
            return self._nothing, 0
        try:
            return self._matched(side, delta, start, lines)
        except OverflowError:
            columns = (lines.shape[1] - HEADER) // 3
            seen = [decode_words(lines, line, columns) for line in range(len(lines))]
            others = np.concatenate(seen, axis=1)
            raise product_overflow(delta, others, self.kw, self._shows[side]) from None

    def _matched(self, side: int, delta: Int64s, start: int, lines: Int64s) -> tuple[Int64s, int]:
        projection = self.projections[side]
        return match(delta, start, lines, self.kw, projection, self.guards, MATCHED_PIECE_ROWS)

    def _lines(self, tables: Sequence[Int64s], side: int) -> Int64s:
        """Return the lines of all inputs of a side, one below the other, with their delays."""
        if len(tables) == 1 and not self._sources[side][0].path.delay:
            return tables[0]
        return np.concatenate(
            [
                delayed(table, source.path.delay) if source.path.delay else table
                for table, source in zip(tables, self._sources[side], strict=True)
            ]
        )

    def capabilities(self) -> Int64s:
        """Return the minimal times at which it may still send pairs before more rows come in, ascending."""
        bounds = _NO_TIMES
        for work in self._unfinished:
            bounds = lower_bounds(work.times(self.guards), 0, bounds, self.guards)
        return bounds

    def set_frontiers(self, *frontiers: Int64s) -> None:
        """Learn the frontier of each port: the time of every row still to come is ≥ one of its times.

        Cost: a µs or two, however many times the frontiers have.
        """
        for side, source in self.inputs:
            source.set_frontier(*[frontiers[port] for port in self._ports[1 - side]])

    def show_rows(self, left: ShowRow, right: ShowRow) -> None:
        """Set how messages show rows of either side."""
        self._shows = (left, right)
        for side, source in self.inputs:
            if isinstance(source, OwnRows):
                source.trace.show = self._shows[side]

    @property
    def traces(self) -> list[Trace]:
        """The traces of its own rows, as far as they are still needed."""
        return [
            source.trace for _, source in self.inputs if isinstance(source, OwnRows) and not source.is_done
        ]

    def rebase(self, by: Rebase) -> None:
        """Count the words of waiting pairs from a later epoch; the vertex moves `traces`."""
        for work in self._unfinished:
            side = 1 - work.side
            try:
                pins = [pin.rebased(by, self.guards) for pin in work.pins]
            except OverflowError:
                words = [
                    decode_words(work.lines, line, (work.lines.shape[1] - HEADER) // 3)
                    for line in range(len(work.lines))
                ]
                raise row_overflow(words, self._shows[side]) from None
            work.rebase(by, pins, self._lines([pin.table for pin in pins], side))

    def symbols(self, mark: Mark) -> None:
        """Show all words that it keeps, and those of waiting pairs. Other stages keep what it reads."""
        for _, source in self.inputs:
            if isinstance(source, OwnRows):
                source.trace.symbols(mark)
        for work in self._unfinished:
            mark.words(work.delta[:-2])
            if work.rest is not None:
                work.rest.symbols(mark)
            for pin in work.pins:
                pin.symbols(mark)

    def _sorted(self, side: int, parts: list[Part]) -> PackedRows | Int64s:
        try:
            return in_order(parts)
        except OverflowError:
            raise row_overflow(words_in(parts), self._shows[side]) from None

    def check_invariants(self) -> None:
        """Assert the invariants of its own traces."""
        for trace in self.traces:
            trace.check_invariants()


def _beside(parts: Sequence[Int64s]) -> Int64s:
    """Return all rows of several arrays in one, in C order: `concatenate` alone may return Fortran order."""
    return np.ascontiguousarray(np.concatenate(parts, axis=1))


def whole_pairs(kw: int, vw_left: int, vw_right: int) -> list[Source]:
    """Return the projection to the key, the left values, and the right values."""
    everything: list[Source] = [("key", word) for word in range(kw)]
    everything += [("left", word) for word in range(vw_left)]
    everything += [("right", word) for word in range(vw_right)]
    return everything


def projection_array(projection: Sequence[Source], kw: int, side: int) -> Int64s:
    """Return the projection in the form of the kernel, for rows that came in on `side`."""
    mine = "left" if side == LEFT else "right"
    pairs = []
    for source, word in projection:
        if source == "constant":
            pairs.append((CONSTANT, word))
        elif source == "key":
            assert 0 <= word < kw
            pairs.append((FROM_DELTA, word))
        else:
            pairs.append((FROM_DELTA if source == mine else FROM_TRACE, kw + word))
    return np.array(pairs, np.int64).reshape(-1, 2).T.copy()
