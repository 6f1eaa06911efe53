"""Anchors: words that count from a later epoch say the same.

code_*     packing and unpacking from an anchor, and words of epochs that do not fit
rebase_*   what moving the anchor keeps
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies_progress import codes

from progress.errors import InternalError, TimeOverflowError
from progress.times.anchor import EPOCH_MAX, Anchor, Rebase
from progress.times.time_words import TimeCode, TimeLayout
from progress.times.timestamp import ROOT
from progress.times.word_order import word_less_equal, word_lub

LAYOUT = TimeLayout((4, 3))


def rebased(code: TimeCode, epochs: int) -> Rebase:
    return Rebase(epochs, code.layout.shifts[0])


@given(st.data(), codes(), st.integers(0, EPOCH_MAX))
def test_code_of_any_anchor_gives_back_every_epoch(data: st.DataObject, code: TimeCode, anchor: int) -> None:
    mine = code.anchored(Anchor(anchor))
    epoch = data.draw(st.integers(0, EPOCH_MAX) | st.integers(anchor, min(EPOCH_MAX, anchor + 9)))
    time = (epoch, *[data.draw(st.integers(0, 3)) for _ in range(code.shape.coordinates - 1)])
    wide = mine.pack_wide(time)
    assert mine.unpack_wide(wide) == time and mine.epoch_of(wide) == epoch
    if mine.holds(epoch):
        assert mine.pack(time) == wide < mine.layout.limit and mine.unpack(wide) == time
        assert mine.within(wide) == wide
    else:
        assert not 0 <= wide < mine.layout.limit
        with pytest.raises(TimeOverflowError, match=f"the epoch of .* does not fit: it may be {anchor} to"):
            mine.pack(time)


def test_code_moves_with_its_anchor() -> None:
    anchor = Anchor()
    code = TimeCode(TimeLayout((4,)), ROOT).anchored(anchor)
    word = code.pack((5,))
    anchor.epoch = 100
    assert code.unpack(word) == (105,) and code.pack((100,)) == 0
    assert [code.holds(epoch) for epoch in (99, 100, 114, 115)] == [False, True, True, False]
    assert code == TimeCode(TimeLayout((4,)), ROOT), "where words count from does not tell codes apart"


@pytest.mark.parametrize("epoch", [-1, EPOCH_MAX + 1])
def test_code_what_is_no_epoch_has_no_word_however_wide(epoch: int) -> None:
    with pytest.raises(TimeOverflowError, match=f"it may be 0 to {EPOCH_MAX}"):
        TimeCode(LAYOUT, ROOT).pack_wide((epoch,))


@given(st.data(), codes())
def test_rebase_keeps_order_and_lubs_with_what_can_still_come(data: st.DataObject, code: TimeCode) -> None:
    epochs = data.draw(st.integers(1, 4))
    by, guards = rebased(code, epochs), code.guards
    counters = st.tuples(*[st.integers(0, 2)] * (code.shape.coordinates - 1))
    past = (data.draw(st.integers(0, 6)), *data.draw(counters))
    later = (data.draw(st.integers(epochs, 7)), *data.draw(counters))
    before, after = code.pack(past), code.pack(later)
    early = by.early_word(before)
    assert code.unpack(early) == (max(past[0] - epochs, 0), *past[1:])
    assert word_less_equal(early, by.word(after), guards) == word_less_equal(before, after, guards)
    assert word_lub(early, by.word(after), guards) == by.word(int(word_lub(before, after, guards)))
    column = np.array([before, after])
    assert by.early(column).tolist() == [early, by.word(after)]


@given(st.lists(st.integers(0, 200), min_size=1), st.integers(1, 30))
def test_rebase_refuses_what_is_before_the_new_anchor(words: list[int], epochs: int) -> None:
    by, column = Rebase(epochs, 2), np.array(words, np.int64)
    rows = np.stack([column + 7, column, column + 9])
    if min(words) < epochs << 2:
        for refused in (lambda: by.word(min(words)), lambda: by.words(column), lambda: by.rows(rows)):
            with pytest.raises(InternalError, match="which 0x.* is before"):
                refused()
        return
    assert by.words(column).tolist() == [by.word(word) for word in words]
    moved = by.rows(rows)
    assert by.rows(rows) is moved, "who holds one array holds one afterwards"
    assert moved[1].tolist() == by.words(column).tolist()
    assert np.array_equal(moved[[0, 2]], rows[[0, 2]]) and np.array_equal(rows[1], column)


def test_rebase_by_more_epochs_than_words_hold_leaves_nothing_but_the_past() -> None:
    by = Rebase(EPOCH_MAX - 3, 44)
    assert by.early(np.array([0, (3 << 44) + 5])).tolist() == [0, 5] and by.early_word((3 << 44) + 5) == 5
    assert by.word(EPOCH_MAX << 44) == 3 << 44
    assert by.words(np.empty(0, np.int64)).shape == (0,)
    with pytest.raises(InternalError):
        by.words(np.array([1]))
