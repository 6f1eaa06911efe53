"""Recursive queries over graphs from which 500 rows go: at every epoch they come to what networkx says,
and to what DuckDB says if its answers are put in again until nothing changes.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import networkx as nx
import pytest
from sql.judge import Judge, Multiset, differences

import differential as dd
import timely
from differential import Schema
from timely.building.dataflow import Dataflow

TABLES = {
    "edges": "x: int, y: int, w: int",
    "needs": "x: int, y: int, n: int",  # no circles
    "children": "x: int, y: int",  # a parent each
    "roots": "n: int",
}
Row: TypeAlias = tuple[int, ...]
Tables: TypeAlias = dict[str, list[Row]]
GONE, EPOCHS = 500, 5
"""Rows that go from each graph, and in how many epochs."""


@dataclass(frozen=True)
class Recursive:
    """Queries that read one another, by name, each with its columns; then what is asked of them."""

    queries: dict[str, tuple[str, str]]
    answer: str
    meaning: Callable[[Tables], Multiset]
    is_mutual: bool = False

    @property
    def text(self) -> str:
        """As one text."""
        listed = ", ".join(f"{name}({columns}) AS ({sql})" for name, (columns, sql) in self.queries.items())
        return f"WITH {'MUTUALLY ' * self.is_mutual}RECURSIVE {listed} {self.answer}"


def _graph(rows: list[Row]) -> nx.DiGraph:
    graph = nx.DiGraph()
    for row in rows:
        weight = min(row[-1], graph.edges[row[0], row[1]]["w"]) if graph.has_edge(*row[:2]) else row[-1]
        graph.add_edge(row[0], row[1], w=weight)
    return graph


def _roots(tables: Tables, graph: nx.DiGraph) -> set[int]:
    roots = {n for (n,) in tables["roots"]}
    graph.add_nodes_from(roots)
    return roots


def _reached(tables: Tables) -> Multiset:
    graph = _graph(tables["edges"])
    roots = _roots(tables, graph)
    return Counter({(n,): 1 for root in roots for n in (root, *nx.descendants(graph, root))})


def _nearest(tables: Tables) -> Multiset:
    graph = _graph(tables["edges"])
    far = nx.multi_source_dijkstra_path_length(graph, _roots(tables, graph), weight="w")
    return Counter(dict.fromkeys(far.items(), 1))


def _generations(tables: Tables) -> Multiset:
    graph = _graph(tables["children"])
    pairs: set[Row] = set()
    for top in graph:
        depths: dict[int, list[int]] = {}
        for node, depth in nx.single_source_shortest_path_length(graph, top).items():
            depths.setdefault(depth, []).append(node)
        pairs.update((a, b) for depth, nodes in depths.items() if depth for a in nodes for b in nodes)
    return Counter(dict.fromkeys(pairs, 1))


def _totals(tables: Tables) -> Multiset:
    graph = nx.MultiDiGraph()
    for x, y, n in tables["needs"]:
        graph.add_edge(x, y, n=n)
    totals: dict[Row, int] = {}
    order = list(nx.topological_sort(graph))
    for top in order:
        needed = {top: 1}
        for node in order:
            for _, other, n in graph.out_edges(node, data="n"):
                if node in needed:
                    needed[other] = needed.get(other, 0) + needed[node] * n
        totals.update({(top, part): n for part, n in needed.items() if part != top})
    return Counter(dict.fromkeys(((*pair, n) for pair, n in totals.items()), 1))


def _ways(tables: Tables) -> Multiset:
    """A row for each way from a root."""
    graph = nx.MultiDiGraph([row[:2] for row in tables["needs"]])
    ways = Counter(n for (n,) in tables["roots"])
    for node in nx.topological_sort(graph):
        for _, other in graph.out_edges(node):
            ways[other] += ways[node]
    return Counter({(node, count): 1 for node, count in ways.items() if count})


def _parities(tables: Tables) -> Multiset:
    doubled = nx.DiGraph()
    for x, y, _ in tables["edges"]:
        doubled.add_edges_from([((x, 0), (y, 1)), ((x, 1), (y, 0))])
    starts = [(n, 0) for (n,) in tables["roots"]]
    doubled.add_nodes_from(starts)
    found = {each for start in starts for each in (start, *nx.descendants(doubled, start))}
    return Counter(dict.fromkeys(found, 1))


def _components(tables: Tables) -> Multiset:
    parts = nx.strongly_connected_components(_graph(tables["edges"]))
    return Counter({(node, min(part)): 1 for part in parts for node in part})


CASES = {
    "reachability": Recursive(
        {"r": ("n", "SELECT n FROM roots UNION SELECT y FROM edges, r WHERE x = n")},
        "SELECT n FROM r",
        _reached,
    ),
    "shortest paths": Recursive(
        {
            "d": (
                "n, far",
                "SELECT n, min(far) FROM (SELECT n, 0 AS far FROM roots UNION ALL "
                "SELECT y, far + w FROM d JOIN edges ON x = n) AS s GROUP BY n",
            )
        },
        "SELECT n, far FROM d",
        _nearest,
    ),
    "same generation": Recursive(
        {
            "g": (
                "a, b",
                "SELECT p.y, q.y FROM children AS p JOIN children AS q ON p.x = q.x UNION "
                "SELECT p.y, q.y FROM g, children AS p, children AS q WHERE p.x = a AND q.x = b",
            )
        },
        "SELECT a, b FROM g",
        _generations,
    ),
    "bill of materials": Recursive(
        {
            "t": (
                "a, p, n",
                "SELECT a, p, CAST(sum(n) AS BIGINT) FROM (SELECT x AS a, y AS p, n FROM needs UNION ALL "
                "SELECT t.a, needs.y, t.n * needs.n FROM t JOIN needs ON t.p = needs.x) AS s GROUP BY a, p",
            )
        },
        "SELECT a, p, n FROM t",
        _totals,
    ),
    "a row for each way": Recursive(
        {"r": ("n", "SELECT n FROM roots UNION ALL SELECT y FROM needs, r WHERE x = r.n")},
        "SELECT n, count(*) AS ways FROM r GROUP BY n",
        _ways,
    ),
    "two that read one another": Recursive(
        {
            "even": ("n BIGINT", "SELECT n FROM roots UNION SELECT y FROM odd, edges WHERE x = n"),
            "odd": ("n BIGINT", "SELECT DISTINCT y FROM even, edges WHERE x = n"),
        },
        "SELECT n, 0 AS p FROM even UNION ALL SELECT n, 1 FROM odd",
        _parities,
        is_mutual=True,
    ),
    "strongly connected": Recursive(
        {
            "r": (
                "a BIGINT, b BIGINT",
                "SELECT x, x FROM edges UNION SELECT y, y FROM edges UNION "
                "SELECT r.a, s.b FROM r JOIN r AS s ON r.b = s.a UNION SELECT x, y FROM edges",
            ),
            "parts": (
                "n BIGINT, part BIGINT",
                "SELECT one.a, min(one.b) FROM r AS one JOIN r AS other "
                "ON one.a = other.b AND one.b = other.a GROUP BY one.a",
            ),
        },
        "SELECT n, part FROM parts",
        _components,
        is_mutual=True,
    ),
}


def _iterated(judge: Judge, case: Recursive) -> Multiset:
    """What DuckDB comes to: it computes the queries one after the other, until nothing changes."""
    for name, (columns, _) in case.queries.items():
        names = [each.split()[0] for each in columns.split(", ")]
        judge.tell(name, Schema.of(", ".join(f"{each}: int" for each in names)), [])
    before: dict[str, Multiset] = {}
    while True:
        answers = {}
        for name, (columns, sql) in case.queries.items():
            names = [each.split()[0] for each in columns.split(", ")]
            answers[name] = judge.answer(sql)
            schema = Schema.of(", ".join(f"{each}: int" for each in names))
            judge.tell(name, schema, answers[name].elements())
        if answers == before:
            return judge.answer(case.answer)
        before = answers


def _start(rng: random.Random) -> Tables:
    parents = {y: rng.randrange(max(0, y - 40), y) for y in range(1, 560)}
    return {
        "edges": [(rng.randrange(60), rng.randrange(60), rng.randint(1, 9)) for _ in range(540)],
        "needs": [
            (x, (x // 30 + 1) * 30 + rng.randrange(30), rng.randint(1, 2))
            for x in (rng.randrange(90) for _ in range(540))
        ],
        "children": [(x, y) for y, x in parents.items()],
        "roots": [(n,) for n in rng.sample(range(60), 3)],
    }


def test_recursive_queries_come_to_the_fixed_point(effort: int) -> None:
    rng = random.Random(effort)
    tables = _start(rng)
    judge = Judge()

    def build(flow: Dataflow) -> None:
        collections = {name: dd.input(flow, name, schema) for name, schema in TABLES.items()}
        for name, case in CASES.items():
            dd.sql(flow, case.text, dialect="postgres", **collections).output(name)

    wrong: list[str] = []
    with timely.connect(workers=1 + effort % 2, embedded=True) as cluster:
        flow = cluster.install(build)
        for name, rows in tables.items():
            flow.input(name).insert(rows)
        for epoch in range(EPOCHS + 1):
            flow.seal()
            by_duckdb = epoch in (0, EPOCHS)
            for name, rows in tables.items() if by_duckdb else ():
                judge.tell(name, Schema.of(TABLES[name]), rows)
            for name, case in CASES.items():
                answer = flow.output(name).snapshot()
                have = Counter(zip(*(column.to_pylist() for column in answer.columns), strict=True))
                judges = [case.meaning(tables), *([_iterated(judge, case)] if by_duckdb else [])]
                for place, wanted in enumerate(judges):
                    here, there = differences(have, wanted)
                    if here or there:
                        wrong.append(f"{name}, epoch {epoch}, judge {place}: {here[:5]} for {there[:5]}")
            for name in ("edges", "needs", "children"):
                rows = tables[name]
                rng.shuffle(rows)
                gone, tables[name] = rows[: GONE // EPOCHS], rows[GONE // EPOCHS :]
                if epoch < EPOCHS:
                    flow.input(name).remove(gone)
    judge.close()
    assert not wrong, "\n".join(wrong)


ENDLESS = {
    "WITH RECURSIVE r(n) AS (SELECT n FROM roots UNION SELECT n + 1 FROM r) SELECT n FROM r":
        timely.MisuseError,
    "WITH RECURSIVE r(n) AS (SELECT n FROM roots UNION ALL "
    "SELECT y FROM edges, r WHERE x = n) SELECT n FROM r":
        timely.MisuseError,
    "WITH RECURSIVE r(n) AS (SELECT n FROM roots UNION ALL SELECT r.n FROM r, roots) SELECT n FROM r":
        dd.MultiplicityOverflowError,
    "WITH MUTUALLY RECURSIVE (ERROR AT RECURSION LIMIT 20) r(n BIGINT) AS (SELECT n FROM roots UNION "
    "SELECT n + 1 FROM r WHERE n < 30) SELECT n FROM r": timely.MisuseError,
}  # fmt: skip


@pytest.mark.parametrize("text", ENDLESS)
def test_a_recursion_without_end_is_an_error(text: str) -> None:
    def build(flow: Dataflow) -> None:
        collections = {name: dd.input(flow, name, TABLES[name]) for name in ("edges", "roots")}
        dd.sql(flow, text, dialect="postgres", **collections).output("result")

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(build)
        flow.input("edges").insert([(1, 2, 1), (2, 1, 1)])
        flow.input("roots").insert([(1,), (2,)])
        with pytest.raises(ENDLESS[text]):
            flow.seal()
            flow.output("result").snapshot()


def test_return_at_a_limit_has_what_so_many_iterations_make() -> None:
    """In each of them a query reads what those before it have come to in it."""
    text = """
        WITH MUTUALLY RECURSIVE (RETURN AT RECURSION LIMIT 3)
            a(n BIGINT) AS (SELECT n FROM roots UNION SELECT n + 1 FROM b),
            b(n BIGINT) AS (SELECT n FROM a)
        SELECT n FROM b
    """

    def build(flow: Dataflow) -> None:
        dd.sql(flow, text, dialect="postgres", roots=dd.input(flow, "roots", "n: int")).output("result")

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(build)
        flow.input("roots").insert([(0,), (10,)])
        for wanted in ([0, 1, 2, 10, 11, 12], [0, 1, 2]):
            flow.seal()
            assert sorted(flow.output("result").snapshot().column("n").to_pylist()) == wanted
            flow.input("roots").remove([(10,)])


def test_a_recursion_inside_of_a_recursion_and_one_whose_first_part_is_inside_of_it() -> None:
    text = """
        WITH RECURSIVE r(n) AS (
            SELECT DISTINCT n FROM (
                SELECT n FROM roots UNION ALL
                SELECT s.n FROM (
                    WITH RECURSIVE up(n) AS (
                        SELECT y FROM edges, r WHERE x = r.n UNION SELECT n + 1 FROM up WHERE n < 3
                    )
                    SELECT n FROM up
                ) AS s
            ) AS q
        )
        SELECT n FROM r
    """

    def build(flow: Dataflow) -> None:
        collections = {name: dd.input(flow, name, TABLES[name]) for name in ("edges", "roots")}
        dd.sql(flow, text, dialect="postgres", **collections).output("result")

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(build)
        flow.input("edges").insert([(1, 2, 1), (3, 5, 1), (5, 6, 1)])
        flow.input("roots").insert([(1,)])
        flow.seal()
        assert sorted(flow.output("result").snapshot().column("n").to_pylist()) == [1, 2, 3, 5, 6]
        flow.input("edges").remove([(1, 2, 1)])
        flow.seal()
        assert flow.output("result").snapshot().column("n").to_pylist() == [1]
