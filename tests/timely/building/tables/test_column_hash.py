"""tables/column_hash.py: rows of tables have the numbers of records with the same keys."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from progress.errors import MisuseError
from timely.building.record_hash import number_of_key
from timely.building.tables.column_hash import numbers_of_rows

TEXTS = st.one_of(st.text(max_size=40), st.integers(0, 40).map(lambda length: "é" * length))
COLUMNS = st.one_of(
    st.tuples(st.just(pa.int64()), st.lists(st.none() | st.integers(-(1 << 63), (1 << 63) - 1))),
    st.tuples(st.just(pa.uint64()), st.lists(st.none() | st.integers(0, (1 << 64) - 1))),
    st.tuples(st.just(pa.int8()), st.lists(st.none() | st.integers(-128, 127))),
    st.tuples(st.just(pa.bool_()), st.lists(st.none() | st.booleans())),
    st.tuples(st.just(pa.float64()), st.lists(st.none() | st.floats() | st.integers(-9, 9).map(float))),
    st.tuples(st.just(pa.float32()), st.lists(st.none() | st.floats(width=32))),
    st.tuples(st.just(pa.string()), st.lists(st.none() | TEXTS)),
    st.tuples(st.just(pa.large_string()), st.lists(st.none() | TEXTS)),
    st.tuples(st.just(pa.binary()), st.lists(st.none() | st.binary(max_size=40))),
    st.tuples(st.just(pa.date32()), st.lists(st.none() | st.dates())),
    st.tuples(st.just(pa.decimal128(9, 2)), st.lists(st.none() | st.integers(-999, 999).map(Decimal))),
    st.tuples(st.just(pa.null()), st.lists(st.none())),
)


def numbers(array: pa.Array | pa.ChunkedArray) -> list[int]:
    listed: list[int] = numbers_of_rows(pa.table({"a": array}), ["a"], "by('a')").tolist()
    return listed


@given(COLUMNS, st.integers(0, 9))
def test_numbers_of_a_column_are_those_of_its_values(
    column: tuple[pa.DataType, list[object]], cut: int
) -> None:
    kind, values = column
    array = pa.array(values, kind)
    wanted = [number_of_key(value) for value in array.to_pylist()]
    assert numbers(array) == wanted
    assert numbers(array[cut:]) == wanted[cut:]
    assert numbers(pa.chunked_array([array[:cut], array[cut:]], kind)) == wanted


EDGES = [0, 1, -1, -2, *(sign * ((1 << 61) + more) for sign in (1, -1) for more in (-2, -1, 0, 1))]


@pytest.mark.parametrize(
    "array",
    [
        pa.array([*EDGES, (1 << 63) - 1, -(1 << 63)], pa.int64()),
        pa.array([(1 << 61) - 1, 1 << 63, (1 << 64) - 1], pa.uint64()),
        pa.array([0.0, -0.0, float("inf"), float("-inf"), float("nan"), 5e-324, 1e308, *map(float, EDGES)]),
        pa.array(["", *("x" * length for length in (7, 8, 9, 1_023, 1_024, 1_025, 5_000))]),
        pa.array(["a", None, "b", "a"]).dictionary_encode(),
        pa.array([dt.datetime(2020, 1, 1, tzinfo=dt.UTC), None]),
        pa.array([dt.datetime(2020, 1, 1), dt.datetime(1, 1, 1)]),
        pa.array([dt.timedelta(3), None]),
        pa.array(range(40_000)),
    ],
    ids=lambda array: str(array.type)[:20],
)
def test_numbers_at_the_edges_of_types(array: pa.Array) -> None:
    assert numbers(array) == [number_of_key(value) for value in array.to_pylist()]


def test_numbers_of_several_columns_are_those_of_tuples() -> None:
    table = pa.table({"a": [1, 2, None], "b": ["x", None, "y"]})
    rows = [tuple(row.values()) for row in table.to_pylist()]
    for places in (["a", "b"], [0, 1], ["a", -1], []):
        assert numbers_of_rows(table, places, "by").tolist() == [number_of_key(row) for row in rows]
    one = table.select(["a"])
    assert numbers_of_rows(one, [], "by").tolist() == [number_of_key((a,)) for a, _ in rows]
    assert numbers_of_rows(one, [0], "by").tolist() == [number_of_key(a) for a, _ in rows]


@pytest.mark.parametrize("place", ["c", 2, -3, "twice"])
def test_refused_columns_that_there_are_not(place: str | int) -> None:
    table = pa.Table.from_arrays([pa.array([1])] * 2, ["twice", "twice"])
    with pytest.raises(
        MisuseError, match=rf"by\('x'\): a table with the columns twice, twice has no column {place!r}"
    ):
        numbers_of_rows(table, [place], "by('x')")


def test_refused_columns_whose_values_are_no_keys() -> None:
    table = pa.table({"a": pa.array([[1], [2]])})
    with pytest.raises(MisuseError, match=r"by\('a'\), column 'a' of type list<.*> is no key"):
        numbers_of_rows(table, ["a"], "by('a')")
