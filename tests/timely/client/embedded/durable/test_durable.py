"""Embedded workers that are durable: one log for all, and the program installs its dataflows again.

again_*      what a program finds that is run again
early_*      seals that do not wait for the disk
failing_*    a disk that fails
threads_*    workers in threads, and programs with threads
store_*      who has the folder
interrupt_*  Ctrl-C, fork, and close
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from dataflows import fails_on
from durable_workers import SECONDS, Gate, embedded, shown, survivors
from simulated_store import SimulatedDisk, SimulatedStore

import differential as dd
import timely
from timely import MisuseError, StoreError, UninstalledError, VertexError
from timely.client.feeding import appending
from timely.client.session import Flow
from timely.durable.folder_store import FolderStore
from timely.worker.durability.switching import VersionLog

LARGE = 60

Rows = list[tuple[object, ...]]


def counted(flow: timely.Dataflow) -> None:
    dd.input(flow, "rows", "a: string, b: int").group_by("a").agg(n=dd.count()).output("counts")


def changes(flow: Flow, output: str = "counts") -> Rows:
    answer = flow.output(output).changes(0, flow.epoch)
    return shown([answer]) if isinstance(answer, pa.Table) else sorted(answer)


@pytest.fixture(autouse=True)
def _few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(appending, "SPREAD_ROWS_MIN", LARGE)


# again_


def program(cluster: timely.Cluster, epochs: int) -> Rows:
    """A program that goes on where it was."""
    flow = cluster.install(counted)
    for epoch in range(flow.epoch, epochs):
        flow.input("rows").insert([(f"key {epoch % 3}", epoch), ("each", epoch)])
        flow.input("rows").insert([("named", epoch)], writer="w", sequence=epoch)
        if epoch % 2:
            flow.input("rows").insert([("many", n) for n in range(LARGE)])
        flow.seal()
    return changes(flow)


@pytest.mark.parametrize("counts", [(1, 3, 2), (3, 1, 3), (2, 2, 1)], ids=str)
@pytest.mark.parametrize("threads", [False, True])
def test_again_a_program_goes_on_at_any_number_of_workers(counts: tuple[int, ...], threads: bool) -> None:
    with timely.connect(workers=1, embedded=True) as cluster:
        undisturbed = program(cluster, 7)
    disk = SimulatedDisk()
    for life, count in enumerate(counts):
        with embedded(disk, count, threads) as (cluster, _):
            found = program(cluster, 3 + 2 * life)
        disk = survivors(disk)
    assert found == undisturbed


def test_again_what_was_not_sealed_waits_and_counts_once() -> None:
    disk = SimulatedDisk()
    with embedded(disk, 2) as (cluster, _):
        flow = cluster.install(counted)
        flow.input("rows").insert([("a", 1)])
        flow.input("rows").insert([("b", 1)], writer="w", sequence=0)
    with embedded(disk, 3) as (cluster, _):
        flow = cluster.install(counted)
        assert flow.epoch == 0
        flow.input("rows").insert([("b", 1)], writer="w", sequence=0)
        flow.seal(wait=True)
        assert changes(flow) == [(0, "a", 1, 1), (0, "b", 1, 1)]


def test_again_installed_in_one_program_it_is_the_same_dataflow() -> None:
    with embedded(SimulatedDisk()) as (cluster, _):
        first, second = cluster.install(counted), cluster.install(counted)
        assert first.index == second.index
        first.seal()
        assert cluster.install(counted).epoch == 1


def test_again_another_query_under_the_name_is_refused_and_nothing_changes() -> None:
    disk = SimulatedDisk()

    def counted_otherwise(flow: timely.Dataflow) -> None:
        dd.input(flow, "rows", "a: string, b: int").group_by("b").agg(n=dd.count()).output("counts")

    counted_otherwise.__name__ = counted.__name__
    with embedded(disk) as (cluster, _):
        program(cluster, 2)
        with pytest.raises(MisuseError, match="one query under each name"):
            cluster.install(counted_otherwise)
    with embedded(disk) as (cluster, _):
        with pytest.raises(MisuseError, match="one query under each name, and under 'counted'"):
            cluster.install(counted_otherwise)
        assert program(cluster, 2) != []
        cluster.install(counted).uninstall()
        assert cluster.install(counted_otherwise).index == 1
    with embedded(disk) as (cluster, _):
        assert cluster.install(counted_otherwise).index == 1
        with pytest.raises(UninstalledError):
            cluster.flow(0)


def test_again_a_dataflow_that_failed_takes_a_new_beginning() -> None:
    disk = SimulatedDisk()
    with embedded(disk, 2) as (cluster, _):
        flow = cluster.install(fails_on)
        flow.input("words").insert(["good", "bad"])
        with pytest.raises(VertexError, match="cannot bear 'bad'"):
            flow.seal(wait=True)
    with embedded(disk, 2) as (cluster, _):
        with pytest.raises(VertexError, match="cannot bear 'bad'"):
            cluster.install(fails_on).wait(0)
        flow = cluster.install(fails_on)
        assert (flow.index, flow.epoch) == (1, 0)
        flow.input("words").insert(["better"])
        flow.seal(wait=True)
    with embedded(disk, 1) as (cluster, _):
        flow = cluster.install(fails_on)
        assert flow.index == 1 and changes(flow, "words") == [(0, "better")]


def test_again_a_builder_that_fails_once_finds_its_rows_later() -> None:
    disk = SimulatedDisk()
    with embedded(disk, 2) as (cluster, _):
        found = program(cluster, 3)

    def fails(dataflow: timely.Dataflow) -> None:
        counted(dataflow)
        raise RuntimeError("not yet")

    fails.__name__ = "counted"
    with embedded(disk, 2) as (cluster, _):
        for _ in range(2):
            with pytest.raises(VertexError, match="not yet"):
                cluster.install(fails)
        assert program(cluster, 3) == found


def test_again_what_keeps_no_rows_of_an_input_is_not_replaced() -> None:
    with embedded(SimulatedDisk()) as (cluster, _):
        flow = cluster.install(counted)
        with pytest.raises(MisuseError, match="cannot be replaced: it does not keep what its input 'rows'"):
            cluster.replace(flow, counted)
        assert flow.seal(wait=True) == 0


# early_


def test_early_seal_returns_before_the_disk_has_it_and_others_behind() -> None:
    disk = SimulatedDisk()
    with embedded(disk) as (cluster, store):
        flow = cluster.install(counted)
        gate = Gate(store)
        gate.shut()
        for epoch in range(3):
            flow.input("rows").insert([("a", epoch)])
            assert flow.seal(wait=False) == epoch
        lost = survivors(disk)
        done = threading.Event()

        def seal() -> None:
            flow.seal()
            done.set()

        thread = threading.Thread(target=seal)
        thread.start()
        assert not done.wait(0.05)
        gate.open()
        thread.join(SECONDS)
        assert done.is_set() and flow.durable_before == 4
        kept = survivors(disk)
    for files, epoch in ((lost, 0), (kept, 4)):
        with embedded(files) as (cluster, _):
            assert cluster.install(counted).epoch == epoch


def test_early_seals_show_nothing_before_the_disk_has_them() -> None:
    with embedded(SimulatedDisk(), 2) as (cluster, store):
        flow = cluster.install(counted)
        flow.input("rows").insert([("a", 0)])
        flow.seal(wait=True)
        assert flow.durable_before == 1
        gate = Gate(store)
        gate.shut()
        flow.seal(wait=False)
        log = cluster._workers._durable.log  # type: ignore[attr-defined]
        position = log.position
        assert log.told < position
        threading.Timer(0.05, gate.open).start()
        flow.wait(1)
        assert log.told >= position


def test_early_is_no_seal_of_a_cluster_without_a_store() -> None:
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(counted)
        with pytest.raises(MisuseError, match="this cluster keeps no epochs"):
            _ = flow.durable_before
        assert flow.seal(wait=False) == 0


def test_early_rows_do_not_wait_for_the_disk() -> None:
    with embedded(SimulatedDisk()) as (cluster, store):
        flow = cluster.install(counted)
        gate = Gate(store)
        gate.shut()
        for number in range(50):
            flow.input("rows").insert([("a", number)])
        gate.open()
        flow.seal(wait=True)
        assert changes(flow) == [(0, "a", 50, 1)]


# failing_


def test_failing_disk_stops_seals_keeps_rows_and_reads_go_on() -> None:
    disk = SimulatedDisk()
    with embedded(disk, 2) as (cluster, store):
        flow = cluster.install(counted)
        flow.input("rows").insert([("a", 0)])
        flow.seal(wait=True)
        before = changes(flow)
        assert before == [(0, "a", 1, 1)]
        store.disk.failing.update({"write": errno.ENOSPC, "create": errno.ENOSPC})
        flow.input("rows").insert([("b", 0)])
        with pytest.raises(StoreError, match="Nothing is lost"):
            flow.seal()
        with pytest.raises(StoreError, match="Make room, or mend the disk"):
            flow.seal()
        assert shown([flow.output("counts").changes(0, 1)]) == before and flow.wait(0) == 0
        with pytest.raises(StoreError):
            flow.wait(1)
        flow.input("rows").insert([("c", 0)])
        with pytest.raises(StoreError):
            flow.input("rows").insert([("d", 0)], writer="w", sequence=0)
        store.disk.failing.clear()
        flow.input("rows").insert([("d", 0)], writer="w", sequence=0)
        flow.seal(wait=True)
        found = changes(flow)
        assert sorted(row[1] for row in found) == ["a", "b", "c", "d"]
    with embedded(disk) as (cluster, _):
        assert changes(cluster.install(counted)) == found


@pytest.mark.parametrize("wait", [None, True])
def test_failing_disk_lets_a_repeated_seal_be_about_the_same_epoch(wait: bool | None) -> None:
    with embedded(SimulatedDisk(), 2) as (cluster, store):
        flow = cluster.install(counted)
        store.disk.failing.update({"write": errno.ENOSPC, "create": errno.ENOSPC})
        flow.input("rows").insert([("a", 0)])
        for _ in range(2):
            with pytest.raises(StoreError, match="Nothing is lost"):
                flow.seal(wait=wait)
        store.disk.failing.clear()
        assert flow.seal(wait=wait) == 0 and flow.epoch == flow.refresh() == 1
        store.disk.failing.update({"write": errno.ENOSPC, "create": errno.ENOSPC})
        flow.input("rows").insert([("b", 0)])
        with pytest.raises(StoreError, match="Nothing is lost"):
            flow.seal(wait=wait)
        store.disk.failing.clear()
        assert flow.input("rows").insert([("c", 0)], writer="w", sequence=0) == 2
        assert flow.seal(wait=wait) == 2
        assert changes(flow) == [(0, "a", 1, 1), (1, "b", 1, 1), (2, "c", 1, 1)]


def test_failing_disk_is_an_error_of_install_that_may_be_repeated() -> None:
    disk = SimulatedDisk()
    with embedded(disk) as (cluster, store):
        store.disk.failing.update({"write": errno.EIO, "create": errno.EIO})
        with pytest.raises(StoreError, match="cannot be written"):
            cluster.install(counted)
        store.disk.failing.clear()
        found = program(cluster, 2)
    with embedded(disk) as (cluster, _):
        assert program(cluster, 2) == found


def exported(flow: timely.Dataflow) -> None:
    rows = dd.input(flow, "rows", "a: string, b: int")
    rows.export("rows", by="a")
    rows.group_by("a").agg(n=dd.count()).output("counts")


def summed(flow: timely.Dataflow) -> None:
    rows = dd.input(flow, "rows", "a: string, b: int")
    rows.export("rows", by="a")
    rows.group_by("a").agg(n=dd.sum("b")).output("counts")


def test_again_replaced_is_the_version_that_there_is() -> None:
    with embedded(SimulatedDisk(), 2) as (cluster, _):
        flow = cluster.install(exported)
        new = cluster.replace(flow, exported)
        assert new.index == 1, "a dataflow can be replaced by itself"
        assert cluster.replace(flow, exported).index == 1


@pytest.mark.parametrize("step", ["mark", "decide"])
@pytest.mark.parametrize("threads", [False, True])
def test_failing_disk_leaves_one_version_when_a_dataflow_is_replaced(
    step: str, threads: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`decide`: the record that decides is not on the disk yet, and may come there."""
    disk, table = SimulatedDisk(), pa.table({"a": ["d"], "b": [5]})
    with embedded(disk, 2, threads=threads) as (cluster, store):
        flow = cluster.install(exported)
        flow.input("rows").insert([("a", 7)])
        flow.seal(wait=True)
        goes_on = getattr(VersionLog, step)

        def fails(*arguments: object) -> int:
            store.disk.failing.update({"write": errno.ENOSPC, "create": errno.ENOSPC})
            return int(goes_on(*arguments))

        with monkeypatch.context() as patch:
            patch.setattr(VersionLog, step, fails)
            with pytest.raises(StoreError, match="Nothing is lost"):
                cluster.replace(flow, summed)
        is_decided = step == "decide"
        calls: list[Callable[[], object]] = [
            lambda: flow.input("rows").insert([("b", 2)]),
            lambda: flow.input("rows").insert(table, writer="w", sequence=0),
            flow.seal,
        ]
        for number, call in enumerate(calls):
            if is_decided or number:
                with pytest.raises(StoreError, match="Nothing is lost"):
                    call()
            else:
                call()
        store.disk.failing.clear()
        calls[1]()
        if is_decided:
            calls[0]()
        flow.seal(wait=True)
        found = changes(flow)
        goes_on_with = [(1, "a", 1, -1), (1, "a", 7, 1), (1, "b", 2, 1), (1, "d", 5, 1)]
        expected = goes_on_with if is_decided else [(1, "b", 1, 1), (1, "d", 1, 1)]
        assert found == [(0, "a", 1, 1), *expected]
        assert cluster.replace(flow, summed).name == "exported"
    with embedded(disk) as (cluster, _):
        assert changes(cluster.install(summed))[: len(found)] == found


