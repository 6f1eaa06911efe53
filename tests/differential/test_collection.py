"""collection.py: what an operator puts out accumulates, at every time, to its plain definition.

meaning_*   linear operators, and random compositions of all operators, at times of depth 1, 2 and 3
same_*      what must not matter: epochs, batches, workers, how late messages are
refused_*   what a user may do wrong, and what he is told
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.collection import Collection as Rows
from reference.collection import Row, accumulated_at, collection, history
from reference.dataflow import Change, Cluster, check_at_times, compact_traces, trace_rows, traces
from strategies_collections import (
    BINARY,
    NUMBERS,
    UNARY,
    Composition,
    compositions,
    examples,
    histories,
)

import differential as dd
import timely
from differential import Collection, col
from differential.errors import ExpressionError, RowError, SchemaError, UserFunctionError
from progress.errors import GraphError
from timely.building.dataflow import Dataflow

LINEAR = ("select", "swap", "constant", "filter", "map", "flat_map", "negate", "concat with itself")
workers = st.integers(1, 3)
seeds = st.integers(0, 2**20)


# meaning_


@pytest.mark.parametrize("depth", [2, 3])
@pytest.mark.parametrize("name", LINEAR)
def test_meaning_of_a_linear_operator_at_every_time(name: str, depth: int) -> None:
    @examples(0.5)
    @given(histories(depth), workers, seeds)
    def holds(changes: list[Change], workers: int, seed: int) -> None:
        operator = UNARY[name]
        check_at_times(operator.build, operator.plain, [changes], depth=depth, workers=workers, seed=seed)

    holds()


@pytest.mark.parametrize("depth", [2, 3])
@pytest.mark.parametrize("name", ["concat", "concat in another order of columns", "difference"])
def test_meaning_of_sums_and_differences_at_every_time(name: str, depth: int) -> None:
    @examples(0.5)
    @given(histories(depth), histories(depth), workers, seeds)
    def holds(left: list[Change], right: list[Change], workers: int, seed: int) -> None:
        operator = BINARY[name]
        check_at_times(operator.build, operator.plain, [left, right], depth=depth, workers=workers, seed=seed)

    holds()


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_meaning_of_compositions_at_every_time(depth: int) -> None:
    @examples(2)
    @given(compositions(), histories(depth, size_max=6), histories(depth, size_max=6), workers, seeds)
    def holds(
        composed: Composition, left: list[Change], right: list[Change], workers: int, seed: int
    ) -> None:
        check_at_times(composed.build, composed.plain, [left, right], depth=depth, workers=workers, seed=seed)

    holds()


# same_


def _two_inputs(composed: Composition) -> Callable[[Dataflow], None]:
    def build(flow: Dataflow) -> None:
        inputs = [dd.input(flow, name, NUMBERS) for name in ("first", "second")]
        composed.build(*inputs).output("result")

    return build


def _accumulated(
    composed: Composition, inputs: list[list[Change]], epochs: list[int], workers: int, seed: int
) -> list[Rows]:
    """The result after tick 0, 1, … where tick i belongs to epoch epochs[i]."""
    cluster = Cluster(_two_inputs(composed), workers, seed)
    for name, changes in zip(("first", "second"), inputs, strict=True):
        for number, (row, (tick,), diff) in enumerate(changes):
            cluster.change(name, [(row, diff)], epochs[tick], worker=(seed + number) % workers)
    seals = [epoch for place, epoch in enumerate(epochs) if place + 1 == len(epochs) or seed >> place & 1]
    for epoch in seals:
        cluster.seal(epoch)
        if seed % 3:
            cluster.run()
    cluster.run()
    output = cluster.changes("result")
    assert cluster.snapshot("result") == accumulated_at(output, (max(epochs),))
    return [accumulated_at(output, (epoch,)) for epoch in epochs]


TICKS = 4


@given(
    compositions(),
    st.lists(histories(1, size_max=8), min_size=2, max_size=2),
    st.lists(st.integers(0, 2), min_size=TICKS, max_size=TICKS),
    st.tuples(workers, seeds),
    st.tuples(workers, seeds),
)
def test_same_result_however_the_input_is_cut_into_epochs_and_spread_over_workers(
    composed: Composition,
    inputs: list[list[Change]],
    steps: list[int],
    one: tuple[int, int],
    other: tuple[int, int],
) -> None:
    """Ticks 0 … 3 are epochs 0 … 3 in one run; in the other some are put together, or epochs left empty."""
    coarse = [sum(steps[: tick + 1]) for tick in range(TICKS)]
    every_tick = _accumulated(composed, inputs, list(range(TICKS)), *one)
    some_ticks = _accumulated(composed, inputs, coarse, *other)
    for tick in range(TICKS):
        if tick + 1 == TICKS or coarse[tick] != coarse[tick + 1]:
            plain = composed.plain(*(accumulated_at(history(changes), (tick,)) for changes in inputs))
            assert every_tick[tick] == some_ticks[tick] == plain


@examples(0.5)
@given(compositions(), st.lists(histories(1), min_size=2, max_size=2), workers, seeds)
def test_same_as_never_having_been_once_all_is_removed(
    composed: Composition, inputs: list[list[Change]], workers: int, seed: int
) -> None:
    """Outputs say what they say of empty inputs, and compacted traces hold nothing."""
    cluster = Cluster(_two_inputs(composed), workers, seed)
    for name, changes in zip(("first", "second"), inputs, strict=True):
        for row, (tick,), diff in changes:
            cluster.change(name, [(row, diff)], tick)
            cluster.change(name, [(row, -diff)], 10 + tick)
    cluster.seal(20)
    cluster.run()
    assert cluster.snapshot("result") == Rows()
    compact_traces(cluster)
    assert trace_rows(cluster) == 0, [traces(one) for one in cluster.instances]


# refused_


def _refused(build: Callable[[Collection], object], error: type[Exception]) -> str:
    """What a user is told who writes `build` over a collection (k: int, v: int, name: string)."""
    with pytest.raises(error) as caught:
        build(dd.input(Dataflow("queries"), "numbers", "k: int, v: int, name: string"))
    return str(caught.value)


def test_refused_a_column_that_is_not_there() -> None:
    for build in (
        lambda c: c.select("missing"),
        lambda c: c.select(x=col.missing + 1),
        lambda c: c.filter(col.missing > 1),
        lambda c: c.group_by("missing"),
        lambda c: c.join(c.select("k"), on="missing"),
    ):
        said = _refused(build, (SchemaError, ExpressionError))  # type: ignore[arg-type]  # either will do
        assert "'missing'" in said and "k: int, v: int, name: string" in said


def test_refused_an_expression_without_a_name() -> None:
    assert "write select(name=" in _refused(lambda c: c.select(col.k + 1), SchemaError)


def test_refused_a_condition_that_is_none() -> None:
    said = _refused(lambda c: c.filter(col.k + 1), ExpressionError)
    assert "needs a condition" in said and "int" in said and "test_collection.py" in said


def test_refused_what_is_no_function() -> None:
    for build, name in ((lambda c: c.map(5), "map"), (lambda c: c.flat_map(5), "flat_map")):
        said = _refused(build, ExpressionError)
        assert re.fullmatch(name + r"\(5\) \(.*test_collection.py:\d+\) needs a function\.", said)


def test_refused_the_sum_of_different_columns() -> None:
    said = _refused(lambda c: c.concat(c.select("k", "v")), SchemaError)
    assert "concat" in said and "(k: int, v: int, name: string)" in said and "select" in said
    assert "concat" in _refused(lambda c: c.concat(c.select("k", "v", name=col.k)), SchemaError)


def test_refused_collections_of_two_dataflows() -> None:
    other = dd.input(Dataflow("other"), "numbers", "k: int, v: int, name: string")
    assert "two dataflows" in _refused(lambda c: c.concat(other), GraphError)
    assert "two dataflows" in _refused(lambda c: c.join(other, on="k"), GraphError)


def test_refused_something_that_is_no_collection() -> None:
    said = _refused(lambda c: c.concat([1, 2]), GraphError)  # type: ignore[arg-type]  # that is the point
    assert "collection" in said and "list" in said


def _kept(where: list[Collection], x: Collection) -> Collection:
    where.append(x)
    return x


def test_refused_an_inner_collection_outside_its_loop() -> None:
    def leaked(numbers: Collection) -> tuple[Collection, Collection]:
        inner: list[Collection] = []
        closed = numbers.iterate(lambda x: _kept(inner, x).distinct(), name="closing")
        return closed, inner[0]

    uses: list[Callable[[Collection, Collection], Collection]] = [
        lambda closed, inner: inner,
        lambda closed, inner: closed.concat(inner.distinct()),
        lambda closed, inner: closed.join(inner.select(k=col.k, w=col.v), on="k"),
    ]
    for use in uses:
        with pytest.raises(GraphError) as caught:
            use(*leaked(dd.input(Dataflow("queries"), "numbers", NUMBERS))).output("x")
        said = str(caught.value)
        assert "output 'x'" in said and "queries / closing" in said
        assert "only what `iterate` returns leaves a loop" in said


def test_refused_an_inner_collection_in_another_loop() -> None:
    def mix(numbers: Collection) -> None:
        inner: list[Collection] = []
        numbers.iterate(lambda x: _kept(inner, x).distinct(), name="one")
        numbers.iterate(lambda x: x.concat(inner[0]).distinct(), name="two")

    with pytest.raises(GraphError, match="is not inside it"):
        mix(dd.input(Dataflow("queries"), "numbers", NUMBERS))


def _run_one(
    build: Callable[[Collection], Collection], row: Row, error: type[Exception] = UserFunctionError
) -> Exception:
    """The error, of exactly this class, that one row leads to."""
    cluster = Cluster(lambda flow: build(dd.input(flow, "numbers", NUMBERS)).output("result"))
    cluster.change("numbers", [(row, 1)])
    with pytest.raises(error) as caught:
        cluster.seal()
        cluster.run()
    assert type(caught.value) is error
    return caught.value


def _reciprocal(record: tuple[int, int]) -> tuple[int, int]:
    k, v = record
    return (k, 1 // v)


def test_refused_a_function_that_raises_names_record_operator_and_line() -> None:
    for build in (
        lambda c: c.map(_reciprocal),
        lambda c: c.distinct().map(_reciprocal),
        lambda c: c.flat_map(lambda r: [_reciprocal(r)]),
    ):
        error = _run_one(build, (7, 0))
        assert "Record(k=7, v=0)" in str(error), error
        assert "ZeroDivisionError" in str(error) and "test_collection.py:" in str(error)
        assert isinstance(error.__cause__, ZeroDivisionError)


def test_refused_a_result_that_does_not_fit_its_columns() -> None:
    wrong_type = str(_run_one(lambda c: c.map(lambda r: (r.k, "text")), (7, 0)))
    assert "map(" in wrong_type and "'text'" in wrong_type, wrong_type
    too_long = str(_run_one(lambda c: c.map(lambda r: (1, 2, 3)), (7, 0)))
    assert "(1, 2, 3)" in too_long and "k: int, v: int" in too_long, too_long


def test_refused_a_division_by_zero_in_an_expression() -> None:
    error = _run_one(lambda c: c.select(k=col.k, v=col.k // col.v), (7, 0), RowError)
    assert "col.k // col.v" in str(error) and "in the row with k=7, v=0" in str(error)


def test_repr_shows_the_columns() -> None:
    assert repr(dd.input(Dataflow("queries"), "numbers", NUMBERS)) == "Collection(k: int, v: int)"
    assert collection([(1, 2)]) == Rows({(1, 2): 1})


def test_with_columns_keeps_the_others_and_puts_new_ones_last() -> None:
    def build(flow: timely.Dataflow) -> None:
        numbers = dd.input(flow, "numbers", "n: int, twice: int")
        numbers.with_columns(twice=col.n * 2, next=col.n + 1).output("more")

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(build)
        flow.input("numbers").insert([(1, 0), (5, 0)])
        flow.seal()
        rows = flow.output("more").snapshot().to_pylist()
    assert rows == [{"n": 1, "twice": 2, "next": 2}, {"n": 5, "twice": 10, "next": 6}]
