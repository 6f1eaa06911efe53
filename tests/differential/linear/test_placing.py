"""placing.py: each row once for each unit that it is given, with the unit in front."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from differential.columns.column_types import Int64s
from differential.columns.schema import Schema
from differential.columns.symbols.table import SymbolTable
from differential.errors import SchemaError
from differential.expressions.expression import col
from differential.kernels.rows.hashing import hash_of_key, hashes_of
from differential.linear.chain import LinearChain
from differential.linear.placing import UNIT, placed

SCHEMA = Schema.of("a: int, b: int?, c: int")


def _by_hash(words: Int64s, keys: Int64s) -> Int64s:
    """A row as often as its key's hash says, modulo 3, on units from that of its own hash on."""
    counts = hashes_of(words, keys) % 3
    rows = np.repeat(np.arange(len(counts)), counts)
    numbers = np.concatenate([np.arange(n) for n in counts]) if len(counts) else rows
    units = hashes_of(words, np.arange(len(words) - 2))[rows] % 5 + numbers
    return np.vstack([units, words.take(rows, 1)])


@given(st.lists(st.tuples(*[st.integers(-2, 2)] * 2, st.integers(0, 1), st.integers(0, 2)), max_size=6))
def test_a_row_is_on_the_units_of_its_hashes(some: list[tuple[int, ...]]) -> None:
    rows = [(a, flag, b * flag, c, 7, 2) for a, b, flag, c in some]
    words = np.array(rows, np.int64).reshape(-1, 6).T.copy()
    chain = LinearChain.over(SCHEMA).place(("c", "b"), _by_hash, "by hash")
    assert chain.schema_out.names == (UNIT, "a", "b", "c")
    made = chain.compile(SymbolTable())(words)
    wanted = []
    for row in rows:
        keyed = np.array([[row[3]], [row[1]], [row[2]]])
        whole = np.array(row[:-2]).reshape(4, 1)
        first = hash_of_key(whole, 0, 4) % 5
        wanted += [(first + n, *row) for n in range(hash_of_key(keyed, 0, 3) % 3)]
    assert wanted == ([] if made is None else [tuple(row) for row in made.T.tolist()])
    assert made is None or made.flags.c_contiguous


def test_steps_around_it_are_done_in_their_order() -> None:
    chain = LinearChain.over(SCHEMA).filter(col.a > 0).place(("a",), _one_unit, "all in one")
    chain = chain.negate().select({"x": col(UNIT) + col.a}).filter(col.x > 4)
    words = np.array([[0, 1, 2], [0, 0, 0], [0, 0, 0], [1, 1, 1], [0, 0, 0], [1, 1, 1]])
    made = chain.compile(SymbolTable())(words)
    assert made is not None and made.tolist() == [[5], [0], [-1]]


def _one_unit(words: Int64s, keys: Int64s) -> Int64s:
    return np.vstack([np.full(words.shape[1], 3), words])


def test_it_says_the_same_in_every_process_and_is_no_projection() -> None:
    chain = LinearChain.over(SCHEMA).place(("a", "c"), _one_unit, "all in one")
    assert chain.describe() == ["place by a, c: all in one"]
    assert chain.as_projection() is None
    assert LinearChain.over(SCHEMA).place((), _one_unit, "all").describe() == ["place by nothing: all"]


def test_a_column_of_that_name_is_refused() -> None:
    with pytest.raises(SchemaError, match="called '\\(unit\\)'"):
        placed(Schema.of({UNIT: "int"}))
