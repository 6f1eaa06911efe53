"""Changes of windows measured: what is changed is the stretch behind the change, or little around it."""

from __future__ import annotations

import pytest

from bench.dataflow.windows import SHAPES, changed, measured, recomputed, table

ROWS = 400

MOST = {
    "running sum, at 0.99": 16,
    "running sum, at 0.5": ROWS + 2,
    "running sum, at the first row": 2 * ROWS + 2,
    "sum of a range of 100 rows": 2 * 102,
    "row_number, a row more at 0.99": 16,
    "percent_rank, a row more at 0.5": 2 * ROWS + 2,
    "row_number, a row more at the first row": 2 * ROWS + 2,
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_change_is_of_the_stretch_behind_it(name: str) -> None:
    cost = measured(SHAPES[name], table(ROWS), 2)
    assert len(cost.each) == 2 and min(cost.each) > 0 and cost.load > 0
    assert 1 <= cost.rows <= MOST.get(name, 30)


@pytest.mark.parametrize("name", ["running sum, at 0.5", "row_number, another value at 0.5"])
def test_duckdb_gets_the_same_changes(name: str) -> None:
    rows = table(ROWS)
    for number in range(4):
        gone, come = changed(SHAPES[name], rows, number)
        assert len(gone) + len(come) == (2 if SHAPES[name].replaces else 1)
    assert len(recomputed(SHAPES[name], rows, 4)) == 4
