"""joins.py: inner joins.

meaning_*   all pairs with equal keys, multiplicities multiplied, at every time
columns_*   which columns come out, in which order
refused_*   keys that do not fit, columns that clash
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.dataflow import Change, check_at_times
from strategies_collections import BINARY, examples, histories

import differential as dd
from differential import Collection
from differential.errors import SchemaError
from timely.building.dataflow import Dataflow

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


# refused_


def _refused(left: str, right: str, on: str | list[str] | dict[str, str]) -> str:
    one, other = _inputs(left, right)
    with pytest.raises(SchemaError) as caught:
        one.join(other, on=on)
    return str(caught.value)


def test_refused_keys_of_different_types() -> None:
    said = _refused("key: int, a: int", "name: string", {"key": "name"})
    assert "'key' is int" in said and "'name' is string" in said and "cast" in said
    assert "int?" in _refused("key: int", "key: int?", "key")


def test_refused_keys_that_are_not_there() -> None:
    assert "'missing'" in _refused("key: int", "key: int", "missing")
    assert "'missing'" in _refused("key: int", "name: int", {"key": "missing"})


def test_refused_columns_that_both_sides_have() -> None:
    said = _refused("key: int, a: int", "key: int, a: int", "key")
    assert "'a'" in said and "right_a=col.a" in said


def test_refused_a_key_named_twice() -> None:
    assert "twice" in _refused("key: int, a: int", "key: int", ["key", "key"])
