"""sets.py: which distincts go, and what takes their place. That meanings stay: `test_improving.py`."""

from __future__ import annotations

import differential as dd
from differential.columns.schema import Schema
from differential.plan import nodes as n
from differential.plan.rules.sets import drop_distinct

AB = n.Input(Schema.of("a: int, b: int"), "ab")
ONCE = n.Distinct(AB)


def test_a_distinct_of_a_set_is_that_set() -> None:
    assert drop_distinct(n.Distinct(ONCE)) is ONCE
    sums = n.Accumulate((AB,), ("a",), 1, (n.AddedColumn("n", 0, dd.count()),))
    assert drop_distinct(n.Distinct(sums)) is sums


def test_others_stay() -> None:
    assert drop_distinct(ONCE) is None and drop_distinct(AB) is None
    assert drop_distinct(n.Distinct(n.Negate(ONCE))) is None


def test_inside_a_loop_what_circulates_stays_consolidated() -> None:
    variable = n.Distinct(n.Variable(AB.schema, 1, 0))
    both = n.Join(variable, ONCE, (("a", "a"), ("b", "b")))
    found = drop_distinct(n.Distinct(both))
    assert isinstance(found, n.Consolidate) and found.source is both
    outside = n.Join(ONCE, ONCE, (("a", "a"), ("b", "b")))
    assert drop_distinct(n.Distinct(outside)) is outside


def test_whether_there_is_a_row_at_all_is_still_asked() -> None:
    whole = n.Reduce(AB, (), (("n", dd.count()),))
    assert drop_distinct(n.Keys(whole, ())) is None
    assert drop_distinct(n.Keys(n.Reduce(AB, ("a",), (("n", dd.count()),)), ("a",))) is not None


def test_inside_a_loop_keys_of_a_group_are_still_asked() -> None:
    """Without the other columns of the group its corrections cancel, and would go round for ever."""
    counts = n.Accumulate((n.Variable(AB.schema, 1, 0),), ("a",), 1, (n.AddedColumn("n", 0, dd.count()),))
    assert drop_distinct(n.Keys(counts, ("a",))) is None
    outside = n.Accumulate((AB,), ("a",), 1, (n.AddedColumn("n", 0, dd.count()),))
    assert drop_distinct(n.Keys(outside, ("a",))) is not None
