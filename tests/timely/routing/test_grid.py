"""Grids of units: where a row is kept, and where it is looked for.

law_*     a kept row and a visiting one have one unit in common
shape_*   what is a grid
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies_routing import ROW_HASHES, grids

from timely.errors import MisuseError
from timely.routing.grid import HASH_MAX, Grid, even_ends

HASHES = st.sampled_from(ROW_HASHES) | st.integers(0, HASH_MAX)


@given(grids(7), HASHES, HASHES)
def test_law_what_is_kept_and_what_visits_have_one_unit_in_common(grid: Grid, kept: int, visits: int) -> None:
    here = grid.kept_on[grid.share_of(kept)]
    there = grid.visited[grid.copy_of(visits)]
    assert len(set(here) & set(there)) == 1
    assert len(set(here)) == len(here)
    assert len(set(there)) == len(there)
    assert grid.units[grid.share_of(kept)][grid.copy_of(visits)] in set(here) & set(there)


@given(grids(7))
def test_shape_every_hash_lies_in_one_share(grid: Grid) -> None:
    assert grid.share_of(0) == 0
    for share, end in enumerate(grid.share_ends):
        assert grid.share_of(end) == share
        if end < HASH_MAX:
            assert grid.share_of(end + 1) == share + 1


@given(st.integers(1, 256))
def test_shape_even_intervals_differ_by_one_hash_at_most(count: int) -> None:
    ends = (-1, *even_ends(count))
    lengths = {after - before for before, after in zip(ends, ends[1:], strict=False)}
    assert len(ends) == count + 1
    assert ends[-1] == HASH_MAX
    assert max(lengths) - min(lengths) <= 1


def test_shape_alone_split_copied_are_grids() -> None:
    assert Grid.alone(3) == Grid(((3,),), (HASH_MAX,), (HASH_MAX,))
    assert Grid.split([3, 4]) == Grid(((3,), (4,)), (HASH_MAX // 2, HASH_MAX), (HASH_MAX,))
    assert Grid.copied([3, 4]) == Grid(((3, 4),), (HASH_MAX,), (HASH_MAX // 2, HASH_MAX))
    assert Grid.copied([3, 4]).kept_on == ((3, 4),)
    assert Grid.copied([3, 4]).visited == ((3,), (4,))
    assert Grid.split([3, 4, 3]).visited == ((3, 4),)


@pytest.mark.parametrize(
    ("grid", "said"),
    [
        (Grid((), (), (HASH_MAX,)), "at least one"),
        (Grid(((1, 2), (3,)), (0, HASH_MAX), (0, HASH_MAX)), "as many copies of each share"),
        (Grid(((1,), (2,)), (5, 5), (HASH_MAX,)), "do not cover the hashes"),
        (Grid(((1,), (2,), (3,)), (5, 5, HASH_MAX), (HASH_MAX,)), "do not ascend"),
        (Grid(((1,), (2,)), (-1, HASH_MAX), (HASH_MAX,)), "do not cover the hashes"),
        (Grid(((1,),), (0, HASH_MAX), (HASH_MAX,)), "do not cover the hashes"),
        (Grid(((1, 2), (2, 3)), (5, HASH_MAX), (5, HASH_MAX)), "needs 4 different units"),
    ],
)
def test_shape_what_is_no_grid_is_refused(grid: Grid, said: str) -> None:
    with pytest.raises(MisuseError, match=f"^bucket 7: .*{said}"):
        grid.checked("bucket 7")
