"""The law of placements: two rows that may match meet exactly once.

law_*      for every scheme, its first version and whatever changes follow
moves_*    behind a change all kept rows lie where the new version wants them
refused_*  changes that would break the law
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.skew.meetings import units_by_row, wrong_meetings
from strategies_routing import changes, grids, row_columns, tables

from differential.skew.placements.biclique import biclique
from differential.skew.placements.groups import grouped
from differential.skew.placements.hash import hash_placement
from differential.skew.placements.hybrid import hybrid
from differential.skew.placements.matrix import matrix, matrix_table
from differential.skew.placements.placement import Placement, SideRows
from timely.errors import MisuseError
from timely.routing.announcement import EVERY, KEY, RoutingCell, RoutingChanges
from timely.routing.grid import Grid
from timely.routing.table import RoutingTable

SCHEMES = {
    "hash": hash_placement,
    "JB": biclique,
    "JB6": grouped,
    "D-JB": hybrid,
    "matrix": matrix,
}
UNITS = st.sampled_from([2, 3, 7, 8, 12, 64, 256])
BY_KEY = st.sampled_from(["hash", "JB6", "D-JB"])


@pytest.mark.parametrize("scheme", SCHEMES)
@given(units=UNITS, rows=row_columns())
def test_law_two_rows_that_may_match_meet_once_to_begin_with(scheme: str, units: int, rows: SideRows) -> None:
    placement = SCHEMES[scheme](units)
    assert placement.name == scheme
    assert wrong_meetings(placement, rows, placement.first) == []


@given(BY_KEY, tables(7), row_columns())
def test_law_two_rows_of_a_key_meet_once_whatever_the_table(
    scheme: str, table: RoutingTable, rows: SideRows
) -> None:
    assert wrong_meetings(SCHEMES[scheme](7), rows, table) == []


@given(st.sampled_from(["JB", "matrix"]), st.data(), row_columns())
def test_law_any_two_rows_meet_once_whatever_the_grids(
    scheme: str, data: st.DataObject, rows: SideRows
) -> None:
    """Those that the scheme allows: one for all keys of a side."""
    placement = SCHEMES[scheme](8)
    grid = matrix_table(8, data.draw(st.sampled_from([1, 2, 4, 8]))).buckets[0][0]
    said: dict[RoutingCell, Grid | None] = {RoutingCell(EVERY, 0, 0): grid}
    if scheme == "JB":
        said = {RoutingCell(EVERY, side, 0): data.draw(grids(8)) for side in (0, 1)}
    table = placement.changed(placement.first, RoutingChanges(None, said).announcements())
    assert placement.meets_all
    assert wrong_meetings(placement, rows, table) == []


def test_law_a_judge_that_sees_meetings_sees_wrong_ones() -> None:
    """A grid of two shares and two copies with one unit everywhere, which no announcement can make."""
    wrong = Grid(((0, 1), (1, 0)), Grid.split([0, 1]).share_ends, Grid.split([0, 1]).share_ends)
    table = RoutingTable.of(2, [wrong], [wrong])
    rows = SideRows(np.array([5, 5]), np.array([0, 0]), np.array([0, 1]))
    assert wrong_meetings(hybrid(2), rows, table) != []


@given(st.sampled_from(["hash", "D-JB"]), tables(7), st.data(), row_columns())
def test_moves_put_all_kept_rows_where_the_new_version_wants_them(
    scheme: str, old: RoutingTable, data: st.DataObject, rows: SideRows
) -> None:
    placement = SCHEMES[scheme](7)
    new = placement.changed(old, data.draw(changes(7)).announcements())
    kept = [set(units) for units in units_by_row(placement.stores(rows, old), len(rows.side))]
    moves = placement.moves(rows, old, new)
    for row, unit, source in zip(*moves.arrivals, moves.sources, strict=True):
        assert source in kept[row]
        assert unit not in kept[row]
    for row, unit in zip(*moves.drops, strict=True):
        kept[row].remove(unit)
    for row, unit in zip(*moves.arrivals, strict=True):
        kept[row].add(unit)
    expected = units_by_row(placement.stores(rows, new), len(rows.side))
    assert kept == [set(units) for units in expected]


@given(tables(7), row_columns())
def test_moves_are_none_where_nothing_changes(table: RoutingTable, rows: SideRows) -> None:
    moves = hybrid(7).moves(rows, table, table)
    assert moves.arrivals.row.size == moves.sources.size == moves.drops.row.size == 0


def test_moves_of_a_changed_split_are_the_difference_only() -> None:
    """Half of a key's rows lay on unit 0, now two thirds do: a sixth of them moves, in one direction."""
    placement = hybrid(4)
    count = 6_000
    rows = SideRows(
        np.full(count, 9), np.linspace(0, 2**63 - 2**12, count).astype(np.int64), np.zeros(count, np.int64)
    )
    half, third = (
        placement.first.changed(
            RoutingChanges(None, {RoutingCell(KEY, 0, 9): Grid.split(units)}).announcements()
        )
        for units in ([0, 1], [0, 0, 1])
    )
    moves = placement.moves(rows, half, third)
    assert abs(moves.arrivals.row.size - 1_000) <= 2
    assert set(moves.arrivals.unit.tolist()) == {0}
    assert set(moves.sources.tolist()) == {1}


def _refused(placement: Placement, place: RoutingCell, grid: Grid, said: str) -> None:
    with pytest.raises(MisuseError, match=f"^{placement.name}: {said}"):
        placement.changed(placement.first, RoutingChanges(None, {place: grid}).announcements())


def test_refused_a_key_of_its_own_where_any_two_rows_meet() -> None:
    _refused(
        biclique(8),
        RoutingCell(KEY, 0, 9),
        Grid.alone(3),
        "any two rows meet, so all keys of a side have one",
    )
    _refused(
        matrix(8), RoutingCell(KEY, 0, 9), Grid.alone(3), "any two rows meet, so all keys of a side have one"
    )
    _refused(
        biclique(8), RoutingCell(0, 1, 9), Grid.alone(3), "any two rows meet, so all keys of a side have one"
    )


def test_refused_a_grid_of_cells_that_is_no_power_of_two() -> None:
    _refused(
        matrix(8), RoutingCell(EVERY, 0, 0), Grid.even([[0, 1], [2, 3], [4, 5]]), "a grid has a power of two"
    )
    _refused(matrix(8), RoutingCell(EVERY, 0, 0), Grid.even([[0, 1, 2]]), "a grid has a power of two")
