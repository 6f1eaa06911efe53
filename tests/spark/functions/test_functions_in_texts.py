"""Functions in SQL texts of Spark's dialect give what Spark gives for the same text.

same_*      the values of a text over edge values of its type, here and in Spark
lists_*     no function is forgotten in texts, in these tests or in the documents
"""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING, cast

import pytest
from expression_values import values_of
from house import ROOT
from nested_functions import CLAIMS, JSON_CLAIMS, plainly
from spark.functions.test_functions import CALENDAR, COLUMNS, DAYS, UNITS, is_same, plain

import differential as dd
import timely
from differential import Schema
from differential.columns.rows import Row
from differential.expressions.pending import SqlExpr, sql_reader
from differential.relational.spark_functions.by_name import BY_FORM, BY_TEXT, NAMED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SAME: dict[str, list[str]] = {
    "string": [
        *(f"{name}(x)" for name in (
            "upper", "lower", "ucase", "lcase", "initcap", "length", "char_length", "character_length",
            "reverse", "trim", "ltrim", "rtrim", "btrim", "isnull", "isnotnull", "md5", "sha", "sha1",
            "crc32",
            "ascii", "base64", "hex", "octet_length", "bit_length", "unhex", "xxhash64")),
        *(f"{name}('ab ', x)" for name in ("trim", "ltrim", "rtrim")), "btrim(x, 'ab ')",
        *(f"trim({side} 'a' from x)" for side in ("both", "leading", "trailing")), "replace(x, 'a', 'X')",
        "replace(x, 'a')", "regexp_replace(x, '\\\\s+', '_')",
        "regexp_replace(x, '([a-c])(.)', '$2$1')", "regexp_extract(x, '([a-z])(.)', 2)",
        "regexp_extract(x, '([a-z])(.)')", "regexp_extract(x, '\\\\d', 0)",
        *(f"{name}(x, '{part}')" for part in ("a", "") for name in ("contains", "startswith", "endswith")),
        *(f"like(x, '{pattern}')" for pattern in ("a%", "%", "_b", "", "%é%", "_")), "ilike(x, 'a%')",
        *(f"{name}(x, '{pattern}')" for pattern in ("^a", "b$", "\\\\d", "(?i)AB")
          for name in ("rlike", "regexp", "regexp_like")),
        "x rlike '\\\\d'", "split(x, ',')", "split(x, '[,]')", "split(x, '\\\\.')",
        *(f"{name}(x, {width}, '*')" for name in ("lpad", "rpad") for width in (0, 1, 4)), "lpad(x, 5)",
        "rpad(x, 5)",
        "concat(x, '-', x)", "concat_ws('-', x, 'b', x, 1, null)", "coalesce(x, '-')", "nvl(x, '-')",
        "ifnull(x, '-')",
        "nvl2(x, 'there', 'null')", "nullif(x, 'a')", "if(x = 'a', 1, 2)",
        *(f"{name}(x, {count})" for name in ("left", "right") for count in (-1, 0, 1, 2, 99)),
        *(f"sha2(x, {bits})" for bits in (0, 224, 256, 384, 512)), "unbase64(base64(x))",
        *(f"format_string('{form}', x)" for form in ("%s", "%8s|", "%.3S")), "printf('%-8s|', x)",
        "xxhash64(x, repeat(x, 99), x)",
        *(f"instr(x, '{part}')" for part in ("a", "b,", "", "x")),
        *(f"{name}('a', x, {at})" for at in (0, 1, 2, 3) for name in ("locate", "position")),
        "locate('a', x)", "position('a' in x)", "position('a', x)", "len(x)", "string(x)",
        *(f"split_part(x, ',', {at})" for at in (1, 2, 3, 9, -1, -4, -9)),
        *(f"substring_index(x, ',', {count})" for count in (0, 1, 2, 9, -1, -2, -9)),
        *(f"repeat(x, {count})" for count in (-1, 0, 1, 3)), "translate(x, 'aaé ', 'xyz')",
        *(f"substring(x, {at}, {length})" for at in (-9, -2, -1, 0, 1, 2, 9) for length in (-1, 0, 1, 9)),
        "array_size(split(x, ','))", "cardinality(split(x, ','))", "binary(x)", "substr(x, 2)",
        "substring(x from 2 for 1)", "array(x, null, 'a')", "struct(x, x AS y)",
        "element_at(split(x, ','), 1)",
    ],
    "float": [
        *(f"{name}(x)" for name in (
            "signum", "sign", "sqrt", "exp", "isnan", "abs", "sin", "cos", "tan", "asin", "acos", "atan",
            "sinh", "cosh",
            "tanh", "degrees", "radians", "cbrt", "expm1", "ln", "log", "log2", "log10", "log1p",
            "xxhash64", "negative")),
        *(f"{name}(x, {digits})" for name in ("round", "bround") for digits in (0, 1, 2, -1, -2, 12)),
        "bround(x)", "round(x)", "log(2, x)", "log(10, x)",
        *(f"format_number(x + 0.0D, {digits})" for digits in (0, 1, 2, 9)),
        *(f"format_string('{form}', x + 0.0D)" for form in ("%f", "%,.2f", "%e", "%s")),
        "nanvl(x, 1.0)", "nanvl(x, 1)", "atan2(x, -2.0)", "atan2(0.5, x)", "hypot(x, 3)", "power(x, 2)",
        "pow(x, 0.5)",
        *(f"{name}(x, 1.0D)" for name in ("least", "greatest", "coalesce", "nullif")), "nvl2(x, x, 1)",
        "array(x, 1)",
        "e() * x", "pi()",
    ],
    "int": [
        *(f"{name}(x)" for name in (
            "abs", "sqrt", "exp", "floor", "ceil", "signum", "hex", "bin", "bit_count", "chr", "char",
            "log1p", "sin", "isnull", "negative")),
        "floor(x / 4.0D)", "ceil(x / 4.0D)", "ceiling(x % 4)",
        "~x", "int(x % 100)", "smallint(x % 100)", "tinyint(x % 100)", "boolean(x)", "double(x)",
        *(f"{name}(x, {digits})" for name in ("round", "bround") for digits in (0, 1, -1, -2, -18)),
        *(f"{name}(x, {by})" for name in ("shiftleft", "shiftright",
        "shiftrightunsigned") for by in (0, 1, 33, 63)),
        *(f"timestamp_{unit}({sign}(abs(x) % 1000000000))" for sign in ("", "-") for unit in ("seconds",
        "millis", "micros")),
        "from_unixtime(x % 1000000000)", "from_unixtime(x % 1000000000, 'dd.MM.yyyy HH')",
        *(f"format_string('{form}', x)" for form in ("%d", "%,d", "%05d", "%x")), "format_number(x, 1)",
        "nvl2(x, 1, 2)",
        "xxhash64(x, x)", "pmod(x, 7L)", "pmod(x, -7L)", "mod(x, 7L)", "array(x, 1)", "map('a', x, 'b', 1)",
        "array_repeat(x, 2)", "named_struct('p', x, 'q', 1)", "to_json(named_struct('p', x, 'q', null))",
        "sequence(1, x % 5)",
        "make_date(2000 + x % 50, 2, 28)", "concat_ws(',', x)", "greatest(x, 1)", "ln(x)",
        "element_at(map(1L, x), 1L)",
    ],
    "decimal(10, 2)": [
        *(f"{name}(x)" for name in ("abs", "floor", "ceil", "signum", "xxhash64", "sin", "ln", "sqrt")),
        *(f"{name}(x, {digits})" for name in ("round", "bround") for digits in (0, 1, 2, 3, -1)),
        *(f"format_number(x, {digits})" for digits in (0, 1, 3)), "format_string('%9s', x)", "least(x, 1)",
        "hypot(x, 1)",
    ],
    "date": [
        *(f"{name}(x)" for name in (*CALENDAR, *DAYS, "xxhash64", "unix_date", "unix_timestamp",
        "to_unix_timestamp", "to_date",
                                    "to_timestamp", "isnull")),
        *(f"next_day(x, '{day}')" for day in ("Mon", "tu", "SUNDAY")),
        *(f"trunc(x, '{unit}')" for unit in ("year", "YY", "quarter", "month", "mon", "MM", "week")),
        *(f"date_trunc('{unit}', x)" for unit in ("year", "MONTH", "week", "day")),
        *(f"{name}('{field}', x)" for field in ("YEAR", "YEAROFWEEK", "week", "doy", "DOW", "quarter",
        "dow_iso")
          for name in ("date_part", "datepart")), "extract(week from x)", "extract(dow from x)",
          "extract(year from x)",
        "months_between(x, date '2024-01-31')", "months_between(date '2024-02-29', x)",
        "months_between('2024-02-29', x)",
        "make_date(year(x), month(x), dayofmonth(x))",
        *(f"{name}(x, {days})" for name in ("date_add", "date_sub",
        "dateadd") for days in (1, -1, 30, 366)),
        *(f"add_months(x, {months})" for months in (1, -1, 12, 13)),
        *(f"{name}(x, date '2024-01-01')" for name in ("datediff", "date_diff")),
        "datediff('2024-01-01', x)",
        *(f"date_format(x, '{form}')" for form in ("yyyy-MM-dd", "dd.MM.yy", "EEEE", "MMM dd", "HH:mm:ss")),
        "timestamp(x)", "next_day('2024-01-01', 'Mon')", "dayofweek('2024-01-01')",
        "weekofyear('2024-01-01')",
        "date_format('2024-01-01', 'yyyy')",
        "to_date(date_format(x, 'dd.MM.yyyy'), 'dd.MM.yyyy')",
        "try_to_date(date_format(x, 'dd.MM.yyyy'), 'dd.MM.yyyy')",
        "to_date('2024-02-29')", "to_date('29/02/2024', 'dd/MM/yyyy')",
        "try_to_date('31/02/2024', 'dd/MM/yyyy')",
    ],
    "timestamp": [
        *(f"{name}(x)" for name in (*CALENDAR, *DAYS, "unix_micros", "unix_millis", "unix_seconds",
        "unix_timestamp",
                                    "to_unix_timestamp", "to_date", "to_timestamp")),
        *(f"trunc(x, '{unit}')" for unit in ("year", "month")), "next_day(x, 'tu')",
        *(f"date_trunc('{unit}', x)" for unit in (*UNITS, "YYYY", "mon", "MM", "DD", "HOUR",
        "millisecond")),
        "date_diff(x, date '2024-01-01')", "extract(second from x)", "date_part('SECOND', x)",
        "date_part('hour', x)",
        *(f"{name}(x, '{zone}')" for name in ("from_utc_timestamp", "to_utc_timestamp")
          for zone in ("Europe/Rome", "Australia/Lord_Howe", "UTC")),
        "date_format(x, 'yyyy-MM-dd HH:mm:ss.SSSSSS')", "date_format(x, 'hh a E')",
        "to_timestamp(date_format(x, 'yyyy/MM/dd HH:mm'), 'yyyy/MM/dd HH:mm')",
        "try_to_timestamp('x', 'yyyy')",
        "unix_timestamp(date_format(x, 'yyyy/MM/dd HH:mm'), 'yyyy/MM/dd HH:mm')",
        "date(x)", "months_between(x, '2024-01-31')", "add_months(x, 1)", "date_add(x, 1)",
        "datediff(x, '2024-01-01')",
    ],
}  # fmt: skip


