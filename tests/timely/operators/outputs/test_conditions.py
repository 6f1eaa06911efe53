"""Conditions that a reader hands down, against SQL's rule row by row.

true_*      which rows stay
refused_*   what is no condition, or none of that column
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from timely import RequestError
from timely.operators.outputs.conditions import columns_of, fulfilling

Value = int | str | None
PLAINLY: dict[str, Callable[[Value, Value], bool | None]] = {
    "=": lambda a, b: a == b,
    ">": lambda a, b: a > b,  # type: ignore[operator]  # of one type, and no null
    ">=": lambda a, b: a >= b,  # type: ignore[operator]
    "<": lambda a, b: a < b,  # type: ignore[operator]
    "<=": lambda a, b: a <= b,  # type: ignore[operator]
    "begins": lambda a, b: str(a).startswith(str(b)),
    "ends": lambda a, b: str(a).endswith(str(b)),
    "holds": lambda a, b: str(b) in str(a),
}


def plainly(value: Value, what: str, other: Value | list[Value]) -> bool | None:
    if what.startswith("not "):
        known = plainly(value, what.removeprefix("not "), other)
        return None if known is None else not known
    if what in ("null", "set"):
        return (value is None) == (what == "null")
    if what == "<=>":
        return value == other
    if value is None:
        return None
    if isinstance(other, list):
        return value in other
    return PLAINLY[what](value, other)


NUMBERS = st.tuples(st.sampled_from(["=", ">", ">=", "<", "<=", "<=>"]), st.integers(-3, 3))
ONE_OF = st.tuples(st.just("in"), st.lists(st.integers(-3, 3), min_size=1, max_size=3))
NULLS = st.tuples(st.sampled_from(["null", "set"]), st.none())
WORDS = st.text("ab", max_size=2)
TEXTS = st.tuples(st.sampled_from(["=", "<", ">=", "<=>", "begins", "ends", "holds"]), WORDS)


@given(
    st.lists(st.none() | st.integers(-3, 3), max_size=12),
    st.lists(st.tuples(NUMBERS | ONE_OF | NULLS, st.booleans()), min_size=1, max_size=3),
)
def test_true_conditions_on_numbers_are_those_of_sql(
    values: list[Value], asked: list[tuple[tuple[str, Value | list[Value]], bool]]
) -> None:
    check(pa.array(values, pa.int64()), values, asked)


@given(
    st.lists(st.none() | WORDS, max_size=12),
    st.lists(st.tuples(TEXTS | NULLS, st.booleans()), min_size=1, max_size=3),
)
def test_true_conditions_on_texts_are_those_of_sql(
    values: list[Value], asked: list[tuple[tuple[str, Value | list[Value]], bool]]
) -> None:
    check(pa.array(values, pa.string()), values, asked)


def check(
    column: pa.Array, values: list[Value], asked: list[tuple[tuple[str, Value | list[Value]], bool]]
) -> None:
    table = pa.table({"v": column, "row": range(len(values))})
    conditions = [["v", "not " * turned + what, other] for (what, other), turned in asked]
    found = fulfilling(table, conditions).column("row").to_pylist()
    assert found == [
        row
        for row, value in enumerate(values)
        if all(plainly(value, str(what), other) is True for _, what, other in conditions)
    ]


def test_true_conditions_on_times_and_dates_are_given_in_microseconds_and_days() -> None:
    table = pa.table(
        {
            "at": pa.array([1_000_000, 2_000_000], pa.timestamp("us", "UTC")),
            "day": pa.array([dt.date(1970, 1, 2), dt.date(1970, 1, 11)]),
        }
    )
    assert fulfilling(table, [["at", ">", 1_500_000]]).num_rows == 1
    assert fulfilling(table, [["day", "in", [1, 9]]]).column("day").to_pylist() == [dt.date(1970, 1, 2)]
    assert fulfilling(table, []) is table


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        (["v", "in", [-0.0]], [0, 1]),
        (["v", "not in", [0.0, 2.0]], [3]),
        (["v", "=", -0.0], [0, 1]),
        (["v", ">", 2.0], [3]),
        (["v", ">=", -0.0], [0, 1, 2, 3]),
        (["v", "<", 9.0], [0, 1, 2]),
        (["v", "not <=", 0.0], [2, 3]),
    ],
)
def test_true_conditions_on_floats_know_one_zero_and_nan_as_the_greatest(
    condition: object, rows: list[int]
) -> None:
    table = pa.table({"v": [-0.0, 0.0, 2.0, float("nan"), None], "row": range(5)})
    assert fulfilling(table, [condition]).column("row").to_pylist() == rows


@pytest.mark.parametrize(
    "condition", ["v = 1", ["v", "like", "a"], ["v", "="], [1, "=", 1], ["v", "not", 1], ["v", "not null"]]
)
def test_refused_what_is_no_condition(condition: object) -> None:
    with pytest.raises(RequestError, match="a condition is"):
        columns_of([condition])


@pytest.mark.parametrize(
    "condition", [["v", "=", "a"], ["w", "=", 1], ["v", "begins", 1], ["v", "in", 3], ["v", "<", 1 << 70]]
)
def test_refused_what_cannot_be_asked_of_that_column(condition: object) -> None:
    with pytest.raises(RequestError, match="cannot be evaluated"):
        fulfilling(pa.table({"v": [1, 2]}), [condition])
