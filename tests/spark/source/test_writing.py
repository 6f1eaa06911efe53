"""DataFrames and streams into real workers.

batch_*     `df.write`
stream_*    `df.writeStream`: a micro-batch is an epoch
killed_*    a Python worker of Spark in the middle of a write, a driver between a batch and its commit
refused_*   columns and modes
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from fixed_members import FixedMembers
from pyspark import cloudpickle
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.streaming.query import StreamingQuery

import differential as dd
import timely
from timely.client.remote.workers import RemoteWorkers
from timely.client.session import Flow
from timely.errors import MisuseError, WaitTimeoutError
from timely.spark.delivering import BatchDelivery, Staged
from timely.spark.source import writing
from timely.spark.source.connecting import workers_at
from timely.spark.source.data_source import NaiadSource
from timely.spark.source.options import SourceOptions
from timely.spark.source.writing import BatchWriter, StreamWriter, _stage, plan_of_write
from timely.wire.requests import Decide, Missing, Progress, Reply, Request, Value

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
        plan = plan_of_write(SourceOptions.of(self.options), schema, overwrite)
        writer = DyingBatch(replace(plan, rows_per_part=1))
        writer.mark = self.options["mark"]
        return writer

    def streamWriter(self, schema: T.StructType, overwrite: bool) -> StreamWriter:
        plan = plan_of_write(SourceOptions.of(self.options), schema, overwrite)
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
        writer = BatchWriter(
            plan_of_write(SourceOptions.of(options(flow, query=query)), SCHEMA, overwrite=False)
        )
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
        plan_of_write(SourceOptions.of(options(flow, query="q", gap=gap)), SCHEMA, overwrite=False)
        for gap in ("refuse", "allow")
    )
    with pytest.raises(MisuseError, match="batch 2 of query q comes before batches 0 to 1, which"):
        StreamWriter(refusing).commit([_stage(refusing, "q", 2, iter([batch]))], 2)
    assert epochs(flow) == []
    StreamWriter(allowing).commit([_stage(allowing, "q", 2, iter([batch]))], 2)
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
    plan = plan_of_write(SourceOptions.of(options(flow, query="q")), SCHEMA, overwrite=False)
    batch = pa.RecordBatch.from_pydict({"n": [1, 2], "text": ["a", None]})
    first = BatchWriter(plan)
    staged = [first.write(iter([batch.slice(1)])), first.write(iter([batch.slice(0, 1)]))]
    del first
    again = BatchWriter(plan)
    messages = [again.write(iter([batch])), again.write(iter([])), None]
    again.commit(messages)
    assert epochs(flow) == [Counter([1, 2])]
    again.commit(staged)
    again.commit(messages)
    late = again.write(iter([batch] * 3))
    assert (late.parts, late.rows) == ((0, 0), 6), "and what comes after it is not kept, but counted"
    flow.seal()
    assert epochs(flow) == [Counter([1, 2]), Counter()]


def test_refused_is_a_batch_with_the_number_of_another_one(flow: Flow) -> None:
    """The checkpoint is a new one or an older copy, or two streams have one name."""
    plan = replace(plan_of_write(SourceOptions.of(options(flow, query="q")), SCHEMA, False), rows_per_part=1)
    batch = pa.RecordBatch.from_pydict({"n": [1, 2], "text": ["a", None]})
    writer = StreamWriter(plan)
    for number in range(3):
        writer.commit([_stage(plan, "q", number, iter([batch] * 2)), None], number)
    same = [_stage(plan, "q", 2, iter([batch])) for _ in range(2)]
    writer.commit(same, 2)
    for rows in ([batch], [batch] * 3, []):
        messages = [_stage(plan, "q", 2, iter(rows)), _stage(plan, "q", 2, iter([]))]
        with pytest.raises(MisuseError, match=f"batch 2 of query q .* 4 rows, and now has {2 * len(rows)}:"):
            writer.commit(messages, 2)
        StreamWriter(replace(plan, may_skip=True)).commit(messages, 2)
    for older, seals in ((0, True), (1, False)):
        messages = [_stage(plan, "q", older, iter([batch] * 2))]
        with pytest.raises(MisuseError, match=f"batch {older} of query q has come .* up to 2: .* older copy"):
            StreamWriter(replace(plan, seals=seals, may_skip=True)).commit(messages, older)
    assert epochs(flow) == [Counter([1, 2] * 2)] * 3


def test_refused_is_a_second_stream_under_the_name_of_another_though_its_batches_are_as_long(
    session: SparkSession, flow: Flow, tmp_path: Path
) -> None:
    """Of two batches with the same number one would be lost."""
    for folder, row in (("one", 1), ("two", 2)):
        give(tmp_path / folder, "0", row)
    run(stream(session, tmp_path / "one"), flow, tmp_path / "checkpoint", query="both")
    with pytest.raises(StreamingQueryException, match="batch 0 of query both is not written: another stream"):
        run(stream(session, tmp_path / "two"), flow, tmp_path / "another", query="both")
    assert epochs(flow) == [Counter([1])]
    run(stream(session, tmp_path / "two"), flow, tmp_path / "fresh", query="its own")
    give(tmp_path / "one", "1", 3)
    run(stream(session, tmp_path / "one"), flow, tmp_path / "checkpoint", query="both")
    assert epochs(flow) == [Counter([1]), Counter([2]), Counter([3])]


def test_refused_is_a_stream_that_is_started_again_with_an_older_copy_of_its_checkpoint(
    session: SparkSession, flow: Flow, tmp_path: Path
) -> None:
    """Its next batch has the number of one that has come, and a row that no batch had."""
    rows, checkpoint = tmp_path / "rows", tmp_path / "checkpoint"
    give(rows, "0", 0)
    run(stream(session, rows), flow, checkpoint)
    shutil.copytree(checkpoint, tmp_path / "older")
    give(rows, "1", 1)
    run(stream(session, rows), flow, checkpoint)
    give(rows, "2", 2)
    everything = session.readStream.schema("n long, text string").json(str(rows))
    with pytest.raises(
        StreamingQueryException, match="has come already, with 1 rows, and now has 2"
    ) as raised:
        run(everything, flow, tmp_path / "older")
    assert "Traceback" not in str(raised.value)
    run(stream(session, rows), flow, checkpoint)
    assert epochs(flow) == [Counter([n]) for n in range(3)]


def test_killed_or_slower_runs_of_a_task_that_ran_twice_at_once_do_not_count(flow: Flow) -> None:
    """Whichever comes first to its end; the other one has staged rows before, between and after."""
    plan = replace(plan_of_write(SourceOptions.of(options(flow, query="q")), SCHEMA, False), rows_per_part=1)
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


def test_refused_is_a_batch_of_more_tasks_than_one_commit_can_name(
    flow: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a request with too long a header the worker could not even say that, and was waited for."""
    plan = plan_of_write(SourceOptions.of(options(flow, query="q")), SCHEMA, overwrite=False)
    names = [f"{task:06d}/{'a' * 32}" for task in range(65_537)]
    messages = [Staged("q", 0, name, (1, 0), 1) for name in names]
    with pytest.raises(MisuseError, match=r"has 65,537 tasks with rows.* coalesce\(65536\)"):
        BatchWriter(plan).commit(messages)
    with pytest.raises(MisuseError, match="what 65536 of its tasks staged is not there any more"):
        BatchWriter(plan).commit([*messages[1:], replace(messages[0], rows=0, parts=(0, 0))])


