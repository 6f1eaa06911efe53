"""A DataFrame, or a stream, into an input of a running dataflow: a batch is an epoch.

Here is what Spark calls; how tasks stage rows, and the driver decides which of them count: `delivering.py`.
"""

from __future__ import annotations

import contextlib
import itertools
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import types as T
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from timely.client.tables import chunks
from timely.errors import InternalError, MisuseError, TimelyError
from timely.limits import APPEND_BYTES_MAX
from timely.spark.delivering import BatchDelivery, Staged
from timely.spark.source.columns import check_written, with_diff
from timely.spark.source.connecting import Whereabouts, flow_of, workers_at
from timely.spark.source.options import SourceOptions
from timely.spark.source.plainly import plainly
from timely.wire.requests import WRITES_ONCE

__all__ = ["BatchWriter", "RefusedWriter", "StreamWriter", "WritePlan", "plan_of_write"]

_ROWS_PER_PART = 1 << 17
_QUERY = "sql.streaming.queryId"
_BATCH = "streaming.sql.batchId"


@dataclass(frozen=True)
class WritePlan:
    """Which input is written, where, and what a commit does. `query`: under which name, if one was given."""

    at: Whereabouts
    dataflow: int
    input: str
    diff: str | None
    query: str
    seals: bool
    may_skip: bool
    lag: int
    timeout_seconds: float
    rows_per_part: int = _ROWS_PER_PART

    def of(self, query: str, batch: int) -> BatchDelivery:
        """Make one batch of a query of it."""
        return BatchDelivery(
            self.dataflow,
            self.input,
            query,
            batch,
            self.seals,
            self.may_skip,
            self.lag,
            self.timeout_seconds,
        )


def plan_of_write(options: SourceOptions, schema: T.StructType, overwrite: bool) -> WritePlan:
    """What the options ask for; raises what is wrong with them, or with the columns of the DataFrame."""
    if overwrite:
        raise MisuseError(
            "naiad appends: rows of an input are taken away by a column with their diff, -1, and not by "
            "overwriting. Write mode('append'), and outputMode('append') for a stream"
        )
    with flow_of(options) as (at, _, flow):
        form = flow.input(options.text("input", "edges")).form
        diff = options.given.get("diff", "").strip() or None
        if form.schema is None:
            raise MisuseError(f"input {form.name!r} takes Python records, which have no columns")
        check_written(schema, form.schema, diff, form.name)
        return WritePlan(
            at,
            flow.index,
            form.name,
            diff,
            options.query,
            options.flag("seal", True),
            options.choice("gap", ("refuse", "allow")) == "allow",
            options.count("lag", 8),
            options.timeout_seconds,
        )


class BatchWriter(DataSourceArrowWriter):
    """For `df.write`: all rows at once, in one epoch. With the option `query` they count once under that
    name.
    """

    def __init__(self, plan: WritePlan) -> None:
        self.plan = plan
        self._query = plan.query or f"{WRITES_ONCE}{uuid.uuid4().hex}"

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        """What a task does."""
        with plainly():
            return _stage(self.plan, self._query, 0, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """What the driver does when all tasks are done."""
        with plainly():
            _commit(self.plan, self._query, 0, messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """What the driver does when they are not; nothing that fails here hides what failed there."""
        del messages
        with contextlib.suppress(TimelyError):
            _drop(self.plan, self._query, 0)


class StreamWriter(DataSourceStreamArrowWriter):
    """For `df.writeStream`: a micro-batch is an epoch."""

    def __init__(self, plan: WritePlan) -> None:
        self.plan = plan

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        """What a task does."""
        context = TaskContext.get()
        batch = None if context is None else context.getLocalProperty(_BATCH)
        query = None if context is None else context.getLocalProperty(_QUERY)
        with plainly():
            if batch is None or query is None:
                raise InternalError("Spark has not told a task of a stream which query and batch it is of")
            staged = _stage(self.plan, self.plan.query or query, int(batch), iterator)
            return replace(staged, stream=query)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """What the driver does when all tasks are done."""
        with plainly():
            query = self._query_of(messages)
            if not query:
                raise InternalError(
                    f"no task says of which query batch {batchId} is: Spark runs one at least"
                )
            _commit(self.plan, query, batchId, messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """What the driver does when they are not; nothing that fails here hides what failed there."""
        query = self._query_of(messages)
        if query:
            with contextlib.suppress(TimelyError):
                _drop(self.plan, query, batchId)

    def _query_of(self, messages: Sequence[WriterCommitMessage | None]) -> str:
        told = [message.query for message in messages if isinstance(message, Staged)]
        return self.plan.query or (told[0] if told else "")


class RefusedWriter(DataSourceStreamArrowWriter):
    """Where a batch of a stream is to end and the cluster has gone: says why, unless it is given up anyway.

    Spark makes a writer anew for that. If that fails while it gives a batch up, Spark says that writing has
    failed, and nothing of what has failed first.
    """

    def __init__(self, error: TimelyError) -> None:
        self._error = error

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Raises."""
        del iterator
        raise self._error

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Raises."""
        del messages, batchId
        with plainly():
            raise self._error

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """What is not there cannot be told to let go of anything."""


def _stage(plan: WritePlan, query: str, batch: int, rows: Iterator[pa.RecordBatch]) -> Staged:
    """Send the rows of a task."""
    context = TaskContext.get()
    partition = 0 if context is None else context.partitionId()
    tables = (with_diff(table, plan.diff) for table in _parts(rows, plan.rows_per_part, APPEND_BYTES_MAX))
    with workers_at(plan.at) as workers:
        return plan.of(query, batch).stage(workers, tables, partition, 1 if plan.diff is None else 0)


def _commit(plan: WritePlan, query: str, batch: int, messages: Sequence[WriterCommitMessage | None]) -> None:
    with workers_at(plan.at) as workers:
        plan.of(query, batch).commit(workers, messages)


def _drop(plan: WritePlan, query: str, batch: int) -> None:
    """Let go of what tasks have staged, whether they tell of it or not; but for what a commit names that is
    perhaps still to come.
    """
    with workers_at(plan.at) as workers:
        plan.of(query, batch).drop(workers)


def _parts(batches: Iterator[pa.RecordBatch], rows_max: int, bytes_max: int) -> Iterator[pa.Table]:
    """The same rows in tables of `rows_max` rows or `bytes_max`, or a little more; none without rows."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in itertools.chain(batches, [None]):
        if batch is not None and batch.num_rows:
            waiting.append(batch)
            rows += batch.num_rows
            size += batch.nbytes
        if waiting and (batch is None or rows >= rows_max or size >= bytes_max):
            table = pa.Table.from_batches(waiting)
            yield from [table] if size < 2 * bytes_max else chunks(table, bytes_max)
            waiting, rows, size = [], 0, 0
