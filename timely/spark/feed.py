"""Sending the rows of epochs from Spark's executors straight to the workers.

Each partition of the laid-out rows (`epochs.py`) is a *writer*. It cuts its rows by epoch, and the rows of an
epoch into appends of at most `rows_per_append`; they are numbered 0, 1, … and identified by (input, epoch,
writer, sequence). Partitions are the same row for row whenever Spark makes them again, and cuts are counted
from the first row of an epoch. Hence a retried task repeats identical appends, and the worker that has seen
one drops it.

    executor   rows of a partition ──append──▶ client port of a worker      (Arrow; nothing passes the driver)
    executor   receipts            ──────────▶ driver ──seal──▶ cluster     (epochs, writers, counts)

Nothing here knows how an append travels: an `AppendTarget` does, and a factory that can be pickled opens one
in the executor. What the target raises of our own kind (misuse, a lost worker) comes back as it is, without a
second attempt by Spark; any other exception fails the task, and Spark may try it again.
"""

from __future__ import annotations

import itertools
import operator
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import pyarrow as pa
from pyspark import TaskContext

from timely.errors import InternalError, PeerError, TimelyError, class_names, revive
from timely.limits import APPEND_BYTES_MAX
from timely.spark.epochs import DIFF, EPOCH, EpochRows
from timely.spark.lost import java_watched
from timely.wire.arrow import int64_array, int64s_of, text_array

__all__ = ["ROWS_PER_APPEND", "AppendTarget", "EpochFeed", "Receipt", "TargetFactory"]

ROWS_PER_APPEND = 65_536
"""Rows of one append: the size of a flush between workers."""

_RECEIPT_TYPE = "epoch bigint, writer string, appends bigint, rows bigint, error string, message string"
_RECEIPT_COLUMNS = [column.split()[0] for column in _RECEIPT_TYPE.split(", ")]


class AppendTarget(Protocol):
    """An open connection that takes rows for the inputs of an installed dataflow."""

    def append(self, input: str, epoch: int, writer: str, sequence: int, table: pa.Table) -> object:
        """Add the rows of `table`: the data columns, then `diff` (int64).

        Counts once by (input, epoch, writer, sequence). What it returns is not looked at.
        """
        ...


TargetFactory = Callable[[], AbstractContextManager[AppendTarget]]
"""Opens a connection in an executor; pickled to get there: a function of a module, an instance of a class."""


class Receipt(NamedTuple):
    """One writer has sent `appends` appends (sequences 0 to appends - 1) with `rows` rows for an epoch."""

    epoch: int
    writer: str
    appends: int
    rows: int

    def expected(self, input: str) -> list[tuple[str, str, int]]:
        """The identities of these appends, (input, writer, sequence): what sealing the epoch has to find."""
        return [(input, self.writer, sequence) for sequence in range(self.appends)]


@dataclass(frozen=True)
class EpochFeed:
    """Sends `rows` to the dataflow input named `input`, chunk by chunk.

    `name` begins the names of the writers: two feeds into the same input need different ones, and a feed that
    takes up the work of one that was interrupted needs the same. Changing `rows_per_append` or the number of
    writers between two attempts at the same epoch would change the appends, so it changes the writers' names
    too.
    """

    rows: EpochRows
    input: str
    target: TargetFactory
    name: str = "spark"
    rows_per_append: int = ROWS_PER_APPEND

    @java_watched()
    def send(self, epochs: range) -> dict[int, tuple[Receipt, ...]]:
        """Send these epochs in one Spark job and return what must have arrived, for each of them.

        An epoch without rows has no receipts. Raises what the target raised, if it is of our kind,
        `SparkLostError` if Java has ended, and `PeerError` for anything else that fails the job; the epochs
        may then have been sent in part, and may be sent again.
        """
        if epochs.step != 1 or epochs.start < 0:
            raise ValueError(f"epochs are consecutive and not negative, not {epochs}")
        chosen = self.rows.frame.where(f"{EPOCH} >= {epochs.start} AND {EPOCH} < {epochs.stop}")
        try:
            # PySpark reads the names of columns here, and takes a dot for a field of a struct.
            plain = chosen.toDF(*(f"c{at}" for at in range(len(chosen.columns))))
            answers: pa.Table = plain.mapInArrow(self._task(), _RECEIPT_TYPE).toArrow()
        except Exception as error:  # PySpark's own, Py4J's, or those of the socket between them
            which = f"epochs {epochs.start} to {epochs.stop - 1} of input {self.input!r}"
            raise PeerError(f"Spark could not send {which}: {_told(_last_line(str(error)))}") from error
        receipts: dict[int, list[Receipt]] = {epoch: [] for epoch in epochs}
        for answer in answers.to_pylist():
            if answer["error"] is not None:
                raise revive(answer["error"].split(), answer["message"])
            receipt = Receipt(**{name: answer[name] for name in Receipt._fields})
            receipts[receipt.epoch].append(receipt)
        return {epoch: tuple(sorted(found)) for epoch, found in receipts.items()}

    def _task(self) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
        return _Task(
            self.input,
            (*self.rows.columns, EPOCH, DIFF),
            self.target,
            f"{self.name}/{self.rows.writers}x{self.rows_per_append}",
            self.rows_per_append,
        )