def test_batch_parts_of_wide_rows_fit_a_request(flow: Flow, monkeypatch: pytest.MonkeyPatch) -> None:
    """131,072 rows of 2 KiB do not, and nobody who writes a DataFrame can say how many are sent at once."""
    monkeypatch.setattr(writing, "APPEND_BYTES_MAX", 1_000)
    plan = plan_of_write(SourceOptions.of(options(flow, query="q")), SCHEMA, overwrite=False)
    sizes = []

    def with_diff(table: pa.Table, diff: str | None) -> pa.Table:
        sizes.append(table.nbytes)
        return table

    monkeypatch.setattr(writing, "with_diff", with_diff)
    narrow = pa.RecordBatch.from_pydict({"n": [1, 2], "text": ["a" * 100, None]})
    wide = pa.RecordBatch.from_pydict({"n": range(100), "text": [f"{n:0100}" for n in range(100)]})
    rows = [*[narrow] * 5, wide, *[narrow] * 9]
    staged = _stage(plan, "q", 0, iter(rows))
    assert staged.rows == 128 and sum(staged.parts) == len(sizes) > 10
    assert all(size < 2_000 for size in sizes) and sum(size >= 900 for size in sizes) > 10
    BatchWriter(plan).commit([staged])
    assert sum(epochs(flow)[0].values()) == 128 and set(epochs(flow)[0]) == set(range(100))


