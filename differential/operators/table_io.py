"""Collections at the edge of a dataflow: Arrow tables out. How they come in: `edge/table_in.py`.

    TableConstant  rows that are there from the first epoch on
    TableOut   update batches → a log of complete epochs (columns, `epoch`, `diff`), and the accumulated rows

The log keeps each complete epoch's consolidated changes until they are forgotten, and all rows for snapshots
(`edge/collected.py`), so that a snapshot costs the collection and not its history.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from differential.columns.column_types import Int64s
from differential.columns.schema import Schema
from differential.thresholds import PACKED_ROWS_MIN, UNREAD_BATCH_ROWS_MAX
from progress.times.anchor import EPOCH_MAX, Rebase
from progress.times.time_words import TimeCode
from timely.dictionaries import Mark
from timely.limits import HELD_EPOCHS_MAX, UNREAD_ROWS_MAX
from timely.operators.failures import FailureLog
from timely.operators.outputs.output_log import OlderChanges, OutputLog, check_kept
from timely.operators.outputs.pieces import Cut, PieceRequest
from timely.wire.arrow import int64_array
from timely.wire.batch import Batch

from ..columns.rows import Row, encode_rows, row_shower
from ..columns.update_batch import UpdateBatch, parts_of
from ..columns.worker_symbols import SYMBOLS
from ..kernels.overflow import SMALL_BITS
from ..kernels.rows.sort import PackedRows, are_modest, sort_parts, unpacked
from ..trace.accumulated import Accumulated
from ..trace.run import Run
from .edge.answer_rows import AnswerRows, negated
from .edge.collected import Collected
from .edge.kept_changes import KeptChanges, by_time
from .edge.older_rows import older_rows
from .edge.row_digests import RowDigests
from .edge.table_pieces import DIFF, EPOCH, TablePieces
from .waiting.waiting_rows import WaitingRows

__all__ = ["DIFF", "EPOCH", "TableConstant", "TableLog", "TableOut"]


_MODEST: Final = 1 << SMALL_BITS
"""Bound of the multiplicities of few rows: their sums cannot leave 64 bits."""


class TableConstant:
    """Rows that are there from the first epoch on, once each: few as tuples, or a table."""

    def __init__(self, schema: Schema, rows: Sequence[Row] | pa.Table, digest: str = "") -> None:
        """`digest`: stands for the rows of a table in the fingerprint of the dataflow."""
        self._schema = schema
        self._rows = rows
        self._digest = digest

    def describe(self) -> str:
        """Return the columns and rows, as text."""
        rows = self._digest if isinstance(self._rows, pa.Table) else repr(list(self._rows))
        return f"constant ({self._schema}) {rows}"

    def batch(self, word: int) -> UpdateBatch:
        """Return the rows at `word`."""
        width = self._schema.width
        if isinstance(self._rows, pa.Table):
            words = np.empty((width + 2, self._rows.num_rows), dtype=np.int64)
            self._schema.encode_into(words, self._rows, SYMBOLS, "constant")
        else:
            words = np.empty((width + 2, len(self._rows)), dtype=np.int64)
            words[:width] = encode_rows(self._schema, self._rows, SYMBOLS)
        words[width] = word
        words[width + 1] = 1
        return UpdateBatch(words, self._schema.symbol_words)


class TableOut:
    """Makes logs of collections with the columns of `schema`.

    `is_repeatable`: False if the rows are no function of what comes in.
    """

    def __init__(self, schema: Schema, is_repeatable: bool = True) -> None:
        self.schema = schema
        self._is_repeatable = is_repeatable

    def describe(self) -> str:
        """Return the columns, as text."""
        return f"table ({self.schema})"

    def arrow_schema(self) -> pa.Schema:
        """Return the columns that clients receive, beside epoch and diff."""
        return self.schema.to_arrow()

    def base_form(self) -> tuple[str, list[object]]:
        """Return the form of the rows for a base, and its details: `differential.plan.durable.summing`."""
        columns = [[column.name, str(column.type)] for column in self.schema]
        return "differential.plan.durable.summing:summed_rows", ["", columns, [], b"", [], False]

    def new_log(self) -> OutputLog:
        """Return an empty log."""
        return TableLog(self.schema, self._is_repeatable)


class TableLog:
    """The log of one output on one worker: changes by epoch, and all rows."""

    def __init__(self, schema: Schema, is_repeatable: bool = True) -> None:
        self._schema = schema
        self._is_repeatable = is_repeatable
        self._digests: RowDigests | None = None
        self._open = WaitingRows(schema.width + 2, 0)
        self._few: list[Int64s] = []
        """Few rows, as they came; they are sorted when somebody reads."""
        self._few_rows = 0
        self._changes: dict[int, KeptChanges] = {}
        self._epochs: list[int] = []  # the keys of `_changes`, ascending
        self._rows: Collected | None = None
        self._forgotten_before = 0
        self._complete = 0
        self._last = 0
        """The epoch behind the last one that has changes."""
        self._pieces = TablePieces(schema)
        self._code: TimeCode | None = None
        self._failures: FailureLog | None = None
        self._unanswered: list[tuple[int, KeptChanges]] = []
        """Changes of epochs without an answer, by epoch: the next epoch with an answer has them all."""
        self._has_base_unanswered = False  # those of epochs before `_kept_here_from`
        self._kept_here_from = 0
        """The first epoch whose changes are kept as they come in; see `go_on`."""
        self._older: OlderChanges | None = None
        """The changes of earlier epochs, until somebody wants them."""
        self._answer: AnswerRows | None = None
        """The rows that are being written into a log."""

    def start(self, code: TimeCode, failures: FailureLog | None = None) -> None:
        """Learn how words pack epochs, and which epochs have no answer."""
        self._code, self._failures = code, failures
        self._open = WaitingRows(self._schema.width + 2, code.guards)
        self._rows = Collected(self._schema.width, code.guards)
        self._open.show = self._rows.show = row_shower(self._schema, SYMBOLS)

    def add(self, epoch: int, batch: Batch) -> None:
        """Take in rows at or after `epoch`."""
        del epoch
        if isinstance(batch, UpdateBatch) and not self._open.rows and self._few_rows <= UNREAD_ROWS_MAX:
            words = batch.words
            if words.shape[1] <= UNREAD_BATCH_ROWS_MAX and are_modest(words[-1], _MODEST):
                self._few.append(words)
                self._few_rows += words.shape[1]
                if self._digests is not None:
                    self._digests.add(words)
                return
        self._gather()
        for words in parts_of(batch):
            if self._digests is not None:
                self._digests.add(words)
            self._open.add(words)

    def complete(self, epoch: int) -> None:
        """Learn that all rows before `epoch` are here, and consolidate them into one block of changes per
        epoch.

        A reader does this later for few rows, for many epochs together. Nothing can go wrong then: there are
        too few rows, with too small multiplicities, to leave 64 bits.
        """
        self._complete = epoch
        self.tidy()
        if self._few_rows > UNREAD_ROWS_MAX:
            self._gather()
        if self._open.rows:
            self._put_in_order()
        assert self._rows is not None
        self._rows.settle_many()

    @property
    def is_settled(self) -> bool:
        """True if only few rows wait, here and for snapshots."""
        is_few = self._few_rows <= UNREAD_ROWS_MAX and not self._open.rows
        return is_few and (self._rows is None or not self._rows.has_many)

    def note_complete(self, epoch: int) -> None:
        """Learn that all rows before `epoch` are here, and are few."""
        self._complete = epoch

    def _gather(self) -> None:
        """Move few rows to where many wait."""
        if self._few:
            few, self._few, self._few_rows = self._few, [], 0
            self._open.add(few[0] if len(few) == 1 else np.concatenate(few, axis=1))

    def settle(self) -> None:
        """Sort all complete rows, since somebody reads, or times are to count from a later epoch."""
        if self._digests is not None:
            self._digests.settle()
        if self._few or self._open.rows:  # more epochs may be complete than at the last read
            self._gather()
            self._put_in_order()
        if self._unanswered:
            self._answer_again(self._complete)

    def _put_in_order(self) -> None:
        self._keep_complete()
        if self._unanswered:  # also if all rows that have come since cancel
            self._answer_again(self._complete)

    def _keep_complete(self) -> None:
        """Keep the changes of complete epochs, epoch by epoch."""
        epoch = self._complete
        assert self._code is not None and self._rows is not None
        ends = not self._code.holds(epoch)  # if so, the epoch is after every row
        bound = np.array([] if ends else [self._code.pack((epoch,))], dtype=np.int64)
        rows = self._open.take_in_order(bound)
        if isinstance(rows, PackedRows) and rows.rows >= PACKED_ROWS_MIN:
            run = Run.from_sorted(rows, self._code.guards)
            if (time := run.only_time) is not None:
                self._keep(time, run)
                self._rows.add_run(run, np.array([time]) if ends else bound)
                return
            rows = run.words()  # of several times, which are kept separately
        words = unpacked(rows)
        if words.shape[1] == 0:
            return
        for time, block in by_time(words):
            self._keep(time, block)
            self._rows.add(block, np.array([time]) if ends else bound)

    def _keep(self, time: int, changes: Int64s | Run) -> None:
        """Keep, for readers, the changes at a time word."""
        assert self._code is not None
        done = self._code.epoch_of(time)
        if self._failures is not None:
            if self._unanswered:
                self._answer_again(done)
            if self._unanswered or self._failures.good_from(done, done + 1) is None:
                self._unanswered.append((done, KeptChanges(changes)))
                self._has_base_unanswered |= done < self._kept_here_from
                self._merge_unanswered()
                self._answer_again(done + 1)
                return
        self._keep_at(done, KeptChanges(changes))

    def _merge_unanswered(self) -> None:
        """Sum up changes of epochs without an answer, which no reader tells apart. So however long something
        fails, about as many rows are kept as do not cancel. Cost: each row is sorted once for each doubling
        of the rows.
        """
        while len(self._unanswered) > 1 and self._unanswered[-2][1].rows <= 2 * self._unanswered[-1][1].rows:
            (_, first), (epoch, second) = self._unanswered[-2:]
            words = np.concatenate([first.words(), second.words()], axis=1)
            words[-2] = words[-2, -1]
            try:
                summed = sort_parts([words])
            except OverflowError:
                return  # no error: later changes may bring the sum back below 64 bits
            del self._unanswered[-2:]
            if summed.shape[1]:
                self._unanswered.append((epoch, KeptChanges(summed)))
            elif self._unanswered:
                self._unanswered[-1] = epoch, self._unanswered[-1][1]  # up to here there is no answer

    def _keep_at(self, done: int, changes: KeptChanges) -> None:
        """Keep the changes of an epoch that has an answer."""
        if done < self._kept_here_from:
            return
        assert not self._epochs or done > self._epochs[-1], "epochs are complete in order"
        self._epochs.append(done)
        self._changes[done] = changes
        self._last = done + 1

    def _answer_again(self, stop: int) -> None:
        """Give the next epoch that has an answer, before `stop`, all changes of the earlier ones without."""
        if not self._unanswered:
            return
        assert self._failures is not None
        # The log of failures may have forgotten earlier epochs, and that these had no answer.
        last = max(self._unanswered[-1][0], self._forgotten_before)
        good = self._failures.good_from(last, stop)
        if good is None:
            return
        summed = sort_parts(_at_one_time([changes.words() for _, changes in self._unanswered]))
        self._unanswered = []
        if self._has_base_unanswered and good >= self._kept_here_from:  # and the base has what was shown
            self._last = self._forgotten_before = good + 1
        elif summed.shape[1]:
            self._keep_at(good, KeptChanges(summed))
        self._has_base_unanswered = False

    def changes(self, start: int, stop: int) -> pa.Table:
        """Return the columns, `epoch` and `diff`; epochs ascending."""
        self.settle()
        check_kept(start, self._forgotten_before)
        self._fetch_older(start)
        epochs = self._epochs_of(start, stop)
        blocks = [self._changes[epoch].words() for epoch in epochs]
        words = _joined(blocks, self._schema.width)
        table = self._schema.decode(words, SYMBOLS)
        lengths = [block.shape[1] for block in blocks]
        table = table.append_column(EPOCH, int64_array(np.repeat(np.array(epochs, dtype=np.int64), lengths)))
        return table.append_column(DIFF, int64_array(words[-1]))

    def snapshot(self, epoch: int) -> pa.Table:
        """Return the rows of the collection at `epoch`, with the column `diff` for their multiplicities.

        Cost: that of all rows, and of the changes after `epoch`, which are subtracted.
        """
        words = self._collected(epoch).all()
        check_kept(epoch + 1, self._forgotten_before)
        table = self._schema.decode(words, SYMBOLS)
        return table.append_column(DIFF, int64_array(words[-1]))

    def piece(self, request: PieceRequest) -> Cut:
        """Return some of the rows of `changes` or `snapshot`.

        Cost: for the first piece of a collection, that of a snapshot; otherwise that of the piece, and a
        little for each epoch.
        """
        start = request.stop if request.is_snapshot else request.start
        self.settle()
        check_kept(start, self._forgotten_before)
        self._fetch_older(start)
        if request.is_snapshot:
            return self._pieces.of_collection(request, self._collected)
        epochs = self._epochs_of(request.start, request.stop)
        return self._pieces.of_changes(request, epochs, [self._changes[epoch] for epoch in epochs])

    @property
    def rows_kept(self) -> int:
        """The rows that it holds, those that cancel included."""
        return self._few_rows + self._open.rows + (0 if self._rows is None else self._rows.rows)

    def extent(self) -> tuple[int, int]:
        """Return the first epoch that is not forgotten, and the epoch behind the last one that has
        changes.
        """
        self.settle()
        return self._forgotten_before, self._last

    def _collected(self, epoch: int) -> Accumulated:
        """Return the rows at `epoch`: all of them, less later changes."""
        assert self._rows is not None
        self.settle()
        self._fetch_older(epoch + 1)
        return self._rows.accumulated([negated(changes.words()) for changes in self._behind(epoch)])

    def _behind(self, epoch: int) -> list[KeptChanges]:
        """Return the complete changes behind an epoch that has an answer."""
        later = [self._changes[done] for done in self._epochs_of(epoch + 1, EPOCH_MAX + 1)]
        return later + [changes for _, changes in self._unanswered]  # later than all with an answer

    def held(self, start: int, stop: int) -> tuple[int, int]:
        """Return about how many rows the changes of these epochs have, and how many bytes they take. Few rows
        that nobody has sorted yet count as if all of them were of these epochs.
        """
        epochs = self._epochs_of(start, stop)
        some = [self._changes[epoch] for epoch in epochs[:: max(1, len(epochs) // HELD_EPOCHS_MAX)]]
        rows, size = sum(one.rows for one in some), sum(one.size_bytes for one in some)
        share = len(epochs) / max(1, len(some))
        row_bytes = 8 * (self._schema.width + 2)
        return round(rows * share) + self._few_rows, round(size * share) + self._few_rows * row_bytes

    def forget(self, stop: int) -> None:
        """Drop changes of epochs before `stop`."""
        self.settle()
        count = bisect_left(self._epochs, stop)
        for epoch in self._epochs[:count]:
            del self._changes[epoch]
        del self._epochs[:count]
        self._forgotten_before = max(self._forgotten_before, stop)

    def go_on(self, epoch: int, older: OlderChanges) -> None:
        """See `OutputLog`. The older changes stay in the store until somebody asks for them."""
        self._kept_here_from, self._forgotten_before = epoch, older.kept_from
        self._last = max(older.before, older.kept_from)
        self._older = older

    def _fetch_older(self, start: int) -> None:
        """Get the changes from before a restart, if a reader wants some from `start` on."""
        older = self._older
        if older is None or start >= min(self._kept_here_from, older.before):
            return
        self._older = None
        words = older_rows(older, self._schema, self._forgotten_before, self._kept_here_from)
        changes = {done: KeptChanges(block) for done, block in by_time(words)} if words.shape[1] else {}
        self._changes = {**changes, **self._changes}
        self._epochs = [*changes, *self._epochs]

    def written(self, start: int, stop: int) -> Iterator[tuple[int, Batch]]:
        """Yield the changes of these epochs, packed where they are many."""
        self.settle()
        self._fetch_older(start)
        for epoch in self._epochs_of(start, stop):
            changes = self._changes.get(epoch)
            if changes is not None:  # else it was forgotten meanwhile
                for batch in changes.batches(self._schema):
                    yield epoch, batch

    def answer(self, epoch: int) -> Iterator[Batch]:
        """See `OutputLog`."""
        self.settle()
        check_kept(epoch + 1, self._forgotten_before)
        self._fetch_older(epoch + 1)
        assert self._rows is not None
        self._answer = AnswerRows(self._schema, *self._rows.parts(), self._behind(epoch))
        yield from self._answer.batches()
        self._answer = None

    def tidy(self) -> None:
        """Drop a collection that was laid out for readers that have not come back."""
        self._pieces.tidy()

    def before(self, epoch: int) -> Iterator[Batch]:
        """Yield the rows at the epoch before this one, packed where they are many."""
        words = self._collected(epoch - 1).all()
        return KeptChanges(words).batches(self._schema) if words.shape[1] else iter(())

    def stand_in(self, older: OlderChanges, epoch: int) -> None:
        """See `OutputLog`."""
        words = older_rows(older, self._schema, -1, epoch)
        self._forgotten_before, self._complete = older.kept_from, epoch
        self._last = older.kept_from
        assert self._rows is not None
        for done, block in by_time(words) if words.shape[1] else ():
            if done >= older.kept_from:
                self._keep_at(done, KeptChanges(block))
        words[-2] = 0
        self._rows.add(sort_parts([words]), np.zeros(1, np.int64))

    def can_take_over(self, other: OutputLog) -> bool:
        """Return True if `other` has the same columns."""
        return isinstance(other, TableLog) and other._schema == self._schema

    def take_over(self, other: OutputLog, epoch: int) -> bool:
        """Go on at `epoch` where `other` stops; the difference counts as a change of `epoch`.

        Cost: that of all rows of both.
        """
        if not isinstance(other, TableLog) or not self.can_take_over(other):
            return False
        assert self._rows is not None and other._rows is not None and self._code is not None
        self.settle()
        other.settle()
        other._fetch_older(0)
        assert not other._epochs or other._epochs[-1] < epoch, "nothing came there from `epoch` on"
        without_answer = [negated(changes.words()) for _, changes in other._unanswered]
        before = other._rows.accumulated(without_answer).all()
        # Compare with all rows here up to `epoch`, and including it if it is complete already.
        unanswered = [each for each in self._unanswered if each[0] > epoch]
        behind = [
            *(self._changes[done] for done in self._epochs if done > epoch),
            *(c for _, c in unanswered),
        ]
        later_ones = [negated(changes.words()) for changes in behind]
        difference = self._rows.accumulated([negated(before), *later_ones]).all()
        difference[-2] = self._code.pack((epoch,)) if self._code.holds(epoch) else 0
        later = {done: block for done, block in self._changes.items() if done > epoch}
        self._unanswered = unanswered
        good: int | None = epoch
        if self._failures is not None:
            good = self._failures.good_from(epoch, max(self._complete, epoch + 1))
        if difference.shape[1] and self._complete > epoch:
            if good is None:
                self._unanswered = [(epoch, KeptChanges(difference)), *unanswered]
            else:  # `good` may be a later epoch, and have changes already
                parts = [later.pop(good).words(), difference] if good in later else [difference]
                if (summed := sort_parts(_at_one_time(parts))).shape[1]:
                    later[good] = KeptChanges(summed)
        elif difference.shape[1]:
            # Rows at `epoch` belong to the same change; until they come, the rows are those of `other`.
            self._open.add(difference)
            self._rows = Collected(self._schema.width, self._code.guards)
            self._rows.show = self._open.show
            self._rows.add(before, np.zeros(1, np.int64))
        self._changes = {**other._changes, **later}
        self._epochs = sorted(self._changes)
        self._last = max([other._last, *(done + 1 for done in self._epochs)])
        self._pieces = TablePieces(self._schema)
        self._forgotten_before = other._forgotten_before
        return True

    def rebase(self, by: Rebase) -> None:
        """Move rows of open epochs, and all rows; changes of complete epochs have plain epoch numbers."""
        self._gather()
        self._open.rebase(by)
        if self._rows is not None:
            self._rows.rebase(by)

    def symbols(self, mark: Mark) -> None:
        """Show the words of rows of open epochs, of changes, of all rows, and of rows read in pieces."""
        self._open.symbols(mark)
        for few in self._few:
            mark.words(few[:-2])
        self._pieces.symbols(mark)
        for changes in (*self._changes.values(), *(each for _, each in self._unanswered)):
            changes.symbols(mark)
        if self._rows is not None:
            self._rows.symbols(mark)
        if self._answer is not None:
            self._answer.symbols(mark)

    def keep_digests(self) -> bool:
        """Sum up digests from now on, if the rows are a function of what comes in."""
        assert self._code is not None
        if self._is_repeatable:
            self._digests = RowDigests(self._code)
        return self._is_repeatable

    def take_digests(self, stop: int) -> list[tuple[int, int]]:
        """See `OutputLog.take_digests`."""
        assert self._digests is not None
        return self._digests.take(stop)

    def _epochs_of(self, start: int, stop: int) -> list[int]:
        """Return the complete epochs `start` ≤ epoch < `stop` that have changes."""
        return self._epochs[bisect_left(self._epochs, start) : bisect_left(self._epochs, stop)]


def _at_one_time(parts: Sequence[Int64s]) -> list[Int64s]:
    """Return copies of these rows with the time of the last one: they are read as changes of one epoch."""
    words = np.concatenate(parts, axis=1)
    words[-2] = words[-2, -1]
    return [words]


def _joined(blocks: list[Int64s], width: int) -> Int64s:
    if len(blocks) == 1:
        return blocks[0]
    return np.concatenate(blocks, axis=1) if blocks else np.empty((width + 2, 0), dtype=np.int64)
