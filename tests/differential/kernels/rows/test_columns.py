"""Columns of words in the packed memory of a run and back, for every width; see also `test_run.py`."""

from __future__ import annotations

import numpy as np
import pytest

from differential.kernels.rows.columns import column_ranges, decode_words, encode_words
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
