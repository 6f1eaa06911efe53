"""Finding many keys at once: the same rows as a scan of each run finds, some keys after the other."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.words import Row, as_words, consolidated
from strategies_words import CODES, rows

from differential.kernels.rows.probing import KEYS_AT_ONCE, locate_keys
from differential.kernels.rows.search import cursors_of
from differential.thresholds import PACKED_ROWS_MIN
from differential.trace import run as run_module
from differential.trace.run import Run
from progress.compiled.arrays import Int64s

GUARDS = CODES[2].guards


def _table(runs: list[list[Row]]) -> tuple[Int64s, list[Run]]:
    """One line for each, and who holds their memory; a run without rows is an empty head."""
    held = [Run.from_words(as_words(rows, len(rows[0])), GUARDS) for rows in runs if rows]
    width = held[0].line.shape[0]
    lines, made = [], iter(held)
    for rows_of_run in runs:
        lines.append(next(made).line if rows_of_run else np.zeros(width, np.int64))
    return np.array(lines), held


def _check(runs: list[list[Row]], keys: list[tuple[int, ...]], kw: int, at_once: int) -> None:
    table, held = _table(runs)
    cursors = cursors_of(table)
    places: list[defaultdict[tuple[int, ...], list[int]]] = []
    for rows_of_run in runs:
        places.append(defaultdict(list))
        for row, each in enumerate(rows_of_run):
            places[-1][each[:kw]].append(row)
    for start in range(0, len(keys), at_once):
        some = keys[start : start + at_once]
        words = as_words(some, kw) if kw else np.empty((0, len(some)), np.int64)
        found: Int64s = np.full((2 * len(some), len(runs)), -1, np.int64)
        locate_keys(table, cursors, words, len(some), kw, found)
        for number, key in enumerate(some):
            for run, of_key in enumerate(places):
                first, last = found[2 * number : 2 * number + 2, run].tolist()
                assert list(range(first, last)) == of_key[key], (key, run)
    assert all(run.rows for run in held), "held until here"


@pytest.mark.parametrize("packed_from", [1, 10**9])
@pytest.mark.parametrize("kw", [0, 1, 2])
@pytest.mark.parametrize("wide", [False, True])
@given(data=st.data())
def test_keys_are_found_where_they_are(packed_from: int, kw: int, wide: bool, data: st.DataObject) -> None:
    drawn = data.draw(st.lists(rows(2, wide=wide), min_size=1, max_size=4))
    runs = [consolidated(each) for each in drawn]
    others = data.draw(rows(2, wide=wide))
    keys = sorted({row[:kw] for each in (*runs, others) for row in each})
    if any(runs):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(run_module, "PACKED_ROWS_MIN", packed_from)
            patch.setattr(run_module, "DIRECTORY_ROWS_MIN", packed_from)
            _check(runs, keys, kw, data.draw(st.integers(1, 20)))


@pytest.mark.parametrize("low", [0, -(2**62) - 3])
@pytest.mark.parametrize("bits", range(11, 16))
def test_keys_in_buckets_of_one_first_word_and_of_few_are_found(bits: int, low: int) -> None:
    """Where a bucket has one first word nobody looks at that again; a key may be 2⁶³ above all buckets."""
    rng = np.random.default_rng(bits)
    drawn = rng.integers(0, 1 << bits, 2 * PACKED_ROWS_MIN).tolist()
    keys = [0, (1 << bits) - 1, *drawn]
    run = consolidated((low + key, number, 1, 1) for number, key in enumerate(keys))
    some = {low + key for key in range(0, 1 << bits, 61)} | {low + (1 << bits) - 1}
    absent = {low - 1, low + (1 << bits), 2**62, 2**63 - 1}
    _check([run], [(key,) for key in sorted(some | absent)], 1, KEYS_AT_ONCE)


@pytest.mark.parametrize("kw", [1, 2])
@pytest.mark.parametrize("repeated", [1, 7, 300])
def test_keys_that_are_apart_are_found_in_large_runs(repeated: int, kw: int) -> None:
    rng = np.random.default_rng(repeated)
    runs: list[list[Row]] = []
    for size in (3 * PACKED_ROWS_MIN, PACKED_ROWS_MIN - 1, 40):
        drawn = rng.integers(0, 1 << 20, (size // repeated + 1, 1)).tolist()
        runs.append(consolidated((key, value, 1, 1) for (key,) in drawn for value in range(repeated)))
    some = {row[:kw] for each in runs for row in each[:: 50 * repeated + 1]}
    absent = {(key, 5)[:kw] for key in (-1, 77, 1 << 21, 1 << 62)}
    _check(runs, sorted(some | absent), kw, KEYS_AT_ONCE)
