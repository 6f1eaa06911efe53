"""stages/loops.py: in which loops stages are.

in_*   a stage is in the innermost loop that its node depends on, once for each
"""

from __future__ import annotations

from collections import Counter

import differential as dd
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


def test_in_the_loop_that_they_depend_on_and_in_no_other() -> None:
    def build(flow: Dataflow) -> None:
        edges = edges_of(flow)

        def body(x: Collection) -> Collection:
            outside = edges.distinct()
            inside = x.iterate(lambda y: y.concat(x, outside).distinct(), name="inner")
            return inside.concat(
                edges.iterate(lambda y: y.concat(outside).distinct(), name="beside")
            ).distinct()

        edges.iterate(body, name="outer").output("out")

    assert stages(build) == {
        "distinct": 1,
        "tested / beside: distinct": 1,
        "tested / outer: distinct": 1,
        "tested / outer / inner: distinct": 1,
    }


def test_in_each_loop_open_nodes_that_read_alike_are_made() -> None:
    def build(flow: Dataflow) -> None:
        edges = edges_of(flow)
        for name in ("first", "second"):
            edges.iterate(lambda x: x.filter(col.src > 1).distinct(), name=name).output(name)

    assert stages(build) == {"tested / first: distinct": 1, "tested / second: distinct": 1}


def test_in_a_loop_that_is_only_looked_at_stages_are_made() -> None:
    def build(flow: Dataflow) -> None:
        edges_of(flow).iterate(lambda x: x.inspect(print).distinct(), name="loop")

    assert stages(build) == {"tested / loop: distinct": 1, "tested / loop: inspect": 1}
