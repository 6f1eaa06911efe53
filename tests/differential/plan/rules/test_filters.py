"""filters.py: where parts of conditions go. That meanings stay: `test_improving.py`."""

from __future__ import annotations

import differential as dd
from differential import Expr, col
from differential.columns.schema import Schema
from differential.plan import nodes as n
from differential.plan.rules.filters import push_filter

AB = n.Input(Schema.of("a: int, b: int"), "ab")
CD = n.Input(Schema.of("c: int, d: int"), "cd")
JOIN = n.Join(AB, CD, (("a", "c"),))


def shown(node: n.Node | None) -> str:
    """The plan as one would write it."""
    if node is None:
        return "stays"
    inner = ", ".join(shown(child) for child in node.children)
    return node.describe() if not inner else f"{node.describe()} of [{inner}]"


def pushed(below: n.Node, condition: Expr, readers: int = 1) -> str:
    return shown(push_filter(n.Filter(below, condition), lambda node: readers))


def test_parts_go_to_the_sides_that_they_read() -> None:
    assert pushed(JOIN, (col.b > 1) & (col.d > 2) & (col.b < col.d)) == (
        "filter(col.b < col.d) of [join on a = c of [filter(col.b > 1) of [input ab], "
        "filter(col.d > 2) of [input cd]]]"
    )


def test_parts_of_keys_go_to_both_sides_under_their_names() -> None:
    assert pushed(JOIN, col.a == 3) == (
        "join on a = c of [filter(col.a == 3) of [input ab], filter(col.c == 3) of [input cd]]"
    )


def test_parts_are_written_over_the_columns_of_before() -> None:
    select = n.Select(AB, (("x", col.b), ("y", col.a + 1)))
    assert pushed(select, (col.x > 1) & (col.y > 1)) == (
        "filter(col.y > 1) of [select(x=col.b, y=col.a + 1) of [filter(col.b > 1) of [input ab]]]"
    )
    assert pushed(select, col.y > 1) == "stays"


def test_parts_that_can_raise_stay_where_rows_are_dropped() -> None:
    assert pushed(JOIN, 6 // col.b > 1) == "stays"
    assert pushed(n.Distinct(AB), (6 // col.b > 1) & (col.a > 1)) == (
        "filter(6 // col.b > 1) of [distinct of [filter(col.a > 1) of [input ab]]]"
    )


def test_parts_that_can_raise_stay_where_rows_are_told_apart_by_less() -> None:
    fewer = n.Select(AB, (("x", col.b), ("y", col.b)))
    assert pushed(fewer, (6 // col.x > 1) & (col.y > 1)) == (
        "filter(6 // col.x > 1) of [select(x=col.b, y=col.b) of [filter(col.b > 1) of [input ab]]]"
    )
    assert pushed(fewer, 6 // col.x > 1) == "stays"


def test_only_keys_go_below_a_reduce() -> None:
    counts = n.Accumulate((AB,), ("a",), 1, (n.AddedColumn("n", 0, dd.count()),))
    assert pushed(counts, (col.a > 1) & (col.n > 1)) == (
        "filter(col.n > 1) of [group by a: n=count() of [filter(col.a > 1) of [input ab]]]"
    )
    assert pushed(counts, col.n > 1) == "stays"


def test_nothing_goes_below_what_others_read_too() -> None:
    assert pushed(JOIN, col.b > 1, readers=2) == "stays"
    assert pushed(n.Negate(AB), col.b > 1, readers=2) == "negate of [filter(col.b > 1) of [input ab]]"


def test_nothing_goes_to_a_side_that_somebody_has_arranged() -> None:
    left = n.Join(n.Arrange(AB, ("a",)), CD, (("a", "c"),))
    assert pushed(left, (col.b > 1) & (col.d > 2)).startswith("filter(col.b > 1) of [join on a = c of [arr")
    right = n.Join(AB, n.Select(n.Arrange(CD, ("c",)), (("c", col.c), ("d", col.d))), (("a", "c"),))
    assert pushed(right, (col.b > 1) & (col.d > 2)).startswith("filter(col.d > 2) of [join on a = c of [fil")


def test_nothing_goes_below_functions_effects_loops_or_inputs() -> None:
    from differential.plan.functions import UserFunction

    looked = n.Inspect(AB, UserFunction.of(print), 0)
    mapped = n.Apply(AB, "map", UserFunction.of(len), AB.schema)
    looped = n.LeaveLoop(n.LetRec("loop", 1, (AB,), (n.Distinct(n.Variable(AB.schema, 1, 0)),), 9), 0)
    assert {pushed(below, col.a > 1) for below in (AB, looked, mapped, looped)} == {"stays"}


def test_what_is_said_of_nulls_stays_behind_the_filter_that_says_it() -> None:
    given = n.Input(Schema.of("a: int?, b: int"), "given")
    said = n.NotNull(n.Filter(given, col.a > 1), ("a",))
    assert pushed(said, (col.a < 9) & (6 // col.b > 1), readers=2) == (
        "not null: a of [filter((col.a < 9) & (6 // col.b > 1)) of [filter(col.a > 1) of [input given]]]"
    )
    assert push_filter(said, lambda node: 1) is None
