"""Talking to workers of other processes: addresses, lost workers, a second connection that only appends."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from relay import Relay

import timely
from timely.client import connection
from timely.client.connection import (
    AppendClient,
    RemoteWorkers,
    append_target,
    discover,
)
from timely.client.remote import channel
from timely.client.tables import InputForm
from timely.limits import (
    HEADER_BYTES_MAX,
    HEARTBEAT_MS_DEFAULT,
    REQUEST_BYTES_MAX,
    SILENCE_SECONDS_DEFAULT,
    SILENCE_SECONDS_MAX,
)
from timely.wire.addresses import socket_address
from timely.wire.frames.messages import check_size, encode_error, encode_reply, number_of
from timely.wire.handshake import PROTOCOL_VERSION
from timely.wire.requests import Hello, Progress, Reply
from timely.wire.transport.server_socket import ServerSocket
from timely.worker.launcher import Launcher, LocalFolder
from timely.worker.settings import local_settings

ROWS = InputForm("lines", "records").to_table(["a b"]).append_column("diff", pa.array([1], pa.int64()))


@pytest.mark.parametrize("address", ["", "host", ":7401", "host:", "host:port", "host:0", "host:70000"])
def test_an_address_that_is_none_shows_the_form(address: str) -> None:
    with pytest.raises(timely.MisuseError, match="write host:port"):
        socket_address(address)
    assert socket_address("host:7401") == "tcp://host:7401"


@pytest.mark.parametrize(
    ("error", "ends"),
    [
        (timely.PeerError("lost"), True),
        (timely.WaitTimeoutError("late"), False),
        (timely.MisuseError("wrong"), False),
        (KeyboardInterrupt(), False),
    ],
    ids=lambda given: type(given).__name__,
)
def test_only_a_lost_worker_ends_the_connection_and_each_error_comes_out(
    error: BaseException, ends: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers = RemoteWorkers([f"ipc://{tmp_path}/nobody"])

    def fails(*_: object) -> None:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(RemoteWorkers, "_settle", fails)
        with pytest.raises(type(error)) as raised:
            workers.settle()
        assert raised.value is error
    assert workers.end == ("lost" if ends else "")
    if ends:
        with pytest.raises(timely.PeerError, match="lost"):
            workers.settle()
    else:
        workers.settle()
    workers.close()


def test_nobody_at_an_address_is_an_error_within_seconds(tmp_path: Path) -> None:
    started = time.monotonic()
    with pytest.raises(timely.PeerError, match="is a cluster running there"):
        discover([f"ipc://{tmp_path}/nobody"])
    assert time.monotonic() - started < 15


def test_workers_that_are_lost_while_they_greet_are_greeted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a durable cluster may be starting again just then."""
    errors: list[timely.TimelyError] = [timely.PeerError("lost"), timely.PeerError("not there yet")]
    address = "ipc:///nowhere"
    hello = {
        "version": PROTOCOL_VERSION,
        "index": 0,
        "workers": 1,
        "addresses": [address],
        "silence_ms": 2_500,
    }

    def greets(workers: RemoteWorkers, seconds: float) -> list[Reply]:
        if errors:
            raise errors.pop(0)
        return [Reply({**hello, "cluster": "its name"})]

    monkeypatch.setattr(connection, "greeted", greets)
    assert discover([address]).cluster == "its name"
    errors += [timely.RefusedError("no key"), timely.PeerError("never raised")]
    with pytest.raises(timely.RefusedError):
        discover([address])
    errors[:] = [timely.PeerError("gone")] * 1_000
    monkeypatch.setattr(connection, "CONNECT_SECONDS_MAX", 0.3)
    with pytest.raises(timely.PeerError, match="gone"):
        discover([address])
    assert 900 < len(errors) < 1_000


