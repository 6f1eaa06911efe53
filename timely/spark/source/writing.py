"""A DataFrame, or a stream, into an input of a running dataflow: a batch is an epoch.

    executor    rows of a task ──stage──▶ all workers in turn       under query, batch and attempt
    executor    what it has staged ──▶ driver                       a commit message
    driver      is all there? ──▶ all workers
    driver      these attempts are the batch ──▶ worker 0           they enter the open epoch, and seal it

What a task stages that fails, is killed, or runs twice is not named by the commit; it is let go of then, or,
if the batch is given up, when Spark says so. Everything that may fail comes before the commit, waiting for
slow workers, too: Spark takes a batch for failed whose commit raises, and a user writes it again. A commit
that nobody has answered may still be made, and half of a batch must not be: so what it names stays. A batch
that Spark gives again, because the driver died before it had written down the commit, changes nothing
(`timely/operators/inputs/deliveries.py`).
"""

from __future__ import annotations

import contextlib
import itertools
import math
import time
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import NamedTuple

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import types as T
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from timely.client.installed import Workers
from timely.client.tables import chunks
from timely.errors import InternalError, MisuseError, PeerError, TimelyError
from timely.limits import APPEND_BYTES_MAX, ATTEMPT_SECONDS_MAX
from timely.spark.source.columns import check_written, with_diff
from timely.spark.source.connecting import Whereabouts, answer_seconds, flow_of, workers_at
from timely.spark.source.options import Options
from timely.spark.source.plainly import plainly
from timely.wire.claims import shown
from timely.wire.requests import WHEN_NAMED, Decide, Deliver, Drop, Missing, Reply, Value, Wait
from timely.wire.task_requests import WRITES_ONCE

__all__ = ["BatchWriter", "RefusedWriter", "Staged", "StreamWriter", "WritePlan", "plan_of_write"]

_ROWS_PER_PART = 1 << 17
_LAG_SECONDS_MAX = ATTEMPT_SECONDS_MAX / 2
"""What a commit is about to name has to be there when it comes."""
_HEARD_SECONDS_MAX = 10.0
_LOOK_SECONDS = 0.02
"""How long a batch that is committed already waits for all workers to hear of that, and how often it asks.
A link between workers that is silent for as long counts as lost."""
_TASKS_MAX = 65_536
"""Of one batch: a commit names them in one request, which has a header of so many bytes."""
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


@dataclass(frozen=True)
class Staged(WriterCommitMessage):
    """What one attempt has staged: how many parts on each worker."""

    query: str
    batch: int
    attempt: str
    parts: tuple[int, ...]
    rows: int
    """That it was given, also if none of them are kept because the batch is committed already."""
    stream: str = ""
    """By which name Spark knows the stream, as its checkpoint says; empty: it is none."""


def plan_of_write(options: Options, schema: T.StructType, overwrite: bool) -> WritePlan:
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
    """Send the rows of a task, part by part, to all workers in turn; while one is on its way the next is
    taken from Spark.
    """
    context = TaskContext.get()
    partition = 0 if context is None else context.partitionId()
    attempt = f"{partition:06d}/{uuid.uuid4().hex}"
    with workers_at(plan.at) as workers, ThreadPoolExecutor(1, "staging") as sender:
        parts = [0] * workers.count
        given = 0
        is_wanted = True
        waiting: Future[list[Reply]] | None = None
        try:
            for number, table in enumerate(_parts(rows, plan.rows_per_part, APPEND_BYTES_MAX)):
                given += table.num_rows  # also of a batch that is committed: is it the same again?
                is_wanted = is_wanted and (waiting is None or _is_taken(waiting))
                if not is_wanted:
                    continue
                worker = (partition + number) % workers.count
                request = Deliver(
                    plan.dataflow,
                    plan.input,
                    query,
                    batch,
                    WHEN_NAMED,
                    0,
                    1 if plan.diff is None else 0,
                    part=number,
                    attempt=attempt,
                )
                asked = [(worker, request, with_diff(table, plan.diff))]
                waiting = sender.submit(workers.ask, asked, answer_seconds(plan.timeout_seconds))
                parts[worker] += 1
            if waiting is not None and not _is_taken(waiting):
                parts = [0] * workers.count  # it is committed already: nothing is kept, nothing is missing
        except BaseException:
            with contextlib.suppress(TimelyError):
                _drop_at(workers, plan, query, batch, [attempt])
            raise
        return Staged(query, batch, attempt, tuple(parts), given)


def _is_taken(waiting: Future[list[Reply]]) -> bool:
    (reply,) = waiting.result()
    return bool(reply.values.get("is_new"))


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


