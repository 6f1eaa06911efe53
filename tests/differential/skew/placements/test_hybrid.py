"""D-JB: one message to keep a row and one to look, and more for keys that are split or copied."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from strategies_routing import row_columns

from differential.skew.placements.hybrid import hybrid
from differential.skew.placements.placement import SideRows
from timely.routing.announcement import KEY, RoutingCell, RoutingChanges
from timely.routing.grid import Grid


@given(row_columns())
def test_without_exceptions_a_row_costs_two_messages(rows: SideRows) -> None:
    placement = hybrid(7)
    stores, probes = placement.stores(rows, placement.first), placement.probes(rows, placement.first)
    assert stores.row.tolist() == probes.row.tolist() == list(range(len(rows.side)))
    bucket = rows.key_hash % 1_024
    home = [bucket % 4, 4 + bucket % 3]
    assert stores.unit.tolist() == np.where(rows.side == 0, *home).tolist()
    assert probes.unit.tolist() == np.where(rows.side == 1, *home).tolist()


def test_a_split_key_is_kept_once_and_visited_in_all_shares() -> None:
    placement = hybrid(8)
    table = placement.first.changed(
        RoutingChanges(None, {RoutingCell(KEY, 0, 9): Grid.split([0, 1, 2])}).announcements()
    )
    rows = SideRows(np.array([9, 9, 9]), np.array([0, 2**62, 2**62]), np.array([0, 0, 1]))
    assert placement.stores(rows, table).unit.tolist() == [0, 1, 4 + 9 % 4]
    assert placement.probes(rows, table).row.tolist() == [0, 1, 2, 2, 2]


def test_a_copied_key_is_kept_in_all_copies_and_visited_in_one() -> None:
    placement = hybrid(8)
    table = placement.first.changed(
        RoutingChanges(None, {RoutingCell(KEY, 1, 9): Grid.copied([4, 0])}).announcements()
    )
    rows = SideRows(np.array([9, 9, 9]), np.array([0, 2**62, 2**62]), np.array([0, 0, 1]))
    assert placement.stores(rows, table).row.tolist() == [0, 1, 2, 2]
    assert placement.probes(rows, table).unit.tolist()[:2] == [4, 0]
