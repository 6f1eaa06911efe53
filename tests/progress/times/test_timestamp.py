"""TimeShape: when does one time come before another?

law_*     partial order, lattice, advance_by; for every shape up to three loops deep
  shape_*   which order a loop of each kind has
"""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st
from strategies_progress import shapes, times

from progress.times.timestamp import ROOT, TimeShape

SHAPES_OF_THREE = [
    ROOT.loop().loop(),
    ROOT.prioritized_loop(),
    ROOT.loop().lexicographic_loop(),
]


@given(st.data(), shapes())
def test_law_less_equal_is_reflexive_transitive_and_antisymmetric(
    data: st.DataObject, shape: TimeShape
) -> None:
    a, b, c = (data.draw(times(shape)) for _ in range(3))
    assert shape.less_equal(a, a)
    if shape.less_equal(a, b) and shape.less_equal(b, c):
        assert shape.less_equal(a, c)
    assert (shape.less_equal(a, b) and shape.less_equal(b, a)) == (a == b)


@given(st.data(), shapes())
def test_law_lub_is_the_least_upper_bound(data: st.DataObject, shape: TimeShape) -> None:
    a, b, bound = (data.draw(times(shape)) for _ in range(3))
    lub = shape.lub(a, b)
    assert shape.less_equal(a, lub) and shape.less_equal(b, lub)
    assert (shape.less_equal(a, bound) and shape.less_equal(b, bound)) == shape.less_equal(lub, bound)


@given(st.data(), shapes())
def test_law_glb_is_the_greatest_lower_bound(data: st.DataObject, shape: TimeShape) -> None:
    a, b, bound = (data.draw(times(shape)) for _ in range(3))
    glb = shape.glb(a, b)
    assert shape.less_equal(glb, a) and shape.less_equal(glb, b)
    assert (shape.less_equal(bound, a) and shape.less_equal(bound, b)) == shape.less_equal(bound, glb)


@given(st.data(), shapes())
def test_law_lub_and_glb_absorb_each_other(data: st.DataObject, shape: TimeShape) -> None:
    a, b = data.draw(times(shape)), data.draw(times(shape))
    assert shape.lub(a, shape.glb(a, b)) == a == shape.glb(a, shape.lub(a, b))


@given(st.data(), shapes())
def test_law_an_advanced_time_is_seen_from_beyond_the_frontier_as_before(
    data: st.DataObject, shape: TimeShape
) -> None:
    frontier = data.draw(st.lists(times(shape), min_size=1, max_size=4))
    time, observer = data.draw(times(shape)), data.draw(times(shape, value_max=4))
    advanced = shape.advance_by(time, frontier)
    if any(shape.less_equal(element, observer) for element in frontier):
        assert shape.less_equal(advanced, observer) == shape.less_equal(time, observer)
    assert shape.advance_by(advanced, frontier) == advanced


@given(st.data(), st.sampled_from(SHAPES_OF_THREE))
def test_law_times_that_nobody_can_tell_apart_are_advanced_to_the_same(
    data: st.DataObject, shape: TimeShape
) -> None:
    frontier = data.draw(st.lists(times(shape, 2), min_size=1, max_size=3))
    a, b = data.draw(times(shape, 2)), data.draw(times(shape, 2))
    observers = [t for t in product(range(4), repeat=3) if any(shape.less_equal(f, t) for f in frontier)]
    told_apart = any(shape.less_equal(a, t) != shape.less_equal(b, t) for t in observers)
    assert (shape.advance_by(a, frontier) == shape.advance_by(b, frontier)) == (not told_apart)


@given(st.data(), shapes())
def test_law_sort_key_never_puts_a_later_time_first(data: st.DataObject, shape: TimeShape) -> None:
    a, b = data.draw(times(shape)), data.draw(times(shape))
    if a != b and shape.less_equal(a, b):
        assert shape.sort_key(a) < shape.sort_key(b)


@given(st.data(), shapes())
def test_law_the_minimum_comes_before_everything(data: st.DataObject, shape: TimeShape) -> None:
    assert shape.less_equal(shape.minimum(), data.draw(times(shape)))


def test_shape_an_earlier_epoch_and_an_earlier_iteration_are_incomparable() -> None:
    loop = ROOT.loop()
    assert not loop.less_equal((0, 1), (1, 0)) and not loop.less_equal((1, 0), (0, 1))
    assert loop.lub((0, 1), (1, 0)) == (1, 1)
    assert loop.glb((0, 1), (1, 0)) == (0, 0)


def test_shape_a_lower_priority_comes_before_every_iteration_of_the_next() -> None:
    prioritized = ROOT.prioritized_loop()
    assert prioritized.less_equal((0, 1, 9), (0, 2, 0))
    assert not prioritized.less_equal((0, 2, 0), (0, 1, 9))
    assert not prioritized.less_equal((1, 1, 0), (0, 2, 0))
    assert prioritized.lub((0, 1, 9), (1, 0, 3)) == (1, 1, 9)


def test_shape_lexicographic_counters_compare_as_one_but_epochs_for_themselves() -> None:
    inner = ROOT.lexicographic_loop().lexicographic_loop()
    assert inner.chains == (1, 2)
    assert inner.less_equal((0, 1, 9), (0, 2, 0))
    assert not inner.less_equal((0, 2, 0), (1, 1, 9))


def test_shape_a_lexicographic_loop_at_the_root_leaves_the_epoch_alone() -> None:
    assert ROOT.lexicographic_loop() == ROOT.loop()


def test_shape_nothing_advances_when_nobody_looks() -> None:
    assert ROOT.loop().advance_by((3, 4), []) == (3, 4)


def test_shape_only_tuples_of_the_right_length_are_times() -> None:
    shape = ROOT.loop()
    assert shape.is_timestamp((0, 5))
    for other in ((0,), (0, 1, 2), (0, -1), [0, 1], (0, 1.5), 3):
        assert not shape.is_timestamp(other)
