"""aggregates.py: what can be computed of a group, as data.

type_*      which type each result has, and what has none
meaning_*   what the definitions say of groups in which multiplicities are negative
"""

from __future__ import annotations

import pytest
from reference.dataflow import Change, run_at_times

import differential as dd
from differential.aggregates import Aggregate
from differential.columns.schema import Schema
from differential.errors import ExpressionError, SchemaError

NUMERIC = {"sum": dd.sum, "avg": dd.avg, "variance": dd.variance, "stddev": dd.stddev, "count": dd.count}
SCHEMA = Schema.of("i: int, x: float, b: bool, t: timestamp, s: string, maybe: int?")


# type_


def test_type_of_counts_and_sums_is_int_and_of_least_and_greatest_that_of_the_column() -> None:
    assert str(dd.count().type_in(SCHEMA)) == "int"
    assert [str(dd.sum(name).type_in(SCHEMA)) for name in ("i", "b")] == ["int", "int"]
    for name in ("i", "x", "b", "t"):
        assert dd.min(name).type_in(SCHEMA) == dd.max(name).type_in(SCHEMA) == SCHEMA[name].type


def test_type_may_be_null_where_a_group_may_have_no_value() -> None:
    types = {name: str(make("maybe").type_in(SCHEMA)) for name, make in NUMERIC.items()}
    assert types == {"sum": "int?", "avg": "float?", "variance": "float?", "stddev": "float?", "count": "int"}
    types = {name: str(make("x").type_in(SCHEMA)) for name, make in NUMERIC.items()}
    assert types == {"sum": "float", "avg": "float", "variance": "float?", "stddev": "float?", "count": "int"}
    assert str(dd.variance("x", sample=False).type_in(SCHEMA)) == "float"
    assert [str(make("b").type_in(SCHEMA)) for make in (dd.any_of, dd.all_of, dd.count_if)] == [
        "bool",
        "bool",
        "int",
    ]


@pytest.mark.parametrize("name", ["t", "s"])
def test_type_sums_are_of_numbers_only(name: str) -> None:
    with pytest.raises(ExpressionError, match=rf"sum\({name}\).*of numbers, not of {SCHEMA[name].type}"):
        dd.sum(name).type_in(SCHEMA)
    with pytest.raises(ExpressionError, match=rf"avg\({name}\).*cast it to float"):
        dd.avg(name).type_in(SCHEMA)


@pytest.mark.parametrize(
    ("given", "mean"),
    [
        ("decimal(9, 2)", "decimal(13, 6)"),
        ("decimal(5, 0)?", "decimal(9, 4)?"),
        ("decimal(18, 2)", "decimal(22, 6)"),
        ("decimal(36, 4)", "decimal(38, 8)"),
        ("decimal(38, 36)", "decimal(38, 38)"),
        ("decimal(38, 38)", "decimal(38, 38)"),
    ],
)
def test_type_of_a_mean_of_decimals_has_four_digits_more_as_far_as_there_are_digits(
    given: str, mean: str
) -> None:
    schema = Schema.of({"d": given})
    assert str(dd.avg("d").type_in(schema)) == mean
    assert {str(each("d").type_in(schema)) for each in (dd.variance, dd.stddev)} == {"float?"}


def test_type_conditions_are_bool() -> None:
    for make in (dd.any_of, dd.all_of, dd.count_if):
        with pytest.raises(ExpressionError, match=r"needs a condition, not int: write .*col\.x > 0"):
            make("i").type_in(SCHEMA)


def test_type_of_what_is_no_column_and_no_expression() -> None:
    with pytest.raises(ExpressionError, match=r"sum\(5\) takes a column.s name"):
        dd.sum(5)  # type: ignore[arg-type]
    with pytest.raises(ExpressionError, match=r"any_of\(5\) takes a column.s name.*as in any_of\('x'\)"):
        dd.any_of(5)  # type: ignore[arg-type]


def test_type_of_what_python_answers_by_itself_is_refused_with_what_to_write() -> None:
    for make, name in (
        (dd.any_of, "any_of"),
        (dd.all_of, "all_of"),
        (dd.count_if, "count_if"),
        (dd.sum, "sum"),
    ):
        with pytest.raises(ExpressionError, match=rf"^{name} \(.*is given False.*\n.*col\.x\.is_null\(\)"):
            make(dd.col.i is None)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["i", "s", "maybe"])
def test_type_of_the_least_and_the_greatest_is_that_of_the_values(name: str) -> None:
    assert dd.min(name).type_in(SCHEMA) == dd.max(name).type_in(SCHEMA) == SCHEMA[name].type


def test_type_of_a_column_that_is_not_there() -> None:
    with pytest.raises(SchemaError, match="'missing'"):
        dd.sum("missing").type_in(SCHEMA)


def test_describe_is_as_written() -> None:
    assert [a.describe() for a in (dd.count(), dd.sum("i"), dd.min("x"), dd.max("t"))] == [
        "count()",
        "sum(i)",
        "min(x)",
        "max(t)",
    ]
    assert dd.count() == Aggregate("count") and hash(dd.sum("i")) == hash(Aggregate("sum", "i"))


# meaning_


def _groups(changes: list[Change], **aggregates: Aggregate) -> dict[int, tuple[object, ...]]:
    """The one row of each key, at the end."""
    found = run_at_times(lambda c: c.group_by("k").agg(**aggregates), [changes], depth=1)
    (rows,) = found.values()
    assert set(rows.values()) == {1}
    return {int(str(row[0])): row[1:] for row in rows}


def test_meaning_multiplicities_count_and_only_positive_ones_are_looked_at_by_min_and_max() -> None:
    changes: list[Change] = [((1, 5), (0,), 2), ((1, -7), (0,), -1), ((1, 9), (0,), 1)]
    assert _groups(changes, n=dd.count(), s=dd.sum("v"), a=dd.min("v"), b=dd.max("v")) == {1: (2, 26, 5, 9)}


def test_meaning_a_group_is_there_while_its_multiplicities_sum_to_something() -> None:
    changes: list[Change] = [((1, 5), (0,), 1), ((1, 6), (0,), -1), ((2, 5), (0,), -1)]
    assert _groups(changes, n=dd.count(), s=dd.sum("v")) == {2: (-1, -5)}


def test_meaning_columns_that_nothing_asks_for_are_no_part_of_a_group() -> None:
    """For a count alone rows that differ in v only are one: here they cancel, and the group is not there."""
    changes: list[Change] = [((1, 5), (0,), 1), ((1, 6), (0,), -1), ((2, 5), (0,), 1)]
    assert _groups(changes, n=dd.count()) == {2: (1,)}


def test_meaning_a_group_without_a_positive_row_has_no_least_and_no_row() -> None:
    changes: list[Change] = [((1, 5), (0,), -1), ((2, 5), (0,), 1)]
    assert _groups(changes, a=dd.min("v")) == {2: (5,)}
    assert _groups(changes, n=dd.count(), a=dd.max("v")) == {2: (1, 5)}
