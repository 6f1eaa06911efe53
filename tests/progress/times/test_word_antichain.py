"""Antichains of words: the kernels against the antichain of tuples."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies_progress import codes, times

from progress.times.antichain import Antichain
from progress.times.time_words import TimeCode, TimeLayout
from progress.times.timestamp import ROOT
from progress.times.word_antichain import floor_of, insert_word, minimal_words, not_beyond


@given(st.data(), codes())
def test_against_tuples_words_form_the_same_antichain(data: st.DataObject, code: TimeCode) -> None:
    inserted = data.draw(st.lists(times(code.shape), max_size=10))
    words = np.zeros(len(inserted) + 1, dtype=np.int64)
    count = 0
    for time in inserted:
        count = insert_word(words, count, code.pack(time), code.guards)
    assert [code.unpack(word) for word in words[:count].tolist()] == Antichain(
        code.shape, inserted
    ).elements()


@pytest.mark.parametrize("levels", [1, 2, 3, 4])
def test_against_tuples_long_antichains_are_the_same_inserted_one_by_one_and_found_at_once(
    levels: int, seed: int
) -> None:
    """Long enough for binary search, which short ones do not use."""
    shape = ROOT
    for _ in range(levels - 1):
        shape = shape.loop()
    code = TimeCode(TimeLayout.default(levels), shape)
    rng = random.Random(f"{seed} {levels}")
    for _ in range(5):
        some = {tuple(rng.randint(0, 30) for _ in range(levels)) for _ in range(rng.choice((10, 300)))}
        # Close to one plane, so that many are incomparable.
        times = [time[:-1] + (time[-1] % 3 + max(0, 40 - sum(time[:-1])),) for time in some]
        words = np.zeros(len(times) + 1, dtype=np.int64)
        count = 0
        for time in times:
            count = insert_word(words, count, code.pack(time), code.guards)
        expected = [code.pack(time) for time in Antichain(shape, times).elements()]
        assert words[:count].tolist() == expected
        ascending = np.array(sorted(map(code.pack, times)), dtype=np.int64)
        assert minimal_words(ascending, code.guards).tolist() == expected
        frontier = words[:count].copy()
        asked = np.array([code.pack((rng.randint(0, 30),) * levels) for _ in range(50)], dtype=np.int64)
        behind = [
            any(((word | code.guards) - each) & code.guards == code.guards for each in expected)
            for word in asked.tolist()
        ]
        found = not_beyond(asked, frontier, code.guards).tolist()
        assert found == [index for index, is_behind in enumerate(behind) if not is_behind]


@given(st.data(), codes())
def test_against_tuples_the_floor_comes_before_all_and_is_the_latest_that_does(
    data: st.DataObject, code: TimeCode
) -> None:
    some = data.draw(st.lists(times(code.shape), min_size=1, max_size=6))
    floor = code.unpack(floor_of(np.array([code.pack(time) for time in some]), code.guards))
    assert all(code.shape.less_equal(floor, time) for time in some)
    lower = some[0]
    for time in some[1:]:
        lower = code.shape.glb(lower, time)
    assert floor == lower
