"""Functions that are called as Spark's: each gives what Spark gives, or the documents say what else.

same_*      over edge values of its type, with real Spark
differs_*   the table of docs/expressions.md, line by line
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, cast

import pytest
from expression_values import values_of
from house import ROOT
from nested_functions import CLAIMS, JSON_CLAIMS

import differential as dd
from differential import Schema, col
from differential.errors import ExpressionError, RowError
from differential.expressions.expression import Expr

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

TEXTS: list[object] = [
    "", "a", "ab", "Ab cD", " x ", "\tx\n", "\u00a0x\u2003", "straße", "ß", "ŉ", "ﬃ", "ǆ", "İ", "ı", "ΑΣ",
    "o'neil mc-donald", "a1b c_d", "éÉ", "𝄞x", "a,b,,c", "1 2", "xx%y_z", "\\", None,
]  # fmt: skip
FLOATS: list[object] = [
    0.0, -0.0, 1.5, 2.5, -2.5, 0.5, -0.5, 1e300, -1e300, 1e-300, math.nan, math.inf, -math.inf, 2.675, 1.005,
    105.99000000000001, 0.1 + 0.2, 1e17, 123456789.987654321, 9007199254740993.0, None,
]  # fmt: skip
INTS: list[object] = [0, 1, -1, 7, -7, 15, 25, -25, 2**31, 2**53 + 1, None]
WIDE_DECIMALS: list[object] = [
    *(
        Decimal(sign + digits)
        for sign in ("", "-")
        for digits in ("0.0001", "1.25", "7", "922337203685477.5808")
    ),
    *(Decimal(sign + "9" * 26 + ".9999") for sign in ("", "-")),
    *(Decimal("0.0000"), None),
]
DECIMALS: list[object] = [Decimal("0.00"), Decimal("1.25"), Decimal("-1.25"), Decimal("-7.77"), None]
DATES: list[object] = [
    dt.date(2024, 2, 29), dt.date(2023, 12, 31), dt.date(1969, 12, 31), dt.date(2024, 1, 31),
    dt.date(2021, 1, 3), dt.date(2020, 12, 28), None,
]  # fmt: skip
TIMES: list[object] = [
    dt.datetime(2024, 2, 29, 12, 34, 56, 789012), dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
    dt.datetime(1900, 1, 1, 0, 0, 1), dt.datetime(2023, 12, 31, 23), None,
]  # fmt: skip
COLUMNS: dict[str, tuple[str, list[object]]] = {
    "string": ("string", TEXTS), "float": ("double", FLOATS), "int": ("bigint", INTS),
    "decimal(10, 2)": ("decimal(10, 2)", DECIMALS), "decimal(30, 4)": ("decimal(30, 4)", WIDE_DECIMALS),
    "date": ("date", DATES), "timestamp": ("timestamp", TIMES),
}  # fmt: skip
CALENDAR = (
    "year", "quarter", "month", "weekofyear", "dayofmonth", "day", "dayofyear", "hour", "minute", "second",
)  # fmt: skip
DAYS = ("last_day", "dayofweek", "weekday", "dayname", "monthname")
UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
CASES = ("upper", "lower", "initcap", "length", "reverse", "trim", "ltrim", "rtrim", "isnull")
SAME: dict[str, list[str]] = {
    "string": [
        *(f"m.{name}(x)" for name in CASES),
        *(f"m.{name}(x, lit('ab '))" for name in ("trim", "ltrim", "rtrim")),
        "m.replace(x, lit('a'), lit('X'))", "m.regexp_replace(x, r'\\s+', '_')",
        *(f"m.{name}(x, lit({part!r}))" for part in ("a", "")
          for name in ("contains", "startswith", "endswith")),
        *(f"m.like(x, lit({pattern!r}))" for pattern in ("a%", "%", "_b", "xx\\%y\\_z", "", "%é%", "_")),
        *(f"m.rlike(x, lit({pattern!r}))" for pattern in ("a", "^a", "b$", r"\d", r"\w", ".", "(?i)AB", "É")),
        "m.split(x, ',')", "m.lpad(x, 99, '-')", "m.rpad(x, 99, '-')",
        "m.concat(x, lit('-'), x)", "m.concat_ws('-', x, lit('b'), x)", "m.coalesce(x, lit('-'))",
        *(f"m.{name}(x, lit({count}))" for name in ("left", "right") for count in (-1, 0, 1, 2, 99)),
        *(f"m.{name}(x)" for name in ("md5", "sha1", "crc32", "ascii", "base64", "hex", "octet_length")),
        *(f"m.sha2(x, {bits})" for bits in (0, 224, 256, 384, 512)), "m.unbase64(m.base64(x))",
        "m.unhex(x)", "m.unhex(m.hex(x))",
        *(f"m.format_string({form!r}, x)" for form in ("%s", "%8s|", "%-8s|", "%.3S", "%b %<.1s%%%n")),
        "m.xxhash64(x)", "m.xxhash64(x, m.repeat(x, 99), x)",
        *(f"m.instr(x, {part!r})" for part in ("a", "b,", "", "x")),
        *(f"m.locate('a', x, {at})" for at in (0, 1, 2, 3)), "m.locate('', x, 3)", "m.position(lit('b'), x)",
        *(f"m.split_part(x, lit(','), lit({at}))" for at in (1, 2, 3, 9, -1, -4, -9)),
        *(f"m.substring_index(x, ',', {count})" for count in (0, 1, 2, 9, -1, -2, -9)),
        *(f"m.repeat(x, {count})" for count in (-1, 0, 1, 3)), "m.translate(x, 'aaé ', 'xyz')",
        *(f"m.substring(x, {at}, {length})" for at in range(-9, 10) for length in range(-1, 9)),
    ],
    "float": [
        *(f"m.{name}(x)" for name in ("signum", "sqrt", "exp", "isnan", "abs", "isnull")),
        *(f"m.round(x, {digits})" for digits in (0, 1, 2, -1, -2, 12, 15, 17, 18, 20, 300, -300, 308)),
        *(f"m.bround(x, {digits})" for digits in (0, 1, 2, -1, -2, 12, 17, 300, -300, 308)),
        *(f"m.{name}(x)" for name in (
            "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "degrees", "radians", "cbrt",
            "expm1")),
        *(f"m.format_number(x + lit(0.0), {digits})" for digits in (0, 1, 2, 9)),
        *(f"m.format_string({form!r}, x + lit(0.0))" for form in (
            "%f", "%,.2f", "%(,.2f", "%012.3f", "%-12.0f|", "%e", "%.0E", "%g", "%.3G", "%+15.2g|", "% 015e",
            "%s", "%b")),
        "m.xxhash64(x)",
        "m.nanvl(x, lit(1.0))", "m.atan2(x, lit(-2.0))", "m.atan2(lit(0.5), x)", "m.hypot(x, lit(3.0))",
        *(f"m.power(x, lit({exponent}))" for exponent in (2.0, 0.5, 0.0)),
        *(f"m.{name}(x, lit(1.0))" for name in ("least", "greatest", "coalesce", "nullif")),
    ],
    "int": [
        *(f"m.{name}(x)" for name in ("abs", "sqrt", "exp", "floor", "ceil", "signum")),
        *(f"m.round(x, {digits})" for digits in (0, 1, -1, -2, -18, -20)),
        *(f"m.bround(x, {digits})" for digits in (0, 1, -1, -2, -18, -20)),
        *(f"m.{name}(x)" for name in ("hex", "bin", "bit_count", "bitwise_not", "chr")),
        *(f"m.{name}(x, {by})" for name in ("shiftleft", "shiftright", "shiftrightunsigned")
          for by in (0, 1, 33, 63)),
        *(f"m.timestamp_{unit}({sign}(m.abs(x) % lit(10**9)))" for sign in ("", "-")
          for unit in ("seconds", "millis", "micros")),
        *(f"m.format_string({form!r}, x)" for form in (
            "%d", "%,d", "%05d", "%+d", "% d", "%(,d", "%-8d|", "%x", "%#018X", "%o", "%s %1$d", "%.2s")),
        "m.xxhash64(x, x)", "m.format_number(x, 1)", "m.nvl2(x, lit(1), lit(2))",
    ],
    "decimal(10, 2)": [
        *(f"m.{name}(x)" for name in ("abs", "floor", "ceil", "signum")),
        *(f"m.round(x, {digits})" for digits in (0, 1, 2, 3, -1)),
        "m.xxhash64(x)", "m.format_string('%9s', x)",
        *(f"m.bround(x, {digits})" for digits in (0, 1, 2, 3, -1)),
        *(f"m.format_number(x, {digits})" for digits in (0, 1, 3)),
    ],
    "decimal(30, 4)": [
        *(f"m.{name}(x)" for name in ("abs", "floor", "ceil", "signum")),
        *(f"m.{name}(x, {digits})" for name in ("round", "bround") for digits in (0, 3, 4, 9, -1, -26)),
        *(f"x {op} lit(Decimal({other!r}))" for op in "+-*/" for other in ("1.05", "-0.007", "6.4")),
        *(f"x {op} lit(3)" for op in "+-*/"), "lit(1) / (x + lit(Decimal('0.5')))",
        "m.xxhash64(x)", "m.format_string('%S', x)", "x - x / lit(7)", "x + lit(Decimal('1e20'))",
        *(f"m.{name}(x, lit(Decimal('1.25')))" for name in ("least", "greatest", "coalesce", "nullif")),
        "x.cast('double')", "x.cast('string')", "x.cast('decimal(38, 1)')", "m.format_number(x, 1)",
    ],
    "date": [
        "m.xxhash64(x)", "m.unix_date(x)", "m.date_part(lit('QUARTER'), x)", "m.extract(lit('dow_iso'), x)",
        *(f"m.{n}(x)" for n in (*CALENDAR, *DAYS)),
        *(f"m.next_day(x, {day!r})" for day in ("Mon", "tu", "SUNDAY")),
        *(f"m.trunc(x, {unit!r})" for unit in ("year", "YY", "quarter", "month", "mon", "MM", "week")),
        *(f"m.extract(lit({field!r}), x)" for field in ("YEAR", "YEAROFWEEK", "week", "doy", "DOW")),
        "m.months_between(x, lit(dt.date(2024, 1, 31)))", "m.months_between(lit(dt.date(2024, 2, 29)), x)",
        "m.make_date(m.year(x), m.month(x), m.dayofmonth(x))", "m.unix_timestamp(x)",
        *(f"m.date_add(x, {days})" for days in (1, -1, 30, 366)),
        *(f"m.add_months(x, {months})" for months in (1, -1, 12, 13)),
        "m.datediff(x, lit(dt.date(2024, 1, 1)))", "m.date_diff(x, lit(dt.date(2024, 1, 1)))",
    ],
    "timestamp": [
        *(f"m.{n}(x)" for n in (*CALENDAR, *DAYS)),
        *(f"m.next_day(x, {day!r})" for day in ("Mon", "tu", "SUNDAY")),
        *(f"m.trunc(x, {unit!r})" for unit in ("year", "YY", "quarter", "month", "mon", "MM", "week")),
        *(f"m.extract(lit({field!r}), x)" for field in ("YEAR", "YEAROFWEEK", "week", "doy", "DOW")),
        "m.months_between(x, lit(dt.date(2024, 1, 31)))", "m.months_between(lit(dt.date(2024, 2, 29)), x)",
        "m.make_date(m.year(x), m.month(x), m.dayofmonth(x))", "m.unix_timestamp(x)",
        *(f"m.date_trunc({unit!r}, x)" for unit in UNITS),
        "m.date_diff(x, lit(dt.date(2024, 1, 1)))",
        *(f"m.date_trunc({unit!r}, x)" for unit in ("YYYY", "mon", "MM", "DD", "HOUR", "millisecond")),
        *(f"m.{name}(x)" for name in ("unix_micros", "unix_millis", "unix_seconds", "unix_timestamp")),
        "m.extract(lit('SECOND'), x)", "m.from_unixtime(m.unix_timestamp(x))",
        *(f"m.{name}(x, {zone!r})" for name in ("from_utc_timestamp", "to_utc_timestamp")
          for zone in ("Europe/Rome", "America/New_York", "Australia/Lord_Howe", "UTC")),
    ],
}  # fmt: skip
"""What is written for both: of the module `m`, which is ours or PySpark's functions, and the column `x`.

