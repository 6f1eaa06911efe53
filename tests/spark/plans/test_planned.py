"""SQL texts and functions of DataFrames as queries: what they give, what is refused, what stays as it was."""

from __future__ import annotations

import json
import re
import secrets
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import timely
import timely.spark
from timely.errors import MisuseError, TimelyError
from timely.spark.plans.marking import dataframes, is_of_frames, is_text
from timely.spark.plans.planned import query_of_frames


@pytest.fixture(scope="module")
def orders(spark: SparkSession) -> DataFrame:
    rows = [(1, "ann", 120, 0, 1), (2, "ann", 30, 0, 1), (3, "bob", 50, 1, 1), (1, "ann", 120, 2, -1)]
    return spark.createDataFrame(rows, "id int, customer string, cents bigint, day int, what int")


def test_marks_are_seen_and_texts_are_no_builders() -> None:
    def query(orders: DataFrame) -> DataFrame:
        return orders

    assert not is_of_frames(query)
    assert dataframes(query) is query
    assert is_of_frames(query)
    assert is_text("select 1") and is_text("table orders") and not is_text("package.module:query")
    with pytest.raises(MisuseError, match="marks a function of DataFrames, not 'select 1'"):
        dataframes("select 1")  # type: ignore[type-var]  # what is refused
    with pytest.raises(MisuseError, match="cannot mark <built-in function len>"):
        dataframes(len)


def test_text_and_function_are_followed_with_views_and_in_sparks_types(
    spark: SparkSession, orders: DataFrame, two_workers: timely.Cluster
) -> None:
    """`large_` is a view over the DataFrame of the input; a view called as the input stays what it was."""
    orders.filter("cents > 40").createOrReplaceTempView("large_")
    spark.range(3).createOrReplaceTempView("orders")
    text = """
        SELECT customer, max(id) AS last, sum(cents) AS cents, (SELECT count(*) FROM large_) AS large
        FROM orders WHERE id IN (SELECT id FROM large_) GROUP BY customer
    """

    @timely.spark.dataframes
    def both(orders: DataFrame) -> dict[str, DataFrame]:
        totals = orders.groupBy("customer").agg(F.max("id").alias("last"), F.sum("cents").alias("cents"))
        return {"totals": totals, "text": spark.sql(text)}

    answer = timely.spark.run(both, {"orders": orders}, epochs="day", diff="what", workers=two_workers)
    assert answer.table("totals").dtypes == [("customer", "string"), ("last", "int"), ("cents", "bigint")]
    assert sorted(map(tuple, answer.table("totals").collect())) == [("ann", 2, 30), ("bob", 3, 50)]
    logged = sorted(map(tuple, answer.changes("text").orderBy("epoch").collect()))
    assert logged == [
        ("ann", 1, 120, 1, 0, 1), ("ann", 1, 120, 1, 1, -1), ("ann", 1, 120, 2, 1, 1),
        ("ann", 1, 120, 2, 2, -1), ("bob", 3, 50, 1, 2, 1), ("bob", 3, 50, 2, 1, 1), ("bob", 3, 50, 2, 2, -1),
    ]  # fmt: skip
    assert spark.table("orders").count() == 3
    spark.catalog.dropTempView("orders")
    spark.catalog.dropTempView("large_")


def _of_rows(orders: DataFrame) -> DataFrame:
    return orders.filter(F.lit(orders.count() > 1))


def _mapped(orders: DataFrame) -> DataFrame:
    return orders.mapInPandas(lambda frames: frames, "id int")


REFUSED: dict[str, Callable[[DataFrame], DataFrame]] = {
    "a function of your own runs in Spark alone. Write it with pyspark.sql.functions": lambda orders: (
        orders.select(F.udf(lambda x: x, "int")("id"))
    ),
    "whose map, flat_map and reduce call Python functions": _mapped,
    "gives another value each time": lambda orders: orders.withColumn("r", F.rand()),
    "the time of day changes an answer": lambda orders: orders.filter(F.current_date() > "2024-01-01"),
    "first depends on the order in which Spark reads rows": lambda orders: orders.groupBy("customer").agg(
        F.first("id")
    ),
    "a sample is another one each time": lambda orders: orders.sample(0.5),
    "asks for rows while it is read: count, collect": _of_rows,
    "another escape than": lambda orders: orders.filter("customer LIKE '/_%' ESCAPE '/'"),
    "try_sum is not supported: write sum": lambda orders: orders.agg(F.try_sum("cents")),
    "hashes numbers of 32 and of 64 bits otherwise: cast Add to bigint": lambda orders: orders.select(
        F.xxhash64(F.col("id") + 1)
    ),
    "%x and %o write 64 bits here: cast the whole number to bigint": lambda orders: orders.select(
        F.format_string("%05x", F.lit(-1))
    ),
    "Spark's TryAdd is not supported": lambda orders: orders.select(F.try_add("id", "id")),
    "32 bits": lambda orders: orders.select(F.col("cents").cast("float")),
    "a cast of float to string is not supported: Spark writes 1.0E7": lambda orders: orders.select(
        (F.col("cents") / 2).cast("string")
    ),
    "takes an interval that is a constant": lambda orders: orders.groupBy(
        F.session_window(F.timestamp_seconds("id"), "5 minutes")
    ).count(),
    "Spark's ArrayTransform is not supported": lambda orders: orders.select(
        F.transform(F.array("id"), lambda x: x + 1)
    ),
    "two columns of the answer are called id: rename one by alias": lambda orders: orders.select("id", "id"),
    "returns nothing: a function of DataFrames returns a DataFrame": lambda orders: None,  # type: ignore[return-value]
}


