"""Finding keys: the same rows as a scan finds, with and without a directory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.words import Row, as_words, consolidated
from strategies_words import CODES, rows

from differential.kernels.rows.memory import BUCKETS, DIRECTORY, LOW, SHIFT
from differential.kernels.rows.search import cursors_of, locate
from differential.trace import run as run_module
from differential.trace.run import Run, directory_shape

GUARDS = CODES[2].guards


def _check(held: list[Row], wanted: list[Row], kw: int) -> None:
    run = Run.from_words(as_words(held, len(held[0])), GUARDS)
    table = run.line.reshape(1, -1).copy()
    cursors = cursors_of(table)
    keys = sorted({row[:kw] for row in wanted})
    for at, key in enumerate(keys):
        found = locate(
            table, cursors, as_words(keys, kw) if kw else np.empty((0, len(keys)), np.int64), at, kw
        )
        matching = [index for index, row in enumerate(held) if row[:kw] == key]
        assert found == len(matching)
        if matching:
            assert cursors[:, 0].tolist() == [matching[0], matching[-1] + 1]


@pytest.mark.parametrize("packed_from", [1, 10**9])
@pytest.mark.parametrize("kw", [0, 1, 2])
@pytest.mark.parametrize("wide", [False, True])
@given(data=st.data())
def test_a_key_is_found_where_it_is(packed_from: int, kw: int, wide: bool, data: st.DataObject) -> None:
    held = consolidated(data.draw(rows(2, wide=wide)))
    wanted = held[::2] + data.draw(rows(2, wide=wide))
    if held:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(run_module, "PACKED_ROWS_MIN", packed_from)
            patch.setattr(run_module, "DIRECTORY_ROWS_MIN", packed_from)
            _check(held, wanted, kw)


@pytest.mark.parametrize("step", [1, 1000])
def test_a_key_behind_or_before_all_others_is_not_looked_for_outside_the_directory(step: int) -> None:
    """What lies behind the directory in memory would say that there are rows."""
    each = 4 if step == 1 else 1
    keys = [key * step // each for key in range(100, 20_100, each)]
    held: list[Row] = [(key, value, 0, 1) for key in keys for value in range(each)]
    run = Run.from_words(as_words(held, 4), GUARDS)
    assert run.directory is not None
    size = run.directory.shape[0]
    poisoned = np.full(3 * size, len(held) + 5, np.uint32)
    poisoned[:size] = 7
    poisoned[size : 2 * size] = run.directory
    table = run.line.reshape(1, -1).copy()
    table[0, DIRECTORY] = poisoned.ctypes.data + 4 * size
    buckets, shift, low = (int(table[0, name]) for name in (BUCKETS, SHIFT, LOW))
    assert (shift == 0) == (step == 1), "with and without a bucket for each key"
    behind = [low + (buckets << shift), low + (buckets << shift) + step, 2**62, 2**63 - 1]
    before = [low - 1, low - step, -(2**63)]
    for key in [*behind, *before]:
        assert locate(table, cursors_of(table), np.array([[key]]), 0, 1) == 0, key
    for key, row in ((held[-1][0], len(held) - each), (held[0][0], 0)):
        cursors = cursors_of(table)
        assert locate(table, cursors, np.array([[key]]), 0, 1) == each
        assert cursors[:, 0].tolist() == [row, row + each]


def test_a_key_half_of_all_words_behind_the_first_is_not_taken_for_another() -> None:
    """With a bucket for each key the number of its bucket leaves 63 bits."""
    held: list[Row] = [(key, value, 0, 1) for key in range(-10_000, 0) for value in range(4)]
    run = Run.from_words(as_words(held, 4), GUARDS)
    table = run.line.reshape(1, -1).copy()
    assert (int(table[0, SHIFT]), int(table[0, LOW])) == (0, -10_000)
    for key in (2**63 - 10_001, 2**63 - 10_000, 2**63 - 1):
        assert locate(table, cursors_of(table), np.array([[key]]), 0, 1) == 0, key


@pytest.mark.parametrize("keys", [[7], [-(2**63), 2**63 - 1], [-(2**63), -5, 2**63 - 1]])
def test_a_directory_of_few_rows_has_the_buckets_that_it_needs(
    keys: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However far apart they are: a word can be shifted by 63 bits, and no more."""
    monkeypatch.setattr(run_module, "PACKED_ROWS_MIN", 1)
    monkeypatch.setattr(run_module, "DIRECTORY_ROWS_MIN", 1)
    shift, buckets = directory_shape(keys[0], keys[-1], len(keys))
    assert (shift, buckets) == ((0, 1) if len(keys) == 1 else (63, 2))
    _check([(key, 0, 0, 1) for key in keys], [(key, 0, 0, 1) for key in (*keys, -6, 0, 8)], 1)
