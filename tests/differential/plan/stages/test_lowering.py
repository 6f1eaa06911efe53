"""lowering.py: which stages a plan becomes, and where they are. What they answer: the tests of collections.

stages_*    one for each operator with state, once for each loop; none for linear ones
errors_*    are about the user's line, though stages are made later
deep_*      long chains of operators
by_hand_*   streams and loops of `timely` on either side
"""

from __future__ import annotations

import random
from collections import Counter

import pytest

import differential as dd
import timely
from differential import Collection, col
from timely.building.dataflow import Dataflow


def stages(build: object) -> Counter[str]:
    """How many stages of each name a builder makes, the rim aside."""
    flow = Dataflow("tested")
    build(flow)  # type: ignore[operator]
    frozen = flow.freeze()
    names = (f"{stage.scope.path()}: {stage.name}" for stage in frozen.stages)
    return Counter(name.removeprefix("tested: ") for name in names if "put " not in name)


def edges_of(flow: Dataflow) -> Collection:
    return dd.input(flow, "edges", "src: int, dst: int")


def test_stages_linear_operators_and_what_nobody_asks_for_cost_none() -> None:
    def build(flow: Dataflow) -> None:
        edges = edges_of(flow)
        edges.distinct()
        edges.join(edges.select(src=col.dst, to=col.src), on="src")
        edges.filter(col.src > 1).negate().concat(edges).select(x=col.src + 1).output("out")

    assert stages(build) == Counter()


def test_stages_equal_operators_are_one() -> None:
    def build(flow: Dataflow) -> None:
        edges = edges_of(flow)
        for name in "abc":
            edges.filter(col.src > 0).distinct().filter(col.dst > 1).output(name)

    assert stages(build) == {"distinct": 1}


def test_errors_name_the_line_of_the_operator() -> None:
    flow = Dataflow("tested")
    edges = edges_of(flow)
    edges.distinct().output("out")
    edges.iterate(lambda x: x.consolidate(), name="loop").output("looped")
    sites = {stage.name: stage.site for stage in flow.freeze().stages}
    assert all("test_lowering.py" in site for site in sites.values()), sites
    assert len({sites["input edges"], sites["distinct"], sites["consolidate"]}) == 3


def test_deep_chains_of_operators_are_no_recursion() -> None:
    def build(flow: Dataflow) -> None:
        collection = edges_of(flow)
        for _ in range(1_500):
            collection = collection.negate()
        collection.output("out")

    assert stages(build) == Counter()


@pytest.mark.parametrize("workers", [1, 2])
def test_by_hand_a_stream_becomes_a_collection_and_feeds_a_stage(workers: int) -> None:
    with timely.connect(workers=workers, embedded=True) as cluster:
        flow = cluster.install("collection_flows:by_hand")
        flow.input("edges").insert([(1, 2), (1, 3), (2, 3)])
        flow.wait(flow.seal())
        assert flow.output("counts").snapshot().sort_by("src").to_pylist() == [
            {"src": 1, "n": 2},
            {"src": 2, "n": 1},
        ]


@pytest.mark.parametrize("workers", [1, 3])
def test_few_rows_go_to_the_many_of_a_join_without_keys(workers: int) -> None:
    def above_the_mean(flow: timely.Dataflow) -> None:
        rows = dd.input(flow, "rows", "k: int, v: int")
        mean = rows.agg(mean=dd.avg("v"))
        rows.cross_join(mean).filter(dd.col.v > dd.col.mean).select("k", "v").output("above")

    rng = random.Random(5)
    rows = [(k, rng.randrange(1_000)) for k in range(600)]
    with timely.connect(workers=workers, embedded=True) as cluster:
        flow = cluster.install(above_the_mean)
        there = Counter(rows)
        for part in range(0, 600, 200):
            flow.input("rows").insert(rows[part : part + 200])
        flow.seal(wait=True)
        for _ in range(4):
            gone, come = rng.choice(sorted(there)), (rng.randrange(600), rng.randrange(5_000))
            flow.input("rows").remove([gone])
            flow.input("rows").insert([come])
            there = Counter([*(there - Counter([gone])).elements(), come])
            flow.seal(wait=True)
            mean = sum(v for _, v in there.elements()) / there.total()
            got = Counter(tuple(row.values()) for row in flow.output("above").snapshot().to_pylist())
            assert got == Counter((k, v) for k, v in there.elements() if v > mean)
        joins = [
            stage["trace_rows"]
            for of_worker in cluster.stats()
            for stage in of_worker["dataflows"][0]["stages"]
            if "rows in the order of" in stage["name"]
        ]
        assert len(joins) == workers and max(joins) < 2 * min(joins), "no worker has most of the rows"
