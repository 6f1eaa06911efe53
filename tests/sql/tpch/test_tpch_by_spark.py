"""Q3 and Q5 from DataFrames to DataFrames while rows come and go, beside Spark SQL's recomputation of each
epoch.

One call, `timely.spark.run`, with real workers that Spark's executors feed. A quick run takes a part of the
orders.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from house import ROOT
from pyspark.sql import DataFrame, SparkSession
from sql.tpch.of_orders import q3, q5
from sql.tpch.tables import Tables, load

import timely
import timely.spark
from differential import Collection
from timely.spark.frames import frame_of

DATA = ROOT.parent / "shared" / "data" / "tpch-sf0.02"
HERE = [DATA] if DATA.exists() else []

KEYS = {"customer": "c_custkey", "orders": "o_orderkey", "lineitem": "l_orderkey"}
ALWAYS = ("region", "nation", "supplier")
THERE: list[dict[str, set[int]]] = [
    {"customer": {*range(8)}, "orders": {0, 1, 2, 3}, "lineitem": {0, 1, 2, 3, 4}},
    {"customer": {*range(7)}, "orders": {1, 2, 3, 4}, "lineitem": {0, 1, 2, 3, 4}},
    {"customer": {*range(8)}, "orders": {1, 2, 3, 4, 5}, "lineitem": {1, 2, 3, 5, 7}},
    {"customer": set(), "orders": set(), "lineitem": set()},
]
"""Of each table, rows whose key leaves one of these remainders by 8 are there in an epoch."""


def both(
    region: Collection,
    nation: Collection,
    supplier: Collection,
    customer: Collection,
    orders: Collection,
    lineitem: Collection,
) -> dict[str, Collection]:
    """The two queries over the tables that they need."""
    tables = cast("Tables", SimpleNamespace(**locals()))
    return {"q3": q3(tables), "q5": q5(tables)}


def remainder(table: pa.Table, column: str, by: int) -> pa.ChunkedArray:
    keys = table.column(column)
    return pc.subtract(keys, pc.multiply(pc.divide(keys, by), by))


def of(table: pa.Table, name: str, kept: set[int]) -> pa.Table:
    return table.filter(pc.is_in(remainder(table, KEYS[name], 8), pa.array(sorted(kept), pa.int64())))


def with_changes(spark: SparkSession, table: pa.Table, name: str) -> DataFrame:
    """What comes and goes in each epoch, as rows with the columns `at` and `said`."""
    before: set[int] = set()
    parts = []
    for epoch, there in enumerate(THERE):
        for said, kept in (("insert", there[name] - before), ("remove", before - there[name])):
            rows = of(table, name, kept)
            rows = rows.append_column("at", pa.array([epoch] * rows.num_rows, pa.int32()))
            parts.append(rows.append_column("said", pa.array([said] * rows.num_rows, pa.string())))
        before = there[name]
    return frame_of(spark, pa.concat_tables(parts))


def rows_of(frame: DataFrame) -> Counter[tuple[object, ...]]:
    return Counter(map(tuple, frame.collect()))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("folder", HERE, ids=["tpch"])
def test_q3_and_q5_are_what_spark_sql_says_of_each_epoch(
    folder: Path, spark: SparkSession, two_workers: timely.Cluster, effort: int
) -> None:
    tables = {name: load(folder, name) for name in (*ALWAYS, *KEYS)}
    if effort == 1:
        for name in ("orders", "lineitem"):
            tables[name] = tables[name].filter(pc.less(remainder(tables[name], KEYS[name], 40), 8))
    inputs: dict[str, DataFrame] = {name: frame_of(spark, tables[name]) for name in ALWAYS}
    inputs |= {name: with_changes(spark, tables[name], name) for name in KEYS}
    answer = timely.spark.run(both, inputs, epochs="at", diff="said", workers=two_workers)
    assert answer.epochs == len(THERE)
    assert dict(answer.table("q3").dtypes)["o_orderdate"] == "date"
    for name in ALWAYS:
        inputs[name].createOrReplaceTempView(name)
    queries: list[Callable[[Tables], Collection]] = [q3, q5]
    states: dict[str, Counter[tuple[object, ...]]] = {"q3": Counter(), "q5": Counter()}
    seen: Counter[str] = Counter()
    for epoch, there in enumerate(THERE):
        for name, kept in there.items():
            frame_of(spark, of(tables[name], name, kept)).createOrReplaceTempView(name)
        for query in queries:
            state = states[query.__name__]
            for *row, diff in (
                answer.changes(query.__name__).where(f"epoch = {epoch}").drop("epoch").collect()
            ):
                state[tuple(row)] += diff
            found = Counter({row: count for row, count in state.items() if count})
            assert found == rows_of(spark.sql(inspect.getdoc(query) or "")), (query.__name__, epoch)
            seen[query.__name__] += found.total()
    assert min(seen.values()) > 0, "something was found"
    assert rows_of(answer.table("q5")) == Counter()
