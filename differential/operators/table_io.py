"""Collections at the edge of a dataflow: Arrow tables in, Arrow tables out.

    TableIn    columns → update batch at an epoch
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
from differential.thresholds import PACKED_ROWS_MIN
from progress.times.anchor import EPOCH_MAX, Rebase
from progress.times.time_words import TimeCode
from timely.dictionaries import Mark
from timely.errors import MisuseError
from timely.operators.capture import OutputLog, check_kept
from timely.operators.failures import FailureLog
from timely.operators.inputs.by_epoch import ByEpoch
from timely.operators.inputs.folded import Waiting
from timely.operators.inputs.plain_rows import PlainRow, PlainRows
from timely.operators.pieces import Cut, Wanted
from timely.wire.arrow import int64_array
from timely.wire.batch import Batch

from ..columns.rows import PlainWords, Row, encode_rows, row_shower
from ..columns.update_batch import UpdateBatch, parts_of
from ..columns.worker_symbols import SYMBOLS
from ..kernels.overflow import SMALL_BITS
from ..kernels.rows.sort import PackedRows, are_modest, sort_parts
from ..trace.accumulated import Accumulated
from ..trace.run import Run
from .between.imports import TableImport
from .edge.collected import Collected
from .edge.folding import folded
from .edge.kept_changes import KeptChanges
from .edge.table_pieces import DIFF, EPOCH, TablePieces
from .waiting.waiting_rows import WaitingRows

__all__ = ["DIFF", "EPOCH", "TableConstant", "TableIn", "TableLog", "TableOut", "by_epochs", "checked"]


_ROWS_FEW: Final = 64
"""So many rows of a batch are few."""

_MODEST: Final = 1 << SMALL_BITS
"""How often few rows are there, at most."""

_FEW_ROWS_MAX: Final = 2048


class TableIn:
    """Encodes tables for an input with the columns of `schema`."""

    converter = "differential.columns.client_tables:client_table"

    def __init__(self, schema: Schema, name: str) -> None:
        self.schema = schema
        self.name = name
        self._plain = PlainRows(schema.to_arrow())
        self._words = PlainWords(schema, SYMBOLS)

    def describe(self) -> str:
        """The columns."""
        return f"table ({self.schema})"

    def arrow_schema(self) -> pa.Schema:
        """What clients must send."""
        return self.schema.to_arrow()

    def as_import(self) -> TableImport:
        """The same rows, of a dataflow that exports them."""
        return TableImport(self.schema)

    def encode(self, table: pa.Table, diff: int | Int64s, epoch_word: int) -> UpdateBatch:
        """The rows of `table` at `epoch_word`, each `diff` times."""
        width = self.schema.width
        words = np.empty((width + 2, table.num_rows), dtype=np.int64)
        self.schema.encode_into(words, table, SYMBOLS, self.name)
        words[width] = epoch_word
        words[width + 1] = diff
        return UpdateBatch(words, self.schema.symbol_words)

    def encode_epochs(
        self, table: pa.Table, diff: int | Int64s, given: ByEpoch, words: Sequence[int]
    ) -> list[UpdateBatch]:
        """As `encode` of the rows of each of these epochs: values are encoded all together."""
        return by_epochs(self.encode(table, diff, 0), given, words)

    def encode_folded(self, table: pa.Table, diff: int | Int64s) -> list[Waiting]:
        """Many rows, in pieces that enter one by one, and take less memory until then."""
        return list(folded(self.schema, table, diff, SYMBOLS, self.name))

    def checked_rows(self, rows: object, diff: int) -> list[PlainRow]:
        """The plain rows that a client has sent; `MisuseError` if they are none."""
        del diff
        return checked(self._plain, rows, self.name)

    def encode_rows(self, rows: list[PlainRow], diffs: list[int], epoch_word: int) -> UpdateBatch:
        """As `encode` of a table of these checked rows, each as often as its diff says."""
        words = self._words.of(rows, [epoch_word] * len(rows), diffs)
        return UpdateBatch(words, self.schema.symbol_words)


def checked(known: PlainRows, rows: object, name: str) -> list[PlainRow]:
    """The plain rows that a client has sent to the input `name`; `MisuseError` if they are none."""
    plain = known.of(rows)
    if plain is None:
        raise MisuseError(f"input {name!r}: these are no plain rows of its columns; send them as a table")
    return plain


def by_epochs(whole: UpdateBatch, given: ByEpoch, words: Sequence[int]) -> list[UpdateBatch]:
    """The rows of each epoch at its word."""
    rows = whole.words if given.order is None else whole.words[:, given.order]
    batches: list[UpdateBatch] = []
    for (start, stop), word in zip(given.ranges(), words, strict=True):
        part = np.ascontiguousarray(rows[:, start:stop])
        part[-2] = word
        batches.append(UpdateBatch(part, whole.symbol_words))
    return batches


class TableConstant:
    """These rows, once each, from the first epoch on."""

    def __init__(self, schema: Schema, rows: Sequence[Row]) -> None:
        self._schema = schema
        self._rows = rows

    def describe(self) -> str:
        """Columns and rows."""
        return f"constant ({self._schema}) {list(self._rows)!r}"

    def batch(self, word: int) -> UpdateBatch:
        """The rows at `word`."""
        width = self._schema.width
        words = np.empty((width + 2, len(self._rows)), dtype=np.int64)
        words[:width] = encode_rows(self._schema, self._rows, SYMBOLS)
        words[width] = word
        words[width + 1] = 1
        return UpdateBatch(words, self._schema.symbol_words)


class TableOut:
    """Makes logs of collections with the columns of `schema`."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    def describe(self) -> str:
        """The columns."""
        return f"table ({self.schema})"

    def arrow_schema(self) -> pa.Schema:
        """What clients are sent, beside epoch and diff."""
        return self.schema.to_arrow()

    def new_log(self) -> OutputLog:
        """An empty log."""
        return TableLog(self.schema)


