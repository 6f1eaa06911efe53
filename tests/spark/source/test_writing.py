"""DataFrames and streams into real workers.

batch_*     `df.write`
stream_*    `df.writeStream`: a micro-batch is an epoch
killed_*    a Python worker of Spark in the middle of a write, a driver between a batch and its commit
refused_*   columns and modes
"""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.streaming.query import StreamingQuery

import differential as dd
import timely
from timely.client.session import Flow
from timely.errors import InternalError, MisuseError, WaitTimeoutError
from timely.spark.source.connecting import Whereabouts
from timely.spark.source.data_source import NaiadSource
from timely.spark.source.options import Options
from timely.spark.source.writing import BatchWriter, Staged, StreamWriter, WritePlan, _stage, plan_of_write
from timely.wire.requests import Reply, Request, Wait
from timely.wire.task_requests import CheckAttempts, CommitAttempts

cloudpickle.register_pickle_by_value(sys.modules[__name__])

SCHEMA = T.StructType().add("n", "long").add("text", "string")


@pytest.fixture
def flow(cluster: timely.Cluster) -> Flow:
    def passed_on(dataflow: timely.Dataflow) -> None:
        dd.input(dataflow, "rows", "n: int, text: string?").output("rows")

    return cluster.install(passed_on)


def options(flow: Flow, **more: object) -> dict[str, str]:
    named = {"cluster": flow._workers.addresses[0], "dataflow": flow.index, "input": "rows", **more}
    return {name: str(value) for name, value in named.items()}


def epochs(flow: Flow) -> list[Counter[int]]:
    """What has come in in each epoch that is sealed."""
    found: list[Counter[int]] = [Counter() for _ in range(flow.refresh())]
    for row in flow.output("rows").changes(0, flow.epoch).to_pylist():
        found[row["epoch"]][row["n"]] += row["diff"]
    return found


def numbers(spark: SparkSession, *bounds: int, partitions: int = 3) -> DataFrame:
    return spark.range(*bounds, numPartitions=partitions).selectExpr("id AS n", "cast(id AS string) AS text")


def dying(batches: Iterator[pa.RecordBatch], mark: str) -> Iterator[pa.RecordBatch]:
    """The first process that comes to its third batch is killed there."""
    for number, batch in enumerate(batches):
        yield batch
        if number == 2 and not Path(mark).exists():
            Path(mark).touch()
            os.kill(os.getpid(), signal.SIGKILL)


class DyingBatch(BatchWriter):
    mark = ""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        return super().write(dying(iterator, self.mark))


class DyingStream(StreamWriter):
    mark = ""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        return super().write(dying(iterator, self.mark))


class Dying(NaiadSource):
    """The same, but one of its processes is killed when it has staged some parts."""

    @classmethod
    def name(cls) -> str:
        return "dying"

    def writer(self, schema: T.StructType, overwrite: bool) -> BatchWriter:
        plan = plan_of_write(Options.of(self.options), schema, overwrite)
        writer = DyingBatch(replace(plan, rows_per_part=1))
        writer.mark = self.options["mark"]
        return writer

    def streamWriter(self, schema: T.StructType, overwrite: bool) -> StreamWriter:
        plan = plan_of_write(Options.of(self.options), schema, overwrite)
        writer = DyingStream(replace(plan, rows_per_part=1))
        writer.mark = self.options["mark"]
        return writer


def stream(spark: SparkSession, folder: Path, rows: str = "n long, text string") -> DataFrame:
    folder.mkdir(exist_ok=True)
    return spark.readStream.schema(rows).option("maxFilesPerTrigger", 1).json(str(folder))


def give(folder: Path, name: str, *rows: int) -> None:
    folder.mkdir(exist_ok=True)
    text = "".join(f'{{"n": {n}, "text": "x"}}\n' for n in rows)
    (folder / f".{name}").write_text(text)
    os.utime(folder / f".{name}", (1_000 + int(name),) * 2)  # the order in which Spark takes them
    (folder / f".{name}").rename(folder / f"{name}.json")


