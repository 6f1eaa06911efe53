"""job.py: the driver's end of a cluster in Spark; Spark and the tasks are played here.

door_*     who is let in
over_*     what ends a cluster, and who hears of it
late_*     what is said of a job that does not come
"""

from __future__ import annotations

import select
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from timely.errors import TimelyError
from timely.spark.errors import ClusterLostError, ScheduleError
from timely.spark.scheduled import job as module
from timely.spark.scheduled import roster
from timely.spark.scheduled.job import SparkJob
from timely.spark.scheduled.line import Line, connected
from timely.spark.scheduled.task import BarrierTask, Shared


class Context:
    """In place of Spark: a job that runs until it is cancelled or `finish` is called."""

    def __init__(self) -> None:
        self.task: BarrierTask | None = None
        self.cancelled: list[str] = []
        self.group = ""
        self.error = ""
        self._over = threading.Event()

    def getConf(self) -> dict[str, str]:
        return {"spark.driver.host": "127.0.0.1"}

    def setJobGroup(self, group: str, description: str) -> None:
        self.group = group

    def parallelize(self, rows: object, partitions: int) -> Context:
        return self

    def barrier(self) -> Context:
        return self

    def mapPartitionsWithIndex(self, task: BarrierTask) -> Context:
        self.task = task
        return self

    def collect(self) -> list[object]:
        self._over.wait(30)
        if self.error:
            raise RuntimeError(self.error)
        return []

    def cancelJobGroup(self, group: str) -> None:
        self.cancelled.append(group)
        self._over.set()

    def finish(self, error: str = "") -> None:
        self.error = error
        self._over.set()


@pytest.fixture
def context(monkeypatch: pytest.MonkeyPatch) -> Context:
    monkeypatch.setattr(module, "reason_of", lambda *asked: "executor 7: out of memory")
    monkeypatch.setattr(module, "slots_of", lambda context: 4)
    monkeypatch.setattr(module, "busy_slots", lambda context: 3)
    monkeypatch.setattr(module, "running_tasks", lambda context, group: 0)
    return Context()


@pytest.fixture
def job(context: Context) -> Iterator[SparkJob]:
    made = SparkJob(context, 2, Shared())  # type: ignore[arg-type]  # as much of a context as is used
    yield made
    context.finish()
    made.stop()


def address(job: SparkJob) -> tuple[str, int]:
    return job._task._driver


_open: list[Line] = []


@pytest.fixture(autouse=True)
def _lines_are_closed() -> Iterator[None]:
    yield
    while _open:
        _open.pop().close()


def come(job: SparkJob, index: int, token: str | None = None) -> Line:
    hello = {"task": index, "stage": 5, "process": 4000 + index, "host": "b", "facts": {"python": "3"}}
    _open.append(connected(address(job), token or job.token, hello))
    return _open[-1]


