"""ordered.py: the first rows of groups in an order, and their numbers.

meaning_*   against the plain definition, at every time, with several workers and retractions
order_*     what comes before what: values of every type, nulls, ties, expressions
columns_*   which columns come out
refused_*   orders that are none
cost_*      how many rows of a large group are looked at
"""

from __future__ import annotations

import copy
import datetime as dt
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import collection as plainly
from reference.collection import Collection as Rows
from reference.collection import Row
from reference.dataflow import Change, Cluster, check_at_times, compact_traces
from strategies_collections import UNARY, Unary, examples, histories

import differential as dd
from differential import Collection, col
from differential.collections.in_order.ordered import By
from differential.columns.column_types import Int64s
from differential.columns.symbols.table import SymbolTable
from differential.errors import ExpressionError, SchemaError
from differential.operators.ordered import layout, symbol_order
from differential.operators.ordered.machine import FirstMachine
from differential.operators.reduce import RankKind
from differential.operators.vertices import MachineVertex
from timely.building.dataflow import Dataflow

TIES = (
    Unary(
        "top 2 with ties",
        lambda c: c.order_by(col.v % 2).limit(2, ties=True),
        lambda rows: plainly.top_k(
            rows,
            lambda row: (cast(int, row[1]) % 2, *row),
            (0, 2),
            same=lambda row: cast(int, row[1]) % 2,
            ties=True,
        ),
    ),
    Unary(
        "top 1 with ties of a divided key",
        lambda c: c.group_by("k", balance=dd.Balance("JB", units=3)).top_k(1, col.v % 3, ties=True),
        lambda rows: plainly.top_k(
            rows,
            lambda row: (cast(int, row[0]) % 3, *row),
            (0, 1),
            keys=1,
            same=lambda row: cast(int, row[0]) % 3,
            ties=True,
        ),
    ),
)
OPERATORS = {name: UNARY[name] for name in ("top 2 of a key", "second to fourth of all", "rank")}
OPERATORS |= {operator.name: operator for operator in TIES}
WORDS = ("", "a", "a\0", "ab", "b", "é", "prefix" * 8, "prefix" * 8 + "a", "prefix" * 8 + "b", "prefix" * 9)


# meaning_


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("name", OPERATORS)
def test_meaning_at_every_time(name: str, depth: int) -> None:
    @examples(1)
    @given(histories(depth, size_max=14), st.integers(1, 3), st.integers(0, 2**20))
    def holds(changes: list[Change], workers: int, seed: int) -> None:
        operator = OPERATORS[name]
        check_at_times(operator.build, operator.plain, [changes], depth=depth, workers=workers, seed=seed)

    holds()


