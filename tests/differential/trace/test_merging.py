"""A merge under way: paid off in pieces, restarted when a diff outgrows its column."""

from __future__ import annotations

import numpy as np
import pytest
from reference.words import as_words, consolidated, rows_of
from strategies_words import CODES

from differential.trace.merging import Merging
from differential.trace.run import Run
from progress.times.time_words import TimeCode, TimeLayout
from progress.times.timestamp import ROOT

GUARDS = CODES[2].guards
EVERYTHING = np.zeros(1, np.int64)


def test_large_runs_are_merged_within_their_budgets() -> None:
    rng = np.random.default_rng(3)
    tables = []
    for count in (5000, 3000):
        words = rng.integers(0, 300, (4, count))
        words[3] = rng.choice([-1, 1], count)
        tables.append(consolidated(rows_of(words)))
    older, newer = (Run.from_words(as_words(table, 4), GUARDS, packed=True) for table in tables)
    merge = Merging(older, newer, EVERYTHING, GUARDS)
    assert merge.rows == older.rows + newer.rows
    while not merge.is_done:
        assert 0 < merge.work(700) < 720
    result = merge.result()
    assert result is not None
    assert rows_of(result.words()) == consolidated(tables[0] + tables[1])


def test_rows_that_cancel_leave_no_run() -> None:
    rows = [(key, 0, 0, 1) for key in range(9)]
    older = Run.from_words(as_words(rows, 4), GUARDS)
    newer = Run.from_words(as_words([(*row[:3], -1) for row in rows], 4), GUARDS)
    merge = Merging(older, newer, EVERYTHING, GUARDS)
    merge.work(1000)
    assert merge.is_done
    assert merge.result() is None


@pytest.mark.parametrize("diff", [1, -1, 2**31, -(2**31), 2**40, -(2**40)])
def test_a_sum_that_outgrows_its_column_begins_again_with_a_wider_one(diff: int) -> None:
    """2000 rows of one key, at times that become one: their diffs sum to what no byte can hold."""
    times = [CODES[2].pack((0, i)) for i in range(2000)]
    run = Run.from_words(as_words([(5, 5, time, diff) for time in times], 4), GUARDS)
    since = np.array([CODES[2].pack((1, 3000))])
    merge = Merging(run, None, since, GUARDS)
    while not merge.is_done:
        merge.work(1 << 20)
    result = merge.result()
    assert result is not None
    assert rows_of(result.words()) == [(5, 5, int(since[0]), 2000 * diff)]


@pytest.mark.parametrize("total", [127, 128, -127, -128, 129, -129])
def test_a_sum_at_the_edge_of_its_column_is_kept_as_it_is(total: int) -> None:
    """Diffs of ±1 get a byte for -127 to 128."""
    times = [CODES[2].pack((0, i)) for i in range(abs(total))]
    sign = 1 if total > 0 else -1
    run = Run.from_words(as_words([(5, 5, time, sign) for time in times], 4), GUARDS)
    merge = Merging(run, None, np.array([CODES[2].pack((1, 3000))]), GUARDS)
    while not merge.is_done:
        merge.work(1 << 20)
    result = merge.result()
    assert result is not None
    assert result.words()[3].tolist() == [total]


def test_times_advanced_beyond_all_that_were_there_fit_their_column() -> None:
    """Their span needs a byte more than that of the times before, for it is 256 exactly."""
    code = TimeCode(TimeLayout((20, 7)), ROOT.loop())
    times = [code.pack((0, 0)), code.pack((1, 5))]
    run = Run.from_words(as_words([(5, 5, time, 1) for time in times], 4), code.guards)
    since = np.array([code.pack((0, 100))])
    merge = Merging(run, None, since, code.guards)
    merge.work(10)
    result = merge.result()
    assert result is not None
    assert [code.unpack(time) for time in result.words()[2].tolist()] == [(0, 100), (1, 100)]
