"""facts.py: what is known of a collection from its plan alone."""

from __future__ import annotations

import pytest

import differential as dd
from differential import col
from differential.columns.schema import Schema
from differential.plan import nodes as n
from differential.plan.facts import group_keys, is_consolidated

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
