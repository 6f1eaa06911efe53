"""Pieces of a tail: what came, at the times at which it came. In a trace: `test_shared.py`."""

from __future__ import annotations

import pytest
from hypothesis import given
from reference.words import Row, as_words, consolidated, lub, rows_of
from strategies_words import CODES, rows

from differential.kernels.rows.columns import decode_words
from differential.kernels.rows.memory import LUB
from differential.trace.tail import TailPiece

GUARDS = CODES[2].guards


@given(rows(2), rows(2))
def test_two_pieces_as_one_have_the_rows_and_numbers_of_both(some: list[Row], more: list[Row]) -> None:
    older = TailPiece(3, 4, as_words(consolidated(some), 4), GUARDS)
    newer = TailPiece(5, 5, as_words(consolidated(more), 4), GUARDS)
    both = older.with_newer(newer)
    assert (both.first, both.last) == (3, 5)
    assert rows_of(both.words) == consolidated(some + more)
    assert rows_of(decode_words(both.line.reshape(1, -1), 0, 4)) == consolidated(some + more)
    for _, _, time, _ in consolidated(some + more):
        assert lub(time, int(both.line[LUB]), GUARDS) == both.line[LUB]


def test_only_neighbours_become_one() -> None:
    piece = TailPiece(3, 4, as_words([(1, 0, 1)], 3), GUARDS)
    with pytest.raises(AssertionError):
        piece.with_newer(TailPiece(6, 6, piece.words, GUARDS))