def value_of(text: str, schema: Schema, rows: list[Row]) -> list[object]:
    return values_of(sql_reader().value(cast("SqlExpr", dd.expr(text)), schema), rows, schema)


@pytest.mark.parametrize("kind", SAME)
def test_same_as_spark_of_every_edge_value(spark: SparkSession, kind: str) -> None:
    sparks_type, values = COLUMNS[kind]
    frame = spark.createDataFrame(
        [(value, at) for at, value in enumerate(values)], f"x {sparks_type}, at int"
    )
    rows: list[Row] = [(v.replace(tzinfo=dt.UTC) if isinstance(v, dt.datetime) else v,) for v in values]
    differ: list[str] = []
    written = SAME[kind]
    columns = [f"{text} AS c{at}" for at, text in enumerate(written)]
    theirs = frame.orderBy("at").selectExpr(*columns).collect()
    for at, text in enumerate(written):
        try:
            ours = value_of(text, Schema.of(f"x: {kind}?"), rows)
        except dd.SqlError as error:
            differ.append(f"{text}: {error}")
            continue
        differ += [
            f"{text} of {value!r}: {mine!r} here, {row[at]!r} in Spark"
            for value, mine, row in zip(values, ours, theirs, strict=True)
            if not is_same(plain(mine), plain(row[at])) and plainly(mine) != plainly(row[at])
        ]
    assert not differ, "\n".join(differ)


