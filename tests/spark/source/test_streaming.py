"""Outputs of real workers as streams.

offsets_*   what an epoch is to Spark, step by step
stream_*    `spark.readStream`, with restarts
refused_*   streams that cannot be
"""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import InputPartition

import differential as dd
import timely
from timely.client.installed import Workers
from timely.client.pieces import Held, hold_everywhere
from timely.client.session import Flow
from timely.errors import ForgottenError, MisuseError, RequestError
from timely.operators.inputs.names import worker_of
from timely.spark.source import streaming
from timely.spark.source.data_source import NaiadSource
from timely.spark.source.options import SourceOptions
from timely.spark.source.reading import OutputPartition, OutputReader, plan_of
from timely.spark.source.streaming import StreamReader
from timely.wire.requests import Progress


@pytest.fixture
def flow(cluster: timely.Cluster) -> Flow:
    """Row n comes in epoch n, and goes in the next one, for n from 0 to 2."""
    return installed(cluster, 3)


def installed(cluster: timely.Cluster, epochs: int) -> Flow:
    def passed_on(dataflow: timely.Dataflow) -> None:
        rows = dd.input(dataflow, "rows", "n: int")
        rows.export("rows")
        rows.output("rows")

    flow = cluster.install(passed_on)
    for number in range(epochs):
        give(flow, number)
    return flow


def give(flow: Flow, number: int) -> None:
    flow.input("rows").insert([(number,)])
    if number:
        flow.input("rows").remove([(number - 1,)])
    flow.wait(flow.seal())


def options(flow: Flow, **more: object) -> dict[str, str]:
    named = {"cluster": flow._workers.addresses[0], "dataflow": flow.index, "output": "rows", **more}
    return {name: str(value) for name, value in named.items()}


def reader_of(flow: Flow, epochs_max: int = 0, may_be_another: bool = False, **more: object) -> StreamReader:
    plan = plan_of(SourceOptions.of(options(flow, **more)))
    return StreamReader(plan, plan.form, epochs_max, may_be_another)


def at(flow: Flow, epoch: int) -> dict[str, object]:
    """An offset in the output of `flow`."""
    origin = hold_everywhere(flow._workers, Progress(flow.index, "rows", keep_from=0, extent=True)).origin
    return {"epoch": epoch, "origin": origin}


def read(
    reader: StreamReader, start: dict[str, object], end: dict[str, object]
) -> list[tuple[int, int, int]]:
    return rows_of(reader, reader.partitions(start, end))


def rows_of(reader: StreamReader, partitions: Sequence[InputPartition]) -> list[tuple[int, int, int]]:
    elsewhere: StreamReader = pickle.loads(pickle.dumps(reader))
    return sorted(
        (row["epoch"], row["n"], row["diff"])
        for partition in partitions
        for batch in elsewhere.read(partition)
        for row in batch.to_pylist()
    )


CHANGES = [(0, 0, 1), (1, 0, -1), (1, 1, 1), (2, 1, -1), (2, 2, 1)]


def test_offsets_are_epochs_and_what_is_between_two_is_always_the_same(flow: Flow) -> None:
    reader = reader_of(flow, startingEpoch=0)
    start = reader.initialOffset()
    end = reader.latestOffset(start, None)
    assert (start, end) == (at(flow, 0), at(flow, 3))
    give(flow, 3)
    assert read(reader, start, end) == read(reader, start, end) == CHANGES
    assert reader.latestOffset(end) == reader.reportLatestOffset() == at(flow, 4)
    assert read(reader, end, at(flow, 4)) == [(3, 2, -1), (3, 3, 1)]
    assert reader.latestOffset() == at(flow, 4), "PySpark 4.1 does not say where it begins"
    reader.stop()


def test_offsets_that_are_committed_are_forgotten_and_those_behind_are_kept(flow: Flow) -> None:
    reader = reader_of(flow, startingEpoch="earliest", query="one")
    assert reader.initialOffset() == {**at(flow, 0), "began": 0}
    reader.commit(at(flow, 2))
    reader.stop()
    flow.output("rows").forget(3)
    again = reader_of(flow, startingEpoch=0, query="one")
    assert read(again, at(flow, 2), at(flow, 3)) == CHANGES[3:]
    with pytest.raises(ForgottenError, match="before 2 are no longer kept"):
        again.partitions(at(flow, 1), at(flow, 3))
    assert reader_of(flow, startingEpoch="earliest").initialOffset() == {**at(flow, 2), "began": 2}
    with pytest.raises(ForgottenError):
        reader_of(flow, startingEpoch=0).initialOffset()


