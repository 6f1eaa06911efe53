"""Python, numpy and pandas data as tables with the declared columns, or an error that says which value is
wrong.
"""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from differential.columns.schema import Schema
from differential.columns.tables import to_table
from differential.errors import SchemaError

NOON = dt.datetime(2024, 2, 29, 12, 0, 0, 7, tzinfo=dt.UTC)


PAIR = Schema.of("a: int, b: string?")


EXPECTED = [(1, "x"), (2, None)]


@pytest.mark.parametrize(
    "data",
    [
        EXPECTED,
        [list(row) for row in EXPECTED],
        [{"b": "x", "a": 1}, {"a": 2, "b": None}],
        {"a": [1, 2], "b": ["x", None]},
        {"b": pa.array(["x", None]), "a": np.array([1, 2], dtype=np.int32)},
        {"b": pa.chunked_array([["x"], [None]]), "a": range(1, 3)},
        pd.DataFrame({"a": [1, 2], "b": ["x", None]}, index=[5, 6]),
        pd.DataFrame({"a": [1, 2], "b": pd.array(["x", pd.NA], dtype="string")}),
        pd.DataFrame({"a": [1, 2], "b": pd.Categorical(["x", None])}),
        pa.table({"b": ["x", None], "a": [1, 2]}),
        pa.RecordBatch.from_pylist([{"a": 1, "b": "x"}, {"a": 2, "b": None}]),
        np.array([(1, "x"), (2, None)], dtype=[("a", np.int16), ("b", object)]),
    ],
)
def test_from_every_form_of_table(data: object) -> None:
    table = to_table(data, PAIR)
    assert table.column_names == ["a", "b"]
    assert [tuple(row.values()) for row in table.to_pylist()] == EXPECTED


def test_from_pandas_whole_numbers_with_gaps_and_times() -> None:
    frame = pd.DataFrame({"n": [1, None], "t": pd.to_datetime(["2024-02-29 12:00:00.000007", None])})
    table = to_table(frame, Schema.of("n: int?, t: timestamp?"))
    assert [tuple(row.values()) for row in table.to_pylist()] == [(1, NOON), (None, None)]
    nan = to_table(pd.DataFrame({"f": [0.5, None]}), Schema.of("f: float")).column("f").to_pylist()
    assert nan[0] == 0.5 and np.isnan(nan[1])
    assert to_table(pd.DataFrame({"f": [0.5, None]}), Schema.of("f: float?")).column("f").to_pylist() == [
        0.5,
        None,
    ]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (5, "int is not a table"),
        ("text", "str is not a table"),
        ([5], "row 0: 5 is neither a tuple nor a dict"),
        ([(1, "x"), (1,)], r"row 1: \(1,\) has 1 value for 2 columns"),
        ([{"a": 1}], "row 0: .* has not exactly the keys a, b"),
        ([(True, "x")], r"column 'a' \(int\), row 0: True is a bool, not int"),
        ([(1, "x"), (2.0, "x")], r"column 'a' \(int\), row 1: 2\.0 is a float, not int"),
        ([(1, 2)], r"column 'b' \(string\?\), row 0: 2 is a int, not string"),
        ([(None, "x")], r"column 'a' \(int\), row 0: None is null"),
        ([(2**63, "x")], "row 0: 9223372036854775808 is out of range"),
        ({"a": [1], "b": ["x", "y"]}, r"different lengths \(a: 1, b: 2\)"),
        ({"a": [1]}, "missing 'b'"),
        ({"a": [1], "b": ["x"], "c": [1]}, "not declared 'c'"),
        ({"a": np.zeros((2, 2)), "b": ["x", "y"]}, "the array is 2×2"),
        (pd.DataFrame({"a": [1.5], "b": ["x"]}), r"row 0: 1\.5 comes as double"),
    ],
)
def test_from_other_data_is_refused(data: object, said: str) -> None:
    with pytest.raises(SchemaError, match=said):
        to_table(data, PAIR, "edges")
