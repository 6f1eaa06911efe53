"""Join: every pair of rows of two collections with equal keys, kept current.

    output = { (words of the pair, lub of the two times, product of the two diffs) }

    accept    rows that come in on one side are matched with what was accepted of the other side, and are
              accepted themselves then. So each pair is made once, by whichever of its rows is accepted later,
              and a join never has to wait for a frontier; with many rows it does (`join_vertex.py`).

A side has one or more inputs, of which it is the sum. An input is either rows that come to this join alone,
which it keeps itself (`OwnRows`), or an arrangement that is kept elsewhere, of which it is a reader with a
position. A join of an arrangement with itself has two positions in it.

What a join needs frontiers for is forgetting. Rows that come in on the right are matched with the left, at
their times or later: so the left history may be compacted to the right frontier, and dropped when the right
is complete for ever; and the same the other way round. Batches that were sent and not received yet count in
that frontier.

Pairs that are too many for one activation are put off: acceptance has decided which they are, and what they
read is pinned. So what was accepted later does not change them, and they hold nothing back.

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
from differential.kernels.rows.sort import PackedRows
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
MATCHED_ROWS_MAX: Final = 1 << 14
"""About how many rows there are in a piece: two thirds of a MiB, if they have five words, and what is made of
them is as much two or three times: few enough for the processor's caches.
"""

_NO_TIMES: Final = np.empty(0, np.int64)

Source = tuple[Literal["key", "left", "right", "constant"], int]
"""Where a word of the output comes from: which word of the key, of a side's values, or a constant."""


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
        """Lines of all rows that were accepted."""
        return self.trace.table

    def pin(self) -> View:
        """The same, to be kept."""
        return self.trace.pin()

    def set_frontier(self, *frontiers: Int64s) -> None:
        """See `Reader.set_frontier`."""
        self.is_done = not any(map(len, frontiers))
        self.trace.set_since(*frontiers)


class JoinInput(NamedTuple):
    """What is, or is a part of, a side of a join."""

    side: int
    source: OwnRows | Reader