def soon(has: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    waiting = threading.Event()
    while not has():
        assert time.monotonic() < deadline
        waiting.wait(0.01)


def lost(job: SparkJob) -> TimelyError:
    """What whoever uses the cluster hears, woken by the descriptor."""
    waking = job.descriptors  # none if it is known already
    assert not waking or select.select(waking, [], [], 60)[0]
    with pytest.raises(ClusterLostError) as told:
        job.check()
    assert job.descriptors == []
    return told.value


def test_a_job_from_its_tasks_to_its_end(job: SparkJob, context: Context) -> None:
    lines = [come(job, index) for index in (1, 0)]
    tasks = job.wait_for_tasks(60)
    assert {index: task.host for index, task in tasks.items()} == {0: "b", 1: "b"}
    job.begin()
    for index, line in zip((1, 0), lines, strict=True):
        assert line.wait(60) == {"start": True}
        line.say(ready=f"tcp://b:{index}")
    assert job.wait_ready() == ["tcp://b:0", "tcp://b:1"]
    job.check()
    context.finish()
    job.stop()
    assert [line.wait(60) for line in lines] == [{"end": ""}] * 2
    assert job.descriptors == [] and not context.cancelled
    job.stop()
    job.check()


def test_door_is_shut_to_strangers_and_when_all_are_there(job: SparkJob) -> None:
    with pytest.raises(EOFError):
        come(job, 0, token="a guess")
    with socket.create_connection(address(job)) as silent:
        come(job, 0)
        come(job, 1)
        job.wait_for_tasks(60)
        silent.settimeout(10)
        while silent.recv(100):  # the nonce, and then the end
            pass

    def is_shut() -> bool:
        try:
            socket.create_connection(address(job)).close()
        except OSError:
            return True
        return False

    soon(is_shut)


@pytest.mark.parametrize(
    "words",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x00" * 100_000,
        b"{}\n",
        b'{"proof": 1, "nonce": 1}\n',
        b'{"proof": "\\u00e9", "nonce": "1"}\n',
        b'{"proof": "1", "nonce": "\\ud800"}\n',
        b'{"proof": "\\ud800", "nonce": [' + b"[" * 900 + b"]" * 900 + b"]}\n",
    ],
)
def test_door_is_shut_on_who_talks_of_other_things(job: SparkJob, words: bytes) -> None:
    with socket.create_connection(address(job)) as other:
        other.settimeout(10)
        try:
            other.sendall(words)
            while other.recv(100):
                pass
        except ConnectionError:
            pass
    come(job, 0)


def test_door_is_open_to_a_task_beside_any_number_of_strangers(job: SparkJob) -> None:
    strangers = [socket.create_connection(address(job), timeout=10) for _ in range(module._GUESTS_MAX + 10)]
    come(job, 0)
    assert strangers[0].recv(100) and strangers[0].recv(100) == b"", "the oldest goes, after its nonce"
    come(job, 1)
    job.wait_for_tasks(60)
    for stranger in strangers:
        stranger.close()