def test_failing_store_at_the_start_leaves_it_to_others() -> None:
    disk = SimulatedDisk()
    disk.failing["sync"] = errno.EIO
    before = set(threading.enumerate())
    with pytest.raises(StoreError, match="cannot be written"), embedded(disk):
        pass
    disk.failing.clear()
    assert not disk.holder
    more = set(threading.enumerate()) - before
    assert not any(thread.name.startswith("log of process") for thread in more)
    with embedded(disk) as (cluster, _):
        assert program(cluster, 1)


def test_failing_to_read_the_log_ends_what_needs_it_and_nothing_takes_its_place() -> None:
    disk = SimulatedDisk()
    with embedded(disk) as (cluster, _):
        found = program(cluster, 2)
    for count in (1, 2):
        with embedded(disk, count) as (cluster, store):
            store.disk.failing["read"] = errno.EIO
            with pytest.raises(StoreError):
                cluster.install(counted)
            store.disk.failing.clear()
            for _ in range(2):
                with pytest.raises(StoreError):
                    program(cluster, 2)
    with embedded(disk) as (cluster, _):
        assert program(cluster, 2) == found


# threads_


def test_threads_of_a_program_may_wait_and_seal_at_the_same_time() -> None:
    disk = SimulatedDisk()
    with embedded(disk, 2, threads=True) as (cluster, _):
        flow = cluster.install(counted)

        def work(number: int) -> None:
            for sequence in range(15):
                flow.input("rows").insert([(f"{number}", sequence)], writer=f"{number}", sequence=sequence)
                flow.wait(flow.seal(), timeout=SECONDS)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        found = flow.output("counts").snapshot().sort_by("a").to_pylist()
        assert found == [{"a": f"{number}", "n": 15} for number in range(4)]
    with embedded(disk, 3) as (cluster, _):
        assert cluster.install(counted).output("counts").snapshot().sort_by("a").to_pylist() == found


