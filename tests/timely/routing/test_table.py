"""Routing tables and their versions.

rows_*      a table as rows and back
change_*    what a change does, and what it leaves
refused_*   a change that cannot be leaves everything as it was
version_*   which table an epoch sees
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies_routing import KEYS, changes, tables

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
from timely.routing.table import RoutingTable, RoutingVersions


def one(place: RoutingCell, grid: Grid | None, units: int | None = None) -> list[Announcement]:
    return RoutingChanges(units, {place: grid}).announcements()


PLAIN = RoutingTable.of(4, [Grid.alone(0), Grid.alone(1)], [Grid.alone(2), Grid.alone(3)])


@given(tables(7), changes(7))
def test_change_touches_what_it_names_and_nothing_else(table: RoutingTable, said: RoutingChanges) -> None:
    after = table.changed(said.announcements())
    for side in (0, 1):
        every = said.grids.get(RoutingCell(EVERY, side, 0))
        for key in (*KEYS, 2, 3_000):
            own, bucket = RoutingCell(KEY, side, key), RoutingCell(BUCKET, side, key % 1_024)
            excepted = table.exceptions[side].get(key)
            expected = said.grids.get(own, excepted)
            if expected is None:
                expected = said.grids.get(bucket) or every or table.buckets[side][key % 1_024]
            assert after.grid_of(side, key) == expected


def test_change_a_key_called_home_follows_its_bucket_again() -> None:
    away = PLAIN.changed(one(RoutingCell(KEY, 0, 6), Grid.alone(3)))
    assert away.grid_of(0, 6) == Grid.alone(3)
    assert away.grid_of(1, 6) == Grid.alone(2)
    assert away.changed(one(RoutingCell(KEY, 0, 6), None)) == PLAIN


def test_change_units_appear_and_are_used_in_one_epoch() -> None:
    more = PLAIN.changed(one(RoutingCell(KEY, 0, 6), Grid.alone(5), units=6))
    assert more.units == 6
    assert more.grid_of(0, 6) == Grid.alone(5)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (
            one(RoutingCell(KEY, 0, 6), Grid.alone(4)),
            "key 6 of side 0 is sent to unit 4; there are units 0 to 3",
        ),
        (one(RoutingCell(BUCKET, 1, 9), Grid.alone(-2)), "bucket 9 of side 1 is sent to unit -2"),
        (one(RoutingCell(KEY, 0, 6), Grid.alone(1), units=3), "bucket 1 of side 1 is sent to unit 3"),
        ([Announcement(UNITS, 0, 0, 0, 0, 0, 0, 0)], "there are 1 to 256 units, not 0"),
        ([Announcement(UNITS, 0, 0, 0, 0, 0, 0, 257)], "there are 1 to 256 units, not 257"),
        (
            [*one(RoutingCell(KEY, 0, 6), Grid.alone(1)), *one(RoutingCell(KEY, 0, 6), Grid.alone(2))],
            "conflicting",
        ),
        ([*one(RoutingCell(KEY, 0, 6), None), *one(RoutingCell(KEY, 0, 6), Grid.alone(2))], "conflicting"),
        ([Announcement(KEY, 0, 6, 0, 0, 3, HASH_MAX, 1)], "do not cover"),
        ([Announcement(EVERY, 0, 0, 0, 0, HASH_MAX, HASH_MAX, HOME)], "only keys are called home"),
    ],
)
def test_refused_changes_leave_the_state_untouched(rows: list[Announcement], said: str) -> None:
    versions = RoutingVersions.begin(PLAIN)
    with pytest.raises(MisuseError, match=said):
        versions.changed(5, rows)
    assert versions == RoutingVersions.begin(PLAIN)


@pytest.mark.parametrize("units", [-1, 0, 257])
def test_refused_no_table_of_no_units_or_too_many(units: int) -> None:
    with pytest.raises(MisuseError, match=f"1 to 256 units, not {units}"):
        RoutingTable.of(units, [Grid.alone(0)], [Grid.alone(0)])


@given(
    st.lists(st.integers(1, 9), unique=True, max_size=4).map(sorted), st.lists(st.integers(0, 12), min_size=1)
)
def test_version_is_the_last_that_began(starts: list[int], epochs: list[int]) -> None:
    versions = RoutingVersions.begin(PLAIN)
    for number, start in enumerate(starts):
        versions = versions.changed(start, one(RoutingCell(KEY, 0, number), Grid.alone(3)))
    expected = [sum(start <= epoch for start in starts) for epoch in epochs]
    assert versions.index_of(np.array(epochs)).tolist() == expected
    assert [len(versions.at(epoch).exceptions[0]) for epoch in epochs] == expected
    forgotten = versions.since(epochs[0])
    for epoch in range(epochs[0], 13):
        assert forgotten.at(epoch) is versions.at(epoch)
    assert len(forgotten.tables) == len(starts) + 1 - expected[0]
