"""Conditions in words of SQL: what they leave is what Spark leaves, and all else is refused.

same_*      random conditions on columns of all types, beside Spark
read_*      by the option, of a running dataflow
refused_*   each with what is expected in its place
"""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import differential as dd
import timely
from timely.client.session import Flow
from timely.errors import MisuseError
from timely.operators.outputs.conditions import fulfilling
from timely.spark.source.where import conditions

NAN = float("nan")
TABLE = pa.table(
    {
        "n": pa.array([None, -3, -1, 0, 1, 2, 3, (1 << 63) - 1], pa.int64()),
        "x": pa.array([0.5, None, NAN, -0.0, 1.0, float("inf"), 1e300, -2.5], pa.float64()),
        "price": pa.array(
            [None, *map(Decimal, ("0.00", "1.50", "-1.50", "2.00", "99.99", "0.01", "1.51"))],
            pa.decimal128(6, 2),
        ),
        "Name": pa.array([None, "", "a", "ab", "b'a", "A", "ba", "é"], pa.string()),
        "day": pa.array([None, *(dt.date(2026, 1, 1) + dt.timedelta(n) for n in range(-3, 4))]),
        "at": pa.array([None, *range(-1_000_000, 6_000_000, 1_000_000)], pa.timestamp("us", "UTC")),
        "local": pa.array([*range(0, 14_000_000, 2_000_000), None], pa.timestamp("us")),
        "odd name": pa.array([True, None, False, True, None, False, True, False], pa.bool_()),
    }
)
VALUES = {
    "n": ["-3", "0", "+2", "3.0", "9223372036854775807", "2e0", "-9007199254740991e0", "0." + 37 * "0"],
    "x": ["0", "-2.5", "1e300", ".5", "1", "-0.0", "-0", "1e-999"],
    "price": ["1.5", "0", "-1.50", "99.99", "2.", "151e-2", "1.50" + 35 * "0"],
    "NAME": ["''", "'a'", "'ab'", "'b''a'", "'é'"],
    "day": ["DATE '2026-01-01'", "date '2025-12-31'", "DATE '2026-01-04'"],
    "at": ["TIMESTAMP '1970-01-01 00:00:01Z'", "TIMESTAMP '1970-01-01 02:00:03+02:00'"],
    "local": ["TIMESTAMP '1970-01-01 00:00:04'", "timestamp '1970-01-01 00:00:01.5'"],
    "`odd name`": ["TRUE", "false"],
}


def one(choose: random.Random) -> str:
    """A condition on one column."""
    name = choose.choice(list(VALUES))
    some = [choose.choice(VALUES[name]) for _ in range(choose.randint(1, 3))]
    is_not = choose.choice(["", "NOT "])
    kinds = [f"{name} {choose.choice(['=', '==', '<>', '!=', '<=>', '<', '<=', '>', '>='])} {some[0]}"]
    kinds += [f"{name} {is_not}IN ({', '.join(some)})", f"{name} is {is_not}null"]
    kinds += [f"{name} BETWEEN {some[0]} AND {some[-1]}"]
    if name == "NAME":
        kinds += [f"{name} {is_not}like {pattern}" for pattern in ("'a%'", "'%a'", "'%a%'", "'ab'", "'%'")]
    if name == "`odd name`":
        kinds += [name, f"NOT {name}"]
    return choose.choice(kinds)


def test_same_rows_are_left_as_by_spark(session: SparkSession) -> None:
    choose = random.Random(7)
    asked = [" AND ".join(one(choose) for _ in range(choose.choice([1, 1, 2, 3]))) for _ in range(250)]
    whole = TABLE.append_column("row", pa.array(range(TABLE.num_rows)))
    frame = session.createDataFrame(whole)
    told = frame.selectExpr("row", *(f"(({text}) IS TRUE) AS c{n}" for n, text in enumerate(asked))).collect()
    wanted = {n: {row["row"] for row in told if row[f"c{n}"]} for n in range(len(asked))}
    assert sum(map(bool, wanted.values())) > 100, "most leave something"
    for n, text in enumerate(asked):
        left = fulfilling(whole, conditions(text, TABLE.schema)).column("row").to_pylist()
        assert set(left) == wanted[n], text


@pytest.fixture(scope="module")
def flow(cluster: timely.Cluster) -> Flow:
    def passed_on(dataflow: timely.Dataflow) -> None:
        dd.input(dataflow, "rows", "n: int, text: string?").output("rows")

    return cluster.install(passed_on)


def options(flow: Flow) -> dict[str, str]:
    return {"cluster": flow._workers.addresses[0], "dataflow": str(flow.index), "output": "rows"}


def rows(frame: DataFrame) -> list[tuple[object, ...]]:
    return sorted(map(tuple, frame.collect()))


