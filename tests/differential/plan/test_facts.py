"""facts.py: what is known of a collection from its plan alone."""

from __future__ import annotations

import pyarrow as pa
import pytest

import differential as dd
from differential import col
from differential.columns.schema import Schema
from differential.plan import nodes as n
from differential.plan.facts import (
    group_keys,
    has_key,
    is_consolidated,
    is_small,
    makes_all_pairs,
    small_side,
)

AB = n.Input(Schema.of("a: int, b: int"), "ab")
ONCE = n.Distinct(AB)
SUMS = n.Accumulate((AB,), ("a",), 1, (n.AddedColumn("n", 0, dd.count()),))


@pytest.mark.parametrize(
    "node", [ONCE, SUMS, n.Consolidate(AB), n.Negate(ONCE), n.Select(ONCE, (("y", col.b), ("x", col.a)))]
)
def test_consolidated_is_what_an_operator_with_state_sends(node: n.Node) -> None:
    assert is_consolidated(node)


@pytest.mark.parametrize(
    "node",
    [
        AB,
        n.Select(ONCE, (("a", col.a),)),
        n.Select(ONCE, (("a", col.a), ("b", col.b + 1))),
        n.Select(ONCE, (("a", col.a), ("b", col.a))),
        n.Filter(AB, col.a > 1),
        n.Concat((ONCE, SUMS_AB := n.Select(SUMS, (("a", col.a), ("b", col.n))))),
        n.Join(ONCE, n.Select(AB, (("a", col.a), ("c", col.b))), (("a", "a"),)),
        n.LeaveLoop(n.LetRec("loop", 1, (ONCE,), (n.Distinct(n.Variable(AB.schema, 1, 0)),), 9), 0),
    ],
)
def test_consolidated_is_not_what_can_repeat_or_cancel(node: n.Node) -> None:
    assert not is_consolidated(node)
    assert is_consolidated(SUMS_AB)


def _left(body: n.Node) -> n.Node:
    return n.LeaveLoop(n.LetRec("loop", 1, (SUMS,), (body,), 9), 0)


@pytest.mark.parametrize(
    ("node", "keys"),
    [
        (SUMS, ("a",)),
        (n.Select(SUMS, (("x", col.n), ("y", col.a))), ("y",)),
        (n.Filter(n.Negate(SUMS), col.n > 1), ("a",)),
        (_left(SUMS), ("a",)),
        (_left(n.Select(SUMS, (("a", col.n), ("n", col.a)))), ("n",)),
        (n.Reduce(AB, ("b",), (("lo", dd.min("a")),)), ("b",)),
    ],
)
def test_rows_of_groups_lie_by_their_keys(node: n.Node, keys: tuple[str, ...]) -> None:
    assert group_keys(node) == keys


@pytest.mark.parametrize(
    "node",
    [
        AB,
        ONCE,
        n.Select(SUMS, (("x", col.n),)),
        n.Select(SUMS, (("x", col.a + 1), ("n", col.n))),
        n.Reduce(AB, (), (("lo", dd.min("a")),)),
        n.Concat((SUMS, SUMS)),
        n.Join(SUMS, n.Select(AB, (("a", col.a), ("c", col.b))), (("a", "a"),)),
        _left(n.Variable(SUMS.schema, 1, 0)),
    ],
)
def test_where_other_rows_lie_is_not_known(node: n.Node) -> None:
    assert group_keys(node) is None


TOTAL = n.Accumulate((AB,), (), 1, (n.AddedColumn("n", 0, dd.count()),))
FEW = n.ConstantRows.of(pa.table({"x": [1, 2]}), Schema.of("x: int"))
MANY = n.ConstantRows.of(pa.table({"x": list(range(65))}), Schema.of("x: int"))


@pytest.mark.parametrize(
    "node",
    [
        TOTAL,
        FEW,
        n.OneRow(),
        n.TopK(AB, (), (n.OrderBy("b"),), 64),
        n.Filter(n.Select(TOTAL, (("m", col.n + 1),)), col.m > 1),
        n.Concat((FEW, n.Negate(FEW))),
    ],
)
def test_small_is_what_never_has_many_rows(node: n.Node) -> None:
    assert is_small(node)


@pytest.mark.parametrize(
    "node",
    [
        AB,
        SUMS,
        MANY,
        n.TopK(AB, ("a",), (n.OrderBy("b"),), 1),
        n.TopK(AB, (), (n.OrderBy("b"),), 1, ties=True),
        n.Concat((FEW, MANY)),
    ],
)
def test_small_is_not_what_grows_with_the_inputs(node: n.Node) -> None:
    assert not is_small(node)


def test_small_sides_are_of_joins_without_keys_outside_of_loops() -> None:
    assert small_side(n.Join(AB, TOTAL, ())) == 1
    assert small_side(n.Join(TOTAL, AB, ())) == 0
    assert small_side(n.Join(FEW, TOTAL, ())) == 1, "one of two"
    assert small_side(n.Join(AB, MANY, ())) is None
    assert small_side(n.Join(n.Variable(AB.schema, 1, 0), TOTAL, ())) is None
    assert small_side(n.Join(AB, n.Select(TOTAL, (("a", col.n),)), (("a", "a"),))) is None


LAST = n.Input(Schema.of("a: int, b: int"), "last", "upsert", ("a",))
OTHERS = n.Select(SUMS, (("a", col.a), ("c", col.n)))


@pytest.mark.parametrize(
    ("node", "columns"),
    [
        (LAST, "a"),
        (n.Filter(n.Select(LAST, (("x", col.a), ("b", col.b + 1))), col.b > 1), "x"),
        (SUMS, "a"),
        (ONCE, "ab"),
        (n.Distinct(LAST), "a"),
        (n.TopK(AB, ("b",), (n.OrderBy("a"),), 1), "b"),
        (n.Join(LAST, OTHERS, (("a", "a"),)), "a"),
        (n.Join(n.Select(LAST, (("a", col.b), ("k", col.a))), OTHERS, (("a", "a"),)), "k"),
    ],
)
def test_rows_have_the_keys_of_inputs_of_groups_and_of_first_rows(node: n.Node, columns: str) -> None:
    assert has_key(node, frozenset(columns))
    assert not has_key(node, frozenset())


@pytest.mark.parametrize(
    ("node", "columns"),
    [
        (AB, "ab"),
        (LAST, "b"),
        (n.Select(LAST, (("a", col.a + 1),)), "a"),
        (n.Concat((SUMS, SUMS)), "a"),
        (n.TopK(AB, ("b",), (n.OrderBy("a"),), 1, ties=True), "b"),
        (n.Join(AB, OTHERS, (("a", "a"),)), "a"),
        (n.Join(n.Select(LAST, (("a", col.b), ("k", col.a))), OTHERS, (("a", "a"),)), "a"),
    ],
)
def test_rows_have_no_key_that_others_may_share(node: n.Node, columns: str) -> None:
    assert not has_key(node, frozenset(columns))


def test_all_pairs_are_made_by_joins_without_keys_and_without_a_small_side() -> None:
    other = n.Select(AB, (("x", col.a),))
    assert makes_all_pairs(n.Join(AB, other, ()))
    assert not makes_all_pairs(n.Join(AB, other, (("a", "x"),)))
    assert not makes_all_pairs(n.Join(AB, TOTAL, ()))
    assert not makes_all_pairs(AB)
