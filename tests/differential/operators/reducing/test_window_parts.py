"""window_parts.py: how far rows look in their group, and how often they are there."""

from __future__ import annotations

import numpy as np
import pytest

from differential.errors import MultiplicityOverflowError
from differential.kernels.sweeps.around import AHEAD, BACK, BLOCKS, DISTANCE, MARKED, NEAR, WHOLE, WORD
from differential.operators.reducing.window_parts import (
    Frame,
    WindowFunctions,
    WindowKind,
    WindowPart,
    copies_of,
    is_read_backwards,
    two_ways,
)

SUM = WindowPart("sum", value=1)
LAG = WindowPart("lag", value=1, amount=-7)
NUMBER = WindowPart("row_number")
RANK = WindowPart("rank")
LEAD = WindowPart("lag", value=1, amount=-1)
NTH = WindowPart("nth_value", value=1, amount=4)
WORDS = (*(place + side for place in (NEAR, BLOCKS, DISTANCE) for side in (BACK, AHEAD)), WORD, WHOLE, MARKED)


@pytest.mark.parametrize(
    ("parts", "frame", "reach"),
    [
        ((LAG,), Frame(), (0, 7, -1, -1, 0, 0, -1, 0, 0)),
        ((LAG, WindowPart("lag", value=1, amount=2), LEAD), Frame(), (2, 7, -1, -1, 0, 0, -1, 0, 0)),
        ((NUMBER,), Frame(), (0, 0, -1, -1, 0, 0, -1, 0, 1)),
        ((RANK,), Frame(), (0, 0, 0, 0, 0, 0, -1, 0, 1)),
        ((SUM,), Frame(), (0, 0, 0, 0, 0, 0, -1, 0, 1)),
        ((SUM, LAG), Frame("rows", None, -2), (2, 7, -1, -1, 0, 0, -1, 0, 1)),
        ((SUM, LEAD), Frame("rows", None, 2), (0, 2, -1, -1, 0, 0, -1, 0, 1)),
        ((SUM,), Frame("rows", -3, 2), (3, 2, -1, -1, 0, 0, -1, 0, 0)),
        ((SUM,), Frame("rows", -5, -2), (5, 0, -1, -1, 0, 0, -1, 0, 0)),
        ((SUM,), Frame("rows", 2, 5), (0, 5, -1, -1, 0, 0, -1, 0, 0)),
        ((SUM,), Frame("range", -5, 1), (0, 0, 0, 0, 5, 1, 0, 0, 0)),
        ((SUM,), Frame("groups", -2, 1), (0, 0, 2, 1, 0, 0, -1, 0, 0)),
        ((SUM,), Frame("rows", 0, None), (0, 0, -1, -1, 0, 0, -1, 1, 0)),
        ((SUM,), Frame("range", None, None), (0, 0, -1, -1, 0, 0, -1, 0, 1)),
        ((NTH,), Frame("rows", 2, None), (0, 5, -1, -1, 0, 0, -1, 0, 0)),
        ((NTH,), Frame("rows", -2, None), (2, 3, -1, -1, 0, 0, -1, 0, 0)),
        ((NTH,), Frame("groups", 2, None), (0, 0, 0, 5, 0, 0, -1, 0, 0)),
        ((NTH,), Frame("range", -2, None), (0, 3, 0, 0, 2, 0, 0, 0, 0)),
        ((NTH, LAG), Frame("range", 0, None), (0, 7, 0, 0, 0, 0, -1, 0, 0)),
        ((NTH,), Frame("range", 2, None), (0, 0, 0, 0, 0, 0, -1, 1, 0)),
        ((NUMBER, WindowPart("ntile", amount=4)), Frame(), (0, 0, -1, -1, 0, 0, -1, 0, 1)),
        ((WindowPart("cume_dist"),), Frame(), (0, 0, 0, 0, 0, 0, -1, 0, 1)),
        ((NUMBER,), Frame("rows", 0, None), (0, 0, -1, -1, 0, 0, -1, 0, 1)),
        ((SUM,), Frame("range", -(1 << 62), 1), (0, 0, 0, 0, 0, 0, -1, 1, 0)),
        ((LAG,), Frame("range", -(1 << 62), 1), (0, 7, -1, -1, 0, 0, -1, 0, 0)),
    ],
)
def test_how_far_rows_look(parts: tuple[WindowPart, ...], frame: Frame, reach: tuple[int, ...]) -> None:
    functions = WindowFunctions(parts, frame, 2, 1, (-1, 0))
    shape = functions.shape(1, None if functions.is_whole else 0)
    assert tuple(shape[list(WORDS)].tolist()) == reach


def test_which_windows_go_from_the_last_row_back_and_which_both_ways() -> None:
    ends, later = Frame("rows", 0, None), Frame("range", 1, None)
    assert is_read_backwards(["sum", "lag", "first_value"], ends)
    assert not is_read_backwards(["first_value", "lag"], ends), "which cost as little forwards"
    assert is_read_backwards(["first_value"], later), "where they do not"
    assert not is_read_backwards(["sum", "rank"], ends)
    assert two_ways(["sum", "rank", "first_value"], ends) == ([1], [0, 2])
    assert two_ways(["nth_value", "row_number"], ends) is None
    for frame in (Frame(), Frame("rows", None, None), Frame("rows", -1, 1)):
        assert not is_read_backwards(["sum"], frame) and two_ways(["sum", "rank"], frame) is None


def test_more_rows_may_have_another_answer_than_those_that_see_the_change() -> None:
    functions = WindowFunctions((LAG, WindowPart("ntile", amount=4)), Frame(), 2, 1)
    assert functions.buckets == (4,) and functions.asks_totals and not functions.totals.any()
    shape = functions.shape(1, 0, 3)
    assert (shape[NEAR + BACK], shape[NEAR + AHEAD]) == (3, 7)


@pytest.mark.parametrize(
    ("kind", "frame", "lines"),
    [
        ("percent_rank", Frame(), [0]),
        ("cume_dist", Frame(), [0]),
        ("rank", Frame(), []),
        ("sum", Frame("rows", None, None), [2, 3, 4]),
        ("sum", Frame("rows", None, 0), []),
        ("lag", Frame("rows", None, None), []),
    ],
)
def test_answers_that_depend_on_the_end_of_the_group(
    kind: WindowKind, frame: Frame, lines: list[int]
) -> None:
    functions = WindowFunctions((WindowPart(kind, value=1),), frame, 2, 1)
    assert np.flatnonzero(functions.totals).tolist() == lines and functions.asks_totals == bool(lines)


def test_rows_that_are_owed_have_no_copies_and_others_as_many_as_they_count() -> None:
    words = np.array([[5, 6, 7]], np.int64)
    functions = WindowFunctions((RANK,), Frame(), 1, 1)
    bounds = np.array([[0, 2], [2, 3]], np.int64)
    copies = copies_of(words, np.array([[2, -1, 1]], np.int64), bounds, functions)
    assert copies.word(0).tolist() == [5, 5, 7] and copies.number.tolist() == [0, 0, 1]
    assert copies.groups.tolist() == [[0, 0, 2], [2, 2, 3]] == copies.peers.tolist()
    with pytest.raises(MultiplicityOverflowError, match="more than 268,435,456 rows"):
        copies_of(words, np.array([[1, 1 << 40, 1]], np.int64), bounds, functions)