def test_door_is_shut_on_who_says_nothing(job: SparkJob, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_GUEST_SECONDS_MAX", 0.1)
    with socket.create_connection(address(job), timeout=10) as silent:
        while silent.recv(100):  # the nonce, and then the end
            pass


def test_door_is_open_to_a_task_once(job: SparkJob) -> None:
    come(job, 0)
    soon(lambda: 0 in job._roster.tasks)
    with pytest.raises(EOFError):
        come(job, 0).wait(10)


def test_over_is_a_cluster_whose_task_hangs_up(job: SparkJob, context: Context) -> None:
    first, second = come(job, 0), come(job, 1)
    job.wait_for_tasks(60)
    second.close()
    error = str(lost(job))
    assert "Spark's task of worker 1 (task process 4001 on b) is lost (executor 7: out of memory)" in error
    assert "restart()" in error
    told = first.wait(10)
    assert str(told["end"]) in error, "the others tell their clients the same"
    soon(lambda: context.cancelled == [context.group])
    with pytest.raises(ClusterLostError, match="worker 1"):
        job.wait_ready()


def test_over_is_a_cluster_whose_session_is_stopped_and_another_session_is_asked_for(
    job: SparkJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = come(job, 0), come(job, 1)
    job.wait_for_tasks(60)
    monkeypatch.setattr(module, "is_stopped", lambda context: True)
    first.close()
    second.close()
    error = str(lost(job))
    assert error.startswith("the session of Spark was stopped, and the tasks of the workers with it (Spark's")
    assert "start another one in another session" in error and "restart()" not in error


def test_over_is_a_durable_cluster_too_but_what_it_held_is_in_its_store(context: Context) -> None:
    job = SparkJob(context, 2, Shared(durable="/a/store"))  # type: ignore[arg-type]  # as above
    lines = come(job, 0), come(job, 1)
    job.wait_for_tasks(60)
    lines[1].close()
    error = str(lost(job))
    assert error.endswith("that Spark ran is over. What it held is in its store, /a/store.")
    assert "is gone" not in error
    job.stop()


def test_over_is_a_cluster_whose_worker_fails_and_the_error_is_its_own(job: SparkJob) -> None:
    first, second = come(job, 0), come(job, 1)
    job.wait_for_tasks(60)
    first.say(failed="worker 0 lost worker 1", is_cause=False)
    last_words = "x" * 200_000  # more than a stranger may say
    second.say(failed=f"worker 1 was killed by SIGKILL: {last_words}", is_cause=True)
    assert str(lost(job)).startswith("worker 1 was killed by SIGKILL: xxx")


def test_over_is_told_to_who_asks_before_the_line_thread_has_looked(job: SparkJob) -> None:
    come(job, 0)
    second = come(job, 1)
    job.wait_for_tasks(60)
    with job._changed:  # what it hears it cannot take in yet
        second.close()
        soon(job._has_news)
        with pytest.raises(ClusterLostError, match="worker 1"):
            job.check()


def test_over_is_told_to_who_asks_before_there_is_a_verdict(
    job: SparkJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(roster, "VERDICT_SECONDS_MAX", 0.2)
    first = come(job, 0)
    come(job, 1)
    job.wait_for_tasks(60)
    first.say(failed="worker 0 lost worker 1", is_cause=False)
    soon(lambda: job._roster.is_troubled)
    with pytest.raises(ClusterLostError, match="worker 0 lost worker 1"):
        job.check()


def test_over_is_a_cluster_whose_job_spark_ends(job: SparkJob, context: Context) -> None:
    context.finish("Caused by: there is no room\n\tat a.b.C(D.java:1)")
    error = str(lost(job))
    assert "there is no room" in error and "D.java" not in error


def test_over_is_a_cluster_whose_executors_have_another_python(job: SparkJob, context: Context) -> None:
    context.finish("pyspark.errors [PYTHON_VERSION_MISMATCH] Python in worker has different version")
    with pytest.raises(ClusterLostError, match=r"another Python.*spark\.pyspark\.python"):
        job.wait_for_tasks(60)


def test_late_is_a_job_that_spark_has_no_room_for(job: SparkJob) -> None:
    with pytest.raises(ScheduleError, match="of 4 slots 3 are busy with other jobs"):
        job.wait_for_tasks(0.0)


def test_late_is_no_job_that_spark_has_room_for_unless_python_takes_minutes(
    job: SparkJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "busy_slots", lambda context: 2)
    coming = threading.Timer(0.3, lambda: [come(job, index) for index in range(2)])
    coming.start()
    assert len(job.wait_for_tasks(0.0)) == 2
    coming.join()


def test_late_is_a_job_that_has_room_and_never_comes(job: SparkJob, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "busy_slots", lambda context: 2)
    monkeypatch.setattr(module, "START_SECONDS_MAX", 0.2)
    with pytest.raises(ScheduleError, match="0 of them are there"):
        job.wait_for_tasks(0.0)


def test_late_are_workers_that_never_get_ready(job: SparkJob) -> None:
    lines = [come(job, index) for index in range(2)]
    job.wait_for_tasks(60)
    lines[0].say(ready="tcp://b:0")
    soon(lambda: [task.index for task in job._roster.unready] == [1])
    with pytest.raises(ClusterLostError, match=r"not ready within 0 s: worker 1 \(task process 4001 on b\)"):
        job.wait_ready(0.0)


def test_over_is_over_also_for_a_job_that_ends_late(job: SparkJob, context: Context) -> None:
    """The line thread may have closed its descriptors, which others write to, before anybody looks."""
    with job._changed:
        job._is_stopping = job._is_over = True
    job._threads[1].join(10)
    assert job._is_closed
    context.finish("Spark was stopped")
    job._threads[0].join(10)
    assert not job._threads[0].is_alive()
    job.stop()
    job.check()


def test_no_secret_is_shown(job: SparkJob) -> None:
    assert job.token not in repr(job._task) + repr(vars(job)["_roster"])
