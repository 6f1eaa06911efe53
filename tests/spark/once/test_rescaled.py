"""Spark's tasks, and its driver, at a durable cluster that grows and shrinks; no Java is needed for that.

read_*     the epochs of an output
written_*  the batches of a query
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from fixed_members import FixedMembers
from pyspark.sql import types as T
from shifting_cluster import ShiftingCluster

import differential as dd
import timely
from timely.client.pieces import pieces_of_all
from timely.client.remote.resuming import DurableWorkers
from timely.client.session import Flow
from timely.errors import MisuseError
from timely.spark.delivering import BatchDelivery, Staged
from timely.spark.once.staging import Staging
from timely.spark.source import reading
from timely.spark.source.options import SourceOptions
from timely.spark.source.reading import OutputPartition, OutputReader, plan_of
from timely.spark.source.streaming import StreamReader
from timely.spark.source.writing import BatchWriter, StreamWriter, _stage, plan_of_write
from timely.wire.requests import WHEN_NAMED, Decide, Deliver, Missing, Reply, Request

ROWS = 5_000
SCHEMA = T.StructType().add("n", "long").add("text", "string")


def passed_on(dataflow: timely.Dataflow) -> None:
    dd.input(dataflow, "rows", "n: int, text: string?").output("rows")


def rows_of(first: int, rows: int) -> pa.Table:
    numbers = range(first, first + rows)
    return pa.table({"n": pa.array(numbers, pa.int64()), "text": [f"t{n}" for n in numbers]})


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[timely.Cluster]:
    """Each test leaves it with as many workers as it likes."""
    with timely.connect(workers=2, durable=tmp_path_factory.mktemp("durable")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def flow(cluster: timely.Cluster) -> Flow:
    """Two epochs, whose rows lie with both workers."""
    flow = cluster.install(passed_on)
    for epoch in range(2):
        flow.input("rows").insert(rows_of(epoch * ROWS, ROWS))
        flow.seal(wait=True)
    return flow


def options(flow: Flow, **more: object) -> SourceOptions:
    named = {"cluster": flow._workers.addresses[0], "dataflow": flow.index, **more}
    return SourceOptions.of({name: str(value) for name, value in named.items()})


def numbers_of(reader: StreamReader | OutputReader, partition: object) -> list[int]:
    """What a task reads of its partition, in another process."""
    elsewhere: StreamReader | OutputReader = pickle.loads(pickle.dumps(reader))
    assert isinstance(partition, OutputPartition)
    return sorted(n for batch in elsewhere.read(partition) for n in batch.column("n").to_pylist())


@pytest.mark.parametrize("is_collection", [False, True])
def test_read_is_the_same_share_by_each_number_of_workers(
    cluster: timely.Cluster, flow: Flow, is_collection: bool
) -> None:
    cluster.rescale(2)
    if is_collection:
        plan = plan_of(options(flow, output="rows", epoch=1))
        reader: StreamReader | OutputReader = OutputReader(plan, plan.form)
        parts = list(reader.partitions())  # type: ignore[call-arg]  # of the collection
    else:
        plan = plan_of(options(flow, output="rows", startingEpoch=0))
        reader = StreamReader(plan, plan.form)
        start = reader.initialOffset()
        parts = list(reader.partitions(start, {**start, "epoch": 2}))
    first = [numbers_of(reader, part) for part in parts]
    assert all(first) and sorted(first[0] + first[1]) == list(range(2 * ROWS))
    for workers in (3, 1):
        cluster.rescale(workers)
        assert [numbers_of(reader, part) for part in parts] == first
    if isinstance(reader, StreamReader):
        end = reader.latestOffset(start)
        assert end["epoch"] == flow.refresh() and reader.partitions(start, end)
        reader.stop()


def test_read_is_the_same_though_there_are_other_workers_between_two_pieces(
    cluster: timely.Cluster, flow: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.rescale(2)
    plan = plan_of(options(flow, output="rows", startingEpoch=0))
    reader = StreamReader(plan, plan.form)
    start = reader.initialOffset()
    part = reader.partitions(start, {**start, "epoch": 2})[0]
    wanted = numbers_of(reader, part)
    targets = [3, 1]

    def interrupted(*given: object) -> Iterator[pa.Table]:
        for table in pieces_of_all(*given):  # type: ignore[arg-type]  # as they come
            yield table
            if targets:
                cluster.rescale(targets.pop(0))

    monkeypatch.setattr(reading, "pieces_of_all", interrupted)
    assert isinstance(part, OutputPartition)
    assert sorted(n for batch in reader.read(part) for n in batch.column("n").to_pylist()) == wanted
    assert not targets
    reader.stop()


def test_read_are_sums_where_rows_and_their_removals_come_to_lie_apart(cluster: timely.Cluster) -> None:
    """With one worker they lie together: no task would have had to sum them up."""

    def apart(dataflow: timely.Dataflow) -> None:
        passed_on(dataflow)

    cluster.rescale(2)
    flow = cluster.install(apart)
    rows = rows_of(0, 9_000)
    flow.input("rows").insert(rows)  # half of them by each worker
    flow.input("rows").remove(rows.slice(8_990, 10))  # by the first one
    flow.seal(wait=True)
    cluster.rescale(1)
    plan = plan_of(options(flow, output="rows", epoch=0))
    reader = OutputReader(plan, plan.form)
    parts = list(reader.partitions())  # type: ignore[call-arg]
    cluster.rescale(2)
    assert sorted(n for part in parts for n in numbers_of(reader, part)) == list(range(8_990))
    flow.uninstall()


@pytest.mark.parametrize("workers", [1, 3])
def test_written_is_no_batch_that_was_staged_on_other_workers(
    cluster: timely.Cluster, flow: Flow, workers: int
) -> None:
    """Spark makes it again then, and it counts once."""
    cluster.rescale(2)
    before = flow.refresh()
    plan = replace(
        plan_of_write(options(flow, input="rows", query=f"q{workers}"), SCHEMA, False), rows_per_part=1
    )
    batches = rows_of(100_000 * workers, 5).to_batches(1)
    staged = _stage(plan, plan.query, 0, iter(batches))
    assert sum(staged.parts) == 5 and len(staged.parts) == 2
    cluster.rescale(workers)
    with pytest.raises(MisuseError, match=r"what 1 of its tasks .* the cluster has started again"):
        BatchWriter(plan).commit([staged])
    again = _stage(plan, plan.query, 0, iter(batches))
    assert sum(again.parts) == 5 and len(again.parts) == workers
    BatchWriter(plan).commit([again])
    cluster.rescale(2)
    BatchWriter(plan).commit([again])  # once more, by a driver that has not heard of the first
    StreamWriter(plan).abort([again], 0)
    assert flow.refresh() == before + 1
    changes = flow.output("rows").changes(before, before + 1).to_pylist()
    assert Counter(row["n"] for row in changes) == Counter(range(100_000 * workers, 100_000 * workers + 5))


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("part", [0, 2, 4])
def test_written_are_all_parts_of_a_task_to_the_workers_that_there_are(
    tmp_path: Path, part: int, count: int
) -> None:
    with ShiftingCluster(tmp_path, 2) as shifting:
        targets = [count]
        shifting.shifts = lambda worker, request: (
            targets.pop() if targets and isinstance(request, Deliver) and request.part == part else 0
        )
        workers = DurableWorkers(shifting.addresses, incarnation=1)
        request = Deliver(0, "rows", "q", 0, WHEN_NAMED, 0, 1, attempt="a")
        parts = Staging(workers, request, 1, 20.0).send(rows_of(at, 1) for at in range(5))
        taken = [one for one in shifting.answered if isinstance(one[2], Deliver)]
        last = taken[-1][0]  # the first incarnation if nobody has heard yet that it is over
        assert last == 2 or part == 4
        on = Counter(worker for incarnation, worker, _ in taken if incarnation == last)
        assert parts == tuple(on[worker] for worker in range(len(parts))) and sum(parts) == 5
        workers.close()


def test_written_are_batches_whose_attempts_all_workers_have() -> None:
    """An attempt at another number of workers is missing, unless the batch has entered."""
    asked: list[list[object]] = []

    class Asked(FixedMembers):
        count = 3
        last = -1

        def ask(self, requests: list[tuple[int, Request, object]], seconds: float = 0.0) -> list[Reply]:
            if isinstance(requests[0][1], Decide):
                return [Reply({"entered": [[False, 0]]})]
            asked.extend(request.names for _, request, _ in requests if isinstance(request, Missing))
            missing = [one for names in asked for one in names if one[3] == "old"]  # type: ignore[attr-defined]
            queries = [[self.last, 2 if worker == 0 else 0, 0, 0] for worker in range(3)]
            return [
                Reply({"missing": missing if worker == 0 else [], "queries": [queries[worker]]})
                for worker in range(3)
            ]

    delivery = BatchDelivery(0, "rows", "q", 0, True, False, 0, 1.0)
    staged = [Staged("q", 0, "old", (2, 1), 1), Staged("q", 0, "new", (0, 2, 1), 1)]
    workers = Asked()
    with pytest.raises(MisuseError, match="what 1 of its tasks staged is not there any more"):
        delivery.look(workers, staged)
    assert asked == [[["rows", "q", 0, "old", 3]], [["rows", "q", 0, "new", 2]], [["rows", "q", 0, "new", 1]]]
    workers.last = 0
    delivery.look(workers, staged)
