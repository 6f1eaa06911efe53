"""Python, numpy and pandas data as tables with the declared columns, or an error that says which value is
wrong.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from typing import NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import Row

import timely.wire.arrow
from differential.columns.rows import encode_rows
from differential.columns.schema import Schema
from differential.columns.symbols.table import SymbolTable
from differential.columns.tables import _plain_array, to_table
from differential.errors import SchemaError

NOON = dt.datetime(2024, 2, 29, 12, 0, 0, 7, tzinfo=dt.UTC)


def test_a_row_of_an_upsert_has_all_keys_so_that_none_is_taken_for_a_delete() -> None:
    """What is left out could as well mean that the old value stays."""
    with pytest.raises(SchemaError, match=r"row 0: .* lacks the key 'b'\.\n.* with None for what is null"):
        to_table([{"a": 1}], PAIR, all_keys=True)
    assert to_table([{"a": 1, "b": None}], PAIR, all_keys=True).to_pylist() == [{"a": 1, "b": None}]


class Untold:
    """Its text is code of the user, which may fail."""

    def __repr__(self) -> str:
        return str(1 // 0)


PAIR = Schema.of("a: int, b: string?")


class InOtherOrder(NamedTuple):
    """A row that says itself which value is which."""

    b: str | None
    a: int


@dataclasses.dataclass
class Declared:
    """What might be taken for a row."""

    a: int
    b: str


EXPECTED = [(1, "x"), (2, None)]


@pytest.mark.parametrize(
    "data",
    [
        EXPECTED,
        [list(row) for row in EXPECTED],
        [{"b": "x", "a": 1}, {"a": 2, "b": None}],
        [{"b": "x", "a": 1}, {"a": 2}],
        [(1, "x"), (2, pd.NaT)],
        [{"a": 1, "b": "x"}, {"a": 2, "b": pd.NA}],
        [(1, "x"), (2, np.datetime64("NaT"))],
        [InOtherOrder("x", 1), InOtherOrder(None, 2)],
        [Row(b="x", a=1), Row(b=None, a=2)],
        list(np.array([("x", 1), (None, 2)], dtype=[("b", object), ("a", np.int16)])),
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


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ([(math.nan,), (None,)], [math.nan, None]),
        ([{"f": math.nan}, {"f": None}], [math.nan, None]),
        ({"f": [math.nan, None]}, [math.nan, None]),
        ({"f": np.array([math.nan, 1.0])}, [math.nan, 1.0]),
        (np.array([(math.nan,), (1.0,)], dtype=[("f", "f8")]), [math.nan, 1.0]),
        (pa.table({"f": [math.nan, None]}), [math.nan, None]),
        (pl.DataFrame({"f": [math.nan, None]}), [math.nan, None]),
        (pd.DataFrame({"f": [math.nan, 1.0]}), [None, 1.0]),
        (pd.DataFrame({"f": [math.nan, 1.0]}, dtype=object), [None, 1.0]),
        (pd.DataFrame({"f": pd.array([None, 1.0], dtype="Float64")}), [None, 1.0]),
    ],
)  # fmt: skip
def test_nan_is_a_value_and_only_pandas_means_a_missing_one_by_it(
    data: object, expected: list[object]
) -> None:
    found = to_table(data, Schema.of("f: float?")).column("f").to_pylist()
    assert list(map(repr, found)) == list(map(repr, expected))


def test_a_nan_in_a_frame_stays_where_the_column_is_never_null() -> None:
    found = to_table(pd.DataFrame({"f": [math.nan, 1.0]}), Schema.of("f: float")).column("f").to_pylist()
    assert list(map(repr, found)) == ["nan", "1.0"]


@pytest.mark.parametrize(
    "shape", [lambda value: [(value,)], lambda value: [{"t": value}], lambda v: {"t": [v]}]
)
@pytest.mark.parametrize("kind", ["timestamp", "timestamp?"])
def test_times_of_pandas_lose_nothing_in_rows_nor_in_frames(
    shape: Callable[[object], object], kind: str
) -> None:
    schema = Schema.of(f"t: {kind}")
    exact, finer = pd.Timestamp("2024-02-29 12:00:00.000001"), pd.Timestamp("2024-02-29 12:00:00.000001001")
    assert to_table(shape(exact), schema).column("t").to_pylist() == [exact.tz_localize("UTC")]
    with pytest.raises(SchemaError, match=r"column 't'.*row 0: .* has nanoseconds.*\n.*floor\('us'\)"):
        to_table(shape(finer), schema)
    with pytest.raises(SchemaError, match=r"row 0: .*01001.* without loss"):
        to_table(pd.DataFrame({"t": [finer]}), schema)
    for missing in (pd.NaT, pd.NA):
        if kind == "timestamp?":
            assert to_table(shape(missing), schema).column("t").to_pylist() == [None]
            continue
        with pytest.raises(
            SchemaError, match=r"row 0: None is null, which .*\n.*Declare .* \"t: timestamp\?\""
        ):
            to_table(shape(missing), schema)


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
        ((1, "x"), r"input 'edges': \(1, 'x'\) is one row, .*: write \[\(1, 'x'\)\]$"),
        ([(1, "x"), (1,)], r"row 1: \(1,\) has 1 value for 2 columns"),
        ([{"a": 1}, {"b": "x"}], "row 1: {'b': 'x'} lacks the key 'a'"),
        ([{"a": 1, "B": "x"}], r"row 0: .* has the key 'B'\.\n.* Did you mean 'b'\?"),
        ([{"b": "x", "aa": 1}], r"row 0: .* lacks the key 'a' and has the key 'aa'"),
        ([np.zeros(1, [("a", int), ("c", int)])[0]], r"row 0: .* has the key 'c'"),
        ([Declared(1, "x")], r"row 0: .* is neither .*\n.* write dataclasses\.asdict\(row\)"),
        ([(1, "x"), (pd.NaT, "x")], r"column 'a' \(int\), row 1: None is null"),
        ([(np.timedelta64(1, "s"), "x")], r"column 'a' \(int\), row 0: .* is a timedelta64, not int"),
        ([(Untold(), "x")], r"column 'a' .* row 0: a Untold whose __repr__ raised ZeroDivisionError is a"),
        ([(10**5000, "x")], r"column 'a' \(int\), row 0: a whole number of 16,610 bits is out of range"),
        ([(True, "x")], r"column 'a' \(int\), row 0: True is a bool, not int"),
        ([(1, "x"), (2.0, "x")], r"column 'a' \(int\), row 1: 2\.0 is a float, not int"),
        ([(1, 2)], r"column 'b' \(string\?\), row 0: 2 is an int, not string\.\n  Convert it, str\(x\), or"),
        ([("7", "x")], r"row 0: '7' is a str, not int\.\n  Convert it, int\(x\), or declare"),
        (
            np.zeros((7, 2)),
            r"an array of 7 rows and 2 columns has no names.*\n.*\{'name': array\[:, 0\], …\}",
        ),
        ([(None, "x")], r"column 'a' \(int\), row 0: None is null"),
        ([(2**63, "x")], "row 0: 9223372036854775808 is out of range"),
        ({"a": [1], "b": ["x", "y"]}, r"different lengths \(a: 1, b: 2\)"),
        ({"a": [1]}, "missing 'b'"),
        ({"a": [1], "b": ["x"], "c": [1]}, "not declared 'c'"),
        ({"a": np.zeros((2, 2)), "b": ["x", "y"]}, "the array is 2×2"),
        (pd.DataFrame({"a": [1.5], "b": ["x"]}), r"row 0: 1\.5 comes as double"),
        (pd.DataFrame({"a": [1.5, None], "b": ["x", "y"]}), r"row 0: 1\.5 comes as double"),
        (
            pd.DataFrame({"a": [1, None], "b": ["x", "y"]}),
            r'row 1: nan is missing.*\n.*"a: int\?", or .*dropna\(subset=\[\'a\'\]\)',
        ),
        ({"a": 1, "b": "x"}, r"column 'a': 1 is not a column.\n.* for one row write .*\[{…}\]"),
        ({"a": [1], "b": "x"}, r"column 'b': 'x' is not a column"),
    ],
)
def test_from_other_data_is_refused(data: object, said: str) -> None:
    with pytest.raises(SchemaError, match=said):
        to_table(data, PAIR, "edges")


ODD = [
    *(pd.NaT, pd.NA, np.datetime64("NaT"), np.timedelta64("NaT"), np.datetime64("2020-01-01")),
    *(Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"), 10**5000, Decimal("0." + 5000 * "1")),
    *(np.longdouble("1.5"), np.uint64(2**64 - 1), np.array(5), 1 + 2j, "\ud800", memoryview(b"x"), Untold()),
    *(pd.Timestamp("2020-01-01"), pd.Timedelta(1), pd.Period("2020-01"), {1, 2}, dt.time(1)),
    *(dt.datetime.min, dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=14)))),
]


@pytest.mark.parametrize(
    "kind", ["int", "float", "bool", "timestamp", "date", "decimal(10, 2)", "string", "bytes", "any"]
)
@pytest.mark.parametrize("null", ["", "?"])
def test_from_odd_values_there_are_rows_or_an_error_that_says_where(kind: str, null: str) -> None:
    schema = Schema.of(f"k: int, v: {kind}{null}")
    for value in ODD:
        for make in (
            lambda rows: to_table(rows, schema, "odd"),
            lambda rows: to_table([dict(zip("kv", row, strict=True)) for row in rows], schema, "odd"),
            lambda rows: encode_rows(schema, rows, SymbolTable(), "odd"),
        ):
            try:
                make([(1, None if null else _plain(kind)), (2, value)])
            except SchemaError as error:
                assert f"input 'odd', column 'v' ({kind}{null}), row 1: " in str(error)


def _plain(kind: str) -> object:
    """A value that a column of this kind takes."""
    plain = {"timestamp": NOON, "date": NOON.date(), "string": "x", "bytes": b"x", "bool": True, "float": 0.5}
    return plain.get(kind, 1)


PLAIN = {
    "int": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "float": (pa.float64(), st.floats(allow_nan=False) | st.integers(-(2**40), 2**40)),
    "bool": (pa.bool_(), st.booleans()),
    "string": (pa.string(), st.text()),
    "bytes": (pa.binary(), st.binary()),
}


@given(st.data(), st.sampled_from(list(PLAIN)), st.booleans())
def test_from_lists_of_plain_values_is_what_arrow_makes_of_them(
    data: st.DataObject, kind: str, nullable: bool
) -> None:
    arrow, values = PLAIN[kind]
    wanted = data.draw(st.lists(st.none() | values if nullable else values, max_size=8))
    schema = Schema.of(f"a: {kind}{'?' if nullable else ''}")
    found = to_table({"a": wanted}, schema).column("a").combine_chunks()
    found.validate(full=True)
    assert found == pa.array(wanted, arrow)
    if kind == "float":
        signs = [None if value is None else math.copysign(1.0, value) for value in wanted]
        assert [None if v is None else math.copysign(1.0, v) for v in found.to_pylist()] == signs


@pytest.mark.parametrize(("kind", "nothing"), [("int", 0), ("float", 0.0), ("bool", False), ("string", "")])
def test_from_lists_with_nulls_what_counts_as_false_is_none_of_them(kind: str, nothing: object) -> None:
    assert to_table({"a": [nothing, None]}, Schema.of(f"a: {kind}?"))["a"].to_pylist() == [nothing, None]


def test_from_lists_of_floats_and_integers_none_is_rounded() -> None:
    with pytest.raises(SchemaError, match=r"row 1: 9007199254740993 is out of range"):
        to_table({"a": [0.5, 2**53 + 1]}, Schema.of("a: float"))


@pytest.mark.parametrize(("kind", "text"), [("string", "ab"), ("bytes", b"ab")])
def test_from_lists_of_more_than_2_gib_of_text_arrow_makes_chunks(
    monkeypatch: pytest.MonkeyPatch, kind: str, text: object
) -> None:
    """A large array would have to be cast, which Arrow refuses from there on."""
    type_ = Schema.of(f"a: {kind}")["a"].type
    assert _plain_array([text], type_) is not None
    monkeypatch.setattr(timely.wire.arrow, "_BYTES_MAX", 1)
    assert _plain_array([text], type_) is None
    assert to_table([(text,)], Schema.of(f"a: {kind}"))["a"].to_pylist() == [text]


def test_small_query_imports_no_pandas() -> None:
    """Which takes longer than all the rest; see `timely/wire/arrow.py`."""
    program = """
