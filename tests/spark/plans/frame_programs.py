"""PySpark programs in the style of Spark's documentation: functions from DataFrames to a DataFrame, as people
type them. Nothing in them is of this project.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.functions import avg, col, desc, expr, lit, when

__all__ = ["COLUMNS", "PROGRAMS"]

COLUMNS = {
    "orders": "id bigint not null, customer string, product string not null, cents bigint, quantity int, "
    "day date, at timestamp, rate double, price decimal(10,2), tags array<string>",
    "customers": "name string not null, city string, age int, since date",
    "employees": "name string not null, dept string, salary bigint, boss string, bonus double",
    "likes": "a bigint, b bigint",
}


def filter_with_text(orders: DataFrame) -> DataFrame:
    return orders.filter("cents > 100 AND customer IS NOT NULL").select("id", "customer", "cents")


def where_with_columns(orders: DataFrame) -> DataFrame:
    return orders.where((orders.cents >= 50) & ~(col("product") == "tea")).select(
        orders.id, orders["product"]
    )


def select_expr(orders: DataFrame) -> DataFrame:
    return orders.selectExpr(
        "id", "cents * quantity AS total", "upper(product) AS product", "cents % 7 AS rest"
    )


def with_columns(orders: DataFrame) -> DataFrame:
    return (
        orders.withColumn("total", col("cents") * col("quantity"))
        .withColumn("is_large", col("total") > 500)
        .withColumnRenamed("product", "item")
        .drop("tags", "at", "price")
    )


def group_and_sum(orders: DataFrame) -> DataFrame:
    return orders.groupBy("customer").agg(F.sum("cents").alias("total"), F.count("*").alias("n"))


def group_with_dict(orders: DataFrame) -> DataFrame:
    return orders.groupBy("product").agg({"cents": "avg", "quantity": "max"})


def group_count(employees: DataFrame) -> DataFrame:
    return employees.groupBy("dept").count().filter("count > 1")


def group_short_forms(employees: DataFrame) -> DataFrame:
    return employees.groupBy("dept").max("salary")


def total_of_all(orders: DataFrame) -> DataFrame:
    return orders.agg(
        F.min("cents"), F.max("day"), F.countDistinct("customer").alias("customers"), avg("rate")
    )


def many_statistics(employees: DataFrame) -> DataFrame:
    return employees.groupBy("dept").agg(
        F.stddev("salary").alias("deviation"),
        F.variance("bonus").alias("variance"),
        F.max_by("dept", "salary").alias("of_best_paid"),
        F.collect_set("boss").alias("bosses"),
        F.median("salary").alias("median"),
        F.sum_distinct("salary").alias("different"),
        F.count_if(col("bonus") > 100).alias("with_bonus"),
    )


def having_in_sql_words(orders: DataFrame) -> DataFrame:
    totals = orders.groupBy("customer").agg(expr("sum(cents * quantity) AS total"))
    return totals.where("total > 300").orderBy(desc("total"))


def join_on_name(orders: DataFrame, customers: DataFrame) -> DataFrame:
    renamed = customers.withColumnRenamed("name", "customer")
    return orders.join(renamed, "customer").select("id", "customer", "city")


def join_on_condition(orders: DataFrame, customers: DataFrame) -> DataFrame:
    joined = orders.join(customers, orders.customer == customers.name, "left")
    return joined.select(orders.id, customers.city, (customers.age + 1).alias("age"))


def full_join(orders: DataFrame, customers: DataFrame) -> DataFrame:
    customers = customers.withColumnRenamed("name", "customer")
    return orders.join(customers, on=["customer"], how="outer").select("customer", "cents", "city")


def semi_and_anti(orders: DataFrame, customers: DataFrame) -> DataFrame:
    known = orders.join(customers, orders.customer == customers.name, "left_semi").select(
        "id", lit("known").alias("s")
    )
    new = orders.join(customers, orders.customer == customers.name, "left_anti").select(
        "id", lit("new").alias("s")
    )
    return known.union(new)


def self_join(employees: DataFrame) -> DataFrame:
    e, b = employees.alias("e"), employees.alias("b")
    return e.join(b, col("e.boss") == col("b.name")).select(
        col("e.name"), col("b.name").alias("boss"), (col("b.salary") - col("e.salary")).alias("less")
    )


def non_equi_join(likes: DataFrame, employees: DataFrame) -> DataFrame:
    return likes.join(employees, (likes.a * 100 < employees.salary) & (likes.b > 1)).groupBy("a").count()


def cross_join(customers: DataFrame, likes: DataFrame) -> DataFrame:
    return customers.select("city").distinct().crossJoin(likes.select("a").distinct())


def unions(likes: DataFrame) -> DataFrame:
    turned = likes.select(col("b").alias("a"), col("a").alias("b"))
    return likes.unionByName(turned.select("b", "a")).distinct()


def set_operations(likes: DataFrame) -> DataFrame:
    turned = likes.select("b", "a")
    return likes.exceptAll(turned).union(likes.intersect(turned)).union(likes.subtract(turned))


def drop_duplicates(likes: DataFrame) -> DataFrame:
    return likes.dropDuplicates().filter(col("a").isNotNull())


def first_of_each(likes: DataFrame) -> DataFrame:
    return likes.groupBy("a").agg(F.min("b").alias("b")).dropDuplicates(["a"])


def order_and_limit(employees: DataFrame) -> DataFrame:
    return employees.orderBy(desc("salary"), "name").select("name").limit(3)


def offset_and_limit(employees: DataFrame) -> DataFrame:
    return employees.sort(col("salary").asc_nulls_last(), "name").offset(1).limit(2)


def best_of_each(employees: DataFrame) -> DataFrame:
    window = Window.partitionBy("dept").orderBy(desc("salary"), "name")
    return employees.withColumn("place", F.row_number().over(window)).filter(col("place") <= 2).drop("place")


def ranks(employees: DataFrame) -> DataFrame:
    by_salary = Window.partitionBy("dept").orderBy("salary")
    return employees.select(
        "name",
        F.rank().over(by_salary).alias("rank"),
        F.dense_rank().over(by_salary).alias("dense"),
        F.percent_rank().over(by_salary).alias("percent"),
        F.cume_dist().over(by_salary).alias("share"),
    )


def before_and_after(orders: DataFrame) -> DataFrame:
    by_time = Window.partitionBy("customer").orderBy("at", "id")
    return (
        orders.withColumn("before", F.lag("cents").over(by_time))
        .withColumn("after", F.lead("cents", 2, 0).over(by_time))
        .withColumn("change", col("cents") - col("before"))
        .select("id", "before", "after", "change")
    )


def running_sums(orders: DataFrame) -> DataFrame:
    by_id = Window.partitionBy("customer").orderBy("id")
    return orders.select(
        "id",
        F.sum("cents").over(by_id).alias("so_far"),
        F.avg("cents").over(by_id.rowsBetween(-1, 1)).alias("around"),
        F.max("cents").over(Window.partitionBy("customer")).alias("largest"),
        F.first("cents").over(by_id).alias("first"),
    )


def share_of_total(orders: DataFrame) -> DataFrame:
    everything = Window.partitionBy("product")
    return (
        orders.filter("cents is not null")
        .withColumn("share", col("cents") / (F.sum("cents").over(everything) + 1))
        .select("id", "share")
    )


def case_when(customers: DataFrame) -> DataFrame:
    return customers.select(
        "name", when(col("age") < 18, "child").when(col("age") < 65, "adult").otherwise("old").alias("group")
    )


def fill_and_drop_nulls(customers: DataFrame) -> DataFrame:
    return (
        customers.na.fill({"city": "nowhere", "age": 0})
        .na.drop(subset=["since"])
        .replace("Rome", "Roma", ["city"])
    )


def drop_where_few(employees: DataFrame) -> DataFrame:
    return employees.dropna(thresh=4).fillna(0)


def texts(customers: DataFrame) -> DataFrame:
    return customers.select(
        F.upper("name"), F.concat_ws("-", "name", "city").alias("both"), F.length("city"),
        F.substring("name", 1, 2), F.regexp_replace("name", "[aeiou]+", "_").alias("consonants"),
        F.lpad("name", 4, "*"), F.initcap("city"), F.trim(F.lit(" x ")), col("name").contains("a"),
        col("name").like("%o%"), col("city").startswith("R"), F.regexp_extract("name", "(.)$", 1),
        F.coalesce("city", lit("?")), F.nvl("city", lit("!")), col("name").substr(2, 2),
        F.translate("name", "ab", "AB"),
    )  # fmt: skip


def numbers(employees: DataFrame) -> DataFrame:
    return employees.select(
        "name", F.round(col("bonus") / 3, 2), F.abs(-col("salary")), F.sqrt("salary"),
        F.pow("salary", lit(2)),
        F.greatest("salary", lit(1500)), F.floor("bonus"), F.ceil("bonus"), F.log("bonus"),
        F.pmod("salary", lit(7)),
        F.signum("bonus"), F.expr("salary div 7"), F.col("salary").cast("double"), F.bround("bonus", 0),
    )  # fmt: skip


def dates(orders: DataFrame) -> DataFrame:
    return orders.select(
        "id", F.year("day"), F.month("day"), F.dayofweek("day"), F.date_add("day", 30), F.last_day("day"),
        F.datediff(lit("2024-12-31").cast("date"), "day"), F.date_trunc("month", "at"),
        F.trunc("day", "year"),
        F.date_format("at", "yyyy-MM-dd HH:mm"), F.hour("at"), F.to_date(lit("01.02.2024"), "dd.MM.yyyy"),
        F.add_months("day", 1), F.col("day") + F.expr("INTERVAL 3 DAYS"), F.unix_timestamp("at"),
        F.to_date("at"),
    )  # fmt: skip


def windows_of_time(orders: DataFrame) -> DataFrame:
    return (
        orders.groupBy(F.window("at", "1 hour"), "product")
        .agg(F.sum("cents").alias("cents"))
        .select(col("window.start"), col("window.end"), "product", "cents")
    )


def exploded_words(orders: DataFrame) -> DataFrame:
    return orders.select("id", F.explode("tags").alias("tag")).groupBy("tag").count()


def word_count(customers: DataFrame) -> DataFrame:
    words = customers.select(F.explode(F.split(customers.city, " ")).alias("word"))
    return words.groupBy("word").count().orderBy("count", ascending=False)


def positions(orders: DataFrame) -> DataFrame:
    return orders.select("id", F.posexplode_outer("tags"))


def arrays(orders: DataFrame) -> DataFrame:
    return orders.select(
        "id", F.size("tags"), F.array_contains("tags", "new"), F.sort_array("tags"), F.array_distinct("tags"),
        F.concat_ws(",", F.array_join("tags", "+")), F.array("product", "customer").alias("pair"),
    )  # fmt: skip


def structs(orders: DataFrame) -> DataFrame:
    packed = orders.select("id", F.struct("product", "cents").alias("sale"))
    return packed.select("id", "sale.product", col("sale").getField("cents").alias("c"), "sale")


def pivot(orders: DataFrame) -> DataFrame:
    return orders.groupBy("customer").pivot("product", ["tea", "bread"]).sum("cents")


def pivot_of_two(employees: DataFrame) -> DataFrame:
    return (
        employees.groupBy()
        .pivot("dept", ["it", "hr"])
        .agg(F.avg("salary").alias("mean"), F.count("name").alias("n"))
    )


def unpivot(likes: DataFrame) -> DataFrame:
    return likes.withColumn("id", col("a") + col("b")).unpivot("id", ["a", "b"], "which", "value")


def rollup(employees: DataFrame) -> DataFrame:
    return employees.rollup("dept", "boss").agg(
        F.sum("salary").alias("salary"), F.grouping_id().alias("level")
    )


def cube(orders: DataFrame) -> DataFrame:
    return orders.cube("product", "customer").count()


def decimals(orders: DataFrame) -> DataFrame:
    return orders.groupBy("product").agg(
        F.sum(col("price") * col("quantity")).alias("total"),
        F.avg("price").alias("mean"),
        F.max(col("price") / 3),
    )


def constants_joined(orders: DataFrame) -> DataFrame:
    spark = SparkSession.getActiveSession()
    assert spark is not None
    rates = spark.createDataFrame([("tea", 7), ("bread", 19)], "product string, tax int")
    return orders.join(rates, "product", "left").select("id", "product", "tax")


def text_query(orders: DataFrame, customers: DataFrame) -> DataFrame:
    spark = SparkSession.getActiveSession()
    assert spark is not None
    orders.createOrReplaceTempView("o_")
    return spark.sql(
        "SELECT c.name, (SELECT max(cents) FROM o_ WHERE o_.customer = c.name) AS most FROM {customers} c "
        "WHERE EXISTS (SELECT 1 FROM o_ WHERE o_.customer = c.name AND o_.quantity > 1) OR c.age > 60",
        customers=customers,
    )


def transformed(orders: DataFrame) -> DataFrame:
    def with_total(frame: DataFrame) -> DataFrame:
        return frame.withColumn("total", F.expr("cents * quantity"))

    def only_large(frame: DataFrame) -> DataFrame:
        return frame.filter(F.col("total").between(100, 2000) & F.col("product").isin("tea", "bread"))

    return (
        orders.transform(with_total).transform(only_large).groupBy("product").agg(F.sum("total").alias("t"))
    )


def two_aggregations(orders: DataFrame, customers: DataFrame) -> DataFrame:
    totals = orders.groupBy("customer").agg(F.sum("cents").alias("total"))
    mean = totals.agg(F.avg("total").alias("mean"))
    return totals.crossJoin(mean).filter(col("total") > col("mean")).join(
        customers, totals.customer == customers.name, "left"
    ).select("customer", "total", "city")  # fmt: skip


def _sql(text: str, **frames: DataFrame) -> DataFrame:
    spark = SparkSession.getActiveSession()
    assert spark is not None
    return spark.sql(text, None, **frames)


def recursion(likes: DataFrame) -> DataFrame:
    return _sql(
        "WITH RECURSIVE up(x) AS (SELECT a FROM {likes} WHERE b = 0 UNION ALL "
        "SELECT x + 1 FROM up WHERE x < 5) "
        "SELECT x, count(*) AS n FROM up GROUP BY x",
        likes=likes,
    )


def with_and_values(likes: DataFrame) -> DataFrame:
    return _sql(
        "WITH t AS (SELECT a, count(b) AS n FROM {likes} GROUP BY a), "
        "v(a, name) AS (VALUES (1, 'one'), (2, NULL)) "
        "SELECT x.a, y.n, v.name FROM t x JOIN t y ON x.n = y.n LEFT JOIN v ON v.a = x.a",
        likes=likes,
    )


def lateral(likes: DataFrame, employees: DataFrame) -> DataFrame:
    return _sql(
        "SELECT * FROM {likes} l, LATERAL (SELECT count(*) AS n, max(salary) AS s FROM {employees} e "
        "WHERE e.salary > l.a * 1000) m",
        likes=likes,
        employees=employees,
    )


def grouping_sets(employees: DataFrame) -> DataFrame:
    return _sql(
        "SELECT dept, boss, sum(salary) FILTER (WHERE bonus > 3) AS s, count(DISTINCT dept, boss) AS n "
        "FROM {employees} GROUP BY GROUPING SETS ((dept, boss), (dept), ())",
        employees=employees,
    )


def not_in(likes: DataFrame) -> DataFrame:
    return _sql(
        "SELECT a, b, a IN (SELECT b FROM {likes}) AS m FROM {likes} "
        "WHERE a NOT IN (SELECT b FROM {likes} WHERE b > 2)",
        likes=likes,
    )


def read_twice(orders: DataFrame) -> DataFrame:
    return orders.select(
        "id",
        F.nullif(F.nullif("cents", "quantity"), lit(30)).alias("a"),
        expr("nullif(quantity, 2) BETWEEN nullif(quantity, 1) AND 5").alias("b"),
        expr("cents BETWEEN nullif(quantity, 2) AND 300 AND cents NOT BETWEEN 40 AND 100").alias("c"),
        expr("nullif(cents + quantity, nullif(quantity, 1) + cents)").alias("d"),
    )


def fields_changed(orders: DataFrame) -> DataFrame:
    structs = orders.select("id", when(col("quantity") > 1, F.struct("cents", "product")).alias("s"))
    changed = col("s").withField("cents", col("id") + 1).withField("loud", F.upper("s.product"))
    return structs.withColumn("s", changed).withColumn("t", col("s").dropFields("product"))


def maps(likes: DataFrame) -> DataFrame:
    made = likes.select(F.create_map(lit("x"), "a", lit("y"), "b").alias("m"))
    return made.select(col("m")["x"].alias("x"), F.map_values("m").alias("v"), F.map_keys("m").alias("k"))


def hashes(orders: DataFrame) -> DataFrame:
    return orders.select(
        "id",
        F.xxhash64("id", "product", lit(7), "rate"),
        F.format_string("%s: %5d", "product", "id"),
        F.md5("product"),
        F.sha2("product", 256),
        F.crc32("product"),
        F.sha1("customer"),
    )


def shares(orders: DataFrame) -> DataFrame:
    return orders.groupBy("product").agg(
        F.percentile_approx("cents", 0.5).alias("j"),
        F.percentile_approx("rate", 0.25, 100).alias("k"),
        expr("percentile_approx(quantity, 0.9)").alias("l"),
    )


def full_join_by_two_names(likes: DataFrame) -> DataFrame:
    others = likes.select("a", "b", lit(1).alias("one"))
    return likes.join(others, ["a", "b"], "full").groupBy("a", "b").agg(F.count("one").alias("n"))


def left_join_by_a_range(orders: DataFrame, employees: DataFrame) -> DataFrame:
    near = (orders.cents > employees.bonus) & (orders.quantity < 3)
    return orders.join(employees, near, "left").select("id", employees.name)


def near_salaries(employees: DataFrame) -> DataFrame:
    near = Window.partitionBy("dept").orderBy("salary").rangeBetween(-600, 0)
    return employees.select("name", F.sum("bonus").over(near).alias("s"), F.max("salary").over(near))


def ranges_of_times_and_decimals(orders: DataFrame) -> DataFrame:
    over = "sum(quantity) OVER (PARTITION BY product ORDER BY {} RANGE BETWEEN {} PRECEDING AND CURRENT ROW)"
    return orders.select(
        "id", F.expr(over.format("day", "INTERVAL 2 DAYS")).alias("by_days"),
        F.expr(over.format("day", "40")).alias("by_number"), F.expr(over.format("price", "1")).alias("whole"),
        F.expr(over.format("price", "12.5")).alias("parts"),
        F.expr(over.format("at", "INTERVAL '1 02:30' DAY TO MINUTE")).alias("by_times"),
        F.expr(over.format("day", "INTERVAL 1 MONTH")).alias("by_months"),
        F.expr(over.format("at", "INTERVAL '1-1' YEAR TO MONTH")).alias("by_years"),
        F.expr(over.format("rate", "0.25D")).alias("by_floats"),
    )  # fmt: skip


def of_two_tables_by_name(likes: DataFrame, employees: DataFrame) -> DataFrame:
    others = employees.select(col("salary").alias("a"), "name")
    return likes.select("a").unionByName(others, allowMissingColumns=True)


PROGRAMS: dict[str, Callable[..., DataFrame]] = {  # type: ignore[explicit-any]  # of any DataFrames
    each.__name__: each
    for each in (
        filter_with_text, where_with_columns, select_expr, with_columns, group_and_sum,
        group_with_dict, group_count, group_short_forms, total_of_all, many_statistics,
        having_in_sql_words, join_on_name, join_on_condition, full_join, semi_and_anti, self_join,
        non_equi_join, cross_join, unions, set_operations, drop_duplicates, first_of_each,
        order_and_limit, offset_and_limit, best_of_each, ranks, before_and_after, running_sums,
        share_of_total, case_when, fill_and_drop_nulls, drop_where_few, texts, numbers, dates,
        windows_of_time, exploded_words, word_count, positions, arrays, structs, pivot,
        pivot_of_two, unpivot, rollup, cube, decimals, constants_joined, text_query, transformed,
        two_aggregations, recursion,
        with_and_values, lateral, grouping_sets, not_in, read_twice, fields_changed, maps, hashes, shares,
        full_join_by_two_names, left_join_by_a_range, near_salaries, of_two_tables_by_name,
        ranges_of_times_and_decimals,
    )
}  # fmt: skip