@dataclass(frozen=True)
class _Task:
    """What an executor does with its partition; pickled to get there."""

    input: str
    columns: tuple[str, ...]
    target: TargetFactory
    writers: str
    rows_per_append: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        writer = f"{self.writers}/{_partition()}"
        receipts: list[Receipt] = []
        try:
            batches = (batch.rename_columns(list(self.columns)) for batch in batches)
            first = next(batches, None)
            if first is not None:
                with self.target() as target:
                    receipts.extend(self._send(target, writer, _put_back(first, batches)))
        except TimelyError as error:
            yield from _as_batches(receipts, error)
        else:
            yield from _as_batches(receipts, None)

    def _send(
        self, target: AppendTarget, writer: str, batches: Iterator[pa.RecordBatch]
    ) -> Iterator[Receipt]:
        for epoch, pieces in _by_epoch(batches):
            appends = rows = 0
            for table in _cut(pieces, self.rows_per_append):
                target.append(self.input, epoch, writer, appends, table)
                appends += 1
                rows += table.num_rows
            yield Receipt(epoch, writer, appends, rows)


def _partition() -> int:
    """The number of the running task's partition; 0 outside a task."""
    task = TaskContext.get()
    return 0 if task is None else task.partitionId()


def _put_back(first: pa.RecordBatch, others: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from others


def _by_epoch(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, Iterator[pa.Table]]]:
    """Runs of the same epoch in sorted batches, each as pieces of tables, epoch column taken off."""
    before = -1
    for epoch, pieces in itertools.groupby(_pieces(batches), key=operator.itemgetter(0)):
        if epoch <= before:
            raise InternalError(f"rows of a partition are not sorted by epoch: {epoch} comes after {before}")
        before = epoch
        yield epoch, (table for _, table in pieces)


def _pieces(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, pa.Table]]:
    for batch in batches:
        table = pa.Table.from_batches([batch])
        epochs = int64s_of(table.column(EPOCH))
        data = table.drop_columns([EPOCH])
        starts = [0, *((epochs[1:] != epochs[:-1]).nonzero()[0] + 1).tolist()] if len(epochs) else []
        for start, stop in zip(starts, [*starts[1:], len(epochs)], strict=True):
            yield int(epochs[start]), data.slice(start, stop - start)


def _cut(pieces: Iterator[pa.Table], rows_max: int) -> Iterator[pa.Table]:
    """The same rows in tables of exactly `rows_max` rows, the last one of what is left; wide rows in shorter
    ones. Which rows are in one follows from the rows alone, not from the batches in which they came.
    """
    waiting: list[pa.Table] = []
    rows = 0
    for piece in pieces:
        waiting.append(piece)
        rows += piece.num_rows
        if rows >= rows_max:
            whole = pa.concat_tables(waiting)
            full = rows - rows % rows_max
            for start in range(0, full, rows_max):
                yield from _shortened(whole.slice(start, rows_max))
            waiting, rows = [whole.slice(full)], rows - full
    if rows:
        yield from _shortened(pa.concat_tables(waiting))


def _shortened(table: pa.Table) -> Iterator[pa.Table]:
    """The table in one piece, or in several if it is too large for one append. Its size is that on the wire,
    which is the same for the same rows: bytes in memory depend on how these were sliced before.
    """
    table = table.combine_chunks()
    size = sum(pa.ipc.get_record_batch_size(batch) for batch in table.to_batches())
    if size < 2 * APPEND_BYTES_MAX or table.num_rows == 1:
        yield table
        return
    rows = max(1, table.num_rows * APPEND_BYTES_MAX // size)
    for start in range(0, table.num_rows, rows):  # wide rows may lie side by side: a part is looked at, too
        yield from _shortened(table.slice(start, rows))


def _as_batches(receipts: Sequence[Receipt], error: TimelyError | None) -> Iterator[pa.RecordBatch]:
    """Rows of `_RECEIPT_TYPE`; an error is one more row, so that Spark neither wraps nor repeats it. They are
    made without pandas, which `pa.array` would load in each process of an executor.
    """
    epochs, writers, appends, rows = zip(*receipts, strict=True) if receipts else ((),) * 4
    nothing = pa.nulls(len(receipts), pa.string())
    yield _batch(
        int64_array(epochs), text_array(writers), int64_array(appends), int64_array(rows), nothing, nothing
    )
    if error is not None:
        no_number, no_text = pa.nulls(1, pa.int64()), pa.nulls(1, pa.string())
        classes, message = text_array([" ".join(class_names(error))]), text_array([str(error)])
        yield _batch(no_number, no_text, no_number, no_number, classes, message)


def _batch(*columns: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(list(columns), _RECEIPT_COLUMNS)


def _told(line: str) -> str:
    """A module that is missing is missing in the Python of executors, which may be another one than this."""
    if not line.startswith("ModuleNotFoundError"):
        return line
    return (
        f"{line}. Spark's executors run another Python than this program, without it: before Spark starts "
        f"set PYSPARK_PYTHON, or spark.pyspark.python, to one that has it, as {sys.executable} here; "
        "timely.spark.session.local_session() does so"
    )


def _last_line(text: str) -> str:
    """The line of a Python traceback inside Spark's report that says what happened."""
    lines = [
        line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("at ")
    ]
    blamed = [line for line in lines if line.partition(":")[0].endswith(("Error", "Exception", "Refused"))]
    return (blamed or lines or ["no reason given"])[-1]