def run(
    frame: DataFrame, flow: Flow, checkpoint: Path, kind: str = "naiad", **more: object
) -> StreamingQuery:
    """Everything that there is."""
    query = (
        frame.writeStream.format(kind)
        .options(**options(flow, **more))
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(100)
    query.stop()
    return query


def test_batch_rows_are_one_epoch_as_often_as_their_diff_says(session: SparkSession, flow: Flow) -> None:
    numbers(session, 20_000).write.format("naiad").options(**options(flow)).mode("append").save()
    assert epochs(flow) == [Counter(range(20_000))]
    changed = numbers(session, 10).selectExpr("n", "text", "if(n < 3, -1, 2) AS times")
    changed.write.format("naiad").options(**options(flow, diff="times", seal="false")).mode("append").save()
    assert len(epochs(flow)) == 1, "the epoch is left open"
    flow.seal()
    assert epochs(flow)[1] == Counter({n: -1 if n < 3 else 2 for n in range(10)})


def test_batch_with_a_name_counts_once(flow: Flow) -> None:
    batch = pa.RecordBatch.from_pydict({"n": [1, 2], "text": ["a", None]})
    for query in ("load 7", "load 7", "load 8", "", ""):
        writer = BatchWriter(plan_of_write(Options.of(options(flow, query=query)), SCHEMA, overwrite=False))
        writer.commit([writer.write(iter([batch]))])
    assert epochs(flow) == [Counter([1, 2])] * 4, "and without one as often as it is written"


def test_stream_of_micro_batches_is_one_of_epochs_also_when_it_is_started_again(
    session: SparkSession, flow: Flow, tmp_path: Path
) -> None:
    rows, checkpoint = tmp_path / "rows", tmp_path / "checkpoint"
    for number in range(2):
        give(rows, str(number), number, 100 + number)
    run(stream(session, rows), flow, checkpoint)
    assert [sorted(epoch) for epoch in epochs(flow)] == [[0, 100], [1, 101]]
    # The driver died before Spark had written down that its last batch was committed: it comes again.
    for file in ((checkpoint / "commits" / "1"), (checkpoint / "commits" / ".1.crc")):
        file.unlink()
    give(rows, "2", 2)
    run(stream(session, rows), flow, checkpoint)
    assert [sorted(epoch) for epoch in epochs(flow)[2:]] == [[2]]
    assert (checkpoint / "commits" / "1").exists() and (checkpoint / "commits" / "2").exists()


def test_stream_into_another_dataflow_than_before_is_refused(flow: Flow) -> None:
    """What comes of a checkpoint that is used again, whose last batch was 1."""
    batch = pa.RecordBatch.from_pydict({"n": [1], "text": ["a"]})
    refusing, allowing = (
        plan_of_write(Options.of(options(flow, query="q", gap=gap)), SCHEMA, overwrite=False)
        for gap in ("refuse", "allow")
    )
    messages = [_stage(refusing, "q", 2, iter([batch]))]
    with pytest.raises(MisuseError, match="batch 2 of query q comes before batches 0 to 1, which"):
        StreamWriter(refusing).commit(messages, 2)
    assert epochs(flow) == []
    StreamWriter(allowing).commit(messages, 2)
    assert epochs(flow) == [Counter([1])]


def test_killed_python_workers_leave_nothing_that_counts(
    session: SparkSession, flow: Flow, tmp_path: Path
) -> None:
    session.dataSource.register(Dying)
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "10")
    try:
        rows = numbers(session, 200, partitions=2).write.format("dying")
        rows.options(**options(flow, mark=tmp_path / "batch")).mode("append").save()
        give(tmp_path / "rows", "0", *range(100))
        run(stream(session, tmp_path / "rows"), flow, tmp_path / "c", "dying", mark=tmp_path / "stream")
    finally:
        session.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    assert (tmp_path / "batch").exists() and (tmp_path / "stream").exists(), "they were meant to die"
    assert epochs(flow) == [Counter(range(200)), Counter(range(100))]


def test_killed_between_a_batch_and_its_commit_the_batch_is_written_anew(flow: Flow) -> None:
    """What Spark's processes do, step by step, with a driver that is gone after the tasks are done."""
    plan = plan_of_write(Options.of(options(flow, query="q")), SCHEMA, overwrite=False)
    batch = pa.RecordBatch.from_pydict({"n": [1, 2], "text": ["a", None]})
    first = BatchWriter(plan)
    staged = [first.write(iter([batch])), first.write(iter([batch.slice(1)]))]
    del first
    again = BatchWriter(plan)
    messages = [again.write(iter([batch])), again.write(iter([])), None]
    again.commit(messages)
    assert epochs(flow) == [Counter([1, 2])]
    again.commit(staged)
    again.commit(messages)
    assert again.write(iter([batch])).parts == (0, 0), "and what comes after it is not kept"
    flow.seal()
    assert epochs(flow) == [Counter([1, 2]), Counter()]


