"""What a piece of an output is: its size, and what a wish for one says."""

from __future__ import annotations

import pytest

from timely.operators.outputs.pieces import PieceRequest, rows_of_a_piece


@pytest.mark.parametrize(("bytes_max", "words", "rows"), [(800, 4, 25), (31, 4, 1), (800, 0, 100), (0, 9, 1)])
def test_a_piece_has_the_rows_that_fit_and_one_at_least(bytes_max: int, words: int, rows: int) -> None:
    assert rows_of_a_piece(bytes_max, words) == rows


def test_a_start_below_zero_asks_for_the_collection() -> None:
    assert (
        PieceRequest(-1, 3, 0, 0, 1, ("a",)).is_snapshot
        and not PieceRequest(0, 3, 0, 0, 1, ("a",)).is_snapshot
    )