Of -0.0, which is 0.0 here, the power -1 differs."""


def plain(value: object) -> object:
    """A value in the one form in which both libraries' are compared."""
    if isinstance(value, list):
        return tuple(map(plain, value))
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None)
    return value


def is_same(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float | int) and not isinstance(other, bool):
        return repr(one) == repr(other + 0.0) or math.isclose(one, other, rel_tol=1e-14)
    return type(one) is type(other) and one == other or (isinstance(one, int | Decimal) and one == other)


def ours(written: str, kind: str, values: Sequence[object]) -> list[object]:
    from differential import lit

    def constant(value: object) -> object:
        # Ours takes what is constant in a function of texts as a text.
        return value if isinstance(value, str) and "m.con" not in written else lit(value)

    expr = eval(written, {"m": dd, "dd": dd, "x": col.x, "lit": constant, "dt": dt, "Decimal": Decimal})
    rows = [(v.replace(tzinfo=dt.UTC) if isinstance(v, dt.datetime) else v,) for v in values]
    return list(map(plain, values_of(cast(Expr, expr), list(rows), Schema.of(f"x: {kind}?"))))


@pytest.mark.parametrize("kind", SAME)
def test_same_as_spark_of_every_edge_value(spark: SparkSession, kind: str) -> None:
    from pyspark.sql import functions as F

    sparks_type, values = COLUMNS[kind]
    frame = spark.createDataFrame(
        [(value, at) for at, value in enumerate(values)], f"x {sparks_type}, at int"
    )
    x = F.col("x")
    written = SAME[kind]
    columns = [
        cast("Column", eval(each, {"m": F, "x": x, "lit": F.lit, "dt": dt, "Decimal": Decimal}))
        for each in written
    ]
    theirs = frame.orderBy("at").select(*(each.alias(f"c{at}") for at, each in enumerate(columns))).collect()
    differ = [
        f"{each} of {value!r}: {mine!r} here, {plain(row[at])!r} in Spark"
        for at, each in enumerate(written)
        for value, mine, row in zip(values, ours(each, kind, values), theirs, strict=True)
        if not is_same(mine, plain(row[at]))
    ]
    assert not differ, "\n".join(differ)