def test_read_are_only_the_rows_that_are_asked_for(session: SparkSession, flow: Flow) -> None:
    flow.input("rows").insert([(5_000, "where"), (5_001, "where"), (5_002, None), (5_003, "other")])
    flow.seal()
    reading = session.read.format("naiad").options(**options(flow), where="n >= 5000 AND text = 'where'")
    assert rows(reading.load()) == [(5_000, "where"), (5_001, "where")]
    assert rows(reading.option("columns", "n").load()) == [(5_000,), (5_001,)]
    between = session.read.format("naiad").options(
        **options(flow), columns="n", where="text BETWEEN 'p' AND 'x'"
    )
    assert rows(between.load()) == [(5_000,), (5_001,)]
    assert reading.load().where("n > 5000").count() == 1
    changes = session.read.format("naiad").options(
        **options(flow), where="N BETWEEN 5001 AND 5002", startingEpoch="earliest"
    )
    assert [row[0] for row in rows(changes.load().select("n"))] == [5_001, 5_002]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("m = 1", "there is no column 'm'; there are n, x, price, Name"),
        ("n = 1 OR n = 2", "'OR' stands where AND is expected"),
        ("n =", "it ends too early"),
        ("n", "the end stands where a comparison of 'n' is expected"),
        ("n = 1.5", "1.5 is no value of the column 'n', which is int64"),
        ("n = 9223372036854775808", "is no value of the column 'n'"),
        ("n >= 9007199254740992e0", "9007199254740992e0 is no value of the column 'n'"),
        ("n = 1e999999999", "1e999999999 is no value of the column 'n'"),
        ("n = 1e-999999999", "1e-999999999 is no value of the column 'n'"),
        ("n = ٣", "'٣' cannot be read"),
        ("n = '1'", "'1' is no value of the column 'n'"),
        ("n = NULL", "NULL is no value of the column 'n'"),
        ("x = 1e999", "1e999 is no value of the column 'x'"),
        ("price = 1.234", "1.234 is no value of the column 'price'"),
        ("price = 1e999999999", "1e999999999 is no value of the column 'price'"),
        ("price = 1." + 33 * "0" + "1", "1 is no value of the column 'price'"),
        ("price = 1." + 38 * "0", "0 is no value of the column 'price'"),
        ("x = 1." + 38 * "0", "0 is no value of the column 'x'"),
        ("total = 1e0", "1e0 is no value of the column 'total'"),
        ("Name = 1", "1 is no value of the column 'Name'"),
        ("Name LIKE 'a_b'", "LIKE takes % at either end"),
        ("Name LIKE 'a%b'", "LIKE takes % at either end"),
        ("price = 10000", "10000 is no value of the column 'price'"),
        ("price = 0." + 39 * "0", "0 is no value of the column 'price'"),
        ("n LIKE 'a%'", "LIKE compares a column of texts with a text, not 'n'"),
        ("day = '2026-01-01'", "is no value of the column 'day'"),
        ("day = DATE '2026-02-30'", "'2026-02-30' is no date: day"),
        ("day = DATE '20260101'", "write 2026-01-31"),
        ("day = DATE '2026-W01-1'", "write 2026-01-31"),
        ("at = TIMESTAMP '2026-01-01x00:00:00Z'", "write 2026-01-31, and for a time 2026-01-31 12:00:00"),
        ("at = TIMESTAMP '2026-01-01 00:00:00,5Z'", "write 2026-01-31"),
        ("at = TIMESTAMP '2026-01-01 00:00Z'", "write 2026-01-31"),
        ("at = TIMESTAMP '0001-01-01 00:00:00+02:00'", "is no timestamp: date value out of range"),
        ("at = TIMESTAMP '2026-01-01 00:00:00'", "so it needs a zone"),
        ("local = TIMESTAMP '2026-01-01 00:00:00Z'", "so it needs no zone"),
        ("at = DATE '2026-01-01'", "DATE '2026-01-01' is no value of 'at'"),
        ("NOT n", "the column 'n' is int64, which has no such condition"),
        ("n NOT BETWEEN 1 AND 2", "NOT BETWEEN is two ranges"),
        ("n IN (1, 2", "the end stands where \\) is expected"),
        ("length(Name) = 2", "there is no column 'length'"),
        ("Name = 'a\\'", "cannot be read"),
        ("n = 1;", "';' cannot be read"),
        ("1 = n", "'1' stands where a column is expected"),
    ],
)
def test_refused_is_all_else_with_what_is_expected(text: str, message: str) -> None:
    with pytest.raises(MisuseError, match=message) as raised:
        conditions(text, TABLE.schema.append(pa.field("total", pa.decimal128(18, 2))))
    assert "\n" not in str(raised.value) and "for all else write df.where(" in str(raised.value)


@pytest.mark.parametrize("name", ["date", "Timestamp", "`and`", "`a``b 'c'`"])
def test_read_is_a_column_that_is_called_like_a_word_of_sql(name: str) -> None:
    plain = name.strip("`").replace("``", "`")
    table = pa.table({plain: pa.array([0, None, 2], pa.date32())})
    left = fulfilling(table, conditions(f"{name} >= DATE '1970-01-02' AND {name} IS NOT NULL", table.schema))
    assert left.num_rows == 1


def test_read_is_the_column_whose_name_is_written_so_where_several_differ_in_capitals() -> None:
    table = pa.table({"n": [1, 2], "N": [2, 1], "row": [0, 1]})
    assert fulfilling(table, conditions("N = 2", table.schema)).column("row").to_pylist() == [0]
    with pytest.raises(MisuseError, match="there is no column 'Row_'"):
        conditions("Row_ = 2", table.schema)


def test_refused_is_a_condition_when_the_frame_is_made(session: SparkSession, flow: Flow) -> None:
    with pytest.raises(Exception, match="the option 'where', 'm > 3': there is no column 'm'"):
        session.read.format("naiad").options(**options(flow), where="m > 3").load()
    with pytest.raises(Exception, match="write 'where'"):
        session.read.format("naiad").options(**options(flow), filter="n > 3").load()