def test_offsets_may_begin_with_a_snapshot_which_comes_in_one_epoch(flow: Flow) -> None:
    reader = reader_of(flow, startingEpoch="snapshot")
    start = reader.initialOffset()
    end = reader.latestOffset(start)
    assert (start, end) == (at(flow, -1), at(flow, 3))
    give(flow, 3)
    assert read(reader, start, end) == [(2, 2, 1)]
    assert read(reader, end, reader.latestOffset(end)) == [(3, 2, -1), (3, 3, 1)]
    assert reader_of(flow, startingEpoch="latest").initialOffset() == {**at(flow, 4), "began": 4}


@pytest.mark.parametrize(("starting", "begins"), [("0", CHANGES[2:]), ("snapshot", [(2, 2, 1)])])
def test_offsets_are_the_same_where_only_some_rows_are_asked_for(
    flow: Flow, starting: str, begins: list[tuple[int, int, int]]
) -> None:
    reader = reader_of(flow, startingEpoch=starting, where="n BETWEEN 1 AND 2 AND n <> 7")
    start = reader.initialOffset()
    assert read(reader, start, reader.latestOffset(start)) == begins
    give(flow, 3)
    assert read(reader, at(flow, 3), at(flow, 4)) == [(3, 2, -1)]
    assert reader.latestOffset(at(flow, 4)) == at(flow, 4)


def test_offsets_are_of_the_output_that_was_there_when_a_batch_was_planned(flow: Flow) -> None:
    reader = reader_of(flow, startingEpoch=0)
    (one, other) = reader.partitions(at(flow, 0), at(flow, 3))
    assert isinstance(one, OutputPartition) and isinstance(other, OutputPartition)
    assert rows_of(reader, [one, other]) == CHANGES
    one.output_slice, other.output_slice = (
        other.output_slice,
        one.output_slice,
    )  # no other worker has that origin
    with pytest.raises(RequestError, match="Read it again"):
        rows_of(reader, [one])


def test_offsets_of_a_snapshot_are_kept_for_a_driver_that_gives_its_batch_again(flow: Flow) -> None:
    again = reader_of(flow, startingEpoch="snapshot")
    partitions = again.partitions(at(flow, -1), at(flow, 3))
    give(flow, 3)
    flow.output("rows").forget(4)
    assert rows_of(again, partitions) == [(2, 2, 1)]
    assert read(again, at(flow, 3), at(flow, 4)) == [(3, 2, -1), (3, 3, 1)], "and what joins on to it"


def test_offsets_are_bounded_by_epochs_per_batch_and_by_what_was_there_at_the_start(flow: Flow) -> None:
    reader = reader_of(flow, 2, startingEpoch=0)
    assert reader.latestOffset(at(flow, 0)) == at(flow, 2)
    reader.prepareForTriggerAvailableNow()
    give(flow, 3)
    assert [reader.latestOffset(at(flow, epoch)) for epoch in (2, 3)] == [at(flow, 3)] * 2
    told_nothing = reader_of(flow, 1, startingEpoch=0)
    told_nothing.partitions(at(flow, 1), at(flow, 2))
    assert told_nothing.latestOffset() == at(flow, 3), "PySpark 4.1: it begins where the last one ended"
    only_committed = reader_of(flow, 1, startingEpoch=0)
    only_committed.commit(at(flow, 2))
    assert only_committed.latestOffset() == at(flow, 3), "or where a driver that is gone had come to"


