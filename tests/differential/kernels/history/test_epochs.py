"""epochs.py: what is put out for what was said, beside what is kept; twins: `reference/timed/plain.py`."""

from __future__ import annotations

import numpy as np
import pytest
from reference.words import as_words, rows_of

from differential.kernels.history.epochs import key_stop, latest_changes, possible_changes
from differential.trace.trace import Trace

GUARDS = 1 << 62
SHAPE = np.array([1, 1, GUARDS], np.int64)


def _kept(rows: list[tuple[int, ...]], vw: int) -> Trace:
    trace = Trace(1, vw, GUARDS)
    trace.insert(as_words(rows, vw + 3))
    return trace


def test_rows_of_a_key_end_where_another_begins() -> None:
    words = as_words([(1, 5), (1, 6), (2, 6)], 2)
    assert [key_stop(words, row, 1) for row in range(3)] == [2, 2, 3]


def test_the_last_of_each_epoch_takes_the_place_of_what_is_kept() -> None:
    kept = _kept([(1, 7, 0, 1), (2, 7, 0, 1), (3, 7, 0, 1)], 1)
    #        key epoch order has value time diff
    said = [(1, 4, 0, 1, 1, 8, 4, 1), (1, 4, 0, 2, 1, 9, 4, 1), (1, 5, 0, 3, 0, 0, 5, 1)]
    said += [(2, 4, 0, 1, 1, 7, 4, 1), (4, 4, 0, 1, 0, 0, 4, 1), (5, 4, 0, 1, 1, 1, 4, 1)]
    made = rows_of(latest_changes(as_words(said, 8), kept.lines, SHAPE))
    assert made == [(1, 7, 4, -1), (1, 9, 4, 1), (1, 9, 5, -1), (5, 1, 4, 1)]


def test_many_changes_of_many_keys_have_room() -> None:
    said = [(key, epoch, 0, 0, 1, epoch, epoch, 1) for key in range(40) for epoch in range(9)]
    made = latest_changes(as_words(said, 8), _kept([], 1).lines, SHAPE)
    assert made.shape[1] == 40 * 17
    assert latest_changes(as_words([], 8), _kept([], 1).lines, SHAPE).shape == (4, 0)


def test_removals_beyond_what_is_there_are_refused() -> None:
    kept = _kept([(1, 0, 2)], 0)
    said = [(1, 3, -3), (1, 4, 1), (1, 5, -1), (2, 3, -1)]
    made = rows_of(possible_changes(as_words(said, 3), kept.lines, GUARDS))
    #               row refused time diff
    assert made == [(1, 0, 3, -2), (1, 1, 3, 1), (1, 0, 4, 1), (1, 0, 5, -1), (2, 1, 3, 1)]


def test_more_of_a_row_than_64_bits_hold_is_an_error() -> None:
    with pytest.raises(OverflowError):
        possible_changes(as_words([(1, 3, 2**62), (1, 4, 2**62)], 3), _kept([], 0).lines, GUARDS)
