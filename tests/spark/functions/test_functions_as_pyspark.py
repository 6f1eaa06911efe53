"""`from differential import functions as F`: snippets in the style of Spark's documentation.

Each is the same text over a DataFrame with PySpark's functions, and over a collection with ours.

same_*      the same rows, and columns of the same names
"""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING

import differential as dd
import timely
from differential import functions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PEOPLE = (
    "id bigint, name string, age int, dept string, pay double, born date, seen timestamp, "
    "price decimal(10,2), tags array<string>"
)
DEPTS = "dept string, city string, boss bigint"
_AT = dt.datetime(2024, 2, 29, 12, 34, 56)
ROWS: list[tuple[object, ...]] = [
    (1, "Ann Lee", 30, "it", 1000.5, dt.date(1994, 2, 28), _AT, Decimal("1.25"), ["a", "b", "a"]),
    (2, "bob", None, "it", 0.0, None, None, Decimal("-2.50"), []),
    (3, None, 41, "hr", -2.5, dt.date(1983, 12, 31), _AT.replace(hour=0), None, None),
    (4, "eve  ", 19, None, 2.5, dt.date(2005, 1, 1), _AT.replace(year=1968), Decimal("0.05"), ["c", None]),
    (5, "o'neil", 30, "law", math.nan, dt.date(2020, 2, 29), _AT.replace(day=1), Decimal("19.99"), ["b"]),
]
SIDES: list[tuple[object, ...]] = [("it", "Rome", 1), ("hr", "Oslo", 3), ("ops", None, None)]

SNIPPETS = """
people.select("name", "age")

people.select(people.name, (people.age + 10).alias("later"))

people.select(F.col("name"), F.upper("name"), F.length("name"))

people.select(F.upper(people["name"]).alias("n"), F.lower(F.col("name")).alias("m"))

people.filter(people.age > 21).select("id")

people.filter((people.age > 21) & (people.dept == "it")).select("id")

people.where("age is null or dept = 'hr'").select(people.id)

people.filter(people.name.startswith("A") | people.name.like("%o%")).select("id")

people.filter(people.dept.isin("it", "hr")).select("id")

people.filter(people.age.between(20, 35)).select("id", "age")

people.filter(~people.age.isNull()).select("id")

people[people.age > 30][["id", "name"]]

people.withColumn("double", people.age * 2).select("id", "double")

people.withColumn("name", F.trim("name")).select("id", "name")

people.select(
    "id", F.when(people.age > 30, "old").when(people.age > 20, "young").otherwise("?").alias("a")
)

people.select("id", F.coalesce("age", F.lit(0)).alias("age"), F.lit("x").alias("x"))

people.select(
    F.concat_ws("-", "dept", "name").alias("c"), F.concat("dept", F.lit("!"), "name").alias("d")
)

people.select(
    F.substring("name", 1, 3).alias("s"),
    F.lpad("dept", 5, "*").alias("l"),
    F.rpad("dept", 2, "#").alias("r"),
)

people.select(
    F.regexp_replace("name", "(n+)", "<$1>").alias("r"),
    F.regexp_extract("name", "([a-z]+)", 1).alias("e"),
)

people.select(
    F.split("name", " ").alias("s"), F.initcap("name").alias("i"), F.instr("name", "e").alias("at")
)

people.select(
    F.translate("name", "en", "EN").alias("t"),
    F.locate("e", "name").alias("at"),
    F.reverse("name").alias("r"),
)

people.filter(people.id < 5).select(
    F.round("pay", 0).alias("r"),
    F.floor("pay").alias("f"),
    F.ceil("pay").alias("c"),
    F.abs("pay").alias("a"),
)

people.select(
    "id",
    F.sqrt("age").alias("s"),
    F.pow("age", 2).alias("p"),
    F.log10("age").alias("l"),
    F.log2("pay").alias("m"),
)

people.select(
    "id", F.isnan("pay").alias("n"), F.isnull("name").alias("u"), F.nanvl("pay", F.lit(1.5)).alias("v")
)

people.select(F.greatest("id", "age").alias("g"), F.least("id", "age").alias("l"))

people.select(
    F.year("born").alias("y"),
    F.month("born").alias("m"),
    F.dayofmonth("born").alias("d"),
    F.dayofweek("born").alias("w"),
)

people.select(
    F.date_add("born", 1).alias("a"),
    F.date_sub("born", 1).alias("b"),
    F.add_months("born", 1).alias("c"),
    F.last_day("born").alias("d"),
)

people.select(
    F.datediff(F.lit(dt.date(2024, 1, 1)), "born").alias("n"),
    F.months_between(F.lit(dt.date(2024, 1, 31)), "born").alias("m"),
)

people.select(
    F.date_format("seen", "dd.MM.yyyy HH:mm").alias("f"),
    F.date_trunc("month", "seen").alias("t"),
    F.trunc("born", "year").alias("u"),
)

people.select(
    F.to_date(F.lit("2024/01/31"), "yyyy/MM/dd").alias("d"),
    F.hour("seen").alias("h"),
    F.next_day("born", "Mon").alias("n"),
)

people.select(
    "id",
    F.size("tags").alias("n"),
    F.array_contains("tags", "a").alias("c"),
    F.array_distinct("tags").alias("d"),
)

people.select(
    "id",
    F.array_join("tags", ",", "?").alias("j"),
    F.array_max("tags").alias("m"),
    F.sort_array("tags").alias("s"),
)

people.select(
    "id",
    F.md5("name").alias("m"),
    F.format_string("%-6s|%,.1f", "name", F.col("age") * 1.5).alias("f"),
    F.xxhash64("name", "dept").alias("x"),
    F.sha2("name", 256).alias("s"),
    F.crc32("name").alias("c"),
    F.hex("id").alias("h"),
)

people.select("id", people.pay.cast("string").alias("s"), people.age.cast("double").alias("d")).filter(
    "id < 4"
)

people.select(
    "id",
    F.expr("age * 2 + 1").alias("e"),
    F.nvl("age", F.lit(0)).alias("n"),
    F.ifnull("dept", F.lit("-")).alias("i"),
)

people.selectExpr("id", "age + 1 AS next", "upper(dept)")

people.groupBy("dept").count()

people.select(F.count("*"), F.max("age"), F.avg(people.pay).alias("m")).select("count(1)", "max(age)")

people.groupBy(F.year("born")).agg(F.count("*"))

people.groupBy(people.dept).agg(
    F.sum("age"), F.max("age"), F.min(people.age), F.avg("age"), F.count("*")
)

people.groupBy("dept").agg(
    F.sum("age").alias("s"), F.countDistinct("name").alias("n"), F.collect_set("age").alias("c")
)

people.groupBy("dept").agg({"age": "max"})

people.agg(F.count("age"), F.stddev("age").alias("d"), F.max_by("name", "id").alias("m"))

people.selectExpr("sum(age)", "count(*) AS n", "max(pay) - min(pay) AS spread").select("sum(age)", "n")

people.groupBy("dept").agg(F.expr("sum(age) / count(*) AS mean"), F.expr("max(name)").alias("m"))

people.groupBy(F.year("born").alias("y")).agg(F.count("*").alias("n"))

people.groupBy("dept").agg(F.count("*").alias("n")).filter(F.col("n") > 1)

people.join(depts, "dept").select("name", "city")

people.join(depts, people.dept == depts.dept).select(people.name, depts.city, depts.dept)

people.join(depts, people.dept == depts.dept, "left").filter(depts.dept.isNull()).select(people.id)

people.join(depts, people.dept == depts.dept, "full").drop(depts.dept).select("id", "dept", "city")

people.join(depts, (people.dept == depts.dept) & (people.id > depts.boss), "left").select("id", "boss")

people.join(depts, [people.dept == depts.dept], "left_anti").select("id")

(a := people.alias("a")).join((b := people.alias("b")), a.age == b.age).groupBy(a.id).count()

people.orderBy(people.age.desc(), F.col("id")).limit(2).select("id")

people.orderBy(F.desc("pay"), "id").limit(3).select("id")

people.dropDuplicates(["age"]).groupBy("age").count()

people.select("dept").distinct().union(depts.select("dept")).groupBy("dept").count()

people.na.fill({"age": 0, "dept": "none"}).select("id", "age", "dept")

people.na.drop(subset=["age", "dept"]).select("id")

people.select("id", F.struct("age", "dept").alias("s")).select(
    "id", F.col("s").getField("dept").alias("d")
)

people.rollup("dept").agg(F.sum("age").alias("s"), F.grouping("dept").alias("g"))
""".strip().split("\n\n")  # fmt: skip


