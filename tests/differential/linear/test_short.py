"""The short form of a chain says the same as its function on whole columns, or there is none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import differential as dd
from differential import col
from differential.columns.column_types import ColumnType, Int64s
from differential.columns.symbols.table import SymbolTable
from differential.compiled_loops.carrying import Carrying
from differential.compiled_loops.tables import Parts
from differential.errors import RowError
from differential.expressions.literals import constant_word
from differential.kernels.compiled_loops.edges import pass_on
from differential.kernels.compiled_loops.layout import FAR, STATE
from differential.linear.chain import LinearChain
from differential.linear.short import Short, short_of

SCHEMA = "a: int, b: int, s: str"
CHAINS = {
    "moved": lambda c: c.select({"y": col.b, "x": col.a, "k": dd.lit(3)}),
    "summed": lambda c: c.select({"a": col.a + 1, "b": 5 + col.b, "s": col.s}),
    "taken": lambda c: c.select({"a": col.a - 7}),
    "filtered": lambda c: c.filter((col.a < col.b) & (col.a <= 3)),
    "unequal": lambda c: c.filter(col.a != col.b).select({"b": col.b}),
    "turned": lambda c: c.filter((dd.lit(3) > col.a) & (dd.lit(-2) <= col.b)),
    "turned, too": lambda c: c.filter((dd.lit(0) < col.a) & (dd.lit(5) >= col.b) & (dd.lit(1) != col.a)),
    "text": lambda c: c.filter(col.s == "x").negate(),
    "renamed": lambda c: c.select({"z": col.a, "w": col.b}).filter(col.z > 0).select({"v": col.w + 2}),
}
NONE = {
    "product": lambda c: c.select({"a": col.a * 2}),
    "two columns": lambda c: c.select({"a": col.a + col.b}),
    "or": lambda c: c.filter((col.a > 0) | (col.b > 0)),
    "order of texts": lambda c: c.filter(col.s < "x"),
    "filter behind a sum": lambda c: c.select({"a": col.a + 1, "b": col.b}).filter(col.b > 0),
    "sum of a sum": lambda c: c.select({"a": col.a + 1}).select({"a": col.a + 1}),
    "function": lambda c: c.map(lambda row: row),
}
WORDS = st.integers(-4, 8) | st.sampled_from([-(1 << 63), (1 << 63) - 1])


@pytest.mark.parametrize("name", CHAINS)
@given(rows=st.lists(st.tuples(WORDS, WORDS, st.integers(0, 1), st.integers(1, 2)), min_size=1, max_size=30))
def test_short_form_does_what_the_chain_does(name: str, rows: list[tuple[int, int, int, int]]) -> None:
    symbols = SymbolTable()
    texts = _texts(symbols)
    chain = CHAINS[name](LinearChain.over(SCHEMA))
    words = np.array([(a, b, texts[s], t, 1) for a, b, s, t in rows], np.int64).T.copy()
    short = short_of(chain.steps, chain.schema_in, symbols)
    assert short is not None
    try:
        wanted = chain.compile(symbols)(words)
    except RowError:
        with pytest.raises(OverflowError):
            _passed(short, words, chain.schema_out.width)
        return
    made = _passed(short, words, chain.schema_out.width)
    assert made.T.tolist() == ([] if wanted is None else wanted.T.tolist())


def _passed(short: Short, words: Int64s, width: int) -> Int64s:
    """What a kernel makes of rows."""
    parts = Parts(np.zeros((2, 1), np.int64), 0)
    slot = parts.slots.add(width + 2)
    parts.add_edge(slot, 0, Carrying(-1, 0, short.words, short.sign, short.tests, (0, 0, FAR), False), None)
    parts.close()
    state, told = np.zeros(STATE, np.int64), np.zeros((3, 9), np.int64)
    assert pass_on(words, 0, 1, parts.edges, parts.slots.table, state, told) == 0
    return parts.slots.take(slot)


def _texts(symbols: SymbolTable) -> list[int]:
    return [constant_word(text, ColumnType("string"), symbols) for text in ("x", "y")]


@pytest.mark.parametrize("name", NONE)
def test_other_chains_have_none(name: str) -> None:
    chain = NONE[name](LinearChain.over(SCHEMA))
    assert short_of(chain.steps, chain.schema_in, SymbolTable()) is None


def test_columns_that_may_be_null_have_none_in_a_condition() -> None:
    chain = LinearChain.over("a: int?, b: int").filter(col.a == 1)
    assert short_of(chain.steps, chain.schema_in, SymbolTable()) is None
    chain = LinearChain.over("a: int?, b: int").select({"a": col.a + 1})
    assert short_of(chain.steps, chain.schema_in, SymbolTable()) is None
    moved = LinearChain.over("a: int?, b: int").select({"c": col.a})
    short = short_of(moved.steps, moved.schema_in, SymbolTable())
    assert short is not None and short.words[0].tolist() == [0, 1]


@pytest.mark.parametrize("condition", [col.a == col.b, col.a > 0, col.b != col.a])
def test_conditions_on_what_may_be_null_have_none(condition: dd.Expr) -> None:
    chain = LinearChain.over("a: int?, b: int?").filter(condition)
    assert short_of(chain.steps, chain.schema_in, SymbolTable()) is None
