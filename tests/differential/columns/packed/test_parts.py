"""Rows in parts, packed or not: joined and in order they are what they were as words."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.words import Row, as_words, consolidated, rows_of
from strategies_words import rows
from words_seen import Seen

from differential.columns.packed import parts as parts_module
from differential.columns.packed.block import Block
from differential.columns.packed.parts import (
    Part,
    bytes_in,
    changed,
    column_of,
    columns_of,
    each_in,
    in_order,
    joined,
    packed,
    rows_in,
    symbols_in,
    with_added,
    words_in,
)
from differential.kernels.rows import sort
from differential.kernels.rows.sort import PackedRows
from timely.dictionaries import Mark

some_parts = st.lists(
    st.tuples(rows(2, rows_max=9) | rows(2, wide=True, rows_max=9), st.booleans()).filter(
        lambda part: bool(part[0])
    ),
    min_size=1,
    max_size=6,
)


def _parts(given_parts: list[tuple[list[Row], bool]]) -> list[Part]:
    return [Block(as_words(some, 4)) if is_packed else as_words(some, 4) for some, is_packed in given_parts]


@given(some_parts)
def test_joined_and_one_by_one_they_are_all_rows_in_their_order(
    given_parts: list[tuple[list[Row], bool]],
) -> None:
    every = [row for some, _ in given_parts for row in some]
    parts = _parts(given_parts)
    assert rows_in(parts) == len(every)
    assert [row for words in words_in(parts) for row in rows_of(words)] == every
    assert rows_of(joined(parts)) == every and parts == []
    parts = _parts(given_parts)
    assert [row for words in each_in(parts) for row in rows_of(words)] == every and parts == []


@given(some_parts)
def test_what_is_asked_of_parts_does_not_depend_on_which_are_packed(
    given_parts: list[tuple[list[Row], bool]],
) -> None:
    parts = _parts(given_parts)
    plain = words_in(parts)
    for part, words in zip(parts, plain, strict=True):
        assert columns_of(part) == 4
        for column in (0, 1, -2, -1):
            assert column_of(part, column).tolist() == words[column].tolist()
        twice = changed(part, lambda words: words + 1)
        assert isinstance(twice, Block) == isinstance(part, Block)
        assert words_in([twice])[0].tolist() == (words + 1).tolist()
        later = with_added(part, (-2, 0), 3)
        assert isinstance(later, Block) == isinstance(part, Block)
        assert words_in([later])[0].tolist() == (words + np.array([[3], [0], [3], [0]])).tolist()
        assert words_in([part])[0].tolist() == words.tolist()
    assert bytes_in(parts) == sum(part.bytes if isinstance(part, Block) else 8 * part.size for part in parts)
    seen = Seen()
    symbols_in(parts, Mark([seen]))
    assert seen.words == {word for words in plain for word in words[:2].ravel().tolist()}


@pytest.mark.parametrize("piece", [2, 1 << 14], ids=["in pieces", "whole"])
@pytest.mark.parametrize("many", [1, 1 << 20], ids=["many", "few"])
@given(some_parts)
def test_in_order_they_are_what_sorting_all_gives(
    many: int, piece: int, given_parts: list[tuple[list[Row], bool]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sort, "MANY_ROWS", many)
        patch.setattr(parts_module, "_PIECE_ROWS", piece)
        parts = _parts(given_parts)
        found = in_order(parts)
    words = found.unpack(0, found.rows) if isinstance(found, PackedRows) else found
    assert rows_of(words) == consolidated([row for some, _ in given_parts for row in some])
    assert parts == []


@pytest.mark.parametrize("forms", [(True, True), (True, False), (False, False)])
@pytest.mark.parametrize("spread", [0, 2**62], ids=["fit a word", "do not"])
def test_rows_whose_sum_leaves_64_bits_are_among_the_parts_afterwards(
    forms: tuple[bool, bool], spread: int
) -> None:
    some = [(5, 1, 0, 2**62), (spread, -spread, 0, 1)]
    parts = _parts([([*some, (5, 1, 0, 2**62 - 1)], forms[0]), (some, forms[1])])
    with pytest.raises(OverflowError):
        in_order(parts)
    found = [row for words in words_in(parts) for row in rows_of(words)]
    assert sum(row[3] for row in found if row[:2] == (5, 1)) == 3 * 2**62 - 1


def test_many_rows_are_packed_in_blocks() -> None:
    words = np.arange(4 * 300_000).reshape(4, 300_000)
    blocks = list(packed(words))
    assert [block.rows for block in blocks] == [*(4 * [1 << 16]), 300_000 - (1 << 18)]
    assert np.array_equal(joined(list[Part](blocks)), words)