def test_addresses_of_two_clusters_are_not_taken_for_one() -> None:
    """As many workers as one has, and with different numbers."""
    with timely.connect(workers=2) as cluster, timely.connect(workers=2) as other:
        first, second = cluster.addresses, other.addresses
        there = (first, SILENCE_SECONDS_DEFAULT, 0, "")
        assert discover([first[1], first[0]]) == discover(first[1:]) == there
        for mixed in ([first[0], second[1]], [second[1], first[0]]):
            with pytest.raises(timely.PeerError, match="to different clusters: worker . is at .* one,"):
                discover(mixed)
        with pytest.raises(timely.MisuseError, match="are both worker 0"):
            discover([first[0], second[0]])


def test_a_target_travels_by_pickle_and_appends_from_where_it_lands() -> None:
    with timely.connect(workers=2) as cluster:
        flow = cluster.install("dataflows:word_count")
        target = pickle.loads(pickle.dumps(cluster.append_target(flow.index)))
        assert isinstance(target, append_target)
        for turn in range(2):
            with target() as client:
                assert isinstance(client, AppendClient)
                assert [client.append("lines", 0, "w", s, ROWS) for s in range(4)] == [turn == 0] * 4
                with pytest.raises(timely.MisuseError, match="no input 'words'"):
                    client.append("words", 0, "w", 0, ROWS)
        flow.seal()
        assert sorted(flow.output("counts").changes()) == [(0, ("a", 4)), (0, ("b", 4))]


def test_a_client_that_started_nothing_names_the_lost_worker() -> None:
    folder = LocalFolder()
    with Launcher(local_settings(2, folder.path), folder=folder) as launcher:
        addresses = launcher.wait_ready()
        workers = RemoteWorkers(addresses)
        workers.ask([(0, Hello(), None)])
        os.kill(launcher.pids[1], signal.SIGKILL)
        started = time.monotonic()
        with pytest.raises(timely.PeerError, match="worker 1"):
            while time.monotonic() - started < 5:
                workers.ask([(1, Hello(), None), (0, Hello(), None)])
        assert time.monotonic() - started < 5
        with pytest.raises(timely.PeerError):
            workers.ask([(0, Hello(), None)])
        workers.close()
        workers.close()


def test_a_connection_that_broke_and_came_back_while_nothing_was_asked_is_as_good_as_new() -> None:
    server = ServerSocket("tcp://127.0.0.1:0")
    is_over = threading.Event()

    def answer() -> None:
        while not is_over.wait(0.01):
            for who, frames in server.recv_nowait():
                server.send(who, encode_reply(number_of(frames, 1 << 20), Reply({"index": 0})))

    with Relay(int(server.address.rpartition(":")[2])) as relay, ThreadPoolExecutor(1) as worker:
        answering = worker.submit(answer)
        workers = RemoteWorkers([f"127.0.0.1:{relay.port}"])
        try:
            assert workers.ask([(0, Hello(), None)]) == [Reply({"index": 0})]
            relay.break_off()
            sockets, deadline = workers._channel().sockets, time.monotonic() + 30
            while not (sockets.loss(0) and sockets._connections[0]._is_back):
                assert time.monotonic() < deadline
                sockets.wait(0.05)
            assert workers.ask([(0, Hello(), None)]) == [Reply({"index": 0})]
        finally:
            workers.close()
            is_over.set()
            answering.result()
            server.close()


def test_an_answer_that_does_not_come_in_time_names_who_is_late() -> None:
    with timely.connect(workers=1) as cluster:
        flow = cluster.install("dataflows:word_count")
        workers = RemoteWorkers(cluster.addresses)
        with pytest.raises(timely.WaitTimeoutError, match="no answer from worker 0 at ipc://"):
            workers.ask([(0, Progress(flow.index, "", 0, -1.0), None)], 0.2)
        assert workers.ask([(0, Hello(), None)])[0].integer("workers") == 1, "late answers are passed over"
        workers.close()