class _Before:
    """Text in descending order: what is longer comes first among what begins alike."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __lt__(self, other: _Before) -> bool:
        return other.text < self.text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Before) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)


@pytest.mark.parametrize("nulls_last", [False, True])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("method", ["none", "row_number", "rank", "dense"])
def test_meaning_of_an_order_of_text_that_begins_alike(
    method: str, descending: bool, nulls_last: bool
) -> None:
    words = st.one_of(st.none(), st.sampled_from(WORDS))
    rows = st.tuples(st.integers(0, 1), words, st.integers(0, 2))
    rank = None if method == "none" else "place"

    def first(row: Row) -> tuple[object, ...]:
        if row[0] is None:
            return (1 if nulls_last else -1, 0)
        return (0, _Before(cast(str, row[0])) if descending else row[0])

    def build(c: Collection) -> Collection:
        text = col.s.desc(nulls_last=nulls_last) if descending else col.s.asc(nulls_last=nulls_last)
        how = "row_number" if rank is None else method
        return c.top_k(3, [text, "n"], keys="k", offset=1, rank=rank, method=how)  # type: ignore[arg-type]

    def plain(c: Rows) -> Rows:
        return plainly.top_k(c, lambda row: (*first(row), row[1]), (1, 4), 1, rank and method, None)

    @examples(0.7)
    @given(histories(2, rows, size_max=24), st.integers(1, 2), st.integers(0, 2**20))
    def holds(changes: list[Change], workers: int, seed: int) -> None:
        check_at_times(
            build, plain, [changes], depth=2, workers=workers, seed=seed, schemas="k: int, s: string?, n: int"
        )

    holds()


def test_meaning_several_words_of_text_in_opposite_orders() -> None:
    words = st.sampled_from(WORDS)
    rows = st.tuples(words, st.integers(0, 1), words)

    def build(c: Collection) -> Collection:
        return c.order_by(col.a.desc(), "n", "b").limit(4)

    @examples(1)
    @given(histories(1, rows, size_max=30, diffs=(1, 1, 1, -1)), st.integers(0, 2**20))
    def holds(changes: list[Change], seed: int) -> None:
        check_at_times(
            build,
            lambda c: plainly.top_k(c, lambda row: (_Before(cast(str, row[0])), *row[1:]), (0, 4)),
            [changes],
            depth=1,
            seed=seed,
            schemas="a: string, n: int, b: string",
        )

    holds()


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        ("float?", [None, -0.0, 0.0, 1.5, float("inf"), float("-inf")]),
        ("decimal(9, 2)?", [None, Decimal("0.00"), Decimal("-1.25"), Decimal("1.20")]),
        ("decimal(30, 2)?", [None, Decimal(10**25), Decimal(-(10**25)), Decimal(10**25 + 1)]),
        ("string?", [None, *WORDS]),
    ],
)
@pytest.mark.parametrize(("descending", "nulls_last"), [(True, True), (True, False), (False, True)])
def test_meaning_of_ties_at_the_boundary(
    type_: str, values: list[object], descending: bool, nulls_last: bool
) -> None:
    """Rows before it, at it and behind it go and come back."""
    places = {value: at for at, value in enumerate(sorted(cast("set[str]", {*values} - {None})))}
    rows = st.tuples(st.integers(0, 1), st.sampled_from(values), st.integers(0, 2))

    def first(row: Row) -> tuple[int, int]:
        if row[0] is None:
            return (1 if nulls_last else -1, 0)
        return (0, -places[row[0]] if descending else places[row[0]])

    def build(c: Collection) -> Collection:
        by = col.x.desc(nulls_last=nulls_last) if descending else col.x.asc(nulls_last=nulls_last)
        return c.top_k(2, by, keys="k", rank="place", method="rank", ties=True)

    def plain(c: Rows) -> Rows:
        return plainly.top_k(c, lambda row: (*first(row), row[1]), (0, 2), 1, "rank", first, ties=True)

    @examples(0.5)
    @given(histories(2, rows, size_max=24), st.integers(1, 3), st.integers(0, 2**20))
    def holds(changes: list[Change], workers: int, seed: int) -> None:
        check_at_times(
            build,
            plain,
            [changes],
            depth=2,
            workers=workers,
            seed=seed,
            schemas=f"k: int, x: {type_}, n: int",
        )

    holds()


# order_


def _ask(build: Callable[[Collection], Collection], schema: str, rows: Sequence[Row]) -> list[Row]:
    """What comes out of these rows, each written out as often as it is there, and again after compaction and
    an epoch in which something comes and goes.
    """

    def flow(dataflow: Dataflow) -> None:
        build(dd.input(dataflow, "rows", schema)).output("found")

    cluster = Cluster(flow, 2)
    cluster.change("rows", [(row, 1) for row in rows])
    cluster.seal()
    cluster.run()
    found = cluster.snapshot("found")
    compact_traces(cluster)
    for diff in (-1, 1):
        cluster.change("rows", [(row, diff) for row in rows])
        cluster.seal()
        cluster.run()
        assert cluster.snapshot("found") == (found if diff > 0 else {})
    return [row for row, count in found.items() for _ in range(count)]


DAY = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)

VALUES: list[tuple[str, list[object]]] = [
    ("int", [-(2**63), -1, 0, 7, 2**63 - 1]),
    ("int?", [None, -(2**63), 0, 2**63 - 1]),
    ("float", [float("-inf"), -1.5, 0.0, 2.25, float("inf")]),
    ("bool", [False, True]),
    ("timestamp", [DAY - dt.timedelta(days=90_000), DAY, DAY + dt.timedelta(microseconds=1)]),
    ("string", [*sorted(WORDS)]),
    ("string?", [None, *sorted(WORDS)]),
    ("bytes", [b"", b"\0", b"a", b"a" * 40, b"a" * 40 + b"\0", b"a" * 41, b"\xff"]),
]


@pytest.mark.parametrize(("type_", "values"), VALUES, ids=[type_ for type_, _ in VALUES])
def test_order_of_each_type_is_that_of_its_values(type_: str, values: list[object]) -> None:
    rows = [(value, number) for number, value in enumerate(values)]
    for by, want in (
        (col.x.asc(), [number + 1 for number in range(len(values))]),
        (col.x.desc(), [len(values) - number for number in range(len(values))]),
    ):
        found = _ask(lambda c, by=by: c.order_by(by).rank("place"), f"x: {type_}, n: int", rows)  # type: ignore[misc]
        assert [row[2] for row in sorted(found, key=lambda row: cast(int, row[1]))] == want


def test_order_nulls_come_where_they_are_wanted() -> None:
    rows: list[Row] = [(None,), (1,), (2,)]
    for by, first, last in (
        (col.x.asc(), None, 2),
        (col.x.asc(nulls_last=True), 1, None),
        (col.x.desc(), 2, None),
        (col.x.desc(nulls_last=False), None, 1),
    ):
        assert _ask(lambda c, by=by: c.order_by(by).first(), "x: int?", rows) == [(first,)]  # type: ignore[misc]
        assert _ask(lambda c, by=by: c.order_by(by).last(), "x: int?", rows) == [(last,)]  # type: ignore[misc]


def test_order_ties_are_broken_by_the_other_columns() -> None:
    rows = [(1, 5, 2), (1, 4, 9), (0, 8, 8)]
    assert _ask(lambda c: c.top_k(2, "a"), "a: int, b: int, c: int", rows) == [(0, 8, 8), (1, 4, 9)]


def test_order_by_an_expression_leaves_no_column_behind() -> None:
    rows = [(1, 9), (5, 5), (7, 1)]
    assert _ask(lambda c: c.top_k(1, (col.a - col.b).desc()), "a: int, b: int", rows) == [(7, 1)]


def test_order_latest_of_each_group() -> None:
    rows = [("x", 1, "old"), ("x", 3, "new"), ("y", 2, "only")]
    found = _ask(lambda c: c.group_by("k").last(by="t"), "k: string, t: int, v: string", rows)
    assert sorted(found, key=str) == [("x", 3, "new"), ("y", 2, "only")]


# columns_


def _numbers(schema: str = "k: int, v: int, name: string") -> Collection:
    return dd.input(Dataflow("queries"), "numbers", schema)


def test_columns_are_those_of_before_and_the_rank_behind() -> None:
    assert str(_numbers().top_k(3, "name", keys="v").schema) == "k: int, v: int, name: string"
    found = _numbers().group_by("v").top_k(3, col.name.desc(), rank="place", method="dense")
    assert str(found.schema) == "k: int, v: int, name: string, place: int"


def test_columns_explain_as_it_was_written() -> None:
    said = _numbers().group_by("k").top_k(3, [col.v.desc(), "name"], offset=2).explain()
    assert "top_k(3, by=[col.v.desc(), col.name.asc()], keys=k, offset=2)" in said
    assert (
        "top_k(all, by=[col.v.asc()], rank as place)"
        in _numbers().order_by("v").rank("place", "rank").explain()
    )


# refused_


def _refused(build: Callable[[Collection], object], schema: str = "k: int, v: int, name: string") -> str:
    with pytest.raises((SchemaError, ExpressionError)) as caught:
        build(_numbers(schema))
    return str(caught.value)


def test_refused_orders_that_are_none() -> None:
    assert "by='x'" in _refused(lambda c: c.top_k(3, []))
    assert "test_ordered.py" in _refused(lambda c: c.order_by(3))  # type: ignore[arg-type]
    assert "'missing'" in _refused(lambda c: c.order_by("missing").limit(1))
    assert "any" in _refused(lambda c: c.top_k(1, "v"), "k: int, v: any")


def test_refused_limits_and_ranks_that_make_no_sense() -> None:
    for limit, offset in ((0, 0), (-1, 0), (1, -1), (2.5, 0), (True, 0)):
        assert "at least 1" in _refused(lambda c, a=limit, b=offset: c.top_k(a, "v", offset=b))  # type: ignore[misc]
    assert "more than can be counted" in _refused(lambda c: c.top_k(2**62, "v", offset=2**62))
    assert "'k'" in _refused(lambda c: c.top_k(2, "v", rank="k"))
    assert "dense" in _refused(lambda c: c.top_k(2, "v", rank="r", method="ordinal"))  # type: ignore[arg-type]
    assert "twice" in _refused(lambda c: c.top_k(2, "v", keys=["k", "k"]))


@pytest.mark.parametrize("method", ["rank", "dense"])
def test_refused_ways_to_count_places_that_nothing_names(method: RankKind) -> None:
    for build in (
        lambda c: c.top_k(2, "v", method=method),
        lambda c: c.order_by("v").limit(2, method=method),
        lambda c: c.group_by("k").top_k(2, "v", method=method),
        lambda c: c.group_by("k").order_by("v").limit(2, method=method),
    ):
        told = _refused(build)
        assert "write ties=True" in told and repr(method) in told
        assert "test_ordered.py" in told


# cost_


@pytest.mark.parametrize(
    ("by", "wanted"),
    [("x", 10), (col.x.desc(), 10), ("name", 10), ([col.name.desc(), "x"], 3), (["name", "x"], 1)],
    ids=str,
)
def test_cost_a_change_looks_at_a_few_rows_of_a_large_group(by: By, wanted: int) -> None:
    """10,000 rows. Where the answer loses a row, `wanted` + 1 are walked; where nothing can change, none."""
    rows: list[Row] = [(x, f"{x * 7919 % 10_000:05}") for x in range(10_000)]

    def flow(dataflow: Dataflow) -> None:
        dd.input(dataflow, "rows", "x: int, name: string").top_k(wanted, by).output("found")

    cluster = Cluster(flow)
    cluster.change("rows", [(row, 1) for row in rows])
    cluster.seal()
    cluster.run()
    vertices = [one.vertex for one in cluster.instances[0].runners if isinstance(one.vertex, MachineVertex)]
    (machine,) = [one.machine.rows_in_order for one in vertices if isinstance(one.machine, FirstMachine)]
    for row in list(cluster.snapshot("found")):
        for diff in (-1, 1):
            before = machine.rows_walked
            cluster.change("rows", [(row, diff)])
            cluster.seal()
            cluster.run()
            # A row that has gone is walked over as long as it has not been summed away.
            assert machine.rows_walked - before <= 4 * wanted + 4
    before = machine.rows_walked
    behind = [row for row in rows[5000:5020] if row not in cluster.snapshot("found")]
    last = {str(row[1]) for row in cluster.snapshot("found")}
    assert len(behind) > 10 and last
    cluster.change("rows", [(row, -1) for row in behind])
    cluster.seal()
    cluster.run()
    if by in ("x", "name"):
        assert machine.rows_walked == before, "behind the answers nothing is looked at"


def test_cost_no_value_is_compared_where_long_texts_begin_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[int] = []

    def ranks(symbols: Int64s, table: SymbolTable) -> Int64s:
        compared.append(symbols.shape[0])
        return symbol_order.ranks(symbols, table)

    monkeypatch.setattr(layout, "ranks", ranks)
    begin = "https://example.org/archive/pages/"
    rows: list[Row] = [(x, f"{begin}{x * 7919 % 1000:04}") for x in range(1000)]

    def flow(dataflow: Dataflow) -> None:
        dd.input(dataflow, "rows", "x: int, name: string").top_k(2, "name").output("found")

    cluster = Cluster(flow)
    for some in (rows[:400], rows[400:]):
        cluster.change("rows", [(row, 1) for row in some])
        cluster.seal()
        cluster.run()
    assert [row[1] for row in sorted(cluster.snapshot("found"), key=str)] == [begin + "0000", begin + "0001"]
    for row in list(cluster.snapshot("found")):
        cluster.change("rows", [(row, -1)])
        cluster.seal()
        cluster.run()
    assert {row[1] for row in cluster.snapshot("found")} == {begin + "0002", begin + "0003"}
    assert not compared


def test_an_order_that_is_used_as_a_collection_says_what_is_to_be_taken_of_it() -> None:
    rows = dd.input(Dataflow(), "rows", "k: int, v: int")
    for order in (rows.order_by("v"), rows.group_by("k").order_by("v")):
        with pytest.raises(
            AttributeError, match=r"an order has no 'output'; take of it .*limit\(10\), first"
        ):
            order.output("o")  # type: ignore[attr-defined]
        assert copy.copy(order) is not order
