"""`timely.spark.run`: what the one call means, and what it starts and ends.

1  the query is called with collections that have the DataFrames' columns; outputs are opened and checked
2  Spark lays the rows out by epoch, while the workers start
3  chunk by chunk executors send them; each epoch is sealed, answered, committed
4  snapshots are written; workers that the call has started end
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeVar, cast

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import timely
from timely.errors import MisuseError, TimelyError
from timely.spark.epochs import DIFF, EPOCH
from timely.spark.errors import InputFormatError, first_line
from timely.spark.lost import java_watched, spark_lost

from .calendar import Calendar, calendar_of
from .feeding import Layout, lay_out
from .following import Answers, OneOutput, close_all
from .outputs import Epoch, Target, ToCallback, targets_of
from .querying import Query, query_of
from .result import Result
from .shown import Screen
from .sinks import FolderSink, Kept, Sink, sink_of
from .spans import Window

__all__ = ["run"]

R = TypeVar("R")

_CHANGES_COLUMNS = [pa.field(EPOCH, pa.int64()), pa.field(DIFF, pa.int64())]


def run(
    query: object,
    inputs: Mapping[str, DataFrame],
    *,
    epochs: str | None = None,
    window: Window | None = None,
    diff: str | None = None,
    outputs: object = None,
    workers: int | timely.Cluster = 2,
    progress: bool = True,
) -> Result:
    """Follow `query` over the epochs of DataFrames, and return its answers as DataFrames.

        edges = spark.read.parquet("edges")                           # src, dst, day
        answer = timely.spark.run(reachable, {"edges": edges}, epochs="day")
        answer.to_df().show()                                         # as of the last day
        answer.changes().show()                                       # columns, epoch, diff

    query       a function that takes a collection for each input, by name, and returns one collection (the
                output "result") or a dict of them; it is called in this process, and its plan travels. Or a
                builder (`@timely.builder`, "module:function") that declares inputs and outputs itself, or
                collections that are written already.
    inputs      DataFrames by name. Columns, types and nullability are taken over; those that `epochs`,
                `window` and `diff` name are no columns of the collection.
    epochs      a column whose different values, in their order, are the epochs.
    window      `timely.spark.sliding`, `tumbling` or `growing` over a column of times. Without either: one
                epoch. An input that has no such column is there from the first epoch on.
    diff        a column that says how often a row comes, negative if it goes: numbers, or 'insert' and
    'remove'. outputs     where answers go: a folder, a function of (epoch, changes), `to_parquet`,
                `to_table`, `to_callback`, or a list of these; for several outputs a dict by name. Without:
                nowhere but into what is returned, in the driver's memory.
    workers     how many processes on this machine, which end with the call; or a cluster, on which the query
                is installed, and uninstalled at the end.
    progress    one line on the error stream while it runs, if that is a terminal.

    Started again with the same outputs it goes on behind the last epoch that is committed in all of them; an
    output of another query, other columns or other epochs is refused. If it fails, what it has started ends,
    and what is committed stays.

    Raises InputFormatError for inputs, MisuseError for what does not fit together, OutputError for outputs,
    PeerError for a worker or Spark that is lost, and what the query raises; each in one line, and alone.
    Costs: one Spark job to lay out an input and to count it, one for a chunk of about 262,144 rows; then work
    follows the change. Everything that has arrived for epochs to come waits in the workers.
    """
    with _told_alone(), java_watched(), ExitStack() as stack:
        frames = _checked(inputs)
        _check_diff(frames, window, diff)
        screen = stack.enter_context(Screen(progress))
        beside = [name for name in (epochs, diff, window.on if window else None) if name is not None]
        asked = query_of(query, frames, beside)
        targets = targets_of(outputs, list(asked.outputs))
        screen.waits("Spark, to find epochs")
        with _spark_said("the inputs cannot be read"):
            calendar = calendar_of(frames, epochs, window)
        told: list[Answers] = []
        stack.callback(_tell_last, told)  # after the sinks below have committed what they had
        spark = next(iter(frames.values())).sparkSession
        opened = stack.enter_context(_opened(_Job(spark, asked, calendar), targets))
        wants = min(calendar.count, *(first for output in opened for first in _wants(output)))
        screen.total(calendar.count)
        screen.waits("workers to start, Spark to lay out rows")
        laid = partial(lay_out, frames, asked.fields, calendar, diff, wants)
        with _meanwhile(laid) as layout_of, _installed(asked, workers) as (cluster, flow):
            with _spark_said("the inputs cannot be laid out"):
                layout = layout_of()
            stack.callback(_release, layout)
            told.append(_answers(flow, opened, screen, wants))
            _follow(layout, told[0], cluster, calendar)
            told[0].finish()
    return _result(opened, calendar)


def _answers(flow: timely.Flow, opened: list[OneOutput], screen: Screen, wants: int) -> Answers:
    asked_for = [output for output in opened if output.sinks or output.callbacks]
    unread = [output.name for output in opened if output not in asked_for]
    return Answers(flow, asked_for, screen, wants, unread)


def _result(opened: list[OneOutput], calendar: Calendar) -> Result:
    values = calendar.values()
    sinks = {output.name: output.sinks for output in opened}
    return Result(sinks, calendar.count, None if values is None else values.to_pylist())


@dataclass(frozen=True)
class _Job:
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


def _follow(layout: Layout, answers: Answers, cluster: timely.Cluster, calendar: Calendar) -> None:
    values = calendar.values()
    target = cluster.append_target(answers.flow.index)
    for chunk in layout.chunks():
        answers.screen.waits("Spark, to send rows")
        expected = layout.send(chunk, target)
        answers.screen.sent()
        for epoch in chunk:
            value = None if values is None else values[epoch].as_py()
            answers.seal(epoch, value, layout.size(epoch), expected[epoch])


@contextmanager
def _opened(job: _Job, targets: Mapping[str, list[Target]]) -> Iterator[list[OneOutput]]:
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


def _wants(output: OneOutput) -> list[int]:
    return [0] if output.callbacks else [sink.wants for sink in output.sinks] or [1 << 62]


def _call(spark: SparkSession, target: ToCallback) -> Callable[[Epoch, pa.Table], object]:
    function = cast("Callable[[Epoch, object], object]", target.function)
    if not target.as_frame:
        return function
    return lambda epoch, changes: function(epoch, spark.createDataFrame(changes))


def _checked(inputs: object) -> dict[str, DataFrame]:
    if not isinstance(inputs, Mapping) or not inputs:
        raise MisuseError("inputs are DataFrames by name: inputs={'edges': edges}")
    for name, frame in inputs.items():
        if not isinstance(frame, DataFrame):
            raise MisuseError(
                f"input {name!r} is a {type(frame).__name__}, not a DataFrame of Spark: "
                "spark.createDataFrame(…) makes one"
            )
        if not str(name).isidentifier():
            raise MisuseError(f"input {name!r}: the query takes inputs by name, so it is a word like edges")
    return {str(name): frame for name, frame in inputs.items()}


def _check_diff(inputs: Mapping[str, DataFrame], window: Window | None, diff: str | None) -> None:
    if diff is None:
        return
    if all(diff not in frame.columns for frame in inputs.values()):
        have = "; ".join(f"{name} has {', '.join(frame.columns)}" for name, frame in inputs.items())
        raise InputFormatError(f"no input has the column {diff!r} that says what comes and goes: {have}")
    if window is not None and window.length is not None:
        raise MisuseError(
            f"rows leave a {window.kind} window by themselves, so diff={diff!r} has no place there: filter "
            "removals out, or take a window that grows"
        )


@contextmanager
def _meanwhile(work: Callable[[], R]) -> Iterator[Callable[[], R]]:
    """Do `work` in a thread of its own; what is yielded waits for what it returns."""
    aside = ThreadPoolExecutor(1, "laying out")
    try:
        yield aside.submit(work).result
    finally:
        # Whoever leaves by an error does not wait for a job of Spark.
        aside.shutdown(wait=False, cancel_futures=True)


@contextmanager
def _installed(query: Query, workers: int | timely.Cluster) -> Iterator[tuple[timely.Cluster, timely.Flow]]:
    """The query on workers that end with the block, or on those of the caller, where it ends."""
    if isinstance(workers, int):
        with timely.connect(workers=workers) as cluster:
            yield cluster, cluster.install(query.build)
        return
    flow = workers.install(query.build)
    try:
        yield workers, flow
    finally:
        with suppress(TimelyError):  # it has ended, or its cluster has: that is what is told
            flow.uninstall()


def _tell_last(told: list[Answers]) -> None:
    for answers in told:
        answers.tell()


def _release(layout: Layout) -> None:
    with suppress(Exception):  # Java may be gone, and the rows with it
        layout.release()


@contextmanager
def _spark_said(what: str) -> Iterator[None]:
    """An error of Spark, in one line."""
    try:
        yield
    except TimelyError:
        raise
    except Exception as error:  # PySpark's own, or one of the JVM that PySpark passes on as it is
        lost = spark_lost(error)
        if lost is not None:
            raise lost from None
        raise InputFormatError(f"{what}: {first_line(error)}") from None


@contextmanager
def _told_alone() -> Iterator[None]:
    """Errors come without those of Spark and Py4J in front of them, which are long and say less."""
    try:
        yield
    except TimelyError as error:
        error.__suppress_context__ = True
        if type(error.__cause__).__module__.partition(".")[0] in ("py4j", "pyspark", "builtins"):
            error.__cause__ = None
        raise
