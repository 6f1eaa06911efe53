"""Announcements: rows of an input that say a change together.

back_*      what is said is understood, in any order, repeated or not
refused_*   rows that contradict one another, or that are no change
"""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies_routing import changes

from timely.errors import MisuseError
from timely.routing.announcement import (
    BUCKET,
    EVERY,
    HOME,
    KEY,
    UNITS,
    Announcement,
    RoutingCell,
    RoutingChanges,
)
from timely.routing.grid import HASH_MAX, Grid

ALONE = Announcement(KEY, 0, 42, 0, 0, HASH_MAX, HASH_MAX, 1)
"""Key 42 of the left side on unit 1."""


@given(changes(7), st.randoms(use_true_random=False))
def test_back_rows_in_any_order_and_twice_say_the_same(said: RoutingChanges, order: random.Random) -> None:
    rows = said.announcements()
    rows += order.sample(rows, len(rows) // 2)
    order.shuffle(rows)
    heard = RoutingChanges.of(rows)
    assert heard.units == said.units
    assert heard.grids == said.grids


def test_back_a_row_is_eight_integers() -> None:
    grid = Grid.split([3, 4], [10, HASH_MAX])
    rows = RoutingChanges(5, {RoutingCell(BUCKET, 1, 9): grid, RoutingCell(KEY, 0, 42): None}).announcements()
    assert [tuple(row) for row in rows] == [
        (UNITS, 0, 0, 0, 0, 0, 0, 5),
        (BUCKET, 1, 9, 0, 0, 10, HASH_MAX, 3),
        (BUCKET, 1, 9, 1, 0, HASH_MAX, HASH_MAX, 4),
        (KEY, 0, 42, 0, 0, HASH_MAX, HASH_MAX, HOME),
    ]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([ALONE, ALONE._replace(unit=2)], "conflicting announcements: key 42 of side 0"),
        ([ALONE, ALONE._replace(unit=HOME)], "conflicting announcements: key 42 of side 0 is called home"),
        ([ALONE, ALONE._replace(copy=1, share_end=9)], "conflicting announcements: key 42 of side 0"),
        ([ALONE._replace(scope=BUCKET, unit=HOME)], "only keys are called home"),
        ([ALONE._replace(share=1)], "the intervals|are no grid"),
        ([ALONE._replace(share_end=5)], "do not cover the hashes"),
        ([ALONE._replace(scope=4)], "scope from 0 to 3"),
        ([ALONE._replace(scope=-1)], "scope from 0 to 3"),
        ([ALONE._replace(side=2)], "side 0 or 1"),
        ([ALONE._replace(key=-1)], "hash of a key is not negative"),
        ([ALONE._replace(scope=BUCKET, key=1_024)], "1024 buckets"),
        ([ALONE._replace(scope=EVERY)], "names no key"),
        (
            [ALONE._replace(scope=EVERY, key=0), ALONE._replace(scope=BUCKET)],
            "all buckets of side 0 and one of",
        ),
        ([Announcement(UNITS, 0, 0, 0, 0, 0, 0, number) for number in (4, 5)], "4, 5. units in one epoch"),
    ],
)
def test_refused_what_contradicts_itself_or_is_no_change(rows: list[Announcement], said: str) -> None:
    with pytest.raises(MisuseError, match=said):
        RoutingChanges.of(rows)
