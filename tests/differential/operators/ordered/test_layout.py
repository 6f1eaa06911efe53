"""Rows laid out in order: words in the order of values, and back."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from differential.columns.column_types import Int64s
from differential.columns.rows import decode_rows, encode_rows
from differential.columns.schema import Schema
from differential.columns.worker_symbols import SYMBOLS
from differential.operators.ordered.layout import InOrder, SortDirection
from differential.operators.ordered.symbol_order import BEGINNING_WORDS

SCHEMA = Schema.of("k: int, a: int?, s: string?, f: float, rest: string")
ROWS = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.one_of(st.none(), st.sampled_from([-(2**63), -1, 0, 1, 2**63 - 1])),
        st.one_of(st.none(), st.text(alphabet="ab", max_size=3)),
        st.floats(allow_nan=False),
        st.sampled_from(["x", "y"]),
    ),
    max_size=12,
)
TURN = st.builds(SortDirection, st.booleans(), st.booleans())


def _words(rows: list[tuple[object, ...]]) -> Int64s:
    full = np.ones((SCHEMA.width + 2, len(rows)), np.int64)
    full[:-2] = encode_rows(SCHEMA, rows, SYMBOLS, "test")
    full[-2] = 0
    return full


@given(ROWS, st.tuples(TURN, TURN, TURN))
def test_layout_words_have_the_order_of_values_and_come_back(
    rows: list[tuple[object, ...]], turns: tuple[SortDirection, SortDirection, SortDirection]
) -> None:
    order = InOrder(SCHEMA, 1, turns, 3)
    encoded = order.encode(_words(rows))
    assert encoded.shape[0] == 1 + order.aggregate().width + 2
    kept = sorted(map(str, rows))
    assert sorted(str(row) for row in decode_rows(SCHEMA, order.decode(encoded), SYMBOLS)) == sorted(
        set(kept)
    )
    for row, words in zip(rows, encoded.T.tolist(), strict=True):
        (again,) = decode_rows(SCHEMA, np.array([[*order.plain_row(words[:-2]), 0, 1]]).T.copy(), SYMBOLS)
        assert str(again) == str(row)
        for other, its in zip(rows, encoded.T.tolist(), strict=True):
            if _less(row[1:4], other[1:4], turns):
                assert words[1:-3] < its[1:-3]


def _less(a: tuple[object, ...], b: tuple[object, ...], turns: tuple[SortDirection, ...]) -> bool:
    for left, right, turn in zip(a, b, turns, strict=True):
        if left == right:
            continue
        if left is None or right is None:
            return (left is None) != turn.nulls_last
        return bool(left < right) != turn.descending  # type: ignore[operator]  # of one type
    return False


def test_layout_says_which_words_are_symbols_and_which_decide_of_a_rank() -> None:
    first = InOrder(SCHEMA, 1, (SortDirection(), SortDirection(descending=True)), 3, 1, "rank").aggregate()
    symbol = 2 + 1 + BEGINNING_WORDS
    assert (first.symbols, first.ordered) == (((symbol, -1),), symbol + 1)
    assert (first.limit, first.offset, first.rank, first.words) == (3, 1, "rank", first.width + 1)


def test_layout_of_what_is_in_order_already_costs_nothing() -> None:
    schema = Schema.of("k: int, a: int?, b: timestamp, c: string")
    order = InOrder(schema, 1, (SortDirection(), SortDirection()), 3)
    words = np.zeros((schema.width + 2, 5), np.int64)
    assert order.encode(words) is words and order.decode(words) is words