def _commit(plan: WritePlan, query: str, batch: int, messages: Sequence[WriterCommitMessage | None]) -> None:
    staged = sorted(
        (message for message in messages if isinstance(message, Staged)), key=lambda one: one.attempt
    )
    if any((one.query, one.batch) != (query, batch) for one in staged):
        raise InternalError(f"Spark commits batch {batch} of {query} with what was staged for another")
    names: list[Value] = [one.attempt for one in staged if one.rows]
    if len(names) > _TASKS_MAX:
        raise MisuseError(
            f"batch {batch} of query {query} is of {len(names):,} tasks with rows, all of which its commit "
            f"has to name, and {_TASKS_MAX:,} are the limit: write fewer partitions, as by "
            f"coalesce({_TASKS_MAX})"
        )
    stream = next((one.stream for one in staged), "")
    with workers_at(plan.at) as workers:
        is_sent = False
        try:
            look = _check_there(workers, plan, query, batch, staged)
            behind = look.open - plan.lag
            if plan.seals and plan.lag and behind >= 0:
                # What is sealed and not computed waits in the workers' memory: a stream that is quicker
                # waits, too.
                seconds = min(plan.timeout_seconds, _LAG_SECONDS_MAX)
                wait = Wait(plan.dataflow, "", behind, seconds)
                workers.ask([(worker, wait, None) for worker in range(workers.count)], seconds + 1)
            entry: list[Value] = [plan.input, query, batch, names, stream, plan.may_skip, look.looked]
            request = Decide(plan.dataflow, -1, plan.seals, enter=[entry])
            is_sent = True
            (reply,) = workers.ask([(0, request, None)], answer_seconds(plan.timeout_seconds))
            if not _is_new(reply):
                # It is committed already, perhaps since the look above and by another: then as what?
                _check_there(workers, plan, query, batch, staged)
        except TimelyError as error:
            # Spark says next that the batch is given up, in a process that does not know how far it was.
            if names and (not is_sent or isinstance(error, MisuseError)):
                with contextlib.suppress(TimelyError):
                    _drop_at(workers, plan, query, batch, names)
            raise


def _is_new(reply: Reply) -> bool:
    match reply.items("entered"):
        case [[bool(is_new), int()]]:
            return is_new
        case entered:
            raise PeerError(f"a worker says of a batch that was to enter {shown(entered)}")


class _Look(NamedTuple):
    """All is there: the open epoch, and when that was, by the clock of worker 0, at the latest."""

    open: int
    looked: int


def _check_there(
    workers: Workers, plan: WritePlan, query: str, batch: int, staged: Sequence[Staged]
) -> _Look:
    """Raise if what a task has staged is not there any more: then nothing is committed; or if the batch is
    committed, and was another one.
    """
    asked = []
    for worker in range(workers.count):
        here: list[Value] = [
            [plan.input, query, batch, one.attempt, one.parts[worker]] for one in staged if one.parts[worker]
        ]
        asked.append((worker, Missing(plan.dataflow, -1, here, [[plan.input, query]]), None))
    begin = time.monotonic()
    replies = workers.ask(asked, answer_seconds(plan.timeout_seconds))
    seconds = math.ceil(time.monotonic() - begin)  # so much earlier others may have answered than worker 0
    states = [_state_of(reply) for reply in replies]
    looked = states[0].seconds - seconds
    until = time.monotonic() + _HEARD_SECONDS_MAX
    while states[0].last >= batch and not _are_alike(states) and time.monotonic() < until:
        time.sleep(_LOOK_SECONDS)
        replies = workers.ask(asked, answer_seconds(plan.timeout_seconds))
        states = [_state_of(reply) for reply in replies]
    missing = sum(len(reply.items("missing")) for reply in replies)
    # Worker 0 decides: the others may not have heard yet of a commit that this one repeats.
    if missing and states[0].last < batch:
        raise MisuseError(
            f"batch {batch} of query {query} is not committed: what {missing} of its tasks staged is not "
            "there any more, since it waited for too long or the dataflow is another one. Write it again"
        )
    if all(state.last == batch for state in states) and not plan.may_skip:
        _check_same(plan, query, batch, staged, sum(state.rows for state in states))
    return _Look(states[0].open, looked)


class _State(NamedTuple):
    """What a worker knows of a query: its last batch that is committed, the rows of it there, the open epoch
    of the input, and what the clock says.
    """

    last: int
    rows: int
    open: int
    seconds: int


def _state_of(reply: Reply) -> _State:
    match reply.items("queries"):
        case [[int(last), int(rows), int(opened), int(seconds)]]:
            return _State(last, rows, opened, seconds)
        case queries:
            raise PeerError(f"a worker says of a query that writes {shown(queries)}")


def _are_alike(states: Sequence[_State]) -> bool:
    return len({state.last for state in states}) == 1


def _check_same(plan: WritePlan, query: str, batch: int, staged: Sequence[Staged], rows: int) -> None:
    """Raise if a batch that has entered comes again with another number of rows."""
    given = sum(one.rows for one in staged)
    if given != rows and not query.startswith(WRITES_ONCE):
        raise MisuseError(
            f"batch {batch} of query {query} has come already, with {rows:,} rows, and now has {given:,}: "
            "it is another one, with the checkpoint or the name of that query, and is not written. Start a "
            "stream with the checkpoint that it had last, or with a new checkpoint and a 'query' of its "
            "own; give a DataFrame another 'query'. Where a query makes other rows of the same input, as by "
            "rand(), say .option('gap', 'allow'): those that came first count"
        )


def _drop(plan: WritePlan, query: str, batch: int) -> None:
    """Let go of what tasks have staged, who tell of it or not; but for what a commit names that is perhaps
    still to come.
    """
    with workers_at(plan.at) as workers:
        _drop_at(workers, plan, query, batch, [])


def _drop_at(workers: Workers, plan: WritePlan, query: str, batch: int, attempts: list[Value]) -> None:
    names: list[Value] = [[plan.input, query, batch, attempt] for attempt in attempts]
    request = Drop(plan.dataflow, names or [[plan.input, query, batch]])
    workers.ask([(worker, request, None) for worker in range(workers.count)])
