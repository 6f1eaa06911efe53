"""Follow a query epoch after epoch: send, seal, answer, commit, call back.

Callbacks are called for an epoch when every sink of every output has committed it, so that the callback's
code finds the epoch there. If the job ends by an error, the sinks commit the epochs handed over on the way
out, and callbacks are called for these, too.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias, cast

import pyarrow as pa
from pyspark.sql import SparkSession

import timely
from timely.client.reading import FlowOutput
from timely.errors import MisuseError, TimelyError
from timely.operators.inputs.names import ExpectedAppend
from timely.spark.epochs import DIFF, EPOCH, EpochSize
from timely.spark.errors import OutputError
from timely.spark.frames import frame_of, same_in_spark
from timely.spark.once.fed import Fed
from timely.spark.stopping import Stopped
from timely.wire.arrow import int64_array, int64s_of

from .calendar import Calendar
from .columns import SparkForm
from .feeding import Layout
from .outputs import Epoch, Target, ToCallback
from .querying import Hosted, Query
from .shown import Screen
from .sinks import FolderSink, MemorySink, Sink, sink_of

__all__ = [
    "AnswerFeed",
    "Job",
    "OneOutput",
    "answers_of",
    "call_back_last",
    "close_all",
    "fed_beside",
    "first_needed",
    "follow",
    "last_committed",
    "opened_outputs",
]

_CHANGES_COLUMNS = [pa.field(EPOCH, pa.int64()), pa.field(DIFF, pa.int64())]

_GOING_ON = (
    "The job has committed neither this epoch nor later ones. Correct the row where the job reads it, and "
    "start the job again with the same outputs; or change the query, and choose another folder."
)
"""The note on the error of an epoch without an answer."""

_Call: TypeAlias = Callable[[Epoch, pa.Table], object]


@dataclass(frozen=True)
class OneOutput:
    """An output of the query: its sinks, and its callbacks."""

    name: str
    form: SparkForm
    sinks: Sequence[Sink]
    callbacks: Sequence[_Call] = ()


@dataclass
class AnswerFeed:
    """Passes the answers of the dataflow `flow` to sinks and callbacks.

    `wants`: the first epoch that has to be handed over. `unread`: outputs without sinks and callbacks.
    """

    flow: timely.Flow
    outputs: Sequence[OneOutput]
    screen: Screen
    wants: int = 0
    unread: Sequence[str] = ()
    _waiting: deque[tuple[Epoch, list[pa.Table]]] = field(default_factory=deque)
    _calls_back: bool = True
    _answered: int = 0
    """The first epoch that was not handed on yet."""
    _forgotten: int = 0
    """The first epoch whose changes the workers keep."""

    def seal(self, number: int, value: object, size: EpochSize, expected: Sequence[ExpectedAppend]) -> None:
        """Complete the epoch, wait for its answers, and hand them on.

        An epoch before `wants` is the sum of all epochs up to it: its rows are only compared with the
        committed ones. So are those of the epoch before the first one that a sink wants, if another output
        has committed fewer epochs. Changes of the sum begin with epoch 0, since an aggregate over all rows
        has a row there before any row has come.
        """
        begin = time.perf_counter()
        self.screen.waits("workers")
        self.flow.seal(expected, through=number)
        read = [self.flow.output(output.name) for output in self.outputs]
        since = 0 if number < self.wants else number
        try:
            tables = [output.changes(since, number + 1) for output in read]
        except MisuseError as error:
            error.add_note(_GOING_ON)
            raise
        seconds = time.perf_counter() - begin
        self._check_before(number, read, tables)
        self._hand_on(Epoch.of(number, value, size, seconds), tables)
        self._answered = number + 1
        self.forget_committed()
        self.screen.done(number, size.rows, sum(table.num_rows for table in tables))

    def forget_committed(self) -> None:
        """Let the workers drop the changes of epochs that all sinks have committed, and all callbacks have
        had: a job that is started again in a durable cluster reads the others once more.
        """
        stop = min(self._answered, self._committed())
        if self._waiting:
            stop = min(stop, self._waiting[0][0])
        if stop > self._forgotten:
            self._forgotten = stop
            for name in (*(output.name for output in self.outputs), *self.unread):
                self.flow.output(name).forget(stop)

    def _check_before(
        self, number: int, read: Sequence[FlowOutput], tables: Sequence[pa.Table | None]
    ) -> None:
        """For each sink whose last committed epoch is this one, compare its rows with those as of this
        epoch.
        """
        for output, reader, changes in zip(self.outputs, read, tables, strict=True):
            rows_before = partial(self._rows_before, number, output, reader, changes)
            for sink in output.sinks:
                if sink.wants == number + 1:
                    self.screen.waits("Spark, to look at what is committed")
                    sink.check_before(rows_before)

    def check_resumed(self) -> None:
        """Compare what sinks have committed with the rows of a dataflow that was there before this run."""
        if self.wants:
            read = [self.flow.output(output.name) for output in self.outputs]
            self._check_before(self.wants - 1, read, [None] * len(read))

    def _rows_before(
        self, number: int, output: OneOutput, reader: FlowOutput, changes: pa.Table | None
    ) -> pa.Table:
        """Return the rows as of an epoch. `changes` are those from epoch 0 on, if that is the first one that
        this run answers.
        """
        if number < self.wants and changes is not None:
            return output.form.of(changes)
        self.flow.wait(number)
        epoch, rows = next(reader.follow(snapshot=True))
        if isinstance(rows, TimelyError):
            raise rows
        if epoch > number:  # the dataflow was there before, with epochs that are not committed
            later = reader.changes(number + 1, epoch + 1)
            rows = pa.concat_tables([rows, _negated(later.select(rows.column_names).cast(rows.schema))])
        return output.form.of(rows)

    def _hand_on(self, epoch: Epoch, tables: list[pa.Table]) -> None:
        if epoch < self.wants:
            return
        self.screen.waits("Spark, to commit")
        formed = [output.form.of(table) for output, table in zip(self.outputs, tables, strict=True)]
        for output, table in zip(self.outputs, formed, strict=True):
            for sink in output.sinks:
                sink.commit(epoch, table)
        if any(output.callbacks for output in self.outputs):
            self._waiting.append((epoch, formed))
            self.call_back()

    def finish(self) -> None:
        """After the seal of the last epoch: commit the rest, write snapshots, and make the remaining
        callbacks.
        """
        self.screen.waits("Spark, to write snapshots")
        for output in self.outputs:
            for sink in output.sinks:
                sink.finish(partial(self._snapshot, output))
        self.call_back()
        self.forget_committed()

    def finish_epoch(self) -> None:
        """Finish the sinks that are to be whole after each epoch."""
        for output in self.outputs:
            for sink in output.sinks:
                if sink.each_epoch:
                    self.screen.waits("Spark, to write snapshots")
                    sink.finish(partial(self._snapshot, output))

    def call_back(self) -> None:
        """Call the callbacks for the epochs that are committed by now."""
        spent = self.screen.spent()
        if self._waiting:  # the time since the last call was spent on the newest epoch
            self._waiting[-1][0].spend(spent)
        committed = self._committed()
        while self._calls_back and self._waiting and self._waiting[0][0] < committed:
            epoch, tables = self._waiting.popleft()
            try:
                for output, table in zip(self.outputs, tables, strict=True):
                    for callback in output.callbacks:
                        callback(epoch, table)
            except Stopped:
                raise  # a signal that ends the job; it is no fault of the callback that it has interrupted
            except BaseException:
                self._calls_back = False  # after an error of a callback make no more calls on the way out
                raise

    def _committed(self) -> int:
        """Return the first epoch that some sink has not committed."""
        return min((sink.committed for output in self.outputs for sink in output.sinks), default=1 << 62)

    def _snapshot(self, output: OneOutput) -> pa.Table:
        return output.form.of(self.flow.output(output.name).snapshot())


def close_all(outputs: Iterable[OneOutput], is_failing: bool) -> None:
    """Close all sinks, which commit the epochs handed over. Raise their first error unless `is_failing`: then
    another error is being raised already.
    """
    failure: TimelyError | None = None
    for output in outputs:
        for sink in output.sinks:
            try:
                sink.close()
            except TimelyError as error:
                failure = failure or error
    if failure is not None and not is_failing:
        raise failure


def answers_of(flow: timely.Flow, opened: Sequence[OneOutput], screen: Screen, wants: int) -> AnswerFeed:
    """Return the feed from `flow` to those of `opened` that have sinks or callbacks."""
    read = [output for output in opened if output.sinks or output.callbacks]
    unread = [output.name for output in opened if output not in read]
    return AnswerFeed(flow, read, screen, wants, unread)


def first_needed(opened: Sequence[OneOutput]) -> int:
    """Return the first epoch that some output needs: all outputs have committed those before."""
    return min((first for output in opened for first in _wants(output)), default=0)


def last_committed(opened: Sequence[OneOutput]) -> int:
    """Return the epoch behind the last one that some output has committed."""
    sinks = [sink for output in opened for sink in output.sinks if isinstance(sink, FolderSink)]
    return max((sink.wants for sink in sinks if sink.keep != "snapshot"), default=0)


def fed_beside(opened: Sequence[OneOutput]) -> Fed | None:
    """Return what is noted of earlier runs beside the first output in a folder; None if there is none."""
    sinks = (sink for output in opened for sink in output.sinks if isinstance(sink, FolderSink))
    first = next(sinks, None)
    return None if first is None else Fed.read(first.folder)


def _wants(output: OneOutput) -> list[int]:
    return [0] if output.callbacks else [sink.wants for sink in output.sinks] or [1 << 62]


def follow(
    layout: Layout,
    answers: AnswerFeed,
    hosted: Hosted,
    calendar: Calendar,
    fed: Fed | None = None,
) -> None:
    """Send, seal and answer all epochs of a layout. A dataflow that was there before has the rows of sealed
    epochs already. `fed`: where to note which epochs are sent.
    """
    values = calendar.values()
    digests = {} if fed is None else layout.digests()
    opened = answers.flow.epoch
    for chunk in layout.chunks():
        sent = range(max(chunk.start, opened), max(chunk.stop, opened))
        if fed is not None:
            fed.note({epoch: digests[epoch] for epoch in range(sent.start - 1, sent.stop) if sent})
        answers.screen.waits("Spark, to send rows")
        expected = hosted.feed(partial(layout.send, sent))
        answers.screen.sent()
        for epoch in chunk:
            value = None if values is None else values[epoch].as_py()
            answers.seal(epoch, value, layout.size(epoch), expected.get(epoch, ()))
            answers.finish_epoch()


def _negated(changes: pa.Table) -> pa.Table:
    at = changes.column_names.index(DIFF)
    return changes.set_column(at, changes.schema.field(at), int64_array(-int64s_of(changes.column(DIFF))))


@dataclass(frozen=True)
class Job:
    """A query over its inputs at the epochs of a calendar."""

    spark: SparkSession
    query: Query
    calendar: Calendar

    def describe(self, output: str) -> dict[str, object]:
        """Return all that the results of a job depend on, other than the rows."""
        columns = [f"{field.name} {field.type}" for field in self.query.outputs[output]]
        inputs = {
            name: ", ".join(
                f"{each.name} {each.dataType.simpleString()}{'?' * each.nullable}" for each in fields.fields
            )
            for name, fields in self.query.fields.items()
        }
        return {
            "query": self.query.identity,
            "output": output,
            "columns": ", ".join(columns),
            "inputs": inputs,
            "epochs": self.calendar.describe(),
        }


@contextmanager
def opened_outputs(job: Job, targets: Mapping[str, list[Target]]) -> Iterator[list[OneOutput]]:
    """Yield all outputs with their sinks open; at the end close them, which commits the epochs handed
    over.
    """
    opened: list[OneOutput] = []
    forms = job.query.forms()
    is_in_memory = not any(targets.values())
    is_open = False
    try:
        for name, of_output in targets.items():
            sinks: list[Sink] = []
            calls = [_call(job.spark, target) for target in of_output if isinstance(target, ToCallback)]
            opened.append(OneOutput(name, forms[name], sinks, calls))
            if is_in_memory:
                columns = pa.schema([*job.query.outputs[name], *_CHANGES_COLUMNS])
                sinks.append(MemorySink(job.spark, forms[name].of(columns.empty_table())))
            elif not all(isinstance(target, ToCallback) for target in of_output):
                _check_names(job.spark, name, job.query.outputs[name].names)
            sinks += [
                sink_of(job.spark, target, job.describe(name), job.calendar)
                for target in of_output
                if not isinstance(target, ToCallback)
            ]
        is_open = True
        yield opened
    except BaseException as error:
        close_all(opened, is_failing=True)
        for note in _progress(opened) if is_open else ():
            error.add_note(note)
        raise
    else:
        close_all(opened, is_failing=False)


def _progress(outputs: Sequence[OneOutput]) -> list[str]:
    """Return a sentence for each folder on how the job goes on; none if a folder has refused this run, since
    it would refuse the next one, too.
    """
    folders = [sink for output in outputs for sink in output.sinks if isinstance(sink, FolderSink)]
    if any(folder.is_refused for folder in folders):
        return []
    return [sentence for folder in folders if (sentence := folder.progress())]


def _check_names(spark: SparkSession, output: str, names: Sequence[str]) -> None:
    """Raise OutputError for columns that Spark cannot write to files; Spark would fail only after all the
    work.
    """
    same = same_in_spark(spark, names)
    if same is not None:
        raise OutputError(
            f"output {output!r} has the columns {same[0]!r} and {same[1]!r}, which Spark takes for one, and "
            f"does not write to files. Rename one in the query: rename({{{same[1]!r}: '{same[1]}_2'}}); or "
            "set spark.sql.caseSensitive to true for the session"
        )


def _call(spark: SparkSession, target: ToCallback) -> Callable[[Epoch, pa.Table], object]:
    function = cast("Callable[[Epoch, object], object]", target.function)
    if not target.as_frame:
        return function
    return lambda epoch, changes: function(epoch, frame_of(spark, changes))


def call_back_last(feeds: Sequence[AnswerFeed]) -> None:
    """Call the callbacks for epochs that were committed on the way out."""
    for answers in feeds:
        answers.call_back()
