"""What errors of joins, windows, loops and orders tell users to write gives what they meant."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

import pytest
from advised_programs import Advised, ask_query, follows_advice

import timely

MINUTES = [dt.datetime(2024, 1, 1, tzinfo=dt.UTC) + dt.timedelta(minutes=n) for n in range(61)]
PAIRS = [("one", 100), ("two", 100)]
KEYS = [1, 2]

JOINS = [
    Advised(
        "rows.select('s').join(texts.select('name'), «how='inner'»).select('name', 's')",
        r"pairs write (how='cross')$",
        [("a", "one"), ("a", "three"), ("a", "two"), ("c", "one"), ("c", "three"), ("c", "two")],
    ),
    Advised(
        "rows.select('key', 's').join(other.select('key', n=col.y), 'key', «how='cross'»).select('s', 'n')",
        r"write (how='inner')",
        PAIRS,
    ),
    Advised(
        "rows.select('s').join(texts.select('name'), «'s', how='cross'»).select('name', 's')",
        r"or (leave on= out)$",
        [("a", "one"), ("a", "three"), ("a", "two"), ("c", "one"), ("c", "three"), ("c", "two")],
        instead=r"how='cross'",
    ),
    Advised(
        "rows.join(other, on='key', «how='leftsemijoin'»).select('x')",
        r"Write one of .*(semi), anti",
        KEYS,
        instead=r"how='\1'",
    ),
    Advised(
        "rows.join(other, on='key', «how='minus'»).select('x')",
        r"Write one of .*(anti), cross",
        [3],
        instead=r"how='\1'",
    ),
    Advised(
        "rows.«join(other, on='key')».select('s', 'y_right')",
        r"Write (join\(.*?\)),",
        PAIRS,
        gaps=("other, on='key'",),
    ),
    Advised(
        "rows.join(other«», on='key').select('s', 'right_y')",
        r"(select\(…, right_y=col\.y\))$",
        PAIRS,
        gaps=("'key'",),
        instead=r".\1",
    ),
    Advised(
        "rows.join(other, «on=col.key == col.key», suffix='_r').select('s', 'y_r')",
        r"Write (on=\S+) if both",
        PAIRS,
    ),
    Advised(
        "rows.join(other, «left_on='key'», suffix='_r').select('s', 'y_r')",
        r"or write (on=\{.*?\})",
        PAIRS,
        reads={"left_column": "key", "right_column": "key"},
    ),
    Advised(
        "rows.«join(texts, on='x')».select('s', 'name')",
        r"(cast) one of them",
        [("one", "a"), ("three", "c")],
        instead=r"join(texts.with_columns(x=col.x.\1('int')), on='x')",
    ),
    Advised(
        "rows.select('key', 's').join(other.select('key', n=col.y), 'key', balance=«16»).select('s', 'n')",
        r"write (dd\.Balance\('hash', units=16\))$",
        PAIRS,
    ),
    Advised(
        "rows.group_by('key', balance=«16»).agg(m=dd.min('x'))",
        r"write (dd\.Balance\('JB', units=16\))\.",
        [("a", 1), ("b", 3)],
    ),
    Advised(
        "rows.group_by(«balance=col.x % 2»).agg(n=dd.count())",
        r"write group_by\((expression\.alias\('balance'\))\)",
        [(0, 1), (1, 2)],
        reads={"expression": "(col.x % 2)"},
    ),
    Advised(
        "rows.join(other, 'key', suffix='_r', balance=dd.Balance(«'jb99'», units=4)).select('s', 'y_r')",
        r"write one of .*(hash)",
        PAIRS,
        instead=r"'\1'",
    ),
    Advised(
        "rows.theta_join(other, «'x < z'», suffix='_r').select('s', 'z')",
        r"write an (expression) over",
        [("one", 3.0), ("two", 3.0)],
        instead="col.x < col.z",
    ),
    Advised(
        "rows.theta_join(other, «'x < z'», suffix='_r').select('s', 'z')",
        r"(dd\.band)\(…\)",
        [("one", 1.0), ("three", 3.0), ("two", 1.0)],
        instead=r"\1('f', 'z', 0.5)",
    ),
    Advised(
        "rows.«theta_join(other, [], suffix='_r')».select('s', 'z')",
        r"write (cross_join)$",
        [("one", 1.0), ("one", 3.0), ("three", 1.0), ("three", 3.0), ("two", 1.0), ("two", 3.0)],
        instead=r"\1(other, suffix='_r')",
    ),
    Advised(
        "rows.select('key', 'x').cogroup(other.select(«key=col.y», n=col.y), 'key', lambda key, "
        "a, b: [len(a) + len(b)], 'n: int')",
        r"(cast) it to one type",
        [("100", 1), ("300", 1), ("a", 2), ("b", 1)],
        instead=r"key=col.y.\1('string')",
    ),
    Advised(
        "dd.join_all([edges, edges.select(dst=col.src, end=col.dst)], on='dst', candidates=«'few'»)",
        r"or ('fewest')",
        [(1, 2, 3)],
    ),
    Advised(
        "dd.join_all([rows.select('key', 'x', 'y'), other«.select('key', 'y')»], on='key').select("
        "'x', 'other_y')",
        r"(select\(…, other_y=col\.y\))$",
        [(1, 100), (2, 100)],
        gaps=("'key'",),
        instead=r".\1",
    ),
    Advised(
        "dd.join_all([edges, edges«»], on='dst').select('src', 'other_src').filter(col.src < col.other_src)",
        r"(select\(…, other_src=col\.src\))$",
        [(1, 2)],
        gaps=("'dst'",),
        instead=r".\1",
    ),
    Advised(
        "dd.join_all([rows.select(a=col.x, b=col.x + 1), «edges], on=[('b', 'src')]»).select('a', 'c')",
        r"rename columns before, (edges\.select\(b=col\.src, c=col\.dst\))",
        [(1, 3)],
        instead=r"\1], on='b'",
    ),
    Advised(
        "dd.join_all([rows.select(z=col.x, b=col.x + 1), «edges], on='b'»).select('z', 'a')",
        r"one name: (edges\.select\(a=col\.src, b=col\.dst\))",
        [(1, 1), (2, 1), (2, 2)],
        instead=r"\1], on='b'",
    ),
    Advised(
        "rows.select('key', 'x').asof_join(other, on='key', left_time='x', right_time='y', "
        "direction=«'nearest'»).select('x', 'z')",
        r"Write '\w+' or ('forward')",
        [(1, 1.0), (2, 1.0), (3, None)],
    ),
]
TIMES = [
    Advised(
        "rows.select('x', 't').window('t', «'10 minutes'»).select('x', 'window_start')",
        r"Write (dd\..*)$",
        [(1, MINUTES[0]), (2, MINUTES[0]), (3, MINUTES[60])],
    ),
    Advised(
        "rows.select('x', 't').window('t', «dt.timedelta(minutes=5)»).select('x', 'window_start')",
        r"takes (dd\.tumbling\(minutes=5\))",
        [(1, MINUTES[0]), (2, MINUTES[5]), (3, MINUTES[60])],
    ),
    Advised(
        "rows.select('t').window('t', dd.tumbling(minutes=5)).«window('t', dd.tumbling(minutes=10))»."
        "select('t_start')",
        r"otherwise: (window\(.*\))$",
        [MINUTES[0], MINUTES[0], MINUTES[60]],
        gaps=("dd.tumbling(minutes=10)",),
    ),
    Advised(
        "rows.select('t').«window('t', minutes=5)».select('window_start')",
        r"Write instead: (window\('time', dd\.tumbling\(minutes=5\)\))",
        [MINUTES[0], MINUTES[5], MINUTES[60]],
        reads={"'time'": "'t'"},
    ),
    Advised(
        "rows.select('t', 'key').«window('t', dd.session(minutes=30), by='key')».select('window_start')",
        r"(dd\.session\(minutes=30, by='user'\))",
        [MINUTES[3], MINUTES[3], MINUTES[60]],
        reads={"'user'": "'key'"},
        instead=r"window('t', \1)",
    ),
    Advised(
        "rows.filter(col.x == 3).select('t').window('t', dd.«sliding('10 minutes')»).select('window_start')",
        r"Write instead: (sliding\(.*?\)):",
        [MINUTES[n] for n in (10, 20, 30, 40, 50, 60)],
    ),
    Advised(
        "rows.select('t', 'x').«during('t')».select('x')",
        r"write (last\(…, clock=…\))",
        [1],
        gaps=("'t', timedelta(minutes=10)", "dd.clock(dt.datetime(2024, 1, 1, 0, 5, tzinfo=UTC), minutes=1)"),
    ),
    Advised(
        "rows.order_by('x').«filter(col.x > 1)».select('x')",
        r"(limit\(10\))",
        [2, 3],
        instead=r"\1.filter(col.x > 1)",
    ),
    Advised(
        "rows.«order_by('x').tail(2)».select('x')",
        r"order: (order_by\(col\.x\.desc\(\)\))",
        [2, 3],
        instead=r"\1.limit(2)",
    ),
    Advised(
        "rows.select('x').order_by('x').«row_number()»",
        r"Write instead: (rank\('place'\))",
        [(1, 1), (2, 2), (3, 3)],
    ),
    Advised("rows.order_by(«dd.asc(1)»).limit(1).select('x')", r"write (asc\('x'\))", [1], instead=r"dd.\1"),
    Advised("edges.select(x=col.src).«delay(-1)»", r"write (0) or more", [1, 1, 2], instead=r"delay(\1)"),
]
LOOPS = [
    Advised(
        "«dd.iterate(edges, lambda a: a)»['a'].select('src')",
        r"write (iterate\(.*\))$",
        [1, 1, 2],
        gaps=("edges", "edges.select('src')", "a", "b"),
        bare=("iterate",),
    ),
    Advised(
        "edges.«iterate(lambda e: e, max_iterations=3)»",
        r"(iterate\(body, iterations_max=100\))",
        [(1, 2), (1, 3), (2, 3)],
        reads={"body": "lambda e: e"},
    ),
    Advised(
        "edges.«iterate()»",
        r"Write instead: (iterate\(body, times=3\))",
        [(1, 2), (1, 3), (2, 3)],
        reads={"body": "lambda e: e"},
    ),
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[timely.Cluster]:
    with timely.connect(workers=1, embedded=True) as embedded:
        yield embedded


@pytest.mark.parametrize("advised", [*JOINS, *TIMES, *LOOPS], ids=str)
def test_advice_about_joins_times_and_loops_runs(cluster: timely.Cluster, advised: Advised) -> None:
    follows_advice(advised, lambda program: ask_query(cluster, program, advised))
