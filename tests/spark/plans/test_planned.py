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
from pyspark.sql import DataFrame, SparkSession, Window
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
    "ArrayTransform: calls a function for each element. Write explode": lambda orders: orders.select(
        F.transform(F.array("id"), lambda x: x + 1)
    ),
    "ArrayFilter: calls a function": lambda orders: orders.select(F.filter(F.array("id"), lambda x: x > 1)),
    "ArrayExists: calls a function": lambda orders: orders.select(F.exists(F.array("id"), lambda x: x > 1)),
    "ArrayForAll: calls a function": lambda orders: orders.select(F.forall(F.array("id"), lambda x: x > 1)),
    "ArrayAggregate: calls a function": lambda orders: orders.select(
        F.aggregate(F.array("id"), F.lit(0), lambda a, x: a + x)
    ),
    "RaiseError: has no value: leave such rows out": lambda orders: orders.select(F.raise_error("no")),
    "StructsToJson: is read in texts": lambda orders: orders.select(F.to_json(F.struct("id"))),
    "JsonToStructs: is read in texts": lambda orders: orders.select(F.from_json("customer", "a int")),
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


def _in_three(t: DataFrame) -> dict[str, DataFrame]:
    """Two of the answers fail: one in a row, the other if a key has two rows."""
    t.createOrReplaceTempView("three_")
    return {
        "share": t.filter("a > 0").select("a", (F.col("a") / F.col("b")).alias("q")),  # divides
        "total": t.agg(F.sum("a").alias("a")),
        "one": _text("SELECT a,\n  (SELECT b FROM three_ AS o WHERE o.a = t.a) AS b FROM three_ AS t"),
    }


def _text(text: str) -> DataFrame:
    spark = SparkSession.getActiveSession()
    assert spark is not None
    return spark.sql(text)


def _line_of(comment: str) -> int:
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    (line,) = (number for number, text in enumerate(lines, 1) if text.endswith(f"  # {comment}"))
    return line


def test_a_row_fails_in_one_answer_of_three_until_it_goes(spark: SparkSession) -> None:
    """So does a scalar subquery with two rows. The errors have the line of the operator, as Spark notes it,
    or else that of the function, and the place in its text.
    """
    t = spark.createDataFrame([], "a bigint, b bigint")
    planned = query_of_frames(dataframes(_in_three), {"t": t}, {"t": t.schema})
    here = re.escape(__file__)
    wrong = {
        "share": rf"{here}:{_line_of('divides')}\) divides by zero in the row with .*b=0",
        "one": rf"subquery at {here}:{_in_three.__code__.co_firstlineno}, SELECT a, .* at 2:3 has one row",
    }
    with timely.connect(workers=1, embedded=True) as cluster:
        import differential as dd

        flow = cluster.install(lambda flow: planned.build(t=dd.input(flow, "t", t.schema)))

        def answers() -> dict[str, object]:
            seen: dict[str, object] = {}
            for name in ("share", "total", "one"):
                try:
                    rows = dd.to_pylist(flow.output(name).snapshot())
                    seen[name] = sorted(tuple(row.values()) for row in rows)
                except TimelyError as error:
                    assert re.search(wrong[name], str(error)), str(error)
                    seen[name] = type(error).__name__
            return seen

        flow.input("t").insert([(6, 2), (8, 0)])
        flow.seal()
        assert answers() == {"share": "RowError", "total": [(14,)], "one": [(6, 2), (8, 0)]}
        flow.input("t").insert([(6, 3)])
        flow.seal()
        assert answers() == {"share": "RowError", "total": [(20,)], "one": "NotEmptyError"}
        flow.input("t").remove([(8, 0)])
        flow.seal()
        assert answers() == {"share": [(6, 2.0), (6, 3.0)], "total": [(12,)], "one": "NotEmptyError"}
        flow.input("t").remove([(6, 3)])
        flow.seal()
        assert answers() == {"share": [(6, 3.0)], "total": [(6,)], "one": [(6, 2)]}
    spark.catalog.dropTempView("three_")


FAILING: dict[str, tuple[Callable[[DataFrame], DataFrame], str]] = {
    "cast": (lambda t: t.select(F.col("s").cast("int").alias("n")), "is no int"),  # of cast
    "filter": (lambda t: t.filter(F.col("s").cast("int") > 0).select("s"), "is no int"),  # of filter
    "group": (lambda t: t.groupBy((1 / F.col("b")).alias("k")).count(), "divides by zero"),  # of group
    "join": (lambda t: t.alias("x").join(
        t.alias("y"), F.col("x.b") - 1 == F.col("y.b") % F.col("x.b")  # of join
    ).select("x.b"), "by zero"),
    "window": (lambda t: t.select(F.sum(
        F.lit(1) / F.col("b")  # of window
    ).over(Window.partitionBy("s")).alias("w")), "divides by zero"),
    "element": (lambda t: t.select(F.array("s")[F.col("b") - 1].alias("e")), "no element"),  # of element
    "date": (lambda t: t.select(F.to_date("s").alias("d")), "is no date"),
    "text": (lambda t: t.selectExpr("b", "1 div b AS q"), "divides by zero"),
    "make_date": (lambda t: t.select(F.make_date(F.lit(2024), F.lit(1), "b").alias("d")), "is no date"),
    "overflow": (lambda t: t.select(((F.col("b") - 3) * (1 << 62)).alias("n")), "64 bits"),  # of overflow
}  # fmt: skip


@pytest.mark.parametrize("kind", FAILING)
def test_errors_of_rows_have_the_line_of_the_operator(spark: SparkSession, kind: str) -> None:
    """If Spark has noted none, that of the function. The rest of the rows answer again when the row goes."""
    query, message = FAILING[kind]
    t = spark.createDataFrame([], "s string, b bigint")
    planned = query_of_frames(dataframes(query), {"t": t}, {"t": t.schema})
    place = f"{__file__}:{query.__code__.co_firstlineno}"
    if kind not in ("date", "text", "make_date"):
        place = f"{__file__}:{_line_of(f'of {kind}')}"
    if kind == "text":
        place += ", 1 div b AS q at 1:1"
    good = ("2024-01-31" if kind == "date" else "12", 1)
    with timely.connect(workers=1, embedded=True) as cluster:
        import differential as dd

        def build(flow: timely.Dataflow) -> None:
            answer = planned.build(t=dd.input(flow, "t", t.schema))
            assert isinstance(answer, dd.Collection)
            answer.output("result")

        flow = cluster.install(build)
        flow.input("t").insert([good, ("x", 0)])
        flow.seal()
        with pytest.raises(dd.RowError, match=re.escape(f"({place})")) as told:
            flow.output("result").snapshot()
        assert message in str(told.value)
        flow.input("t").remove([("x", 0)])
        flow.seal()
        assert flow.output("result").snapshot().num_rows == 1
