"""Drafts: what lies where after which steps.

load_*     what items contribute, whole, in shares, in copies
follow_*   keys follow their bucket until they are taken out of it
say_*      what is announced in the end, and what it costs
"""

from __future__ import annotations

import numpy as np
import pytest

from differential.skew.placements.hash import home_table
from differential.skew.placements.hybrid import hybrid
from differential.skew.planning.cost import Costs
from differential.skew.planning.draft import Item, RoutingDraft, costs_of
from differential.skew.planning.loads import LoadCounts, Loads, Measure
from timely.errors import MisuseError
from timely.routing.announcement import BUCKET, KEY, RoutingCell, RoutingChanges
from timely.routing.grid import HASH_MAX, Grid
from timely.routing.table import RoutingTable

K = RoutingCell(KEY, 0, 8)
B = RoutingCell(BUCKET, 0, 8)
TABLE = home_table(4)
"""Bucket 8, and with it key 8, is at home on unit 0."""


def draft_of(
    counts: dict[RoutingCell, LoadCounts],
    table: RoutingTable = TABLE,
    measure: Measure = "stored",
    is_cells: bool = False,
) -> RoutingDraft:
    return RoutingDraft(table, TABLE, Loads(counts, 100), measure, is_cells)


def with_grid(place: RoutingCell, grid: Grid) -> RoutingTable:
    return TABLE.changed(RoutingChanges(None, {place: grid}).announcements())


@pytest.mark.parametrize(
    ("measure", "grid", "loads"),
    [
        ("stored", Grid.alone(0), [60, 0, 0, 0]),
        ("stored", Grid.split([0, 1, 2]), [20, 20, 20, 0]),
        ("stored", Grid.split([0, 1, 0]), [40, 20, 0, 0]),
        ("stored", Grid.copied([0, 1, 2]), [60, 60, 60, 0]),
        ("work", Grid.alone(0), [60 + 30 + 90, 0, 0, 0]),
        ("work", Grid.split([0, 1, 2]), [20 + 30 + 30, 80, 80, 0]),
        ("work", Grid.split([0, 1, 0]), [40 + 30 + 60, 80, 0, 0]),
        ("work", Grid.copied([0, 1, 2]), [60 + 10 + 30, 100, 100, 0]),
    ],
)
def test_load_of_a_key_in_all_forms(measure: Measure, grid: Grid, loads: list[int]) -> None:
    draft = draft_of({K: LoadCounts(60, 30, 90)}, with_grid(K, grid), measure)
    assert draft.loads == loads
    assert draft.items[K].grid() == grid


def test_load_in_cells_is_of_both_sides_and_without_pairs_if_rows_are_what_counts() -> None:
    counts = {K: LoadCounts(60, 30, 90)}
    assert draft_of(counts, is_cells=True).loads == [90, 0, 0, 0]
    assert draft_of(counts, measure="work", is_cells=True).loads == [180, 0, 0, 0]
    assert len(draft_of(counts, is_cells=True).items) == 1_024 + 1


def test_load_of_known_hashes_is_exact() -> None:
    hashes = np.array([1, 2, 3, HASH_MAX])
    grid = Grid.split([0, 1], [2, HASH_MAX])
    draft = RoutingDraft(with_grid(K, grid), TABLE, Loads({K: LoadCounts(4)}, 9, {K: hashes}), "stored")
    assert draft.loads == [2, 2, 0, 0]
    draft.move(draft.items[K], 1, 3, 1)
    assert draft.loads == [2, 1, 0, 1]
    assert draft.items[K].grid() == Grid.split([0, 1, 3], [2, 3, HASH_MAX])


def test_load_of_rows_of_one_hash_cannot_be_divided() -> None:
    hashes = np.full(5, HASH_MAX)
    draft = RoutingDraft(TABLE, TABLE, Loads({K: LoadCounts(5)}, 9, {K: hashes}), "stored")
    item = draft.items[K]
    draft.move(item, 0, 1, 2)
    assert sum(draft.loads) == 5
    assert draft.loads[0] in (0, 5)


def test_load_moves_there_and_back() -> None:
    draft = draft_of({K: LoadCounts(60), B: LoadCounts(5)})
    item = draft.items[K]
    draft.move(item, 0, 2, 20)
    assert draft.loads == [45, 0, 20, 0]
    draft.move(item, 2, 0, 20)
    assert draft.loads == [65, 0, 0, 0]
    assert item.grid() == Grid.alone(0)


