"""A cluster of real processes: the same answers as embedded, and a clear end whatever happens.

answers_*   1 and 2 processes against the plain definition
appends_*   repeated, late, expected
failing_*   a vertex that raises, a process that dies, workers that build different dataflows
closing_*   nothing is left behind
waiting_*   limits, followers, loops that never wait
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import timely
from timely.client import reading
from timely.client.tables import InputForm
from timely.limits import STOP_SECONDS_MAX
from timely.worker.launcher import Launcher

LINES = [["a b a", "c"], ["b b"], [], ["a"]]


@pytest.fixture(scope="module")
def pair() -> Iterator[timely.Cluster]:
    """Two processes for all tests that leave them well."""
    with timely.connect(workers=2) as cluster:
        yield cluster


def launcher_of(cluster: timely.Cluster) -> Launcher:
    launcher = getattr(cluster._workers, "_launcher")  # noqa: B009 - a test looks behind the curtain
    assert isinstance(launcher, Launcher)
    return launcher


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def record_table(*records: object) -> pa.Table:
    rows = InputForm("words", "records").to_table(list(records))
    return rows.append_column("diff", pa.array([1] * len(records), pa.int64()))


@pytest.mark.parametrize("workers", [1, 2])
def test_answers_words_are_counted_epoch_by_epoch(workers: int) -> None:
    with timely.connect(workers=workers) as cluster:
        flow = cluster.install("dataflows:word_count")
        total: Counter[str] = Counter()
        for epoch, lines in enumerate(LINES):
            flow.input("lines").insert(lines)
            assert flow.seal() == epoch
            words = [word for line in lines for word in line.split()]
            total.update(words)
            assert sorted(flow.output("counts").changes()) == [
                (epoch, (word, total[word])) for word in sorted(set(words))
            ]


def test_answers_nested_loops_across_processes(pair: timely.Cluster) -> None:
    flow = pair.install("dataflows:collatz")
    flow.input("numbers").insert([(n, n, 0) for n in range(1, 60)])
    flow.seal()
    found = {record[0]: record[1:] for _, record in flow.output("steps").changes()}
    assert found == {n: (odd_steps(n), odd_steps(n)) for n in range(1, 60)}


def odd_steps(n: int) -> int:
    steps = 0
    while n != 1:
        if n % 2:
            steps += 1
        n = 3 * n + 1 if n % 2 else n // 2
    return steps


def test_answers_two_dataflows_on_one_cluster_do_not_meet(pair: timely.Cluster) -> None:
    one, two = pair.install("dataflows:word_count"), pair.install("dataflows:word_count")
    one.input("lines").insert(["x"])
    two.input("lines").insert(["y"])
    assert (one.seal(), two.seal()) == (0, 0)
    assert one.output("counts").changes() == [(0, ("x", 1))]
    assert two.output("counts").changes() == [(0, ("y", 1))]
    assert pair.flows()[one.index] == "dataflows:word_count"


def test_answers_a_second_client_joins_by_one_address(pair: timely.Cluster) -> None:
    flow = pair.install("dataflows:word_count")
    flow.input("lines").insert(["x y"])
    with timely.connect(pair.addresses[1]) as other:
        assert other.workers == 2
        theirs = other.flow(flow.index)
        theirs.input("lines").insert(["x"])
        theirs.seal()
        assert sorted(theirs.output("counts").changes()) == [(0, ("x", 2)), (0, ("y", 1))]
    flow.wait(0)


def test_appends_a_repetition_counts_once(pair: timely.Cluster) -> None:
    flow = pair.install("dataflows:word_count")
    for is_new in (True, False, False):
        assert flow.input("lines").append(record_table("a b"), writer="w", sequence=4) is is_new
    flow.seal()
    assert sorted(flow.output("counts").changes()) == [(0, ("a", 1)), (0, ("b", 1))]
    assert flow.input("lines").append(record_table("a b"), epoch=0, writer="w", sequence=4) is False


def test_appends_to_a_sealed_epoch_are_refused(pair: timely.Cluster) -> None:
    flow = pair.install("dataflows:word_count")
    flow.wait(flow.seal())  # until then a worker that has not heard of the seal takes rows for it
    with pytest.raises(
        timely.InputClosedError, match="epoch 0 is sealed and takes no more rows; the open epoch is 1"
    ):
        flow.input("lines").append(record_table("late"), epoch=0, writer="w", sequence=0)


def test_appends_come_from_other_connections_and_are_expected_by_the_seal(pair: timely.Cluster) -> None:
    flow = pair.install("dataflows:word_count")
    expected = [("lines", "loader", sequence) for sequence in range(6)]
    with pair.append_target(flow.index)() as target:
        for name, writer, sequence in expected[:-1]:
            assert target.append(name, 0, writer, sequence, record_table("w"))
        with pytest.raises(timely.MisuseError, match="1 of the expected appends have not arrived"):
            flow.seal(expected)
        assert flow.epoch == 0
        target.append("lines", 0, "loader", 5, record_table("w"))
    assert flow.seal(expected) == 0
    assert flow.output("counts").changes() == [(0, ("w", 6))]


def test_failing_a_vertex_that_raises_is_told_with_its_traceback() -> None:
    with timely.connect(workers=2) as cluster:
        flow = cluster.install("dataflows:fails_on", word="bad")
        flow.input("words").insert(["good", "bad"])
        with pytest.raises(timely.VertexError, match=r"ValueError: cannot bear 'bad'") as caught:
            flow.seal()
            flow.wait()
        assert "'collect' (stage 1, worker " in str(caught.value) and "dataflows.py" in str(caught.value)
        for call in (flow.seal, flow.refresh, lambda: flow.input("words").insert(["good"])):
            with pytest.raises(timely.VertexError, match="cannot bear 'bad'"):
                call()


@pytest.mark.parametrize("victim", [0, 1])
def test_failing_a_killed_worker_is_named_within_five_seconds_and_takes_the_others_along(victim: int) -> None:
    with timely.connect(workers=2) as cluster:
        flow = cluster.install("dataflows:sleeps_on", seconds=2.0)
        flow.input("words").insert(["slow", "a", "b", "c"])
        flow.seal()
        pids = launcher_of(cluster).pids
        os.kill(pids[victim], signal.SIGKILL)
        started = time.monotonic()
        with pytest.raises(
            timely.PeerError, match=rf"worker {victim} \(process {pids[victim]}\) was killed by SIGKILL"
        ):
            flow.wait()
        assert time.monotonic() - started < 5
        assert repr(cluster).endswith(", lost>")
        with pytest.raises(timely.PeerError, match="was killed"):
            flow.seal()
    assert not any(is_alive(pid) for pid in pids)


@pytest.mark.parametrize("status", [17, 0])
def test_failing_a_worker_that_exits_is_reported_with_its_status(status: int) -> None:
    with timely.connect(workers=2) as cluster:
        flow = cluster.install("dataflows:exit_hard", status=status)
        flow.input("words").insert(["exit"])
        with pytest.raises(timely.PeerError, match=f"ended with exit status {status}"):
            flow.seal()
            flow.wait()


def test_failing_different_dataflows_are_refused_with_the_first_stage_that_differs(
    pair: timely.Cluster,
) -> None:
    with pytest.raises(timely.GraphError, match=r"worker 1 built stage 2 as\n.*count in \d+") as caught:
        pair.install("dataflows:differs_between_processes")
    assert "worker 0 as" in str(caught.value)
    flow = pair.install("dataflows:word_count")  # and the cluster goes on
    assert flow.seal() == 0


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("dataflows:broken_builder", "the builder 'dataflows:broken_builder' failed"),
        ("dataflows:nothing_there", "has no function 'nothing_there'"),
        ("dataflows:no_function", "has no function 'no_function'"),
        ("no_such_module:build", "there is no module 'no_such_module'"),
        ("word count", "is named as 'module:function'"),
    ],
)
def test_failing_installs_say_why_and_leave_the_cluster_well(
    pair: timely.Cluster, spec: str, message: str
) -> None:
    with pytest.raises(timely.MisuseError, match=message):
        pair.install(spec)
    assert pair.install("dataflows:word_count").seal() == 0


def test_failing_a_script_that_workers_would_run_again_is_told_so(tmp_path: Path) -> None:
    script = tmp_path / "runs_again.py"
    script.write_text(
        "import os\n"
        "os.environ['RUNS'] = str(int(os.environ.get('RUNS', 0)) + 1)\n"
        "assert int(os.environ['RUNS']) < 3, 'a worker has started workers'\n"
        "import timely\n"
        "@timely.builder\n"
        "def words(flow): flow.input('words')\n"
        "with timely.connect(workers=1) as cluster: cluster.install(words)\n"
    )
    ran = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 1
    assert (
        "MisuseError: a dataflow 'runs_again:words': the module 'runs_again' connects to a cluster when"
        in ran.stderr
    )


@pytest.mark.parametrize("count", [2, 20_000])  # posted, and in parts to both
def test_waiting_rows_are_told_of_by_a_snapshot_before_the_first_seal(
    pair: timely.Cluster, count: int
) -> None:
    flow = pair.install("collection_flows:texts_by_key")
    (name,), (output,) = flow.inputs, flow.outputs
    assert flow.output(output).snapshot().num_rows == 0
    flow.input(name).insert(pa.table({"key": list(map(str, range(count))), "text": ["a"] * count}))
    with pytest.raises(
        timely.MisuseError, match=r"wait in epoch 0, which is open.\n  Seal it first: flow.seal\(\)"
    ):
        flow.output(output).snapshot()
    flow.seal()
    assert flow.output(output).snapshot().num_rows > 0
    flow.uninstall()


def test_failing_waiting_for_an_epoch_that_nobody_seals_ends_in_time(pair: timely.Cluster) -> None:
    flow = pair.install("dataflows:word_count")
    with pytest.raises(timely.WaitTimeoutError, match="it is not sealed yet"):
        flow.wait(0, timeout=0.2)
    assert flow.seal() == 0
    flow.wait(0, timeout=20)


def test_closing_leaves_no_process_and_no_folder() -> None:
    with timely.connect(workers=2) as cluster:
        pids = launcher_of(cluster).pids
        folders = {Path(address.removeprefix("ipc://")).parent for address in cluster.addresses}
        assert all(is_alive(pid) for pid in pids) and all(folder.exists() for folder in folders)
    assert not any(is_alive(pid) for pid in pids)
    assert not any(folder.exists() for folder in folders)
    with pytest.raises(timely.MisuseError, match="closed"):
        cluster.flows()


def test_closing_does_not_wait_for_a_vertex_that_never_returns() -> None:
    with timely.connect(workers=2) as cluster:
        flow = cluster.install("dataflows:sleeps_on")
        flow.input("words").insert(["slow"])
        with pytest.raises(timely.WaitTimeoutError):
            flow.seal()
            flow.wait(timeout=0.4)  # one of them sleeps and cannot answer
        pids = launcher_of(cluster).pids
        started = time.monotonic()
    assert time.monotonic() - started < 0.9 * STOP_SECONDS_MAX, "nobody is asked a second time and waited for"
    assert not any(is_alive(pid) for pid in pids)


def test_closing_waits_for_a_step_that_comes_to_its_end() -> None:
    with timely.connect(workers=1) as cluster:
        flow = cluster.install("dataflows:sleeps_on", seconds=1.0)
        flow.input("words").insert(["slow"])
        flow.seal()
        with pytest.raises(timely.WaitTimeoutError):
            flow.wait(timeout=0.2)
        (child,) = launcher_of(cluster)._children
    assert child.process.returncode == 0, "it was not killed"


def test_closing_is_seen_in_how_a_cluster_is_shown() -> None:
    with timely.connect(workers=2) as cluster:
        shown = f"<cluster of 2 workers at {', '.join(cluster.addresses)}"
        assert repr(cluster) == f"{shown}>"
    assert repr(cluster) == f"{shown}, closed>"


def test_closing_by_shutdown_ends_the_workers() -> None:
    cluster = timely.connect(workers=2)
    pids = launcher_of(cluster).pids
    cluster.shutdown()
    assert not any(is_alive(pid) for pid in pids)


def test_closing_idle_workers_use_no_processor_time(pair: timely.Cluster) -> None:
    def ticks() -> int:
        fields = [
            Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in launcher_of(pair).pids
        ]
        return sum(int(field[11]) + int(field[12]) for field in fields)

    pair.flows()
    used = []
    while not used or (min(used) > 5 and len(used) < 10):  # until they have tidied up
        before = ticks()
        time.sleep(1.0)
        used.append(ticks() - before)
    assert min(used) <= 5, "hundredths of a second, of two processes"


def test_waiting_with_a_limit_ends_soon_after_it_though_a_worker_computes(pair: timely.Cluster) -> None:
    flow = pair.install("dataflows:sleeps_on", seconds=4.0)
    flow.input("words").insert(["slow", *map(str, range(20))])
    flow.seal()
    output = flow.output("words")
    calls: dict[str, Callable[[], object]] = {
        "wait": lambda: flow.wait(timeout=0.3),
        "changes": lambda: output.changes(timeout=0.3),
        "follow": lambda: next(output.follow(timeout=0.3)),
    }
    for what, call in calls.items():
        started = time.monotonic()
        with pytest.raises(timely.WaitTimeoutError):
            call()
        assert time.monotonic() - started < 3.0, what
    assert len(output.changes(timeout=60)) == 21, "and nothing is lost"


def test_waiting_without_a_limit_outlasts_a_worker_that_computes(
    pair: timely.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who follows makes himself heard now and then; that a worker cannot hear it is no error."""
    monkeypatch.setattr(reading, "_PULSE_SECONDS", 0.1)
    flow = pair.install("dataflows:sleeps_on", seconds=2.5)
    flow.input("words").insert(["slow"])
    flow.seal()
    assert next(flow.output("words").follow()) == (0, ["slow"])


