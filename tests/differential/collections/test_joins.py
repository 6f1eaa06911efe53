"""joins.py: what a user writes for a join.

meaning_*   all pairs with equal keys, multiplicities multiplied, at every time
on_*        how keys are named
columns_*   which columns come out, in which order
refused_*   keys that do not fit, columns that clash
"""

from __future__ import annotations

import datetime as dt
import itertools
from decimal import Decimal

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.dataflow import Change, Cluster, check_at_times
from strategies_collections import BINARY, examples, histories

import differential as dd
from differential import Collection, col
from differential.errors import ExpressionError, SchemaError
from timely.building.dataflow import Dataflow

HOWS = ("inner", "left", "right", "outer", "semi", "anti")

# meaning_


@pytest.mark.parametrize("depth", [2, 3])
@pytest.mark.parametrize(
    "name", ["join", "join of differently named keys", "join of whole rows", "join of all pairs"]
)
def test_meaning_at_every_time(name: str, depth: int) -> None:
    @examples(1.5)
    @given(histories(depth), histories(depth), st.integers(1, 3), st.integers(0, 2**20))
    def holds(left: list[Change], right: list[Change], workers: int, seed: int) -> None:
        operator = BINARY[name]
        check_at_times(operator.build, operator.plain, [left, right], depth=depth, workers=workers, seed=seed)

    holds()


@pytest.mark.parametrize("depth", [2, 3])
def test_meaning_of_a_join_with_itself(depth: int) -> None:
    """Both inputs change in the same activation: each pair must still be made exactly once."""

    @examples(1.5)
    @given(histories(depth), st.integers(1, 3), st.integers(0, 2**20))
    def holds(changes: list[Change], workers: int, seed: int) -> None:
        operator = BINARY["join"]
        check_at_times(
            lambda c: operator.build(c, c),
            lambda rows: operator.plain(rows, rows),
            [changes],
            depth=depth,
            workers=workers,
            seed=seed,
        )

    holds()


# columns_


def _inputs(left: str, right: str) -> tuple[Collection, Collection]:
    flow = Dataflow("queries")
    return dd.input(flow, "left", left), dd.input(flow, "right", right)


def test_columns_are_the_keys_then_the_others_of_the_left_then_of_the_right() -> None:
    left, right = _inputs("a: int, key: string, b: int?", "c: float, name: string")
    joined = left.join(right, on={"key": "name"})
    assert str(joined.schema) == "key: string, a: int, b: int?, c: float"
    left, right = _inputs("a: int, b: int, c: int", "b: int, a: int, d: int")
    assert str(left.join(right, on=["b", "a"]).schema) == "b: int, a: int, c: int, d: int"


def test_columns_that_may_be_without_a_row_may_be_null() -> None:
    left, right = _inputs("key: int?, a: int", "key: int, a: string")
    found = {how: str(left.join(right, "key", how, suffix="_r").schema) for how in HOWS}
    assert found == {
        "inner": "key: int, a: int, a_r: string",
        "left": "key: int?, a: int, a_r: string?",
        "right": "key: int, a: int?, a_r: string",
        "outer": "key: int?, a: int?, a_r: string?",
        "semi": "key: int?, a: int",
        "anti": "key: int?, a: int",
    }
    for how, where in itertools.product(("semi", "anti"), (None, col.a < col.a_right, col.a_right > 0)):
        for one, other in ((left, right), (right, left)):
            numbers = other.select("key", a=dd.lit(1))
            given = one.select("key", a=dd.lit(2))
            for null_safe in (False, True):
                kept = given.join(numbers, "key", how, where=where, null_safe=null_safe)
                assert kept.schema == given.schema
    crossed = left.cross_join(right, suffix="_r")
    assert str(crossed.schema) == "key: int?, a: int, key_r: int, a_r: string"


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("int", 3), ("float", 0.5), ("bool", True), ("string", "x"), ("bytes", b"x"),
        ("date", dt.date(2024, 2, 29)), ("any", msgpack.packb([1, "x"])),
        ("timestamp", dt.datetime(2024, 2, 29, tzinfo=dt.UTC)), ("decimal(9, 2)", Decimal("1.25")),
    ],
)  # fmt: skip
def test_columns_of_the_left_of_every_type_are_kept_where_null_equals_null(type_: str, value: object) -> None:
    def build(flow: Dataflow) -> None:
        left, right = dd.input(flow, "left", f"k: {type_}"), dd.input(flow, "right", f"k: {type_}?, n: int?")
        met = left.with_columns(n=dd.lit(1)).join(
            right, "k", "semi", where=col.n < col.n_right, null_safe=True
        )
        assert met.schema["k"].type == left.schema["k"].type
        met.output("out")

    cluster = Cluster(build)
    cluster.change("left", [((value,), 2)])
    cluster.change("right", [((value, 2), 1), ((None, 2), 1), ((value, None), 1)])
    cluster.seal()
    cluster.run()
    ((row, count),) = cluster.snapshot("out").items()
    assert row[1] == 1 and count == 2


