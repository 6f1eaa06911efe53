"""Outputs of real workers as streams.

offsets_*   what an epoch is to Spark, step by step
stream_*    `spark.readStream`, with restarts
refused_*   streams that cannot be
"""

from __future__ import annotations

import pickle
from importlib.util import find_spec
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import differential as dd
import timely
from timely.client.session import Flow
from timely.errors import ForgottenError, MisuseError
from timely.spark.source.options import Options
from timely.spark.source.reading import OutputReader, plan_of
from timely.spark.source.streaming import StreamReader


@pytest.fixture
def flow(cluster: timely.Cluster) -> Flow:
    """Row n comes in epoch n, and goes in the next one, for n from 0 to 2."""

    def passed_on(dataflow: timely.Dataflow) -> None:
        dd.input(dataflow, "rows", "n: int").output("rows")

    flow = cluster.install(passed_on)
    for number in range(3):
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


def reader_of(flow: Flow, epochs_max: int = 0, **more: object) -> StreamReader:
    plan = plan_of(Options.of(options(flow, **more)))
    return StreamReader(plan, plan.form, epochs_max)


def read(reader: StreamReader, start: dict[str, int], end: dict[str, int]) -> list[tuple[int, int, int]]:
    partitions = reader.partitions(start, end)
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
    assert (start, end) == ({"epoch": 0}, {"epoch": 3})
    give(flow, 3)
    assert read(reader, start, end) == read(reader, start, end) == CHANGES
    assert reader.latestOffset(end) == reader.reportLatestOffset() == {"epoch": 4}
    assert read(reader, end, {"epoch": 4}) == [(3, 2, -1), (3, 3, 1)]
    assert reader.latestOffset() == {"epoch": 4}, "PySpark 4.1 does not say where it begins"
    reader.stop()


def test_offsets_that_are_committed_are_forgotten_and_those_behind_are_kept(flow: Flow) -> None:
    reader = reader_of(flow, startingEpoch="earliest", query="one")
    assert reader.initialOffset() == {"epoch": 0}
    reader.commit({"epoch": 2})
    reader.stop()
    flow.output("rows").forget(3)
    again = reader_of(flow, startingEpoch=0, query="one")
    assert read(again, {"epoch": 2}, {"epoch": 3}) == CHANGES[3:]
    with pytest.raises(ForgottenError, match="before 2 are no longer kept"):
        again.partitions({"epoch": 1}, {"epoch": 3})
    assert reader_of(flow, startingEpoch="earliest").initialOffset() == {"epoch": 2}
    with pytest.raises(ForgottenError):
        reader_of(flow, startingEpoch=0).initialOffset()


def test_offsets_may_begin_with_a_snapshot_which_comes_in_one_epoch(flow: Flow) -> None:
    reader = reader_of(flow, startingEpoch="snapshot")
    start = reader.initialOffset()
    end = reader.latestOffset(start)
    assert (start, end) == ({"epoch": -1}, {"epoch": 3})
    give(flow, 3)
    assert read(reader, start, end) == [(2, 2, 1)]
    assert read(reader, end, reader.latestOffset(end)) == [(3, 2, -1), (3, 3, 1)]
    assert reader_of(flow, startingEpoch="latest").initialOffset() == {"epoch": 4}


def test_offsets_are_bounded_by_epochs_per_batch_and_by_what_was_there_at_the_start(flow: Flow) -> None:
    reader = reader_of(flow, 2, startingEpoch=0)
    assert reader.latestOffset({"epoch": 0}) == {"epoch": 2}
    reader.prepareForTriggerAvailableNow()
    give(flow, 3)
    assert [reader.latestOffset({"epoch": epoch}) for epoch in (2, 3)] == [{"epoch": 3}] * 2


def test_offsets_end_behind_the_last_epoch_when_nothing_can_come_any_more(flow: Flow) -> None:
    flow.input("rows").insert([(7,)])
    flow.input("rows").close()
    flow.wait(3)
    reader = reader_of(flow, startingEpoch=0)
    end = reader.latestOffset({"epoch": 0})
    assert end == {"epoch": 4} == reader.latestOffset(end)
    assert read(reader, {"epoch": 3}, end) == [(3, 7, 1)]


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
    latest = plan_of(Options.of(options(flow, startingEpoch="latest")))
    with pytest.raises(MisuseError, match="'latest', which is for streams"):
        OutputReader(latest, latest.form)
    earliest = plan_of(Options.of(options(flow, startingEpoch="earliest")))
    frame = OutputReader(earliest, earliest.form)
    batches = [batch for partition in frame.partitions() for batch in frame.read(partition)]
    assert sum(batch.num_rows for batch in batches) == len(CHANGES)
