"""Antichain: the minimal elements of what was inserted, on tuples. On words: `test_word_antichain.py`."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from strategies_progress import shapes, times

from progress.times.antichain import Antichain
from progress.times.timestamp import ROOT, TimeShape


@given(st.data(), shapes())
def test_law_no_element_comes_before_another(data: st.DataObject, shape: TimeShape) -> None:
    Antichain(shape, data.draw(st.lists(times(shape), max_size=8))).check_invariants()


@given(st.data(), shapes())
def test_law_beyond_is_after_something_inserted(data: st.DataObject, shape: TimeShape) -> None:
    inserted = data.draw(st.lists(times(shape), max_size=6))
    time = data.draw(times(shape))
    expected = any(shape.less_equal(each, time) for each in inserted)
    assert Antichain(shape, inserted).is_beyond(time) == expected


@given(st.data(), shapes())
def test_law_the_order_of_insertion_is_irrelevant(data: st.DataObject, shape: TimeShape) -> None:
    inserted = data.draw(st.lists(times(shape), max_size=6))
    assert Antichain(shape, inserted) == Antichain(shape, data.draw(st.permutations(inserted)))


def test_inserting_says_whether_the_time_was_minimal() -> None:
    antichain = Antichain(ROOT.loop(), [(1, 1)])
    assert not antichain.insert((1, 2))
    assert antichain.insert((0, 2))
    assert antichain.insert((1, 0))
    assert list(antichain) == [(0, 2), (1, 0)] and len(antichain) == 2
    assert repr(antichain) == "{(0, 2), (1, 0)}"


def test_of_nothing_nothing_is_beyond() -> None:
    assert not Antichain(ROOT).is_beyond((7,))
    assert Antichain(ROOT) != [(7,)]
