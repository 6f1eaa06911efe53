"""Columns of words in the packed memory of a run and back, for every width; see also `test_run.py`."""

from __future__ import annotations

import numpy as np
import pytest

from differential.kernels.rows.columns import (
    COPIED_ROWS,
    column_bounds,
    column_ranges,
    copy_column,
    decode_words,
    encode_words,
)
from differential.kernels.rows.memory import HEADER, ROWS
from differential.trace.run import reserve


@pytest.mark.parametrize(("high", "width"), [(0, 0), (255, 1), (256, 2), (65_536, 3), (2**24, 4), (2**32, 8)])
@pytest.mark.parametrize("low", [0, -7, 2**40])
def test_a_column_is_as_narrow_as_its_values_allow(high: int, width: int, low: int) -> None:
    words = np.array([[low, low + high, low], [5, 5, 5], [1, 1, 1]])
    ranges = np.empty((3, 2), np.int64)
    assert column_ranges(words, ranges, 1 << 62) == 5
    assert ranges.tolist() == [[low, low + high], [5, 5], [1, 1]]
    line, memory = reserve(3, ranges)
    line[ROWS] = 3
    assert line[HEADER + 1] == width
    table = line.reshape(1, -1)
    encode_words(words, table, 0)
    assert np.array_equal(decode_words(table, 0, 3), words)
    del memory


def test_columns_are_copied_to_others_of_other_widths_and_their_bounds_are_those_of_the_rows() -> None:
    rng = np.random.default_rng(4)
    count = 2 * COPIED_ROWS + 5
    words = np.stack([rng.integers(-90, 90, count), np.full(count, 7), rng.integers(0, 1 << 40, count)])
    lines, memories = [], []
    for ranges in ([[-100, 1 << 20], [0, 300], [0, 1 << 50]], [[-90, 90], [7, 7], [0, 1 << 40]]):
        line, memory = reserve(count, np.array(ranges))
        line[ROWS] = count
        lines.append(line)
        memories.append(memory)
    tables = np.stack(lines)
    encode_words(words, tables, 0)
    for column in range(3):
        bounds = np.array([np.iinfo(np.int64).max, np.iinfo(np.int64).min])
        column_bounds(tables, 0, column, 9, count - 9, bounds)
        assert bounds.tolist() == [words[column, 9:].min(), words[column, 9:].max()]
        copy_column(tables, column, 0, 9)
        copy_column(tables, column, 9, count - 9)
    assert np.array_equal(decode_words(tables, 1, 3), words)
    del memories
