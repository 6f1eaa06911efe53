"""`timely.spark.run`: what the one call means, and what it starts and ends.

1  the query is called with collections that have the DataFrames' columns; outputs are opened and checked
2  Spark lays the rows out by epoch, while the workers start
3  chunk by chunk executors send them; each epoch is sealed, answered, committed
4  snapshots are written; workers that the call has started end
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from difflib import get_close_matches
from functools import partial

from pyspark.sql import DataFrame

import timely
from timely.errors import MisuseError
from timely.spark.errors import InputFormatError
from timely.spark.lost import java_watched, spark_said, told_alone
from timely.user_code.short_traces import told_shortly

from .calendar import calendar_of
from .feeding import Layout, lay_out
from .following import AnswerFeed, Job, OneOutput, answers_of, first_wanted, follow, opened_outputs, tell_last
from .micro_batches import MicroBatches, follow_stream, stream_of
from .outputs import Target, targets_of
from .querying import installed, query_of
from .result import Result
from .shown import Screen
from .spans import Window

__all__ = ["run"]


def run(
    query: object,
    inputs: Mapping[str, DataFrame],
    *,
    epochs: str | MicroBatches | None = None,
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
    epochs      a column whose different values, in their order, are the epochs. One of the inputs may be a
                stream: then micro-batches are, those of what it has by now, or all of `micro_batches()`.
    window      `timely.spark.sliding`, `tumbling` or `growing` over a column of times. Without either: one
                epoch. An input that has no such column is there from the first epoch on.
    diff        the name of a column that says how often a row comes, negative if it goes: whole numbers, or
                'insert' and 'remove'.
    outputs     where answers go: a folder, a function of (epoch, changes), `to_parquet`,
                `to_table`, `to_callback`, or a list of these; for several outputs a dict by name. Without:
                nowhere but into what is returned, in the driver's memory.
    workers     how many processes on this machine, which end with the call; or a cluster, on which the query
                is installed, and uninstalled at the end.
    progress    one line on the error stream while it runs, if that is a terminal.

    Started again with the same outputs it goes on behind the last epoch that is committed in all of them; an
    output of another query, other columns or other epochs is refused. If it fails, what it has started ends,
    and what is committed stays.

    Raises InputFormatError for inputs, MisuseError for what does not fit together, OutputError for outputs,
    PeerError for a worker or Spark that is lost, and what the query raises; nothing of Spark is beside it.
    Costs: one Spark job to lay out an input and to count it, one for a chunk of about 262,144 rows; then work
    follows the change. Everything that has arrived for epochs to come waits in the workers.
    """
    with told_shortly(), told_alone(), java_watched(), Screen(progress) as screen:
        frames = _checked(inputs)
        _check_window(window)
        _check_epochs(epochs)
        _check_diff(frames, epochs, window, diff)
        stream = stream_of(frames, epochs, window)
        beside = [name for name in (epochs, diff, window and window.on) if isinstance(name, str)]
        asked = query_of(query, frames, beside)
        targets = targets_of(outputs, list(asked.outputs))
        if stream is not None:
            opened = follow_stream(stream, frames, asked, targets, epochs, diff, workers, screen)
            return _result(opened, screen)
        assert not isinstance(epochs, MicroBatches)
        screen.waits("Spark, to find epochs")
        with spark_said("the inputs cannot be read"):
            calendar = calendar_of(frames, epochs, window)
        job = Job(next(iter(frames.values())).sparkSession, asked, calendar)
        return _follow_frames(job, frames, targets, diff, workers, screen)


def _check_window(window: object) -> None:
    if window is not None and not isinstance(window, Window):
        length = window if isinstance(window, str) else "1 hour"
        raise MisuseError(
            f"window= takes a window over a column of times, not {window!r:.80}. Write "
            f"timely.spark.tumbling({length!r}, on='time'), or sliding({length!r}, every=…, on='time')"
        )


def _follow_frames(
    job: Job,
    frames: Mapping[str, DataFrame],
    targets: Mapping[str, list[Target]],
    diff: str | None,
    workers: int | timely.Cluster,
    screen: Screen,
) -> Result:
    calendar, told = job.calendar, list[AnswerFeed]()
    with ExitStack() as stack:
        stack.callback(tell_last, told)  # after the sinks below have committed what they had
        opened = stack.enter_context(opened_outputs(job, targets))
        wants = min(calendar.count, first_wanted(opened))
        screen.total(calendar.count, done=wants)
        screen.waits("workers to start, Spark to lay out rows")
        laid = partial(lay_out, frames, job.query.fields, calendar, diff, wants)
        with _meanwhile(laid) as layout_of, installed(job.query, workers) as (cluster, flow):
            with spark_said("the inputs cannot be laid out"):
                layout = layout_of()
            told.append(answers_of(flow, opened, screen, wants))
            follow(layout, told[0], cluster.append_target(flow.index), calendar)
            told[0].finish()
    values = calendar.values()
    return _result(opened, screen, calendar.count, None if values is None else values.to_pylist())


def _result(
    opened: Sequence[OneOutput],
    screen: Screen,
    epochs: int | None = None,
    values: Sequence[object] | None = None,
) -> Result:
    screen.waits("nothing")
    return Result({output.name: output.sinks for output in opened}, epochs, values, screen.seconds)


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


def _check_epochs(epochs: object) -> None:
    if epochs is not None and not isinstance(epochs, str | MicroBatches):
        raise MisuseError(
            f"epochs= takes the name of a column, as epochs='day', or micro_batches(), not {epochs!r:.80}; a "
            "window over a column of times is given by window="
        )


def _check_diff(inputs: Mapping[str, DataFrame], epochs: object, window: Window | None, diff: object) -> None:
    if diff is None:
        return
    have = "; ".join(f"{name} has {', '.join(frame.columns)}" for name, frame in inputs.items())
    if not isinstance(diff, str):
        raise MisuseError(
            "diff= takes the name of the column that says whether a row comes or goes (1 and -1, or 'insert' "
            f"and 'remove'), not {diff!r:.80}: {have}. If all rows come, leave it out"
        )
    if all(diff not in frame.columns for frame in inputs.values()):
        names = {name.lower(): name for frame in inputs.values() for name in frame.columns}
        close = [names[like] for like in get_close_matches(diff.lower(), names, 1)]
        meant = f". Did you mean diff={close[0]!r}?" if close else ""
        raise InputFormatError(
            f"no input has the column {diff!r}, which diff= names for what says whether a row comes or goes: "
            f"{have}{meant}"
        )
    if diff in (epochs, window and window.on):
        raise MisuseError(
            f"diff= and {'epochs=' if window is None else 'the window'} name one column, {diff!r}, which "
            "cannot say both when a row comes or goes, and whether"
        )
    if window is not None and window.length is not None:
        raise MisuseError(
            f"rows leave a {window.kind} window by themselves, so diff={diff!r} has no place there: filter "
            "removals out, or take a window that grows"
        )


@contextmanager
def _meanwhile(lay_out: Callable[[], Layout]) -> Iterator[Callable[[], Layout]]:
    """Lay rows out in a thread of its own; what is yielded waits for them. Spark forgets them at the end,
    also if nobody has waited.
    """
    aside = ThreadPoolExecutor(1, "laying out")
    laid = aside.submit(lay_out)
    try:
        yield laid.result
    finally:
        laid.add_done_callback(_release)
        aside.shutdown(wait=False)  # whoever leaves by an error does not wait for a job of Spark


def _release(laid: Future[Layout]) -> None:
    if laid.exception() is None:
        laid.result().release()
