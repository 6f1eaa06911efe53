"""Each stage is told the time of its own turns; the time of a compiled loop is shared out and never falls."""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa
from collection_flows import distances

import differential as dd
import timely
from differential.columns.update_batch import UpdateBatch
from timely.running.instance import Instance
from timely.wire.batch import Records
from timely.worker.counting.busy import busy_nanoseconds, bytes_at_input, waiting


class Sleeper(timely.Vertex):
    """Takes a while for each record."""

    def on_recv(self, edge: int, message: list[object], at: tuple[int, ...]) -> None:
        time.sleep(0.02)
        self.send_by(0, message, at)


class Asked:
    """A batch of a user, whose `size_bytes` is a method."""

    rows = 1

    def size_bytes(self) -> int:
        """As many as it says."""
        return 8


def test_a_slow_vertex_has_the_time() -> None:
    def build(flow: timely.Dataflow) -> None:
        numbers = flow.input("numbers")
        (same,) = flow.stage("sleeper", Sleeper, [numbers.feed()])
        flow.output("same", same)

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(build)
        flow.input("numbers").insert([1, 2, 3])
        flow.seal(wait=True)
        (worker,) = cluster.stats()
    stages = worker["dataflows"][flow.index]["stages"]  # type: ignore[index]
    busy = {str(stage["name"]): float(stage["busy_seconds"]) for stage in stages}
    slowest = max(busy, key=busy.__getitem__)
    assert "sleeper" in slowest and busy[slowest] >= 0.02, busy
    assert all(seconds > 0.0 for seconds in busy.values()), busy


def test_the_time_of_a_loop_is_shared_out_once() -> None:
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(distances)
        worker = cluster._workers._workers[0]  # type: ignore[attr-defined]
        (instance,) = worker.instances.values()
        (loop,) = instance.loops
        told = _told(instance)
        for first in range(0, 30, 10):
            flow.input("roots").insert([(first,)])
            flow.input("edges").insert([(n, n + 1) for n in range(first, first + 10)])
            flow.seal(wait=True)
            taken = instance.turns.busy[loop.stage]
            now = _told(instance)
            gained = [now[stage] - told[stage] for stage in loop.stages]
            left = instance.turns.busy[loop.stage]
            assert taken > 0 and min(gained) >= 0 and sum(gained) == taken - left
            assert 0 <= left < len(gained)
            assert _told(instance) == now
            told = now


def test_rows_that_wait_are_those_of_the_stage_that_will_take_them() -> None:
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(distances)
        worker = cluster._workers._workers[0]  # type: ignore[attr-defined]
        (instance,) = worker.instances.values()
        flow.seal(wait=True)
        assert {waiting(instance, stage) for stage in range(len(instance.runners))} == {(0, 0)}


def test_bytes_that_wait_are_those_of_words_and_about_those_of_records() -> None:
    def build(flow: timely.Dataflow) -> None:
        flow.output("numbers", flow.input("numbers"))

    with timely.connect(workers=1, embedded=True) as cluster:
        cluster.install(build)
        worker = cluster._workers._workers[0]  # type: ignore[attr-defined]
        (instance,) = worker.instances.values()
        inbox = instance.turns.actors[1].inbox
        inbox.append((0, 0, 0, UpdateBatch(np.zeros((3, 10), np.int64))))
        assert waiting(instance, 1) == (10, 240)
        inbox += [(0, 0, 0, Records(["x" * 98] * 50)) for _ in range(40)]
        assert waiting(instance, 1) == (2_010, 240 + 2_000 * 100)
        inbox.clear()
        inbox.append((0, 0, 0, Records([object()])))
        assert waiting(instance, 1) == (1, 0), "an object that no wire takes has no size"
        inbox.clear()
        inbox.append((0, 0, 0, Asked()))
        assert waiting(instance, 1) == (1, 0), "a user's batch may mean something else by size_bytes"
        inbox.clear()


def test_bytes_that_wait_at_an_input_are_those_of_its_batches_and_about_those_of_plain_rows() -> None:
    def build(dataflow: timely.Dataflow) -> None:
        dd.input(dataflow, "rows", "key: int, value: int").output("rows")
        dd.input(dataflow, "last", "key: int, value: int", key="key", mode="upsert").output("last")
        dataflow.output("records", dataflow.input("records"))

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(build)
        worker = cluster._workers._workers[0]  # type: ignore[attr-defined]
        (instance,) = worker.instances.values()
        rows, records = flow.input("rows"), flow.input("records")
        handle = instance.inputs["rows"]
        table = pa.table({"key": np.arange(1_000), "value": np.arange(1_000)})
        assert bytes_at_input(handle) == 0
        rows.insert([(1, 2)] * 10)
        assert 20 <= bytes_at_input(handle) <= 400, "plain rows"
        rows.insert(table)
        one = bytes_at_input(handle)
        assert 2_000 <= one <= 40_000
        for _ in range(999):
            rows.insert(table)
        assert 900 * one <= bytes_at_input(handle) <= 1_100 * one, "most of them are not looked at"
        records.insert(["x" * 98] * 1_000)
        assert 90_000 <= bytes_at_input(instance.inputs["records"]) <= 110_000
        flow.input("last").upsert(table)
        assert bytes_at_input(instance.inputs["last"]) > 1_000
        (told,) = cluster.stats()
        inputs = told["dataflows"][flow.index]["inputs"]  # type: ignore[index,call-overload]
        assert inputs[0]["bytes_waiting"] == bytes_at_input(handle)  # type: ignore[index,call-overload]
        flow.seal(wait=True)
        assert {bytes_at_input(each) for each in instance.inputs.values()} == {0}


def _told(instance: Instance) -> list[int]:
    return list(busy_nanoseconds(instance))