def test_a_request_that_is_too_large_is_refused_before_it_is_sent() -> None:
    with pytest.raises(timely.MisuseError, match="268,435,456 at once: slices .* a sequence of its own"):
        check_size([memoryview(b""), memoryview(bytearray(REQUEST_BYTES_MAX + 1))])
    with pytest.raises(timely.MisuseError, match="4,194,305 bytes is too large: 4,194,304 are the limit"):
        check_size([memoryview(bytearray(HEADER_BYTES_MAX + 1))])
    check_size([memoryview(bytearray(HEADER_BYTES_MAX))])


class Keeper:
    """Keeps one worker, which is played here: it answers each request with its end. That the task of it is
    lost is heard at the `late`-th look after that, of as many as there may be; 0: never.
    """

    knows_best = True
    descriptors: list[int] = []

    def __init__(self, server: ServerSocket, late: int) -> None:
        self._server = server
        self._looks = -1
        self._late = late

    def check(self) -> None:
        self._looks += self._looks >= 0
        for client, frames in self._server.recv_nowait():
            error = timely.PeerError("worker 0 of 1 had to end, and the cluster with it")
            self._server.send(client, encode_error(number_of(frames), error))
            self._looks = 0
        if self._looks == self._late > 0:
            raise timely.PeerError("the task of worker 0 is lost")

    def stop(self) -> None:
        self._server.close()


@pytest.mark.parametrize(("late", "told"), [(3, "the task of worker 0 is lost"), (0, "had to end")])
def test_who_keeps_the_workers_and_knows_best_is_waited_for_after_their_answers(
    late: int, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel, "KEEPER_SECONDS_MAX", 0.3 if late == 0 else 30.0)
    server = ServerSocket(f"ipc://{tmp_path}/c0")
    workers = RemoteWorkers([server.address], Keeper(server, late))
    for _ in range(2):
        with pytest.raises(timely.PeerError, match=told):
            workers.ask([(0, Hello(), None)])
    workers.close()


def _wait_until_silent(cluster: timely.Cluster) -> None:
    """Until one of the workers has begun to compute for long: it is told to, and does it a moment later."""
    with pytest.raises(timely.WaitTimeoutError):
        for _ in range(100):
            discover(cluster.addresses, timeout_seconds=0.3)


def test_a_worker_that_computes_for_long_is_waited_for_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is reached, by the host and by the sockets, though nobody there is free to answer."""
    monkeypatch.setattr(connection, "CONNECT_SECONDS_MAX", 0.4)
    with timely.connect(workers=2) as cluster:
        flow = cluster.install("dataflows:sleeps_on", seconds=3.0)
        flow.input("words").insert(["slow"])
        flow.seal()
        started = time.monotonic()
        _wait_until_silent(cluster)
        with pytest.raises(
            timely.WaitTimeoutError, match=r"within 0.8 s: it is reached, and does not answer"
        ):
            discover(cluster.addresses, timeout_seconds=0.8)
        assert discover(cluster.addresses).addresses == cluster.addresses
        assert 1.0 < time.monotonic() - started < 10
        flow.input("words").insert(["slow"])
        flow.seal()
        _wait_until_silent(cluster)
        caplog.clear()
        with cluster.append_target(flow.index)() as client:
            table = InputForm("words", "records").to_table(["a"]).append_column("diff", pa.array([1]))
            assert client.append("words", 2, "w", 0, table)
        (said,) = caplog.messages
        assert said.startswith("waiting for worker ") and cluster.addresses[0][:10] in said
        assert said.endswith("does not answer: it computes, or waits for others. For 300 s at most")


def test_how_long_a_worker_may_be_silent_clients_learn_from_the_cluster() -> None:
    with timely.connect(workers=2, silence_seconds=30) as cluster:
        flow = cluster.install("dataflows:word_count")
        assert discover(cluster.addresses).silence_seconds == 30.0
        assert cluster.append_target().silence_seconds == 30.0
        with (
            AppendClient(cluster.addresses, flow.index) as client,
            timely.connect(cluster.addresses[0]) as more,
        ):
            assert client.silence_seconds == 30.0
            by_epoch = ROWS.append_column("day", pa.array([2], pa.int8()))
            assert [client.append("lines", "day", "d", 0, by_epoch) for _ in range(2)] == [True, False]
            assert more.append_target().silence_seconds == 30.0
            assert client.append("lines", 0, "w", 0, ROWS)
    with timely.connect(workers=1) as cluster:
        assert discover(cluster.addresses).silence_seconds == SILENCE_SECONDS_DEFAULT


_CLIENT = """
import sys, timely
with timely.connect(sys.argv[1]) as cluster:
    flow = cluster.flow(int(sys.argv[2]))
    print("waits", flush=True)
    print("has waited for", flow.wait(0))
