"""roster.py: the tasks of a job, and which loss explains the others.

told_*      the one trouble that clients hear of
"""

from __future__ import annotations

import itertools

import pytest

from timely.limits import VERDICT_SECONDS_MAX
from timely.spark.scheduled.roster import End, Roster, Task

KILLED = {"failed": "worker 1 was killed by SIGKILL", "is_cause": True}
HAS_LOST = {"failed": "worker 0 lost worker 1", "is_cause": False}


@pytest.fixture
def roster() -> Roster:
    made = Roster(2)
    for index in (1, 0):
        assert made.comes(Task(index, "host", 4711 + index))
        made.says(index, {"ready": f"tcp://host:{7000 + index}"}, 0.0)
    return made


def test_complete_once_all_have_come_and_ready_once_all_workers_are() -> None:
    made = Roster(2)
    assert made.comes(Task(1)) and not made.is_complete
    assert not made.comes(Task(1)), "it has come before"
    assert not made.comes(Task(2)) and not made.comes(Task(-1)), "there is no such task"
    assert made.comes(Task(0)) and made.is_complete and not made.is_ready
    made.says(1, {"ready": "tcp://b:2"}, 0.0)
    assert [task.index for task in made.unready] == [0]
    made.says(0, {"ready": "tcp://a:1"}, 0.0)
    assert made.is_ready and made.addresses == ["tcp://a:1", "tcp://b:2"]


def test_told_nothing_while_nothing_has_happened(roster: Roster) -> None:
    assert not roster.is_troubled and roster.verdict(1e9) is None


def test_told_is_the_cause_in_whatever_order_the_news_come() -> None:
    """What explains itself is told at once, anything else after a moment in which the cause may come."""
    events = {
        End.FAILED: lambda roster: roster.says(1, KILLED, 10.0),
        End.HAS_LOST: lambda roster: roster.says(0, HAS_LOST, 10.0),
        End.JOB_OVER: lambda roster: roster.job_ends("Spark says no", 10.0),
    }
    for order in itertools.permutations(events):
        made = Roster(2)
        made.comes(Task(0))
        made.comes(Task(1))
        for kind in order:
            events[kind](made)
        verdict = made.verdict(10.0)
        assert verdict is not None and verdict.end == End.FAILED and "SIGKILL" in verdict.text, order


def test_told_is_the_lost_task_and_not_the_workers_that_ended_with_it(roster: Roster) -> None:
    roster.says(0, {"ended": True}, 10.0)
    assert roster.is_troubled and roster.verdict(10.0) is None, "somebody may know better"
    roster.hangs_up(1, 10.2)
    verdict = roster.verdict(10.2)
    assert verdict is not None and verdict.end == End.GONE and verdict.index == 1
    assert "worker 1 (task process 4712 on host)" in verdict.text


def test_told_after_a_moment_is_what_is_known(roster: Roster) -> None:
    roster.says(0, HAS_LOST, 10.0)
    assert roster.verdict(10.0 + VERDICT_SECONDS_MAX / 2) is None
    roster.says(1, {"ended": True}, 10.0 + VERDICT_SECONDS_MAX / 2)  # it lets nobody wait for longer
    late = roster.verdict(10.0 + VERDICT_SECONDS_MAX)
    assert late is not None and late.text == "worker 0 lost worker 1"


def test_a_task_that_has_said_its_end_may_hang_up(roster: Roster) -> None:
    roster.says(1, HAS_LOST, 10.0)
    roster.hangs_up(1, 10.1)
    late = roster.verdict(20.0)
    assert late is not None and late.end == End.HAS_LOST