def test_follow_a_key_goes_with_its_bucket() -> None:
    draft = draft_of({K: LoadCounts(60), B: LoadCounts(5)})
    draft.move(draft.items[B], 0, 3)
    assert draft.loads == [0, 0, 0, 65]
    assert draft.changes() == RoutingChanges(None, {B: Grid.alone(3)})
    assert draft.items[K].home == 3


def test_follow_a_key_that_was_taken_out_stays_and_can_be_called_home() -> None:
    draft = draft_of({K: LoadCounts(60), B: LoadCounts(5)})
    key, bucket = draft.items[K], draft.items[B]
    assert draft.load_on(bucket, 0) == 65
    draft.free(key)
    assert draft.load_on(bucket, 0) == 5
    draft.move(bucket, 0, 3)
    assert draft.loads == [60, 0, 0, 5]
    assert draft.changes().grids == {B: Grid.alone(3), K: Grid.alone(0)}
    draft.call_home(key)
    assert draft.loads == [0, 0, 0, 65]
    assert draft.changes().grids == {B: Grid.alone(3)}


def test_follow_a_bucket_that_is_called_home_brings_its_keys() -> None:
    draft = draft_of({K: LoadCounts(60), B: LoadCounts(5)}, with_grid(B, Grid.alone(2)))
    assert draft.loads == [0, 0, 65, 0]
    draft.call_home(draft.items[B])
    assert draft.loads == [65, 0, 0, 0]
    assert draft.changes().grids == {B: Grid.alone(0)}


def test_follow_keys_of_a_divided_bucket_become_exceptions() -> None:
    draft = draft_of({K: LoadCounts(60), B: LoadCounts(10)})
    bucket = draft.items[B]
    draft.move(bucket, 0, 1, 5)
    assert draft.loads == [65, 5, 0, 0]
    assert set(draft.changes().grids) == {B, K}
    assert draft.excepted() == [draft.items[K]]


def test_say_nothing_where_nothing_changed() -> None:
    table = with_grid(K, Grid.split([0, 1]))
    assert draft_of({K: LoadCounts(60)}, table).changes() == RoutingChanges(None, {})


def test_say_that_an_exception_is_forgotten() -> None:
    draft = draft_of({K: LoadCounts(60)}, with_grid(K, Grid.split([1, 2])))
    draft.call_home(draft.items[K])
    assert draft.changes() == RoutingChanges(None, {K: None})
    assert costs_of(draft, draft.duplicates()).migrated == 60


def _costs(draft: RoutingDraft, change: Item, how: Grid) -> Costs:
    before = draft.duplicates()
    draft.divide_by(change, "copies" if how.copies > 1 else "shares")
    for unit in how.all_units - {0}:
        draft.move(change, 0, unit, change.total // len(how.all_units))
    return costs_of(draft, before)


def test_say_what_shares_and_copies_cost() -> None:
    """Shares: what moves, and each probe once more per share; copies: rows kept once more per copy."""
    draft = draft_of({K: LoadCounts(60, 30, 90)}, measure="work")
    assert _costs(draft, draft.items[K], Grid.split([0, 1, 2])) == Costs(3, 2 * 30, 40)
    draft = draft_of({K: LoadCounts(60, 30, 90)}, measure="work")
    assert _costs(draft, draft.items[K], Grid.copied([0, 1, 2])) == Costs(3, 2 * 60, 2 * 60)
    draft = draft_of({K: LoadCounts(60, 30, 90)}, is_cells=True)
    assert _costs(draft, draft.items[K], Grid.split([0, 1, 2])) == Costs(3, 2 * 30, 40 + 2 * 30)


def test_say_that_grids_of_shares_and_copies_are_not_planned() -> None:
    with pytest.raises(MisuseError, match="no plan is made for what is divided into shares and copies both"):
        draft_of({}, with_grid(K, Grid.even([[0, 1], [2, 3]])))


def test_say_which_places_are_on_a_unit_heaviest_first() -> None:
    first = hybrid(4).first
    draft = RoutingDraft(
        first, first, Loads({K: LoadCounts(60), RoutingCell(KEY, 0, 6): LoadCounts(70)}, 9), "stored"
    )
    assert [item.cell for item in draft.on(0)][:2] == [RoutingCell(BUCKET, 0, 6), RoutingCell(KEY, 0, 6)]
