"""A query has one digest for each epoch, however many workers there are and whichever has which row.

Otherwise a restart with another number of workers would end dataflows that have done nothing wrong.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from reference.dataflow import FOREVER, Cluster
from strategies_collections import examples, repeat_until
from strategies_plans import draw_collection, read_twice

import differential as dd
from differential import col
from differential.algorithms import pagerank
from timely.building.dataflow import Dataflow
from timely.errors import MisuseError
from timely.operators.outputs.output_digests import wrapped

Change = tuple[tuple[object, ...], int]
Digests = dict[str, dict[int, int]]


def digests_of(
    query: Callable[[Dataflow], object], history: Sequence[dict[str, list[Change]]], workers: int, seed: int
) -> Digests:
    """The digests of all outputs: rows go to workers by `seed`, which also decides when workers act, and
    whether changes have been forgotten before their digests are taken.
    """
    forgets = seed % 3 == 0
    cluster = Cluster(query, workers, seed if workers > 1 else None, own_symbols=workers > 1)
    for index, instance in enumerate(cluster.instances):
        for name in instance.frozen.outputs:
            instance.output(name).keep_digests(counts_failures=index == 0)
    found: Digests = {name: Counter() for name in cluster.instances[0].frozen.outputs}

    def take() -> None:
        for index, instance in enumerate(cluster.instances):
            for name, by_epoch in found.items():
                output = instance.output(name)
                assert output.digests is not None
                with cluster.turn_of(index):
                    if forgets:
                        output.forget(min(output.complete_before, len(history)))
                    for epoch, digest in output.digests.take(output.complete_before):
                        by_epoch[epoch] += digest

    for epoch, changes in enumerate(history):
        for name, rows in changes.items():
            for number, (row, diff) in enumerate(rows):
                cluster.change(name, [(row, diff)], epoch, worker=(number * 7 + seed) % workers)
        cluster.seal(epoch)
        if seed >> epoch & 1:
            cluster.run()
            take()
    cluster.close()
    cluster.run()
    take()
    assert all(instance.epochs_done() >= FOREVER for instance in cluster.instances)
    return {
        name: {epoch: wrapped(digest) for epoch, digest in sorted(by_epoch.items()) if wrapped(digest)}
        for name, by_epoch in found.items()
    }


NUMBER = st.integers(-2, 3)
CHANGES = st.lists(st.tuples(st.tuples(NUMBER, NUMBER), st.sampled_from([1, 1, 1, 2, -1])), max_size=6)
HISTORIES = st.lists(st.fixed_dictionaries({"one": CHANGES, "two": CHANGES}), min_size=1, max_size=5)
SEEDS = st.integers(0, 2**20)


@pytest.mark.parametrize("fails", [False, True])
def test_random_queries(fails: bool) -> None:
    seen: Counter[str] = Counter()

    @examples(4)
    @given(st.data(), HISTORIES, st.tuples(SEEDS, SEEDS, SEEDS))
    def holds(
        data: st.DataObject, history: list[dict[str, list[Change]]], seeds: tuple[int, int, int]
    ) -> None:
        script: list[object] = []

        def query(flow: Dataflow) -> None:
            # Every worker builds the same: the others take what was drawn for the first.
            at = 0

            def draw(strategy: st.SearchStrategy[object]) -> object:
                nonlocal at
                if at == len(script):
                    script.append(data.draw(strategy))
                at += 1
                return script[at - 1]

            inputs = [dd.input(flow, name, "a: int, b: int") for name in ("one", "two")]
            for number in range(2):
                draw_collection(draw, inputs, read_twice, fails=fails).output(f"out {number}")  # type: ignore[arg-type]

        try:
            first = digests_of(query, history, 1, seeds[0])
        except MisuseError as error:  # a loop that does not converge
            assert "iterations" in str(error)
            reject()
        assert digests_of(query, history, 3, seeds[1]) == first
        assert digests_of(query, history, 2, seeds[2]) == first
        seen["digests"] += sum(map(len, first.values()))

    repeat_until(lambda: seen["digests"] > 10, holds)
    assert seen["digests"] > 10


VALUES = st.one_of(
    st.floats(-1e6, 1e6),
    st.sampled_from([0.1, 0.2, 0.3, 1e16, -1e16, 1e-9, math.inf, -math.inf, math.nan, -0.0]),
)
MEASURED = st.lists(
    st.tuples(
        st.tuples(st.integers(0, 2), VALUES, st.sampled_from(["ada", "bob", "cy", "é", ""])),
        st.sampled_from([1, 1, 1, 2, 3]),
    ),
    max_size=12,
)
EDGES = st.lists(st.tuples(st.tuples(NUMBER, NUMBER, st.floats(0.01, 9)), st.just(1)), max_size=10)


def _in_turn(key: object, rows: Sequence[tuple[tuple[float, str], int]]) -> list[tuple[float, str]]:
    """Sums whose last bits depend on the order in which the rows come."""
    total, text = 0.0, ""
    for (value, name), count in rows:
        total = total * 0.7 + value * count
        text += name * count
    return [(total, text)]


def _floats(flow: Dataflow) -> None:
    rows = dd.input(flow, "measured", "k: int, value: float, name: string")
    groups = rows.group_by("k")
    groups.agg(
        n=dd.count(),
        sum=dd.sum("value"),
        mean=dd.mean("value"),
        dev=dd.stddev("value"),
        list=dd.collect("value"),
    ).output("aggregates")
    groups.reduce(_in_turn, "total: float, text: string").output("in turn")
    groups.agg(least=dd.min("name"), first=dd.first("value", by="name")).output("of texts")
    rows.select("name", x=col.value * 0.1 + dd.exp(col.value), y=dd.log(col.value * col.value)).output(
        "functions"
    )
    rows.map(_mapped, "a: any, b: any").output("mapped")
    rows.top_k(2, "name", keys="k").output("top")
    edges = dd.input(flow, "edges", "src: int, dst: int, weight: float")
    pairs = edges.select("src", "dst").distinct()
    pagerank(pairs, 5).output("ranks")
    edges.select(node=col.src).distinct().output("nodes")


def _mapped(row: tuple[int, float, str]) -> tuple[object, object]:
    key, value, name = row
    return {"k": key, "names": [name, name.upper()]}, math.sin(value) if math.isfinite(value) else None


@examples(2)
@given(
    st.lists(st.fixed_dictionaries({"measured": MEASURED, "edges": EDGES}), min_size=1, max_size=4),
    st.tuples(SEEDS, SEEDS, SEEDS),
)
def test_floats_texts_and_functions_of_groups(
    history: list[dict[str, list[Change]]], seeds: tuple[int, int, int]
) -> None:
    first = digests_of(_floats, history, 1, seeds[0])
    assert digests_of(_floats, history, 3, seeds[1]) == first
    assert digests_of(_floats, history, 2, seeds[2]) == first
