"""A structured stream: each micro-batch is an epoch, with the same number.

The state of the workers ends with them, and Spark delivers a batch that it considers done only once. So this
module writes the rows of each batch beside the change log before it sends them:

    DIR/stream/checkpoint/       Spark's checkpoint: how far it has read
    DIR/stream/rows/epoch-…/     the rows of each batch

    batch k arrives    k < next: it is committed, do nothing · k > next: batches are missing, refuse it
                       k = next: write, send, seal, answer, commit; then Spark goes on
    restart            feed the stored rows of batches that all outputs have committed as a sum in one epoch,
                       then those that only some have committed, one by one; then Spark goes on

Spark repeats a batch that it does not know to be done: it records a batch after we have committed it. Without
a folder in `outputs` nothing is written, and a restarted job reads the stream from its beginning.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from timely.counted import counted
from timely.errors import MisuseError
from timely.spark.epochs import EPOCH
from timely.spark.errors import InputFormatError, OutputError, first_line
from timely.spark.frames import quoted, read_folders, same_in_spark
from timely.spark.lost import quiet_about_lost_java, spark_errors_as, spark_lost
from timely.spark.once.fed import Fed

from .feeding import Layout, digest_of, lay_out, writers_of
from .following import (
    AnswerFeed,
    Job,
    OneOutput,
    answers_of,
    call_back_last,
    fed_beside,
    first_needed,
    follow,
    opened_outputs,
)
from .outputs import Target
from .querying import Hosted, Query, Workplace, installed
from .shown import Screen
from .sinks import FolderSink

__all__ = ["MicroBatches", "follow_stream", "micro_batches", "stream_of"]

_LOOK_SECONDS = 1
_FOREVER = 1 << 62


@dataclass(frozen=True)
class MicroBatches:
    """The result of `micro_batches`."""

    every: str


def micro_batches(every: str | None = None) -> MicroBatches:
    """Let `run` follow the micro-batches of a stream, as epochs, until it, or the stream, is stopped.

    `every`: the least time from one batch to the next, such as "10 seconds"; without it the next batch begins
    when the last is done. Without `epochs=micro_batches(…)` `run` takes the rows that a stream has by now,
    and returns.
    """
    return MicroBatches(every or "0 seconds")


def stream_of(inputs: Mapping[str, DataFrame], epochs: object, window: object) -> str | None:
    """Return the name of the input that is a stream; None if there is none.

    Raises MisuseError for more than one stream, and for a stream whose epochs are not its micro-batches.
    """
    streams = [name for name, frame in inputs.items() if frame.isStreaming]
    if not streams:
        if isinstance(epochs, MicroBatches):
            raise MisuseError(f"micro_batches() is for a stream, and none of {', '.join(inputs)} is one")
        return None
    if len(streams) > 1:
        raise MisuseError(
            f"{' and '.join(streams)} are streams, whose micro-batches have nothing to do with one another: "
            "write one of them to a folder, or unite them to one"
        )
    if window is not None or isinstance(epochs, str):
        raise MisuseError(
            f"the epochs of the stream {streams[0]!r} are its micro-batches: leave epochs= and window= out, "
            "and use window(…) or last(…) in the query"
        )
    return streams[0]


@dataclass(frozen=True)
class _Batches:
    """The calendar of a stream: without an end, or, for stored batches, with one."""

    stream: str
    count: int = _FOREVER
    column: str = ""

    def describe(self) -> str:
        return f"micro-batches of {self.stream}"

    def values(self) -> pa.Array | None:
        return None

    def dated(self, frame: DataFrame, keep: list[str]) -> DataFrame:
        at = F.col(EPOCH) if EPOCH in frame.columns else F.lit(0)
        return frame.select(*map(quoted, keep), at.cast("bigint").alias(EPOCH))


@dataclass
class _Follower:
    """Takes the micro-batches; `next` is the open epoch, `rows_folder` has the stored rows of each batch."""

    stream: str
    frames: Mapping[str, DataFrame]
    query: Query
    diff: str | None
    answers: AnswerFeed
    outputs: list[OneOutput]
    hosted: Hosted
    rows_folder: Path | None
    fed: Fed | None = None
    next: int = 0
    failure: BaseException | None = None

    def __call__(self, batch: DataFrame, number: int) -> None:
        """Take one batch. Keep its error in `failure`, since Spark reports errors as text only."""
        try:
            if number > self.next:
                raise _missing(self.stream, number, self.next)
            if number == self.next:
                self._take(batch, number)
        except BaseException as failure:
            self.failure = failure
            raise

    def take_stored(self, committed: int, wants: int, goes_on: bool) -> None:
        """Feed the stored rows of the `committed` batches that some output has committed. If the dataflow
        `goes_on`, it has them.

        All outputs have committed the batches before `wants`, so these are fed as one sum.
        """
        self.next = committed
        if goes_on and wants == committed:
            return
        inputs = dict(self.frames)
        folder = self.rows_folder
        assert folder is not None
        there = [folder / _batch_name(number) for number in range(committed)]
        missing = [path for path in there if not path.is_dir()]
        if missing or not (folder.parent / "checkpoint" / "metadata").exists():
            what = missing[0] if missing else folder.parent / "checkpoint"
            raise OutputError(
                f"{counted(committed, 'epoch')} of the stream {self.stream!r} are committed, and {what} is "
                "gone, without which it cannot go on. Remove the folder, or give another"
            )
        spark = self.frames[self.stream].sparkSession
        batches = _Batches(self.stream, committed)
        with spark_errors_as(f"the stored rows of the stream {self.stream!r} cannot be read"):
            inputs[self.stream] = read_folders(spark, *there)
            if goes_on:
                layout = self._lay_out(inputs, batches, since=wants)
            else:
                layout = self._lay_out(inputs, batches, condensed=wants)
        try:
            follow(layout, self.answers, self.hosted, batches)
        finally:
            layout.release()

    def _lay_out(
        self,
        inputs: Mapping[str, DataFrame],
        batches: _Batches,
        *,
        condensed: int = 0,
        since: int | None = None,
        has_digests: bool = False,
    ) -> Layout:
        fields, feeds = self.query.fields, self.query.feeds
        return lay_out(
            inputs, fields, batches, self.diff, condensed, feeds=feeds, since=since, has_digests=has_digests
        )

    def _take(self, batch: DataFrame, number: int) -> None:
        self.answers.screen.waits("Spark, to read a batch")
        self.answers.screen.spent()  # drop the times before this batch
        with spark_errors_as(f"batch {number} of the stream {self.stream!r} cannot be read"):
            rows = self._write(batch, number)
            inputs = {self.stream: rows} if number else {**self.frames, self.stream: rows}
            batches = _Batches(self.stream, number + 1)
            layout = self._lay_out(inputs, batches, has_digests=self.fed is not None)
        try:
            sent = self._unsent(layout, number)
            self.answers.screen.waits("Spark, to send rows")
            expected = self.hosted.feed(partial(layout.send, sent))
            self.answers.screen.sent()
            self.answers.seal(number, None, layout.size(number), expected.get(number, ()))
        finally:
            layout.release()
        for output in self.outputs:
            for sink in output.sinks:
                sink.flush()
        self.answers.finish_epoch()
        self.answers.call_back()
        self.answers.forget_committed()
        self.next = number + 1

    def _unsent(self, layout: Layout, number: int) -> range:
        """Return the range of this batch, or none if the dataflow has it already; note that it will be sent.

        Raise `OutputError` if the dataflow has, or may have, other rows under its number.
        """
        is_sealed = number < self.answers.flow.epoch
        if self.fed is not None:
            digest = layout.digest(number)
            if self.fed.epochs.get(number, "" if is_sealed else digest) != digest:
                raise OutputError(
                    f"batch {number} of the stream {self.stream!r} has come before, with other rows, and the "
                    f"durable cluster has those. Remove {self.fed.folder} and the folder of the cluster, or "
                    "give others"
                )
            if not is_sealed:
                self.fed.note({number: digest})
        return range(number, number) if is_sealed else range(number, number + 1)

    def _write(self, batch: DataFrame, number: int) -> DataFrame:
        """Store the rows of a batch, with their epoch, and return them as read from there; without a folder
        return them unstored.
        """
        feed = self.query.feeds.get(self.stream)
        wanted = (*self.query.fields[self.stream].names, self.diff, feed and feed.change)
        names = [name for name in wanted if name in batch.columns]
        rows = batch.select(*map(quoted, names), F.lit(number).cast("bigint").alias(EPOCH))
        if self.rows_folder is None:
            return rows
        staged, stored = self.rows_folder / "_staging", self.rows_folder / _batch_name(number)
        rows.write.mode("overwrite").parquet(str(staged))
        shutil.rmtree(stored, ignore_errors=True)  # left by a run that ended before the commit
        staged.replace(stored)
        return read_folders(batch.sparkSession, stored)


def follow_stream(
    stream: str,
    frames: Mapping[str, DataFrame],
    query: Query,
    targets: Mapping[str, list[Target]],
    epochs: object,
    diff: str | None,
    place: Workplace,
    screen: Screen,
) -> list[OneOutput]:
    """Follow the query over the micro-batches of `stream` until it ends; return the outputs."""
    spark = frames[stream].sparkSession
    quiet_about_lost_java(spark.sparkContext)
    same = same_in_spark(spark, query.fields[stream].names)
    if same is not None:
        raise InputFormatError(
            f"input {stream!r} has the columns {same[0]!r} and {same[1]!r}, which Spark takes for one where "
            "it writes the rows of a stream. Rename one: toDF('a', 'b', …)"
        )
    feeds: list[AnswerFeed] = []
    with ExitStack() as stack:
        stack.callback(call_back_last, feeds)
        job = Job(spark, query, _Batches(stream))
        opened = stack.enter_context(opened_outputs(job, targets))
        logs = [sink for output in opened for sink in output.sinks if isinstance(sink, FolderSink)]
        if any(sink.keep == "snapshot" for sink in logs) and all(sink.keep == "snapshot" for sink in logs):
            raise MisuseError(
                "a stream goes on behind its change log: keep='both' or 'changes', not 'snapshot'"
            )
        folder = _folder_of(logs)
        committed = max((sink.wants for sink in logs if sink.keep != "snapshot"), default=0)
        wants = min(committed, first_needed(opened))
        done = 0 if folder is None else _done_by_spark(folder / "checkpoint")
        if done > committed:
            raise _missing(stream, done, committed)
        fed = fed_beside(opened) if place.is_durable else None
        hosted = stack.enter_context(installed(query, place, stays=fed is not None))
        others = {name: frame for name, frame in frames.items() if name != stream}
        with spark_errors_as("the inputs cannot be read"):
            facts = (
                ""
                if fed is None
                else f"{writers_of(frames)} {digest_of(others, query.fields, diff, query.feeds)}"
            )
        # The next batch may be sealed, and not committed.
        goes_on = hosted.goes_on(fed, facts, wants, range(committed, committed + 2))
        if not goes_on:
            hosted.begin_anew(fed)
            hosted.note_begin(fed, facts)
        answers = answers_of(hosted.flow, opened, screen, wants)
        feeds.append(answers)
        rows_folder = None if folder is None else folder / "rows"
        follower = _Follower(stream, frames, query, diff, answers, opened, hosted, rows_folder, fed)
        if goes_on:
            answers.check_resumed()
        if committed:
            follower.take_stored(committed, wants, goes_on)
        base = folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="naiad-stream-")))
        with spark_errors_as(f"the stream {stream!r} cannot be started"):
            writer = frames[stream].writeStream.foreachBatch(follower)
            writer = writer.option("checkpointLocation", str(base / "checkpoint"))
            if isinstance(epochs, MicroBatches):
                writer = writer.trigger(processingTime=epochs.every)
            else:
                writer = writer.trigger(availableNow=True)
            started = writer.start()
        _wait(started, follower, screen)
        answers.finish()
    return opened


def _folder_of(logs: Sequence[FolderSink]) -> Path | None:
    """Return the folder for the stream's checkpoint and rows: the one that some output has already, or else
    one in the first output with a change log; None without such outputs.
    """
    folders = [sink.folder / "stream" for sink in sorted(logs, key=lambda sink: sink.keep == "snapshot")]
    there = [folder for folder in folders if folder.exists()]
    return next(iter([*there, *folders]), None)


def _done_by_spark(checkpoint: Path) -> int:
    """Return the number after that of the last batch that Spark considers done."""
    numbers = [int(file.name) for file in (checkpoint / "commits").glob("*") if file.name.isdecimal()]
    return max(numbers, default=-1) + 1


def _missing(stream: str, number: int, next_number: int) -> OutputError:
    return OutputError(
        f"batch {number} of {stream!r} comes where {next_number} is next: batches are missing, since outputs "
        "and checkpoint are not of one run. Remove the folder, or give another"
    )


def _wait(query: StreamingQuery, follower: _Follower, screen: Screen) -> None:
    """Wait until the stream ends; if a batch fails, raise its error."""
    try:
        while not query.awaitTermination(_LOOK_SECONDS):
            if query.status["message"].startswith("Waiting"):
                screen.waits("rows")
    except StreamingQueryException as error:
        if follower.failure is not None:
            raise follower.failure from None
        lost = spark_lost(error)
        raise lost or InputFormatError(f"the stream {follower.stream!r}: {first_line(error)}") from None
    finally:
        with suppress(Exception):  # the query has ended, or Java has
            query.stop()


def _batch_name(number: int) -> str:
    return f"epoch-{number:08}"