def test_offsets_end_behind_epochs_with_an_answer_and_a_stream_goes_on_once_there_is_one(
    cluster: timely.Cluster,
) -> None:
    def inverses(dataflow: timely.Dataflow) -> None:
        dd.input(dataflow, "rows", "n: int").select(n=60 // dd.col.n).output("rows")

    flow = cluster.install(inverses)

    def give_rows(come: Sequence[int], go: Sequence[int] = ()) -> None:
        flow.input("rows").insert([(n,) for n in come])
        flow.input("rows").remove([(n,) for n in go])
        flow.wait(flow.seal())

    give_rows([1])
    give_rows([2, 0])
    reader = reader_of(flow, startingEpoch=0)
    assert reader.latestOffset(at(flow, 0)) == at(flow, 1), "the last one with an answer"
    with pytest.raises(MisuseError, match=r"no answer at epoch 1: 60 // col\.n \(.*\) divides by zero"):
        reader.latestOffset(at(flow, 1))
    give_rows([3])
    with pytest.raises(MisuseError, match="no answer"):
        reader.latestOffset(at(flow, 1))
    give_rows([4], [0])
    assert reader.latestOffset(at(flow, 1)) == at(flow, 4)
    assert read(reader, at(flow, 1), at(flow, 4)) == [(3, 15, 1), (3, 20, 1), (3, 30, 1)]
    bounded = reader_of(flow, 1, startingEpoch=0)
    assert bounded.latestOffset(at(flow, 1)) == at(flow, 4), (
        "the next one with an answer, if none is in front"
    )
    reader.stop()


@pytest.mark.parametrize("word", ["latest", "earliest"])
def test_offsets_of_the_first_batch_stay_though_the_next_driver_would_begin_elsewhere(
    flow: Flow, word: str
) -> None:
    """Spark keeps where a batch ends; where the first one begins it asks again."""
    flow.output("rows").forget(3)
    reader = reader_of(flow, startingEpoch=word, query="one")
    start = reader.initialOffset()
    assert reader.latestOffset(start) == start, "nothing is new"
    give(flow, 3)
    end = reader.latestOffset(start)
    give(flow, 4)
    again = reader_of(flow, startingEpoch=word, query="one")
    assert (again.initialOffset() == start) is (word == "earliest")
    assert read(again, again.initialOffset(), end) == [(3, 2, -1), (3, 3, 1)]
    following = again.latestOffset(end)
    assert following == at(flow, 5) and read(again, end, following) == [(4, 3, -1), (4, 4, 1)]


def test_offsets_of_a_snapshot_are_not_bounded_by_epochs_per_batch(flow: Flow) -> None:
    flow.output("rows").forget(3)
    reader = reader_of(flow, 2, startingEpoch="snapshot")
    assert read(reader, at(flow, -1), reader.latestOffset(at(flow, -1))) == [(2, 2, 1)]


def test_offsets_end_behind_the_last_epoch_when_nothing_can_come_any_more(flow: Flow) -> None:
    flow.input("rows").insert([(7,)])
    flow.input("rows").close()
    flow.wait(3)
    reader = reader_of(flow, startingEpoch=0)
    end = reader.latestOffset(at(flow, 0))
    assert end == at(flow, 4) == reader.latestOffset(end)
    assert read(reader, at(flow, 3), end) == [(3, 7, 1)]


def test_offsets_end_behind_the_last_epoch_that_is_sealed_though_nothing_came_in_it(flow: Flow) -> None:
    flow.wait(flow.seal())
    flow.input("rows").close()
    assert reader_of(flow, startingEpoch=0).latestOffset(at(flow, 0)) == at(flow, 5)


@pytest.mark.parametrize("worker", [0, 1])
def test_offsets_end_behind_rows_of_epochs_that_nobody_has_sealed_before_the_end(
    flow: Flow, worker: int
) -> None:
    """Which one worker has, and the other has not heard of."""
    writer = next(name for name in map(str, range(99)) if worker_of(name, 0, 2) == worker)
    flow.input("rows").append(pa.table({"n": [7], "diff": [1]}), writer=writer, sequence=0, epoch=8)
    flow.input("rows").close()
    flow.wait(8)
    reader = reader_of(flow, startingEpoch=0)
    end = reader.latestOffset(at(flow, 0))
    assert end == at(flow, 9) and read(reader, at(flow, 3), end) == [(8, 7, 1)]


def test_offsets_of_an_idle_output_are_waited_for_and_told_as_soon_as_there_are_news(
    flow: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is asked is counted: who waits asks once."""
    monkeypatch.setattr(streaming, "_NEWS_SECONDS", 60.0)
    reader = reader_of(flow, startingEpoch=0)
    asked: list[Progress] = []

    def counted(workers: Workers, wanted: Progress, seconds: float) -> Held:
        asked.append(wanted)
        assert seconds == 300
        return hold_everywhere(workers, wanted, seconds)

    monkeypatch.setattr(streaming, "hold_everywhere", counted)
    assert reader.latestOffset(at(flow, 2)) == at(flow, 3), "what is there is not waited for"
    start = at(flow, 3)
    with ThreadPoolExecutor(1) as other:
        coming = other.submit(reader.latestOffset, start)
        while len(asked) < 2:
            time.sleep(0.001)
        give(flow, 3)
        assert coming.result(30) == reader.reportLatestOffset() == at(flow, 4)
    assert len(asked) == 2
    other_reader = reader_of(flow, startingEpoch=0)
    other_reader.prepareForTriggerAvailableNow()
    assert other_reader.latestOffset(at(flow, 4)) == at(flow, 4), "who wants what there is does not wait"


def test_offsets_rest_also_where_nothing_can_come_any_more(
    flow: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow.input("rows").close()
    slept: list[float] = []
    pause, here = time.sleep, threading.get_ident()

    def sleep(seconds: float) -> None:
        if threading.get_ident() == here:
            slept.append(seconds)
        else:  # of another thread, which has nothing to do with this
            pause(seconds)

    monkeypatch.setattr(streaming.time, "sleep", sleep)
    reader = reader_of(flow, startingEpoch=0)
    end = reader.latestOffset(at(flow, 0))
    assert slept == []
    assert reader.latestOffset(end) == end
    assert 0.1 < slept[0] <= 0.2


def test_offsets_are_waited_for_as_long_as_the_user_says_while_a_worker_computes(
    flow: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five minutes at least, for who wants an epoch at once does not mean that."""
    waited: list[float] = []

    def asked(workers: Workers, wanted: Progress, seconds: float) -> Held:
        waited.append(seconds)
        return hold_everywhere(workers, wanted, seconds)

    monkeypatch.setattr(streaming, "hold_everywhere", asked)
    for timeout in (900, 1):
        reader_of(flow, startingEpoch=0, timeout=timeout).latestOffset(at(flow, 0))
    assert waited == [900, 300]


def test_offsets_may_begin_at_an_epoch_that_is_still_to_come(flow: Flow) -> None:
    reader = reader_of(flow, startingEpoch=4)
    start = reader.initialOffset()
    assert start == reader.latestOffset(start) == reader.latestOffset() == at(flow, 4)
    assert reader.partitions(start, start) == [], "nothing is waited for"
    again = reader_of(flow, startingEpoch=4)
    assert again.latestOffset() == start, "PySpark 4.1 does not say that it is there, nor asks where to begin"
    give(flow, 3)
    give(flow, 4)
    assert read(reader, start, reader.latestOffset(start)) == [(4, 3, -1), (4, 4, 1)]


def test_offsets_go_on_where_a_dataflow_is_replaced(cluster: timely.Cluster, flow: Flow) -> None:
    def doubled(dataflow: timely.Dataflow) -> None:
        rows = dd.input(dataflow, "rows", "n: int")
        rows.concat(rows).output("rows")

    start = at(flow, 2)
    new = cluster.replace(flow, doubled)
    give(new, 3)
    for one in (flow, new):
        reader = reader_of(one, startingEpoch=0)
        assert reader.latestOffset(start) == {**start, "epoch": 4}
        assert (3, 3, 2) in read(reader, start, reader.latestOffset(start))


@pytest.mark.parametrize("epochs", [0, 2, 5])
def test_offsets_of_another_dataflow_are_refused_at_each_step(
    cluster: timely.Cluster, flow: Flow, epochs: int
) -> None:
    start, end = at(flow, 2), at(flow, 3)
    anew = installed(cluster, epochs)
    for go_on in (
        lambda reader: reader.latestOffset(start),
        lambda reader: reader.partitions(start, end),
        lambda reader: reader.commit(end),
    ):
        reader = reader_of(anew, startingEpoch=0, query="one")
        with pytest.raises(
            MisuseError, match=rf"gone.* installed anew, and is complete before epoch {epochs}\."
        ):
            go_on(reader)
    anew.output("rows").forget(epochs)
    if epochs == 5:
        with pytest.raises(MisuseError, match="installed anew, and is complete before epoch 5"):
            reader.latestOffset(start)
    beginning = reader_of(anew, startingEpoch="earliest").initialOffset()
    assert beginning == {**at(anew, epochs), "began": epochs}, "who was refused holds nothing back"


def test_offsets_of_another_dataflow_go_on_if_the_user_says_so_once_it_is_as_far(
    cluster: timely.Cluster, flow: Flow
) -> None:
    start, end = at(flow, 2), at(flow, 3)
    anew = installed(cluster, 2)
    reader = reader_of(anew, 0, True, startingEpoch=0)
    assert reader.latestOffset(start) == start, "nothing is new"
    with pytest.raises(MisuseError, match="up to epoch 3, and start the query then"):
        reader.partitions(start, end)
    give(anew, 2)
    assert read(reader, start, end) == CHANGES[3:]
    give(anew, 3)
    assert reader.latestOffset(end) == at(anew, 4)


def test_offsets_of_two_queries_over_one_frame_are_kept_for_each(flow: Flow) -> None:
    """Step by step as PySpark does it, which makes the source once, and a reader for each start."""
    made = pickle.dumps(NaiadSource(options(flow, startingEpoch=0)))
    sources: list[NaiadSource] = [pickle.loads(made) for _ in range(2)]
    first, second = (source.streamReader(source.schema()) for source in sources)
    assert isinstance(first, StreamReader) and isinstance(second, StreamReader)
    assert first.initialOffset() == second.initialOffset() == at(flow, 0)
    first.commit(at(flow, 3))
    assert read(second, at(flow, 0), at(flow, 3)) == CHANGES
    second.commit(at(flow, 3))
    with pytest.raises(ForgottenError):
        first.partitions(at(flow, 2), at(flow, 3))
    named = NaiadSource(options(flow, startingEpoch=0, query="one"))
    reader = named.streamReader(named.schema())
    assert isinstance(reader, StreamReader) and reader.plan.reader == "spark/one", "found again"


def follow(spark: SparkSession, flow: Flow, folder: Path, **more: object) -> None:
    """Everything that there is, as Parquet."""
    frame: DataFrame = spark.readStream.format("naiad").options(**options(flow, **more)).load()
    query = (
        frame.writeStream.format("parquet")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(folder / "rows"))
    )
    assert query.awaitTermination(100)


def test_stream_goes_on_where_it_was(session: SparkSession, flow: Flow, tmp_path: Path) -> None:
    follow(session, flow, tmp_path, startingEpoch=0, epochsPerBatch=2)
    give(flow, 3)
    follow(session, flow, tmp_path, startingEpoch=0)
    found = session.read.parquet(str(tmp_path / "rows")).select("epoch", "n", "diff").collect()
    assert sorted(map(tuple, found)) == [*CHANGES, (3, 2, -1), (3, 3, 1)]
    batches = list((tmp_path / "checkpoint" / "commits").glob("[0-9]*"))
    is_at_once = find_spec("pyspark.sql.streaming.datasource") is None  # PySpark 4.1
    assert len(batches) == (2 if is_at_once else 3)


def test_refused_streams_say_from_where_to_begin_and_frames_where_that_is(flow: Flow) -> None:
    with pytest.raises(MisuseError, match="a stream of an output is its changes: say from where"):
        reader_of(flow)
    latest = plan_of(SourceOptions.of(options(flow, startingEpoch="latest")))
    with pytest.raises(MisuseError, match="'latest', which is for streams"):
        OutputReader(latest, latest.form)
    earliest = plan_of(SourceOptions.of(options(flow, startingEpoch="earliest")))
    frame = OutputReader(earliest, earliest.form)
    batches = [batch for partition in frame.partitions() for batch in frame.read(partition)]
    assert sum(batch.num_rows for batch in batches) == len(CHANGES)


@pytest.mark.parametrize("epochs", [1, 6])
def test_stream_is_refused_by_a_dataflow_that_is_not_the_one_of_its_checkpoint(
    session: SparkSession, cluster: timely.Cluster, flow: Flow, tmp_path: Path, epochs: int
) -> None:
    follow(session, flow, tmp_path, startingEpoch=0)
    anew = installed(cluster, epochs)
    with pytest.raises(StreamingQueryException) as raised:
        follow(session, anew, tmp_path, startingEpoch=0)
    (line,) = [line for line in str(raised.value).splitlines() if "MisuseError" in line]
    assert f"it has read output 'rows' of dataflow {anew.index} before epoch 3 of a dataflow that is" in line
    assert f"complete before epoch {epochs}. To read that from its beginning, give the query a new" in line
    assert "Traceback" not in str(raised.value)
    if epochs > 3:
        follow(session, anew, tmp_path, startingEpoch=0, restarted="allow")
        found = session.read.parquet(str(tmp_path / "rows")).select("epoch", "n").distinct().collect()
        assert {row["epoch"] for row in found} == set(range(6)) and len(found) == 11
