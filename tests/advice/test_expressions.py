"""What errors of expressions tell users to write, in place of what they wrote, gives what they meant."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

import pytest
from advised_programs import Advised, ask_query, follows_advice

import timely

DAYS = [dt.date(2024, 1, 4), dt.date(2024, 1, 5), dt.date(2024, 2, 6)]
HOURS = [dt.datetime(2024, 1, 1, tzinfo=dt.UTC)] * 2 + [dt.datetime(2024, 1, 1, 1, tzinfo=dt.UTC)]

LOGIC = [
    Advised(
        "rows.filter(«col.x > 1 and col.y < 30»).select('x')",
        r"Write (&) for and",
        [2],
        instead=r"(col.x > 1) \1 (col.y < 30)",
    ),
    Advised(
        "rows.filter(«col.x > 2 or col.y < 20»).select('x')",
        r"(\|) for or",
        [1, 3],
        instead=r"(col.x > 2) \1 (col.y < 20)",
    ),
    Advised("rows.filter(«not col.ok»).select('x')", r"(~) for not", [2], instead=r"\1col.ok"),
    Advised(
        "rows.select(size=«'big' if col.x > 1 else 'small'»)",
        r"For if and else write (when\(.*?\)\.then\(…\)\.otherwise\(…\))",
        ["big", "big", "small"],
        gaps=("col.x > 1", "'big'", "'small'"),
    ),
    Advised("rows.filter(«col.x in [1, 2]»).select('x')", r"for `in` (col\.x\.is_in\(\[1, 2\]\))", [1, 2]),
    Advised(
        "rows.filter(«1 < col.x < 3»).select('x')",
        r"for a < b < c (\(a < b\) & \(b < c\))",
        [2],
        instead=r"(lambda a, b, c: \1)(lit(1), col.x, 3)",
    ),
    Advised(
        "rows.filter(«1 == col.x == col.maybe»).select('x')",
        r"for a == b == c (\(a == b\) & \(b == c\))",
        [],
        instead=r"(lambda a, b, c: \1)(lit(1), col.x, col.maybe)",
    ),
    Advised("rows.select(n=«max»(col.x, 2))", r"for max\(\) and min\(\) (dd\.max_of)\(…\)", [2, 2, 3]),
    Advised(
        "rows.select(n=«min»(col.x, 2))",
        r"max\(\) and min\(\) dd\.max_of\(…\) and (dd\.min_of)\(…\)",
        [1, 2, 2],
    ),
    Advised(
        "rows.filter(«col.maybe is None»).select('x')",
        r"Write (col\.x\.is_null\(\))",
        [1],
        reads={"col.x": "col.maybe"},
    ),
    Advised(
        "rows.filter(«col.maybe is not None»).select('x')",
        r"(col\.x\.is_not_null\(\))",
        [2, 3],
        reads={"col.x": "col.maybe"},
    ),
    Advised("rows.filter(«col.x in {1, 2}»).select('x')", r"(col\.x\.is_in\(\[1, 2\]\))", [1, 2]),
    Advised("rows.filter(«True»).select('x')", r"if it is meant, (lit\(True\))", [1, 2, 3]),
    Advised(
        "rows.filter(«col.maybe == None»).select('x')",
        r"Whether x is null is (x\.is_null\(\))",
        [1],
        reads={"x.": "col.maybe."},
    ),
    Advised(
        "rows.filter(«col.ok ^ (col.x > 2)»).select('x')",
        r"Write (x != y) of two conditions",
        [1],
        instead=r"(lambda x, y: \1)(col.ok, col.x > 2)",
    ),
    Advised(
        "rows.select(n=«col.x ^ 2»)",
        r"(x \*\* y) for a power",
        [1.0, 4.0, 9.0],
        instead=r"(lambda x, y: \1)(col.x, 2)",
    ),
]
OF_PYTHON = [
    Advised("rows.select(n=«len(col.s)»)", r"Of a text write (\S+),", [3, 3, 5]),
    Advised("rows.select(n=«len(col.tags)»)", r"of a list or map (\S+)\.$", [0, 1, 2]),
    Advised("rows.filter(«'o' in col.s»).select('x')", r"of a text (\S+)\.$", [1, 2]),
    Advised("rows.filter(«3 in col.tags»).select('x')", r"Of a list write (\S+),", [2]),
    Advised("rows.select(n=«int(col.f)»)", r"Write (\S+)\. Functions", [0, 1, 2]),
    Advised("rows.select(n=«float(col.x)»)", r"Write (\S+)\. Functions", [1.0, 2.0, 3.0]),
    Advised("rows.select(n=«math.sqrt(col.x * col.x)»)", r"are methods: (.+?), ", [1.0, 2.0, 3.0]),
    Advised("rows.select(n=«float(col.x + col.y)»)", r"Write (.+)\. Functions", [11.0, 22.0, 33.0]),
    Advised("rows.select(n=«str(col.x + col.y)»)", r"Their texts are (.+);", ["11", "22", "33"]),
    Advised(
        "rows.select(n=«len(dd.concat(col.key, col.s))»)",
        r"Of a text write (.+), of",
        [4, 4, 6],
        bare=("concat",),
    ),
    Advised("rows.select(n=«bytes(col.s)»)", r"Write (\S+)\.$", [b"one", b"three", b"two"]),
    Advised(
        "rows.select(n=«f'{col.s}!'»)",
        r"Write (dd\.concat\(.*?\)) of a text",
        ["one!", "three!", "two!"],
        gaps=("!",),
    ),
    Advised("rows.select(n=«f'{col.x}!'»)", r"or (dd\.concat\(.*?'…'\));", ["1!", "2!", "3!"], gaps=("!",)),
    Advised("rows.select(n=«str(col.x)»)", r"Their texts are (\S+);", ["1", "2", "3"]),
    Advised(
        "rows.«select(tag=[*col.tags])»",
        r"is (explode\('x', type\)) of a collection",
        [1, 2, 3],
        reads={"'x'": "'tags'", "type": "'int'"},
        instead=r"\1.select('tags')",
    ),
    Advised(
        "rows.filter(col.x < 3).select(first=«next(iter(col.tags))»)",
        r"an element is (\S+)\.$",
        [1, 3],
        reads={"col.x": "col.tags"},
        instead=r"\1.cast('int')",
    ),
    Advised(
        "dd.col; rows.select(q=«divmod(col.y, 20)»[0])",
        r"Write two columns: (x // y) and x % y",
        [0, 1, 1],
        instead=r"((lambda x, y: \1)(col.y, 20),)",
    ),
]
ITEMS = [
    Advised(
        "rows.select(a=«col.s[0:2]»)",
        r"Write instead: (\S+\.str\.slice\(offset, length\))",
        ["on", "th", "tw"],
        reads={"offset": "0", "length": "2"},
    ),
    Advised(
        "rows.select(a=lit({'k': 1}, 'any')).select(b=«col.a.k».cast('int')).distinct()",
        r"Of a map or struct write (\S+)$",
        [1],
    ),
]
TYPES = [
    Advised(
        "rows.select(a=«col.key + col.s»)",
        r"write (dd\.concat\(a, b\))",
        ["aone", "atwo", "bthree"],
        reads={"(a, b)": "(col.key, col.s)"},
    ),
    Advised(
        "rows.select(a=«col.day + timedelta(days=3)»)",
        r"write (x\.dt\.add_days\(3\))",
        DAYS,
        reads={"x.": "col.day."},
    ),
    Advised(
        "rows.select(a=«col.day - timedelta(days=-3)»)",
        r"µs: write (x\.dt\.add_days\(\S+\))",
        DAYS,
        reads={"x.": "col.day."},
    ),
    Advised(
        "rows.select(a=«col.day + 3»)",
        r"for days write (x\.dt\.add_days\(n\))",
        DAYS,
        reads={"x.": "col.day.", "(n)": "(3)"},
    ),
    Advised(
        "rows.select(a=«col.t // 3_600_000_000»)",
        r"(x\.dt\.date_trunc\('hour'\))",
        HOURS,
        reads={"x.": "col.t."},
    ),
    Advised(
        "rows.select(a=«col.t // 86_400_000_000»).distinct()",
        r"write (x\.cast\('date'\)) for its day",
        [dt.date(2024, 1, 1)],
        reads={"x.": "col.t."},
    ),
    Advised(
        "rows.select(a=«col.t» % 1_000_000).distinct()",
        r"(x\.cast\('int'\)) for its microseconds",
        [0],
        reads={"x.": "col.t."},
    ),
    Advised("rows.select(a=dd.«date_trunc(col.t, 'hour')»)", r"Write (date_trunc\(.*\))$", HOURS),
    Advised(
        "rows.filter(col.day > «'2024-01-01'»).select('x')",
        r"write (dt\.date\(2024, 2, 29\))",
        [2, 3],
        reads={"2024, 2, 29": "2024, 1, 1"},
    ),
    Advised(
        "rows.filter(col.t > «'2024-01-01 00:05'»).select('x')",
        r"(dt\.datetime\(…\))",
        [2, 3],
        gaps=("2024, 1, 1, 0, 5",),
    ),
    Advised(
        "rows.filter(col.t > «'2024-01-01 00:05'»).select('x')",
        r"or (cast) the text",
        [2, 3],
        instead=r"lit('2024-01-01 00:05').\1('timestamp')",
    ),
    Advised(
        "rows.filter(«col.tags > lit(1, 'any')»).select('x')",
        r"(cast) them, as in col\.x\.(cast\('int'\))",
        [2],
        instead=r"col.tags.list.get(0).\2 > lit(1, 'any').\2",
    ),
    Advised(
        "rows.select(a=«col.money» * 0.5)",
        r"(cast) the decimal to (float)",
        [0.05, 0.75, 1.125],
        instead=r"col.money.\1('\2')",
    ),
    Advised(
        "rows.select(a=dd.upper(«col.x»))",
        r"takes (string) for 'text'; (cast) it",
        ["1", "2", "3"],
        instead=r"col.x.\2('\1')",
    ),
    Advised("rows.select(a=«lit(None)»).distinct()", r"write (lit\(None, 'int'\))", [None]),
    Advised(
        "rows.select(a=«dd.upper('s')»)",
        r"Of the column write (.*?);",
        ["ONE", "THREE", "TWO"],
        bare=("upper",),
    ),
    Advised("rows.select(a=dd.upper(«'s'»)).distinct()", r"in every row, (lit\('s'\))\.$", ["S"]),
    Advised("rows.select(a=«lit(1, 'string')»).distinct()", r"write (.*)\.$", ["1"]),
    Advised("rows.filter(col.x == «'2'»).select('x')", r"Write (\S+), without quotes\.$", [2]),
    Advised("rows.filter(col.x + 1 == «'2'»).select('x')", r"Write (\S+), without quotes\.$", [1]),
    Advised("texts.filter(«col.x» == 3).select('name')", r"Write (\S+)\.$", ["c"]),
    Advised("rows.filter(«col.money» > 0.5).select('x')", r"Write (\S+)\.$", [1, 2]),
    Advised("rows.select(a=when(col.x > 2).then(«1»).otherwise('x'))", r"Write (\S+)\.$", ["1", "x", "x"]),
    Advised("rows.filter(«col.day» == col.t).select('x')", r"Write (\S+)\.$", []),
    Advised("rows.filter(«col.t» > 5).select('x')", r"Write (\S+)\.$", [1, 2, 3]),
    Advised(
        "rows.select(a=lit(«Decimal('NaN')»)).select(b=col.a.is_nan()).distinct()", r"use (.*)\.$", [True]
    ),
    Advised(
        "rows.filter(col.x.is_between(1, 3, «'neither'»)).select('x')",
        r"write one of .*?(none)$",
        [2],
        instead=r"'\1'",
    ),
    Advised(
        "rows.select(a=«col.s.str.split('')»)",
        r"of single characters write (x\.str\.slice\(0, 1\))",
        ["o", "t", "t"],
        reads={"x.": "col.s."},
    ),
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[timely.Cluster]:
    with timely.connect(workers=1, embedded=True) as embedded:
        yield embedded


@pytest.mark.parametrize("advised", [*LOGIC, *OF_PYTHON, *ITEMS, *TYPES], ids=str)
def test_advice_about_an_expression_runs(cluster: timely.Cluster, advised: Advised) -> None:
    follows_advice(advised, lambda program: ask_query(cluster, program, advised))
