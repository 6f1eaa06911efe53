"""Reduce: one answer per key, kept right at every time.

    for every key and every time t that is complete:
        output accumulated up to t  =  aggregate(input accumulated up to t)

Rows wait until their times are complete. Then, for all that became complete since the last activation at
once, the keys with new rows or pending times are looked at, and their answers are corrected at each
interesting time (`kernels/history/closure.py`). An interesting time beyond the frontier stays *pending*: a
change at (0, 1) and one at (1, 0) make (1, 1) interesting, although nothing arrives there.

An answer that is a function of sums needs no history of answers: the earlier answers follow from the earlier
sums (`kernels/sums/reduce_sums.py`). The reduce asks about times one step back, then.

Its rows may be in an arrangement (`arrangement.py`), which it reads by time: rows that are not complete
count at no time that it asks about. The batches of such rows wait, by reference, and say later which keys
have to be looked at. Its answers may be an arrangement for others.

Invariants: waiting rows and pending times are beyond the frontier, rows of the input trace are not; at every
time that is not ≥ a waiting or pending time the output is right.

This is the logic alone: words and frontiers in, words out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np

from differential.columns.overflow import (
    ShowRow,
    components_overflow,
    count_overflow,
    mean_overflow,
    row_overflow,
    show_words,
)
from differential.columns.packed.parts import Part
from differential.kernels.history.first import DENSE_RANK, NO_RANK, RANK, ROW_NUMBER, reduce_first
from differential.kernels.history.groups import COUNT, GREATEST, LEAST, collect_groups, reduce_groups
from differential.kernels.history.ready import work_at_once
from differential.kernels.least.least import reduce_least
from differential.kernels.loading import prepare
from differential.kernels.rows.sort import sort_consolidate
from differential.kernels.sums.reduce_sums import prepare_sums, reduce_sums
from differential.kernels.sweeps.selection import select
from differential.operators.machine import Machine
from differential.operators.reducing.group_values import GroupAnswers, Percentiles, are_plain
from differential.operators.reducing.overflowing import FailedGroup, limits_of, reduce_apart
from differential.operators.reducing.window_parts import WindowFunctions
from differential.operators.timed.sweep import SweepFunction, swept, swept_near
from differential.operators.waiting.waiting_rows import PendingTimes, WaitingRows
from differential.trace.readers import Reader
from differential.trace.shared import SharedTrace
from differential.trace.trace import Trace
from progress.compiled.arrays import Int64s
from progress.times.anchor import Rebase
from timely.dictionaries import Mark

Kind = Literal["count", "min", "max"]
RankKind = Literal["row_number", "rank", "dense"]
Row = tuple[int, ...]

_KINDS: Final[dict[Kind, int]] = {"count": COUNT, "min": LEAST, "max": GREATEST}
_RANKS: Final[dict[RankKind | None, int]] = {
    None: NO_RANK,
    "row_number": ROW_NUMBER,
    "rank": RANK,
    "dense": DENSE_RANK,
}
_NO_TIMES: Final = np.empty(0, np.int64)

TIMES_AT_ONCE: Final = 128
"""About how many ready times of its key a row meets in a portion. At this number the work of a portion costs
about as much as the overhead of one portion more."""

NEAR_SHARE: Final = 8
"""If a sweep keeps at least this many rows for each new one, it looks only at rows near the new ones."""


@dataclass(frozen=True)
class Aggregates:
    """Built-in aggregates: (kind, value word) of each word of the answer; without any the reduce is a
    distinct.

    `kernels/history/groups.py` says what they mean for negative multiplicities. ("count", w) ignores w.
    """

    parts: tuple[tuple[Kind, int], ...]

    @property
    def words(self) -> int:
        """Value words of the answer."""
        return len(self.parts)


@dataclass(frozen=True)
class Accumulation:
    """Answers made of components: the only value word of a row is the index of its component.

    formulas     for each word of the answer: what, first component, gate, limbs, digits: `accumulated.py`
    components   the number of components; a group that is there has the first `needed` of them
    symbols      some word of the answer is a symbol. As a component it is in pieces that add up, so nobody
                 can tell which symbols are in rows that wait
    """

    formulas: tuple[tuple[int, int, int, int, int], ...]
    components: int
    needed: int
    symbols: bool = False

    @property
    def words(self) -> int:
        """Value words of the answer."""
        return len(self.formulas)

    @property
    def may_overflow(self) -> bool:
        """True if a sum may not fit its column."""
        return any(limits_of(what, *rest) is not None for what, _, _, *rest in self.formulas)

    def table(self) -> Int64s:
        """Return the form that the kernel takes."""
        columns = [(*each, self.components, self.needed) for each in self.formulas]
        return np.array(columns, np.int64).reshape(-1, 7).T.copy()


@dataclass(frozen=True)
class GroupFunction:
    """A Python function of a group: (key, [(values, multiplicity), …]) → rows of `words` words each.

    The reduce calls it for each key and time at which the group may have changed; the rows of the group are
    sorted, and no multiplicity is zero. It is not called for an absent group (no rows), whose answer is
    empty. It must be a function of its arguments alone.
    """

    function: Callable[[Row, list[tuple[Row, int]]], Sequence[Row]]
    words: int


@dataclass(frozen=True)
class FirstRows:
    """The first rows of a group by the order of their words: those from `offset` on, up to `limit` of them.

    rank      each answer has one word more, its number in the group, from 1 on: by rows, or equal for rows
              with equal first `ordered` words, counting rows or (dense) different such words
    symbols   (word, 1 or -1): words that are symbols, in the order of the values that they stand for, or the
              reverse; the words before one are its first bytes, so this matters only where those are equal
    rank_of   symbols (ascending) → ranks ≥ 0, in the order of the values that they stand for
    ties      further rows count that are equal to the last one in the first `ordered` words
    """

    width: int
    limit: int
    offset: int = 0
    rank: RankKind | None = None
    ordered: int = 0
    symbols: tuple[tuple[int, int], ...] = ()
    rank_of: Callable[[Int64s], Int64s] | None = None
    ties: bool = False

    @property
    def words(self) -> int:
        """Value words of the answer."""
        return self.width + (self.rank is not None)

    def shape(self, kw: int, guards: int) -> Int64s:
        """Return the form that `reduce_first` takes."""
        rank, span = _RANKS[self.rank], (self.offset, self.limit)
        return np.array([kw, self.width, guards, *span, rank, self.ordered, self.ties], np.int64)

    def levels(self) -> Int64s:
        """Return the form that `in_order.py` takes."""
        return np.array([*self.symbols, (self.width, 0)], np.int64).T.copy()


Reduction: TypeAlias = (
    Aggregates | Accumulation | GroupFunction | SweepFunction | WindowFunctions | GroupAnswers | FirstRows
)


class ReduceMachine(Machine):
    """Reduces rows of `kw` key and `vw` value words; output: int64[kw + aggregate.words + 2, m], sorted.

    For one aggregate that is the least or greatest of the only value word, and for the first rows, the work
    per key does not depend on the length of its history; otherwise the machine reads a key's whole history
    when it changes. It keeps no answers for numbers of rows, distinct and sums of components.
    """

    def __init__(
        self,
        kw: int,
        vw: int,
        guards: int,
        aggregate: Reduction,
        source: tuple[SharedTrace, Reader] | None = None,
        answers: SharedTrace | None = None,
    ) -> None:
        """`source`: the trace that it reads, which others fill, and its reader; None: rows come to it alone.

        `answers`: the trace in which others read its answers; the caller of `advance` inserts them. None: it
        keeps them itself, or needs none.
        """
        self.kw = kw
        self.vw = vw
        self.guards = guards
        self.aggregate = aggregate
        self.words = kw + aggregate.words
        self.columns = kw + vw + 2
        """The columns of rows that come in, time and difference included."""
        self._is_sum = isinstance(aggregate, Accumulation) or (
            isinstance(aggregate, Aggregates)
            and (not aggregate.parts or (vw == 0 and all(kind == "count" for kind, _ in aggregate.parts)))
        )
        self.input = Trace(kw, vw, guards) if source is None else source[0]
        self.output = Trace(kw, aggregate.words, guards) if answers is None else answers
        self._reader = None if source is None else source[1]
        if self._reader is not None:
            self._reader.asks_corners = self._is_sum
        elif guards & (guards - 1) != 0:
            # Needed only with several chains: with one, rows in its own trace are before new rows, wherever
            # they were advanced to.
            self.input.asks_corners = self._is_sum
        self._own_reader: Reader | None = None
        if answers is not None and not self._is_sum:
            self._own_reader = answers.read("its own answers", by_position=False)
        self._waiting = WaitingRows(kw + vw + 2, guards)
        self._pending = PendingTimes(kw, guards)
        self._nothing: Int64s = np.empty((self.words + 2, 0), np.int64)
        self._show_key: ShowRow = show_words
        self._names: tuple[str, ...] = ()
        self.keeps_answers = answers is None and not self._is_sum
        self._shape = np.array([kw, vw, guards, aggregate.words, -1, 0], np.int64)
        self._parts = np.zeros((2, 0), np.int64)
        self._formulas: Int64s
        """`_parts`, or those with a line more, in which the kernel notes that some answer does not fit."""
        self._least_shape: Int64s | None = None
        self.fails = False
        """True if groups whose sums do not fit become rows of failures; otherwise they are errors."""
        self._failed: list[FailedGroup] = []
        self._portions: Iterator[tuple[Int64s, Int64s]] | None = None  # between `advance` and `work`
        """Rows that are complete, in portions, each with the frontier behind it."""
        self._is_plain = True
        """False once a row was there less than not at all, or so often that sums may leave 64 bits."""
        self.rows_walked = 0
        """The number of rows of groups that it looked at to find the first ones; see `FirstRows`."""
        self._describe(aggregate)
        self._prepare()

    def _describe(self, aggregate: Reduction) -> None:
        """Set what kernels are to do, in the form that they take."""
        kw, vw, guards = self.kw, self.vw, self.guards
        if isinstance(aggregate, FirstRows):
            assert self._reader is None, "an arrangement has another order"
            assert aggregate.width == vw and aggregate.offset >= 0 and aggregate.limit > 0
            self._shape, self._levels = aggregate.shape(kw, guards), aggregate.levels()
        if isinstance(aggregate, Accumulation):
            assert vw == 1
            self._parts, self._shape[5] = aggregate.table(), 1
        self._formulas = self._parts
        if isinstance(aggregate, Accumulation) and aggregate.may_overflow:
            self._formulas = np.concatenate([self._parts, np.zeros((1, aggregate.words), np.int64)])
        if isinstance(aggregate, Aggregates):
            parts = [(_KINDS[kind], word if kind != "count" else 0) for kind, word in aggregate.parts]
            assert all(kind == COUNT or 0 <= word < vw for kind, word in parts)
            self._parts = np.array(parts, np.int64).reshape(-1, 2).T.copy()
            if vw == 1 and parts in ([(LEAST, 0)], [(GREATEST, 0)]):
                self._least_shape = np.array([kw, guards, 0 if parts[0][0] == LEAST else -1, -1], np.int64)
            self._formulas = self._parts

    def _prepare(self) -> None:
        """Compile what `_reduce` will call, unless it is in the cache."""
        if self._least_shape is not None:
            prepare(reduce_least, "ttttll")
        elif self._is_sum:
            prepare_sums()
        elif isinstance(self.aggregate, Aggregates):
            prepare(reduce_groups, "ttttllt")
        elif isinstance(self.aggregate, FirstRows):
            prepare(reduce_first, "ttttlltt")
        else:
            prepare(collect_groups, "ttttll")
            if isinstance(self.aggregate, Percentiles):
                prepare(select, "tttltll")

    def show_rows(self, key: ShowRow, row: ShowRow, answer: ShowRow, names: Sequence[str] = ()) -> None:
        """Set how messages show keys, rows and answers; `names`: what they call the aggregates."""
        self._show_key, self._names = key, tuple(names)
        self._waiting.show = self.input.show = row
        self.output.show = answer

    def recv(self, port: int, parts: list[Part]) -> None:
        """Let rows int64[kw + vw + 2, n] wait for their times."""
        if len(parts) == 1:
            self._waiting.add(parts[0])
        else:
            self._waiting.take_over(parts)

    def recv_pending(self, pairs: Int64s) -> None:
        """Let answers be corrected at these pairs (key, time), sorted, different; the array is kept."""
        self._pending.add(pairs)

    def advance(self, *frontiers: Int64s) -> None:
        """Let `work` correct the output at every time that is complete now.

        Requires: every time of the frontier is ≥ one of the last; `work` has returned None.
        """
        ready = self._waiting.take_ready(frontiers[0])
        self._portions = portions(ready, self.kw, self.guards, frontiers[0])

    def work(self) -> Int64s | None:
        """Return corrections, sorted and consolidated: mostly all of them, or one portion after another if
        keys have rows of very many epochs. If others read the answers, the driver inserts each portion
        before it asks for the next.

        Do not write to the array, which is also part of the output's history.
        """
        if self._portions is None:
            return None
        for rows, until in self._portions:
            # Take pending times for each portion: an earlier portion may have met rows of a later one,
            # which a trace that others fill has already, and then answers at their times are pending.
            return self._correct(rows, self._pending.take_ready(until), until)
        self._portions = None
        return None

    def _correct(self, ready: Int64s, pending: Int64s, frontier: Int64s) -> Int64s:
        """Return corrections for rows and times that are complete now, and bring both traces up to
        `frontier`.
        """
        corrections = self._nothing
        if ready.shape[1] or pending.shape[1]:
            try:
                corrections, pended = self._reduce(ready, pending, frontier)
            except OverflowError:
                if not self.fails:
                    raise self._overflow(ready, pending) from None
                try:
                    corrections, pended, failed = reduce_apart(
                        ready, pending, self.input.lines, frontier, self._shape, self._formulas
                    )
                except OverflowError:
                    raise self._overflow(ready, pending) from None
                self._failed += failed
            if pended.shape[1]:
                self._pending.add(pended)
            if self._reader is None:
                self.input.insert(ready)
            if self.keeps_answers:
                self.output.insert(corrections)
        self.set_since(frontier)
        return corrections

    def add_failed(self, failed: Sequence[FailedGroup]) -> None:
        """Let `take_failed` return these, too."""
        self._failed += failed

    def take_failed(self) -> list[FailedGroup]:
        """Return the changes of groups without an answer since the last call."""
        failed, self._failed = self._failed, []
        return failed

    def set_since(self, *frontiers: Int64s) -> None:
        """Ask, from now on, only about times ≥ an element of the frontier; traces may forget the others."""
        (frontier,) = frontiers
        if self._reader is None:
            self.input.set_since(frontier)
        else:
            self._reader.set_frontier(frontier)
        if self.keeps_answers:
            self.output.set_since(frontier)
        elif self._own_reader is not None:
            self._own_reader.set_frontier(frontier)

    def let_look(self, look: Callable[[], None]) -> None:
        """Call `look` before a merge of a trace that it writes or reads begins: see `Trace.look`."""
        if self._reader is None:
            self.input.look = look
        else:
            self._reader.look = look
        if self.keeps_answers:
            self.output.look = look
        elif self._own_reader is not None:
            self._own_reader.look = look

    @property
    def reads(self) -> bool:
        """True if others fill the trace that it reads."""
        return self._reader is not None

    def kernel(self) -> tuple[Literal["least", "sums"] | None, Int64s, Int64s]:
        """Return the kernel that does the work, its `shape` (written to as `exact` changes), and its argument
        for the aggregates. The kernel is None if it is another one, or Python.
        """
        if self._least_shape is not None:
            return "least", self._least_shape, np.zeros((0, 0), np.int64)
        return "sums" if self._is_sum else None, self._shape, self._parts

    @property
    def traces(self) -> list[Trace]:
        """The traces that it writes."""
        return [self.output] if self._reader is not None else [self.input, self.output]

    def rebase(self, by: Rebase) -> None:
        """Count words from a later epoch. The vertex moves `traces`; what it reads is moved elsewhere."""
        self._waiting.rebase(by)
        self._pending.rebase(by)

    def symbols(self, mark: Mark) -> None:
        """Show all words that it keeps: rows and keys that wait, failed keys, and its own traces."""
        self._waiting.symbols(mark)
        self._pending.symbols(mark)
        if self._failed:
            mark.words(np.array([each.key for each in self._failed], np.int64).T.copy())
        for trace in self.traces:
            trace.symbols(mark)

    def hides_words(self, waits: bool) -> bool:
        """Return True while rows wait whose components are those of symbols. Once none waits, every symbol in
        an answer is one that the stage before still has, or its answer stays for ever.
        """
        has_symbols = isinstance(self.aggregate, Accumulation) and self.aggregate.symbols
        return has_symbols and (waits or self.needs().shape[0] > 0)

    def needs(self) -> Int64s:
        """Return the minimal times of rows and keys that wait, ascending."""
        times = self._waiting.times(_NO_TIMES) if self._waiting.rows else _NO_TIMES
        return self._pending.times(times) if self._pending.has_any else times

    def check_invariants(self) -> None:
        """Assert the invariants of both traces, of pending times, and of rows that wait."""
        self.input.check_invariants()
        self.output.check_invariants()
        self._pending.check_invariants()
        self._waiting.check_invariants()

    def _reduce(self, ready: Int64s, pending: Int64s, frontier: Int64s) -> tuple[Int64s, Int64s]:
        """Return corrections, and the pairs (key, time) that are pending from now on."""
        if self._reader is not None:
            exact = self._reader.exact_from
            self._shape[4] = exact
            if self._least_shape is not None:
                self._least_shape[3] = exact
        if self._is_sum:
            return reduce_sums(ready, pending, self.input.lines, frontier, self._shape, self._formulas)
        tables = self.input.lines, self.output.lines
        if self._least_shape is not None:
            return reduce_least(ready, pending, *tables, frontier, self._least_shape)
        assert not isinstance(self.aggregate, Accumulation)
        if isinstance(self.aggregate, Aggregates):
            return reduce_groups(ready, pending, *tables, frontier, self._shape, self._parts)
        if isinstance(self.aggregate, FirstRows):
            return self._first(self.aggregate, ready, pending, frontier)
        if isinstance(self.aggregate, SweepFunction) and self._is_little(ready, pending):
            return swept_near(ready, tables, frontier, self.aggregate, (self.kw, self.vw, self.guards))
        if isinstance(self.aggregate, Percentiles) and self._is_plain and self._is_alone(ready, pending):
            changes = self.aggregate.changes(ready, self.input, self.output.lines, self.kw, self.guards)
            if changes is not None:
                return changes, np.empty((self.kw + 1, 0), np.int64)
        groups, rows, answers, pended = collect_groups(ready, pending, *tables, frontier, self._shape)
        self._is_plain &= not isinstance(self.aggregate, Percentiles) or are_plain(rows[-1])
        if isinstance(self.aggregate, SweepFunction | WindowFunctions | GroupAnswers):
            return swept(groups, rows, answers, self.aggregate, (self.kw, self.guards)), pended
        return self._call(groups, rows, answers, self.aggregate), pended

    def _is_little(self, ready: Int64s, pending: Int64s) -> bool:
        """Return True if it pays to look only at rows near the new ones, instead of at their whole groups."""
        return (
            self._reader is None and not pending.shape[1] and ready.shape[1] * NEAR_SHARE <= self.input.rows
        )

    def _is_alone(self, ready: Int64s, pending: Int64s) -> bool:
        """Return True if few rows change, all in one epoch, and outside of loops, where all rows before them
        count.
        """
        is_straight = self.guards & (self.guards - 1) == 0
        return is_straight and self._is_little(ready, pending) and len(set(ready[-2].tolist())) == 1

    def _first(
        self, first: FirstRows, ready: Int64s, pending: Int64s, frontier: Int64s
    ) -> tuple[Int64s, Int64s]:
        """Reduce as `_reduce` does. The kernel reports symbols whose ranks decide, and runs again with
        these.
        """
        tables, ranks = (self.input.lines, self.output.lines), np.empty((2, 0), np.int64)
        while True:
            corrections, pended, unknown, walked = reduce_first(
                ready, pending, *tables, frontier, self._shape, self._levels, ranks
            )
            self.rows_walked += walked
            if unknown.shape[0] == 0:
                return corrections, pended
            assert first.rank_of is not None
            symbols = np.unique(np.concatenate([ranks[0], unknown]))
            ranks = np.array([symbols, first.rank_of(symbols)], np.int64)

    def _overflow(self, ready: Int64s, pending: Int64s) -> Exception:
        """Return the error for a group that could not be reduced: find it among all that were to be."""
        kw = self.kw
        # A trace that others fill has the ready rows already.
        words = self.input.words()
        if self._reader is None:
            words = np.concatenate([words, ready], axis=1)
        if kw:
            keys = {tuple(key) for part in (ready, pending) for key in part[:kw].T.tolist()}
            words = words[:, [tuple(key) in keys for key in words[:kw].T.tolist()]]
        if isinstance(self.aggregate, Aggregates):
            for index, (kind, _) in enumerate(self.aggregate.parts):
                if kind == "count":
                    name = self._names[index] if self._names else "the count"
                    error = count_overflow(words, kw, name, self._show_key)
                    if error is not None:
                        return error
        if isinstance(self.aggregate, Accumulation):
            for (what, at, gate, *rest), name in self._named(self.aggregate):
                limits, error = limits_of(what, *rest), None
                if limits is None:
                    continue
                size = {"limbs": limits.limbs, "digits": limits.digits}
                if limits.is_mean:
                    parts = (at, gate, limits.more)
                    error = mean_overflow(words, kw, parts, name, self._show_key, **size)
                else:
                    error = components_overflow(words, kw, at, name, self._show_key, **size)
                if error is not None:
                    return error
        return row_overflow([words], self.input.show)

    def _named(self, aggregate: Accumulation) -> Iterator[tuple[tuple[int, int, int, int, int], str]]:
        """Return the formula of each word of the answer, and its name in messages."""
        names = self._names or tuple(f"word {index} of the answer" for index in range(aggregate.words))
        return zip(aggregate.formulas, names, strict=True)

    def _call(self, groups: Int64s, rows: Int64s, answers: Int64s, aggregate: GroupFunction) -> Int64s:
        """Call the function for every group, and return the corrections that follow."""
        kw, guards = self.kw, self.guards
        corrections: list[tuple[int, ...]] = []
        columns = list(zip(*rows[:-1].tolist(), strict=True)) if self.vw else [()] * rows.shape[1]
        members = list(zip(columns, rows[-1].tolist(), strict=True))
        history = [(tuple(row[:-2]), row[-2], row[-1]) for row in answers.T.tolist()]
        last: Row | None = None
        sent: list[tuple[Row, int, int]] = []
        for *words, time, first, stop, answer, answer_stop in groups.T.tolist():
            key = tuple(words)
            assert len(key) == kw
            if key != last:
                last, sent = key, history[answer:answer_stop]
            change: dict[Row, int] = {}
            if stop > first:
                for row in aggregate.function(key, members[first:stop]):
                    change[row] = change.get(row, 0) + 1
            for row, at, diff in sent:
                if ((time | guards) - at) & guards == guards:
                    change[row] = change.get(row, 0) - diff
            for row, diff in change.items():
                if diff:
                    sent.append((row, time, diff))
                    corrections.append((*key, *row, time, diff))
        return sort_consolidate(np.array(corrections, np.int64).reshape(-1, self.words + 2).T.copy())


def portions(ready: Int64s, key_words: int, guards: int, frontier: Int64s) -> Iterator[tuple[Int64s, Int64s]]:
    """Return pairs (rows, frontier): rows of `ready`, sorted, and the frontier up to which they are complete.

    A reduce of a key at all its ready times at once meets each of its rows at each of them. Times of loops
    need that: all rows at earlier times count. But a history of thousands of epochs, appended in one call,
    would cost its square. In portions, each is like a frontier that has moved by a few epochs only, and the
    rows before it are one sum in the trace. A portion costs a call of the kernel and an insert, so there
    are only as many as it takes for each row to meet about `TIMES_AT_ONCE` times of its key. If keys have few
    times each, as they nearly always do, there is one.

    ready      int64[key_words + · + 2, n]: sorted rows, with their times in the last line but one
    frontier   the one up to which all rows are complete; the last pair has it
    Ensures: every row is in one portion, beyond the frontiers before it and not beyond its own.
    """
    rows, column = ready.shape[1], ready.shape[0] - 2
    count = 1
    if rows >= TIMES_AT_ONCE and guards & (guards - 1) == 0:  # fewer rows have fewer times
        count += work_at_once(ready, key_words, column) // (TIMES_AT_ONCE * rows)
    if count > 1:
        times = np.unique(ready[column])
        count = min(count, len(times))
    if count == 1:
        return iter(((ready, frontier),))
    return _divided(ready, frontier, times[np.arange(1, count) * len(times) // count])


def _divided(ready: Int64s, frontier: Int64s, begins: Int64s) -> Iterator[tuple[Int64s, Int64s]]:
    """Cut `ready` before the times `begins`."""
    column, count = ready.shape[0] - 2, len(begins) + 1
    places = np.searchsorted(begins, ready[column], side="right")
    order = np.argsort(places, kind="stable")
    stops = np.cumsum(np.bincount(places, minlength=count))
    start = 0
    for index, stop in enumerate(stops.tolist()):
        until = begins[index : index + 1] if index + 1 < count else frontier
        yield np.take(ready, order[start:stop], axis=1), until  # line by line, as kernels read them
        start = stop
