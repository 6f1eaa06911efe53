"""checking.py: what Spark has to be like; refused within seconds, naming the setting.

refused_*    and how to mend it
awaited_*    executors that are still to come
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from timely.spark.errors import ScheduleError
from timely.spark.scheduled import checking
from timely.spark.scheduled.checking import check_settings, check_slots


class Conf:
    """In place of Spark's settings."""

    def __init__(self, **settings: str) -> None:
        self._settings = {name.replace("_", "."): value for name, value in settings.items()}

    def get(self, name: str) -> str | None:
        return self._settings.get(name)


class Session:
    """In place of a session with these settings."""

    def __init__(self, **settings: str) -> None:
        self._conf = Conf(**settings)

    @property
    def sparkContext(self) -> Session:
        return self

    def getConf(self) -> Conf:
        return self._conf


def counts(*found: int) -> Callable[[SparkContext], int]:
    """Slots as they are found one time after another; the last number from then on."""
    numbers: Iterator[int] = iter(found)
    return lambda context: next(numbers, found[-1])


def context(**settings: str) -> SparkContext:
    return Session(**settings)  # type: ignore[return-value]  # as much of a context as is asked


def test_refused_is_dynamic_allocation() -> None:
    session: SparkSession = Session(spark_dynamicAllocation_enabled="TRUE")  # type: ignore[assignment]
    with pytest.raises(ScheduleError, match=r"spark\.dynamicAllocation\.enabled is true.*Set it to false"):
        check_settings(session, 2)


def test_refused_is_a_session_that_was_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "is_stopped", lambda context: True)
    session: SparkSession = Session()  # type: ignore[assignment]
    with pytest.raises(ScheduleError, match="was stopped: make another one, by SparkSession.builder"):
        check_settings(session, 2)


def test_refused_is_a_session_of_spark_connect() -> None:
    class Connect:
        @property
        def sparkContext(self) -> None:
            raise RuntimeError("[JVM_ATTRIBUTE_NOT_SUPPORTED]")

    with pytest.raises(ScheduleError, match="Spark Connect"):
        check_settings(Connect(), 2)  # type: ignore[arg-type]


def test_refused_are_fewer_slots_than_workers_and_one_that_feeds() -> None:
    begun = time.monotonic()
    with pytest.raises(ScheduleError, match=r"need 3 slots, and Spark has 2 after.*spark.master.*local\[2\]"):
        check_slots(context(spark_master="local[2]"), 2, seconds=0.3, count=counts(2))
    assert time.monotonic() - begun < 10
    with pytest.raises(ScheduleError, match=r"spark\.executor\.cores is 1, spark\.cores\.max is not set"):
        check_slots(context(spark_executor_cores="1"), 2, seconds=0.0, count=counts(2))


def test_refused_are_slots_that_other_clusters_hold() -> None:
    with pytest.raises(ScheduleError, match=r"has 4, 2 of them for other clusters of this program"):
        check_slots(context(), 2, taken=2, seconds=0.0, count=counts(4))


def test_awaited_are_executors_that_come_one_by_one() -> None:
    assert check_slots(context(), 3, seconds=0.15, count=counts(0, 1, 1, 2, 2, 3, 3, 4)) == 4


def test_awaited_is_the_first_executor_for_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    assert check_slots(context(), 1, seconds=0.0, count=counts(0, 0, 0, 2)) == 2
    monkeypatch.setattr(checking, "FIRST_SECONDS_MAX", 0.2)
    with pytest.raises(ScheduleError, match="Spark has 0"):
        check_slots(context(), 1, seconds=0.0, count=counts(0))