class _Work:
    """Rows of a side that were accepted; those before `start` are matched with what `lines` describe."""

    __slots__ = ("_times", "delta", "lines", "pins", "rest", "rest_from", "side", "start")

    def __init__(
        self, side: int, delta: Int64s | Run, start: int, lines: Int64s, pins: Sequence[View]
    ) -> None:
        self.side = side
        self.start = start
        self.lines = lines
        self.pins = pins  # they own the memory that `lines` name
        self._times: tuple[int, Int64s] | None = None
        self.rest: Run | None = None
        """What comes behind `delta`, from row `rest_from` on: many rows become words some at a time."""
        self.rest_from = 0
        if isinstance(delta, Run):
            self.rest = delta
            self.delta: Int64s = np.empty((delta.ranges.shape[0], 0), np.int64)
            self.go_on()
        else:
            self.delta = delta

    def go_on(self) -> bool:
        """Whether there are rows left to match; if so, some are in `delta`, from `start` on."""
        if self.start < self.delta.shape[1]:
            return True
        if self.rest is None:
            return False
        stop = min(self.rest_from + MATCHED_ROWS_MAX, self.rest.rows)
        self.delta, self.start, self._times = self.rest.between(self.rest_from, stop), 0, None
        self.rest_from = stop
        if stop == self.rest.rows:
            self.rest = None
        return True

    def rebase(self, by: Rebase, pins: Sequence[View], lines: Int64s) -> None:
        """Words count from a later epoch, as those of `lines` do. Rows before `start` are done with.

        The rows are copied: traces, views and other readers may hold the same array.
        """
        left = self.delta[:, self.start :]
        if self.rest is not None:
            left = np.concatenate([left, self.rest.between(self.rest_from, self.rest.rows)], axis=1)
        self.delta, self.start, self.rest = by.rows(np.ascontiguousarray(left)), 0, None
        self.pins, self.lines, self._times = pins, lines, None

    def times(self, guards: int) -> Int64s:
        """The minimal times of the rows not matched yet, as int64[1, ·]."""
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

    What `recv` leaves is matched with `work`, piece by piece, so that a large output does not
    have to be in memory, nor be waited for, as a whole.
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
        """Accept rows of this join's own that came in at `port`: the first piece of their pairs.

        If pairs wait already, these do, too, and none come at once. The array may be kept.
        """
        side, source = self.inputs[port]
        assert isinstance(source, OwnRows)
        parts: list[Part] = [words]
        del words  # so that its memory is free before that of the rows in order is taken
        return self.recv_parts(port, parts)

    def recv_parts(self, port: int, parts: list[Part]) -> Int64s:
        """The same of rows in several parts, which are taken out of their list and dropped on the way.

        Many rows are packed for the trace before anything else is done with them, and become words again some
        at a time, when they are matched.
        """
        side, source = self.inputs[port]
        assert isinstance(source, OwnRows)
        found = self._sorted(side, parts)
        if isinstance(found, PackedRows) and found.rows >= PACKED_ROWS_MIN and not self.flags:
            run = Run.from_sorted(found, self.guards)
            del found
            pairs = self._accepted(side, run)
            if not source.is_done:
                source.trace.insert_run(run)
            return pairs
        if isinstance(found, PackedRows):
            found = found.unpack(0, found.rows)
        delta = self._with_keys(found)
        pairs = self._accepted(side, delta)
        if not source.is_done:
            source.trace.insert(delta)
        return pairs

    def recv_arranged(self, port: int, batches: Sequence[ArrangedBatch]) -> Int64s:
        """Accept all inserts of an arrangement of which `port` was told; otherwise as `recv`."""
        side, source = self.inputs[port]
        assert isinstance(source, Reader) and source.position is not None
        for number, batch in enumerate(batches, source.position + 1):
            if batch.sequence != number:
                raise InternalError(f"{source.name!r} was told of insert {batch.sequence}, not of {number}")
        delta = batches[0].words
        if len(batches) > 1:
            found = self._sorted(side, [batch.words for batch in batches])
            delta = found.unpack(0, found.rows) if isinstance(found, PackedRows) else found
        # In this order: to accept may change the lines that are read.
        pairs = self._accepted(side, self._with_keys(delta))
        source.accept(batches[-1].sequence)
        return pairs

    def _with_keys(self, delta: Int64s) -> Int64s:
        """The rows of which no key is null."""
        for flag in self.flags:
            kept = delta[flag] != 0
            if not kept.all():
                delta = np.ascontiguousarray(delta[:, kept])
        return delta

    def _accepted(self, side: int, delta: Int64s | Run) -> Int64s:
        """The first piece of the pairs of `delta`; what is left waits."""
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
        """Whether no pairs wait."""
        return not self._unfinished

    def work(self) -> Int64s:
        """Make one more piece: pairs that wait, first come first; perhaps there are none.

        It is of as much that waits as it takes to be a piece: else what comes in would wait for ever behind
        what came in at the same time, piece by small piece. Requires: not `is_done`.
        """
        pieces: list[Int64s] = []
        made = 0
        while self._unfinished and made < MATCHED_ROWS_MAX:
            work = self._unfinished[0]
            pairs, work.start = self._match(work.side, work.delta, work.start, work.lines)
            if not work.go_on():
                self._unfinished.popleft()
            if pairs.shape[1]:
                pieces.append(pairs)
                made += pairs.shape[1]
        if len(pieces) == 1:
            return pieces[0]
        return _beside(pieces) if pieces else self._nothing

    def _match(self, side: int, delta: Int64s, start: int, lines: Int64s) -> tuple[Int64s, int]:
        """A piece, and the row where the next begins; it has less than MATCHED_ROWS_MAX rows but for those of
        the last row matched.
        """
        if delta.shape[1] == 0:
            return self._nothing, 0
        projection = self.projections[side]
        try:
            return match(delta, start, lines, self.kw, projection, self.guards, MATCHED_ROWS_MAX)
        except OverflowError:
            columns = (lines.shape[1] - HEADER) // 3
            seen = [decode_words(lines, line, columns) for line in range(len(lines))]
            others = np.concatenate(seen, axis=1)
            raise product_overflow(delta, others, self.kw, self._shows[side]) from None

    def _lines(self, tables: Sequence[Int64s], side: int) -> Int64s:
        """What is seen of the inputs of a side, one below the other."""
        if len(tables) == 1 and not self._sources[side][0].path.delay:
            return tables[0]
        return np.concatenate(
            [
                delayed(table, source.path.delay) if source.path.delay else table
                for table, source in zip(tables, self._sources[side], strict=True)
            ]
        )

    def capabilities(self) -> Int64s:
        """The minimal times at which something may still be sent before more comes in, ascending."""
        bounds = _NO_TIMES
        for work in self._unfinished:
            bounds = lower_bounds(work.times(self.guards), 0, bounds, self.guards)
        return bounds

    def set_frontiers(self, *frontiers: Int64s) -> None:
        """What may still come in at each port: no row is at a time that is not ≥ one of its frontier. Cost:
        a µs or two, however many times there are in them.
        """
        for side, source in self.inputs:
            source.set_frontier(*[frontiers[port] for port in self._ports[1 - side]])

    def show_rows(self, left: ShowRow, right: ShowRow) -> None:
        """How messages show rows of either side."""
        self._shows = (left, right)
        for side, source in self.inputs:
            if isinstance(source, OwnRows):
                source.trace.show = self._shows[side]

    @property
    def traces(self) -> list[Trace]:
        """Those of its own, as far as they are still needed."""
        return [
            source.trace for _, source in self.inputs if isinstance(source, OwnRows) and not source.is_done
        ]

    def rebase(self, by: Rebase) -> None:
        """Words count from a later epoch: those of what is put off; `traces` are moved by the vertex."""
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
        """Show all words that it keeps, and those of what is put off. What it reads others keep."""
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
        """Assert those of its own traces."""
        for trace in self.traces:
            trace.check_invariants()


def _beside(parts: Sequence[Int64s]) -> Int64s:
    """All rows of several arrays in one. (Columns of one row each would come out in the other order.)"""
    return np.ascontiguousarray(np.concatenate(parts, axis=1))


def whole_pairs(kw: int, vw_left: int, vw_right: int) -> list[Source]:
    """The projection to the key, the left values, and the right values."""
    everything: list[Source] = [("key", word) for word in range(kw)]
    everything += [("left", word) for word in range(vw_left)]
    everything += [("right", word) for word in range(vw_right)]
    return everything


def projection_array(projection: Sequence[Source], kw: int, side: int) -> Int64s:
    """The projection as the kernel wants it, for rows that came in on `side`."""
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
