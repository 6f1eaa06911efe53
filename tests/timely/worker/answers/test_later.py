"""An answer that is not known yet: known now, within so many seconds, or at any time."""

from __future__ import annotations

import pytest

from timely.errors import TimelyError, WaitTimeoutError
from timely.wire.requests import Reply
from timely.worker.answers.later import Later, now_or_later


def never() -> Reply | None:
    return None


def late() -> TimelyError:
    return WaitTimeoutError("late")


def test_what_is_ready_is_not_waited_for() -> None:
    assert now_or_later(Reply, late, 5.0, 1.0) == Reply()


@pytest.mark.parametrize(
    ("seconds", "deadline"), [(2.5, 7.5), (0.0, 5.0), (-1.0, float("inf"))], ids=["soon", "at once", "ever"]
)
def test_a_deadline_is_so_many_seconds_from_now_or_never(seconds: float, deadline: float) -> None:
    assert now_or_later(never, late, 5.0, seconds) == Later(never, late, deadline)