class TableLog:
    """What one output on one worker has put out."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._open = WaitingRows(schema.width + 2, 0)
        self._few: list[Int64s] = []
        """Few rows as they came, which are put in their order for who reads them."""
        self._few_rows = 0
        self._changes: dict[int, KeptChanges] = {}
        self._epochs: list[int] = []  # the keys of `_changes`, ascending
        self._rows: Collected | None = None
        self._forgotten_before = 0
        self._complete = 0
        self._last = 0
        """The epoch behind the last one that had changes."""
        self._pieces = TablePieces(schema)
        self._code: TimeCode | None = None
        self._failures: FailureLog | None = None
        self._unanswered: list[tuple[int, KeptChanges]] = []
        """Changes of epochs without an answer, by epoch: the next one with an answer has them all."""

    def start(self, code: TimeCode, failures: FailureLog | None = None) -> None:
        """Learn how epochs are packed into words, and which of them have no answer."""
        self._code, self._failures = code, failures
        self._open = WaitingRows(self._schema.width + 2, code.guards)
        self._rows = Collected(self._schema.width, code.guards)
        self._open.show = self._rows.show = row_shower(self._schema, SYMBOLS)

    def add(self, epoch: int, batch: Batch) -> None:
        """Rows at or after `epoch`."""
        del epoch
        if isinstance(batch, UpdateBatch) and not self._open.rows and self._few_rows <= _FEW_ROWS_MAX:
            words = batch.words
            if words.shape[1] <= _ROWS_FEW and are_modest(words[-1], _MODEST):
                self._few.append(words)
                self._few_rows += words.shape[1]
                return
        self._gather()
        for words in parts_of(batch):
            self._open.add(words)

    def complete(self, epoch: int) -> None:
        """All rows before `epoch` are here: consolidate them into one block of changes per epoch.

        Of few rows that is left to who reads, and done for many epochs together: nothing can go wrong with
        them then, for they are too few, and there too few times, to leave 64 bits.
        """
        self._complete = epoch
        self.tidy()
        if self._few_rows > _FEW_ROWS_MAX:
            self._gather()
        if self._open.rows:
            self._put_in_order()
        assert self._rows is not None
        self._rows.settle_many()

    @property
    def is_settled(self) -> bool:
        """Whether only few rows wait, here and for snapshots."""
        is_few = self._few_rows <= _FEW_ROWS_MAX and not self._open.rows
        return is_few and (self._rows is None or not self._rows.has_many)

    def note_complete(self, epoch: int) -> None:
        """All rows before `epoch` are here, and are few."""
        self._complete = epoch

    def _gather(self) -> None:
        """Let few rows wait as many do."""
        if self._few:
            few, self._few, self._few_rows = self._few, [], 0
            self._open.add(few[0] if len(few) == 1 else np.concatenate(few, axis=1))

    def settle(self) -> None:
        """Somebody asks: all that is complete is put in order."""
        if self._few or self._open.rows:  # which are of later epochs than they were, when somebody last asked
            self._gather()
            self._put_in_order()
        if self._unanswered:
            self._answer_again(self._complete)

    def _put_in_order(self) -> None:
        self._keep_complete()
        if self._unanswered:  # also if nothing is left of what has come since
            self._answer_again(self._complete)

    def _keep_complete(self) -> None:
        """Keep what is complete, epoch by epoch."""
        epoch = self._complete
        assert self._code is not None and self._rows is not None
        ends = not self._code.holds(epoch)  # it is after every row, then
        bound = np.array([] if ends else [self._code.pack((epoch,))], dtype=np.int64)
        found = self._open.take_in_order(bound)
        if isinstance(found, PackedRows) and found.rows >= PACKED_ROWS_MIN:
            run = Run.from_sorted(found, self._code.guards)
            if (time := run.only_time) is not None:
                self._keep(time, run)
                self._rows.add_run(run, np.array([time]) if ends else bound)
                return
            found = run.words()  # of several times, which are kept apart
        words = found.unpack(0, found.rows) if isinstance(found, PackedRows) else found
        if words.shape[1] == 0:
            return
        for time, block in _by_time(words):
            self._keep(time, block)
            self._rows.add(block, np.array([time]) if ends else bound)

    def _keep(self, time: int, changes: Int64s | Run) -> None:
        """Keep the changes at a time word for readers."""
        assert self._code is not None
        done = self._code.epoch_of(time)
        if self._failures is not None:
            if self._unanswered:
                self._answer_again(done)
            if self._unanswered or self._failures.good_from(done, done + 1) is None:
                self._unanswered.append((done, KeptChanges(changes)))
                self._merge_unanswered()
                self._answer_again(done + 1)
                return
        self._keep_at(done, KeptChanges(changes))

    def _merge_unanswered(self) -> None:
        """Sum up changes of epochs without an answer, which nobody tells apart: as many as are left of the
        rows are kept, however long something fails. Cost: each row is sorted as often as they double.
        """
        while len(self._unanswered) > 1 and self._unanswered[-2][1].rows <= 2 * self._unanswered[-1][1].rows:
            (_, first), (epoch, second) = self._unanswered[-2:]
            words = np.concatenate([first.words(), second.words()], axis=1)
            words[-2] = words[-2, -1]
            try:
                summed = sort_parts([words])
            except OverflowError:
                return  # not what is asked for: later changes may take it back
            del self._unanswered[-2:]
            if summed.shape[1]:
                self._unanswered.append((epoch, KeptChanges(summed)))
            elif self._unanswered:
                self._unanswered[-1] = epoch, self._unanswered[-1][1]  # known to have no answer so far

    def _keep_at(self, done: int, changes: KeptChanges) -> None:
        """Keep the changes of an epoch that has an answer."""
        assert not self._epochs or done > self._epochs[-1], "epochs are complete in order"
        self._epochs.append(done)
        self._changes[done] = changes
        self._last = done + 1

    def _answer_again(self, stop: int) -> None:
        """If an epoch before `stop` has an answer again, it has all changes of those before that had none."""
        if not self._unanswered:
            return
        assert self._failures is not None
        # What held before has been forgotten, and with it that these epochs had no answer.
        last = max(self._unanswered[-1][0], self._forgotten_before)
        good = self._failures.good_from(last, stop)
        if good is None:
            return
        summed = sort_parts(_at_one_time([changes.words() for _, changes in self._unanswered]))
        self._unanswered = []
        if summed.shape[1]:
            self._keep_at(good, KeptChanges(summed))

    def changes(self, start: int, stop: int) -> pa.Table:
        """Columns, `epoch`, `diff`; epochs ascending."""
        check_kept(start, self._forgotten_before)
        self.settle()
        epochs = self._epochs_of(start, stop)
        blocks = [self._changes[epoch].words() for epoch in epochs]
        words = _joined(blocks, self._schema.width)
        table = self._schema.decode(words, SYMBOLS)
        lengths = [block.shape[1] for block in blocks]
        table = table.append_column(EPOCH, int64_array(np.repeat(np.array(epochs, dtype=np.int64), lengths)))
        return table.append_column(DIFF, int64_array(words[-1]))

    def snapshot(self, epoch: int) -> pa.Table:
        """The rows in the collection at `epoch`, with the column `diff` for their multiplicities.

        Cost: that of all rows, and of the changes after `epoch`, which are taken back.
        """
        check_kept(epoch + 1, self._forgotten_before)
        words = self._collected(epoch).all()
        table = self._schema.decode(words, SYMBOLS)
        return table.append_column(DIFF, int64_array(words[-1]))

    def piece(self, wanted: Wanted) -> Cut:
        """Some of the rows of `changes` or `snapshot`. Cost: of the first piece of a collection, that of a
        snapshot; then that of the piece, and a little for each epoch.
        """
        check_kept(wanted.stop if wanted.is_snapshot else wanted.start, self._forgotten_before)
        self.settle()
        if wanted.is_snapshot:
            return self._pieces.of_collection(wanted, self._collected)
        epochs = self._epochs_of(wanted.start, wanted.stop)
        return self._pieces.of_changes(wanted, epochs, [self._changes[epoch] for epoch in epochs])

    def extent(self) -> tuple[int, int]:
        """From what was forgotten to what has come."""
        self.settle()
        return self._forgotten_before, self._last

    def _collected(self, epoch: int) -> Accumulated:
        """The rows at `epoch`: all of them, and what came later taken back."""
        assert self._rows is not None
        self.settle()
        later = [self._changes[done] for done in self._epochs_of(epoch + 1, EPOCH_MAX + 1)]
        later += [changes for _, changes in self._unanswered]  # each is behind the last that has an answer
        return self._rows.accumulated([_negated(changes.words()) for changes in later])

    def forget(self, stop: int) -> None:
        """Drop changes of epochs before `stop`."""
        self.settle()
        gone = bisect_left(self._epochs, stop)
        for epoch in self._epochs[:gone]:
            del self._changes[epoch]
        del self._epochs[:gone]
        self._forgotten_before = max(self._forgotten_before, stop)

    def tidy(self) -> None:
        """Forget a collection that was laid out for readers who have not come back."""
        self._pieces.tidy()

    def take_over(self, other: OutputLog, epoch: int) -> bool:
        """Go on at `epoch` where `other` stops; the difference counts as a change of `epoch`.

        Cost: that of all rows of both.
        """
        if not isinstance(other, TableLog) or other._schema != self._schema:
            return False
        assert self._rows is not None and other._rows is not None and self._code is not None
        self.settle()
        other.settle()
        assert not other._epochs or other._epochs[-1] < epoch, "nothing came there from `epoch` on"
        taken = [_negated(changes.words()) for _, changes in other._unanswered]
        before = other._rows.accumulated(taken).all()
        # What has come here up to `epoch`, that included if it is complete already.
        unanswered = [each for each in self._unanswered if each[0] > epoch]
        behind = [
            *(self._changes[done] for done in self._epochs if done > epoch),
            *(c for _, c in unanswered),
        ]
        later_ones = [_negated(changes.words()) for changes in behind]
        difference = self._rows.accumulated([_negated(before), *later_ones]).all()
        difference[-2] = self._code.pack((epoch,)) if self._code.holds(epoch) else 0
        later = {done: block for done, block in self._changes.items() if done > epoch}
        self._unanswered = unanswered
        good: int | None = epoch
        if self._failures is not None:
            good = self._failures.good_from(epoch, max(self._complete, epoch + 1))
        if difference.shape[1] and self._complete > epoch:
            if good is None:
                self._unanswered = [(epoch, KeptChanges(difference)), *unanswered]
            else:  # which is perhaps a later one, and has changes already
                parts = [later.pop(good).words(), difference] if good in later else [difference]
                if (summed := sort_parts(_at_one_time(parts))).shape[1]:
                    later[good] = KeptChanges(summed)
        elif difference.shape[1]:
            # What comes at `epoch` belongs to the same change; until then it is what it was there.
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
        """Rows of open epochs, and all rows; changes of complete epochs have these as whole numbers."""
        self._gather()
        self._open.rebase(by)
        if self._rows is not None:
            self._rows.rebase(by)

    def symbols(self, mark: Mark) -> None:
        """Rows of open epochs, changes that are kept, all rows, and those that are read in pieces."""
        self._open.symbols(mark)
        for few in self._few:
            mark.words(few[:-2])
        self._pieces.symbols(mark)
        for changes in (*self._changes.values(), *(each for _, each in self._unanswered)):
            changes.symbols(mark)
        if self._rows is not None:
            self._rows.symbols(mark)

    def _epochs_of(self, start: int, stop: int) -> list[int]:
        """Epochs `start` ≤ epoch < `stop` that have changes and are complete."""
        return self._epochs[bisect_left(self._epochs, start) : bisect_left(self._epochs, stop)]


def _by_time(words: Int64s) -> Iterator[tuple[int, Int64s]]:
    """The rows of each time, times ascending, rows in their order. Cost: one sort, however many times there
    are.
    """
    times = words[-2]
    # Of few rows Python sees it sooner than numpy begins.
    known = len(set(times.tolist())) if times.shape[0] <= _ROWS_FEW else 0
    if known == 1 or (known == 0 and (times == times[0]).all()):
        yield int(times[0]), words
        return
    order = np.argsort(times, kind="stable")
    ordered = np.ascontiguousarray(words[:, order])
    starts = np.flatnonzero(np.diff(ordered[-2], prepend=ordered[-2, 0] - 1)).tolist()
    for start, stop in zip(starts, [*starts[1:], ordered.shape[1]], strict=True):
        yield int(ordered[-2, start]), np.ascontiguousarray(ordered[:, start:stop])


def _at_one_time(parts: Sequence[Int64s]) -> list[Int64s]:
    """Copies of these rows, with the time of the last one: they are read as changes of one epoch."""
    words = np.concatenate(parts, axis=1)
    words[-2] = words[-2, -1]
    return [words]


def _negated(words: Int64s) -> Int64s:
    negated = words.copy()
    np.negative(negated[-1], out=negated[-1])
    return negated


def _joined(blocks: list[Int64s], width: int) -> Int64s:
    if len(blocks) == 1:
        return blocks[0]
    return np.concatenate(blocks, axis=1) if blocks else np.empty((width + 2, 0), dtype=np.int64)
