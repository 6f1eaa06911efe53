"""All rows of a trace as they add up: the same as a dictionary, however they are held and in whatever pieces.

packed_*   rows whose varying bits fit a word, and such as do not
trace_*    runs, head, tail and rows besides
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.words import Row, as_words, consolidated, rows_of
from strategies_words import rows

import differential.trace.accumulated as accumulated_module
import differential.trace.run as run_module
import differential.trace.trace as trace_module
from differential.errors import MultiplicityOverflowError
from differential.kernels.rows.sort import sort_consolidate
from differential.trace.accumulated import Accumulated, accumulate
from differential.trace.trace import Trace
from progress.compiled.arrays import Int64s

GUARDS = 1 << 62


def timeless(some: list[Row]) -> list[Row]:
    """What rows add up to, whenever they came."""
    return consolidated([(*row[:-2], 0, row[-1]) for row in some])


def all_of(found: Accumulated) -> list[Row]:
    return rows_of(found.all())


@given(
    st.booleans().flatmap(lambda wide: rows(2, wide=wide, rows_max=60)),
    st.integers(1, 70),
    st.integers(1, 70),
    st.booleans(),
)
def test_packed_or_not_they_add_up_and_come_in_any_pieces(
    some: list[Row], at_a_time: int, piece: int, is_many: bool
) -> None:
    words = as_words(some, 4)
    reused = np.empty((4, at_a_time), np.int64)

    def blocks() -> Iterator[Int64s]:
        for first in range(0, len(some), at_a_time):
            block = words[:, first : first + at_a_time]
            reused[:, : block.shape[1]] = block
            yield reused[:, : block.shape[1]].copy() if block.shape[1] < at_a_time else reused

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(accumulated_module, "MANY_ROWS", 1 if is_many else 1 << 15)
        patch.setattr(accumulated_module, "BLOCK_ROWS", piece)
        found = accumulate(blocks, 4, len(some))
        want = timeless(some)
        assert all_of(found) == want and found.rows == len(want)
        assert found.has_negative() == any(row[-1] < 0 for row in want)
        assert [row for block in found.blocks() for row in rows_of(block)] == want
    for first in range(0, len(want), piece):
        assert rows_of(found.between(first, min(first + piece, len(want)))) == want[first : first + piece]


@pytest.mark.parametrize("is_many", [False, True])
def test_trace_adds_up_runs_its_head_and_rows_besides(monkeypatch: pytest.MonkeyPatch, is_many: bool) -> None:
    monkeypatch.setattr(accumulated_module, "MANY_ROWS", 1 if is_many else 1 << 15)
    monkeypatch.setattr(trace_module, "BLOCK_ROWS", 100)
    monkeypatch.setattr(run_module, "PACKED_ROWS_MIN", 3000)
    monkeypatch.setattr(run_module, "DIRECTORY_ROWS_MIN", 3000)
    rng = np.random.default_rng(8)
    trace, all_rows = Trace(2, 0, GUARDS), []
    for time, count in enumerate([9000, 1100, 700, 1, 30, 2]):
        words = rng.integers(0, 90, (4, count))
        words[2], words[3] = time, rng.choice([-1, 1, 3], count)
        all_rows += rows_of(words)
        trace.insert(sort_consolidate(words))
    assert len(trace._runs) > 1 and trace._head_rows, "rows of all kinds"
    besides = [as_words([(1, 1, 9, -4), (77, 5, 2, 1)], 4), np.empty((4, 0), np.int64)]
    assert all_of(trace.accumulated()) == timeless(all_rows)
    assert all_of(trace.accumulated(besides)) == timeless([*all_rows, (1, 1, 9, -4), (77, 5, 2, 1)])
    assert rows_of(besides[0]) == [(1, 1, 9, -4), (77, 5, 2, 1)], "rows besides stay as they are"
    assert all_of(Trace(2, 0, GUARDS).accumulated()) == []


@pytest.mark.parametrize("is_many", [False, True])
def test_trace_names_the_row_whose_multiplicity_is_too_large(
    monkeypatch: pytest.MonkeyPatch, is_many: bool
) -> None:
    monkeypatch.setattr(accumulated_module, "MANY_ROWS", 1 if is_many else 1 << 15)
    trace = Trace(1, 0, GUARDS)
    trace.insert(as_words([(6, 0, 1), (7, 0, (1 << 63) - 1)], 3))
    with pytest.raises(MultiplicityOverflowError, match=r"words \(7\)"):
        trace.accumulated([as_words([(7, 1, 1)], 3)])
