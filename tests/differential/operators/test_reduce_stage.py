"""operators/reduce_stage.py: reduces in a dataflow. What they answer: test_collection.py, test_sharing.py.

keeps_*   which traces are its own
ends_*    what it keeps goes when nothing can come any more
rows_*    what another worker may not send
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from reference.dataflow import Cluster
from strategies_collections import NUMBERS

import differential as dd
from differential import Collection
from differential.columns.packed.block import Block
from differential.columns.update_batch import PackedBatch, UpdateBatch
from differential.operators.reduce import ReduceMachine
from differential.operators.vertices import Components, MachineVertex, OperatorVertex
from differential.trace.shared import SharedTrace
from progress.compiled.arrays import Int64s
from progress.errors import PeerError
from timely.building.dataflow import Dataflow
from timely.running.core import Worker
from timely.running.progress_messages import DataHeader, write_data_header


def _cluster(build: object) -> Cluster:
    def build_all(flow: Dataflow) -> None:
        build(*(dd.input(flow, name, NUMBERS) for name in "ab")).output("result")  # type: ignore[operator]

    cluster = Cluster(build_all)
    for name in "ab":
        cluster.change(name, [((k, v), 1) for k in range(3) for v in range(4)])
    cluster.seal()
    cluster.run()
    return cluster


def _is_reduce(vertex: object) -> bool:
    return isinstance(vertex, MachineVertex) and isinstance(vertex.machine, ReduceMachine)


def _reduce_of(cluster: Cluster) -> MachineVertex:
    (found,) = (r.vertex for r in cluster.instances[0].runners if _is_reduce(r.vertex))
    assert isinstance(found, MachineVertex)
    return found


def test_keeps_rows_and_answers_where_it_is_alone() -> None:
    reduce = _reduce_of(_cluster(lambda a, b: a.group_by("k").agg(n=dd.min("v"))))
    assert [trace.rows for trace in reduce.traces()] == [12, 3]
    assert not any(isinstance(trace, SharedTrace) for trace in reduce.traces())


@pytest.mark.parametrize(
    ("aggregate", "readers"), [(dd.sum("v"), ["join on k"]), (dd.min("v"), ["its own answers", "join on k"])]
)
def test_keeps_answers_that_others_read(aggregate: dd.Aggregate, readers: list[str]) -> None:
    """And reads them itself unless they are sums."""
    reduce = _reduce_of(_cluster(lambda a, b: a.group_by("k").agg(n=aggregate).join(b, on="k")))
    rows, answers = reduce.traces()
    assert isinstance(answers, SharedTrace) and not isinstance(rows, SharedTrace)
    assert sorted(reader.name for reader in answers.report().readers) == readers


def test_keeps_rows_of_others_from_the_epoch_before() -> None:
    """A sum reads what they were then; also where there are loops, whose counters epochs have not."""

    def build(a: Collection, b: Collection) -> Collection:
        return a.arrange("k").group_by("k").agg(n=dd.count()).join(b.iterate(lambda x: x.distinct()), on="k")

    cluster = _cluster(build)
    for _ in range(3):
        cluster.seal()
        cluster.run()
    readers = [
        reader
        for runner in cluster.instances[0].runners
        if isinstance(runner.vertex, OperatorVertex)
        for report in runner.vertex.report().get("arrangements", [])
        for reader in report["readers"]
        if reader["name"].startswith("group by k")
    ]
    assert [reader["hold"] for reader in readers] == [[[3]]]


def test_keeps_no_rows_that_it_reads_elsewhere() -> None:
    def build(a: Collection, b: Collection) -> Collection:
        kept = a.arrange("k")
        return kept.group_by("k").agg(v=dd.min("v"))

    (answers,) = _reduce_of(_cluster(build)).traces()
    assert answers.rows == 3


def test_ends_with_its_input() -> None:
    cluster = _cluster(lambda a, b: a.group_by("k").agg(n=dd.sum("v")).join(b, on="k"))
    cluster.close()
    cluster.run()
    assert [trace.rows for trace in _reduce_of(cluster).traces()] == [0, 0]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("component", [-1, 3, 1 << 40, -(1 << 63), (1 << 63) - 1])
def test_rows_of_another_worker_that_are_of_no_component_are_refused(component: int, packed: bool) -> None:
    """A kernel would write where they say."""
    worker, reduce, send = _receiver()
    assert reduce.components == Components(3, 1)
    words = np.zeros((4, 100), np.int64)
    words[1], words[-1] = np.arange(100) % 3, 1
    send(words, packed)
    words[1, 70] = component
    with pytest.raises(PeerError, match=rf"worker 1 sent rows of component {component} to 'group by k: "):
        send(words, packed)
    assert reduce.machine.needs().tolist() == []
    worker.step()
    assert reduce.machine.needs().tolist() == [0], "those before wait"


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("columns", [2, 3, 5])
def test_rows_of_another_worker_of_other_columns_are_refused(columns: int, packed: bool) -> None:
    _, _, send = _receiver()
    with pytest.raises(
        PeerError, match=rf"worker 1 sent updates with rows of {columns - 2} words where they"
    ):
        send(np.zeros((columns, 2), np.int64), packed)


def test_rows_of_another_worker_for_a_sum_in_a_loop_are_looked_at_as_well() -> None:
    """A region has them, and the vertex knows what they may be."""
    worker, reduce, send = _receiver(in_loop=True)
    assert worker._instances[0].loops and reduce.components == Components(3, 1)
    words = np.zeros((4, 5), np.int64)
    words[-1] = 1
    send(words, False)
    words[1, 4] = 3
    with pytest.raises(PeerError, match="worker 1 sent rows of component 3 to 'group by k: "):
        send(words, False)


def _receiver(in_loop: bool = False) -> tuple[Worker, MachineVertex, Callable[[Int64s, bool], None]]:
    """A worker, its part of a sum, and what the other worker sends to that."""

    def build(flow: Dataflow) -> None:
        numbers = dd.input(flow, "a", NUMBERS)
        if in_loop:
            numbers.iterate(lambda x: x.concat(numbers).group_by("k").agg(v=dd.sum("v"))).output("result")
        else:
            numbers.group_by("k").agg(v=dd.sum("v")).output("result")

    cluster = Cluster(build, workers=2)
    instance, worker = cluster.instances[0], cluster.workers[0]
    reduce = _reduce_of(cluster)
    stages = instance.runners
    way, *_ = (
        spec
        for spec in instance.frozen.connectors
        if stages[spec.target].vertex is reduce and not any(spec.source in r.stages for r in instance.loops)
    )

    def send(words: Int64s, packed: bool) -> None:
        made: UpdateBatch | PackedBatch = UpdateBatch(words)
        if packed:
            made = PackedBatch((Block(np.delete(words, -2, 0)),), words.shape[0] - 2, 0, None)
        header = write_data_header(DataHeader(0, way.index, 0, made.KIND, 0))
        frames = [memoryview(bytes(frame)) for frame in made.to_frames(0)]
        worker._receive(1, [memoryview(header), *frames])

    return worker, reduce, send
