"""A line of the run table: what a kernel reads through it is what was written there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from house import ROOT

from differential.kernels.rows.memory import HEADER, describe_words, load, read, store


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


OUTSIDE = """
import sys
import numpy as np
from differential.kernels.rows.columns import decode_column
from differential.kernels.rows.memory import BUCKETS, DIRECTORY, HEADER, describe_words, read
from differential.kernels.rows.search import fill_directory, find, first_from
words = np.zeros((2, 2), np.int64)
words[0] = 5
table = np.zeros((1, HEADER + 6), np.int64)
describe_words(words, 2, table, 0)
directory = np.full(8, 7, np.uint32)
table[0, DIRECTORY], table[0, BUCKETS] = directory.ctypes.data, 6
for outside in (
    lambda: read(table, 0, 0, 2),
    lambda: first_from(table, 0, 0, 0, 3, 1, 0),
    lambda: decode_column(table, 0, 0, 1, 2, np.zeros((1, 9), np.int64), 0),
    lambda: find(table, 0, 0, np.array([[3]]), 0, 1),
    lambda: table.__setitem__((0, BUCKETS), 5) or fill_directory(table, 0),
):
    try:
        outside()
    except IndexError:
        sys.stdout.write("refused ")
"""


def test_rows_outside_their_run_are_refused_when_bounds_are_checked(tmp_path: Path) -> None:
    # Bounds are checked or not for a whole process: it is decided when a kernel is compiled. Code with checks
    # has a folder of its own here, or whoever comes next would have to compile these kernels again.
    environment = {**os.environ, "NAIAD_CHECK_BOUNDS": "1", "NAIAD_CACHE": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", OUTSIDE],
        env={**environment, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.stdout == 5 * "refused ", done.stderr