@pytest.mark.parametrize("message", REFUSED)
def test_refused_is_what_would_come_to_something_else(message: str, orders: DataFrame) -> None:
    """In one line, with the place in this file, as far as Spark knows it."""
    with pytest.raises(TimelyError, match=re.escape(message)) as told:
        read_alone(REFUSED[message], orders)
    assert "\n" not in str(told.value).partition("\n  ")[0]
    assert f"{Path(__file__).name}:" in str(told.value) or "try_sum" in message or "returns" in message


def read_alone(query: object, orders: DataFrame) -> None:
    """Read a query, and make collections of it."""
    marked = query if isinstance(query, str) else dataframes(query)  # type: ignore[type-var]  # a function
    planned = query_of_frames(marked, {"orders": orders}, {"orders": orders.schema})
    with timely.connect(workers=1, embedded=True) as cluster:
        import differential as dd

        def build(flow: timely.Dataflow) -> object:
            return planned.build(orders=dd.input(flow, "orders", orders.schema))

        cluster.install(build)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT id,\n  rand() AS r FROM orders", "<sql>:2:3: Spark's Rand: gives another value"),
        ("SELECT nothing FROM orders", "UNRESOLVED_COLUMN"),
        ("SELECT FROM WHERE", "<sql>:1:8: [UNRESOLVED_COLUMN"),
        ("SELECT id FROM elsewhere_", "rows that are no input are read: give their DataFrame as an input"),
    ],
)
def test_refused_texts_say_where(spark: SparkSession, orders: DataFrame, text: str, message: str) -> None:
    spark.createDataFrame([(1,)], "id int").createOrReplaceTempView("elsewhere_")
    with pytest.raises(TimelyError, match=re.escape(message)):
        read_alone(text, orders)
    spark.catalog.dropTempView("elsewhere_")


def test_parts_that_json_leaves_out_are_read(spark: SparkSession, orders: DataFrame) -> None:
    """Of try_cast and try_divide a failing row is null; of cast it fails."""
    import differential as dd

    text = "SELECT id, try_cast(customer AS int) AS n, try_divide(cents, id - 1) AS share FROM orders"
    planned = query_of_frames(text, {"orders": orders}, {"orders": orders.schema})
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(lambda flow: planned.build(orders=dd.input(flow, "orders", orders.schema)))
        flow.input("orders").insert([(1, "7", 10, 0, 1), (2, "x", 10, 0, 1)])
        flow.seal()
        rows = sorted(tuple(row.values()) for row in dd.to_pylist(flow.output("result").snapshot()))
    assert rows == [(1, 7, None), (2, None, 10.0)]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT timestamp_seconds(id) + INTERVAL 25 HOURS AS t FROM orders",
        "SELECT sum(cents) OVER (ORDER BY timestamp_seconds(id) RANGE BETWEEN INTERVAL 25 HOURS PRECEDING "
        "AND CURRENT ROW) AS s FROM orders",
    ],
)
def test_days_are_refused_in_a_zone_whose_days_differ(
    spark: SparkSession, orders: DataFrame, text: str
) -> None:
    """Spark adds a day of the zone, and an hour."""
    before = str(spark.conf.get("spark.sql.session.timeZone"))
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        with pytest.raises(TimelyError, match="days have 24 hours here, and the session's zone is America"):
            read_alone(text, orders)
        read_alone(text.replace("25 HOURS", "23 HOURS"), orders)
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def test_other_rules_than_ansi_are_refused(spark: SparkSession, orders: DataFrame) -> None:
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        with pytest.raises(MisuseError, match=r"spark\.sql\.ansi\.enabled is false: a cast or a division"):
            read_alone("SELECT id FROM orders", orders)
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


def test_kept_table_is_whole_after_each_batch_of_a_stream(
    spark: SparkSession, two_workers: timely.Cluster, tmp_path: Path
) -> None:
    for number, cents in enumerate((6, 6)):
        (tmp_path / f"{number}.json").write_text(json.dumps({"customer": "ann", "cents": cents}))
    stream = spark.readStream.schema("customer string, cents long").option("maxFilesPerTrigger", 1)
    table = f"kept_{secrets.token_hex(4)}"  # tables outlive the session
    seen: list[int] = []
    is_over = threading.Event()

    def stop_when_whole() -> None:
        until = time.monotonic() + 120
        while time.monotonic() < until and 12 not in seen and not is_over.is_set():
            if spark.catalog.tableExists(table):
                seen.extend(row.cents for row in spark.table(table).collect())
            time.sleep(0.2)
        for query in spark.streams.active:
            query.stop()

    def totals(orders: DataFrame) -> DataFrame:
        return orders.groupBy("customer").agg(F.sum("cents").alias("cents"))

    watcher = threading.Thread(target=stop_when_whole)
    watcher.start()
    inputs = {"orders": stream.json(str(tmp_path))}
    try:
        answer = timely.spark.keep(totals, inputs, table, workers=two_workers)
    finally:
        is_over.set()
        watcher.join()
    assert seen[-1] == 12 and set(seen) <= {6, 12}
    assert sorted(map(tuple, answer.changes().select("cents", "epoch", "diff").collect())) == [
        (6, 0, 1), (6, 1, -1), (12, 1, 1),
    ]  # fmt: skip
    for suffix in ("", "_changes"):
        spark.sql(f"DROP TABLE {table}{suffix}")
