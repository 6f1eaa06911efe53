"""Write a DataFrame, or a stream, into an input of a running dataflow: a batch is an epoch.

This file has the methods that Spark calls; `delivering.py` has how tasks stage rows, and how the driver
decides which of them count.
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
    """The input to write, its workers, and the effect of a commit. `query`: the name of the option; may
    be empty.
    """

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
        """Return the delivery of one batch of a query."""
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
    """Return the plan for the options; raises `MisuseError` for errors in them, or in the DataFrame's
    columns.
    """
    if overwrite:
        raise MisuseError(
            "naiad appends: rows of an input are taken away by a column with their diff, -1, and not by "
            "overwriting. Write mode('append'), and outputMode('append') for a stream"
        )
    with flow_of(options) as (at, _, flow):
        form = flow.input(options.text("input", "edges")).form
        diff = options.values.get("diff", "").strip() or None
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
    """The writer for `df.write`: all rows enter one epoch. With the option `query` they count once under that
    name.
    """

    def __init__(self, plan: WritePlan) -> None:
        self.plan = plan
        self._query = plan.query or f"{WRITES_ONCE}{uuid.uuid4().hex}"

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        """Stage the rows of a task; called in the task."""
        with plainly():
            return _stage(self.plan, self._query, 0, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Commit the batch; called on the driver when all tasks have succeeded."""
        with plainly():
            _commit(self.plan, self._query, 0, messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Drop the staged rows; called on the driver when a task has failed, whose error this must not
        hide.
        """
        del messages
        with contextlib.suppress(TimelyError):
            _drop(self.plan, self._query, 0)


class StreamWriter(DataSourceStreamArrowWriter):
    """The writer for `df.writeStream`: a micro-batch is an epoch."""

    def __init__(self, plan: WritePlan) -> None:
        self.plan = plan

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        """Stage the rows of a task; called in the task."""
        context = TaskContext.get()
        batch = None if context is None else context.getLocalProperty(_BATCH)
        query = None if context is None else context.getLocalProperty(_QUERY)
        with plainly():
            if batch is None or query is None:
                raise InternalError("a task of a stream got neither query nor batch from Spark")
            staged = _stage(self.plan, self.plan.query or query, int(batch), iterator)
            return replace(staged, stream=query)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Commit the batch; called on the driver when all tasks have succeeded."""
        with plainly():
            query = self._query_of(messages)
            if not query:
                raise InternalError(
                    f"no task has reported the query of batch {batchId}: Spark runs at least one task"
                )
            _commit(self.plan, query, batchId, messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Drop the staged rows; called on the driver when a task has failed, whose error this must not
        hide.
        """
        query = self._query_of(messages)
        if query:
            with contextlib.suppress(TimelyError):
                _drop(self.plan, query, batchId)

    def _query_of(self, messages: Sequence[WriterCommitMessage | None]) -> str:
        queries = [message.query for message in messages if isinstance(message, Staged)]
        return self.plan.query or (queries[0] if queries else "")


class RefusedWriter(DataSourceStreamArrowWriter):
    """Takes the place of a writer at the end of a stream's batch if the cluster is gone: a commit raises the
    reason, an abort does nothing.

    Spark creates a new writer for the end of a batch. If creating it fails while Spark gives up a batch,
    Spark reports only that, and not the first failure.
    """

    def __init__(self, error: TimelyError) -> None:
        self._error = error

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Raise the error."""
        del iterator
        raise self._error

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Raise the error."""
        del messages, batchId
        with plainly():
            raise self._error

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Do nothing: there is no cluster that could drop the rows."""


def _stage(plan: WritePlan, query: str, batch: int, rows: Iterator[pa.RecordBatch]) -> Staged:
    """Stage the rows of a task on the workers."""
    context = TaskContext.get()
    partition = 0 if context is None else context.partitionId()
    tables = (with_diff(table, plan.diff) for table in _parts(rows, plan.rows_per_part, APPEND_BYTES_MAX))
    with workers_at(plan.at) as workers:
        return plan.of(query, batch).stage(workers, tables, partition, 1 if plan.diff is None else 0)


def _commit(plan: WritePlan, query: str, batch: int, messages: Sequence[WriterCommitMessage | None]) -> None:
    with workers_at(plan.at) as workers:
        plan.of(query, batch).commit(workers, messages)


def _drop(plan: WritePlan, query: str, batch: int) -> None:
    """Drop the staged rows of all tasks, also of those that have sent no message; but not attempts that a
    commit, which may still come, names.
    """
    with workers_at(plan.at) as workers:
        plan.of(query, batch).drop(workers)


def _parts(batches: Iterator[pa.RecordBatch], rows_max: int, bytes_max: int) -> Iterator[pa.Table]:
    """Yield the rows in tables of `rows_max` rows or `bytes_max` bytes, or a little more, none of them
    empty.
    """
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
