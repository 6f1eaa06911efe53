"""A line of the run table: what a kernel reads through it is what was written there."""

from __future__ import annotations

import numpy as np
import pytest

from differential.kernels.memory import HEADER, describe_words, load, read, store
from progress._compile import CHECK_BOUNDS


def test_a_plain_table_is_read_where_it_lies() -> None:
    words = np.arange(12).reshape(3, 4)
    table = np.zeros((2, HEADER + 9), np.int64)
    describe_words(words, 4, table, 1)
    assert [[read(table, 1, column, row) for row in range(4)] for column in range(3)] == words.tolist()


@pytest.mark.parametrize("width", [1, 2, 3, 4, 8])
def test_what_is_stored_is_loaded_and_neighbours_are_left_alone(width: int) -> None:
    memory = np.zeros(8, np.int64)
    base = 0 if width == 8 else 100
    offsets = [0, 1, (1 << (8 * min(width, 7))) - 1, 3]
    for row, offset in enumerate(offsets):
        store(memory.ctypes.data, width, row, offset)
    assert [load(memory.ctypes.data, width, base, row) - base for row in range(4)] == offsets


@pytest.mark.skipif(not CHECK_BOUNDS, reason="needs NAIAD_CHECK_BOUNDS=1")
def test_a_row_outside_its_run_is_refused() -> None:
    words = np.zeros((2, 2), np.int64)
    table = np.zeros((1, HEADER + 6), np.int64)
    describe_words(words, 2, table, 0)
    with pytest.raises(IndexError):
        read(table, 0, 0, 2)
