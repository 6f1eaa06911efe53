"""A run holds its rows, packed or not, and says where they are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from reference.words import Row, as_words, consolidated, less_equal, rows_of
from strategies_words import CODES, rows

from differential.kernels.rows.memory import DIRECTORY, LUB
from differential.trace.run import PACKED_ROWS_MIN, Run

GUARDS = CODES[2].guards


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("wide", [True, False])
@given(some=rows(2, rows_max=30).filter(consolidated), more=rows(2, wide=True, rows_max=9))
def test_rows_come_back_as_they_were(packed: bool, wide: bool, some: list[Row], more: list[Row]) -> None:
    held = consolidated(some + more if wide else some)
    if held:
        run = Run.from_words(as_words(held, 4), GUARDS, packed)
        assert rows_of(run.words()) == held
        assert run.rows == len(held)
        assert all(less_equal(row[2], int(run.line[LUB]), GUARDS) for row in held)
        for (low, high), column in zip(run.ranges, zip(*held, strict=True), strict=True):
            assert low <= min(column) <= max(column) <= high


def test_a_large_run_of_small_integers_takes_about_ten_bytes_a_row_and_has_a_directory() -> None:
    count = 20 * PACKED_ROWS_MIN
    values = np.random.default_rng(1).integers(0, 100_000, (2, count))
    words = np.concatenate([np.sort(values), np.ones((2, count), np.int64)])
    words[3, ::2] = -1
    run = Run.from_words(words, GUARDS)
    assert run.bytes < 10 * count
    assert run.line[DIRECTORY] != 0
    assert np.array_equal(run.words(), words)