def test_batch_parts_begin_at_another_worker_for_each_partition(
    flow: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most partitions have one part: all of these would be the first worker's."""
    plan = replace(plan_of_write(SourceOptions.of(options(flow, query="q")), SCHEMA, False), rows_per_part=1)
    batch = pa.RecordBatch.from_pydict({"n": [1], "text": ["a"]})
    parts = []
    for partition in range(3):
        context = SimpleNamespace(partitionId=lambda partition=partition: partition)
        monkeypatch.setattr(writing, "TaskContext", SimpleNamespace(get=lambda context=context: context))
        parts.append(_stage(plan, "q", 0, iter([batch] * 3)).parts)
    assert parts == [(2, 1), (1, 2), (2, 1)]


def test_refused_is_a_batch_whose_number_another_one_takes_just_before_its_commit(
    flow: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two that write at the same time under one name: each finds that none is committed."""
    plan = plan_of_write(SourceOptions.of(options(flow, query="q")), SCHEMA, False)
    batch = pa.RecordBatch.from_pydict({"n": [1], "text": ["a"]})
    first, second = [_stage(plan, "q", 0, iter([batch] * 3))], [_stage(plan, "q", 0, iter([batch] * 5))]
    look = BatchDelivery.look

    def looked(*asked: object) -> tuple[int, int]:
        found = look(*asked)  # type: ignore[arg-type]
        monkeypatch.setattr(BatchDelivery, "look", look)
        BatchWriter(plan).commit(first)
        return found

    monkeypatch.setattr(BatchDelivery, "look", looked)
    with pytest.raises(MisuseError, match="has come already, with 3 rows, and now has 5"):
        BatchWriter(plan).commit(second)
    assert epochs(flow) == [Counter({1: 3})]


class Unanswered(FixedMembers):
    """Workers of which the first is too busy for a commit: it is made when `answer` is called."""

    def __init__(self, workers: RemoteWorkers) -> None:
        self.count = workers.count
        self._workers = workers
        self._late: list[tuple[int, Request, pa.Table | None]] = []

    def ask(
        self, requests: Sequence[tuple[int, Request, pa.Table | None]], seconds: float = 300.0
    ) -> list[Reply]:
        if isinstance(requests[0][1], Decide):
            self._late = list(requests)
            raise WaitTimeoutError("no answer from worker 0")
        return self._workers.ask(requests, seconds)

    def answer(self) -> Reply:
        (reply,) = self._workers.ask(self._late)
        return reply


def test_killed_is_no_part_of_a_batch_whose_commit_is_late_and_made_all_the_same(
    flow: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark gives it up: what the commit names has to stay, on all workers."""
    plan = replace(plan_of_write(SourceOptions.of(options(flow, query="q")), SCHEMA, False), rows_per_part=1)
    batch = pa.RecordBatch.from_pydict({"n": [1], "text": ["a"]})
    stream = StreamWriter(plan)
    messages = [_stage(plan, "q", 0, iter([batch] * 3))]
    assert messages[0].parts == (2, 1)
    _stage(plan, "q", 0, iter([batch]))  # by a task that was run twice
    with workers_at(plan.at) as workers:
        busy = Unanswered(workers)
        with monkeypatch.context() as patched:
            patched.setattr("timely.spark.source.writing.workers_at", lambda at: nullcontext(busy))
            with pytest.raises(WaitTimeoutError):
                stream.commit(messages, 0)
            stream.abort(messages, 0)
        assert busy.answer().items("entered") == [[True, 0]]
    assert epochs(flow) == [Counter({1: 3})]
    again = [_stage(plan, "q", 0, iter([batch] * 3))]
    stream.commit(again, 0)
    assert epochs(flow) == [Counter({1: 3})], "and it does not count twice"


@pytest.mark.parametrize("is_asked", [False, True])
def test_killed_is_what_a_commit_names_that_is_not_made_for_certain(
    flow: Flow, monkeypatch: pytest.MonkeyPatch, is_asked: bool
) -> None:
    """Worker 0 has refused it, or was never asked: 6 hours are long to wait for that."""
    plan = plan_of_write(SourceOptions.of(options(flow, query="q")), SCHEMA, overwrite=False)
    batch = pa.RecordBatch.from_pydict({"n": [1], "text": ["a"]})
    messages = [_stage(plan, "q", 1, iter([batch]))]
    if not is_asked:
        flow.wait(flow.seal())
        plan = replace(plan, lag=1)
        too_slow = Progress(plan.dataflow, "", 99, 0.0)
        monkeypatch.setattr("timely.spark.delivering.Progress", lambda *_: too_slow)
    said = "comes before batch 0" if is_asked else "epoch 99 of .* is not complete"
    with pytest.raises((MisuseError, WaitTimeoutError), match=said):
        StreamWriter(plan).commit(messages, 1)
    asked: list[Value] = [["rows", "q", 1, messages[0].attempt, 1]]
    (reply,) = flow._workers.ask([(0, Missing(plan.dataflow, -1, asked), None)])
    assert reply.values["missing"] == asked


def test_killed_batches_are_let_go_of(flow: Flow) -> None:
    plan = plan_of_write(SourceOptions.of(options(flow, query="q")), SCHEMA, overwrite=False)
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
        "input 'rows' takes the columns n bigint, text string; the column of diffs, 'times', is double, and "
        r"has to be of whole numbers \(tinyint, smallint, int or bigint\); 'n' is string, not bigint; 'text' "
        r"\(string\) is missing; 'm' is not one of them"
    )
    with pytest.raises(MisuseError, match=said):
        plan_of_write(SourceOptions.of(options(flow, diff="times")), asked, overwrite=False)
    with pytest.raises(MisuseError, match="has no input 'row'"):
        plan_of_write(SourceOptions.of(options(flow, input="row")), asked, overwrite=False)
    narrow = T.StructType().add("n", "short").add("text", "string")
    assert plan_of_write(SourceOptions.of(options(flow)), narrow, overwrite=False).input == "rows"


def test_refused_diffs_that_are_null_are_told_in_one_line(session: SparkSession, flow: Flow) -> None:
    rows = session.sql("SELECT 1L AS n, 'a' AS text, CAST(NULL AS int) AS times").write.format("naiad")
    with pytest.raises(PySparkException) as raised:
        rows.options(**options(flow, diff="times")).mode("append").save()
    (line,) = [line for line in str(raised.value).splitlines() if "MisuseError" in line]
    assert line.endswith("is null in 1 of 1 rows that were looked at: it says how often each row is added. "
                         "Write coalesce(times, 1) if null means once")  # fmt: skip
    assert "Traceback" not in str(raised.value) and epochs(flow) == []


def test_refused_for_the_reason_that_a_task_had_though_the_batch_cannot_be_let_go_of_either(
    flow: Flow,
) -> None:
    """Where the cluster has gone both fail, and Spark tells the second with 150 lines of Java."""
    plan = plan_of_write(SourceOptions.of(options(flow)), SCHEMA, overwrite=False)
    gone = replace(plan, dataflow=99)
    batch, stream = BatchWriter(gone), StreamWriter(replace(gone, query="q"))
    with pytest.raises(MisuseError, match="no dataflow 99"):
        batch.write(iter([pa.RecordBatch.from_pydict({"n": [1], "text": ["a"]})]))
    batch.abort([])
    stream.abort([], 0)


def test_refused_is_a_stream_whose_cluster_has_gone_for_the_reason_that_a_task_had(
    session: SparkSession, tmp_path: Path
) -> None:
    """Spark makes another writer where it gives a batch up; if that failed it would tell of nothing else."""

    def passed_on(dataflow: timely.Dataflow) -> None:
        dd.input(dataflow, "rows", "n: int, text: string?").output("rows")

    with timely.connect(workers=1) as cluster:
        flow = cluster.install(passed_on)
        (process,) = (int(str(counters["process"])) for counters in cluster.stats())

        def killing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield from batches
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

        give(tmp_path / "rows", "0", 1)
        frame = stream(session, tmp_path / "rows").mapInArrow(killing, "n long, text string")
        with pytest.raises(StreamingQueryException, match="PeerError: .*(worker 0|no worker)") as raised:
            run(frame, flow, tmp_path / "checkpoint")
    assert "Traceback" not in str(raised.value)


def test_refused_where_a_batch_ends_is_said_of_its_commit_only(
    flow: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = NaiadSource(options(flow, input="gone"))
    with pytest.raises(MisuseError, match="has no input 'gone'"):
        source.streamWriter(SCHEMA, overwrite=False)
    monkeypatch.setattr(sys, "argv", ["daemon.py", "pyspark.sql.worker.python_streaming_sink_runner"])
    refused = source.streamWriter(SCHEMA, overwrite=False)
    refused.abort([], 0)
    for what in (lambda: refused.commit([], 0), lambda: refused.write(iter([]))):
        with pytest.raises(MisuseError, match="has no input 'gone'"):
            what()
    assert isinstance(NaiadSource(options(flow)).streamWriter(SCHEMA, overwrite=False), StreamWriter)


def test_refused_modes_are_named(session: SparkSession, flow: Flow) -> None:
    rows = numbers(session, 1).write.format("naiad").options(**options(flow))
    with pytest.raises(PySparkException, match="naiad appends") as raised:
        rows.mode("overwrite").save()
    assert "Traceback" not in str(raised.value)
    assert epochs(flow) == []
