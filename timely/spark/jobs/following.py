"""Epoch after epoch: sent, sealed, answered, committed, and told to callbacks.

A callback hears of an epoch when every sink of every output has committed it, so that whoever was told of an
epoch finds it there. If the job ends by an error what was handed over is committed on the way out, and
callbacks hear of that, too.
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
from timely.spark.delivering import TargetFactory
from timely.spark.epochs import DIFF, EPOCH, EpochSize
from timely.spark.errors import OutputError
from timely.spark.frames import frame_of, same_in_spark
from timely.spark.stopping import Stopped

from .calendar import Calendar
from .columns import SparkForm
from .feeding import Layout
from .outputs import Epoch, Target, ToCallback
from .querying import Query
from .shown import Screen
from .sinks import FolderSink, Kept, Sink, sink_of

__all__ = [
    "AnswerFeed",
    "Job",
    "OneOutput",
    "answers_of",
    "close_all",
    "first_wanted",
    "follow",
    "opened_outputs",
    "tell_last",
]

_CHANGES_COLUMNS = [pa.field(EPOCH, pa.int64()), pa.field(DIFF, pa.int64())]

_GOING_ON = (
    "The job has committed neither this epoch nor later ones. Correct the row where the job reads it, and "
    "start the job again with the same outputs; or change the query, and choose another folder."
)
"""Added to the error of an epoch without an answer."""

_Call: TypeAlias = Callable[[Epoch, pa.Table], object]


@dataclass(frozen=True)
class OneOutput:
    """An output of the query: its sinks, and who is called."""

    name: str
    form: SparkForm
    sinks: Sequence[Sink]
    callbacks: Sequence[_Call] = ()


@dataclass
class AnswerFeed:
    """What the dataflow `flow` answers goes from here to all that asked for it.

    `wants`: epochs before need not be handed over. `unread`: outputs that nobody asked for.
    """

    flow: timely.Flow
    outputs: Sequence[OneOutput]
    screen: Screen
    wants: int = 0
    unread: Sequence[str] = ()
    _waiting: deque[tuple[Epoch, list[pa.Table]]] = field(default_factory=deque)
    _is_told: bool = True

    def seal(self, number: int, value: object, size: EpochSize, expected: Sequence[ExpectedAppend]) -> None:
        """Complete the epoch, wait for its answers, and hand them on.

        An epoch before `wants` is the sum of all up to it: it is only held against what is committed. So is
        that before the first one that a sink wants, where another output is behind it. The sum begins with
        epoch 0, in which there is a row of what is said of all rows, though none of them has come yet.
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
        for output in (*read, *map(self.flow.output, self.unread)):
            output.forget(number + 1)
        self._hand_on(Epoch.of(number, value, size, seconds), tables)
        self.screen.done(number, size.rows, sum(table.num_rows for table in tables))

    def _check_before(self, number: int, read: list[FlowOutput], tables: list[pa.Table]) -> None:
        """Hold what is committed against the rows as of this epoch, where it is the last one committed."""
        for output, reader, changes in zip(self.outputs, read, tables, strict=True):
            held = partial(self._held, number, output, reader, changes)
            for sink in output.sinks:
                if sink.wants == number + 1:
                    self.screen.waits("Spark, to look at what is committed")
                    sink.check_before(held)

    def _held(self, number: int, output: OneOutput, reader: FlowOutput, changes: pa.Table) -> pa.Table:
        if number >= self.wants:
            _, changes = next(reader.follow(snapshot=True))
            if isinstance(changes, TimelyError):
                raise changes
        return output.form.of(changes)

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
            self.tell()

    def finish(self) -> None:
        """All epochs are sealed: commit what is left, write snapshots, call who has not been called."""
        self.screen.waits("Spark, to write snapshots")
        for output in self.outputs:
            for sink in output.sinks:
                sink.finish(partial(self._snapshot, output))
        self.tell()

    def tell(self) -> None:
        """Call back for the epochs that are committed by now."""
        spent = self.screen.spent()
        if self._waiting:  # what was done since the last time was done for the newest
            self._waiting[-1][0].spend(spent)
        committed = min((sink.committed for output in self.outputs for sink in output.sinks), default=1 << 62)
        while self._is_told and self._waiting and self._waiting[0][0] < committed:
            epoch, tables = self._waiting.popleft()
            try:
                for output, table in zip(self.outputs, tables, strict=True):
                    for callback in output.callbacks:
                        callback(epoch, table)
            except Stopped:
                raise  # a signal ends the job, and says nothing of the callback that it has met
            except BaseException:
                self._is_told = False  # whoever raises is not called again on the way out
                raise

    def _snapshot(self, output: OneOutput) -> pa.Table:
        return output.form.of(self.flow.output(output.name).snapshot())


