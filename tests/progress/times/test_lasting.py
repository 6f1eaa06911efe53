"""Words that stay what they are: held against the times that they stand for, wherever the anchor goes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from progress.errors import TimeOverflowError
from progress.times.anchor import EPOCH_MAX, Anchor
from progress.times.lasting import LastingCode
from progress.times.time_words import TimeCode, TimeLayout
from progress.times.timestamp import TimeShape

LAYOUT = TimeLayout((5, 4, 4))
SHAPES = (TimeShape.ROOT, TimeShape.ROOT.loop(), TimeShape.ROOT.loop().loop())


@given(
    shape=st.sampled_from(SHAPES),
    moves=st.lists(st.integers(1, 1 << 40), min_size=1, max_size=4),
    epoch=st.integers(0, EPOCH_MAX),
    counters=st.lists(st.integers(0, 15), min_size=2, max_size=2),
)
def test_a_time_has_one_word_for_ever_and_the_dataflow_has_it_less_the_base(
    shape: TimeShape, moves: list[int], epoch: int, counters: list[int]
) -> None:
    live = TimeCode(LAYOUT, shape, Anchor(3))
    lasting = LastingCode.of(live)
    time = (epoch, *counters[: shape.coordinates - 1])
    near = (live.anchor.epoch + 2, *time[1:])
    word = lasting.pack(near)
    assert word == live.pack(near) and lasting.base == 0
    for move in moves:
        live.anchor.epoch += move
        assert lasting.pack(near) == word and lasting.unpack(word) == near
        assert lasting.unpack(lasting.pack(time)) == time and lasting.pack(time) == lasting.pack_wide(time)
        here = (live.anchor.epoch + 1, *time[1:])
        assert lasting.pack(here) - lasting.base == live.pack(here)
        assert lasting.epoch_of(lasting.pack(here)) == here[0]


def test_as_long_as_the_anchor_stays_epochs_are_refused_that_no_word_holds() -> None:
    live = TimeCode(LAYOUT, TimeShape.ROOT.loop(), Anchor())
    lasting = LastingCode.of(live)
    with pytest.raises(TimeOverflowError, match=r"the epoch of \(31, 0\) does not fit: it may be 0 to 30"):
        lasting.pack((31, 0))
    live.anchor.epoch = 1
    assert lasting.unpack(lasting.pack((31, 0))) == (31, 0)
    for time in ((-1, 0), (EPOCH_MAX + 1, 0), (5, 16)):
        with pytest.raises(TimeOverflowError, match="the counter" if time[1] else "the epoch"):
            lasting.pack(time)


def test_where_a_dataflow_begins_later_its_lasting_words_do() -> None:
    live = TimeCode(LAYOUT, TimeShape.ROOT, Anchor())
    lasting = LastingCode.of(live)
    live.anchor.epoch = 7
    lasting.begin()
    assert lasting.base == 0 and lasting.pack((8,)) == live.pack((8,))
