"""shapes.py: lengths, moments and shapes, in units of the column that they are used on.

refused_*   what a user may do wrong, and what he is told
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable
from zoneinfo import ZoneInfo

import pytest
from reference.dataflow import run_at_times

import differential as dd
from differential import Collection, col
from differential.errors import SchemaError
from differential.linear.shapes import lengths_of, words_of_length, words_of_moment
from timely.building.dataflow import Dataflow

MINUTE = dt.timedelta(minutes=1)
DAY_ONE = dt.datetime(1970, 1, 2, tzinfo=dt.UTC)


def test_lengths_of_timestamps_are_microseconds_and_those_of_integers_as_they_are() -> None:
    assert words_of_length(MINUTE, dd.timestamp, "x") == 60_000_000
    assert words_of_length(7, dd.integer, "x") == 7
    assert words_of_length(dt.timedelta(weeks=2), dd.date, "x") == 14
    assert words_of_moment(dt.date(1970, 1, 3), dd.date, "x") == 2
    assert words_of_moment(DAY_ONE, dd.timestamp, "x") == 86_400_000_000
    assert words_of_moment(-3, dd.integer, "x") == -3 and words_of_moment(None, dd.timestamp, "x") == 0


@pytest.mark.parametrize("zone", ["UTC", "America/Lima", "Asia/Kathmandu"])
def test_moments_without_a_time_zone_are_utc_wherever_it_runs(
    zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As rows and constants without one."""
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        naive = dt.datetime(1970, 1, 2)
        assert words_of_moment(naive, dd.timestamp, "x") == words_of_moment(DAY_ONE, dd.timestamp, "x")
        at_home = DAY_ONE.astimezone(ZoneInfo("Asia/Tokyo"))
        assert words_of_moment(at_home, dd.timestamp, "x") == words_of_moment(DAY_ONE, dd.timestamp, "x")
        found = run_at_times(
            lambda c: (
                c.filter(col.at >= naive)
                .last("at", MINUTE, clock=dd.clock(naive, MINUTE))
                .window("at", dd.tumbling(days=1, origin=naive))
                .select("at", start=col.window_start)
            ),
            [[((naive,), (0,), 1)]],
            depth=1,
            schemas="at: timestamp",
        )
        assert found == {(0,): {(DAY_ONE, DAY_ONE): 1}, (1,): {(DAY_ONE, DAY_ONE): -1}}
    finally:
        monkeypatch.undo()
        time.tzset()


def test_shapes_say_the_same_however_they_are_written() -> None:
    assert dd.tumbling(minutes=5) == dd.tumbling(5 * MINUTE)
    assert lengths_of(dd.tumbling(hours=1), dd.timestamp) == (3_600_000_000, 3_600_000_000, 0)
    assert lengths_of(dd.sliding(5, 2, origin=1), dd.integer) == (5, 2, 1)
    assert dd.clock(DAY_ONE, seconds=60) == dd.clock(DAY_ONE, MINUTE)


def _refused(build: Callable[[Collection], object]) -> str:
    with pytest.raises(SchemaError) as caught:
        build(dd.input(Dataflow("queries"), "rows", "n: int, at: timestamp, name: string, day: date"))
    return str(caught.value)


def test_refused_lengths_that_do_not_fit_the_column() -> None:
    assert "whole numbers" in _refused(lambda c: c.window("n", dd.tumbling(minutes=5)))
    assert "timedeltas" in _refused(lambda c: c.window("at", dd.tumbling(5)))
    assert "'name' is string" in _refused(lambda c: c.window("name", dd.tumbling(5)))
    assert "whole days, as in days=1" in _refused(lambda c: c.window("day", dd.tumbling(hours=36)))
    assert "timedeltas" in _refused(lambda c: c.window("day", dd.tumbling(7)))
    assert "a moment is a date" in _refused(lambda c: c.window("day", dd.tumbling(days=7, origin=DAY_ONE)))
    assert "a datetime" in _refused(lambda c: c.window("at", dd.tumbling(days=7, origin=DAY_ONE.date())))
    assert "too long" in _refused(lambda c: c.window("day", dd.tumbling(days=2**29)))
    assert "too far" in _refused(lambda c: c.window("n", dd.tumbling(5, origin=2**62)))
    assert "too long" in _refused(lambda c: c.window("n", dd.tumbling(2**62)))
    assert "test_shapes.py" in _refused(lambda c: c.window("n", dd.tumbling(minutes=5)))


def test_refused_lengths_that_are_none() -> None:
    for build in (
        lambda c: dd.tumbling(0),
        lambda c: dd.tumbling(-MINUTE),
        lambda c: dd.sliding(5, 0),
        lambda c: dd.clock(0, 0),
        lambda c: dd.tumbling(5, minutes=3),
        lambda c: dd.tumbling(fortnights=3),
        lambda c: dd.tumbling(),
    ):
        assert "length" in _refused(build), build  # type: ignore[arg-type]


def test_refused_more_windows_for_a_row_than_anyone_wants() -> None:
    assert "1,000,000 windows" in _refused(lambda c: c.window("n", dd.sliding(10**6, 1)))


def test_refused_names_that_are_taken_and_shapes_that_are_none() -> None:
    assert "'n'" in _refused(lambda c: c.window("n", dd.tumbling(5), start="n"))
    assert "start=" in _refused(lambda c: c.window("n", dd.tumbling(5), start="x", end="x"))
    assert "dd.tumbling" in _refused(lambda c: c.window("n", 5))  # type: ignore[arg-type]
