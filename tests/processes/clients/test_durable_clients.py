"""A durable cluster of real processes that are killed, and clients that do not notice."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from durable_flows import checked, exporting
from two_hosts import Command, Host, aliases, free_ports, host_file, ready, started

import differential as dd
import timely
from timely.client.session import Flow
from timely.worker.supervisor import Supervisor

HERE = Host("localhost")


def supervisor_of(cluster: timely.Cluster) -> Supervisor:
    """What keeps the workers of a cluster that `connect` has started."""
    keeper = getattr(cluster._workers, "_launcher")  # noqa: B009 - a test looks behind the curtain
    assert isinstance(keeper, Supervisor)
    return keeper


def kill(pid: int) -> None:
    """Kill a worker, unless it is gone."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def table(first: int, rows: int) -> pa.Table:
    """Rows with these numbers."""
    numbers = range(first, first + rows)
    return pa.table({"k": [n % 3 for n in numbers], "n": pa.array(numbers, pa.int64())})


def shown(flow: Flow) -> Counter[tuple[int, int]]:
    """The number and the epoch of each row."""
    changes = flow.output("rows").changes(0).to_pylist()
    assert all(row["diff"] == 1 for row in changes)
    return Counter((row["n"], row["epoch"]) for row in changes)


_KILLED_MAX = 8


class Killer:
    """Kills one worker after another, so many seconds after all were ready, from a thread.

    It kills `_KILLED_MAX` at most: on a busy machine no call might come to its end between two of them.
    """

    def __init__(self, keeper: Supervisor, seconds: float) -> None:
        self._keeper = keeper
        self._seconds = seconds
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Killer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()

    def _run(self) -> None:
        victim = 0
        while victim < _KILLED_MAX and not self._ends.wait(self._seconds):
            try:
                self._keeper.check()
            except timely.PeerError:
                continue
            kill(self._keeper.pids[victim % len(self._keeper.pids)])
            victim += 1


def fed_until(flow: Flow, keeper: Supervisor, restarts: int, is_early: bool) -> Counter[tuple[int, int]]:
    """Insert, seal and read until there were so many restarts; return the rows with their epochs."""
    expected: Counter[tuple[int, int]] = Counter()
    last = keeper.restarts + restarts
    number = 0
    deadline = time.monotonic() + 200
    while keeper.restarts < last:
        assert time.monotonic() < deadline
        of_epoch = []
        for rows in (1, 1, 50, 9_000 if flow.epoch % 16 == 0 else 1):
            many = table(number, rows)
            flow.input("rows").insert([(0, number)] if rows == 1 else many)
            of_epoch += range(number, number + rows)
            number += rows
        before = flow.epoch
        epoch = flow.seal(wait=False if is_early else flow.epoch % 2 == 0 or None)
        assert epoch == before, "an epoch is not sealed twice, and none is left out"
        expected.update((n, epoch) for n in of_epoch)
        if epoch % 8 == 0:
            flow.wait(epoch)
    return expected


@pytest.mark.parametrize("is_early", [False, True], ids=["durable", "early"])
def test_rows_count_once_though_workers_are_killed(is_early: bool, tmp_path: Path) -> None:
    with timely.connect(workers=2, durable=tmp_path / "store") as cluster:
        flow = cluster.install("kept_cluster:kept")
        keeper = supervisor_of(cluster)
        with Killer(keeper, 0.7):
            expected = fed_until(flow, keeper, 2, is_early)
        flow.wait()
        assert shown(flow) == expected
    with timely.connect(workers=1, durable=tmp_path / "store") as cluster:
        flow = cluster.install("kept_cluster:kept")
        assert shown(flow) == expected, "another program goes on with as much"


def test_other_clients_go_on_too(tmp_path: Path) -> None:
    rows = table(0, 10).append_column("diff", pa.array([1] * 10, pa.int64()))
    with timely.connect(workers=2, durable=tmp_path) as cluster:
        flow = cluster.install("kept_cluster:kept")
        keeper = supervisor_of(cluster)
        with (
            timely.connect(cluster.addresses[0]) as other,
            cluster.append_target(flow.index)() as appending,
        ):
            theirs = other.flow("kept")
            followed = theirs.output("rows").follow(timeout=30)
            for number in range(4):
                kill(keeper.pids[number % 2])
                appending.append("rows", number, "w", number, rows.slice(number, 1))
                theirs.input("rows").insert([(0, 100 + number)])
                assert theirs.seal([("rows", "w", number)]) == number
                epoch, changes = next(followed)
                assert isinstance(changes, pa.Table)
                assert (epoch, sorted(changes.column("n").to_pylist())) == (number, [number, 100 + number])
                assert flow.refresh() == number + 1
                values = flow.input("values").upsert([(0, number)])
                assert values == number + 1
        assert flow.seal() == 4
        assert flow.output("values").snapshot().to_pylist() == [{"k": 0, "v": 3}]