def lines() -> list[tuple[str, ...]]:
    page = (ROOT / "docs" / "expressions.md").read_text()
    table = page.partition("## Functions that differ from Spark's")[2].partition("\n## ")[0]
    found = [
        [cell.strip() for cell in line.split(" | ")] for line in table.splitlines() if line.startswith("| `")
    ]
    return [tuple(cell.strip("| ").strip("`") for cell in cells) for cells in found]


@pytest.mark.parametrize("line", lines(), ids=lambda line: line[0])
def test_differs_as_the_documents_say(spark: SparkSession, line: tuple[str, ...]) -> None:
    from pyspark.sql import functions as F

    here, there, of, gives, in_spark = line
    names = {"dt": dt, "Decimal": Decimal, "inf": math.inf, "nan": math.nan}
    value = eval(of, names)
    kinds = {str: "string", float: "float", int: "int", Decimal: "decimal(10, 2)", dt.date: "date",
             dt.datetime: "timestamp", list: "any", dict: "any", type(None): "float"}  # fmt: skip
    kind = kinds[type(value)]
    if gives == "refused":
        with pytest.raises((ExpressionError, RowError)):
            ours(here, kind, [value])
    else:
        assert repr(ours(here, kind, [value])[0]) == repr(eval(gives, names))
    of_list = "array<string>" if isinstance(value, list) and "a" in value else "array<bigint>"
    of_list = "map<string, bigint>" if isinstance(value, dict) else of_list
    sparks_type = of_list if kind == "any" else COLUMNS[kind][0]
    frame = spark.createDataFrame([(value,)], f"x {sparks_type}")
    found = frame.select(cast("Column", eval(there, {"F": F, "x": F.col("x")}))).collect()[0][0]
    assert repr(plain(found)) == repr(eval(in_spark, names))


def test_differs_covers_every_function_of_that_name(spark: SparkSession) -> None:
    from pyspark.sql import functions as F

    from differential.expressions.calls import catalogued, composed

    nested = [claim.ours for claim in (*CLAIMS, *JSON_CLAIMS)]
    written = " ".join([*sum(SAME.values(), []), *(line[0] for line in lines()), *nested])
    compared = set(re.findall(r"\b(?:m|dd)\.(\w+)\(", written))
    left = {name for name in (*catalogued.__all__, *composed.__all__) if hasattr(F, name)} - compared
    left -= {"json_tuple", "schema_of_json"}  # no functions of a row
    assert left == {"to_timestamp", "try_to_date", "try_to_timestamp"}, "of forms, and ANSI's null"