def test_threads_two_clusters_in_one_process_keep_their_own(tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    found: list[Rows] = []
    for life in range(2):
        clusters = [timely.connect(workers=1 + life, embedded=True, durable=folder) for folder in folders]
        flows = [cluster.install(counted) for cluster in clusters]
        for number, flow in enumerate(flows):
            if not life:
                flow.input("rows").insert([("text of both", number), (f"text {number}", 0)])
                flow.seal()
        for number, flow in enumerate(flows):
            flow.wait()
            rows = changes(flow)
            found.append(rows)
            assert rows == [(0, f"text {number}", 1, 1), (0, "text of both", 1, 1)]
        for cluster in clusters:
            cluster.close()
    assert found[:2] == found[2:]


# store_


def test_store_is_in_use_by_one_cluster_at_a_time(tmp_path: Path) -> None:
    with timely.connect(workers=1, embedded=True, durable=tmp_path / "store") as cluster:
        found = program(cluster, 2)
        with pytest.raises(StoreError, match=f"is in use by process {os.getpid()} on ") as refused:
            timely.connect(workers=1, embedded=True, durable=tmp_path / "store")
        assert "which is this program itself: go on with the cluster that it has" in str(refused.value)
        assert program(cluster, 2) == found
    with timely.connect(workers=2, embedded=True, durable=str(tmp_path / "store")) as cluster:
        assert program(cluster, 2) == found


def test_store_of_a_cluster_that_is_dropped_is_free(tmp_path: Path) -> None:
    cluster = timely.connect(workers=1, embedded=True, durable=tmp_path / "store")
    found = program(cluster, 2)
    del cluster
    import gc

    gc.collect()
    with timely.connect(workers=1, embedded=True, durable=tmp_path / "store") as again:
        assert program(again, 2) == found


@pytest.mark.parametrize("sync", ["disk", "system"])
def test_store_is_synced_as_it_is_asked_for(sync: str) -> None:
    with embedded(SimulatedDisk(), sync=sync) as (cluster, store):
        program(cluster, 2)
        syncs = [path for what, path in store.operations if what == "sync" and path.startswith("log")]
        assert bool(syncs) is (sync == "disk")


# interrupt_


def interrupted(monkeypatch: pytest.MonkeyPatch, store: SimulatedStore, cluster: timely.Cluster) -> None:
    """Let an interrupt come while a call waits for the disk."""
    log = cluster._workers._durable.log  # type: ignore[attr-defined]

    def interrupt(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(log, "wait", interrupt)


def test_interrupt_ends_the_cluster_and_its_rows_are_in_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = SimulatedDisk()
    with embedded(disk, 2) as (cluster, store):
        flow = cluster.install(counted)
        flow.input("rows").insert([("a", 0)])
        interrupted(monkeypatch, store, cluster)
        with pytest.raises(KeyboardInterrupt):
            flow.seal()
        with pytest.raises(MisuseError, match="is in its store: close it, and connect again"):
            flow.seal()
    assert not disk.holder
    with embedded(survivors(disk)) as (cluster, _):
        flow = cluster.install(counted)
        assert flow.epoch == 1
        assert changes(flow) == [(0, "a", 1, 1)]


def test_interrupt_outside_the_turn_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    with embedded(SimulatedDisk()) as (cluster, store):
        flow = cluster.install(counted)
        interrupted(monkeypatch, store, cluster)
        with pytest.raises(KeyboardInterrupt):
            flow.input("rows").insert([("a", 0)], writer="w", sequence=0)
        monkeypatch.undo()
        flow.input("rows").insert([("a", 0)], writer="w", sequence=0)
        flow.seal(wait=True)
        assert changes(flow) == [(0, "a", 1, 1)]


def test_interrupt_of_a_close_by_a_vertex_leaves_the_store_to_the_program() -> None:
    disk = SimulatedDisk()
    holder: list[timely.Cluster] = []

    def closes(dataflow: timely.Dataflow) -> None:
        dataflow.output("out", dataflow.input("in").stage("closes", lambda: Closes(holder)))

    with embedded(disk) as (cluster, _):
        holder.append(cluster)
        flow = cluster.install(closes)
        flow.input("in").insert(["x"])
        with pytest.raises(MisuseError, match="this cluster is closed"):
            flow.seal(wait=True)
            flow.seal()
    assert not disk.holder


class Closes(timely.Vertex):
    """Closes the cluster that runs it."""

    def __init__(self, holder: list[timely.Cluster]) -> None:
        self.holder = holder

    def on_recv(self, edge: int, message: list[object], time: object) -> None:
        self.holder[0].close()


def in_a_fork(work: Callable[[], None]) -> int:
    """Do something in a forked process; return its status: 0, or 1 if that raises."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.fixture
def forked(tmp_path: Path) -> Iterator[tuple[timely.Cluster, Flow]]:
    with timely.connect(workers=1, embedded=True, durable=tmp_path / "store") as cluster:
        yield cluster, cluster.install(counted)


def test_interrupt_by_a_fork_leaves_the_log_to_the_parent(forked: tuple[timely.Cluster, Flow]) -> None:
    cluster, flow = forked
    flow.input("rows").insert([("a", 0)])

    def use() -> None:
        for call in (flow.seal, lambda: flow.input("rows").insert([("b", 0)]), lambda: flow.wait(0)):
            with pytest.raises(MisuseError, match="before this process was forked"):
                call()
        cluster.close()
        cluster._workers._durable._finalizer()  # type: ignore[attr-defined]  # as at the end of the process

    assert in_a_fork(use) == 0
    assert flow.seal(wait=True) == 0
    assert changes(flow) == [(0, "a", 1, 1)]


def test_close_writes_what_is_left_and_a_second_one_does_nothing(tmp_path: Path) -> None:
    cluster = timely.connect(workers=2, embedded=True, durable=tmp_path / "store")
    flow = cluster.install(counted)
    flow.input("rows").insert([("a", 0)])
    flow.seal(wait=False)
    cluster.close()
    cluster.close()
    store = FolderStore(tmp_path / "store")
    store.lock()
    store.unlock()
    with timely.connect(workers=1, embedded=True, durable=tmp_path / "store") as cluster:
        assert changes(cluster.install(counted)) == [(0, "a", 1, 1)]
