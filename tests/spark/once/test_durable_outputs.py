"""Outputs of a durable cluster, whose workers are killed while they are read; no Java is needed for that.

origin_*   the outputs of a cluster that has started again are those of before
task_*     a task that is run again, or goes on after a restart, reads the same
"""

from __future__ import annotations

import os
import pickle
import signal
from collections import Counter
from collections.abc import Iterator

import pyarrow as pa
import pytest

import differential as dd
import timely
from timely.client import pieces
from timely.client.installed import Workers
from timely.client.pieces import OutputSlice, hold_everywhere
from timely.client.session import Flow
from timely.errors import MisuseError, RestartedError
from timely.spark.source import reading
from timely.spark.source.options import SourceOptions
from timely.spark.source.reading import OutputPartition, OutputReader, plan_of
from timely.spark.source.streaming import StreamReader
from timely.wire.requests import Progress, Reply

ROWS = 5_000


def passed_on(dataflow: timely.Dataflow) -> None:
    dd.input(dataflow, "rows", "n: int, text: string").output("rows")


def kill_all(cluster: timely.Cluster) -> None:
    """Kill the workers, and return once they are there again."""
    keeper = getattr(cluster._workers, "_launcher")  # noqa: B009 - a test looks behind the curtain
    for process in keeper.pids:
        os.kill(process, signal.SIGKILL)
    cluster.flows()


def give(flow: Flow, first: int, rows: int = ROWS) -> None:
    """Rows that lie with both workers, in an epoch of their own."""
    numbers = range(first, first + rows)
    flow.input("rows").insert(
        pa.table({"n": pa.array(numbers, pa.int64()), "text": [f"t{n}" for n in numbers]})
    )
    flow.wait(flow.seal())


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[timely.Cluster]:
    with timely.connect(workers=2, durable=tmp_path_factory.mktemp("durable")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def flow(cluster: timely.Cluster) -> Flow:
    """Two epochs."""
    flow = cluster.install(passed_on)
    give(flow, 0)
    give(flow, ROWS)
    return flow


def options(flow: Flow, **more: object) -> SourceOptions:
    named = {"cluster": flow._workers.addresses[0], "dataflow": flow.index, "output": "rows", **more}
    return SourceOptions.of({name: str(value) for name, value in named.items()})


def reader_of(flow: Flow, **more: object) -> StreamReader:
    plan = plan_of(options(flow, startingEpoch=0, **more))
    return StreamReader(plan, plan.form)


def numbers_of(reader: StreamReader | OutputReader, partition: object) -> list[int]:
    """What a task reads of its partition, in another process."""
    elsewhere: StreamReader | OutputReader = pickle.loads(pickle.dumps(reader))
    assert isinstance(partition, OutputPartition)
    return [n for batch in elsewhere.read(partition) for n in batch.column("n").to_pylist()]


def origin_of(flow: Flow) -> str:
    return hold_everywhere(flow._workers, Progress(flow.index, "rows", keep_from=0, extent=True)).origin


def test_origin_of_an_output_is_that_of_before_and_a_stream_goes_on_without_a_word(
    cluster: timely.Cluster, flow: Flow
) -> None:
    before = reader_of(flow, query="on")
    start = before.initialOffset()
    end = before.latestOffset(start)
    assert end == {"epoch": 2, "origin": origin_of(flow)}
    kill_all(cluster)
    assert origin_of(flow) == end["origin"]
    assert before.latestOffset(start) == end, "a query that runs goes on"
    before.commit(end)
    before.stop()
    give(flow, 2 * ROWS, 10)
    again = reader_of(flow, query="on")
    assert again.latestOffset(end) == {**end, "epoch": 3}, "and one that is started again"
    found = [n for part in again.partitions(end, {**end, "epoch": 3}) for n in numbers_of(again, part)]
    assert sorted(found) == list(range(2 * ROWS, 2 * ROWS + 10))
    again.stop()


def test_origin_of_a_dataflow_that_is_installed_again_is_another(cluster: timely.Cluster, flow: Flow) -> None:
    def another(dataflow: timely.Dataflow) -> None:
        passed_on(dataflow)

    first = cluster.install(another)
    give(first, 0, 1)
    reader = reader_of(first)
    end = reader.latestOffset(reader.initialOffset())
    first.uninstall()
    second = cluster.install(another)
    kill_all(cluster)
    assert origin_of(second) not in (origin_of(flow), end["origin"])
    with pytest.raises(MisuseError, match="a dataflow that is gone"):
        reader_of(second).latestOffset(end)
    second.uninstall()


@pytest.mark.parametrize("is_collection", [False, True])
def test_task_that_is_run_again_reads_its_share_whichever_incarnation_others_have_read(
    cluster: timely.Cluster, flow: Flow, is_collection: bool
) -> None:
    if is_collection:
        plan = plan_of(options(flow, epoch=1))
        reader: StreamReader | OutputReader = OutputReader(plan, plan.form)
        parts = list(reader.partitions())  # type: ignore[call-arg]  # of the collection
    else:
        reader = reader_of(flow)
        start = reader.initialOffset()
        parts = list(reader.partitions(start, {**start, "epoch": 2}))
    first = [numbers_of(reader, part) for part in parts]
    assert all(first) and Counter(first[0] + first[1]) == Counter(range(2 * ROWS))
    kill_all(cluster)
    assert [sorted(numbers_of(reader, part)) for part in parts] == [sorted(each) for each in first]


@pytest.mark.parametrize("room", [64 << 20, 0])
def test_task_begins_again_after_a_restart_between_pieces_unless_rows_have_left(
    cluster: timely.Cluster, flow: Flow, room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader asks for the second piece before it uses the first one; that request meets other workers."""
    reader = reader_of(flow)
    start = reader.initialOffset()
    part = reader.partitions(start, {**start, "epoch": 2})[0]
    wanted = sorted(numbers_of(reader, part))
    asked: list[object] = []
    ask = pieces._ask

    def interrupted(workers: Workers, worker: int, output: OutputSlice, first: int, after: int) -> Reply:
        asked.append(first)
        if len(asked) == 2:
            kill_all(cluster)
        return ask(workers, worker, output, first, after)

    monkeypatch.setattr(pieces, "_ask", interrupted)
    monkeypatch.setattr(reading, "_WAITING_BYTES_MAX", room)
    assert isinstance(part, OutputPartition)
    if room:
        found = [n for batch in reader.read(part) for n in batch.column("n").to_pylist()]
        assert sorted(found) == wanted
    else:
        with pytest.raises(RestartedError, match="while output 'rows' of dataflow"):
            list(reader.read(part))
    assert len(asked) >= 2