"""


def test_a_client_that_is_stopped_is_borne_as_a_worker_is() -> None:
    with timely.connect(workers=1, silence_seconds=30) as cluster:
        flow = cluster.install("dataflows:word_count")
        command = [sys.executable, "-c", _CLIENT, cluster.addresses[0], str(flow.index)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as client:
            assert client.stdout is not None and client.stdout.readline() == "waits\n"
            time.sleep(0.5)
            client.send_signal(signal.SIGSTOP)
            time.sleep(HEARTBEAT_MS_DEFAULT / 1_000 + SILENCE_SECONDS_DEFAULT + 1.0)
            client.send_signal(signal.SIGCONT)
            time.sleep(0.5)
            flow.seal()
            assert client.communicate(timeout=30)[0] == "has waited for 0\n"
        assert client.returncode == 0


@pytest.mark.parametrize("silence", [0, 2.4, -1.0, float("nan"), float("inf"), SILENCE_SECONDS_MAX + 1, "30"])
def test_a_silence_that_cannot_be_borne_is_refused(silence: float) -> None:
    with pytest.raises(timely.MisuseError, match=r"silence_seconds .*: a worker may be silent for 2\.5 to"):
        timely.connect(workers=1, silence_seconds=silence)


def test_a_silence_is_told_to_who_starts_workers() -> None:
    with pytest.raises(timely.MisuseError, match="so were silence_seconds,.* progress"):
        timely.connect("127.0.0.1:1", silence_seconds=30.0)
    with pytest.raises(timely.MisuseError, match="embedded ones run in this one"):
        timely.connect(workers=1, embedded=True, silence_seconds=30.0)


@pytest.mark.parametrize("is_own", [True, False], ids=["cluster of this program", "cluster that runs"])
@pytest.mark.parametrize("call", ["wait", "follow", "snapshot of what is computed", "seal and seal"])
def test_who_waits_in_a_thread_is_told_that_another_one_has_closed_the_cluster(
    call: str, is_own: bool
) -> None:
    """Its sockets used to be closed while it looked at them, which ZeroMQ does not bear."""
    with timely.connect(workers=1) as running:
        flow = running.install("dataflows:sleeps_on", seconds=2.0)
        cluster = running if is_own else timely.connect(*running.addresses)
        mine = cluster.flow(flow.index)
        if call == "snapshot of what is computed":
            mine.input("words").insert(["slow"])
            mine.seal()
        asks: dict[str, Callable[[], object]] = {
            "wait": lambda: mine.wait(7),
            "follow": lambda: list(mine.output("words").follow()),
            "snapshot of what is computed": lambda: mine.output("words").changes(),
            "seal and seal": lambda: [mine.seal() for _ in range(10**9)],
        }
        with ThreadPoolExecutor(1) as pool:
            waits = pool.submit(asks[call])
            time.sleep(0.3)
            cluster.close()
            with pytest.raises(timely.MisuseError, match="this cluster is closed: connect again"):
                waits.result(60)
        with pytest.raises(timely.MisuseError, match="this cluster is closed: connect again"):
            mine.seal()
