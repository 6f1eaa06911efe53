"""How do tasks of Spark deliver rows to workers, and what does the driver decide about them?

A task sends its rows straight to the workers, each piece as a delivery, and reports the names of the
deliveries to the driver. The driver then decides; no rows pass through it. There are two ways, and in both
each row counts once:

    appends    rows laid out by epoch; each counts in its epoch when it arrives (`EpochFeed`)
    attempts   rows of a batch; they count when the driver names the attempts that succeeded (`BatchDelivery`)

# Appends

Each partition of the laid-out rows (`epochs.py`) is a *writer*. It cuts its rows by epoch, and the rows of an
epoch into appends of at most `rows_per_append`; they are numbered 0, 1, … and identified by (input, epoch,
writer, sequence). If Spark computes a partition again, it is the same row for row, and cuts are counted from
the first row of an epoch. Hence a retried task repeats identical appends, and a worker drops an append that
it has seen.

    executor   rows of a partition ──append──▶ client port of a worker      (Arrow; nothing passes the driver)
    executor   receipts            ──────────▶ driver ──seal──▶ cluster     (epochs, writers, counts)

An `AppendTarget` transports the appends; a picklable factory opens one in the executor. If the target raises
one of our errors (misuse, a lost worker), `send` raises that error, and Spark does not try the task again;
any other exception fails the task, and Spark may try it again.

# Attempts

    executor    rows of a task ──part by part──▶ all workers in turn    under query, batch and attempt
    executor    number of staged parts ──▶ driver                       `Staged`
    driver      is every part there? ──▶ all workers
    driver      these attempts are the batch ──▶ worker 0               they enter the open epoch, and seal it

The decision does not name attempts of tasks that failed, were killed, or ran twice; workers drop these at the
decision, or, if Spark gives up the batch, when Spark says so. Everything that may fail comes before the
decision, also waiting for slow workers: if the commit raises, Spark considers the batch failed, and the user
writes it again. A decision without an answer may still take effect, and must not take effect for half of a
batch: so the attempts that it names stay staged. If Spark repeats a batch, because the driver died before it
had recorded the commit, the repetition changes nothing (`timely/operators/inputs/deliveries.py`).
"""

from __future__ import annotations

import contextlib
import itertools
import math
import operator
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from timely.client.installed import Members, Requests, Workers, to_all
from timely.errors import InternalError, MisuseError, PeerError, TimelyError, class_names, revive
from timely.limits import APPEND_BYTES_MAX, ATTEMPT_SECONDS_MAX, REPLY_SECONDS_MAX
from timely.spark.epochs import DIFF, EPOCH, EpochRows
from timely.spark.lost import java_watched
from timely.spark.once.staging import Staging
from timely.wire.arrow import int64_array, int64s_of, text_array
from timely.wire.claims import shown
from timely.wire.requests import (
    WHEN_NAMED,
    WRITES_ONCE,
    Decide,
    Deliver,
    Drop,
    Missing,
    Progress,
    Reply,
    Value,
)

__all__ = [
    "ROWS_PER_APPEND",
    "AppendTarget",
    "BatchDelivery",
    "EpochFeed",
    "Receipt",
    "Staged",
    "TargetFactory",
    "answer_seconds",
]

ROWS_PER_APPEND = 65_536
"""The largest number of rows of one append: the size of a flush between workers."""

_RECEIPT_TYPE = "epoch bigint, writer string, appends bigint, rows bigint, error string, message string"
_RECEIPT_COLUMNS = [column.split()[0] for column in _RECEIPT_TYPE.split(", ")]


class AppendTarget(Protocol):
    """An open connection that takes rows for the inputs of an installed dataflow."""

    def append(self, input: str, epoch: int, writer: str, sequence: int, table: pa.Table) -> object:
        """Add the rows of `table`: the data columns, then `diff` (int64).

        An append with the same (input, epoch, writer, sequence) counts once. The result is ignored.
        """
        ...


TargetFactory = Callable[[], AbstractContextManager[AppendTarget]]
"""Opens a connection in an executor. It is pickled to get there, so it must be a function of a module, or an
instance of a class of a module.
"""


class Receipt(NamedTuple):
    """One writer has sent `appends` appends (sequences 0 to appends - 1) with `rows` rows for an epoch."""

    epoch: int
    writer: str
    appends: int
    rows: int

    def expected(self, input: str) -> list[tuple[str, str, int]]:
        """Return the identities of these appends, (input, writer, sequence); sealing the epoch requires
        them.
        """
        return [(input, self.writer, sequence) for sequence in range(self.appends)]


