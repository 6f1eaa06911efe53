"""Blocks: rows packed by column, and back; and the room that is given back."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from reference.words import Row, as_words, rows_of
from strategies_words import rows
from words_seen import Seen

from differential.columns.packed.block import Block
from timely.dictionaries import Mark


@given(rows(2, wide=True).filter(len))
def test_a_block_has_the_rows_that_it_is_made_of_in_their_order(some: list[Row]) -> None:
    block = Block(as_words(some, 4))
    assert (rows_of(block.words()), block.rows, block.columns) == (some, len(some), 4)
    for column in range(4):
        words = np.empty(len(some), np.int64)
        block.write(column, words)
        assert words.tolist() == [row[column] for row in some]


@given(rows(2, wide=True).filter(len))
def test_a_block_shows_the_words_of_the_columns_that_are_asked_for(some: list[Row]) -> None:
    seen = Seen()
    Block(as_words(some, 4)).symbols(Mark([seen]), [1])
    assert seen.words == {row[1] for row in some}


def test_a_column_takes_as_many_bytes_as_its_values_need_and_none_if_they_are_the_same() -> None:
    rows_many = 1 << 16
    number = np.arange(rows_many)
    wide = Block(np.stack([number << 20, number, np.full_like(number, -7), np.ones_like(number)]))
    assert wide.bytes <= (8 + 2) * rows_many + 4096
