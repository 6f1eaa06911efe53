"""keeping.py: who starts the workers of a durable cluster in Spark again; jobs are played here.

again_*   after a loss, at the same addresses, as often as there is hope
ends_*    what is no use to try, and what a program asks for
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import cast

import pytest

from timely.durable.answers.asking import fulfil, is_for_answers, requests_in
from timely.durable.answers.manifest import declare
from timely.durable.folder_store import FolderStore
from timely.errors import PeerError, StoreError
from timely.limits import RESTARTS_COUNT_MAX
from timely.spark.errors import ClusterLostError, SparkLostError
from timely.spark.scheduled import keeping
from timely.spark.scheduled.job import SparkJob
from timely.spark.scheduled.keeping import JobKeeper


class Job:
    """A job that fails when it is told to."""

    def __init__(self, number: int) -> None:
        self.addresses = [f"tcp://host:{number}"]
        self.is_in_vain = False
        self.failure: Exception | None = None
        self.is_stopped = False
        self._receiving, self._sending = os.pipe()

    @property
    def descriptors(self) -> list[int]:
        return [self._receiving] if self.failure is None else []

    def fail(self, error: Exception) -> None:
        self.failure = error
        os.write(self._sending, b"!")

    def check(self) -> None:
        if self.failure is not None:
            raise self.failure

    def stop(self) -> None:
        self.is_stopped = True


class Jobs:
    """Starts them; `refusals` are raised in place of the next ones."""

    def __init__(self) -> None:
        self.made: list[Job] = []
        self.before: list[Sequence[str]] = []
        self.refusals: list[Exception] = []
        self.may_start = threading.Event()
        self.may_start.set()

    def __call__(self, before: Sequence[str], note: Callable[[SparkJob], None]) -> SparkJob:
        self.before.append(list(before))
        job = Job(len(self.made))
        note(cast("SparkJob", job))
        self.may_start.wait(10)
        if self.refusals:
            raise self.refusals.pop(0)
        if job.is_stopped:
            raise ClusterLostError("the cluster was closed")
        self.made.append(job)
        return cast("SparkJob", job)


@pytest.fixture
def jobs() -> Jobs:
    return Jobs()


@pytest.fixture
def keeper(jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[JobKeeper]:
    monkeypatch.setattr(keeping, "_PAUSE_SECONDS", 0.001)
    keeper = JobKeeper(str(tmp_path / "store"), jobs)
    yield keeper
    keeper.stop()


def soon(has: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not has():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def is_whole(keeper: JobKeeper) -> bool:
    try:
        keeper.check()
    except PeerError:
        return False
    return True


def test_again_the_workers_are_there_at_the_addresses_of_before(keeper: JobKeeper, jobs: Jobs) -> None:
    jobs.may_start.clear()
    jobs.made[0].fail(ClusterLostError("worker 0 was killed"))
    soon(lambda: not is_whole(keeper))
    assert keeper.starts_again and not keeper.descriptors and not keeper.knows_best
    with pytest.raises(ClusterLostError, match="worker 0 was killed"):
        keeper.check()
    jobs.may_start.set()
    soon(lambda: is_whole(keeper))
    assert jobs.before == [[], ["tcp://host:0"]] and list(keeper.addresses) == ["tcp://host:1"]
    assert jobs.made[0].is_stopped and not jobs.made[1].is_stopped
    assert keeper.job is cast("SparkJob", jobs.made[1])


def test_again_also_if_spark_has_no_room_at_first(keeper: JobKeeper, jobs: Jobs) -> None:
    jobs.refusals = [ClusterLostError("not ready"), ClusterLostError("not scheduled")]
    jobs.made[0].fail(ClusterLostError("worker 0 was killed"))
    soon(lambda: len(jobs.made) == 2 and is_whole(keeper))
    assert jobs.before == [[], *[["tcp://host:0"]] * 3]


def test_ends_if_workers_fall_again_and_again(keeper: JobKeeper, jobs: Jobs) -> None:
    jobs.refusals = [ClusterLostError(f"no {number}") for number in range(RESTARTS_COUNT_MAX + 3)]
    jobs.made[0].fail(ClusterLostError("worker 0 was killed"))
    soon(lambda: not keeper.starts_again)
    with pytest.raises(ClusterLostError, match=r"^no \d\n  The workers have ended \d times in a row"):
        keeper.check()
    assert jobs.refusals, "there were more"


@pytest.mark.parametrize(
    ("error", "is_in_vain", "why"),
    [
        (
            SparkLostError("the Java process of Spark was killed"),
            False,
            "Spark has ended, and starts no worke",
        ),
        (ClusterLostError("worker 0 is lost"), True, "Spark has ended, and starts no workers"),
        (ClusterLostError("worker 0 failed: FencedError: gone"), False, "Another cluster has taken over"),
    ],
)
def test_ends_where_there_is_no_hope(
    keeper: JobKeeper, jobs: Jobs, error: Exception, is_in_vain: bool, why: str
) -> None:
    jobs.made[0].is_in_vain = is_in_vain
    jobs.made[0].fail(error)
    soon(lambda: not keeper.starts_again)
    with pytest.raises(type(error), match=why):
        keeper.check()
    assert len(jobs.made) == 1 and jobs.made[0].is_stopped


def test_ends_while_workers_are_starting(keeper: JobKeeper, jobs: Jobs) -> None:
    jobs.may_start.clear()
    jobs.made[0].fail(ClusterLostError("worker 0 was killed"))
    soon(lambda: len(jobs.before) == 2)
    threading.Timer(0.05, jobs.may_start.set).start()
    keeper.stop()
    assert len(jobs.made) == 1 and not keeper.starts_again
    keeper.stop()


def test_ends_with_the_store_left_to_others(jobs: Jobs, tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    first = JobKeeper(store, jobs)
    with pytest.raises(StoreError, match="is this program itself"):
        JobKeeper(store, jobs)
    first.stop()
    jobs.refusals = [ClusterLostError("no room")]
    with pytest.raises(ClusterLostError, match="no room"):
        JobKeeper(store, jobs)
    free = FolderStore(store)
    free.lock()
    free.unlock()
    assert len(jobs.made) == 1


def test_ends_once_the_last_answers_are_stored(keeper: JobKeeper, jobs: Jobs, tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "store")
    declare(store, 0, "orders", "totals")
    ending = threading.Thread(target=keeper.stop)
    ending.start()
    soon(lambda: len(requests_in(store)) == 1)
    assert not jobs.made[0].is_stopped and is_for_answers(requests_in(store)[0])
    fulfil(store, requests_in(store))  # as workers do
    ending.join(10)
    assert not ending.is_alive() and jobs.made[0].is_stopped
    keeper.stop()
    assert requests_in(store) == [], "nobody would store anything any more"


@pytest.mark.parametrize("how", ["Spark has ended", "the workers are lost"])
def test_ends_without_waiting_for_answers_that_nobody_stores(
    how: str, keeper: JobKeeper, jobs: Jobs, tmp_path: Path
) -> None:
    declare(FolderStore(tmp_path / "store"), 0, "orders", "totals")
    if how == "Spark has ended":
        jobs.made[0].is_in_vain = True
    else:
        jobs.may_start.clear()
        jobs.made[0].fail(ClusterLostError("worker 0 was killed"))
        soon(lambda: not is_whole(keeper))
        threading.Timer(0.05, jobs.may_start.set).start()
    began = time.monotonic()
    keeper.stop()
    assert time.monotonic() - began < 5