def test_a_stopped_cluster_is_started_again(tmp_path: Path) -> None:
    with timely.connect(workers=2, durable=tmp_path) as cluster:
        flow = cluster.install("kept_cluster:kept")
        keeper = supervisor_of(cluster)
        flow.input("rows").insert([(0, 1)])
        os.kill(keeper.pids[1], signal.SIGSTOP)
        assert flow.seal(wait=True) == 0
        assert shown(flow) == {(1, 0): 1} and keeper.restarts == 1


def test_embedded_workers_go_on_where_processes_were_and_not_the_other_way_round(tmp_path: Path) -> None:
    store = tmp_path / "store"
    for life, embedded in enumerate([False, True, False, True]):
        with timely.connect(workers=1, embedded=embedded, durable=store) as cluster:
            flow = cluster.install(exporting)
            assert flow.epoch == life and cluster.flows() == {0: "durable_flows:exporting"}
            flow.input("rows").insert([(life, life)])
            flow.seal()
            assert flow.output("rows").snapshot().num_rows == life + 1
            if life == 3:
                cluster.install(checked)
    with pytest.raises(timely.PeerError, match=r"\(checked\) that a program has installed in embedded"):
        timely.connect(workers=1, durable=store)


def test_a_cluster_that_is_dropped_ends(tmp_path: Path) -> None:
    cluster = timely.connect(workers=1, durable=tmp_path)
    keeper = supervisor_of(cluster)
    with pytest.raises(timely.StoreError, match="in use by"):
        timely.connect(workers=1, durable=tmp_path)
    del cluster
    gc.collect()
    deadline = time.monotonic() + 20
    while Path(f"/proc/{keeper.pids[0]}").exists() or keeper._held is not None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    with timely.connect(workers=1, durable=tmp_path) as again:
        assert again._workers.incarnation == 2


def test_what_is_ended_stays_ended(tmp_path: Path) -> None:
    with timely.connect(workers=2, durable=tmp_path) as cluster:
        flow = cluster.install("kept_cluster:kept")
        flow.uninstall()
        kill(supervisor_of(cluster).pids[0])
        with pytest.raises(timely.UninstalledError):
            cluster.flow(flow.index)


def test_calls_for_a_cluster_that_is_not_durable_end_as_before() -> None:
    with timely.connect(workers=2) as cluster:
        assert cluster._workers.incarnation == 0
        kill(getattr(cluster._workers, "_launcher").pids[0])  # noqa: B009
        with pytest.raises(timely.PeerError, match="killed by SIGKILL"):
            cluster.stats()
        with pytest.raises(timely.PeerError, match="killed by SIGKILL"):
            cluster.stats()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"workers": 0, "durable": "x"}, "1 to 1024 workers, not 0"),
        ({"sync": "disk"}, "give the folder of its store"),
        ({"durable": "x", "sync": "never"}, "sync takes 'disk'"),
        ({"durable": ""}, "durable takes the folder of a store"),
        ({"durable": 7}, "durable takes the folder of a store"),
        ({"durable": "a\0b"}, "durable takes the folder of a store"),
        ({"durable": "s3://bucket/x"}, "durable='s3://bucket/x' is an address, and a store is a folder"),
        ({"embedded": True, "durable": Path("dbfs:/x")}, "durable='dbfs:/x' is an address"),
        ({"embedded": True, "sync": "disk"}, "give the folder of its store"),
    ],
)
def test_wrong_options_are_refused(
    options: dict[str, object], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(timely.MisuseError, match=told):
        timely.connect(**options)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())
    with pytest.raises(timely.MisuseError, match="for workers that it starts"):
        timely.connect("localhost:7401", durable=tmp_path)


def test_a_store_of_embedded_workers_is_not_for_processes_which_says_so(tmp_path: Path) -> None:
    def kept(flow: timely.Dataflow) -> None:
        flow.output("out", flow.input("in"))

    with timely.connect(workers=1, embedded=True, durable=tmp_path) as cluster:
        cluster.install(kept)
    for workers in (1, 2):
        with pytest.raises(timely.PeerError, match=r"the store has a dataflow 0 \(kept\) .* embedded=True"):
            timely.connect(workers=workers, durable=tmp_path)
    with timely.connect(workers=2, embedded=True, durable=tmp_path) as cluster:
        assert cluster.install(kept).epoch == 0