def test_killed_or_slower_runs_of_a_task_that_ran_twice_at_once_do_not_count(flow: Flow) -> None:
    """Whichever comes first to its end; the other one has staged rows before, between and after."""
    plan = replace(plan_of_write(Options.of(options(flow, query="q")), SCHEMA, False), rows_per_part=1)
    batch = pa.RecordBatch.from_pydict({"n": [1, 2], "text": ["a", None]})
    writer, messages = BatchWriter(plan), []

    def slower() -> Iterator[pa.RecordBatch]:
        yield batch
        messages.append(BatchWriter(plan).write(iter([batch, batch])))
        yield batch
        writer.commit(messages)
        yield from [batch] * 2

    late = writer.write(slower())
    assert late.parts == (0, 0), "it is told that nobody waits for it"
    assert epochs(flow) == [Counter([1, 2] * 2)]
    flow.seal()
    assert epochs(flow) == [Counter([1, 2] * 2), Counter()]


def test_killed_is_a_batch_before_its_commit_by_workers_that_are_too_slow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A commit that raised when the rows are in would have the user write them again."""
    asked: list[type[Request]] = []

    class Slow:
        count = 2

        def ask(self, requests: Sequence[tuple[int, Request, object]], seconds: float = 0.0) -> list[Reply]:
            asked.extend(type(request) for _, request, _ in requests)
            if isinstance(requests[0][1], Wait):
                assert requests[0][1].epoch == 5
                raise WaitTimeoutError("epoch 5 is not complete")
            return [Reply({"missing": [], "last": -1, "open": 8})] * len(requests)

    monkeypatch.setattr("timely.spark.source.writing.workers_at", lambda at: nullcontext(Slow()))
    plan = WritePlan(Whereabouts(()), 0, "rows", None, "q", True, False, 3, 0.0)
    with pytest.raises(WaitTimeoutError):
        BatchWriter(plan).commit([])
    assert asked == [CheckAttempts] * 2 + [Wait] * 2
    for more in ({"lag": 9}, {"lag": 0}, {"seals": False}):
        asked.clear()
        BatchWriter(replace(plan, **more)).commit([])  # type: ignore[arg-type]
        assert asked == [CheckAttempts] * 2 + [CommitAttempts], more


def test_refused_is_a_commit_that_no_task_has_named_its_query_for() -> None:
    plan = WritePlan(Whereabouts(()), 0, "rows", None, "", True, False, 8, 0.0)
    with pytest.raises(InternalError, match="no task says of which query batch 3 is"):
        StreamWriter(plan).commit([None], 3)


def test_killed_batches_are_let_go_of(flow: Flow) -> None:
    plan = plan_of_write(Options.of(options(flow, query="q")), SCHEMA, overwrite=False)
    batch = pa.RecordBatch.from_pydict({"n": [1], "text": ["a"]})
    writer = BatchWriter(plan)
    messages = [writer.write(iter([batch]))]
    lost = replace(messages[0], attempt="000001/lost")
    with pytest.raises(MisuseError, match="what 1 of its tasks staged is not there any more"):
        writer.commit([*messages, lost])
    writer.abort([*messages, lost])
    with pytest.raises(MisuseError, match="what 1 of its tasks staged is not there any more"):
        writer.commit(messages)
    assert epochs(flow) == []

    def failing() -> Iterator[pa.RecordBatch]:
        yield from [batch] * 3
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        BatchWriter(replace(plan, rows_per_part=1)).write(failing())
    writer.commit([])
    assert epochs(flow) == [Counter()]


def test_refused_columns_are_told_one_by_one(flow: Flow) -> None:
    asked = T.StructType().add("n", "string").add("m", "integer").add("times", "double")
    said = (
        "input 'rows' takes the columns n bigint, text string; the column of diffs, 'times', is no column of "
        r"whole numbers; 'n' is string, not bigint; 'text' \(string\) is missing; 'm' is not one of them"
    )
    with pytest.raises(MisuseError, match=said):
        plan_of_write(Options.of(options(flow, diff="times")), asked, overwrite=False)
    with pytest.raises(MisuseError, match="has no input 'row'"):
        plan_of_write(Options.of(options(flow, input="row")), asked, overwrite=False)
    narrow = T.StructType().add("n", "short").add("text", "string")
    assert plan_of_write(Options.of(options(flow)), narrow, overwrite=False).input == "rows"


def test_refused_modes_are_named(session: SparkSession, flow: Flow) -> None:
    rows = numbers(session, 1).write.format("naiad").options(**options(flow))
    with pytest.raises(PySparkException, match="naiad appends") as raised:
        rows.mode("overwrite").save()
    assert "Traceback" not in str(raised.value)
    assert epochs(flow) == []
