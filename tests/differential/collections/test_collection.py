"""collection.py: what an operator puts out accumulates, at every time, to its plain definition.

meaning_*   linear operators, and random compositions of all operators, at times of depth 1, 2 and 3
same_*      what must not matter: epochs, batches, workers, how late messages are, when traces are compacted
refused_*   what a user may do wrong, and what he is told
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.collection import Collection as Rows
from reference.collection import accumulated_at, history
from reference.dataflow import Change, Cluster, check_at_times, compact_traces, trace_rows, traces
from strategies_collections import (
    BINARY,
    NUMBERS,
    Composition,
    compositions,
    compositions_around_loops,
    examples,
    histories,
)

import differential as dd
from differential import Collection, col
from differential.errors import ExpressionError, SchemaError
from timely.building.dataflow import Dataflow

workers = st.integers(1, 3)
seeds = st.integers(0, 2**20)


# meaning_


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


@pytest.mark.parametrize(("depth", "levels"), [(1, 3), (2, 2), (3, 1)])
def test_meaning_of_loops_in_loops_among_other_operators_at_every_time(depth: int, levels: int) -> None:
    @examples(0.4)
    @given(
        compositions_around_loops(levels),
        histories(depth, size_max=5),
        histories(depth, size_max=5),
        workers,
        seeds,
    )
    def holds(
        composed: Composition, left: list[Change], right: list[Change], workers: int, seed: int
    ) -> None:
        check_at_times(composed.build, composed.plain, [left, right], depth=depth, workers=workers, seed=seed)

    holds()


# same_


def _two_inputs(*composed: Composition) -> Callable[[Dataflow], None]:
    """Each as an output, called by its number."""

    def build(flow: Dataflow) -> None:
        inputs = [dd.input(flow, name, NUMBERS) for name in ("first", "second")]
        for number, each in enumerate(composed):
            each.build(*inputs).output(str(number))

    return build


def _batches(changes: list[Change], rng: random.Random) -> Iterator[list[Change]]:
    """The changes cut into batches, some of one change, in their order."""
    start = 0
    while start < len(changes):
        stop = start + rng.randint(1, 4)
        yield changes[start:stop]
        start = stop


def _accumulated(
    composed: Composition, inputs: list[list[Change]], epochs: list[int], workers: int, seed: int
) -> list[Rows]:
    """The result after tick 0, 1, … where tick i belongs to epoch epochs[i]. What else there is to choose is
    chosen by `seed`: batches, which workers they come in at, which epochs are in flight together, compaction.
    """
    rng = random.Random(seed)
    cluster = Cluster(_two_inputs(composed), workers, seed)
    for name, changes in zip(("first", "second"), inputs, strict=True):
        for batch in _batches(changes, rng):
            worker = rng.randrange(workers)
            for epoch in {epochs[tick] for _, (tick,), _ in batch}:
                rows = [(row, diff) for row, (tick,), diff in batch if epochs[tick] == epoch]
                cluster.change(name, rows, epoch, worker)
    seals = [epoch for place, epoch in enumerate(epochs) if place + 1 == len(epochs) or seed >> place & 1]
    for epoch in seals:
        cluster.seal(epoch)
        cluster.harry(rng, rng.choice([0, 5, 20]))
        if seed % 3:
            cluster.run()
    cluster.run()
    output = cluster.changes("0")
    assert cluster.snapshot("0") == accumulated_at(output, (max(epochs),))
    return [accumulated_at(output, (epoch,)) for epoch in epochs]


TICKS = 4


@examples(0.9)
@given(
    st.one_of(compositions(), compositions(), compositions_around_loops(2)),
    st.lists(histories(1, size_max=8), min_size=2, max_size=2),
    st.lists(st.integers(0, 2), min_size=TICKS, max_size=TICKS),
    st.tuples(workers, seeds),
    st.tuples(workers, seeds),
)
def test_same_result_however_the_input_is_cut_into_epochs_and_batches_and_spread_over_workers(
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


@examples(0.4)
@given(
    st.one_of(compositions(), compositions(), compositions_around_loops(2)),
    st.lists(histories(1), min_size=2, max_size=2),
    workers,
    seeds,
)
def test_same_as_never_having_been_once_all_is_removed(
    composed: Composition, inputs: list[list[Change]], workers: int, seed: int
) -> None:
    """Outputs, those of all steps, say what they say of empty inputs, and compacted traces hold nothing."""
    rng = random.Random(seed)
    steps = [Composition(composed.steps[:number]) for number in range(1, len(composed.steps) + 1)]
    cluster = Cluster(_two_inputs(*steps), workers, seed)
    for name, changes in zip(("first", "second"), inputs, strict=True):
        for row, (tick,), diff in changes:
            cluster.change(name, [(row, diff)], tick, rng.randrange(workers))
            cluster.change(name, [(row, -diff)], 4 + rng.randint(0, 4), rng.randrange(workers))
    for epoch in sorted(rng.sample(range(8), rng.randint(0, 3))):
        cluster.seal(epoch)
        cluster.harry(rng, rng.choice([0, 5, 20]))
    cluster.seal(8)
    cluster.run()
    for number, step in enumerate(steps):
        assert cluster.snapshot(str(number)) == step.plain(Rows(), Rows()), step
    compact_traces(cluster)
    if all(operator.name != "aggregates of everything" for operator, _ in composed.steps):  # a row stays
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


@pytest.mark.parametrize("name", ["epoch", "diff"])
def test_refused_an_output_with_a_column_that_tables_of_changes_use(name: str) -> None:
    said = _refused(lambda c: c.rename(k=name).output("changed"), SchemaError)
    assert f"output 'changed': a column cannot be called {name!r}" in said and f"rename({name}=" in said


def test_refused_the_sum_of_different_columns() -> None:
    said = _refused(lambda c: c.concat(c.select("k", "v")), SchemaError)
    assert "concat" in said and "name is string in one, missing in the other" in said and "select" in said
    assert "concat" in _refused(lambda c: c.concat(c.select("k", "v", name=col.k)), SchemaError)
