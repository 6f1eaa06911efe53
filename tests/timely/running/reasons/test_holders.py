"""Which line has made a capability."""

from __future__ import annotations

import gc

import pytest

import timely
from timely import Vertex
from timely.running.collecting import Collecting
from timely.running.reasons.holders import capability_sites

Timestamp = tuple[int, ...]

pytestmark = pytest.mark.few_objects


class Keeps(Vertex):
    """Holds what comes in `kept`, if it has one."""

    def __init__(self) -> None:
        self.kept: list[timely.Capability] = []

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.kept.append(self.hold(time))


def test_each_capability_has_the_line_that_has_made_it() -> None:
    flow, vertices = held()
    sites = capability_sites(vertices)
    assert {time for _, time in sites} == {(0,)} and len(sites) == 2
    assert all(str(site).startswith(__file__) for site in sites.values())
    assert capability_sites(vertices[:1]).keys() < sites.keys()
    vertices[0].kept.pop().drop()
    assert capability_sites(vertices).keys() == sites.keys() - {(id(vertices[0]), (0,))}
    assert flow.epoch == 1


def test_the_line_is_known_though_the_worker_has_rested_meanwhile() -> None:
    """What is there when a dataflow has begun is frozen at the first rest, and capabilities with it."""
    _, vertices = held()
    with Collecting() as collecting:
        collecting.rest((0,))
        assert gc.get_freeze_count() > 0
        assert len(capability_sites(vertices)) == 2
        collecting.rest((0,))
        assert gc.get_freeze_count() > 0, "it is frozen again"
        assert capability_sites([]) == {} and gc.get_freeze_count() > 0, "nobody holds anything"


def test_nobody_holds_anything() -> None:
    assert capability_sites([]) == {}
    assert capability_sites([Keeps()]) == {}


def held() -> tuple[timely.Flow, list[Keeps]]:
    made: list[Keeps] = []

    def keeps() -> Keeps:
        made.append(Keeps())
        return made[-1]

    def build(dataflow: timely.Dataflow) -> None:
        records = dataflow.input("records")
        for name in ("first", "second"):
            (out,) = dataflow.stage(name, keeps, [records.feed()])
            dataflow.output(name, out)

    cluster = timely.connect(workers=1, embedded=True)
    flow = cluster.install(build)
    flow.input("records").insert([1])
    flow.seal()
    cluster.stats()
    return flow, made