ROWS_OF_GROUPS: list[Row] = [
    (k, i, f, b, s)
    for k, i, f, b, s in [
        ("a", 1, 0.5, True, "x"), ("a", 2, 1.5, False, "y"), ("a", 2, -3.0, None, None),
        ("a", None, None, True, "y"),
        ("b", None, None, None, None), ("c", 7, 2.0, True, "z"), ("c", 9, 8.25, True, "a"),
        ("d", 5, 1.0, False, "q"),
    ]
]  # fmt: skip
AGGREGATES = (
    "count(*)", "count(i)", "count(distinct i)", "count(i, f)", "sum(i)", "avg(f)", "mean(f)", "min(s)",
    "max(s)", "count_if(b)",
    "bool_and(b)", "bool_or(b)", "every(b)", "some(b)", "any(b)", "variance(f)", "var_samp(f)",
    "var_pop(f)", "std(f)",
    "stddev(f)", "stddev_samp(f)", "stddev_pop(f)", "max_by(s, f)", "min_by(s, f)",
    "sort_array(collect_list(i))",
    "sort_array(array_agg(s))", "sort_array(collect_set(i))", "median(f)", "percentile(f, 0.25)",
    "percentile(i, 0.5)",
    "percentile_approx(i, 0.5)", "approx_percentile(f, 0.5)", "approx_percentile(f, 0.25, 100)",
    "approx_count_distinct(i)",
    "corr(i, f)", "covar_pop(i, f)", "covar_samp(i, f)", "skewness(f)", "kurtosis(f)", "sum(distinct i)",
    "avg(distinct i)",
    "listagg(s, ',') within group (order by s)", "string_agg(s) within group (order by s)",
    "percentile_cont(0.5) within group (order by f)", "percentile_disc(0.5) within group (order by f)",
    "sum(i) filter (where b)", "count(distinct s) filter (where i > 1)", "mode(i)",
)  # fmt: skip


