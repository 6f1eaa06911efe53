"""balancing.py: a balanced join is the join, at every time, in loops, on any number of workers.

meaning_*   against the plain definition, at random times of depth 1, 2 and 3
where_*     which stages there are, which rows they keep, and on which worker
refused_*   what a user may do wrong, and what he is told
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
from strategies_collections import examples, histories

import differential as dd
import timely
from differential import Collection, col
from differential.errors import SchemaError
from differential.trace.trace import Trace
from timely.building.dataflow import Dataflow
from timely.errors import GraphError
from timely.routing.announcement import KEY, RoutingCell, RoutingChanges
from timely.routing.grid import Grid
from timely.running.instance import Instance

BALANCES = {
    "hash": dd.Balance("hash", units=4),
    "matrix of a row": dd.Balance("matrix", units=4, shares=1),
    "matrix": dd.Balance("matrix", units=9),
    "JB": dd.Balance("JB", units=5),
    "JB6": dd.Balance("JB6", units=9, groups=2),
    "D-JB": dd.Balance("D-JB", units=3),
    "of one unit": dd.Balance("matrix", units=1),
}
BALANCED = pytest.mark.parametrize("balance", BALANCES.values(), ids=BALANCES)

workers = st.integers(1, 3)
seeds = st.integers(0, 2**20)


def _nulls(source: Collection, v: str = "v") -> Collection:
    """The same, where negative keys are null."""
    return source.select(k=dd.when(col.k >= 0).then(col.k), **{v: col.v})


def _nulls_plainly(rows: Rows) -> Rows:
    return plainly.map_rows(rows, lambda row: (row[0] if cast("int", row[0]) >= 0 else None, row[1]))


# meaning_


@pytest.mark.parametrize("depth", [1, 2, 3])
@BALANCED
def test_meaning_of_the_join_at_every_time(balance: dd.Balance, depth: int) -> None:
    def build(a: Collection, b: Collection) -> Collection:
        return _nulls(a).join(b.select(k=col.k, w=col.v), on="k", balance=balance)

    @examples(0.5)
    @given(histories(depth), histories(depth), workers, seeds)
    def holds(left: list[Change], right: list[Change], workers: int, seed: int) -> None:
        check_at_times(
            build,
            lambda a, b: plainly.joined(_nulls_plainly(a), b, "inner"),
            [left, right],
            depth=depth,
            workers=workers,
            seed=seed,
        )

    holds()


@pytest.mark.parametrize("depth", [1, 2])
@BALANCED
def test_meaning_where_null_equals_null_and_pairs_have_conditions(balance: dd.Balance, depth: int) -> None:
    def build(a: Collection, b: Collection) -> Collection:
        condition = (col.v <= col.w) & (col.v != 1)
        found = _nulls(a).join(_nulls(b, "w"), on="k", where=condition, null_safe=True, balance=balance)
        return found.select("w", "k")

    def plain(a: Rows, b: Rows) -> Rows:
        found = plainly.joined(
            _nulls_plainly(a),
            _nulls_plainly(b),
            "inner",
            of_left=lambda row: row[1] != 1,
            of_pairs=lambda one, other: cast("int", one[1]) <= cast("int", other[1]),
            null_safe=True,
        )
        return plainly.map_rows(found, lambda row: (row[2], row[0]))

    @examples(0.5)
    @given(histories(depth), histories(depth), workers, seeds)
    def holds(left: list[Change], right: list[Change], workers: int, seed: int) -> None:
        check_at_times(build, plain, [left, right], depth=depth, workers=workers, seed=seed)

    holds()


@BALANCED
def test_meaning_of_all_pairs_and_of_a_collection_with_itself(balance: dd.Balance) -> None:
    def build(a: Collection) -> Collection:
        both = a.join(a.select(x=col.k, y=col.v), how="cross", balance=balance)
        return both.join(a, on={"x": "k", "y": "v"}, balance=balance)

    @examples(0.5)
    @given(histories(2, size_max=6), workers, seeds)
    def holds(changes: list[Change], workers: int, seed: int) -> None:
        check_at_times(build, _itself_plainly, [changes], depth=2, workers=workers, seed=seed)

    holds()


def _itself_plainly(a: Rows) -> Rows:
    """(x, y, k, v) for each pair of rows, where (x, y) is there once more."""
    found: Rows = Counter()
    for one, count in a.items():
        for other, times in a.items():
            found[(*other, *one)] += count * times * times
    return plainly.collection(found)


@pytest.mark.parametrize("depth", [1, 2])
@BALANCED
def test_meaning_in_a_loop(balance: dd.Balance, depth: int) -> None:
    """Both sides go round; one of them is entered as well."""

    def build(roots: Collection, edges: Collection) -> Collection:
        along = edges.distinct().select(src=col.k, dst=col.v)
        start = roots.distinct()
        return start.iterate(
            lambda r: (
                r.join(along, on={"v": "src"}, balance=balance)
                .select(k=col.k, v=col.dst)
                .concat(
                    start,
                    r.join(r.select(v=col.k, w=col.v), on="v", balance=balance).select(k=col.k, v=col.w),
                )
                .distinct()
            ),
        )

    def plain(roots: Rows, edges: Rows) -> Rows:
        along = [row for row, count in edges.items() if count > 0]
        start = plainly.distinct(roots)

        def step(reached: Rows) -> Rows:
            further = [(k, w) for k, v in reached for u, w in [*along, *reached] if u == v]
            return plainly.distinct(plainly.concat(plainly.collection(further), start))

        return plainly.iterate(start, step)

    @examples(0.3)
    @given(histories(depth, size_max=6), histories(depth, size_max=6), workers, seeds)
    def holds(left: list[Change], right: list[Change], workers: int, seed: int) -> None:
        check_at_times(build, plain, [left, right], depth=depth, workers=workers, seed=seed)

    holds()


# where_


def _cluster(balance: dd.Balance | None, workers: int = 2) -> Cluster:
    def build(flow: Dataflow) -> None:
        a, b = dd.input(flow, "a", "k: int, v: int"), dd.input(flow, "b", "k: int, w: int")
        a.join(b, on="k", balance=balance).output("pairs")

    return Cluster(build, workers)


def _kept(cluster: Cluster) -> list[Counter[int]]:
    """By worker: how many rows it keeps in each unit."""
    found: list[Counter[int]] = []
    for instance in cluster.instances:
        kept: Counter[int] = Counter()
        for trace in _traces(instance):
            kept.update(trace.words()[trace.kw - 1].tolist())
        found.append(kept)
    return found


def _traces(instance: Instance) -> list[Trace]:
    return [trace for held in traces(instance).values() for trace in held]


def _hot(cluster: Cluster, rows: int) -> None:
    """One key has all rows of both sides."""
    for name in ("a", "b"):
        cluster.change(name, [((7, n), 1) for n in range(rows)])
    cluster.seal()
    cluster.run()


@pytest.mark.parametrize("workers", [1, 2, 3])
@BALANCED
def test_where_rows_are_kept_is_said_by_units_alone_whatever_the_workers_are(
    balance: dd.Balance, workers: int
) -> None:
    alone, several = _cluster(balance, 1), _cluster(balance, workers)
    for cluster in (alone, several):
        _hot(cluster, 40)
        assert cluster.snapshot("pairs").total() == 1_600
    (wanted,) = _kept(alone)
    kept = _kept(several)
    assert sum(kept, Counter[int]()) == wanted
    for worker, units in enumerate(kept):
        assert all(unit % workers == worker for unit in units)


def test_where_a_hot_key_is_spread_and_where_it_is_not() -> None:
    sizes: dict[str, list[int]] = {}
    for name, balance in BALANCES.items():
        cluster = _cluster(balance, 1)
        _hot(cluster, 400)
        sizes[name] = sorted(_kept(cluster)[0].values())
    assert sizes["hash"] == [800], "all of it in one unit"
    assert sizes["D-JB"] == [400, 400], "and of either side, as nothing has been split yet"
    assert sum(sizes["JB"]) == 800 and len(sizes["JB"]) == 5 and sizes["JB"][0] > 100
    assert sum(sizes["matrix"]) == 400 * 2 + 400 * 4 and len(sizes["matrix"]) == 8
    assert len(sizes["matrix of a row"]) == 4 and sum(sizes["matrix of a row"]) == 400 * 4 + 400
    assert sum(sizes["JB6"]) == 800 and 2 <= len(sizes["JB6"]) <= 5


@BALANCED
def test_where_nothing_is_left_nothing_is_kept(balance: dd.Balance) -> None:
    cluster = _cluster(balance, 2)
    _hot(cluster, 30)
    for name in ("a", "b"):
        cluster.change(name, [((7, n), -1) for n in range(30)])
    for _ in range(3):
        cluster.seal()
        cluster.run()
    for instance in cluster.instances:
        for trace in _traces(instance):
            trace.compact()
    assert sum(_kept(cluster), Counter[int]()) == Counter()
    assert not cluster.snapshot("pairs")


def _stages(build: Callable[[Dataflow], None]) -> Counter[str]:
    flow = Dataflow("tested")
    build(flow)
    names = [stage.name.split(" in ")[0] for stage in flow.freeze().stages]
    return Counter(name for name in names if "put " not in name)


def test_where_two_joins_ask_for_the_same_rows_these_are_kept_once() -> None:
    def build(flow: Dataflow) -> None:
        a, b, c = (dd.input(flow, name, f"k: int, {name}: int") for name in "abc")
        for balance in (dd.Balance("hash", units=8), dd.Balance("JB", units=8)):
            for number, other in enumerate((b, c)):
                a.join(other, on="k", balance=balance).output(f"{balance.scheme} {number}")

    found = _stages(build)
    assert found["join on k and (unit)"] == 2
    assert found["look up k, (unit)"] == 4
    assert found["arrange by k, (unit)"] == 1 + 3, "of the cells a alone; of the halves all three"


def test_where_conditions_and_columns_go() -> None:
    flow = Dataflow("tested")
    a, b = dd.input(flow, "a", "k: int, v: int, x: string"), dd.input(flow, "b", "k: int, w: int")
    for scheme in ("hash", "JB"):
        found = a.join(b, on="k", balance=dd.Balance(scheme, units=8)).filter(col.v > 3).select("k", "w")
        plan = found.explain().split("== after the rules")[1]
        tree, stages = plan.split("== stages")
        lines = [line.strip() for line in tree.splitlines()]
        (filtered,) = (place for place, line in enumerate(lines) if "filter(col.v > 3)" in line)
        assert lines[filtered + 1].startswith("input a"), "before it is copied"
        assert "[by unit" in stages and "by key of" not in stages


# refused_


def test_refused_joins_that_are_not_spread() -> None:
    flow = Dataflow("tested")
    a, b = dd.input(flow, "a", "k: int, v: int"), dd.input(flow, "b", "k: int, w: int")
    with pytest.raises(SchemaError, match="'inner' and 'cross', not 'left'"):
        a.join(b, on="k", how="left", balance=dd.Balance())
    with pytest.raises(SchemaError, match="write dd.Balance"):
        a.join(b, on="k", balance="hash")  # type: ignore[arg-type]
    named = b.select(**{"k": col.k, "(unit)": col.w})
    with pytest.raises(SchemaError, match="rename that column"):
        a.join(named, on="k", balance=dd.Balance())


def test_refused_routings_that_change_where_they_cannot() -> None:
    flow = Dataflow("tested")
    a, b = dd.input(flow, "a", "k: int, v: int"), dd.input(flow, "b", "k: int, w: int")
    routed = dd.Routed(dd.Balance("hash", units=4), dd.announcements(flow))
    with pytest.raises(GraphError, match="outside of all loops"):
        a.iterate(lambda x: x.join(b, on="k", balance=routed).select("k", v=col.w).concat(a).distinct())
    with pytest.raises(GraphError, match="two dataflows"):
        other = Dataflow("other")
        a.join(b, on="k", balance=dd.Routed(dd.Balance("hash"), dd.announcements(other)))
    with pytest.raises(SchemaError, match="announcements are"):
        a.join(b, on="k", balance=dd.Routed(dd.Balance("hash", units=4), a))
    for settings, words in (
        ((None, a), "is no dd.Balance"),
        ((dd.Balance(), None), "are a collection"),
        ((dd.Balance(), a, -1), "lead is 0 to 1,000"),
        ((dd.Balance(), a, True), "lead is 0 to 1,000"),
    ):
        with pytest.raises(SchemaError, match=words):
            dd.Routed(*settings)  # type: ignore[misc, arg-type]
    with pytest.raises(SchemaError, match="is no join with balance=dd.Routed"):
        dd.loads(a.join(b, on="k", balance=dd.Balance("hash", units=4)))


def test_where_rows_of_a_routed_join_travel_as_a_plan() -> None:
    with timely.connect(workers=2, embedded=True) as cluster:
        flow = cluster.install(_routed)
        flow.input("a").insert([(1, 2), (None, 3)])
        flow.input("b").insert([(1, 5)])
        flow.seal()
        assert flow.output("pairs").snapshot().to_pylist() == [{"k": 1, "v": 2, "w": 5}]


def _routed(flow: Dataflow) -> None:
    a, b = dd.input(flow, "a", "k: int?, v: int"), dd.input(flow, "b", "k: int, w: int")
    routed = dd.Routed(dd.Balance("D-JB", units=4), dd.announcements(flow))
    a.join(b, on="k", balance=routed).output("pairs")


def test_where_a_key_is_spoken_of_by_its_hash() -> None:
    """A text and a number: what is announced of it moves its rows, and no others."""
    schema = "name: string, day: int"

    def build(flow: Dataflow) -> None:
        a = dd.input(flow, "a", f"{schema}, v: int")
        b = dd.input(flow, "b", f"w: int, {schema}")
        routed = dd.Routed(dd.Balance("D-JB", units=4), dd.announcements(flow))
        dd.loads(a.join(b, on=["name", "day"], balance=routed)).output("loads")

    cluster = Cluster(build)
    cluster.change("a", [((name, 3, 5), 1) for name in ("x", "y", "z")])
    said = RoutingChanges(None, {RoutingCell(KEY, 0, dd.key_hash(["y", 3], schema)): Grid.alone(3)})
    cluster.change("routes", [(tuple(row), 1) for row in said.announcements()])
    cluster.seal(4)
    cluster.run()
    assert {load for load in cluster.snapshot("loads") if load[:2] == (0, 3)} == {
        (0, 3, dd.key_hash(["y", 3], schema) % 1_024, what) for what in (0, 3)
    }
