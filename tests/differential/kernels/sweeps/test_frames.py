"""frames.py: frames and what they add up to, beside plain Python."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from differential.columns.column_types import Int64s
from differential.kernels.sweeps.frames import (
    frame_extremes,
    frame_float_sums,
    is_above,
    is_below,
    range_frames,
)

TOP = (1 << 63) - 1
Spans = list[tuple[int, int]]
Framed = tuple[list[int], list[int], Spans]
words = st.one_of(st.integers(-3, 3), st.sampled_from([-TOP - 1, -TOP, TOP - 1, TOP]))


@st.composite
def framings(draw: st.DrawFn) -> tuple[list[int], list[int], Spans]:
    """Values, whether each is one, and frames that never go back."""
    values = draw(st.lists(st.integers(-3, 3), min_size=1, max_size=8))
    there = draw(st.lists(st.integers(0, 1), min_size=len(values), max_size=len(values)))
    places = st.lists(st.integers(0, len(values)), min_size=len(values), max_size=len(values))
    starts, stops = sorted(draw(places)), sorted(draw(places))
    return values, there, [(a, max(a, b)) for a, b in zip(starts, stops, strict=True)]


def arrays(
    values: list[int], there: list[int], frames: list[tuple[int, int]]
) -> tuple[Int64s, Int64s, Int64s]:
    return np.array(values, np.int64), np.array(there, np.int64), np.array(frames, np.int64).T.copy()


@given(framings())
def test_extremes_are_those_of_values_that_are_there(framed: Framed) -> None:
    values, there, frames = framed
    for sign, best in ((1, min), (-1, max)):
        out = frame_extremes(*arrays(values, there, frames), sign)
        for row, (start, stop) in enumerate(frames):
            inside = [
                v for v, is_there in zip(values[start:stop], there[start:stop], strict=True) if is_there
            ]
            assert out[:, row].tolist() == ([1, best(inside)] if inside else [0, 0])


@given(framings())
def test_float_sums_are_added_from_the_first_row_of_the_frame(framed: Framed) -> None:
    whole, there, frames = framed
    floats = np.array([value * 0.1 + 1e16 * (value == 3) for value in whole])
    out = frame_float_sums(floats.view(np.int64), *arrays(whole, there, frames)[1:])
    for row, (start, stop) in enumerate(frames):
        total = 0.0
        for value, is_there in zip(floats[start:stop], there[start:stop], strict=True):
            total += value * is_there if is_there else 0.0
        assert out[0, row] == sum(there[start:stop])
        if out[0, row]:
            assert math.isclose(float(out[1].view(np.float64)[row]), total, rel_tol=0, abs_tol=0)


bounds = st.one_of(st.integers(-2, 2), st.sampled_from([-TOP, TOP]))


@given(
    st.lists(words, min_size=1, max_size=6), st.lists(words, max_size=4), bounds, bounds, st.integers(0, 3)
)
@example([-TOP - 1, TOP], [0], -TOP, TOP, 3)
def test_ranges_have_the_rows_whose_words_are_within(
    one: list[int], other: list[int], before: int, behind: int, sides: int
) -> None:
    groups = [sorted(one), *([sorted(other)] if other else [])]
    line = [word for group in groups for word in group]
    spans, begin = [], 0
    for group in groups:
        spans += [(begin, begin + len(group))] * len(group)
        begin += len(group)
    out = range_frames(np.array(line, np.int64), np.array(spans, np.int64).T.copy(), before, behind, sides)
    for row, (start, stop) in enumerate(spans):
        inside = [
            at
            for at in range(start, stop)
            if (not sides & 1 or line[at] >= line[row] + before)
            and (not sides & 2 or line[at] <= line[row] + behind)
        ]
        assert list(range(out[0, row], out[1, row])) == inside


@given(words, words, bounds)
def test_comparisons_do_not_wrap(word: int, of: int, by: int) -> None:
    assert is_below(word, of, by) == (word < of + by)
    assert is_above(word, of, by) == (word > of + by)
