"""stages/patterns.py: which stages joins of many become. What they answer: `test_joins_of_many.py`.

arrangements_*   few, and those of others where they are the same
columns_*        those that are needed, in the order in which the next stage wants them
"""

from __future__ import annotations

from collections import Counter

import differential as dd
from differential import Collection, col
from timely.building.dataflow import Dataflow


def _triangles(edges: Collection) -> Collection:
    parts = [edges.select(**{names[0]: col.src, names[1]: col.dst}) for names in ("ab", "bc", "ac")]
    return dd.join_all(parts, ["a", "b", "c"])


def _stages(build: object) -> Counter[str]:
    flow = Dataflow("tested")
    build(flow)  # type: ignore[operator]
    names = [stage.name.split(" in ")[0] for stage in flow.freeze().stages]
    return Counter(name for name in names if "put " not in name)


def test_arrangements_of_one_collection_are_two_whatever_its_columns_are_called() -> None:
    def build(flow: Dataflow) -> None:
        _triangles(dd.input(flow, "edges", "src: int, dst: int")).output("triangles")

    assert _stages(build) == {
        "arrange by src": 1,
        "arrange by dst": 1,
        "look up a": 1,
        "look up b": 1,
        "look up c": 1,
        "look up a, b": 1,
        "look up a, c": 1,
        "look up b, c": 1,
    }


def test_arrangements_of_answers_are_made_once_more_where_the_answers_are_not_shared() -> None:
    def build(flow: Dataflow) -> None:
        edges = dd.input(flow, "edges", "src: int, dst: int").distinct()
        both = [edges.select(a=col.src, b=col.dst), edges.select(a=col.dst, b=col.src)]
        dd.join_all(both, ["a", "b"]).output("both ways")

    assert _stages(build)["distinct"] == 1
    assert sum(count for name, count in _stages(build).items() if name.startswith("arrange")) == 1


def test_columns_that_nobody_reads_are_not_kept() -> None:
    flow = Dataflow("tested")
    wide = dd.input(flow, "wide", "a: int, b: int, x: string, y: string")
    found = dd.join_all([wide, dd.input(flow, "other", "b: int, z: string")], "b").select("a", "x")
    arranged = [line for line in found.explain().split("== stages")[1].splitlines() if "from 0" in line]
    assert arranged and not any("col.y" in line for line in arranged)
