"""loops.py: loops to the fixed point.

meaning_*   what leaves is the fixed point from scratch, at every outer time; round n is the n-th iterate
nested_*    loops in loops: reachability in rounds, strongly connected components
limit_*     a loop that never ends is stopped with an error
refused_*   bodies that are none
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np
import operators_of_loops
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import collection as plainly
from reference.collection import Collection as Rows
from reference.collection import Row, accumulated_at, history
from reference.dataflow import Build, Change, Cluster, check_at_times, run_at_times
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components as components_of
from strategies_collections import BINARY, NUMBERS, UNARY, examples, histories, reach, reach_plainly

import differential as dd
import timely
from differential import Collection, col
from differential.errors import ExpressionError, SchemaError
from progress.errors import GraphError, MisuseError
from timely.building.dataflow import Dataflow

workers = st.integers(1, 3)
seeds = st.integers(0, 2**20)
edges = st.tuples(st.integers(0, 4), st.integers(0, 4))


# meaning_


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize(
    "name", ["climb in a loop", "least label in a loop", *(name for name, _, _ in operators_of_loops.UNARY)]
)
def test_meaning_is_the_fixed_point_at_every_outer_time(name: str, depth: int) -> None:
    @examples(1)
    @given(histories(depth), workers, seeds)
    def holds(changes: list[Change], workers: int, seed: int) -> None:
        operator = UNARY[name]
        check_at_times(operator.build, operator.plain, [changes], depth=depth, workers=workers, seed=seed)

    holds()


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("name", ["reach in a loop", "in turns in a loop"])
def test_meaning_with_a_collection_of_the_scope_around_it(name: str, depth: int) -> None:
    @examples(1)
    @given(histories(depth, edges), histories(depth, edges), workers, seeds)
    def holds(roots: list[Change], links: list[Change], workers: int, seed: int) -> None:
        operator = BINARY[name]
        check_at_times(
            operator.build, operator.plain, [roots, links], depth=depth, workers=workers, seed=seed
        )

    holds()


ROUNDS = 6


Watch = Callable[[Collection], Collection]


def _looked_at(build: Callable[[Collection, Collection, Watch], Collection], seen: list[Change]) -> Build:
    """The loop, with all updates of its variable in `seen`."""

    def look(row: tuple[object, ...], time: tuple[int, ...], diff: int) -> None:
        seen.append((cast(Row, row), time, diff))

    return lambda start, other: build(start, other, lambda x: x.inspect(look))


def _stateless(start: Collection, other: Collection, watch: Watch) -> Collection:
    return start.iterate(lambda x: _one_round("stateless", watch(x), start, other))


def _stateless_plainly(start: Rows, other: Rows) -> tuple[Rows, Callable[[Rows], Rows]]:
    return start, lambda rows: plainly.map_rows(rows, lambda row: (row[0], min(cast(int, row[1]) + 1, 9)))


def _growing(start: Collection, other: Collection, watch: Watch) -> Collection:
    """Begins with what it adds in each round, so that rounds only grow: a loop that swings has no end."""
    own = start.distinct()
    return own.iterate(lambda x: _one_round("growing", watch(x), own, other))


def _one_round(name: str, x: Collection, own: Collection, other: Collection) -> Collection:
    """What both loops do in an iteration."""
    if name == "stateless":
        return x.select(k=col.k, v=dd.min_of(col.v + 1, 9))
    pairs = x.join(other.select(k=col.k, w=col.v), on="k")
    return pairs.select(k=col.w, v=dd.min_of(col.v + 1, 5)).concat(own).distinct()


def _growing_plainly(start: Rows, other: Rows) -> tuple[Rows, Callable[[Rows], Rows]]:
    own = plainly.distinct(start)

    def step(rows: Rows) -> Rows:
        pairs = plainly.join(rows, other)
        moved = plainly.map_rows(pairs, lambda row: (row[2], min(cast(int, row[1]) + 1, 5)))
        return plainly.distinct(plainly.concat(moved, own))

    return own, step


LOOPS = {"stateless": (_stateless, _stateless_plainly), "growing": (_growing, _growing_plainly)}
"""Loops over (start, other), and their bodies from scratch; not at their fixed points after ROUNDS."""


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("name", LOOPS)
def test_meaning_round_n_is_the_nth_iterate_at_every_outer_time(name: str, depth: int) -> None:
    build, body = LOOPS[name]
    positive = (1, 2)
    seen: list[Change] = []
    looked_at = _looked_at(build, seen)

    @examples(1)
    @given(histories(depth), histories(depth, edges, diffs=positive), workers, seeds)
    def holds(start: list[Change], other: list[Change], workers: int, seed: int) -> None:
        seen.clear()
        run_at_times(looked_at, [start, other], depth=depth, workers=workers, seed=seed)
        actual = history(seen)
        outer = plainly.closure({time for _, time, _ in (*start, *other)})
        for time in outer:
            at_time = [accumulated_at(history(changes), time) for changes in (start, other)]
            rounds = plainly.iterate_rounds(*body(*at_time), ROUNDS)
            for number, wanted in enumerate(rounds):
                assert accumulated_at(actual, (*time, number)) == wanted, (time, number)

    holds()


def test_meaning_a_loop_that_changes_nothing_gives_what_it_got() -> None:
    changes: list[Change] = [((1, 2), (0,), 2), ((3, 4), (1,), -1)]
    check_at_times(lambda c: c.iterate(lambda x: x), lambda rows: rows, [changes], depth=1)
    check_at_times(lambda c: c.iterate(lambda x: c), lambda rows: rows, [changes], depth=1)


@pytest.mark.parametrize("times", [1, 2, 5])
@pytest.mark.parametrize("name", LOOPS)
def test_meaning_so_many_times_is_that_iterate(name: str, times: int) -> None:
    """The same loops, told to stop; where the body is stateless nothing but the limit ends them in time."""
    build, body = LOOPS[name]

    def stopped(first: Collection, second: Collection) -> Collection:
        own = first.distinct() if name == "growing" else first
        return own.iterate(lambda x: _one_round(name, x, own, second), times=times)

    def plain(first: Rows, second: Rows) -> Rows:
        return plainly.iterate_rounds(*body(first, second), times)[-1]

    @examples(0.5)
    @given(histories(1), histories(1, edges, diffs=(1, 2)), workers, seeds)
    def holds(start: list[Change], other: list[Change], workers: int, seed: int) -> None:
        check_at_times(stopped, plain, [start, other], depth=1, workers=workers, seed=seed)

    holds()


def test_meaning_a_nested_loop_may_stop_in_one_that_does_not() -> None:
    def build(c: Collection) -> Collection:
        return c.iterate(
            lambda x: (
                x.iterate(lambda y: y.select(k=col.k, v=dd.min_of(col.v + 1, 9)), times=2)
                .concat(x)
                .distinct()
            )
        )

    def plain(rows: Rows) -> Rows:
        def step(now: Rows) -> Rows:
            twice = plainly.map_rows(now, lambda row: (row[0], min(cast(int, row[1]) + 1, 9)))
            twice = plainly.map_rows(twice, lambda row: (row[0], min(cast(int, row[1]) + 1, 9)))
            return plainly.distinct(plainly.concat(twice, now))

        return plainly.iterate(rows, step)

    changes: list[Change] = [((1, 2), (0,), 1), ((3, 8), (1,), 1), ((1, 2), (2,), -1)]
    check_at_times(build, plain, [changes], depth=1)


# nested_


def _even_rounds(roots: Collection, along: Collection) -> Collection:
    """Inner loop: all that can be reached. Outer loop: from the even ones among it, and the roots, again."""
    own = roots.distinct()
    return own.iterate(
        lambda x: reach(x, along).filter(col.v % 2 == 0).select(k=col.v, v=col.v).concat(own).distinct(),
        name="rounds",
    )


def _even_rounds_plainly(roots: Rows, along: Rows) -> Rows:
    own = plainly.distinct(roots)

    def step(rows: Rows) -> Rows:
        reached = plainly.filter_rows(reach_plainly(rows, along), lambda row: row[1] % 2 == 0)  # type: ignore[operator]
        again = plainly.map_rows(reached, lambda row: (row[1], row[1]))
        return plainly.distinct(plainly.concat(again, own))

    return plainly.iterate(own, step)


@pytest.mark.parametrize("depth", [1, 2])
def test_nested_reachability_in_rounds_at_every_time(depth: int) -> None:
    @examples(1)
    @given(histories(depth, edges, diffs=(1, 1, -1)), histories(depth, edges), workers, seeds)
    def holds(roots: list[Change], links: list[Change], workers: int, seed: int) -> None:
        check_at_times(
            _even_rounds, _even_rounds_plainly, [roots, links], depth=depth, workers=workers, seed=seed
        )

    holds()


def _trimmed(cycle: Collection, links: Collection) -> Collection:
    """The links, turned round, whose ends get the same least label along `cycle`."""
    nodes = links.select(node=col.v, label=col.v).distinct()
    labels = nodes.iterate(
        lambda labels: (
            labels.join(cycle.select(node=col.k, to=col.v), on="node")
            .select(node=col.to, label=col.label)
            .concat(nodes)
            .group_by("node")
            .agg(label=dd.min("label"))
        ),
        name="labels",
    )
    return (
        links.join(labels.select(k=col.node, a=col.label), on="k")
        .join(labels.select(v=col.node, b=col.label), on="v")
        .filter(col.a == col.b)
        .select(k=col.v, v=col.k)
    )


def strongly_connected(links: Collection) -> Collection:
    """The links within strongly connected components: trim forwards and backwards until nothing changes."""
    graph = links.distinct()
    reverse = graph.select(k=col.v, v=col.k)
    return graph.iterate(lambda inner: _trimmed(_trimmed(inner, graph), reverse), name="components")


def strongly_connected_plainly(links: Rows) -> Rows:
    """The same by scipy."""
    graph = plainly.distinct(links)
    if not graph:
        return graph
    pairs = np.array(sorted(graph), dtype=np.int64)
    size = int(pairs.max()) + 1
    matrix = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(size, size))
    component = components_of(matrix, directed=True, connection="strong")[1]
    return plainly.filter_rows(graph, lambda row: component[row[0]] == component[row[1]])


@pytest.mark.parametrize("depth", [1, 2])
def test_nested_twice_strongly_connected_components_at_every_time(depth: int) -> None:
    @examples(1)
    @given(histories(depth, edges, size_max=14), workers, seeds)
    def holds(links: list[Change], workers: int, seed: int) -> None:
        check_at_times(
            strongly_connected, strongly_connected_plainly, [links], depth=depth, workers=workers, seed=seed
        )

    holds()


# limit_


def _counting(stop: int | None = None, **limit: int) -> Cluster:
    """A loop that counts from 1, to `stop` or for ever."""

    def build(flow: Dataflow) -> None:
        numbers = dd.input(flow, "numbers", NUMBERS)
        last = col.v + 1 if stop is None else dd.min_of(col.v + 1, stop)
        numbers.iterate(lambda x: x.select(k=col.k, v=last), name="counting", **limit).output("result")
        flow.level_bits = (40, 6)

    cluster = Cluster(build)
    cluster.change("numbers", [((1, 1), 1)])
    cluster.seal()
    return cluster


@pytest.mark.parametrize("limit", [{}, {"iterations_max": 9}])
def test_limit_a_loop_that_never_ends_is_stopped_by_name(limit: dict[str, int]) -> None:
    """Without a limit of its own a loop may go round as often as its counter can say: here 6 bits."""
    with pytest.raises(MisuseError) as caught:
        _counting(**limit).run()
    said = str(caught.value)
    assert "'tested / counting'" in said and "does not converge" in said and "iterations_max" in said
    assert f"limit of {limit.get('iterations_max', 62)} iterations" in said
    last = limit.get("iterations_max", 62)
    assert "rows that went on, on this worker: " in said.lower() and f"to iteration {last + 1}" in said
    assert f"(k=1, v={last + 1})" in said, "rows of the last rounds"
    assert "test_loops.py:" in said, "the user's line"


def test_limit_of_a_swinging_loop_shows_what_swings() -> None:
    def build(flow: Dataflow) -> None:
        numbers = dd.input(flow, "numbers", NUMBERS)
        swing = lambda x: x.select(k=1 - col.k, v=col.v).group_by("k").agg(v=dd.min("v"))  # noqa: E731
        numbers.iterate(swing, name="swinging", iterations_max=20).output("result")

    cluster = Cluster(build)
    cluster.change("numbers", [((1, 7), 1)])
    cluster.seal()
    with pytest.raises(MisuseError) as caught:
        cluster.run()
    said = str(caught.value)
    assert "(k=0, v=7) " in said and "(k=1, v=7) " in said and "+1 at 21" in said and "-1 at 20" in said


def test_limit_more_times_than_a_counter_holds_are_refused() -> None:
    def build(flow: Dataflow) -> None:
        flow.level_bits = (40, 6)
        numbers = dd.input(flow, "numbers", NUMBERS)
        numbers.iterate(lambda x: x, name="counting", times=64).output("result")

    with pytest.raises(GraphError, match=r"'tested / counting' .* is to go round 64 times.*holds 63"):
        Cluster(build)


def test_limit_a_loop_that_ends_in_time_is_not_stopped() -> None:
    """From 1 to 8 in seven rounds, and two more to see that nothing changes."""
    cluster = _counting(stop=8, iterations_max=9)
    cluster.run()
    assert cluster.snapshot("result") == plainly.collection([(1, 8)])


# refused_


def _refused(body: Callable[[Collection], object], error: type[Exception]) -> str:
    numbers = dd.input(Dataflow("queries"), "numbers", NUMBERS)
    with pytest.raises(error) as caught:
        numbers.iterate(body, name="closing")  # type: ignore[arg-type]  # that is the point
    return str(caught.value)


def test_refused_a_body_with_other_columns() -> None:
    said = _refused(lambda x: x.select("k"), SchemaError)
    assert "body of 'closing'" in said and "v is int in one, missing in the other" in said
    assert "body of 'closing'" in _refused(lambda x: x.select(k=col.k, v=col.v.cast("float")), SchemaError)


def test_refused_a_body_that_returns_nothing() -> None:
    said = _refused(lambda x: None, GraphError)
    assert "body of 'closing'" in said and "NoneType" in said


def _kept(where: list[Collection], x: Collection) -> Collection:
    where.append(x)
    return x


def test_refused_a_body_that_returns_a_collection_of_an_inner_loop() -> None:
    def body(x: Collection) -> Collection:
        inner: list[Collection] = []
        x.iterate(lambda y: _kept(inner, y).distinct(), name="inner")
        return inner[0]

    assert "is not inside it" in _refused(body, GraphError)


def test_body_may_give_its_columns_in_another_order() -> None:
    changes: list[Change] = [((1, 2), (0,), 1), ((2, 2), (1,), 1)]
    check_at_times(
        lambda c: c.iterate(lambda x: x.select("v", "k").distinct()), plainly.distinct, [changes], depth=1
    )


def test_body_may_give_nulls_where_only_a_filter_has_said_that_there_are_none_at_the_beginning() -> None:
    seen: list[str] = []
    looked: list[str] = []

    def build(flow: Dataflow) -> None:
        edges = dd.input(flow, "edges", "src: int?, dst: int?")
        roots = edges.filter(col.src == 1).select(node=col.src)

        def further(reached: Collection) -> Collection:
            seen.append(str(reached.schema))
            roots.inspect(lambda row, time, diff: looked.append("roots"))
            edges.output("edges")
            return reached.join(edges, on={"node": "src"}).select(node=col.dst).concat(roots).distinct()

        roots.iterate(further, name="reach").output("reached")

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(build)
        flow.input("edges").insert([(1, 2), (2, None), (None, 4), (2, 3)])
        flow.wait(flow.seal())
        found = flow.output("reached").snapshot()
        assert flow.output("edges").snapshot().num_rows == 4
    assert found.schema.field("node").nullable
    assert sorted(row["node"] or 0 for row in found.to_pylist()) == [0, 1, 2, 3]
    assert seen == ["node: int", "node: int?"] and looked == ["roots"]


def test_body_that_keeps_what_a_filter_has_said_is_called_once() -> None:
    seen: list[str] = []
    numbers = dd.input(Dataflow("queries"), "numbers", "k: int?, v: int")

    def same(x: Collection) -> Collection:
        seen.append(str(x.schema))
        return x.filter(col.v > 0)

    assert str(numbers.filter(col.k > 1).iterate(same).schema) == "k: int, v: int"
    assert seen == ["k: int, v: int"]
    said = _refused(lambda x: x.select("k", v=dd.when(col.v > 1).then(col.v)), SchemaError)
    assert "v is int in one, int? in the other" in said, "an input has said it, and it stays"


def _refused_together(start: dict[str, object], body: Callable[..., object], **options: object) -> str:
    numbers = dd.input(Dataflow("queries"), "numbers", NUMBERS)
    given_start = {name: numbers if value is None else value for name, value in start.items()}
    with pytest.raises((GraphError, SchemaError)) as caught:
        dd.iterate(given_start, body, name="closing", **options)  # type: ignore[arg-type]  # that is the point
    return str(caught.value)


def test_refused_collections_that_are_not_returned_by_name() -> None:
    start: dict[str, object] = {"a": None, "b": None}
    assert "return collections by name" in _refused_together(start, lambda a, b: (a, b))
    assert "must return a, b; it returned a" in _refused_together(start, lambda a, b: {"a": a})
    assert "body of 'closing' for 'b'" in _refused_together(start, lambda a, b: {"a": a, "b": b.select("k")})
    assert "begins with no collection" in _refused_together({"a": "k: int"}, lambda a: {"a": a})


def test_refused_bodies_with_other_parameters() -> None:
    said = _refused_together({"a": None}, lambda b: {"a": b})
    assert "called as body(a)" in said and "names of the collections" in said
    said = _refused_together({"a": None, "b": None}, lambda a: {"a": a, "b": a})
    assert "called as body(a, b)" in said
    assert "not int" in _refused_together({"a": None}, 7)  # type: ignore[arg-type]  # that is the point
    rows = dd.input(Dataflow("queries"), "rows", NUMBERS)
    with pytest.raises(GraphError, match=r"called as body\(found, begun\)"):
        rows.prioritized_iterate(lambda found: found, "k")  # type: ignore[arg-type,misc]


def test_refused_less_than_one_iteration() -> None:
    assert "times=0" in _refused_together({"a": None}, lambda a: {"a": a}, times=0)


def test_refused_numbers_of_iterations_of_another_kind() -> None:
    for argument in ("times", "iterations_max"):
        said = _refused_together({"a": None}, lambda a: {"a": a}, **{argument: "3"})
        assert f"'closing': {argument} is a whole number, not '3'" in said


def test_refused_priorities_that_are_no_whole_numbers() -> None:
    rows = dd.input(Dataflow("queries"), "rows", "name: string, n: int?")
    for priority in ("name", "n", col.n + 1):
        with pytest.raises(ExpressionError, match=r"test_loops\.py.*|a priority is a whole number"):
            rows.prioritized_iterate(lambda x, own: own, priority=priority)


@pytest.mark.parametrize("workers", [1, 2])
def test_variable_that_begins_empty_and_reads_itself_alone_stays_empty_and_is_complete(workers: int) -> None:
    """No input reaches its stages: nobody tells them that nothing will come."""

    def build(flow: Dataflow) -> None:
        numbers = dd.input(flow, "numbers", "n: int")
        found = dd.iterate(
            {"x": numbers, "z": "n: int", "w": "n: int"},
            lambda x, z, w: {"x": x.distinct(), "z": z.concat(w).distinct(), "w": w.select(n=col.n + 1)},
        )
        found["x"].output("x")
        found["z"].output("z")
        found["z"].group_by("n").agg(count=dd.count()).output("counts")

    with timely.connect(workers=workers, embedded=True) as cluster:
        flow = cluster.install(build)
        for epoch in range(3):
            flow.input("numbers").insert([(epoch,)])
            flow.wait(flow.seal(), timeout=60)
            assert flow.output("x").snapshot().num_rows == epoch + 1
            assert flow.output("z").snapshot().num_rows == flow.output("counts").changes().num_rows == 0
        flow.input("numbers").close()
        flow.wait(timeout=60)
        assert flow.output("z").snapshot().num_rows == 0
