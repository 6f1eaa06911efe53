"""task.py: what a task of the barrier stage does; Spark and the driver are played here.

ends_*     the worker with the task, the task with the driver
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import timely
from timely.errors import PeerError
from timely.keys import new_client, new_cluster
from timely.spark.scheduled import task as module
from timely.spark.scheduled.line import Line
from timely.spark.scheduled.task import BarrierTask, Shared
from timely.worker.launcher import Launcher
from timely.worker.settings import WorkerSettings

TOKEN = "a token"


class Info:
    """Where a task runs."""

    address = "127.0.0.1:1234"


class Context:
    """In place of Spark: a stage with one task."""

    @classmethod
    def get(cls) -> Context:
        return cls()

    def stageId(self) -> int:
        return 5

    def cpus(self) -> int:
        return 1

    tasks = 1

    def getTaskInfos(self) -> list[Info]:
        return [Info()] * self.tasks

    def barrier(self) -> None:
        pass

    def allGather(self, message: str) -> list[str]:
        return [message]


class Running:
    """A task in a thread, and the driver's end of its line."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, hooks: list[str], keys: str = "", index: int = 0
    ) -> None:
        self._index = index
        ours, self.line = _pair()
        self.error: Exception | None = None
        self.hello: dict[str, object] = {}

        def call(driver: tuple[str, int], token: str, hello: dict[str, object]) -> Line:
            self.hello = hello
            return ours

        monkeypatch.setattr(module, "connected", call)
        monkeypatch.setattr(module, "BarrierTaskContext", Context)
        self._task = BarrierTask(("127.0.0.1", 1), TOKEN, Shared(), hooks, keys)
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        try:
            assert list(self._task(self._index, [])) == []
        except Exception as error:
            self.error = error

    def end(self) -> None:
        self.thread.join(30)
        assert not self.thread.is_alive()


def _pair() -> tuple[Line, Line]:
    with socket.create_server(("127.0.0.1", 0)) as door:
        first = socket.create_connection(door.getsockname())
        second, _ = door.accept()
        return Line(first), Line(second)


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    made = Running(monkeypatch, [])
    yield made
    made.line.close()
    made.end()


def _worker_of(running: Running) -> tuple[str, int]:
    """Its address and process, once it is ready."""
    running.line.say(start=True)
    address = str(running.line.wait(60)["ready"])
    with timely.connect(address) as cluster:
        (counters,) = cluster.stats()
    return address, int(str(counters["process"]))


def test_a_task_says_what_it_is_like_and_starts_nothing_unasked(running: Running) -> None:
    running.line.say(end="the versions differ")
    running.end()
    assert running.error is None
    assert running.hello["task"] == 0 and running.hello["process"] == os.getpid()
    assert "numba" in running.hello["facts"]  # type: ignore[operator]  # a dict
    assert TOKEN not in repr(running._task)


def test_ends_when_the_driver_says_so(running: Running) -> None:
    address, process = _worker_of(running)
    assert address.startswith("tcp://127.0.0.1:")
    environment = Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
    assert b"OMP_NUM_THREADS=1" in environment, "as many threads as the task has cores"
    running.line.say(end="enough")
    running.end()
    assert running.error is None and not Path(f"/proc/{process}").exists()


def test_ends_when_the_driver_is_gone(running: Running) -> None:
    address, process = _worker_of(running)
    with timely.connect(address) as client:
        running.line.close()
        with pytest.raises(PeerError, match="the driver of the cluster is gone"):
            while True:
                client.stats()
    running.end()
    assert isinstance(running.error, EOFError) and not Path(f"/proc/{process}").exists()


def test_ends_with_its_worker_whose_error_becomes_that_of_the_task(running: Running) -> None:
    _, process = _worker_of(running)
    os.kill(process, signal.SIGKILL)
    said = running.line.wait(30)
    running.end()
    assert said["is_cause"] is True and "was killed by SIGKILL" in str(said["failed"])
    assert isinstance(running.error, PeerError) and str(running.error) == said["failed"]


def test_ends_with_a_worker_that_is_stopped_and_that_no_other_one_misses(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = Launcher._start

    def impatient(launcher: Launcher, settings: WorkerSettings) -> object:
        child = start(launcher, settings)
        child.silence_seconds = 0.1
        return child

    monkeypatch.setattr(Launcher, "_start", impatient)
    monkeypatch.setattr(module, "_LOOK_SECONDS", 0.05)
    _, process = _worker_of(running)
    os.kill(process, signal.SIGSTOP)
    assert "has been stopped for more than 0.1 s" in str(running.line.wait(30)["failed"])
    running.end()
    assert isinstance(running.error, PeerError) and not Path(f"/proc/{process}").exists()


def test_ends_in_order_when_a_client_ends_the_cluster(running: Running) -> None:
    address, _ = _worker_of(running)
    timely.connect(address).shutdown()
    assert running.line.wait(30) == {"ended": True}
    running.end()
    assert running.error is None


def test_hooks_are_called_in_a_process_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Running(monkeypatch, ["os:getpid", "os:abort"])
    made.line.say(start=True)
    said = made.line.wait(60)
    made.end()
    assert isinstance(made.error, RuntimeError) and "os:abort failed" in str(made.error)
    assert said["is_cause"] is True and "worker 0 cannot start on 127.0.0.1: os:" in str(said["failed"])
    made.line.close()


def test_hooks_are_called_by_the_first_task_of_a_host_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Context, "tasks", 2)
    made = Running(monkeypatch, ["os:abort"], index=1)
    made.line.say(start=True)
    said = made.line.wait(60)
    made.end()
    assert "1 addresses for 2 workers" in str(said["failed"]), "as far as the one task here can come"
    made.line.close()


def test_a_worker_that_cannot_begin_is_told_of_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Info, "address", "192.0.2.1:1234")  # of no machine
    made = Running(monkeypatch, [])
    made.line.say(start=True)
    said = made.line.wait(60)
    made.end()
    assert said["is_cause"] is True and "cannot listen at tcp://192.0.2.1:0" in str(said["failed"])
    assert isinstance(made.error, PeerError)
    made.line.close()


def test_workers_let_in_who_has_a_key_and_nobody_is_shown_it(monkeypatch: pytest.MonkeyPatch) -> None:
    its, mine = new_client(new_cluster(), "driver")
    monkeypatch.setattr(Info, "address", "127.0.0.2:1234")
    made = Running(monkeypatch, [], its.to_text())
    made.line.say(start=True)
    address = str(made.line.wait(60)["ready"])
    assert address.startswith("tcp://127.0.0.2:"), "where the task is, as Spark knows it"
    with timely.connect(address, keys=mine) as cluster:
        assert cluster.workers == 1
    with pytest.raises(timely.RefusedError):
        timely.connect(address)
    assert its.pair.secret.reveal() not in repr(made._task)
    made.line.say(end="")
    made.end()
    made.line.close()


def test_a_worker_listens_where_the_one_before_it_was_if_that_is_here_and_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_PORT_SECONDS_MAX", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        at = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        assert module._same_port("127.0.0.1", at) == ""
        threading.Timer(0.03, taken.close).start()
        assert module._same_port("127.0.0.1", at) == at, "it is waited for"
    assert module._same_port("localhost", at.replace("127.0.0.1", "localhost")) == at
    for other in ("", "tcp://127.0.0.2:7401", "ipc:///tmp/x"):
        assert module._same_port("127.0.0.1", other) == ""
