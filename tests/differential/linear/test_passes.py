"""Passes over the words: filters in order, computed columns beside moved ones, few rows and many."""

from __future__ import annotations

import numpy as np
import pytest

from differential.columns.schema import Schema
from differential.columns.symbols.table import SymbolTable
from differential.errors import ExpressionError, RowError
from differential.expressions.expression import col, lit, when
from differential.linear.chain import LinearChain
from differential.testing import Update, Updates, updates, updates_from_words, updates_to_words

SCHEMA = Schema.of("a: int, n: int?, s: string, b: int")


CHANGES = updates(
    """
    a | n    | s | b | time   | diff
    1 | null | x | 5 | (0, 0) | +1
    2 | 3    | y | 6 | (0, 1) | +2
    3 | 4    | x | 7 | (1, 0) | -1
    """,
    SCHEMA,
)


def pack(time: tuple[int, ...]) -> int:
    return time[0] * 1000 + time[1]


def unpack(word: int) -> tuple[int, ...]:
    return divmod(word, 1000)


def run(chain: LinearChain, changes: Updates = CHANGES) -> Updates:
    """What the chain's function makes of `changes`, which it must leave alone."""
    symbols = SymbolTable()
    words = updates_to_words(changes, chain.schema_in, symbols, pack)
    before = words.copy()
    result = chain.compile(symbols)(words)
    assert np.array_equal(words, before)
    if result is None:
        return Updates(chain.schema_out.names, ())
    assert result.flags.c_contiguous and result.dtype == np.int64
    assert result.shape[0] == chain.schema_out.width + 2
    return updates_from_words(result, chain.schema_out, symbols, unpack)


OVER = LinearChain.over(SCHEMA)


@pytest.mark.parametrize("rows", [1, 3, 127, 128, 129, 1000])
def test_moves_and_filters_are_the_same_for_few_and_for_many_rows(rows: int) -> None:
    words = np.arange(6 * rows, dtype=np.int64).reshape(6, rows)
    schema = Schema.of("a: int, b: int, c: int, d: int")
    chain = (
        LinearChain.over(schema).select({"d": col.d, "k": lit(3), "a": col.a}).negate().filter(col.a % 3 == 0)
    )
    result = chain.compile(SymbolTable())(words)
    assert result is not None
    keep = words[:, words[0] % 3 == 0]
    assert np.array_equal(result, np.stack([keep[3], np.full(keep.shape[1], 3), keep[0], keep[4], -keep[5]]))


def test_filter_keeps_what_is_true_and_gives_none_for_nothing() -> None:
    assert [change.row[0] for change in run(OVER.filter(col.n > 3)).changes] == [3]
    assert [change.row[0] for change in run(OVER.filter(~(col.n > 3))).changes] == [2], "null is not false"
    words = updates_to_words(CHANGES, SCHEMA, SymbolTable(), pack)
    assert OVER.filter(col.a > 9).compile(SymbolTable())(words) is None
    assert OVER.filter(col.a > 9).map(lambda row: row).compile(SymbolTable())(words) is None
    assert OVER.filter(lit(False)).compile(SymbolTable())(words) is None
    assert OVER.filter(lit(True)).compile(SymbolTable())(words) is words
    assert OVER.filter(col.a > 0).compile(SymbolTable())(words) is words, "nothing is copied if all rows pass"


def test_filter_that_can_fail_sees_only_what_earlier_filters_let_through() -> None:
    chain = OVER.filter(col.a != 2).filter(10 // (col.a - 2) < 0)
    assert [change.row[0] for change in run(chain).changes] == [1]
    with pytest.raises(RowError, match=r"divides by zero in the row with a=2"):
        run(OVER.filter(10 // (col.a - 2) < 0))
    guarded = OVER.filter(col.a != 2).select({"q": 10 // (col.a - 2)})
    assert [change.row for change in run(guarded).changes] == [(-10,), (10,)]


def test_filter_needs_a_condition_and_says_where_it_was_written() -> None:
    with pytest.raises(
        ExpressionError, match=r"filter\(col.a \+ 1\) \(.*test_\w+.py:\d+\) needs a condition.*int"
    ):
        OVER.filter(col.a + 1)
    with pytest.raises(ExpressionError, match="no column 'q'"):
        OVER.select({"x": col.q})


def test_computed_columns_stand_beside_moved_ones() -> None:
    chain = OVER.with_columns(
        {"a": col.a * 10, "f": col.b / 2, "big": col.a > 1, "m": when(col.a > 1).then(col.n)}
    )
    assert str(chain.schema_out) == "a: int, n: int?, s: string, b: int, f: float, big: bool, m: int?"
    assert run(chain.negate()).changes[1] == Update((20, 3, "y", 6, 3.0, True, 3), (0, 1), -2)


def test_against_words_no_step_looks_at_times() -> None:
    words = np.array([[1, 2], [0, 0], [0, 0], [0, 0], [5, 5], [2**62, 0], [1, 1]], dtype=np.int64)
    result = OVER.filter(col.a > 1).compile(SymbolTable())(words)
    assert result is not None and result[-2:].tolist() == [[0], [1]]


def test_a_filter_looks_up_no_text_of_a_row_that_a_filter_before_it_excludes() -> None:
    schema = Schema.of("s: string?, n: int")
    changes = updates(
        """
        s    | n | time   | diff
        null | 1 | (0, 0) | +1
        x    | 2 | (0, 0) | +1
        """,
        schema,
    )
    chain = LinearChain.over(schema).filter(col.s.is_not_null()).not_null(["s"])
    assert run(chain.filter(col.s.str.upper() == "X").select({"n": col.n}), changes) == updates(
        """
        n | time   | diff
        2 | (0, 0) | +1
        """,
        Schema.of("n: int"),
    )