def plain(value: object) -> object:
    if isinstance(value, float):
        return "nan" if math.isnan(value) else float(f"{value:.12g}")
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC)
    if isinstance(value, list | tuple):
        return tuple(map(plain, value))
    return value.normalize() if isinstance(value, Decimal) else value


def test_same_snippets_over_a_dataframe_and_over_a_collection(spark: SparkSession) -> None:
    from pyspark.sql import functions as of_pyspark

    spark.conf.set("spark.sql.session.timeZone", "UTC")
    frames = {
        "people": spark.createDataFrame([tuple(_in_utc(v) for v in row) for row in ROWS], PEOPLE),
        "depts": spark.createDataFrame(SIDES, DEPTS),
    }
    columns: dict[int, tuple[str, ...]] = {}

    def build(flow: timely.Dataflow) -> None:
        inputs = {name: dd.input(flow, name, frame.schema) for name, frame in frames.items()}
        for number, snippet in enumerate(SNIPPETS):
            try:
                rows = eval(f"({snippet})", {**inputs, "F": functions, "dt": dt})
            except Exception as error:
                wrong.append(f"{snippet}\n    {type(error).__name__}: {error}")
                continue
            columns[number] = rows.schema.names
            rows.output(str(number))

    wrong: list[str] = []
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(build)
        flow.input("people").insert([tuple(_in_utc(v) for v in row) for row in ROWS])
        flow.input("depts").insert(SIDES)
        flow.seal()
        for number, snippet in enumerate(SNIPPETS):
            if number not in columns:
                continue
            frame = eval(f"({snippet})", {**frames, "F": of_pyspark, "dt": dt})
            wanted = Counter(_sorted_sets(snippet, tuple(map(plain, row))) for row in frame.collect())
            try:
                table = flow.output(str(number)).snapshot().to_pylist()
            except timely.TimelyError as error:
                wrong.append(f"{snippet}\n    {error}")
                continue
            rows = Counter(_sorted_sets(snippet, tuple(map(plain, row.values()))) for row in table)
            if rows != wanted:
                wrong.append(f"{snippet}\n    {rows - wanted}\n    instead of {wanted - rows}")
            if list(columns[number]) != frame.columns:
                wrong.append(f"{snippet}\n    columns {columns[number]} instead of {frame.columns}")
    assert not wrong, "\n".join(wrong)


def _in_utc(value: object) -> object:
    return value.replace(tzinfo=dt.UTC) if isinstance(value, dt.datetime) else value


def _sorted_sets(snippet: str, row: tuple[object, ...]) -> tuple[object, ...]:
    """The row; lists of `collect_set` have no order."""
    if "collect_set" not in snippet:
        return row
    return tuple(tuple(sorted(each)) if isinstance(each, tuple) else each for each in row)