def test_same_aggregates_as_spark(spark: SparkSession) -> None:
    frame = spark.createDataFrame(ROWS_OF_GROUPS, "k string, i bigint, f double, b boolean, s string")
    frame.createOrReplaceTempView("groups_of_texts")
    wrong: list[str] = []

    def build(flow: timely.Dataflow) -> None:
        rows = dd.input(flow, "rows", "k: string, i: int?, f: float?, b: bool?, s: string?")
        for at, text in enumerate(AGGREGATES):
            try:
                dd.sql(flow, f"select k, {text} as x from rows group by k", rows=rows).output(f"o{at}")
            except dd.SqlError as error:
                wrong.append(f"{text}: {error}")

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(build)
        flow.input("rows").insert(ROWS_OF_GROUPS)
        flow.seal()
        theirs: dict[int, dict[object, object]] = {}
        for is_distinct in (True, False):  # Spark fails for LISTAGG with an order beside DISTINCT
            places = [at for at, text in enumerate(AGGREGATES) if ("distinct" in text) is is_distinct]
            written = ", ".join(AGGREGATES[at] for at in places)
            found = spark.sql(f"select k, {written} from groups_of_texts group by k").collect()
            theirs |= {at: {row[0]: row[1 + column] for row in found} for column, at in enumerate(places)}
        for at, text in enumerate(AGGREGATES):
            if any(each.startswith(f"{text}:") for each in wrong):
                continue
            for row in flow.output(f"o{at}").snapshot().to_pylist():
                wanted = plainly(theirs[at][row["k"]])
                if not is_same(plainly(row["x"]), wanted) and plainly(row["x"]) != wanted:
                    wrong.append(f"{text} of {row['k']}: {row['x']!r} here, {wanted!r} in Spark")
    assert not wrong, "\n".join(wrong)


def test_lists_of_the_catalogue_of_texts_and_of_the_page_agree() -> None:
    from pyspark.sql import functions as F

    from differential.expressions.calls import catalogued, composed

    in_texts = NAMED["spark"] | set(BY_TEXT)
    here = {name for name in (*catalogued.__all__, *composed.__all__) if hasattr(F, name)} | set(BY_FORM)
    assert here - in_texts == {
        "hash", "json_tuple", "schema_of_json",  # other values than Spark's, and no functions of a row
        "bitwise_not", "create_map", "negate",  # ~x, map(…) and -x in SQL
        "extract", "position",  # EXTRACT(… FROM …), POSITION(… IN …)
    }  # fmt: skip
    written = " ".join([*sum(SAME.values(), []), *(claim.spark for claim in (*CLAIMS, *JSON_CLAIMS))])
    compared = set(re.findall(r"\b(\w+)\(", written))
    assert in_texts - compared == set()
    page = (ROOT / "docs" / "sql.md").read_text()
    section = page.partition("### Functions of Spark's dialect")[2].partition("\n#")[0]
    table = "".join(line for line in section.splitlines() if line.startswith("|"))
    assert set(re.findall(r"`(\w+)`", table)) == in_texts
