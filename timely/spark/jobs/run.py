"""`timely.spark.run`: the steps of the call.

1  call the query with collections that have the DataFrames' columns; open and check the outputs
2  let Spark lay the rows out by epoch, while the workers start
3  chunk by chunk let executors send them; seal, answer and commit each epoch
4  write snapshots; end the workers that the call has started
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from difflib import get_close_matches
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame

import timely
from timely.errors import MisuseError
from timely.spark.errors import InputFormatError
from timely.spark.feeds.change_feed import ChangeFeed
from timely.spark.lost import java_watched, own_errors_only, spark_errors_as
from timely.spark.once.fed import Fed
from timely.spark.plans.marking import dataframes
from timely.user_code.short_traces import shortened_traces

from .calendar import calendar_of
from .feeding import Layout, lay_out, writers_of
from .following import (
    AnswerFeed,
    Job,
    OneOutput,
    answers_of,
    call_back_last,
    fed_beside,
    first_needed,
    follow,
    last_committed,
    opened_outputs,
)
from .micro_batches import MicroBatches, follow_stream, micro_batches, stream_of
from .outputs import Target, targets_of, to_table
from .querying import Hosted, Workplace, installed, query_of
from .result import Result
from .shown import Screen
from .spans import Window

__all__ = ["keep", "run"]


def run(  # noqa: PLR0913  # users give few of them, each by its name
    query: object,
    inputs: Mapping[str, DataFrame | ChangeFeed],
    *,
    epochs: str | MicroBatches | None = None,
    window: Window | None = None,
    diff: str | None = None,
    outputs: object = None,
    workers: int | timely.Cluster = 2,
    durable: Path | str | None = None,
    progress: bool = True,
) -> Result:
    """Follow `query` over the epochs of DataFrames, and return its answers as DataFrames.

        edges = spark.read.parquet("edges")                           # src, dst, day
        answer = timely.spark.run(reachable, {"edges": edges}, epochs="day")
        answer.to_df().show()                                         # as of the last day
        answer.changes().show()                                       # columns, epoch, diff

    query       a SQL text over the inputs, as `spark.sql` reads it; a function of DataFrames that
                `timely.spark.dataframes` marks; or a query as `Cluster.install` takes it: a function that
                takes a collection for each input, by name; a function of a dataflow (its parameter is
                called dataflow or flow), or "module:function", that declares inputs itself; or collections.
                The query names its outputs by `output(name)`, or returns them: one collection or DataFrame
                (the output "result"), a tuple ("result_0", …), or a dict by names.
    inputs      DataFrames by name. The collections take over their columns, types and nullability, without
                the columns that `epochs`, `window` and `diff` name. A log of changes: `change_feed(df, …)`.
    epochs      a column whose different values, in their order, are the epochs. One of the inputs may be a
                stream: then its micro-batches are the epochs, up to the rows that it has by now, or for ever
                with `micro_batches()`.
    window      `timely.spark.sliding`, `tumbling` or `growing` over a column of times. Without `epochs` and
                `window` there is one epoch. The rows of an input without that column come in the first epoch.
    diff        the name of a column with how often a row comes, negative if it goes: whole numbers, or
                'insert' and 'remove'.
    outputs     where answers go: a folder, a function of (epoch, changes), `to_parquet`,
                `to_table`, `to_callback`, or a list of these; for several outputs a dict by name. Without it
                answers go only to the result, in the driver's memory.
    workers     the number of processes on this machine, which end with the call; or a cluster, on which the
                query is installed, and uninstalled at the end.
    durable     a folder that keeps what comes in: processes that end start again by themselves, and a job
                that is started again, with an output in a folder or table, feeds no epoch twice. Not with a
                running cluster, which has a folder or none.
    progress    show one line on the error stream while the job runs, if that is a terminal.

    If it is started again with the same outputs, it goes on after the last epoch that all of them have
    committed; it refuses an output of another query, other columns or other epochs. If it fails, the
    processes that it has started end, and committed epochs stay.

    Raises InputFormatError for inputs, MisuseError for arguments that do not fit together, OutputError for
    outputs, PeerError for a worker or Spark that is lost, and the error of the query; the traceback shows no
    errors of Spark. Costs: one Spark job to lay out and count an input, and one for each chunk of about
    262,144 rows; then the work follows the changes.
    """
    with shortened_traces(), own_errors_only(), java_watched(), Screen(progress) as screen:
        _check_durable(workers, durable)
        sources = _checked(inputs, epochs, window, diff)
        place = Workplace(workers, durable)
        stream = stream_of(_frames_of(sources), epochs, window)
        beside = [name for name in (epochs, diff, window and window.on) if isinstance(name, str)]
        fitted = query_of(query, sources, beside)
        frames, targets = fitted.frames, targets_of(outputs, list(fitted.outputs))
        if stream is not None:
            opened = follow_stream(stream, frames, fitted, targets, epochs, diff, place, screen)
            return _result(opened, screen)
        assert not isinstance(epochs, MicroBatches)
        screen.waits("Spark, to find epochs")
        with spark_errors_as("the inputs cannot be read"):
            calendar = calendar_of(frames, epochs, window)
        job = Job(next(iter(frames.values())).sparkSession, fitted, calendar)
        return _follow_frames(job, frames, targets, diff, place, screen)


def keep(
    query: object,
    inputs: Mapping[str, DataFrame | ChangeFeed],
    table: str,
    *,
    every: str | None = None,
    diff: str | None = None,
    workers: int | timely.Cluster = 1,
    durable: Path | str | None = None,
    progress: bool = True,
) -> Result:
    """Keep the answer of a function of DataFrames in a table of Spark's catalog, while a stream runs.

        def revenue(orders, rates):                                   # the job's own function
            return orders.join(rates, "country").groupBy("country").agg(F.sum("cents"))

        timely.spark.keep(revenue, {"orders": orders, "rates": rates}, "revenue", every="10 seconds")

    query     the function, marked by `dataframes` or not; or a SQL text
    inputs    DataFrames by name, one of them a structured stream
    table     the table: whole after each micro-batch. `table`_changes has what each batch has changed
    every     the least time from one batch to the next

    The others are those of `run`, which does the work: started again, the job goes on behind its last commit.
    It returns when the stream is stopped. Raises what `run` raises.
    """
    return run(
        dataframes(query) if callable(query) else query,
        inputs,
        epochs=micro_batches(every),
        diff=diff,
        outputs=to_table(table, each_epoch=True),
        workers=workers,
        durable=durable,
        progress=progress,
    )


def _check_window(window: object) -> None:
    if window is not None and not isinstance(window, Window):
        length = window if isinstance(window, str) else "1 hour"
        raise MisuseError(
            f"window= takes a window over a column of times, not {window!r:.80}. Write "
            f"timely.spark.tumbling({length!r}, on='time'), or sliding({length!r}, every=…, on='time')"
        )


def _check_durable(workers: object, durable: object) -> None:
    if durable is not None and isinstance(workers, timely.Cluster):
        raise MisuseError(
            "durable= is for workers that the call starts: whether those of a cluster keep what comes in was "
            "decided when they were started, by timely.connect(…, durable=…) or timely.spark.cluster(…, "
            "durable=…)"
        )


def _follow_frames(
    job: Job,
    frames: Mapping[str, DataFrame],
    targets: Mapping[str, list[Target]],
    diff: str | None,
    place: Workplace,
    screen: Screen,
) -> Result:
    calendar, feeds = job.calendar, list[AnswerFeed]()
    with ExitStack() as stack:
        stack.callback(call_back_last, feeds)  # runs after the sinks below have committed their epochs
        opened = stack.enter_context(opened_outputs(job, targets))
        wants = min(calendar.count, first_needed(opened))
        screen.total(calendar.count, done=wants)
        screen.waits("workers to start, Spark to lay out rows")
        fed, facts = fed_beside(opened) if place.is_durable else None, str(writers_of(frames))
        lay = partial(
            lay_out,
            frames,
            job.query.fields,
            calendar,
            diff,
            feeds=job.query.feeds,
            has_digests=fed is not None,
        )
        # A dataflow that was fed before may lack a few epochs only; its workers know which.
        is_first = fed is None or not fed.origin
        with (
            _meanwhile(partial(lay, wants), is_first) as layout_of,
            installed(job.query, place, stays=fed is not None) as hosted,
        ):
            with spark_errors_as("the inputs cannot be laid out"):
                layout = _rest(hosted, fed, facts, opened, calendar.count, lay)
                if layout is not None:
                    stack.callback(layout.release)
                    wants = layout.epochs.start
                else:
                    hosted.begin_anew(fed)
                    layout = layout_of()
            feeds.append(answers_of(hosted.flow, opened, screen, wants))
            if hosted.is_new:
                hosted.note_begin(fed, facts)
            else:
                feeds[0].check_resumed()
            follow(layout, feeds[0], hosted, calendar, fed)
            feeds[0].finish()
    values = calendar.values()
    return _result(opened, screen, calendar.count, None if values is None else values.to_pylist())


def _rest(
    hosted: Hosted,
    fed: Fed | None,
    facts: str,
    opened: Sequence[OneOutput],
    epochs: int,
    lay: partial[Layout],
) -> Layout | None:
    """Return the layout of the epochs that are not committed, or that the dataflow lacks; None if the
    dataflow is new, or has other rows than those that are to be fed.
    """
    wants = min(hosted.flow.epoch, first_needed(opened))
    if not hosted.goes_on(fed, facts, wants, range(last_committed(opened), epochs + 1)):
        return None
    layout = lay(since=wants)
    if fed is not None and fed.fits(hosted.flow.epoch, layout.digests()):
        return layout
    layout.release()
    return None


def _result(
    opened: Sequence[OneOutput],
    screen: Screen,
    epochs: int | None = None,
    values: Sequence[object] | None = None,
) -> Result:
    screen.waits("nothing")
    return Result({output.name: output.sinks for output in opened}, epochs, values, screen.seconds)


def _checked(
    inputs: object, epochs: str | MicroBatches | None, window: Window | None, diff: str | None
) -> dict[str, DataFrame | ChangeFeed]:
    """Return the inputs, if all arguments about their rows fit."""
    if not isinstance(inputs, Mapping) or not inputs:
        raise MisuseError("inputs are DataFrames by name: inputs={'edges': edges}")
    for name, frame in inputs.items():
        if not isinstance(frame, DataFrame | ChangeFeed):
            raise MisuseError(
                f"input {name!r} is a {type(frame).__name__}, not a DataFrame of Spark: "
                "spark.createDataFrame(…) makes one"
            )
        if not str(name).isidentifier():
            raise MisuseError(f"input {name!r}: the query takes inputs by name, so it is a word like edges")
    sources = {str(name): frame for name, frame in inputs.items()}
    _check_window(window)
    _check_epochs(epochs)
    _check_diff(_frames_of(sources), epochs, window, diff)
    feeds = [name for name, each in sources.items() if isinstance(each, ChangeFeed)]
    if feeds and window is not None and window.length is not None:
        raise MisuseError(
            f"rows leave a {window.kind} window by themselves, so the change feed {feeds[0]!r}, which says "
            "when they go, has no place there: take a window that grows, or epochs="
        )
    return sources


def _frames_of(sources: Mapping[str, DataFrame | ChangeFeed]) -> dict[str, DataFrame]:
    return {name: each.frame if isinstance(each, ChangeFeed) else each for name, each in sources.items()}


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
def _meanwhile(lay_out: Callable[[], Layout], is_begun: bool = True) -> Iterator[Callable[[], Layout]]:
    """Lay rows out in a thread of its own, and yield a function that waits for them. Spark drops them at the
    end, also if that function was not called. With `is_begun` False the thread begins when it is called.
    """
    aside = ThreadPoolExecutor(1, "laying out")
    laid = [aside.submit(lay_out)] if is_begun else []

    def layout() -> Layout:
        if not laid:
            laid.append(aside.submit(lay_out))
        return laid[0].result()

    try:
        yield layout
    finally:
        for each in laid:
            each.add_done_callback(_release)
        aside.shutdown(wait=False)  # after an error do not wait for the job of Spark


def _release(laid: Future[Layout]) -> None:
    if laid.exception() is None:
        laid.result().release()