def close_all(outputs: Iterable[OneOutput], is_failing: bool) -> None:
    """Let go of all sinks, which commit what they have; if something else has failed already, that is
    said.
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
    """What goes from `flow` to those of `opened` that somebody asked for."""
    asked_for = [output for output in opened if output.sinks or output.callbacks]
    unread = [output.name for output in opened if output not in asked_for]
    return AnswerFeed(flow, asked_for, screen, wants, unread)


def first_wanted(opened: Sequence[OneOutput]) -> int:
    """The first epoch that some output has to be given: those before are committed everywhere."""
    return min((first for output in opened for first in _wants(output)), default=0)


def _wants(output: OneOutput) -> list[int]:
    return [0] if output.callbacks else [sink.wants for sink in output.sinks] or [1 << 62]


def follow(layout: Layout, answers: AnswerFeed, target: TargetFactory, calendar: Calendar) -> None:
    """Send, seal and answer all epochs that are laid out."""
    values = calendar.values()
    for chunk in layout.chunks():
        answers.screen.waits("Spark, to send rows")
        expected = layout.send(chunk, target)
        answers.screen.sent()
        for epoch in chunk:
            value = None if values is None else values[epoch].as_py()
            answers.seal(epoch, value, layout.size(epoch), expected[epoch])


@dataclass(frozen=True)
class Job:
    """A query over its inputs at the epochs of a calendar."""

    spark: SparkSession
    query: Query
    calendar: Calendar

    def describe(self, output: str) -> dict[str, object]:
        """What makes the results of two jobs different, but for the rows."""
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
    """The sinks of all outputs; what they were given is committed when they are closed."""
    opened: list[OneOutput] = []
    forms = job.query.forms()
    nobody_asks = not any(targets.values())
    try:
        for name, asked in targets.items():
            sinks: list[Sink] = []
            calls = [_call(job.spark, target) for target in asked if isinstance(target, ToCallback)]
            opened.append(OneOutput(name, forms[name], sinks, calls))
            if nobody_asks:
                columns = pa.schema([*job.query.outputs[name], *_CHANGES_COLUMNS])
                sinks.append(Kept(job.spark, forms[name].of(columns.empty_table())))
            elif not all(isinstance(target, ToCallback) for target in asked):
                _check_names(job.spark, name, job.query.outputs[name].names)
            sinks += [
                sink_of(job.spark, target, job.describe(name), job.calendar)
                for target in asked
                if not isinstance(target, ToCallback)
            ]
        yield opened
    except BaseException as error:
        close_all(opened, is_failing=True)
        for output in opened:
            for sink in output.sinks:
                if isinstance(sink, FolderSink) and sink.progress():
                    error.add_note(sink.progress())
        raise
    else:
        close_all(opened, is_failing=False)


def _check_names(spark: SparkSession, output: str, names: Sequence[str]) -> None:
    """Raise OutputError for columns that Spark cannot write to files: it would fail after all the work."""
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


def tell_last(told: Sequence[AnswerFeed]) -> None:
    """Call back for what has been committed on the way out."""
    for answers in told:
        answers.tell()
