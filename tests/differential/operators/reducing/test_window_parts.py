"""window_parts.py: how far rows look in their group, and how often they are there."""

from __future__ import annotations

import numpy as np
import pytest

from differential.errors import MultiplicityOverflowError
from differential.kernels.sweeps.around import AHEAD, BACK, BLOCKS, DISTANCE, MARKED, NEAR, WHOLE, WORD
from differential.operators.reducing.window_parts import Frame, WindowFunctions, WindowPart, copies_of

SUM = WindowPart("sum", value=1)
LAG = WindowPart("lag", value=1, amount=-7)
NUMBER = WindowPart("row_number")
RANK = WindowPart("rank")
LEAD = WindowPart("lag", value=1, amount=-1)
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
        ((NUMBER, WindowPart("ntile", amount=4)), Frame(), (0, 0, -1, -1, 0, 0, -1, 1, 0)),
        ((NUMBER,), Frame("rows", 0, None), (0, 0, -1, -1, 0, 0, -1, 0, 1)),
        ((SUM,), Frame("range", -(1 << 62), 1), (0, 0, 0, 0, 0, 0, -1, 1, 0)),
        ((LAG,), Frame("range", -(1 << 62), 1), (0, 7, -1, -1, 0, 0, -1, 0, 0)),
    ],
)
def test_how_far_rows_look(parts: tuple[WindowPart, ...], frame: Frame, reach: tuple[int, ...]) -> None:
    functions = WindowFunctions(parts, frame, 2, 1, (-1, 0))
    assert tuple(functions.shape(1, 0)[list(WORDS)].tolist()) == reach


def test_long_texts_are_put_in_order_for_whole_groups() -> None:
    assert WindowFunctions((NUMBER,), Frame(), 2, 1, symbols=((0, 1),)).is_whole


def test_rows_that_are_owed_have_no_copies_and_others_as_many_as_they_count() -> None:
    words = np.array([[5, 6, 7]], np.int64)
    functions = WindowFunctions((RANK,), Frame(), 1, 1)
    bounds = np.array([[0, 2], [2, 3]], np.int64)
    copies = copies_of(words, np.array([[2, -1, 1]], np.int64), bounds, functions)
    assert copies.word(0).tolist() == [5, 5, 7] and copies.number.tolist() == [0, 0, 1]
    assert copies.groups.tolist() == [[0, 0, 2], [2, 2, 3]] == copies.peers.tolist()
    with pytest.raises(MultiplicityOverflowError, match="more than 268,435,456 rows"):
        copies_of(words, np.array([[1, 1 << 40, 1]], np.int64), bounds, functions)
