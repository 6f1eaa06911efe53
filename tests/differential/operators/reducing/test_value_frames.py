"""Frames whose bounds are added to values; `tests/sql/test_ranges.py` compares them with DuckDB's."""

from __future__ import annotations

import random

import numpy as np
import pytest

from differential.columns.column_types import Int64s
from differential.columns.float_words import floats_to_words
from differential.columns.wide.wide_words import split_value
from differential.operators.reducing.value_frames import value_frames
from differential.operators.reducing.window_parts import Frame, FrameUnit, WindowFunctions


def frames(words: Int64s, groups: list[int], unit: FrameUnit, start: int, stop: int, down: bool) -> Int64s:
    functions = WindowFunctions((), Frame(unit, start, stop), 1, 1, is_down=down)
    return value_frames(~words if down else words, np.array(groups), functions)


@pytest.mark.parametrize("down", [False, True])
def test_frames_of_wide_numbers_are_those_of_their_values(down: bool) -> None:
    rng = random.Random(5)
    near = [rng.choice([-1, 0, 1]) * 2**64 + rng.choice([-(2**63), 2**63 - 1, 0, 1, -1]) for _ in range(60)]
    groups = sorted(rng.randrange(3) for _ in near)
    ordered = sorted(zip(groups, near, strict=True), key=lambda row: (row[0], -row[1] if down else row[1]))
    values = [value for _, value in ordered]
    words = np.array([split_value(value) for value in values], np.int64).T
    for start, stop in ((-1, 1), (-(2**63) + 1, 0), (2, 2**63 - 1), (-7, -2)):
        out = frames(words, groups, "range_of_wide", start, stop, down)
        for row, value in enumerate(values):
            apart = [(value - each if down else each - value) for each in values]
            inside = [
                at for at, each in enumerate(apart) if groups[at] == groups[row] and start <= each <= stop
            ]
            assert list(range(*out[:, row])) == inside


def test_frames_of_floats_keep_infinities_and_nan_apart() -> None:
    words = floats_to_words(np.array([-np.inf, -1.5, 0.0, 0.25, np.inf, np.nan, np.nan]))[np.newaxis]
    start, stop = floats_to_words(np.array([-1.5, 0.25])).tolist()
    out = frames(words, [0] * 7, "range_of_floats", start, stop, down=False)
    assert out.T.tolist() == [[0, 1], [1, 2], [1, 4], [2, 4], [4, 5], [5, 7], [5, 7]]


def test_frames_of_months_may_go_back() -> None:
    noon, six = 30 * 24 + 12, 31 * 24 + 6  # hours of 1970: 31 January at noon, 1 February at six
    hours = [29 * 24 + 12, 30 * 24 + 6, noon, six]
    words = np.array([[hour * 3_600_000_000 for hour in hours]])
    functions = WindowFunctions((), Frame("range_of_months", 1, 1), 1, 1, per_day=86_400_000_000)
    assert (value_frames(words, np.zeros(4, np.int64), functions)[0] == 4).all()
    late = [*hours, 58 * 24 + 6, 58 * 24 + 12]  # 28 February at six, and at noon
    words = np.array([[hour * 3_600_000_000 for hour in late]])
    starts = value_frames(words, np.zeros(6, np.int64), functions)[0].tolist()
    assert starts[:3] == [5, 4, 5], "30 January at noon, 31 January at six, and at noon"


@pytest.mark.parametrize("down", [False, True])
def test_frames_of_months_are_right_behind_the_year_9999(down: bool) -> None:
    """Inputs take such times, and functions of times give null for them."""
    first = 2_932_897  # 1 January 10000
    days = [first - 1, first, first + 30, first + 31]  # 31 December to 1 February
    ordered = days[::-1] if down else days
    words = np.array([[~day if down else day for day in ordered]])
    functions = WindowFunctions((), Frame("range_of_months", -1, 0), 1, 1, is_down=down)
    out = value_frames(words, np.zeros(4, np.int64), functions)
    # Up, 31 January begins at 31 December, and 1 February at 1 January. Down, 31 December reaches 31 January.
    assert out.T.tolist() == [[0, 1], [0, 2], [0, 3], [1, 4]]


def test_frames_of_months_hold_the_first_and_the_last_times_of_all() -> None:
    words = np.array([[-(1 << 63), 0, (1 << 63) - 1]])
    for start, stop in ((-1, 0), (0, 1), (-1, 1), (0, 0)):
        functions = WindowFunctions((), Frame("range_of_months", start, stop), 1, 1, per_day=86_400_000_000)
        out = value_frames(words, np.zeros(3, np.int64), functions)
        assert out.T.tolist() == [[0, 1], [1, 2], [2, 3]]
