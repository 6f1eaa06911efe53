"""How long does a query take to load and to follow each change: in ours, in Flink SQL, and computed anew?

Each function runs one query once and returns its figures and its answer after the last change.
"""

from __future__ import annotations

import gc
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, cast

import duckdb
import pyarrow as pa
import sqlglot

import timely
from bench.peers.flink import java
from bench.sql.answers import Rows, rows_of, rows_of_text
from bench.sql.stream import Query, Stream, StreamTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Followed", "by_duckdb", "by_flink", "by_spark", "by_us", "spark_session"]

_ANEW_RUNS = 3
_VIEW = "kept"


@dataclass(frozen=True)
class Followed:
    """What an engine gives that keeps an answer current."""

    load_seconds: float
    change_ms: Sequence[float]
    rows: Rows = field(repr=False)


_TYPES = {pa.int64(): "bigint", pa.string(): "string", pa.date32(): "date"}


def _column(field_: pa.Field) -> str:
    type_ = "timestamp" if pa.types.is_timestamp(field_.type) else _TYPES[field_.type]
    return f"{field_.name} {type_} not null"


def by_us(cluster: timely.Cluster, query: Query, stream: Stream, warm: Stream) -> Followed:
    """Tables and a view of `cluster.sql`, fed through their inputs; first once with the small `warm`."""
    _kept(cluster, query, warm)
    gc.collect()
    return _kept(cluster, query, stream)


def _kept(cluster: timely.Cluster, query: Query, stream: Stream) -> Followed:
    tables = stream.of(query)
    for name, table in tables.items():
        cluster.sql(f"create table {name} ({', '.join(map(_column, table.rows.schema))})")
    cluster.sql(f"create view {_VIEW} as {query.text}")
    try:
        flows = {name: cluster.flow(name) for name in tables}
        view = cluster.flow(_VIEW)
        seconds = [_epoch(flows, view, tables, number) for number in range(stream.changes + 1)]
        rows = rows_of(view.output(_VIEW).snapshot())
    finally:
        cluster.sql(f"drop view {_VIEW}; drop table {', '.join(tables)}")
    return Followed(seconds[0], [1e3 * each for each in seconds[1:]], rows)


def _epoch(
    flows: Mapping[str, timely.Flow], view: timely.Flow, tables: Mapping[str, StreamTable], number: int
) -> float:
    """Seconds from the first row handed over until the view has followed."""
    parts = {
        name: (table.part(table.epochs[number].gone), table.part(table.epochs[number].come))
        for name, table in tables.items()
    }
    begin = time.perf_counter()
    for name, (gone, come) in parts.items():
        if gone.num_rows:
            flows[name].input(name).remove(gone)
        if come.num_rows:
            flows[name].input(name).insert(come)
    epochs = [flow.seal(wait=False) for flow in flows.values()]
    view.wait(max(epochs))
    return time.perf_counter() - begin


def by_flink(  # what a run has
    query: Query, stream: Stream, warm: Stream, workers: int, like: Rows, limit: float
) -> Followed:
    """The same in Flink SQL, within `limit` seconds; `like` is an answer with values of the same kinds."""
    with tempfile.TemporaryDirectory(prefix="flink-") as folder:
        first, own = Path(folder, "first"), Path(folder, "own")
        for path, rows in ((first, warm), (own, stream)):
            path.mkdir()
            tables = {name: _for_flink(table) for name, table in rows.of(query).items()}
            java.write(path, tables, query.flink or query.text, rows.watermarks, workers)
        figures = java.run(first, own, limit=limit)
        rows_found = rows_of_text(own / "answer.tsv", like)
    changes = cast("list[float]", figures["change_ms_all"])
    return Followed(cast(float, figures["load_seconds"]), changes, rows_found)


def _for_flink(table: StreamTable) -> java.FlinkTable:
    epochs = [(each.gone.start, each.gone.stop, each.come.start, each.come.stop) for each in table.epochs]
    return java.FlinkTable(table.rows, epochs, table.rowtime, inserts_only=table.rowtime is not None)


def by_duckdb(query: Query, stream: Stream, threads: int) -> tuple[float, Rows]:
    """Milliseconds for the answer of the last epoch from its rows, and the answer."""
    text = sqlglot.transpile(query.text, read="spark", write="duckdb")[0]
    with duckdb.connect(":memory:", config={"threads": threads}) as database:
        database.execute("SET TimeZone = 'UTC'")
        for name, table in stream.of(query).items():
            database.register("told", table.last)
            database.execute(f"CREATE TABLE {name} AS SELECT * FROM told")
            database.unregister("told")
        milliseconds = []
        for _ in range(_ANEW_RUNS):
            begin = time.perf_counter()
            answer = database.sql(text).to_arrow_table()
            milliseconds.append(1e3 * (time.perf_counter() - begin))
    return statistics.median(milliseconds), rows_of(answer)


def spark_session(workers: int) -> SparkSession:
    """A session of its own on so many threads."""
    from pyspark.sql import SparkSession  # starts Java

    return (
        SparkSession.builder.master(f"local[{workers}]")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", 2 * workers)
        .config("spark.driver.memory", "6g")
        .config("spark.ui.enabled", False)
        .config("spark.ui.showConsoleProgress", False)
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )


def by_spark(session: SparkSession, query: Query, stream: Stream) -> tuple[float, Rows]:
    """The same by Spark over tables in its cache; the first run, which compiles, does not count."""
    tables = stream.of(query)
    try:
        for name, table in tables.items():
            frame = session.createDataFrame(table.last).cache()
            frame.createOrReplaceTempView(name)
            frame.count()
        rows = rows_of(session.sql(query.text).toArrow())
        milliseconds = []
        for _ in range(_ANEW_RUNS):
            begin = time.perf_counter()
            session.sql(query.text).write.format("noop").mode("overwrite").save()
            milliseconds.append(1e3 * (time.perf_counter() - begin))
    finally:
        session.catalog.clearCache()
    return statistics.median(milliseconds), rows
