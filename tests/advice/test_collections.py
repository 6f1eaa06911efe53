"""What errors of operators of collections tell users to write gives what they meant."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

import pytest
from advised_programs import Advised, ask_query, follows_advice

import timely

WORDS = ["one", "three", "two"]
GROUPS = [("a", 3), ("b", 3)]

ROWS = [
    Advised("rows.«filter(x=1)».select('x')", r"Write instead: (.+)$", [1]),
    Advised("rows.«filter()».select('x')", r"needs a condition: (.+)$", [2, 3]),
    Advised("rows.«select(col.x + 1)»", r"write (.+)$", [2, 3, 4]),
    Advised(
        "rows.«with_columns(col.x + 1)».select('name')",
        r"write with_columns\((.+)\)$",
        [2, 3, 4],
        instead=r"with_columns(\1)",
    ),
    Advised("rows.select(«a='s'»)", r"for the column write (.+), for", WORDS),
    Advised("rows.select(«a='s'»).distinct()", r"for the text (.+)$", ["s"]),
    Advised(
        "rows.select('x').with_columns(«a='x'»).select('a')", r"for the column write (.+), for", [1, 2, 3]
    ),
    Advised(
        "edges.«toDF('a')»",
        r"write (rename\(.*?\))$",
        [(1, 2), (1, 3), (2, 3)],
        reads={"'old': 'new'": "'src': 'a'"},
    ),
    Advised("texts.«cast('int')».select('x')", r"write (cast\(\{'x': 'int'\}\))", [1, 3]),
    Advised("texts.«cast('int')».select('x')", r"or (with_columns\(.*\))$", [1, 3]),
    Advised("rows.select('x').«fill_null()»", r"Write instead: (.*?),", [1, 2, 3]),
    Advised(
        "rows.select('maybe', 'x').«drop_nulls(how='any')».select('x')",
        r"(filter\(.*?\))$",
        [2, 3],
        reads={"col.x.": "col.maybe.", "col.y.": "col.maybe."},
    ),
    Advised(
        "rows.select(x=col.maybe, y=col.y).«drop_nulls(how='any')».select('y')",
        r"Write instead: (\S+ \S+\)),",
        [20, 30],
    ),
    Advised("rows.«select(col('*'))».select('x')", r"For all columns write (\S+),", [1, 2, 3]),
    Advised("rows.«distinct('x')».select('x')", r"or (drop_duplicates\('x'\))", [1, 2, 3]),
    Advised("rows.«drop(col.x + 1)».select('y')", r"write ('x') or", [10, 20, 30], instead=r"drop(\1)"),
    Advised("rows.«drop(col.x + 1)».select('y')", r"or (col\.x)\.", [10, 20, 30], instead=r"drop(\1)"),
    Advised("edges.«count()»", r"Write instead: (.*?) of all rows", [3]),
    Advised("«len(rows)»", r"Write (agg\(.*?\)), which", [3], instead=r"rows.\1"),
    Advised(
        "edges.select('src').«concat([edges.select(src=col.dst)])».distinct()",
        r"write (concat)\(a, b\)",
        [1, 2, 3],
        instead=r"\1(edges.select(src=col.dst))",
    ),
    Advised(
        "rows.«concat(other)».select('key')",
        r"Make them equal by (select)",
        ["a", "a", "a", "b", "c"],
        instead=r"\1('key').concat(other.\1('key'))",
    ),
    Advised(
        "edges.select(a=col.src).«concat(edges.select(a=col.src.cast('string')))».distinct()",
        r"with (cast)\(…\) for types",
        [1, 2],
        instead=r"concat(edges.select(a=col.src.cast('string').\1('int')))",
    ),
    Advised(
        "rows.select(a=col.x).subtract(rows.select(a=«col.maybe»))",
        r"(fill_null)\(…\) where one may be null",
        [1, 2, 3],
        instead=r"col.maybe.\1(0)",
    ),
    Advised(
        "«edges + edges»",
        r"Write (.*?) \(",
        [(1, 2), (1, 2), (1, 3), (1, 3), (2, 3), (2, 3)],
        instead=r"(lambda a, b: \1)(edges, edges)",
    ),
    Advised(
        "«edges - edges.filter(col.src == 1)»",
        r"Write (.*?),",
        [(2, 3)],
        instead=r"(lambda a, b: \1)(edges, edges.filter(col.src == 1))",
    ),
    Advised(
        "«edges - edges.filter(col.src == 1)»",
        r"or (.*?),",
        [(2, 3)],
        instead=r"(lambda a, b: \1)(edges, edges.filter(col.src == 1))",
    ),
    Advised(
        "«edges | edges»",
        r"Write (.*?) \(",
        [(1, 2), (1, 3), (2, 3)],
        instead=r"(lambda a, b: \1)(edges, edges)",
    ),
    Advised(
        "«edges & edges.filter(col.src == 1)»",
        r"Write (.*?) \(",
        [(1, 2), (1, 3)],
        instead=r"(lambda a, b: \1)(edges, edges.filter(col.src == 1))",
    ),
    Advised(
        "edges.«threshold(lambda n: 1 if isinstance(n, int) else [n][n])»",
        r"as in (lambda n: dd\.lit\(1\))$",
        [(1, 2), (1, 3), (2, 3)],
        instead=r"threshold(\1)",
    ),
    Advised(
        "«rows[0:2]».select('x')", r"For some of its rows write (.*?\))(?: \(|$)", [2, 3], instead=r"rows.\1"
    ),
    Advised(
        "«dd.concat([edges, edges.select(src=col.dst, dst=col.src)])».select('src').distinct()",
        r"write (first\.concat\(second), third",
        [1, 2, 3],
        instead=r"(lambda first, second: \1))(edges, edges.select(src=col.dst, dst=col.src))",
    ),
    Advised(
        "«dd.concat([edges, edges.select(src=col.dst, dst=col.src)])».select('src').distinct()",
        r"or (first\.concat\(\*others\))",
        [1, 2, 3],
        instead=r"(lambda first, *others: \1)(edges, edges.select(src=col.dst, dst=col.src))",
    ),
]
GROUP = [
    Advised("rows.group_by('key').agg(n=«('x', 'sum')»)", r"Write (.+)$", GROUPS),
    Advised("rows.group_by('key').agg(n=«('s', 'nunique')»)", r"Write (.+)$", [("a", 2), ("b", 1)]),
    Advised("rows.group_by('key').agg(n=«('x', 'mean')»)", r"Write (.+)$", [("a", 1.5), ("b", 3.0)]),
    Advised("rows.group_by('key').agg(n=«('x', 'size')»)", r"Write (.+)$", [("a", 2), ("b", 1)]),
    Advised("rows.group_by('key').agg(n=«('x', 'std')»)", r"Write (.+)$", [("a", 0.5**0.5), ("b", None)]),
    Advised("rows.group_by('key').agg(n=«('x', 'var')»)", r"Write (.+)$", [("a", 0.5), ("b", None)]),
    Advised(
        "rows.group_by('key').agg(n=«('x', 'first')»)",
        r"Write (.+)$",
        [("a", 1), ("b", 3)],
        reads={"'time'": "'t'"},
    ),
    Advised(
        "rows.group_by('key').agg(n=«('x', 'list')»).select('key', n=col.n.list.size())",
        r"Write (.+)$",
        [("a", 2), ("b", 1)],
    ),
    Advised("rows.group_by('key').agg(n=«('ok', 'any')»)", r"Write (.+)$", [("a", True), ("b", True)]),
    Advised("rows.group_by('key').«agg({'x': 'any_of_them'})»", r"as in (.+)$", GROUPS),
    Advised(
        "rows.group_by('key')«['x'].sum()»", r"Write instead: agg\(.*?\), or (\S+)$", GROUPS, instead=r".\1"
    ),
    Advised("rows.group_by('key')«['x'].sum()»", r"Write instead: (.*?), or", GROUPS, instead=r".\1"),
    Advised("rows.group_by('key').«agg(dd.sum(col.x + 0))»", r"as in (.*?) or", GROUPS),
    Advised("rows.group_by('key').«agg(dd.sum(col.x + 0))»", r"or (agg\(.*\))$", GROUPS),
    Advised("rows.group_by('key').«agg()»", r"as in (.*)$", [("a", 2), ("b", 1)]),
    Advised("rows.group_by('key').«sum()»", r"as in group_by\('k'\)\.(.*)$", GROUPS),
    Advised(
        "rows.«group_by(col.x % 2)».count()",
        r"as in (.*?), or",
        [(dt.date(2024, 1, 1), 3)],
        reads={"day=": "the_day="},
    ),
    Advised(
        "rows.«group_by(col.x % 2)».count()",
        r"or (alias)\('day'\)$",
        [(0, 1), (1, 2)],
        instead=r"group_by((col.x % 2).\1('odd'))",
    ),
    Advised("rows.group_by('key').agg(n=«dd.any_of('x')»)", r"write (.*)$", [("a", True), ("b", True)]),
    Advised("rows.group_by('key').agg(n=«dd.all_of('x')»)", r"write (.*)$", [("a", True), ("b", True)]),
    Advised("rows.group_by('key').agg(n=«dd.count_if('x')»)", r"write (.*)$", [("a", 2), ("b", 1)]),
    Advised("texts.agg(n=dd.sum(«'x'»))", r"(Cast) the column", [4], instead=r"col.x.cast('int')"),
    Advised("texts.agg(n=«dd.sum»('x'))", r"or (count) it", [2], instead=r"dd.\1"),
    Advised("texts.agg(n=dd.avg(«'x'»))", r"(cast) it to (float)", [2.0], instead=r"col.x.\1('\2')"),
    Advised(
        "rows.group_by('key').agg(n=«dd.first('x')»)",
        r"Write instead: (.*?):",
        [("a", 1), ("b", 3)],
        reads={"'time'": "'t'"},
        instead=r"dd.\1",
    ),
    Advised(
        "rows.group_by('key').agg(n=«dd.last('x')»)",
        r"Write instead: (.*?):",
        [("a", 2), ("b", 3)],
        reads={"'time'": "'t'"},
        instead=r"dd.\1",
    ),
    Advised(
        "rows.group_by('key').agg(n=«dd.first('x')»)",
        r"if any value will do, (.*)$",
        [("a", 1), ("b", 3)],
        instead=r"dd.\1",
    ),
    Advised(
        "rows.group_by('key').agg(n=«dd.argmax('x')»)",
        r"Write instead: (.*)$",
        [("a", 2), ("b", 3)],
        instead=r"dd.\1",
    ),
    Advised(
        "rows.group_by('key').agg(n=«dd.argmin('x')»)",
        r"Write instead: (.*)$",
        [("a", 1), ("b", 3)],
        instead=r"dd.\1",
    ),
    Advised(
        "rows.group_by('key').agg(n=«dd.count_distinct('x', 's')»)",
        r"Write instead: (count_distinct\('x'\))",
        [("a", 2), ("b", 1)],
        instead=r"dd.\1",
    ),
    Advised(
        "rows.«group_by('key').agg(n=dd.count_distinct('x', 'y'))»",
        r"of several, (.*)$",
        [("a", 2), ("b", 1)],
        reads={"'k'": "'key'"},
    ),
    Advised(
        "rows.group_by('key').«first()».select('key', 'x')",
        r"Write instead: (.*)$",
        [("a", 1), ("b", 3)],
        reads={"'time'": "'t'"},
    ),
    Advised(
        "rows.group_by('key').«last()».select('key', 'x')",
        r"Write instead: (.*)$",
        [("a", 2), ("b", 3)],
        reads={"'time'": "'t'"},
    ),
    Advised("rows.group_by('key').«top_k(3)».select('x')", r"Write instead: (.*?) for", [1, 2, 3]),
    Advised("rows.«top_k(2, by='x', descending=True)».select('x')", r"Write instead: (.*?) for", [1, 2, 3]),
    Advised("rows.«top_k(2)».select('x')", r"(by='x') for the least", [1, 2], instead=r"top_k(2, \1)"),
    Advised("rows.«order_by('x', ascending=False)».select('x')", r"Write instead: (.*)$", [1, 2, 3]),
    Advised(
        "rows.«top_k(2, by='x', method='rank')».select('x')",
        r"write (.*)$",
        [1, 2],
        instead=r"top_k(2, by='x', \1)",
    ),
    Advised(
        "rows.group_by('key').«top_k(1, by='x', method='dense')».select('x')",
        r"write (.*)$",
        [1, 3],
        instead=r"top_k(1, by='x', \1)",
    ),
    Advised("rows.group_by('key').«having(col.n > 1)».select('key')", r"Write instead: (.*)$", ["a"]),
    Advised(
        "rows.group_by(«key=col.key.str.upper()»).agg(n=dd.min('key'))",
        r"Give the key (another name)",
        [("A", "a"), ("B", "b")],
        instead="upper=col.key.str.upper()",
    ),
    Advised(
        "rows.group_by('key').«agg(m=dd.min('tags'))»",
        r"or use (reduce\(fn, …\))",
        [("a", 2), ("b", 1)],
        gaps=("'n: int'",),
        reads={"fn": "lambda key, rows: [len(rows)]"},
    ),
    Advised("rows.«agg(m=1 + dd.sum('x'))».select('m')", r"column: (agg\(.*?\)\.with_columns\(.*?\)),", [7]),
    Advised(
        "rows.group_by('key').«agg(m=dd.sum('x') > 2)»",
        r"column: (agg\(.*?\))\..*, or (\.having\(.*?\))",
        GROUPS,
        instead=r"\1\2",
    ),
    Advised(
        "rows.group_by('key').«agg(m=dd.var_pop('x') + 1)».select('m')",
        r"column: (agg\(.*?\)\.with_columns\(.*?\)),",
        [1.0, 1.25],
    ),
    Advised(
        "rows.group_by('key').«agg(m=dd.max(col.x * 2) + 1)».select('m')",
        r"column: (agg\(.*?\)\.with_columns\(.*?\)),",
        [5, 7],
    ),
    Advised(
        "rows.group_by('key').«agg(m=dd.first('x', by=(col.x + 1).desc()) + 1)».select('m')",
        r"column: (agg\(.*?\)\.with_columns\(.*?\)),",
        [3, 4],
    ),
    Advised("rows.group_by('key').«agg(dd.any_of(col.x > 2))»", r"or (agg\(.*\))$", GROUPS),
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[timely.Cluster]:
    with timely.connect(workers=1, embedded=True) as embedded:
        yield embedded


@pytest.mark.parametrize("advised", [*ROWS, *GROUP], ids=str)
def test_advice_about_rows_and_groups_runs(cluster: timely.Cluster, advised: Advised) -> None:
    follows_advice(advised, lambda program: ask_query(cluster, program, advised))
