"""A durable cluster of real processes grows and shrinks, and clients do not notice.

load_*      while rows come in, and answers are read
kept_*      names, and positions of readers, in one cluster that all of these tests rescale
refused_*   clusters, and numbers of workers, that cannot be
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from feeding_threads import Feeder, Threads, supervisor_of, table, with_diff
from two_hosts import Host, free_ports, ready, started

import timely
from timely.client.feeding import appending
from timely.client.remote.resuming import DurableWorkers
from timely.client.session import Flow

HERE = Host("localhost")
SECONDS = 60.0


def rows_of(flow: Flow) -> Counter[tuple[int, int]]:
    """The number and the epoch of each row."""
    changes = flow.output("rows").changes(0).to_pylist()
    assert all(row["diff"] == 1 for row in changes)
    return Counter((row["n"], row["epoch"]) for row in changes)


def test_load_goes_on_while_the_cluster_grows_and_shrinks(tmp_path: Path, seed: int) -> None:
    """2 → 3 → 1: every epoch is what the twin has, for clients of both kinds."""
    with timely.connect(workers=2, durable=tmp_path) as cluster, timely.connect(*cluster.addresses) as theirs:
        feeder = Feeder(cluster, seed)
        twin = feeder.twin
        followed: dict[int, Counter[tuple[int, int]]] = {}
        snapshots: list[tuple[int, str, pa.Table]] = []

        def follow(ends: threading.Event) -> None:
            output = theirs.flow("sold").output("rows")
            for epoch, changes in output.follow(timeout=SECONDS, forget=True):
                assert isinstance(changes, pa.Table) and epoch == len(followed)
                of_epoch: Counter[tuple[int, int]] = Counter()
                for row in changes.to_pylist():
                    of_epoch[row["k"], row["n"]] += row["diff"]
                followed[epoch] = of_epoch
                if epoch == feeder.last:
                    return

        def look(ends: threading.Event) -> None:
            with timely.connect(cluster.addresses[0]) as own:
                flow = own.flow("sold")
                while not ends.is_set():
                    for name in ("both", "reached"):
                        snapshot = flow.output(name).snapshot(timeout=SECONDS)
                        snapshots.append((flow.output(name).epoch_of(snapshot), name, snapshot))

        with Threads(feeder, follow, look) as threads:
            for workers in (3, 1):
                begun, seen = len(twin.changed), len(snapshots)
                threads.until(lambda begun=begun, seen=seen: (  # type: ignore[misc]
                    len(twin.changed) > begun + 3 and len(snapshots) > seen + 3
                ))  # fmt: skip
                cluster.rescale(workers)
                assert cluster.workers == workers == len(cluster.stats()) == len(cluster.addresses)
                assert len(theirs.stats()) == workers == theirs.workers
            begun, seen = len(twin.changed), len(snapshots)
            threads.until(lambda: len(twin.changed) > begun + 3 and len(snapshots) > seen + 3)
        assert supervisor_of(cluster).restarts == 0, "nobody has failed"
        for epoch, expected in enumerate(twin.changed):
            assert followed[epoch] == expected, epoch
        for epoch, name, snapshot in snapshots:
            rows = snapshot.to_pylist()
            if epoch < 0:
                assert not rows
            elif name == "both":
                assert {(r["k"], r["count"], r["n"], r["v"]) for r in rows} == twin.both[epoch], epoch
                assert len(rows) == len(twin.both[epoch])
            else:
                assert sorted(r["k"] for r in rows) == sorted(twin.reached[epoch]), epoch


def test_load_goes_on_though_workers_are_killed_meanwhile(tmp_path: Path, seed: int, effort: int) -> None:
    """Old ones, and new ones; a rescaling that fails leaves as many as before."""
    fate = random.Random(seed)
    with timely.connect(workers=2, durable=tmp_path, log_level="error") as cluster:
        keeper = supervisor_of(cluster)
        feeder = Feeder(cluster, seed)

        def kill(seconds: float) -> None:
            time.sleep(seconds)
            with suppress(ProcessLookupError, IndexError):
                os.kill(fate.choice(keeper.pids), signal.SIGKILL)

        with Threads(feeder) as threads:
            for seconds in [0.0, 0.05, 0.4, *(fate.random() for _ in range(effort - 1))]:
                before = cluster.workers
                wanted = 5 - before if before in (2, 3) else 2
                killer = threading.Thread(target=kill, args=(seconds,))
                killer.start()
                try:
                    cluster.rescale(wanted)
                    reached = wanted
                except timely.PeerError as error:
                    assert f"the cluster goes on with {before} workers, as before: " in str(error)
                    reached = before
                killer.join()
                assert len(cluster.stats()) == reached == cluster.workers
                done = len(feeder.twin.changed)
                threads.until(lambda done=done: len(feeder.twin.changed) > done + 1)  # type: ignore[misc]
        flow = cluster.flow("sold")
        changes: Counter[tuple[int, int, int]] = Counter()
        for row in flow.output("rows").changes(0).to_pylist():
            changes[row["epoch"], row["k"], row["n"]] += row["diff"]
        assert changes == Counter(
            {
                (epoch, *row): diff
                for epoch, each in enumerate(feeder.twin.changed)
                for row, diff in each.items()
            }
        )


def test_load_of_one_insertion_in_parts_is_sent_again_to_the_new_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        timely.connect(workers=2, durable=tmp_path) as cluster,
        timely.connect(cluster.addresses[1]) as other,
    ):
        flow = cluster.install("rescaled_flows:sold")
        chunks = appending.chunks
        cut: list[int] = []

        def rescaling(rows: pa.Table, size: int) -> Iterator[pa.Table]:
            cut.append(0)
            for piece in chunks(rows, 1 << 14):
                cut[-1] += 1
                if cut[-1] == 4 and len(cut) in targets:
                    cluster.rescale(targets[len(cut)])
                yield piece

        monkeypatch.setattr(appending, "chunks", rescaling)
        for number, client in enumerate((flow, other.flow("sold"))):
            cut.clear()
            targets = [{1: 3, 2: 1}, {1: 2}][number]
            client.input("rows").insert(table(20_000 * number, 20_000))
            assert len(cut) == len(targets) + 1 and cut[-1] > 4
            assert client.seal(wait=True) == number
        assert rows_of(flow) == Counter({(n, n // 20_000): 1 for n in range(40_000)})


# One cluster.


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[timely.Cluster]:
    """Has two workers at first; each test leaves it with as many as it likes."""
    with timely.connect(workers=2, durable=tmp_path_factory.mktemp("store")) as cluster:
        cluster.install("rescaled_flows:sold")
        yield cluster


@pytest.fixture
def flow(shared: timely.Cluster) -> Flow:
    """`sold`, whose open epoch has no rows."""
    flow = shared.flow("sold")
    flow.seal(wait=True)
    return flow


def test_kept_are_the_workers_if_there_are_as_many_already(shared: timely.Cluster) -> None:
    before = supervisor_of(shared).pids
    shared.rescale(shared.workers)
    assert supervisor_of(shared).pids == before


def test_kept_is_a_client_that_was_idle_meanwhile(shared: timely.Cluster, flow: Flow) -> None:
    shared.rescale(2)
    with timely.connect(*shared.addresses) as other, shared.append_target(flow.index)() as appending_client:
        theirs = other.flow("sold")
        output = theirs.output("totals")
        output.changes()
        for workers in (3, 1, 2, 3):
            shared.rescale(workers)
        epoch = flow.refresh()
        assert appending_client.append("rows", epoch, "idle", 0, with_diff(table(0, 1)))
        theirs.input("rows").insert([(0, 7)])
        assert theirs.seal([("rows", "idle", 0)], wait=True) == epoch
        assert len(theirs.output("totals").snapshot()) == 1 and other.workers == 3
        assert [row["epoch"] for row in output.changes().to_pylist()] == [epoch]


def test_kept_are_the_names_of_appends_and_insertions(shared: timely.Cluster, flow: Flow) -> None:
    """Each of them may lie with another worker now."""
    first = flow.epoch
    names = range(8)
    with shared.append_target(flow.index)() as client:
        for workers in (2, 3, 1, 3):
            shared.rescale(workers)
            is_first = workers == 2
            for number in names:
                rows = with_diff(table(1_000 + number, 1))
                assert flow.input("rows").append(rows, epoch=first, writer="a", sequence=number) == is_first
                again = client.append("rows", first, "b", number, rows)
                assert again == is_first
                flow.input("rows").insert([(0, 2_000 + number)], writer="c", sequence=number)
            flow.input("rows").insert(table(10_000, 9_000), writer="d", sequence=0)
    assert flow.seal([("rows", writer, number) for writer in "ab" for number in names], wait=True) == first
    counted: Counter[int] = Counter()
    for row in flow.output("rows").changes(first, first + 1).to_pylist():
        counted[row["n"]] += row["diff"]
    assert counted == Counter(
        {
            **dict.fromkeys(range(1_000, 1_008), 2),
            **dict.fromkeys(range(2_000, 2_008), 1),
            **dict.fromkeys(range(10_000, 19_000), 1),
        }
    )


def test_kept_are_the_positions_of_readers(shared: timely.Cluster, flow: Flow) -> None:
    """One that forgets takes nothing from another, also on workers that there were not then."""
    shared.rescale(1)
    first = flow.epoch
    with timely.connect(shared.addresses[0]) as other:
        slow, quick = other.flow("sold").output("rows"), flow.output("rows")
        for number in range(6):
            flow.input("rows").insert(table(50_000 + 10 * number, 10))
            flow.seal(wait=True)
            if number == 1:
                slow.forget(first + 2)
        for workers in (3, 2):
            shared.rescale(workers)
            quick.forget(first + 5)
            with pytest.raises(timely.ForgottenError):
                quick.changes(first)
        changes = slow.changes().to_pylist()
        assert sorted(row["n"] for row in changes if row["epoch"] < first + 6) == [*range(50_020, 50_060)]
        slow.forget()
        quick.forget()
        with pytest.raises(timely.ForgottenError):
            slow.changes(first + 3)


# What cannot be.


@pytest.mark.parametrize("workers", [0, -1, True, 2.0, "3", None, 1_025])
def test_refused_is_a_number_that_no_cluster_can_have(shared: timely.Cluster, workers: object) -> None:
    with pytest.raises(timely.MisuseError, match="a cluster has 1 to 1024 workers, not"):
        shared.rescale(workers)  # type: ignore[arg-type]


def test_refused_are_other_clusters(shared: timely.Cluster, tmp_path: Path) -> None:
    """What to do stands in the message."""
    with (
        timely.connect(shared.addresses[0]) as other,
        pytest.raises(timely.MisuseError, match="has not started the workers, .* another number, -w"),
    ):
        other.rescale(3)
    keeper = SimpleNamespace(descriptors=[], check=lambda: None, stop=lambda: None)
    incarnation = shared._workers.incarnation
    with (
        timely.Cluster(DurableWorkers(shared.addresses, keeper, incarnation=incarnation)) as scheduled,
        pytest.raises(timely.MisuseError, match="a cluster in Spark .* and the same folder"),
    ):
        scheduled.rescale(3)
    with (
        timely.connect(workers=1, embedded=True) as embedded,
        pytest.raises(timely.MisuseError, match="embedded workers .* connect again with another number"),
    ):
        embedded.rescale(2)
    with (
        timely.connect(workers=1, embedded=True, durable=tmp_path) as embedded,
        pytest.raises(timely.MisuseError, match="embedded workers .* and the same folder"),
    ):
        embedded.rescale(2)
    with (
        timely.connect(workers=1) as fleeting,
        pytest.raises(timely.MisuseError, match="only a durable cluster .* durable=FOLDER"),
    ):
        fleeting.rescale(2)


def test_refused_is_a_process_that_was_forked(shared: timely.Cluster) -> None:
    """Nobody watches the workers there: it would wait for ever."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            shared.rescale(3)
        except timely.MisuseError as error:
            status = 0 if "before this process was forked" in str(error) else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_refused_is_a_cluster_that_is_closed(tmp_path: Path) -> None:
    cluster = timely.connect(workers=1, durable=tmp_path)
    cluster.close()
    with pytest.raises(timely.MisuseError, match="this cluster is closed"):
        cluster.rescale(2)


def test_a_command_with_another_number_of_workers_is_followed(tmp_path: Path) -> None:
    port = free_ports([HERE], 3)
    options = ["-m", "timely.worker", "--client-port", str(port), "--json"]
    options += ["--durable", str(tmp_path / "store"), "--install", "rescaled_flows:sold"]
    with ExitStack() as stack:
        command = stack.enter_context(started(HERE, *options, "-w", "2"))
        ready(command, 2)
        with timely.connect(f"localhost:{port}") as cluster:
            flow = cluster.flow("sold")
            for epoch, workers in enumerate((3, 1)):
                flow.input("rows").insert(table(9_000 * epoch, 9_000))
                command.kill()  # its workers end with it
                command.wait()
                command = stack.enter_context(started(HERE, *options, "-w", str(workers)))
                ready(command, workers)
                assert flow.seal(wait=True) == epoch
                assert cluster.workers == workers == len(cluster.stats())
            assert rows_of(flow) == Counter({(n, n // 9_000): 1 for n in range(18_000)})