import sys, timely, differential as dd
with timely.connect(embedded=True) as cluster:
    def build(flow):
        rows = dd.input(flow, "rows", "k: int, s: string, f: float?, b: bool?")
        rows.filter(dd.col.s.str.lower() == "ä").output("found")
        rows.group_by("s").agg(n=dd.count(), top=dd.max("f")).output("grouped")
    flow = cluster.install(build)
    before = "pandas" in sys.modules
    flow.input("rows").insert([(1, "Ä", 0.5, True), (2, "b", None, None)])
    flow.seal()
    assert flow.output("found").snapshot().num_rows == 1 and flow.output("grouped").snapshot().num_rows == 2
print(before, "pandas" in sys.modules)
"""
    path = {"PYTHONPATH": ":".join(path for path in sys.path if path)}
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env=path
    )
    assert result.stdout.split() == ["False", "False"], result.stderr + result.stdout


@pytest.mark.parametrize(
    ("kind", "value", "written"),
    [
        ("timestamp", 1_082_040_961, r"datetime\.fromtimestamp\(x, UTC\) of seconds"),
        ("timestamp", "2024-01-01", r"datetime\.fromisoformat\(x\)"),
        ("date", dt.datetime(2024, 1, 1), r"x\.date\(\)"),
        ("decimal(9, 2)", 1.5, r"Decimal\(str\(x\)\)"),
        ("float", object(), "Convert it, or declare"),
    ],
)
def test_from_values_of_another_type_it_is_said_what_to_write(kind: str, value: object, written: str) -> None:
    with pytest.raises(SchemaError, match=written):
        to_table([(value,)], Schema.of({"x": kind}), "rows")
