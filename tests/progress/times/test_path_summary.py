"""PathSummary: what does a path do to a time?

law_*        composition, monotony, order; for scopes up to three loops deep, of every kind
  against_*    the pair (keep, add) on words against the summary on tuples
  summary_*    what each constructor does
"""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies_progress import scope_paths, shapes, summaries, times

from progress.errors import GraphError
from progress.times.path_summary import PathSummary
from progress.times.time_words import TimeCode, TimeLayout
from progress.times.timestamp import ROOT, TimeShape


@given(st.data(), shapes())
def test_law_identity_changes_nothing(data: st.DataObject, shape: TimeShape) -> None:
    time = data.draw(times(shape))
    assert PathSummary.identity(shape).apply(time) == time


@given(st.data(), scope_paths(3))
def test_law_then_is_applying_twice(data: st.DataObject, scopes: list[TimeShape]) -> None:
    first = data.draw(summaries(scopes[0], scopes[1]))
    second = data.draw(summaries(scopes[1], scopes[2]))
    time = data.draw(times(scopes[0]))
    assert first.then(second).apply(time) == second.apply(first.apply(time))
    assert first.then(second).is_between(scopes[0], scopes[2])


@given(st.data(), scope_paths(4))
def test_law_then_is_associative(data: st.DataObject, scopes: list[TimeShape]) -> None:
    a, b, c = (data.draw(summaries(scopes[step], scopes[step + 1])) for step in range(3))
    assert a.then(b).then(c) == a.then(b.then(c))


@given(st.data(), scope_paths(2))
def test_law_apply_is_monotone(data: st.DataObject, scopes: list[TimeShape]) -> None:
    source, target = scopes
    summary = data.draw(summaries(source, target))
    a, b = data.draw(times(source)), data.draw(times(source))
    if source.less_equal(a, b):
        assert target.less_equal(summary.apply(a), summary.apply(b))


@given(st.data(), scope_paths(2))
def test_law_less_equal_is_less_equal_for_every_start(data: st.DataObject, scopes: list[TimeShape]) -> None:
    source, target = scopes
    a, b = data.draw(summaries(source, target, 2)), data.draw(summaries(source, target, 2))
    # Constants are at most 2, so that 0 … 3 in each coordinate meets every case.
    starts = (
        product(range(4), repeat=source.coordinates)
        if source.coordinates <= 4
        else data.draw(st.lists(times(source), min_size=40, max_size=40))
    )
    everywhere = all(target.less_equal(a.apply(start), b.apply(start)) for start in starts)
    if source.coordinates <= 4 or a.less_equal(b, target):
        assert a.less_equal(b, target) == everywhere


@given(st.data(), scope_paths(3))
def test_law_then_is_monotone_in_both_paths(data: st.DataObject, scopes: list[TimeShape]) -> None:
    a, b = (data.draw(summaries(scopes[0], scopes[1])) for _ in range(2))
    c, d = (data.draw(summaries(scopes[1], scopes[2])) for _ in range(2))
    if a.less_equal(b, scopes[1]) and c.less_equal(d, scopes[2]):
        assert a.then(c).less_equal(b.then(d), scopes[2])


@given(st.data(), scope_paths(2))
def test_law_less_equal_is_a_partial_order(data: st.DataObject, scopes: list[TimeShape]) -> None:
    source, target = scopes
    a, b, c = (data.draw(summaries(source, target, 1)) for _ in range(3))
    assert a.less_equal(a, target)
    if a.less_equal(b, target) and b.less_equal(c, target):
        assert a.less_equal(c, target)
    if a.less_equal(b, target) and b.less_equal(a, target):
        assert a == b


@given(st.data(), scope_paths(2))
def test_against_tuples_keep_and_add_do_the_same_to_words(
    data: st.DataObject, scopes: list[TimeShape]
) -> None:
    layout = TimeLayout.default(4)
    source, target = (TimeCode(layout, shape) for shape in scopes)
    summary = data.draw(summaries(source.shape, target.shape))
    keep, add = summary.to_words(source, target)
    time = data.draw(times(source.shape))
    assert target.unpack((source.pack(time) & keep) + add) == summary.apply(time)


@given(st.data(), shapes().filter(lambda shape: shape.levels > 1))
def test_law_feedback_strictly_advances_every_time(data: st.DataObject, shape: TimeShape) -> None:
    time = data.draw(times(shape))
    later = PathSummary.feedback(shape).apply(time)
    assert later != time and shape.less_equal(time, later)


@pytest.mark.parametrize("kind", ["loop", "prioritized_loop", "lexicographic_loop"])
def test_summary_leaving_after_entering_is_the_identity(kind: str) -> None:
    outer = ROOT.loop()
    inner: TimeShape = getattr(outer, kind)()
    there_and_back = PathSummary.enter(outer, inner).then(PathSummary.leave(outer))
    assert there_and_back == PathSummary.identity(outer)
    assert PathSummary.enter(outer, inner).is_between(outer, inner)
    assert PathSummary.leave(outer).is_between(inner, outer)


def test_summary_leaving_forgets_the_counter() -> None:
    assert PathSummary.leave(ROOT).apply((4, 9)) == (4,)


def test_summary_round_the_outer_loop_starts_the_inner_one_afresh() -> None:
    outer = ROOT.loop()
    inner = outer.loop()
    around = PathSummary.leave(outer).then(PathSummary.feedback(outer)).then(PathSummary.enter(outer, inner))
    assert around == PathSummary(2, 1, (0,))
    assert around.apply((3, 4, 9)) == (3, 5, 0)


def test_summary_round_either_loop_is_incomparable_unless_counters_are_lexicographic() -> None:
    outer, inner = PathSummary(2, 1, (0,)), PathSummary(3, 1)
    plain, lexicographic = ROOT.loop().loop(), ROOT.loop().lexicographic_loop()
    assert not inner.less_equal(outer, plain) and not outer.less_equal(inner, plain)
    assert inner.less_equal(outer, lexicographic) and not outer.less_equal(inner, lexicographic)


def test_summary_does_not_lead_between_scopes_of_another_kind() -> None:
    assert not PathSummary(3, 0).is_between(ROOT.loop().loop(), ROOT.prioritized_loop())
    assert not PathSummary(3, 0).is_between(ROOT.loop().loop(), ROOT.loop().lexicographic_loop())
    assert not PathSummary(2, 0, (0,)).is_between(ROOT.prioritized_loop(), ROOT.loop().loop())
    assert not PathSummary(3, 0).is_between(ROOT.loop(), ROOT.loop().loop())


def test_summary_a_constant_of_half_a_field_is_refused() -> None:
    code = TimeCode(TimeLayout((40, 4)), ROOT.loop())
    assert PathSummary(2, 7).to_words(code, code) == (code.valid, 7)
    with pytest.raises(GraphError, match="4 bits"):
        PathSummary(2, 8).to_words(code, code)


def test_summary_reads_as_a_sentence() -> None:
    assert str(PathSummary(2, 1, (0, 3))) == "keep 2+1 append 0,3"
    assert str(PathSummary(2, 0)) == "keep 2"
