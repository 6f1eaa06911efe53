"""What took less of late is how the next call begins; few long calls change nothing."""

from __future__ import annotations

import random

import pytest
from dataflows import word_count

import timely
from timely.client.embedded.threads.pace import Pace
from timely.client.embedded.threads.worker_threads import WorkerThreads
from timely.limits import IN_TURN_ROWS_MAX


def _taken(pace: Pace, in_turn: float, at_once: float, calls: int, rng: random.Random) -> float:
    """Of so many calls, which share began in turn; one in ten takes ten times as long."""
    count = 0
    for _ in range(calls):
        way = pace.begins_in_turn()
        count += way
        mostly = in_turn if way else at_once
        pace.note(way, mostly * (10 if rng.random() < 0.1 else 1) * rng.uniform(0.9, 1.1))
    return count / calls


@pytest.mark.parametrize(("in_turn", "at_once"), [(0.8, 1.3), (2.4, 1.9), (1.9, 1.3), (0.4, 0.9)])
def test_the_shorter_way_is_taken(in_turn: float, at_once: float) -> None:
    share = _taken(Pace(), in_turn, at_once, 2_000, random.Random(1))
    assert share > 0.9 if in_turn < at_once else share < 0.1


def test_it_changes_its_mind_when_things_change() -> None:
    pace, rng = Pace(), random.Random(1)
    assert _taken(pace, 0.5, 1.0, 1_000, rng) > 0.9
    _taken(pace, 3.0, 1.5, 3_000, rng)
    assert _taken(pace, 3.0, 1.5, 1_000, rng) < 0.1
    _taken(pace, 0.5, 1.5, 6_000, rng)
    assert _taken(pace, 0.5, 1.5, 1_000, rng) > 0.9


def test_what_is_alike_is_not_changed_to_and_fro() -> None:
    pace, rng = Pace(), random.Random(1)
    ways = []
    for _ in range(2_000):
        ways.append(pace.begins_in_turn())
        pace.note(ways[-1], rng.uniform(0.9, 1.1))
    changes = sum(one != other for one, other in zip(ways, ways[1:], strict=False))
    assert changes < 2 * len(ways) / 50


@pytest.mark.parametrize("rows", [1, IN_TURN_ROWS_MAX, IN_TURN_ROWS_MAX + 1])
def test_what_is_to_be_done_for_many_rows_begins_at_once_and_says_nothing_of_small_calls(
    rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with timely.connect(workers=2, threads=True) as cluster:
        flow = cluster.install(word_count)
        begun: list[bool] = []
        noted: list[bool] = []
        in_turn = WorkerThreads._work_in_turn
        monkeypatch.setattr(Pace, "begins_in_turn", lambda pace: True)
        monkeypatch.setattr(Pace, "note", lambda pace, way, seconds: noted.append(way))
        monkeypatch.setattr(
            WorkerThreads, "_work_in_turn", lambda pool, until: begun.append(True) or in_turn(pool, until)
        )
        flow.input("lines").insert(["a"] * rows)
        flow.wait(flow.seal())
        is_much = rows > IN_TURN_ROWS_MAX
        assert (not begun, not noted) == (is_much, is_much)
        assert [counts for _, counts in flow.output("counts").changes()] == [("a", rows)]
