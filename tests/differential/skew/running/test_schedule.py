"""schedule.py: which version holds when, and when that is known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from differential.columns.column_types import Int64s
from differential.skew.balance import Balance
from differential.skew.running.schedule import ANNOUNCED, Change, Schedule
from progress.times.anchor import Anchor, Rebase
from timely.errors import MisuseError
from timely.operators.capture import FOREVER
from timely.routing.announcement import KEY, Announcement, RoutingCell, RoutingChanges
from timely.routing.grid import Grid

SHIFT = 4
PLACEMENT = Balance("D-JB", units=4).placement


def _said(rows: list[Announcement], epoch: int, diff: int = 1) -> Int64s:
    return np.array([(*row, epoch << SHIFT, diff) for row in rows], np.int64).T.copy()


def _moved(key: int, unit: int) -> list[Announcement]:
    return RoutingChanges(None, {RoutingCell(KEY, 0, key): Grid.alone(unit)}).announcements()


def test_columns_are_those_of_an_announcement() -> None:
    assert ANNOUNCED.names == Announcement._fields and ANNOUNCED.width == 8


def test_versions_hold_from_lead_epochs_after_their_own_on_and_are_known_before() -> None:
    schedule = Schedule(PLACEMENT, 3, SHIFT)
    assert schedule.known_before == 3 and schedule.starts() == []
    schedule.note(_said(_moved(7, 2), 5))
    schedule.note(_said(_moved(7, 1), 4))
    assert schedule.starts() == [7, 8]
    assert schedule.complete(4) == [] and schedule.known_before == 7
    first, second = schedule.complete(6)
    assert (first.start, second.start) == (7, 8) and first.new is second.old
    assert [schedule.versions.at(epoch).grid_of(0, 7).units for epoch in (6, 7, 8, 99)] == [
        PLACEMENT.first.grid_of(0, 7).units, ((1,),), ((2,),), ((2,),)
    ]  # fmt: skip
    schedule.complete(FOREVER)
    assert schedule.known_before == FOREVER


def test_what_comes_in_parts_and_twice_counts_together_and_once() -> None:
    schedule = Schedule(PLACEMENT, 0, SHIFT)
    rows = RoutingChanges(None, {RoutingCell(KEY, 1, 9): Grid.split([0, 1, 3])}).announcements()
    for part in (rows[:1], rows[1:], rows[:2]):
        schedule.note(_said(part, 0))
    (change,) = schedule.complete(1)
    assert change.start == 0 and schedule.versions.at(0).grid_of(1, 9) == Grid.split([0, 1, 3])


def test_an_announcement_that_is_taken_back_in_its_epoch_was_never_made() -> None:
    schedule = Schedule(PLACEMENT, 2, SHIFT)
    schedule.note(_said(_moved(7, 2), 1))
    schedule.note(_said(_moved(7, 2), 1, -1))
    assert schedule.complete(9) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (_said(_moved(7, 1), 2, -1), "epoch 2 takes one back"),
        (_said(_moved(7, 1) + _moved(7, 2), 2), "announcements of epoch 2: conflicting announcements"),
        (_said(_moved(7, 4), 2), "announcements of epoch 2: .*unit 4; there are units 0 to 3"),
    ],
)
def test_what_cannot_be_is_refused_with_its_epoch_and_changes_nothing(words: Int64s, message: str) -> None:
    schedule = Schedule(PLACEMENT, 2, SHIFT)
    schedule.note(words)
    with pytest.raises(MisuseError, match=message):
        schedule.complete(9)
    assert schedule.versions.tables == (PLACEMENT.first,)


def test_versions_that_nobody_asks_about_are_forgotten() -> None:
    schedule = Schedule(PLACEMENT, 1, SHIFT)
    for epoch in range(4):
        schedule.note(_said(_moved(7, epoch), epoch))
    schedule.complete(9)
    assert len(schedule.versions.tables) == 5
    schedule.forget_before(3)
    assert len(schedule.versions.tables) == 2 and schedule.versions.at(3).grid_of(0, 7).units == ((2,),)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 4)), max_size=9),
    st.integers(0, 5),
)
def test_says_the_same_of_epochs_that_count_from_a_later_one(
    steps: list[tuple[int, int, int]], lead: int
) -> None:
    """Each step: epochs until the next announcement; its unit; by how much what is complete is moved over."""
    anchor = Anchor()
    plain, moved = Schedule(PLACEMENT, lead, SHIFT), Schedule(PLACEMENT, lead, SHIFT, anchor)
    epoch = 0
    for later, unit, by in steps:
        epoch += later
        plain.note(_said(_moved(7, unit), epoch))
        moved.note(_said(_moved(7, unit), epoch - anchor.epoch))
        epoch += 1
        if by > 3:  # nobody has asked since: what was noted is of an epoch before
            _move(moved, anchor, epoch)
        wanted, found = plain.complete(epoch), moved.complete(epoch - anchor.epoch)
        assert [_later(change, anchor) for change in wanted] == found
        assert moved.starts() == [] and moved.known_before == max(plain.known_before - anchor.epoch, 0)
        _move(moved, anchor, min(anchor.epoch + by, epoch))
        base = anchor.epoch
        for asked in range(12):
            assert moved.versions.at(asked) == plain.versions.at(base + asked), (base, asked)
    moved.complete(FOREVER)
    _move(moved, anchor, anchor.epoch + 1)
    assert moved.known_before == FOREVER


def _later(change: Change, anchor: Anchor) -> Change:
    return change._replace(start=max(change.start - anchor.epoch, 0))


def _move(schedule: Schedule, anchor: Anchor, epoch: int) -> None:
    if epoch > anchor.epoch:
        schedule.rebase(Rebase(epoch - anchor.epoch, SHIFT))
        anchor.epoch = epoch


def test_refused_after_words_count_from_a_later_epoch_it_is_named_as_it_was_given() -> None:
    anchor = Anchor()
    schedule = Schedule(PLACEMENT, 2, SHIFT, anchor)
    _move(schedule, anchor, 1_000_000)
    schedule.note(_said(_moved(7, 4), 2))
    with pytest.raises(MisuseError, match="announcements of epoch 1000002: .*unit 4"):
        schedule.complete(9)


def test_noted_before_the_anchor_a_version_is_to_come_from_the_first_epoch_on() -> None:
    anchor = Anchor()
    schedule = Schedule(PLACEMENT, 2, SHIFT, anchor)
    schedule.note(_said(_moved(7, 1), 3))
    schedule.note(_said(_moved(7, 2), 9))
    _move(schedule, anchor, 8)
    assert schedule.starts() == [0, 3]
    assert [change.start for change in schedule.complete(2)] == [0, 3]
