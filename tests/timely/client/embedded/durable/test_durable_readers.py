"""Embedded dataflows that read one another begin again, in whatever order the program installs them.

readers_begin_*    where they began
readers_that_*     come late, never, or anew
clients_*          that read their outputs
"""

from __future__ import annotations

import durable_flows
import pyarrow as pa
import pytest
from durable_workers import embedded, shown
from simulated_store import SimulatedDisk

from timely import MisuseError
from timely.client.session import Flow
from timely.durable.bases import positions
from timely.operators.outputs import places

Rows = list[tuple[object, ...]]


def changes(flow: Flow, output: str = "counts") -> Rows:
    answer = flow.output(output).changes(0, flow.epoch)
    return shown([answer]) if isinstance(answer, pa.Table) else sorted(answer)


def feed(owner: Flow, reader: Flow | None, epoch: int) -> None:
    owner.input("rows").insert([(epoch % 2, epoch)])
    owner.seal()
    if reader is not None:
        reader.input("own").insert([(epoch % 2, 10 * epoch)])
        reader.seal()


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("order", ["at once", "open epoch first"])
def test_readers_begin_where_they_began(count: int, order: str) -> None:
    disk = SimulatedDisk()
    with embedded(disk, count) as (cluster, _):
        owner = cluster.install(durable_flows.exporting)
        for epoch in range(3):
            feed(owner, None, epoch)
        owner.wait()
        reader = cluster.install(durable_flows.importing)
        first = reader.epoch
        assert first > 0
        for epoch in range(3, 6):
            feed(owner, reader, epoch)
        owner.wait()
        reader.wait()
        found = changes(reader, "both")
        assert found
    for then in (count, 3 - count):
        with embedded(disk, then) as (cluster, _):
            owner = cluster.install(durable_flows.exporting)
            assert owner.epoch == 6, "a program goes on from here, though the rows have not come back yet"
            assert cluster.install(durable_flows.exporting).epoch == 6
            reader = cluster.install(durable_flows.importing)
            assert cluster.install(durable_flows.importing).epoch == reader.epoch >= 5
            reader.wait(reader.epoch - 1)
            assert changes(reader, "both") == found


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("use", ["seal", "insert", "read", "stats", "wait"])
def test_readers_that_never_come_keep_nobody_waiting(count: int, use: str) -> None:
    disk = SimulatedDisk()
    with embedded(disk, count) as (cluster, _):
        owner = cluster.install(durable_flows.exporting)
        cluster.install(durable_flows.reading)
        for epoch in range(3):
            feed(owner, None, epoch)
        owner.wait()
    with embedded(disk, count) as (cluster, _):
        owner = cluster.install(durable_flows.exporting)
        match use:
            case "seal":
                owner.seal()
            case "insert":
                owner.input("rows").insert([(7, 7)])
            case "read":
                assert len(changes(owner, "rows")) == 3
            case "stats":
                cluster.stats()
            case "wait":
                owner.wait(2)
        owner.input("rows").insert([(8, 8)])
        sealed = owner.seal(wait=True)
        assert sealed == 3 + (use == "seal")
        rows = changes(owner, "rows")
        assert [row[1:] for row in rows if row[0] < 3] == [(0, 0, 1), (1, 1, 1), (0, 2, 1)]
        assert (sealed, 8, 8, 1) in rows
    with embedded(disk, 2) as (cluster, _):
        assert changes(cluster.install(durable_flows.exporting), "rows") == rows


def test_readers_that_come_too_late_are_refused_and_lose_nothing() -> None:
    disk = SimulatedDisk()
    with embedded(disk) as (cluster, _):
        owner = cluster.install(durable_flows.exporting)
        reader = cluster.install(durable_flows.importing)
        for epoch in range(3):
            feed(owner, reader, epoch)
        reader.wait()
        found = changes(reader, "both")
    with embedded(disk) as (cluster, _):
        owner = cluster.install(durable_flows.exporting)
        owner.seal(wait=True)
        for _ in range(2):
            with pytest.raises(MisuseError, match="connect again, and install 'importing' right behind them"):
                cluster.install(durable_flows.importing)
        assert owner.seal(wait=True) == 4
    with embedded(disk) as (cluster, _):
        cluster.install(durable_flows.exporting)
        reader = cluster.install(durable_flows.importing)
        reader.wait(2)
        assert changes(reader, "both") == found


def test_readers_before_their_owner_may_come_once_more_behind_it() -> None:
    disk = SimulatedDisk()
    with embedded(disk, 2) as (cluster, _):
        owner = cluster.install(durable_flows.exporting)
        reader = cluster.install(durable_flows.importing)
        feed(owner, reader, 0)
        reader.wait()
        found = changes(reader, "both")
    with embedded(disk, 2) as (cluster, _):
        with pytest.raises(MisuseError, match="no dataflow 'exporting' runs here"):
            cluster.install(durable_flows.importing)
        cluster.install(durable_flows.exporting)
        reader = cluster.install(durable_flows.importing)
        assert reader.index == 1
        reader.wait(0)
        assert changes(reader, "both") == found


def test_readers_that_are_new_begin_with_what_the_others_have() -> None:
    disk = SimulatedDisk()
    with embedded(disk, 2) as (cluster, _):
        owner = cluster.install(durable_flows.exporting)
        cluster.install(durable_flows.importing)
        for epoch in range(3):
            feed(owner, None, epoch)
        owner.wait()
    with embedded(disk, 2) as (cluster, _):
        cluster.install(durable_flows.exporting)
        reader = cluster.install(durable_flows.reading)  # before the one that waits with its owner
        assert reader.epoch >= 2
        reader.wait(2)
        answer = reader.output("counts").snapshot()
        assert sorted(map(tuple, (row.values() for row in answer.to_pylist()))) == [(0, 2), (1, 1)]


def test_clients_of_earlier_runs_keep_no_later_one_from_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that cron starts is another client in each run, and those before have left positions."""
    for module in (places, positions):
        monkeypatch.setattr(module, "READERS_MAX", 3)
    disk = SimulatedDisk()
    for epoch in range(7):
        with embedded(disk, 2) as (cluster, _):
            owner = cluster.install(durable_flows.exporting)
            feed(owner, None, epoch)
            assert owner.output("rows").changes().column("epoch").to_pylist() == list(range(epoch + 1))