def test_a_module_whose_lines_have_moved_has_the_same_query(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    text = """
import differential as dd
import timely


@timely.builder
def query(flow):
    rows = dd.input(flow, "rows", "n: int")
    rows.map(lambda row: (row.n + 1,), "n: int").output("rows")
"""
    for epoch, module in enumerate([text, "# a comment\n" + text, text.replace("rows.map(", "rows.map(\n")]):
        (tmp_path / "moved_lines.py").write_text(module)
        with timely.connect(workers=2, durable=tmp_path / "store") as cluster:
            flow = cluster.install("moved_lines:query")
            assert flow.epoch == epoch
            flow.input("rows").insert([(epoch,)])
            flow.seal()
            assert flow.output("rows").snapshot().num_rows == epoch + 1


def test_embedded_workers_go_on_with_functions_that_had_travelled_to_processes(tmp_path: Path) -> None:
    def mapped(flow: timely.Dataflow) -> None:
        def more(row: tuple[int]) -> tuple[int]:
            return (row[0] + 1,)

        dd.input(flow, "rows", "n: int").map(more, "n: int").filter(lambda row: row[0] > 0).output("rows")

    mapped.__qualname__ = "mapped"
    with timely.connect(workers=2, durable=tmp_path) as cluster:
        flow = cluster.install(mapped)
        flow.input("rows").insert([(1,), (-5,)])
        flow.seal()
    with timely.connect(workers=1, embedded=True, durable=tmp_path) as cluster:
        flow = cluster.install(mapped)
        assert flow.epoch == 1 and flow.output("rows").snapshot().to_pylist() == [{"n": 2}]


# By command.


def workers_of(command: Command) -> list[int]:
    """The process numbers of its workers."""
    path = Path(f"/proc/{command.pid}/task/{command.pid}/children")
    return [int(pid) for pid in path.read_text().split()]


def lines_of(command: Command) -> Iterator[str]:
    """What it writes to its error stream."""
    assert command.stderr is not None
    yield from command.stderr


def test_workers_of_a_command_are_started_again_and_the_same_command_goes_on(tmp_path: Path) -> None:
    port = free_ports([HERE], 2)
    options = ["-m", "timely.worker", "-w", "2", "--client-port", str(port), "--json"]
    options += ["--durable", str(tmp_path / "store"), "--install", "kept_cluster:kept"]
    with started(HERE, *options) as command:
        ready(command, 2)
        with timely.connect(f"localhost:{port}") as cluster:
            flow = cluster.flow("kept")
            flow.input("rows").insert([(0, 1)])
            victim = workers_of(command)[1]
            kill(victim)
            assert flow.seal(wait=True) == 0
            text = next(line for line in lines_of(command) if "starting all workers again" in line)
            assert f"(process {victim}) was killed by SIGKILL" in text
            flow.input("rows").insert([(0, 2)])
            command.kill()  # its workers end with it
            with started(HERE, *options) as again:
                ready(again, 2)
                assert flow.seal(wait=True) == 1
                assert shown(flow) == {(1, 0): 1, (2, 1): 1}
                cluster.shutdown()
                assert again.wait(20) == 0, "whoever asks for the end gets it"


def test_hosts_start_their_workers_again_together(tmp_path: Path) -> None:
    hosts = aliases()
    port = free_ports(hosts, 4)
    options = ["-m", "timely.worker", "-n", "2", "-h", host_file(tmp_path, hosts, port), "--json"]
    options += ["--durable", str(tmp_path / "store"), "--insecure", "--transport", "tcp"]
    first = [*options, "-p", "0", "--client-port", str(port + 2)]
    second = [*options, "-p", "1", "--client-port", str(port + 3)]
    with started(hosts[0], *first) as one, started(hosts[1], *second) as two:
        (address,) = ready(one, 1)
        ready(two, 1)
        with timely.connect(address) as cluster:
            flow = cluster.install("kept_cluster:kept")
            for number, command in enumerate((one, two)):
                flow.input("rows").insert(table(10_000 * number, 10_000))
                kill(workers_of(command)[0])
                assert flow.seal(wait=True) == number
            assert len(shown(flow)) == 20_000
