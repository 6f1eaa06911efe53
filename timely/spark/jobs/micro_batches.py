"""A structured stream: each micro-batch is an epoch, and the number of the one is that of the other.

What the workers know ends with them, and Spark gives a batch that it holds to be done only once. So the rows
of each batch are written beside the change log before they are sent:

    DIR/stream/checkpoint/       Spark's: how far it has read
    DIR/stream/rows/epoch-…/     the rows of each batch

    batch k arrives    k < next: it is committed, nothing happens · k > next: batches are missing, refused
                       k = next: written, sent, sealed, answered, committed; then Spark may go on
    started again      what was written of batches that all outputs have committed is summed up in one epoch,
                       those that some have committed follow one by one; then Spark goes on

Spark repeats a batch that it does not know to be done: its commit comes after ours. Without a folder in
`outputs` nothing is written, and a job that is started again reads the stream from its beginning.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.streaming.query import StreamingQuery

import timely
from timely.counted import counted
from timely.errors import MisuseError
from timely.spark.delivering import TargetFactory
from timely.spark.epochs import EPOCH
from timely.spark.errors import InputFormatError, OutputError, first_line
from timely.spark.frames import quoted, read_folders, same_in_spark
from timely.spark.lost import quiet_about_lost_java, spark_lost, spark_said

from .feeding import lay_out
from .following import AnswerFeed, Job, OneOutput, answers_of, first_wanted, follow, opened_outputs, tell_last
from .outputs import Target
from .querying import Query, installed
from .shown import Screen
from .sinks import FolderSink

__all__ = ["MicroBatches", "follow_stream", "micro_batches", "stream_of"]

_LOOK_SECONDS = 1
_FOREVER = 1 << 62


@dataclass(frozen=True)
class MicroBatches:
    """Made by `micro_batches`."""

    every: str


def micro_batches(every: str | None = None) -> MicroBatches:
    """Epochs are the micro-batches of a stream; goes on until it is stopped, or the stream is.

    `every`: how long a batch takes at least, such as "10 seconds"; without it the next one begins when the
    last is done. `run` without `epochs=micro_batches(…)` takes what a stream has by now, and returns.
    """
    return MicroBatches(every or "0 seconds")


def stream_of(inputs: Mapping[str, DataFrame], epochs: object, window: object) -> str | None:
    """The name of the input that is a stream; None if there is none.

    Raises MisuseError for more than one, and for epochs that are made of something else.
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
    """A calendar without an end, or, of what has been written, with one."""

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
    """Takes the micro-batches; `next` is the epoch that is open."""

    stream: str
    frames: Mapping[str, DataFrame]
    fields: Mapping[str, T.StructType]
    diff: str | None
    answers: AnswerFeed
    outputs: list[OneOutput]
    target: TargetFactory
    written: Path | None
    next: int = 0
    failure: BaseException | None = None

    def __call__(self, batch: DataFrame, number: int) -> None:
        """One batch; what goes wrong is kept, for Spark tells it as a text."""
        try:
            if number > self.next:
                raise _missing(self.stream, number, self.next)
            if number == self.next:
                self._take(batch, number)
        except BaseException as failure:
            self.failure = failure
            raise

    def take_written(self, committed: int, wants: int) -> None:
        """Feed what was written of the batches that some output has committed; those before `wants` all have
        committed, and nobody needs them one by one.
        """
        inputs = dict(self.frames)
        folder = self.written
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
        with spark_said(f"what was written of the stream {self.stream!r} cannot be read"):
            inputs[self.stream] = read_folders(spark, *there)
            layout = lay_out(inputs, self.fields, batches, self.diff, wants)
        try:
            follow(layout, self.answers, self.target, batches)
        finally:
            layout.release()
        self.next = committed

    def _take(self, batch: DataFrame, number: int) -> None:
        self.answers.screen.waits("Spark, to read a batch")
        self.answers.screen.spent()  # what was before has nothing to do with this batch
        with spark_said(f"batch {number} of the stream {self.stream!r} cannot be read"):
            rows = self._write(batch, number)
            inputs = {self.stream: rows} if number else {**self.frames, self.stream: rows}
            layout = lay_out(inputs, self.fields, _Batches(self.stream, number + 1), self.diff)
        try:
            self.answers.screen.waits("Spark, to send rows")
            expected = layout.send(range(number, number + 1), self.target)
            self.answers.screen.sent()
            self.answers.seal(number, None, layout.size(number), expected[number])
        finally:
            layout.release()
        for output in self.outputs:
            for sink in output.sinks:
                sink.flush()
        self.answers.tell()
        self.next = number + 1

    def _write(self, batch: DataFrame, number: int) -> DataFrame:
        """The rows of a batch at their epoch, from where they are kept."""
        names = [name for name in (*self.fields[self.stream].names, self.diff) if name in batch.columns]
        rows = batch.select(*map(quoted, names), F.lit(number).cast("bigint").alias(EPOCH))
        if self.written is None:
            return rows
        staged, kept = self.written / "_staging", self.written / _batch_name(number)
        rows.write.mode("overwrite").parquet(str(staged))
        shutil.rmtree(kept, ignore_errors=True)  # of a run that ended before the commit
        staged.replace(kept)
        return read_folders(batch.sparkSession, kept)


