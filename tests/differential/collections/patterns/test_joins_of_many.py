"""patterns/joins_of_many.py: a join of many collections, kept current without anything between.

meaning_*   the rows that agree, multiplicities multiplied, at every time
removed_*   nothing stays of what was removed
columns_*   which columns come out
refused_*   collections that do not fit
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import collection as plainly
from reference.collection import Collection as Rows
from reference.dataflow import Change, Cluster, check_at_times, compact_traces, trace_rows
from strategies_collections import BINARY, NUMBERS, examples, histories

import differential as dd
from differential import Collection, col
from differential.collections.patterns.joins_of_many import Candidates
from differential.errors import SchemaError
from timely.building.dataflow import Dataflow
from timely.errors import GraphError

CANDIDATES: tuple[Candidates, ...] = ("in order", "fewest")


def _named(collections: tuple[Collection, ...], columns: str) -> list[Collection]:
    """Collections of k and v under names of one letter."""
    return [
        one.select(**{names[0]: col.k, names[1]: col.v})
        for one, names in zip(collections, columns.split(), strict=True)
    ]


def _plain(columns: str, sources: tuple[Rows, ...]) -> Rows:
    return plainly.join_all(list(zip(columns.split(), sources, strict=True)))


# meaning_

PATTERNS = {
    "ab bc ac": (0, 1, 2),
    "ab bc ca": (0, 0, 0),
    "ab bc cd": (0, 1, 0),
    "xa xb xc": (0, 1, 2),
    "ab bc cd da": (0, 1, 0, 1),
}


@pytest.mark.parametrize("depth", [2, 3])
@pytest.mark.parametrize("columns", PATTERNS)
@pytest.mark.parametrize("candidates", CANDIDATES)
def test_meaning_at_every_time(columns: str, depth: int, candidates: Candidates) -> None:
    """Of different collections, and of one that is looked up by itself."""
    chosen = PATTERNS[columns]
    on = [name for name in sorted({*columns} - {" "}) if columns.count(name) > 1]

    def build(*c: Collection) -> Collection:
        return dd.join_all(_named(tuple(c[n] for n in chosen), columns), on, candidates=candidates)

    @examples(0.15)
    @given(
        st.lists(histories(depth), min_size=max(chosen) + 1, max_size=max(chosen) + 1),
        st.integers(1, 3),
        st.integers(0, 2**20),
    )
    def holds(sources: list[list[Change]], workers: int, seed: int) -> None:
        check_at_times(
            build,
            lambda *rows: _plain(columns, tuple(rows[n] for n in chosen)),
            sources,
            depth=depth,
            workers=workers,
            seed=seed,
        )

    holds()


@pytest.mark.parametrize("depth", [2, 3])
def test_meaning_with_null_keys(depth: int) -> None:
    operator = BINARY["join of all of ab cb ca with null keys"]

    @examples(0.15)
    @given(histories(depth), histories(depth), st.integers(1, 3), st.integers(0, 2**20))
    def holds(left: list[Change], right: list[Change], workers: int, seed: int) -> None:
        check_at_times(operator.build, operator.plain, [left, right], depth=depth, workers=workers, seed=seed)

    holds()


def _reach(start: Collection, along: Collection, candidates: Candidates = "in order") -> Collection:
    """Pairs (k, v) such that an even number of edges leads from a pair (k, …) to v, two edges at a time."""
    first, second = along.select(v=col.k, m=col.v), along.select(m=col.k, w=col.v)

    def further(reached: Collection) -> Collection:
        found = dd.join_all([reached, first, second], ["v", "m"], candidates=candidates)
        return found.select(k=col.k, v=col.w).concat(start).distinct()

    return start.iterate(further)


def _reach_plainly(start: Rows, along: Rows) -> Rows:
    def step(reached: Rows) -> Rows:
        found = plainly.join_all([("kv", reached), ("vm", along), ("mw", along)])
        further = plainly.map_rows(found, lambda row: (row[0], row[3]))
        return plainly.distinct(plainly.concat(further, start))

    return plainly.iterate(start, step)


@pytest.mark.parametrize("candidates", CANDIDATES)
@pytest.mark.parametrize("depth", [1, 2])
def test_meaning_in_a_loop_of_what_goes_round_and_what_does_not(depth: int, candidates: Candidates) -> None:
    def build(a: Collection, b: Collection) -> Collection:
        return _reach(a.distinct(), b.distinct(), candidates)

    @examples(0.15)
    @given(histories(depth), histories(depth), st.integers(1, 3), st.integers(0, 2**20))
    def holds(start: list[Change], along: list[Change], workers: int, seed: int) -> None:
        check_at_times(
            build,
            lambda a, b: _reach_plainly(plainly.distinct(a), plainly.distinct(b)),
            [start, along],
            depth=depth,
            workers=workers,
            seed=seed,
        )

    holds()


# removed_


@pytest.mark.parametrize("candidates", CANDIDATES)
def test_removed_rows_leave_nothing(candidates: Candidates) -> None:
    def build(flow: Dataflow) -> None:
        edges = dd.input(flow, "edges", NUMBERS)
        _triangles(edges, candidates).output("triangles")
        _reach(edges.distinct(), edges.distinct(), candidates).output("reached")

    cluster = Cluster(build, workers=2, seed=3)
    rows = [((n % 4, n % 3), 1) for n in range(12)]
    for sign in (1, -1, 1, -1):
        cluster.change("edges", [(row, sign * n) for row, n in rows])
        cluster.seal()
        cluster.run()
    compact_traces(cluster)
    assert cluster.snapshot("triangles") == cluster.snapshot("reached") == {}
    assert trace_rows(cluster) == 0


def _triangles(edges: Collection, candidates: Candidates) -> Collection:
    return dd.join_all(_named((edges, edges, edges), "ab bc ca"), ["a", "b", "c"], candidates=candidates)


# columns_


def _given(**columns: str) -> dict[str, Collection]:
    flow = Dataflow("queries")
    return {name: dd.input(flow, name, schema) for name, schema in columns.items()}


def test_columns_come_as_they_are_seen_first_and_shared_ones_are_never_null() -> None:
    given = _given(x="a: int?, b: int, p: string?", y="c: int, b: int?", z="q: float, c: int, a: int")
    found = dd.join_all(list(given.values()), [col.a, "b", "c"])
    assert str(found.schema) == "a: int, b: int, p: string?, c: int, q: float"


def test_columns_of_every_type_are_looked_up() -> None:
    def build(flow: Dataflow) -> None:
        people = dd.input(flow, "people", "name: string, home: string?, age: float")
        towns = dd.input(flow, "towns", "home: string, zone: string?")
        zones = dd.input(flow, "zones", "zone: string, cents: int")
        dd.join_all([people, towns, zones], ["home", "zone"]).output("result")

    cluster = Cluster(build, workers=2, seed=1, own_symbols=True)
    cluster.change("people", [(("ada", "rom", 1.5), 1), (("bob", None, 2.5), 1), (("cy", "ulm", 3.5), 2)])
    cluster.change("towns", [(("rom", "south"), 1), (("ulm", None), 1), (("ulm", "north"), 1)], worker=1)
    cluster.change("zones", [(("south", 7), 1), (("north", 9), 1)])
    cluster.seal()
    cluster.run()
    assert cluster.snapshot("result") == {
        ("ada", "rom", 1.5, "south", 7): 1,
        ("cy", "ulm", 3.5, "north", 9): 2,
    }


# refused_


@pytest.mark.parametrize(
    ("on", "says"),
    [
        ([], "needs on="),
        (["b", "b"], "names a column twice"),
        ([("b", "c")], "is a pair"),
        ([col.b + 1], "takes names of columns"),
        (["c"], "two collections have a column 'b'"),
        (["b", "c", "t"], "'t' is int in one collection and string in another"),
        (["b", "t"], "two collections have a column 'c'"),
    ],
)
def test_refused_are_columns_that_do_not_fit(on: list[str], says: str) -> None:
    given = _given(x="a: int, b: int, t: int", y="b: int, c: int", z="c: int, t: string")
    with pytest.raises(SchemaError, match=says):
        dd.join_all(list(given.values()), on)


def test_refused_are_collections_that_do_not_hang_together() -> None:
    given = _given(w="a: int, b: int", x="b: int", y="c: int", z="c: int, d: int")
    with pytest.raises(SchemaError, match=r"collection 3 \(c: int\) shares no column"):
        dd.join_all(list(given.values()), ["b", "c"])
    with pytest.raises(SchemaError, match="none of the collections has the column 'x'"):
        dd.join_all([given["w"], given["x"]], ["b", "x"])
    with pytest.raises(SchemaError, match="1 of the collections has the column 'a'"):
        dd.join_all([given["w"], given["x"]], ["b", "a"])
    with pytest.raises(SchemaError, match="2 to 32 collections, not 1"):
        dd.join_all([given["x"]], "b")
    with pytest.raises(SchemaError, match="there is no candidates='few'"):
        dd.join_all([given["w"], given["x"]], "b", candidates="few")  # type: ignore[arg-type]


def test_refused_is_a_collection_of_another_dataflow() -> None:
    with pytest.raises(GraphError, match="two dataflows"):
        dd.join_all([_given(x="a: int")["x"], _given(x="a: int")["x"]], "a")
