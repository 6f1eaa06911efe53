"""keys.py: which equalities become keys of a join, and which types these keys have."""

from __future__ import annotations

import pytest

import differential as dd
from differential import col
from differential.collections.conditions.equalities import Equality
from differential.collections.conditions.keys import JoinKeys
from timely import Dataflow

LEFT = "i: int, f: float?, d: decimal(10, 2), w: decimal(38, 30), s: string, t: date"
RIGHT = "i2: int, f2: float, d2: decimal(12, 4)?, s2: string, t2: timestamp"


@pytest.mark.parametrize(
    ("left", "right", "type_"),
    [
        ("i", "i2", "int"),
        ("i", "f2", "float"),
        ("f", "i2", "float?"),
        ("i", "d2", "decimal(24, 4)"),
        ("d", "d2", "decimal(12, 4)"),
        ("d", "f2", "float"),
        ("w", "i2", None),
        ("s", "s2", "string"),
        ("s", "i2", None),
        ("t", "t2", None),
    ],
)
def test_equal_numbers_of_two_types_are_keys_of_the_type_that_holds_both(
    left: str, right: str, type_: str | None
) -> None:
    flow = Dataflow("query")
    keys = JoinKeys(dd.input(flow, "a", LEFT), dd.input(flow, "b", RIGHT))
    assert keys.take(Equality(col(left), col(right), False)) == (type_ is not None)
    if type_ is not None:
        ((name, other),) = keys.pairs
        assert str(keys.side(0).schema[name].type) == type_
        assert keys.inner().schema[left].name == left and right in keys.inner().schema
        assert keys.side(1).schema[other].type.kind == type_.partition("(")[0].strip("?")


def test_an_equality_says_no_more_than_its_key_or_is_no_key() -> None:
    flow = Dataflow("query")
    keys = JoinKeys(dd.input(flow, "a", LEFT), dd.input(flow, "b", RIGHT))
    assert keys.take(Equality(col.i, col.i2, False)) and keys.take(Equality(col.i, col.i2, False))
    assert keys.take(Equality(col.i, col.i2, True)) and not keys.is_mixed
    assert not keys.take(Equality(col.i, col.i2 + 1, False))
    assert keys.take(Equality(col.s, col.s2, True)) and keys.is_mixed
    where_null_equals_null = JoinKeys(*keys.sides)
    assert where_null_equals_null.take(Equality(col.i, col.f2, True))
    assert where_null_equals_null.take(Equality(col.i, col.f2, True))
    assert not where_null_equals_null.take(Equality(col.i, col.f2, False))
