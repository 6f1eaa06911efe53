"""Chains of linear operators, and the one function that each becomes.

law_*        composition, linearity, negation; the argument is never changed
moves_*      what only moves words is a projection
against_*    random chains against the plain definitions in reference/collection.py
"""

from __future__ import annotations

from collections import Counter
from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import collection as plain
from reference.expressions import value_in_row

from differential.columns.rows import Row
from differential.columns.schema import Schema
from differential.columns.symbols.table import SymbolTable
from differential.errors import SchemaError
from differential.expressions.expression import Expr, col, lit, when
from differential.expressions.projection import CONSTANT, Projection
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


def test_law_the_empty_chain_gives_back_its_argument() -> None:
    words = updates_to_words(CHANGES, SCHEMA, SymbolTable(), pack)
    assert OVER.compile(SymbolTable())(words) is words
    assert OVER.is_identity()
    assert OVER.select({name: col(name) for name in SCHEMA.names}).is_identity()
    assert OVER.negate().negate().is_identity()
    assert not OVER.negate().is_identity()


def test_law_a_chain_is_its_steps_one_after_another() -> None:
    first = OVER.filter(col.a > 1).select({"k": col.b, "s": col.s, "m": col.n + 1})
    second = LinearChain.over(first.schema_out).negate().filter(col.m < 5).select({"s": col.s, "one": lit(1)})
    both = first.then(second)
    assert both.schema_out == second.schema_out == Schema.of("s: string, one: int")
    assert run(both) == run(second, run(first))
    assert both.describe() == [
        "filter(col.a > 1)",
        "select(k=col.b, s=col.s, m=col.n + 1)",
        "negate()",
        "filter(col.m < 5)",
        "select(s=col.s, one=1)",
    ]


def test_moves_renaming_dropping_repeating_constants_and_sign_are_one_projection() -> None:
    chain = OVER.select({"s": col.s, "x": col.n, "y": col.n, "c": lit(7)}).negate()
    chain = chain.select({"c": col.c, "y": col.y, "d": lit(None, "int"), "s": col.s, "e": lit("new")})
    symbols = SymbolTable()
    projection = chain.as_projection(symbols)
    assert projection is not None
    new = int(symbols.intern(["new"])[0])
    assert projection == Projection(
        (CONSTANT, 1, 2, CONSTANT, CONSTANT, 3, CONSTANT), (7, 0, 0, 0, 0, 0, new), -1
    )
    assert symbols.lookup_one(new) == "new"
    assert str(chain.schema_out) == "c: int, y: int?, d: int?, s: string, e: string"
    assert run(chain).changes[1] == Update((7, 3, None, "y", "new"), (0, 1), -2)
    assert projection.describe().endswith("] -")


def test_moves_a_computed_or_filtered_chain_is_no_projection() -> None:
    assert OVER.filter(col.a > 1).as_projection() is None
    assert OVER.select({"a": col.a + 1}).as_projection() is None
    assert OVER.map(lambda row: row).as_projection() is None


def test_moves_key_layout_puts_the_words_of_the_key_first() -> None:
    chain = LinearChain.over(SCHEMA).keyed_by(["s", "n"])
    assert chain.schema_out.names == ("s", "n", "a", "b")
    projection = chain.as_projection()
    assert projection is not None and projection.sources == (3, 1, 2, 0, 4)
    assert LinearChain.over(SCHEMA).keyed_by(["a"]).is_identity()
    assert LinearChain.over(SCHEMA).keyed_by([]).is_identity()
    with pytest.raises(SchemaError, match="no column 'z'"):
        OVER.keyed_by(["z"])
    with pytest.raises(SchemaError, match="named twice"):
        OVER.keyed_by(["a", "a"])


Step = tuple[str, object]


int_exprs = st.sampled_from(
    [
        col.a,
        col.b,
        lit(1),
        col.a + col.b,
        col.n.fill_null(0),
        when(col.a > col.b).then(col.a).otherwise(-col.b),
    ]
)


conditions = st.sampled_from(
    [
        col.a > 0,
        (col.n == 1) | (col.a == col.b),
        ~(col.n < 2),
        col.s == "x",
        col.s.is_in(["x", "z"]),
        lit(True),
    ]
)


steps = st.one_of(
    st.tuples(st.just("select"), st.tuples(int_exprs, int_exprs)),
    st.tuples(st.just("filter"), conditions),
    st.tuples(st.just("negate"), st.none()),
    st.tuples(st.just("map"), st.none()),
    st.tuples(st.just("flat_map"), st.none()),
)


small = st.integers(-2, 2)


random_changes = st.lists(
    st.tuples(
        st.tuples(small, st.none() | small, st.sampled_from(["x", "y"]), small),
        st.tuples(st.integers(0, 2), st.integers(0, 2)),
        st.integers(-2, 2),
    ),
    max_size=8,
)


def _swapped(row: Row) -> Row:
    return (row[3], row[1], row[2], row[0])


def _copies(row: Row) -> list[Row]:
    return [row] * (cast(int, row[0]) % 3)


def _apply(chain: LinearChain, step: Step) -> LinearChain:
    kind, what = step
    if kind == "select":
        first, second = cast(tuple[Expr, Expr], what)
        return chain.select({"a": first, "n": col.n, "s": col.s, "b": second})
    if kind == "filter":
        return chain.filter(cast(Expr, what))
    if kind == "negate":
        return chain.negate()
    return chain.map(_swapped) if kind == "map" else chain.flat_map(_copies)


def _apply_plain(rows: plain.Collection, step: Step) -> plain.Collection:
    kind, what = step
    if kind == "select":
        first, second = cast(tuple[Expr, Expr], what)

        def selected(row: plain.Row) -> plain.Row:
            record = dict(zip(SCHEMA.names, row, strict=True))
            return cast(
                plain.Row,
                (value_in_row(first, record, SCHEMA), *row[1:3], value_in_row(second, record, SCHEMA)),
            )

        return plain.select(rows, selected)
    if kind == "filter":
        condition = cast(Expr, what)
        return plain.filter_rows(
            rows,
            lambda row: value_in_row(condition, dict(zip(SCHEMA.names, row, strict=True)), SCHEMA) is True,
        )
    if kind == "negate":
        return plain.negate(rows)
    if kind == "map":
        return plain.map_rows(rows, _swapped)
    return plain.flat_map(rows, _copies)


@given(st.lists(steps, max_size=5), random_changes)
def test_against_the_plain_definitions_at_every_time(
    given_steps: list[Step], changes: list[tuple[Row, tuple[int, int], int]]
) -> None:
    chain = OVER
    for step in given_steps:
        chain = _apply(chain, step)
    found = run(chain, Updates(SCHEMA.names, tuple(Update(*change) for change in changes)))

    def whole(*inputs: plain.Collection) -> plain.Collection:
        (rows,) = inputs
        for step in given_steps:
            rows = _apply_plain(rows, step)
        return rows

    source = plain.history(cast("list[tuple[plain.Row, plain.Time, int]]", changes))
    actual = plain.history(cast("list[tuple[plain.Row, plain.Time, int]]", list(found.changes)))
    plain.assert_same_meaning(actual, whole, source)
    assert actual == plain.difference(whole)(source)


def test_against_accumulation_being_linear() -> None:
    chain = OVER.filter(col.a > 1).select({"a": col.a * 2})
    doubled = Updates(CHANGES.columns, CHANGES.changes * 2)
    once = run(chain).consolidated()
    assert run(chain, doubled).consolidated() == Counter({key: 2 * diff for key, diff in once.items()})