@dataclass(frozen=True)
class EpochFeed:
    """Sends `rows` to the dataflow input named `input`, chunk by chunk.

    `name` is the prefix of the writers' names: two feeds into the same input need different ones, and a feed
    that continues an interrupted one needs the same. Another `rows_per_append` or number of writers would
    change the appends of an epoch that is sent again, so both are part of the writers' names.
    """

    rows: EpochRows
    input: str
    target: TargetFactory
    name: str = "spark"
    rows_per_append: int = ROWS_PER_APPEND

    @java_watched()
    def send(self, epochs: range) -> dict[int, tuple[Receipt, ...]]:
        """Send these epochs in one Spark job and return the receipts of each: the appends that must have
        arrived.

        An epoch without rows has no receipts. Raises the target's error if it is one of ours,
        `SparkLostError` if Java has ended, and `PeerError` for anything else that fails the job; the epochs
        may then have been sent in part, and may be sent again.
        """
        if epochs.step != 1 or epochs.start < 0:
            raise ValueError(f"epochs are consecutive and not negative, not {epochs}")
        chosen = self.rows.frame.where(f"{EPOCH} >= {epochs.start} AND {EPOCH} < {epochs.stop}")
        try:
            # PySpark parses the names of columns here, and would read a dot as a field of a struct.
            plain = chosen.toDF(*(f"c{at}" for at in range(len(chosen.columns))))
            answers: pa.Table = plain.mapInArrow(self._task(), _RECEIPT_TYPE).toArrow()
        except Exception as error:  # of PySpark, Py4J, or the socket between them
            which = f"epochs {epochs.start} to {epochs.stop - 1} of input {self.input!r}"
            raise PeerError(f"Spark could not send {which}: {_advised(_last_line(str(error)))}") from error
        receipts: dict[int, list[Receipt]] = {epoch: [] for epoch in epochs}
        for answer in answers.to_pylist():
            if answer["error"] is not None:
                raise revive(answer["error"].split(), answer["message"])
            receipt = Receipt(**{name: answer[name] for name in Receipt._fields})
            receipts[receipt.epoch].append(receipt)
        return {epoch: tuple(sorted(of_epoch)) for epoch, of_epoch in receipts.items()}

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
    """The work of an executor on its partition; pickled to get there."""

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
    """Return the number of the running task's partition; 0 outside a task."""
    task = TaskContext.get()
    return 0 if task is None else task.partitionId()


def _put_back(first: pa.RecordBatch, others: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from others


def _by_epoch(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, Iterator[pa.Table]]]:
    """Yield each epoch of sorted batches, with the pieces of tables that have its rows, without the epoch
    column. Raises `InternalError` if the rows are not sorted by epoch.
    """
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
    """Cut the rows into tables of exactly `rows_max` rows, the last one with the remaining rows; tables of
    wide rows are shorter. The cuts depend on the rows alone, not on the batches in which they came.
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
    """Yield the table in one piece, or in several if it is too large for one append.

    The size that counts is that on the wire, which is the same for the same rows; the bytes in memory depend
    on how the rows were sliced before.
    """
    table = table.combine_chunks()
    size = sum(pa.ipc.get_record_batch_size(batch) for batch in table.to_batches())
    if size < 2 * APPEND_BYTES_MAX or table.num_rows == 1:
        yield table
        return
    rows = max(1, table.num_rows * APPEND_BYTES_MAX // size)
    for start in range(0, table.num_rows, rows):  # wide rows may follow one another: check each part, too
        yield from _shortened(table.slice(start, rows))


def _as_batches(receipts: Sequence[Receipt], error: TimelyError | None) -> Iterator[pa.RecordBatch]:
    """Yield rows of `_RECEIPT_TYPE`. An error is one more row, so that Spark neither wraps nor repeats it.

    The arrays are made without `pa.array`, which would import pandas in each process of an executor.
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


def _advised(line: str) -> str:
    """Return the line of an error, with advice if it says that a module is missing: the executors' Python,
    which may be another one than this, lacks it.
    """
    if not line.startswith("ModuleNotFoundError"):
        return line
    return (
        f"{line}. Spark's executors run another Python than this program, without it: before Spark starts "
        f"set PYSPARK_PYTHON, or spark.pyspark.python, to one that has it, as {sys.executable} here; "
        "timely.spark.session.local_session() does so"
    )


def _last_line(text: str) -> str:
    """Return the line of Spark's report that has the error of a Python traceback in it."""
    lines = [
        line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("at ")
    ]
    blamed = [line for line in lines if line.partition(":")[0].endswith(("Error", "Exception", "Refused"))]
    return (blamed or lines or ["no reason given"])[-1]


