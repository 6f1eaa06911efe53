"""groups.py: groups, aggregates and functions of groups.

meaning_*   one row per group with its aggregates, or what the function gives, at every time
columns_*   which columns come out
refused_*   aggregates and schemas that do not fit
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import collection as plainly
from reference.dataflow import Change, Cluster, check_at_times
from strategies_collections import UNARY, examples, histories

import differential as dd
from differential import Collection
from differential.errors import ExpressionError, SchemaError, UserFunctionError
from timely.building.dataflow import Dataflow

AGGREGATES = ("count", "sum", "min", "max", "several aggregates", "aggregates of everything")
REDUCTIONS = ("reduce", "reduce to multiplicities")


# meaning_


@pytest.mark.parametrize("depth", [2, 3])
@pytest.mark.parametrize("name", [*AGGREGATES, *REDUCTIONS])
def test_meaning_at_every_time(name: str, depth: int) -> None:
    @examples(1.5)
    @given(histories(depth, size_max=14), st.integers(1, 3), st.integers(0, 2**20))
    def holds(changes: list[Change], workers: int, seed: int) -> None:
        operator = UNARY[name]
        check_at_times(operator.build, operator.plain, [changes], depth=depth, workers=workers, seed=seed)

    holds()


def test_meaning_a_removal_beside_an_insertion_matters_where_both_are_in() -> None:
    """Nothing arrives at (1, 1), and nothing is left in any batch; yet the count changes there."""
    changes: list[Change] = [((1, 5), (1, 0), 1), ((1, 5), (0, 1), -1)]
    for name in (*AGGREGATES, *REDUCTIONS):
        operator = UNARY[name]
        for seed in range(10):
            check_at_times(operator.build, operator.plain, [changes], depth=2, seed=seed)


@pytest.mark.parametrize("depth", [2, 3])
def test_meaning_of_a_few_keys_with_long_histories(depth: int) -> None:
    """The incremental minimum skips what cannot matter: here much does, again and again."""
    rows = st.tuples(st.integers(0, 1), st.integers(0, 5))

    @examples(1.5)
    @given(histories(depth, rows, size_max=30), st.sampled_from(AGGREGATES), st.integers(0, 2**20))
    def holds(changes: list[Change], name: str, seed: int) -> None:
        operator = UNARY[name]
        check_at_times(operator.build, operator.plain, [changes], depth=depth, seed=seed)

    holds()


def test_meaning_of_rows_without_other_columns() -> None:
    """Keys are all there is: a group is its key and how often it occurs."""
    changes: list[Change] = [((1,), (0,), 2), ((2,), (0,), 1), ((1,), (1,), -1), ((2,), (2,), -1)]
    check_at_times(
        lambda c: c.group_by("k").reduce(lambda key, rows: [(key[0], rows[0][1])], "again: int, n: int"),
        lambda rows: plainly.collection([(k, k, count) for (k,), count in rows.items()]),
        [changes],
        depth=1,
        schemas="k: int",
    )


# columns_


def _numbers(schema: str = "k: int, v: int, name: string") -> Collection:
    return dd.input(Dataflow("queries"), "numbers", schema)


def test_columns_are_the_keys_in_the_order_of_group_by_then_the_aggregates() -> None:
    grouped = _numbers().group_by("name", "k")
    assert str(grouped.agg(n=dd.count(), hi=dd.max("v")).schema) == "name: string, k: int, n: int, hi: int"
    assert (
        str(grouped.reduce(lambda key, rows: [], "text: string?").schema)
        == "name: string, k: int, text: string?"
    )


def test_columns_min_and_max_keep_the_type_of_their_column() -> None:
    found = _numbers("k: int, when: timestamp, x: float").group_by("k").agg(a=dd.min("when"), b=dd.max("x"))
    assert str(found.schema) == "k: int, a: timestamp, b: float"


# refused_


def _refused(build: Callable[[Collection], object], error: type[Exception], schema: str = "") -> str:
    with pytest.raises(error) as caught:
        build(_numbers(schema or "k: int, v: int, name: string"))
    return str(caught.value)


def test_refused_no_aggregate_at_all() -> None:
    assert "at least one aggregate" in _refused(lambda c: c.group_by("k").agg(), SchemaError)


def test_refused_what_is_no_aggregate() -> None:
    said = _refused(lambda c: c.group_by("k").agg(n="v"), SchemaError)  # type: ignore[arg-type]
    assert "agg(n=…)" in said and "dd.count()" in said and "'v'" in said


def test_refused_names_that_are_keys() -> None:
    assert "'k' is a key already" in _refused(lambda c: c.group_by("k").agg(k=dd.count()), SchemaError)
    said = _refused(lambda c: c.group_by("k").reduce(lambda key, rows: [], "k: int"), SchemaError)
    assert "'k' is a key already" in said


def test_refused_an_aggregate_of_a_key() -> None:
    said = _refused(lambda c: c.group_by("k").agg(most=dd.max("k")), SchemaError)
    assert "max(k)" in said and "is a key of the groups" in said


def test_refused_a_key_named_twice() -> None:
    assert "twice" in _refused(lambda c: c.group_by("k", "k").agg(n=dd.count()), SchemaError)


def test_refused_an_aggregate_of_a_column_that_is_not_there() -> None:
    said = _refused(lambda c: c.group_by("k").agg(n=dd.sum("missing")), SchemaError)
    assert "'missing'" in said and "k: int, v: int" in said


def test_refused_aggregates_of_nullable_columns_sums_of_floats_least_strings() -> None:
    schema = "k: int, v: int?, x: float, name: string"
    said = _refused(lambda c: c.group_by("k").agg(n=dd.min("v")), ExpressionError, schema)
    assert "min(v)" in said and "may be null" in said and "fill_null" in said
    said = _refused(lambda c: c.group_by("k").agg(n=dd.sum("x")), ExpressionError, schema)
    assert "sum(x)" in said and "exact" in said and "float" in said
    said = _refused(lambda c: c.group_by("k").agg(n=dd.min("name")), ExpressionError, schema)
    assert "min(name)" in said and "reduce(fn)" in said


def _fails(key: tuple[object, ...], rows: list[tuple[tuple[object, ...], int]]) -> list[int]:
    return [1 // (len(rows) - 1)]


def test_refused_a_function_that_raises_names_the_group_and_the_line() -> None:
    cluster = Cluster(
        lambda flow: (
            dd.input(flow, "numbers", "k: int, v: int").group_by("k").reduce(_fails, "n: int").output("o")
        )
    )
    cluster.change("numbers", [((7, 8), 1)])
    cluster.seal()
    with pytest.raises(UserFunctionError) as caught:
        cluster.run()
    said = str(caught.value)
    assert "reduce(_fails)" in said and "group (7,)" in said and "ZeroDivisionError" in said
    assert "test_groups.py" in said and isinstance(caught.value.__cause__, ZeroDivisionError)