def follow_stream(
    stream: str,
    frames: Mapping[str, DataFrame],
    query: Query,
    targets: Mapping[str, list[Target]],
    epochs: object,
    diff: str | None,
    workers: int | timely.Cluster,
    screen: Screen,
) -> list[OneOutput]:
    """Follow the query over the micro-batches of `stream` until it ends; returns the outputs."""
    spark = frames[stream].sparkSession
    quiet_about_lost_java(spark.sparkContext)
    same = same_in_spark(spark, query.fields[stream].names)
    if same is not None:
        raise InputFormatError(
            f"input {stream!r} has the columns {same[0]!r} and {same[1]!r}, which Spark takes for one where "
            "it writes the rows of a stream. Rename one: toDF('a', 'b', …)"
        )
    told: list[AnswerFeed] = []
    with ExitStack() as stack:
        stack.callback(tell_last, told)
        job = Job(spark, query, _Batches(stream))
        opened = stack.enter_context(opened_outputs(job, targets))
        logs = [sink for output in opened for sink in output.sinks if isinstance(sink, FolderSink)]
        if any(sink.keep == "snapshot" for sink in logs) and all(sink.keep == "snapshot" for sink in logs):
            raise MisuseError(
                "a stream goes on behind its change log: keep='both' or 'changes', not 'snapshot'"
            )
        folder = _folder_of(logs)
        committed = max((sink.wants for sink in logs if sink.keep != "snapshot"), default=0)
        wants = min(committed, first_wanted(opened))
        done = 0 if folder is None else _done_by_spark(folder / "checkpoint")
        if done > committed:
            raise _missing(stream, done, committed)
        cluster, flow = stack.enter_context(installed(query, workers))
        answers = answers_of(flow, opened, screen, wants)
        told.append(answers)
        target = cluster.append_target(flow.index)
        written = None if folder is None else folder / "rows"
        follower = _Follower(stream, frames, query.fields, diff, answers, opened, target, written)
        if committed:
            follower.take_written(committed, wants)
        place = folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="naiad-stream-")))
        with spark_said(f"the stream {stream!r} cannot be started"):
            writer = frames[stream].writeStream.foreachBatch(follower)
            writer = writer.option("checkpointLocation", str(place / "checkpoint"))
            if isinstance(epochs, MicroBatches):
                writer = writer.trigger(processingTime=epochs.every)
            else:
                writer = writer.trigger(availableNow=True)
            started = writer.start()
        _wait(started, follower, screen)
        answers.finish()
    return opened


def _folder_of(logs: Sequence[FolderSink]) -> Path | None:
    """Where the stream is kept: in the output that has it already, or in the first that has a change log."""
    folders = [sink.folder / "stream" for sink in sorted(logs, key=lambda sink: sink.keep == "snapshot")]
    there = [folder for folder in folders if folder.exists()]
    return next(iter([*there, *folders]), None)


def _done_by_spark(checkpoint: Path) -> int:
    """The batch behind the last one that Spark holds to be done."""
    numbers = [int(file.name) for file in (checkpoint / "commits").glob("*") if file.name.isdecimal()]
    return max(numbers, default=-1) + 1


def _missing(stream: str, number: int, wanted: int) -> OutputError:
    return OutputError(
        f"batch {number} of {stream!r} comes where {wanted} is next: batches are missing, since outputs and "
        "checkpoint are not of one run. Remove the folder, or give another"
    )


def _wait(query: StreamingQuery, follower: _Follower, screen: Screen) -> None:
    """Until the stream ends, or a batch fails: then that is raised."""
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
        with suppress(Exception):  # it has ended, or Java has
            query.stop()


def _batch_name(number: int) -> str:
    return f"epoch-{number:08}"
