"""Words that have the order of text: beginnings as far as they go, ranks in all."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from differential.columns.symbols.table import SymbolTable
from differential.operators.ordered.symbol_order import BEGINNING_WORDS, beginnings, ranks

LONG = "x" * (8 * (BEGINNING_WORDS - 1))
TEXTS = st.one_of(st.text(max_size=6), st.text(alphabet="ab\0é", max_size=70))


@given(st.lists(TEXTS, min_size=2, max_size=100))
def test_beginnings_and_ranks_have_the_order_of_text(values: list[str]) -> None:
    table = SymbolTable()
    words = table.intern(values)
    begins = beginnings(words, table).T.tolist()
    order = ranks(words, table).tolist()
    for a, begin, rank in zip(values, begins, order, strict=True):
        for b, other, its in zip(values, begins, order, strict=True):
            if a < b:
                assert begin <= other and rank < its
                assert begin < other or len(b.encode()) <= len(LONG)  # places are there for all of these
            if a == b:
                assert begin == other


@given(st.lists(st.binary(max_size=70), min_size=2, max_size=30))
def test_beginnings_and_ranks_have_the_order_of_bytes(values: list[bytes]) -> None:
    table = SymbolTable()
    words = table.intern(values)
    pairs = zip(beginnings(words, table).T.tolist(), ranks(words, table).tolist(), values, strict=True)
    for begin, rank, value in pairs:
        for other, its, another in zip(
            beginnings(words, table).T.tolist(), ranks(words, table).tolist(), values, strict=True
        ):
            assert not value < another or (begin <= other and rank < its)


@pytest.mark.parametrize("rows", [3, 200])
def test_null_has_an_empty_beginning_whatever_stands_beside_it(rows: int) -> None:
    table = SymbolTable()
    word = table.intern_one(LONG + "y")
    words = np.array([0, word] * rows, np.int64)
    found = beginnings(words, table)
    assert found.shape == (BEGINNING_WORDS, 2 * rows)
    assert (found[:, ::2] == 0).all() and (found[:, 1::2] == found[:, 1:2]).all() and found[0, 1] != 0


def test_values_that_begin_alike_differ_in_place_or_if_they_are_short_in_rank_alone() -> None:
    table = SymbolTable()
    words = table.intern([LONG + "b", LONG + "a", LONG])
    found = beginnings(words, table)
    assert (found[:-1, :1] == found[:-1]).all()
    assert found[-1, 2] == 0 < found[-1, 1] < found[-1, 0]
    assert ranks(words, table).tolist() == [2, 1, 0]
    short = beginnings(table.intern(["a", "a\0"]), table)
    assert (short[:, 0] == short[:, 1]).all()
    assert ranks(np.array([0, words[0], 0, words[1]]), table).tolist() == [0, 1, 0, 0], "null has no value"
