"""A run holds its rows, packed or not, and says where they are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.words import Row, as_words, consolidated, less_equal, rows_of
from strategies_words import CODES, rows
from words_seen import Seen

from differential.kernels.rows import sort
from differential.kernels.rows.memory import DIRECTORY, LUB
from differential.kernels.rows.sort import PackedRows, sort_still_packed
from differential.thresholds import DIRECTORY_ROWS_MIN, PACKED_ROWS_MIN
from differential.trace import run as run_module
from differential.trace.run import Run
from timely.dictionaries import Mark

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


@given(rows(2).filter(consolidated), st.integers(1, 9), st.data())
def test_rows_that_were_put_in_order_are_those_of_a_run_of_words(
    some: list[Row], block_rows: int, data: st.DataObject
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sort, "MANY_ROWS", 1)
        patch.setattr(run_module, "PACKED_ROWS_MIN", 1)
        patch.setattr(run_module, "DIRECTORY_ROWS_MIN", 1)
        patch.setattr(run_module, "BLOCK_ROWS", block_rows)
        found = sort_still_packed([as_words(some, 4)])
        assert isinstance(found, PackedRows)
        run = Run.from_sorted(found, GUARDS)
        held = consolidated(some)
        wanted = Run.from_words(as_words(held, 4), GUARDS, packed=True)
    assert rows_of(run.words()) == held
    assert run.line[LUB] == wanted.line[LUB]
    assert run.ranges[-1].tolist() == wanted.ranges[-1].tolist()
    assert (run.ranges[:, 0] <= wanted.ranges[:, 0]).all() and (wanted.ranges[:, 1] <= run.ranges[:, 1]).all()
    times = {row[2] for row in held}
    assert run.only_time in (None, *times) and (run.only_time is None or len(times) == 1)
    start = data.draw(st.integers(0, len(held)))
    stop = data.draw(st.integers(start, len(held)))
    assert rows_of(run.between(start, stop)) == held[start:stop]


@given(rows(2).filter(consolidated), st.integers(1, 9), st.booleans(), st.booleans())
def test_all_words_of_keys_and_values_are_shown_and_no_others(
    some: list[Row], shown_at_once: int, packed: bool, is_one_key: bool
) -> None:
    held = consolidated([(5, *row[1:]) for row in some] if is_one_key else some)
    if not held:
        return
    seen = Seen()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_module, "SHOWN_ROWS", shown_at_once)
        Run.from_words(as_words(held, 4), GUARDS, packed).symbols(Mark([seen]))
    assert seen.words == {word for row in held for word in row[:2]}


@pytest.mark.parametrize("packed", [False, True])
def test_a_run_has_a_directory_from_some_hundred_rows_on_packed_or_not(packed: bool) -> None:
    """Of the runs that a trace has most are small, and each is searched for each key."""
    for count in (DIRECTORY_ROWS_MIN - 1, DIRECTORY_ROWS_MIN):
        words = as_words([(3 * at, 0, 1) for at in range(count)], 3)
        run = Run.from_words(words, 1 << 62, packed=packed)
        assert (run.directory is None) == (count < DIRECTORY_ROWS_MIN)
        assert run.words().tolist() == words.tolist()
