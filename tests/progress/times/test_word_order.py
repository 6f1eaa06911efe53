"""Words are compared as the tuples are: each kernel against its twin on tuples, for all kinds of scopes, up
to the limits of the fields.
"""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from reference.recount import carried
from strategies_progress import codes, nested, times, wide_times

from progress.times.time_words import TimeCode, TimeLayout
from progress.times.word_order import (
    few_are_beyond,
    word_advance,
    word_carried,
    word_glb,
    word_is_beyond,
    word_less_equal,
    word_lub,
    words_are_beyond,
)


@given(st.data(), codes())
def test_against_tuples_words_have_the_same_order(data: st.DataObject, code: TimeCode) -> None:
    for strategy in (wide_times(code), times(code.shape)):
        a, b = data.draw(strategy), data.draw(strategy)
        assert word_less_equal(code.pack(a), code.pack(b), code.guards) == code.shape.less_equal(a, b)
        if a != b and code.shape.less_equal(a, b):
            assert code.pack(a) < code.pack(b)


@given(st.data(), codes())
def test_against_tuples_lub_and_glb_are_the_same(data: st.DataObject, code: TimeCode) -> None:
    for strategy in (wide_times(code), times(code.shape)):
        a, b = data.draw(strategy), data.draw(strategy)
        x, y = code.pack(a), code.pack(b)
        assert code.unpack(word_lub(x, y, code.guards)) == code.shape.lub(a, b)
        assert code.unpack(word_glb(x, y, code.guards)) == code.shape.glb(a, b)


@given(st.data(), codes())
def test_against_tuples_advancing_and_being_beyond_are_the_same(data: st.DataObject, code: TimeCode) -> None:
    time = data.draw(times(code.shape))
    frontier = data.draw(st.lists(times(code.shape), max_size=4))
    words = np.array([code.pack(element) for element in frontier], dtype=np.int64)
    advanced = word_advance(code.pack(time), words, code.guards)
    assert code.unpack(advanced) == code.shape.advance_by(time, frontier)
    beyond = any(code.shape.less_equal(element, time) for element in frontier)
    assert word_is_beyond(code.pack(time), words, code.guards) == beyond


@given(st.data(), codes())
def test_against_tuples_a_few_times_are_the_same(data: st.DataObject, code: TimeCode) -> None:
    several = st.lists(times(code.shape), max_size=3)
    some, frontier = data.draw(several), data.draw(several)
    assert few_are_beyond([*map(code.pack, some)], [*map(code.pack, frontier)], code.guards) == all(
        any(code.shape.less_equal(bound, time) for bound in frontier) for time in some
    )


@given(st.data(), codes())
def test_against_single_words_whole_columns_are_the_same(data: st.DataObject, code: TimeCode) -> None:
    column = np.array(
        [code.pack(t) for t in data.draw(st.lists(times(code.shape), max_size=6))], dtype=np.int64
    )
    frontier = np.array(
        [code.pack(t) for t in data.draw(st.lists(times(code.shape), max_size=3))], dtype=np.int64
    )
    beyond = np.empty(column.shape, dtype=np.bool_)
    words_are_beyond(column, frontier, code.guards, beyond)
    assert beyond.tolist() == [word_is_beyond(word, frontier, code.guards) for word in column.tolist()]


@given(st.data(), st.lists(st.sampled_from(["product", "lexicographic"]), max_size=4))
def test_against_tuples_the_earliest_time_behind_counters_that_have_left_their_fields(
    data: st.DataObject, loops: list[str]
) -> None:
    shape = nested(loops)
    code = TimeCode(TimeLayout((3,) * shape.levels), shape)
    time = data.draw(st.tuples(*[st.sampled_from([0, 1, 6, 7, 8, 11])] * shape.coordinates))
    word = sum(value << shift for value, (shift, _) in zip(time, code.fields, strict=True))
    expected = carried(time, code)
    found = word_carried(word, code.guards, code.valid)
    assert (None if found < 0 else code.unpack(found)) == expected
    assert word & ~code.valid or expected == time


def test_behind_the_last_counter_of_a_chain_the_one_before_it_goes_on() -> None:
    code = TimeCode(TimeLayout((3, 3, 3, 3)), nested(["product", "lexicographic", "product"]))
    for time, behind in [
        ((1, 2, 8, 5), (1, 3, 0, 5)),
        ((1, 2, 9, 0), (1, 3, 0, 0)),
        ((1, 7, 8, 0), None),
        ((1, 2, 8, 8), None),
        ((8, 2, 8, 0), None),
    ]:
        word = sum(value << shift for value, (shift, _) in zip(time, code.fields, strict=True))
        assert carried(time, code) == behind
        found = word_carried(word, code.guards, code.valid)
        assert (None if found < 0 else code.unpack(found)) == behind
