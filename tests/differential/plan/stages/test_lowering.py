"""lowering.py: which stages a plan becomes, and where they are. What they answer: the tests of collections.

stages_*    one for each operator with state, once for each loop; none for linear ones
errors_*    are about the user's line, though stages are made later
deep_*      long chains of operators
by_hand_*   streams and loops of `timely` on either side
"""

from __future__ import annotations

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
