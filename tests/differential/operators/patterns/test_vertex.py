"""patterns/vertex.py: looking up in a dataflow. What comes of it: `test_joins_of_many.py` of collections.

keeps_*   nothing but rows that wait
ends_*    when an input is complete for ever, what was kept for it goes
"""

from __future__ import annotations

from typing import cast

from reference.dataflow import Cluster, compact_traces, trace_rows

import differential as dd
from differential.operators.patterns.vertex import LookupVertex
from timely.building.dataflow import Dataflow


def _three(flow: Dataflow) -> None:
    parts = [dd.input(flow, names, f"{names[0]}: int, {names[1]}: int") for names in ("ab", "bc", "ca")]
    dd.join_all(parts, ["a", "b", "c"]).output("result")


def _vertices(cluster: Cluster) -> list[LookupVertex]:
    found = [runner.vertex for one in cluster.instances for runner in one.runners]
    return [cast("LookupVertex", vertex) for vertex in found if isinstance(vertex, LookupVertex)]


def test_keeps_rows_that_wait_only_until_the_epoch_is_complete() -> None:
    cluster = Cluster(_three)
    for name in ("ab", "bc", "ca"):
        cluster.change(name, [((1, 1), 1), ((1, 2), 1)])
    (instance,) = cluster.instances
    for name in ("ab", "ca"):
        instance.inputs[name].seal()
    cluster.run()
    assert any(not vertex._machine.is_empty for vertex in _vertices(cluster)), "more may come, before them"
    cluster.seal()
    cluster.run()
    assert cluster.snapshot("result") == {(1, 1, 1): 1}
    assert all(vertex._machine.is_empty for vertex in _vertices(cluster))
    assert not any(vertex.traces() for vertex in _vertices(cluster))


def test_ends_with_the_rows_that_could_ask() -> None:
    cluster = Cluster(_three)
    for name in ("ab", "bc", "ca"):
        cluster.change(name, [((n, n), 1) for n in range(5)])
    cluster.seal()
    cluster.run()
    compact_traces(cluster)
    assert trace_rows(cluster) > 5
    cluster.close()
    cluster.run()
    assert all(vertex._reader.is_done for vertex in _vertices(cluster))
    compact_traces(cluster)
    assert trace_rows(cluster) == 0, "beside what outputs keep"
