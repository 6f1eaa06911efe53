"""dividing.py: groups in parts, of which the first rows are the first ones.

meaning_*   against the plain definition, at every time, with several workers, retractions and in loops
where_*     the rows of a hot key are on all workers, and what is sent to where it belongs is little
refused_*   what needs whole groups, and what is no balance
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import collection as plainly
from reference.collection import Collection as Rows
from reference.dataflow import Change, Cluster, check_at_times, traces
from strategies_collections import UNARY, examples, histories

import differential as dd
from differential import Collection, col
from differential.errors import SchemaError
from differential.expressions.expression import Expr
from differential.operators.reduce import RankKind
from timely.building.dataflow import Dataflow

DIVIDING = {
    "JB": dd.Balance("JB", units=5),
    "JB6": dd.Balance("JB6", units=7, groups=3),
    "matrix": dd.Balance("matrix", units=6),
}
WHOLE = {"hash": dd.Balance("hash", units=4), "D-JB": dd.Balance("D-JB", units=4)}

workers = st.integers(1, 3)
seeds = st.integers(0, 2**20)


# meaning_


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("name", ["max of divided groups", "top 2 of a divided key"])
def test_meaning_at_every_time(name: str, depth: int) -> None:
    @examples(1)
    @given(histories(depth, size_max=14), workers, seeds)
    def holds(changes: list[Change], workers: int, seed: int) -> None:
        operator = UNARY[name]
        check_at_times(operator.build, operator.plain, [changes], depth=depth, workers=workers, seed=seed)

    holds()


def _all_chosen(c: Collection, balance: dd.Balance | None) -> Collection:
    found = c.group_by("k", balance=balance).agg(
        n=dd.count(),
        least=dd.min("v"),
        most=dd.max(dd.when(col.v > 0).then(col.v)),
        at=dd.argmin(col.v * 2, by=col.v % 2),
        first=dd.first("v", by=col.v % 3),
        last=dd.last("v", by=[col.v % 2, "v"]),
        kinds=dd.count_distinct("v"),
        total=dd.sum("v"),
    )
    said = ["n", "least", "most", "at", "first", "last", "kinds", "total"]
    mixed: Expr = dd.lit(0)
    for number, name in enumerate(said):
        mixed = mixed * 7 + col[name].fill_null(-5) * (number + 1)
    return found.select(k=col.k, v=mixed)


@pytest.mark.parametrize("balance", (DIVIDING | WHOLE).values(), ids=DIVIDING | WHOLE)
def test_meaning_of_all_that_is_chosen_is_that_of_whole_groups(balance: dd.Balance) -> None:
    """Which are held against their definitions elsewhere; negative multiplicities, too."""

    def build(c: Collection) -> Collection:
        whole, divided = _all_chosen(c, None), _all_chosen(c, balance)
        return whole.negate().concat(divided)

    @examples(0.5)
    @given(histories(2, size_max=14), workers, seeds)
    def holds(changes: list[Change], workers: int, seed: int) -> None:
        check_at_times(build, lambda rows: Counter(), [changes], depth=2, workers=workers, seed=seed)

    holds()


@pytest.mark.parametrize("method", ["row_number", "rank", "dense"])
@pytest.mark.parametrize("balance", DIVIDING.values(), ids=DIVIDING)
def test_meaning_of_places_behind_an_offset(balance: dd.Balance, method: RankKind) -> None:
    def top(c: Collection, by: dd.Balance | None) -> Collection:
        found = c.group_by("k", balance=by).top_k(2, by=col.v.desc(), offset=1, rank="at", method=method)
        return found.select(k=col.k * 10 + col.at, v=col.v)

    def build(c: Collection) -> Collection:
        return top(c, None).negate().concat(top(c, balance))

    @examples(0.5)
    @given(histories(1, size_max=14), workers, seeds)
    def holds(changes: list[Change], workers: int, seed: int) -> None:
        check_at_times(build, lambda rows: Counter(), [changes], depth=1, workers=workers, seed=seed)

    holds()


@pytest.mark.parametrize("depth", [1, 2])
def test_meaning_in_a_loop_and_of_all_rows(depth: int) -> None:
    """The least value there is comes to all keys, however far it may have come from."""

    def build(c: Collection) -> Collection:
        balance = DIVIDING["JB"]

        def body(x: Collection) -> Collection:
            least = x.group_by(balance=balance).agg(v=dd.min("v")).filter(~col.v.is_null())
            moved = (
                x.select("k").join(least.select(w=col.v), how="cross").select(k=col.k, v=col.w.fill_null(0))
            )
            return x.concat(moved).group_by("k", balance=balance).agg(v=dd.min("v"))

        return c.distinct().iterate(body)

    def plain(rows: Rows) -> Rows:
        there = plainly.distinct(rows)
        least = min((cast("int", row[1]) for row in there), default=0)
        return Counter({(row[0], least): 1 for row in there})

    @examples(0.5)
    @given(histories(depth), workers, seeds)
    def holds(changes: list[Change], workers: int, seed: int) -> None:
        check_at_times(build, plain, [changes], depth=depth, workers=workers, seed=seed)

    holds()


# where_


def _run(operator: Callable[[Collection], Collection], rows: int) -> Cluster:
    def build(flow: Dataflow) -> None:
        operator(dd.input(flow, "a", "k: int, v: int")).output("found")

    cluster = Cluster(build, 3)
    cluster.change("a", [((7, n), 1) for n in range(rows)])
    cluster.seal()
    cluster.run()
    return cluster


@pytest.mark.parametrize("name", ["max", "top"])
def test_where_the_rows_of_a_hot_key_are(name: str) -> None:
    def operator(balance: dd.Balance | None) -> Callable[[Collection], Collection]:
        if name == "max":
            return lambda c: c.group_by("k", balance=balance).agg(v=dd.max("v"))
        return lambda c: c.group_by("k", balance=balance).top_k(1, by=col.v.desc())

    def kept(cluster: Cluster) -> list[int]:
        return [
            sum(trace.rows for held in traces(instance).values() for trace in held)
            for instance in cluster.instances
        ]

    whole = kept(_run(operator(None), 600))
    assert sorted(whole)[:2] == [0, 0] and max(whole) >= 600, "one worker has all of it"
    cluster = _run(operator(dd.Balance("JB", units=12)), 600)
    assert all(150 <= rows <= 300 for rows in kept(cluster)), kept(cluster)
    assert cluster.changes("found") == {(0,): Counter({(7, 599): 1})}
    in_groups = kept(_run(operator(dd.Balance("JB6", units=12, groups=12)), 600))
    assert sorted(in_groups)[:2] == [0, 0] or max(in_groups) >= 600, "each group is a unit"


def test_where_a_key_is_in_one_unit_nothing_is_added_to_the_plan() -> None:
    def stages(balance: dd.Balance | None) -> int:
        flow = Dataflow()
        c = dd.input(flow, "a", "k: int, v: int")
        c.group_by("k", balance=balance).agg(v=dd.max("v"), n=dd.count()).output("found")
        return len(flow.freeze().stages)

    assert stages(WHOLE["hash"]) == stages(WHOLE["D-JB"]) == stages(None) == stages(DIVIDING["JB"]) - 1


# refused_


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda c: c.group_by("k", balance=5), r"balance=5 is no balance: write dd.Balance"),
        (lambda c: c.group_by("k", balance=col.v), "For a key of that name write"),
        (
            lambda c: c.group_by("k", balance=DIVIDING["JB"]).reduce(lambda k, rows: [1], "v: int"),
            "all its rows",
        ),
        (lambda c: c.group_by("k", balance=DIVIDING["JB"]).rank("at", by="v"), "number all rows"),
        (
            lambda c: c.group_by("k", balance=DIVIDING["JB"]).agg(l=dd.collect("v")),
            "needs all values of its group",
        ),
        (lambda c: c.group_by("k", balance=DIVIDING["JB"]).agg(l=dd.collect_set("v")), "leave out balance="),
        (
            lambda c: (
                c.select(**{"(unit)": col.v, "k": col.k}).group_by("k", balance=DIVIDING["JB"]).last("(unit)")
            ),
            "called '\\(unit\\)'",
        ),
    ],
)
def test_refused_is_what_needs_whole_groups(build: Callable[[Collection], object], words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        build(dd.input(Dataflow(), "a", "k: int, v: int"))