# on_


def test_on_keys_are_named_as_others_do() -> None:
    left, right = _inputs("a: int, b: int", "a: int, b: int")
    pairs = left.join(right.select(c=col.a, b=col.b), on={"a": "c", "b": "b"})
    for on in ([("a", "c"), "b"], [(col.a, col.c), col.b]):
        assert left.join(right.select(c=col.a, b=col.b), on=on).node is pairs.node
    assert left.join(right, on=col.a, suffix="_r").node is left.join(right, "a", suffix="_r").node


def test_on_kinds_are_spelled_as_others_do() -> None:
    left, right = _inputs("a: int, b: int", "a: int, c: int")
    spellings = {
        "left": ["left_outer", "leftouter", "LEFT"],
        "outer": ["full", "fullouter", "full_outer"],
        "semi": ["leftsemi", "left_semi"],
        "anti": ["leftanti", "left_anti"],
        "right": ["right_outer"],
    }
    for how, others in spellings.items():
        for other in others:
            assert left.join(right, "a", other).node is left.join(right, "a", how).node
    assert left.crossJoin(right.drop("a")).node is left.join(right.drop("a"), on=[]).node


# refused_


def _refused(left: str, right: str, on: str | list[str] | dict[str, str]) -> str:
    one, other = _inputs(left, right)
    with pytest.raises(SchemaError) as caught:
        one.join(other, on=on)
    return str(caught.value)


def test_refused_keys_of_different_types() -> None:
    said = _refused("key: int, a: int", "name: string", {"key": "name"})
    assert "'key' is int" in said and "'name' is string" in said and "cast" in said


def test_refused_keys_that_are_not_there() -> None:
    assert "'missing'" in _refused("key: int", "key: int", "missing")
    assert "'missing'" in _refused("key: int", "name: int", {"key": "missing"})


def test_refused_columns_that_both_sides_have() -> None:
    said = _refused("key: int, a: int", "key: int, a: int", "key")
    assert "'a'" in said and "right_a=col.a" in said and "suffix='_right'" in said
    left, right = _inputs("key: int, a: int, a_r: int", "key: int, a: int")
    with pytest.raises(SchemaError, match="two columns 'a_r'"):
        left.join(right, "key", suffix="_r")


def test_refused_what_says_nothing_of_keys() -> None:
    left, right = _inputs("a: int", "b: int")
    with pytest.raises(SchemaError, match="needs on=.*how='cross'"):
        left.join(right)
    with pytest.raises(ExpressionError, match=r"is int, and no condition; .* on=\['a', 'b'\]"):
        left.join(right, on=col.a + col.b)
    with pytest.raises(SchemaError, match="no how='sideways'.*semi, anti, cross"):
        left.join(right, on={"a": "b"}, how="sideways")
    with pytest.raises(SchemaError, match="how='cross' has no keys"):
        left.join(right, on={"a": "b"}, how="cross")


def test_refused_a_key_named_twice() -> None:
    assert "twice" in _refused("key: int, a: int", "key: int", ["key", "key"])


# groups of several


@pytest.mark.parametrize("depth", [1, 3])
def test_meaning_of_groups_at_every_time(depth: int) -> None:
    @examples(0.4)
    @given(histories(depth), histories(depth), st.integers(1, 3), st.integers(0, 2**20))
    def holds(left: list[Change], right: list[Change], workers: int, seed: int) -> None:
        operator = BINARY["cogroup"]
        check_at_times(operator.build, operator.plain, [left, right], depth=depth, workers=workers, seed=seed)

    holds()


def test_meaning_of_groups_of_three_with_columns_of_their_own() -> None:
    def build(flow: Dataflow) -> None:
        one, two = dd.input(flow, "one", "k: int, a: string"), dd.input(flow, "two", "b: float?, k: int")
        one.cogroup(
            [two, one],
            "k",
            lambda key, *groups: [str([row for row, _ in group]) for group in groups],
            "t: string",
        ).output("found")

    cluster = Cluster(build)
    cluster.change("one", [((1, "x"), 1)])
    cluster.change("two", [((None, 1), 1), ((2.5, 2), 1)])
    cluster.seal()
    cluster.run()
    assert cluster.snapshot("found") == {
        (1, "[('x',)]"): 2, (1, "[(None,)]"): 1, (2, "[]"): 2, (2, "[(2.5,)]"): 1
    }  # fmt: skip


def test_refused_keys_of_groups_that_do_not_fit() -> None:
    flow = Dataflow("queries")
    one, two = dd.input(flow, "one", "k: int, a: int"), dd.input(flow, "two", "k: string, a: int")
    with pytest.raises(SchemaError, match="key 'k' is int, string; cast it"):
        one.cogroup(two, "k", lambda *groups: [], "n: int")
    with pytest.raises(SchemaError, match="the same names everywhere"):
        one.cogroup([one, one], {"k": "a"}, lambda *groups: [], "n: int")
