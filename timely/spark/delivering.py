"""How do tasks of Spark deliver rows to workers, and what does the driver decide about them?

A task sends its rows straight to the workers, each piece as a delivery, and tells the driver by which names.
The driver then decides; nothing else passes it. There are two ways, for rows count once in both:

    appends    rows that are laid out by epoch; each counts in its epoch as it comes (`EpochFeed`)
    attempts   rows of a batch; they count when the driver names the attempts that succeeded (`BatchDelivery`)

# Appends

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

# Attempts

    executor    rows of a task ──part by part──▶ all workers in turn    under query, batch and attempt
    executor    what it has staged ──▶ driver                           `Staged`
    driver      is all there? ──▶ all workers
    driver      these attempts are the batch ──▶ worker 0               they enter the open epoch, and seal it

The decision does not name what a task stages that fails, is killed, or runs twice; workers drop it then, or,
if the batch is given up, when Spark says so. Everything that may fail comes before the decision, also waiting
for slow workers: Spark takes a batch for failed if its commit raises, and a user writes it again. A decision
that nobody has answered may still be made, and half of a batch must not be: so what it names stays. A batch
that Spark gives again, because the driver died before it had written down the commit, changes nothing
(`timely/operators/inputs/deliveries.py`).
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
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from timely.client.installed import Workers
from timely.errors import InternalError, MisuseError, PeerError, TimelyError, class_names, revive
from timely.limits import APPEND_BYTES_MAX, ATTEMPT_SECONDS_MAX, REPLY_SECONDS_MAX
from timely.spark.epochs import DIFF, EPOCH, EpochRows
from timely.spark.lost import java_watched
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
    Request,
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


# Attempts.

_LAG_SECONDS_MAX: Final = ATTEMPT_SECONDS_MAX / 2
"""How long a commit waits for slow workers: what it is about to name has to be there when it comes."""
_HEARD_SECONDS_MAX: Final = 10.0
"""How long a batch that is committed already waits for all workers to hear of that. A link between workers
that is silent for as long counts as lost.
"""
_LOOK_SECONDS: Final = 0.02
"""How often it asks."""
_TASKS_MAX: Final = 65_536
"""Tasks of one batch: a commit names them in one request, which has a header of so many bytes."""


@dataclass(frozen=True)
class Staged(WriterCommitMessage):
    """What one attempt has staged: how many parts on each worker."""

    query: str
    batch: int
    attempt: str
    parts: tuple[int, ...]
    rows: int
    """Rows that the task had, also if none of them are kept because the batch is committed already."""
    stream: str = ""
    """By which name Spark knows the stream, as its checkpoint says; empty: it is none."""


class _State(NamedTuple):
    """What a worker knows of a query: its last batch that is committed, the rows of it there, the open epoch
    of the input, and what the clock says.
    """

    last: int
    rows: int
    open: int
    seconds: int


@dataclass(frozen=True)
class BatchDelivery:
    """Batch `batch` of `query`, for an input of a dataflow.

    seals            complete the epoch that it enters by that
    may_skip         batches before it may be missing, or those of another stream; and of one that comes again
                     it does not matter how many rows it has
    lag              wait before the commit until no more than so many epochs are sealed and not computed
    timeout_seconds  how long that may take
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
        """Send the rows of a task, a table to each worker in turn; while one is on its way the next is made.
        `diff` as of `Deliver`.
        """
        attempt = f"{partition:06d}/{uuid.uuid4().hex}"
        seconds = answer_seconds(self.timeout_seconds)
        with ThreadPoolExecutor(1, "staging") as sender:
            parts = [0] * workers.count
            rows = 0
            is_wanted = True
            waiting: Future[list[Reply]] | None = None
            try:
                for number, table in enumerate(tables):
                    rows += table.num_rows  # also of a batch that is committed: is it the same again?
                    is_wanted = is_wanted and (waiting is None or _is_taken(waiting))
                    if not is_wanted:
                        continue
                    worker = (partition + number) % workers.count
                    request = Deliver(
                        self.dataflow,
                        self.input,
                        self.query,
                        self.batch,
                        WHEN_NAMED,
                        0,
                        diff,
                        part=number,
                        attempt=attempt,
                    )
                    waiting = sender.submit(workers.ask, [(worker, request, table)], seconds)
                    parts[worker] += 1
                if waiting is not None and not _is_taken(waiting):
                    parts = [0] * workers.count  # it is committed already: nothing is kept, nothing missing
            except BaseException:
                with contextlib.suppress(TimelyError):
                    self.drop(workers, [attempt])
                raise
            return Staged(self.query, self.batch, attempt, tuple(parts), rows)

    def commit(self, workers: Workers, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Decide that what these attempts have staged is the batch. Raise if it is not committed by that,
        and, if it was before, if that was another one.
        """
        staged = sorted(
            (message for message in messages if isinstance(message, Staged)), key=lambda one: one.attempt
        )
        if any((one.query, one.batch) != (self.query, self.batch) for one in staged):
            raise InternalError(f"Spark commits {self._name} with what was staged for another")
        attempts = [one.attempt for one in staged if one.rows]
        if len(attempts) > _TASKS_MAX:
            raise MisuseError(
                f"{self._name} is of {len(attempts):,} tasks with rows, all of which its commit has to name, "
                f"and {_TASKS_MAX:,} are the limit: write fewer partitions, as by coalesce({_TASKS_MAX})"
            )
        stream = next((one.stream for one in staged), "")
        is_sent = False
        try:
            opened, looked = self.look(workers, staged)
            behind = opened - self.lag
            if self.seals and self.lag and behind >= 0:
                # What is sealed and not computed waits in the workers' memory: a stream that is quicker
                # waits, too.
                seconds = min(self.timeout_seconds, _LAG_SECONDS_MAX)
                wait = Progress(self.dataflow, "", behind, seconds)
                workers.ask([(worker, wait, None) for worker in range(workers.count)], seconds + 1)
            entry: Value = [self.input, self.query, self.batch, attempts, stream, self.may_skip, looked]
            request = Decide(self.dataflow, -1, self.seals, enter=[entry])
            is_sent = True
            (reply,) = workers.ask([(0, request, None)], answer_seconds(self.timeout_seconds))
            if not _is_new(reply):
                # It is committed already, perhaps since the look above and by another: then as what?
                self.look(workers, staged)
        except TimelyError as error:
            # Spark says next that the batch is given up, in a process that does not know how far it was.
            if attempts and (not is_sent or isinstance(error, MisuseError)):
                with contextlib.suppress(TimelyError):
                    self.drop(workers, attempts)
            raise

    def drop(self, workers: Workers, attempts: Sequence[str] = ()) -> None:
        """Let go of what these attempts have staged; without any, of all that no commit is about to name."""
        name: list[Value] = [self.input, self.query, self.batch]
        names: list[Value] = [[*name, attempt] for attempt in attempts]
        request = Drop(self.dataflow, names or [name])
        workers.ask([(worker, request, None) for worker in range(workers.count)])

    def look(self, workers: Workers, staged: Sequence[Staged]) -> tuple[int, int]:
        """Return the open epoch, and when all was there, by the clock of worker 0, at the latest. Raise if
        what a task has staged is not there any more: then nothing is committed; or if the batch is committed,
        and was another one.
        """
        asked: list[tuple[int, Request, pa.Table | None]] = []
        for worker in range(workers.count):
            here: list[Value] = [
                [self.input, self.query, self.batch, one.attempt, one.parts[worker]]
                for one in staged
                if one.parts[worker]
            ]
            asked.append((worker, Missing(self.dataflow, -1, here, [[self.input, self.query]]), None))
        begin = time.monotonic()
        replies = workers.ask(asked, answer_seconds(self.timeout_seconds))
        # Others may have answered so much earlier than worker 0.
        seconds = math.ceil(time.monotonic() - begin)
        states = [_state_of(reply) for reply in replies]
        looked = states[0].seconds - seconds
        until = time.monotonic() + _HEARD_SECONDS_MAX
        while states[0].last >= self.batch and not _are_alike(states) and time.monotonic() < until:
            time.sleep(_LOOK_SECONDS)
            replies = workers.ask(asked, answer_seconds(self.timeout_seconds))
            states = [_state_of(reply) for reply in replies]
        missing = sum(len(reply.items("missing")) for reply in replies)
        # Worker 0 decides: the others may not have heard yet of a commit that this one repeats.
        if missing and states[0].last < self.batch:
            raise MisuseError(
                f"{self._name} is not committed: what {missing} of its tasks staged is not there any more, "
                "since it waited for too long or the dataflow is another one. Write it again"
            )
        if all(state.last == self.batch for state in states) and not self.may_skip:
            self._check_same(sum(one.rows for one in staged), sum(state.rows for state in states))
        return states[0].open, looked

    def _check_same(self, given: int, entered: int) -> None:
        """Raise if a batch that has entered comes again with another number of rows."""
        if given != entered and not self.query.startswith(WRITES_ONCE):
            raise MisuseError(
                f"{self._name} has come already, with {entered:,} rows, and now has {given:,}: it is another "
                "one, with the checkpoint or the name of that query, and is not written. Start a stream with "
                "the checkpoint that it had last, or with a new checkpoint and a 'query' of its own; give a "
                "DataFrame another 'query'. Where a query makes other rows of the same input, as by rand(), "
                "say .option('gap', 'allow'): those that came first count"
            )

    @property
    def _name(self) -> str:
        return f"batch {self.batch} of query {self.query}"


def answer_seconds(timeout_seconds: float) -> float:
    """Return how long a worker may take until it is free, for a client that waits so long for an epoch."""
    return max(timeout_seconds, REPLY_SECONDS_MAX)


def _is_taken(waiting: Future[list[Reply]]) -> bool:
    (reply,) = waiting.result()
    return bool(reply.values.get("is_new"))


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