# Attempts.

_LAG_SECONDS_MAX: Final = ATTEMPT_SECONDS_MAX / 2
"""How long a commit waits for slow workers: the attempts that it names must still be staged when it comes."""
_HEARD_SECONDS_MAX: Final = 10.0
"""How long `look` waits, for a batch that is committed already, until all workers have heard of the commit. A
link between workers that is silent for as long counts as lost.
"""
_LOOK_SECONDS: Final = 0.02
"""How often `look` asks the workers meanwhile."""
_TASKS_MAX: Final = 65_536
"""The largest number of tasks of one batch: a commit names them all in the header of one request, whose size
is bounded.
"""


@dataclass(frozen=True)
class Staged(WriterCommitMessage):
    """The number of parts that one attempt has staged on each worker."""

    query: str
    batch: int
    attempt: str
    parts: tuple[int, ...]
    rows: int
    """The number of rows of the task, also if the workers took none because the batch is committed
    already.
    """
    stream: str = ""
    """The id of the stream in Spark, from its checkpoint; empty: the query is no stream."""


class _State(NamedTuple):
    """The state of a query on a worker: its last committed batch, the number of its rows there, the open
    epoch of the input, and the worker's clock.
    """

    last: int
    rows: int
    open: int
    seconds: int


@dataclass(frozen=True)
class BatchDelivery:
    """Batch `batch` of `query`, for an input of a dataflow.

    seals            the commit also seals the epoch that the batch enters
    may_skip         batches before it may be missing, or come from another stream; and if the batch is
    repeated,
                     its number of rows may differ
    lag              before the commit, wait until at most `lag` epochs are sealed and not computed
    timeout_seconds  how long that wait may take
    """

    dataflow: int
    input: str
    query: str
    batch: int
    seals: bool
    may_skip: bool
    lag: int
    timeout_seconds: float

    def stage(self, workers: Workers, tables: Iterator[pa.Table], partition: int, diff: int) -> Staged:
        """Send the rows of a task, a table to each worker in turn; while one is sent, make the next one.

        `diff` as in `Deliver`. If an error comes up, drop the attempt.
        """
        attempt = f"{partition:06d}/{uuid.uuid4().hex}"
        request = Deliver(
            self.dataflow, self.input, self.query, self.batch, WHEN_NAMED, 0, diff, attempt=attempt
        )
        staging = Staging(workers, request, partition, answer_seconds(self.timeout_seconds))
        try:
            parts = staging.send(tables)
        except BaseException:
            with contextlib.suppress(TimelyError):
                self.drop(workers, [attempt])
            raise
        return Staged(self.query, self.batch, attempt, parts, staging.rows)

    def commit(self, workers: Workers, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Decide that the batch consists of these attempts.

        Raises if the batch is not committed by that, or if another batch was committed under its number
        before.
        """
        staged = sorted(
            (message for message in messages if isinstance(message, Staged)), key=lambda one: one.attempt
        )
        if any((one.query, one.batch) != (self.query, self.batch) for one in staged):
            raise InternalError(f"Spark commits {self._name} with the staged rows of another batch")
        attempts = [one.attempt for one in staged if one.rows]
        if len(attempts) > _TASKS_MAX:
            raise MisuseError(
                f"{self._name} has {len(attempts):,} tasks with rows, and its commit must name all of them; "
                f"{_TASKS_MAX:,} are the limit: write fewer partitions, as by coalesce({_TASKS_MAX})"
            )
        stream = next((one.stream for one in staged), "")
        is_sent = False
        try:
            opened, looked, incarnation = self.look(workers, staged)
            behind = opened - self.lag
            if self.seals and self.lag and behind >= 0:
                # Sealed epochs that are not computed yet take memory of the workers, so a stream that is
                # quicker than they are has to wait.
                seconds = min(self.timeout_seconds, _LAG_SECONDS_MAX)
                wait = Progress(self.dataflow, "", behind, seconds)
                workers.ask_members(to_all(wait), seconds + 1)
            entry: Value = [self.input, self.query, self.batch, attempts, stream, self.may_skip, looked]
            request = Decide(self.dataflow, -1, self.seals, enter=[entry], incarnation=incarnation)
            is_sent = True
            (reply,) = workers.ask([(0, request, None)], answer_seconds(self.timeout_seconds))
            if not _is_new(reply):
                # It is committed already, perhaps by another driver since the look above: check that it is
                # the same.
                self.look(workers, staged)
        except TimelyError as error:
            # Drop the attempts here: Spark's next call, which gives up the batch, comes in a process that
            # does not know whether the decision was sent.
            if attempts and (not is_sent or isinstance(error, MisuseError)):
                with contextlib.suppress(TimelyError):
                    self.drop(workers, attempts)
            raise

    def drop(self, workers: Workers, attempts: Sequence[str] = ()) -> None:
        """Drop these attempts; without `attempts`, all attempts at the batch that no commit is about to
        name.
        """
        name: list[Value] = [self.input, self.query, self.batch]
        names: list[Value] = [[*name, attempt] for attempt in attempts]
        request = Drop(self.dataflow, names or [name])
        workers.ask_members(to_all(request))

    def look(self, workers: Workers, staged: Sequence[Staged]) -> tuple[int, int, int]:
        """Check that all parts are staged. Return the open epoch, a time by the clock of worker 0 that is not
        later than the check on any worker, and the incarnation of the cluster that has the parts.

        Raises if a part is not there any more, in which case nothing is committed, or if another batch was
        committed under this number.
        """

        def makes(members: Members) -> Requests:
            return [
                (worker, Missing(self.dataflow, -1, names, [[self.input, self.query]]), None)
                for worker, names in enumerate(self._staged_on(members, staged))
            ]

        begin = time.monotonic()
        replies = workers.ask_members(makes, answer_seconds(self.timeout_seconds))
        # Other workers may have answered that much earlier than worker 0.
        seconds = math.ceil(time.monotonic() - begin)
        states = [_state_of(reply) for reply in replies]
        looked = states[0].seconds - seconds
        until = time.monotonic() + _HEARD_SECONDS_MAX
        while states[0].last >= self.batch and not _are_alike(states) and time.monotonic() < until:
            time.sleep(_LOOK_SECONDS)
            replies = workers.ask_members(makes, answer_seconds(self.timeout_seconds))
            states = [_state_of(reply) for reply in replies]
        missing = sum(len(reply.items("missing")) for reply in replies)
        # The state of worker 0 counts: the others may not have heard yet of a commit that this one repeats.
        if missing and states[0].last < self.batch:
            raise MisuseError(
                f"{self._name} is not committed: what {missing} of its tasks staged is not there any more, "
                "since it waited for too long, the cluster has started again, or the dataflow is another "
                "one. Write it again; a stream does so when it is started again"
            )
        if all(state.last == self.batch for state in states) and not self.may_skip:
            self._check_same(sum(one.rows for one in staged), sum(state.rows for state in states))
        return states[0].open, looked, replies[0].incarnation

    def _staged_on(self, members: Members, staged: Sequence[Staged]) -> list[list[Value]]:
        """Return, for each worker, the attempts that it should have, each with the number of its parts.

        What was staged on another number of workers is gone, as the cluster has started again since. Worker 0
        is asked for all parts of it, and so it says that the attempt is missing.
        """
        by_worker: list[list[Value]] = [[] for _ in range(members.count)]
        for one in staged:
            parts = one.parts if len(one.parts) == members.count else (sum(one.parts),)
            for worker, count in enumerate(parts):
                if count:
                    by_worker[worker].append([self.input, self.query, self.batch, one.attempt, count])
        return by_worker

    def _check_same(self, count: int, entered: int) -> None:
        """Raise `MisuseError` if a batch that has entered comes again with another number of rows."""
        if count != entered and not self.query.startswith(WRITES_ONCE):
            raise MisuseError(
                f"{self._name} has come already, with {entered:,} rows, and now has {count:,}: it is another "
                "one, with the checkpoint or the name of that query, and is not written. Start a stream with "
                "the checkpoint that it had last, or with a new checkpoint and a 'query' of its own; give a "
                "DataFrame another 'query'. Where a query makes other rows of the same input, as by rand(), "
                "say .option('gap', 'allow'): those that came first count"
            )

    @property
    def _name(self) -> str:
        return f"batch {self.batch} of query {self.query}"


def answer_seconds(timeout_seconds: float) -> float:
    """Return how long a worker may take to answer a client that waits `timeout_seconds` for an epoch."""
    return max(timeout_seconds, REPLY_SECONDS_MAX)


def _is_new(reply: Reply) -> bool:
    match reply.items("entered"):
        case [[bool(is_new), int()]]:
            return is_new
        case entered:
            raise PeerError(f"a worker says of a batch that was to enter {shown(entered)}")


def _state_of(reply: Reply) -> _State:
    match reply.items("queries"):
        case [[int(last), int(rows), int(opened), int(seconds)]]:
            return _State(last, rows, opened, seconds)
        case queries:
            raise PeerError(f"a worker says of a query that writes {shown(queries)}")


def _are_alike(states: Sequence[_State]) -> bool:
    return len({state.last for state in states}) == 1
