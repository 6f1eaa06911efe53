"""Alarms: moments and rings, each once."""

from __future__ import annotations

import time
from math import inf

from timely.operators.alarms import Alarms, seconds_to_alarm


class Dataflow:
    """Has alarms."""

    def __init__(self) -> None:
        self.alarms = Alarms()


def test_moments_that_have_come_and_rings_are_taken_once_in_the_order_of_stages() -> None:
    alarms, now = Alarms(), time.monotonic()
    assert not alarms.are_due and alarms.take() == []
    for stage, moment in ((3, now), (1, now - 1), (3, now - 2), (2, now + 1_000), (4, None)):
        alarms.set(stage, moment)
    assert alarms.are_due and alarms.stages() == [1, 2, 3, 4]
    assert alarms.take() == [1, 3, 4]
    assert not alarms.are_due and alarms.stages() == [2]
    alarms.drop()
    assert alarms.stages() == []


def test_moments_may_come_at_any_time_where_somebody_tries_all_orders() -> None:
    alarms, now = Alarms(), time.monotonic()
    for moment in (now + 3_000, now + 1_000, now + 2_000, None):
        alarms.set(7, moment)
    before = alarms.compared()
    alarms.take_of(7)
    assert not alarms.rung and alarms.compared() != before, "what was rung for comes first"
    alarms.take_of(7)
    assert [moment for moment, _ in alarms.moments] == [now + 2_000, now + 3_000], "then the first moment"


def test_a_worker_may_sleep_until_the_first_moment_of_all_its_dataflows() -> None:
    one, other = Dataflow(), Dataflow()
    assert seconds_to_alarm([one, other]) == inf
    one.alarms.set(1, time.monotonic() + 1_000)
    other.alarms.set(1, time.monotonic() + 500)
    assert 400 < seconds_to_alarm([one, other]) <= 500
    other.alarms.set(1, time.monotonic() - 1)
    assert seconds_to_alarm([one, other]) == 0.0
    other.alarms.take()
    one.alarms.rung.add(5)
    assert seconds_to_alarm([one, other]) == 0.0
