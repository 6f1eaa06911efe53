"""What rarer errors of collections, outputs and loops tell users to write gives what they meant."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

import pytest
from advised_programs import Advised, ask_program, ask_query, follows_advice

import timely

QUERIES = [
    Advised(
        "edges.select(x=col.src).union_by_name(texts.select(«'x'»), allow_missing_columns=True).distinct()",
        r"(cast) one of them",
        [1, 2, 3],
        instead=r"x=col.x.\1('int')",
    ),
    Advised(
        "rows.select('maybe').«prioritized_iterate(lambda r, begun: begun, priority='maybe')»",
        r"may be null (col\.x\.fill_null\(0\))",
        [7, 9, None],
        reads={"col.x": "col.maybe"},
        instead=r"prioritized_iterate(lambda r, begun: begun, priority=\1)",
    ),
    Advised(
        "rows.select('x').«prioritized_iterate(lambda r, begun: begun, priority='x', times=3)»",
        r"Write instead: (prioritized_iterate\(.*\))$",
        [1, 2, 3],
        gaps=("begun",),
        reads={"'label'": "'x'"},
    ),
    Advised(
        "dd.join_all([edges, texts.select(dst=«col.x», name=col.name)], on='dst').select('name')",
        r"(cast) one of them",
        ["c", "c"],
        instead=r"col.x.\1('int')",
    ),
    Advised(
        "dd.«join_all([rows.select('x'), rows.select('x'), texts.select('name')], on='x')».select("
        "'x', 'name')",
        r"write (cross_join)$",
        [(1, "a"), (1, "c"), (2, "a"), (2, "c"), (3, "a"), (3, "c")],
        instead=r"join_all([rows.select('x'), rows.select('x')], on='x').\1(texts.select('name'))",
    ),
    Advised("rows.agg(s=col.x.std(ddof=«2»))", r"write (1) for n - 1", [1.0]),
    Advised("rows.agg(s=col.x.var(ddof=«2»))", r"or (0) for n$", [2 / 3]),
    Advised(
        "rows.select(a=«lit(pd.Timestamp(1))»).distinct()", r"missing (lit\(None, 'timestamp'\))", [None]
    ),
    Advised(
        "rows.filter(col.t < «pd.Timestamp(1704067500000000001)»).select('x')",
        r"write a (datetime) or",
        [1],
        instead=r"\1(2024, 1, 1, 0, 5)",
    ),
    Advised(
        "rows.select(a=dd.max_of(lit(Decimal('1e37')), «lit(Decimal('0.25'))»)).distinct()",
        r"(cast) one to a decimal of fewer",
        [Decimal("1e37")],
        instead=r"lit(Decimal('0.25')).\1('decimal(1, 0)')",
    ),
    Advised(
        "rows.select(a=«lit(Decimal('0.1234567890123456789012345678901234567890'))»).distinct()",
        r"or use a (float)",
        [0.123456789012345678],
        instead=r"lit(\1('0.1234567890123456789'))",
    ),
    Advised(
        "rows.«select(a=col.s.str.encode('utf-8'))»",
        r"Write instead: (map\(function, schema\))",
        [b"one", b"three", b"two"],
        reads={"function": "lambda row: row.s.encode()", "schema": "'a: bytes'"},
    ),
    Advised(
        "rows.«map_elements(lambda row: row.x)»",
        r"Write instead: (map\(function, schema\))",
        [1, 2, 3],
        reads={"function": "lambda row: row.x", "schema": "'x: int'"},
    ),
    Advised("rows.«nlargest(1, 'x')».select('x')", r"Write instead: (top_k\(.*?\))$", [1, 2, 3]),
    Advised("rows.«value_counts()»", r"Write instead: (.*)$", [("a", 2), ("b", 1)]),
    Advised(
        "rows.select(a=dd.«to_uppercase(col.s)»)",
        r"Write instead: dd\.(upper\(x\))",
        ["ONE", "THREE", "TWO"],
        reads={"(x)": "(col.s)"},
    ),
    Advised("rows.select(a=col.s.«upper()»)", r"Write instead: x\.(str\.upper\(\))", ["ONE", "THREE", "TWO"]),
    Advised(
        "algorithms.datalog('both(x) :- edge(x, y), name(x, n).', {'edge': edges, 'name': «texts»,"
        " 'both': 'x: int'})['both']",
        r"(cast) one",
        [1],
        instead=r"texts.with_columns(x=col.x.\1('int'))",
    ),
    Advised(
        "algorithms.datalog('to(y) :- edges(x, y).', {«'edge'»: edges, 'to': 'x: int'})['to']",
        r"no relation ('edges')",
        [2, 3],
    ),
    Advised(
        "algorithms.connected_components(edges, prioritised=True).group_by('component').count()."
        "«sort_values('count')»",
        r"Write instead: (order_by\('x'\)\.limit\(10\))",
        [(1, 3)],
        reads={"'x'": "'count'"},
    ),
]
FILLED = "flow.input('numbers').insert([(1,), (1,), (2,)])\nflow.seal()\n"
PROGRAMS = [
    Advised(
        FILLED + "next(iter(flow.output('numbers').«follow(start=0, snapshot=True)»))[1].num_rows",
        r"give (one) of the two",
        2,
        instead="follow(start=0)",
    ),
    Advised(
        FILLED
        + "flow.seal()\nflow.output('numbers').forget(1)\nflow.output('numbers').«changes(0)».num_rows",
        r"Read (changes\(1\))",
        0,
    ),
    Advised(
        FILLED + "flow.seal()\nflow.output('numbers').forget(1)\n"
        "next(iter(flow.output('numbers').«follow(start=0)»))[1].num_rows",
        r"accumulated: (follow\(snapshot=True\))",
        2,
    ),
    Advised(
        "flow = cluster.install(lambda flow: dd.input(flow, 'ins', 'n: int').output('outs'))\n"
        "flow.input('ins').insert([(1,)])\nflow.seal()\nflow.«input('outs')».snapshot()",
        r"write (output\('outs'\))$",
        [1],
    ),
    Advised(
        "flow.input('numbers').append(pa.table({'n': [1], 'diff': [1]}), «writer='w'»)\nflow.seal()\n"
        "flow.output('numbers').snapshot()",
        r"give (both), or",
        [1],
        instead="writer='w', sequence=0",
    ),
    Advised(
        "flow.input('numbers').append(pa.table({'n': [1], 'diff': [2_000_000_000]}))\nflow.seal()\n"
        "flow.output('numbers').«snapshot()».num_rows",
        r"Read (changes\(\)),",
        1,
    ),
    Advised(
        "flow = cluster.install(lambda flow: dd.input(flow, 'typed', 'w: int, v: int').output('out'))\n"
        "flow.input('typed').insert([«Half(1)»])\nflow.seal()\nflow.output('out').snapshot()",
        r"write (row\._asdict\(\))",
        [(2, 1)],
        reads={"row": "Half(1)"},
        names={
            "Half": type(
                "Half", (), {"__init__": lambda self, v: None, "_asdict": lambda self: {"v": 1, "w": 2}}
            )
        },
    ),
    Advised(
        "def build(dataflow):\n    lines = dataflow.input('lines')\n"
        "    loop = dataflow.loop('round', order=«'fifo'»)\n"
        "    dataflow.output('out', lines)\n"
        "flow = cluster.install(build)\nflow.outputs",
        r"write order=('product'),",
        ["out"],
    ),
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[timely.Cluster]:
    with timely.connect(workers=1, embedded=True) as embedded:
        yield embedded


@pytest.mark.parametrize("advised", QUERIES, ids=str)
def test_advice_about_a_query_runs(cluster: timely.Cluster, advised: Advised) -> None:
    follows_advice(advised, lambda program: ask_query(cluster, program, advised))


@pytest.mark.parametrize("advised", PROGRAMS, ids=str)
def test_advice_about_a_program_runs(cluster: timely.Cluster, advised: Advised) -> None:
    follows_advice(advised, lambda program: ask_program(cluster, program, advised))