def test_waiting_clients_follow_at_their_own_speeds_while_another_seals_and_forgets(
    pair: timely.Cluster,
) -> None:
    """Each has a connection of its own; one begins with a snapshot; each sums up to the collection."""
    flow = pair.install("failing_flows:passes")
    epochs, history = 40, [Counter[int]()]
    flow.input("rows").insert([(0, 0)])
    flow.seal()
    history.append(Counter({0: 1}))
    failures: list[object] = []
    slow = threading.Event()

    def follow(kind: str) -> None:
        try:
            with timely.connect(pair.addresses[0]) as cluster:
                total: Counter[int] = Counter()
                expected: int | None = None if kind == "snapshot" else 0
                output = cluster.flow(flow.index).output("rows")
                is_joined = False
                for epoch, table in output.follow(
                    snapshot=kind == "snapshot", forget=kind == "forgets", timeout=60
                ):
                    if not is_joined:
                        is_joined = True  # and has a place from now on
                        joined.release()
                    if expected is not None:
                        assert epoch == expected, "no epoch is left out"
                    expected = epoch + 1
                    for row in table.to_pylist():
                        total[row["insertion"]] += row["diff"]
                    assert +total == history[epoch + 1], (kind, epoch)
                    if kind == "slow" and epoch == 5:
                        assert slow.wait(60)
                    if epoch == epochs:
                        return
        except BaseException as error:
            failures.append(error)
            joined.release()

    joined = threading.Semaphore(0)
    threads = [threading.Thread(target=follow, args=(kind,)) for kind in ("slow", "snapshot", "forgets")]
    for one in threads:
        one.start()
        assert joined.acquire(timeout=30)
    with timely.connect(pair.addresses[1]) as other:
        sealing = other.flow(flow.index)
        sealing.output("rows").changes_nowait()
        for epoch in range(1, epochs + 1):
            now = Counter(history[-1])
            now[epoch] += 1
            now[epoch // 2] -= 1
            history.append(+now)
            sealing.input("rows").insert([(epoch, 0)])
            sealing.input("rows").remove([(epoch // 2, 0)])
            sealing.seal()
            if epoch > 25:
                sealing.output("rows").changes()
                sealing.output("rows").forget()
    slow.set()
    for one in threads:
        one.join(60)
    assert failures == [] and not any(one.is_alive() for one in threads)


def test_waiting_outputs_are_not_starved_by_a_loop_that_never_waits() -> None:
    """What is beside it completes, and what is behind it goes on, epoch after epoch."""
    with timely.connect(workers=2) as cluster:
        flow = cluster.install("failing_flows:spins")
        flow.input("records").insert(["round", "and round"])
        for epoch in range(3):
            flow.input("others").insert([epoch])
            flow.seal()
            assert flow.output("beside").changes(timeout=30) == [(epoch, epoch)]
        behind = _messages_to(cluster, "keeps")
        deadline = time.monotonic() + 20
        while _messages_to(cluster, "keeps") <= behind and time.monotonic() < deadline:
            time.sleep(0.02)
        assert _messages_to(cluster, "keeps") > behind


def _messages_to(cluster: timely.Cluster, name: str) -> int:
    return sum(
        stage["activations"]
        for worker in cluster.stats()
        for dataflow in worker["dataflows"].values()  # type: ignore[attr-defined]  # plain values
        for stage in dataflow["stages"]
        if stage["name"] == name
    )
