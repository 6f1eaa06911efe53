"""Sources of embedded workers, which work in calls: also one that never rests."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

import timely
from timely.operators.capability import Capability


class EndlessVertex(timely.Vertex):
    """A record for each epoch, an epoch for each turn, for ever."""

    def on_open(self, capability: Capability) -> None:
        self.held = capability
        self.activate()

    def on_activate(self) -> None:
        (epoch,) = self.held.time
        self.send_by(0, [(epoch, self.worker)], self.held.time)
        self.held.downgrade((epoch + 1,))
        self.activate()


def endless(dataflow: timely.Dataflow) -> None:
    rows = dataflow.input("rows")
    source = dataflow.source("endless", EndlessVertex)
    dataflow.output("both", rows.concat(source))
    dataflow.output("source", source)


@pytest.fixture(params=["1", "2 in turn", "2 threads"])
def flow(request: pytest.FixtureRequest) -> Iterator[timely.Flow]:
    count, _, way = str(request.param).partition(" ")
    with timely.connect(workers=int(count), threads=way == "threads", embedded=True) as cluster:
        yield cluster.install(endless)


def test_calls_return_although_a_source_never_rests(flow: timely.Flow) -> None:
    flow.input("rows").insert(["x"])
    flow.seal(wait=True)
    changes = flow.output("both").changes(0, 1)
    assert sorted(map(str, changes)) == sorted(
        ["(0, 'x')", *(f"(0, (0, {worker}))" for worker in range(flow.workers))]
    )
    before = flow.output("source").complete_before()
    with pytest.raises(timely.WaitTimeoutError, match="not sealed yet"):
        flow.wait(1, timeout=0.01)
    assert flow.output("source").complete_before() > before, "it goes on, whatever the input does"
    flow.input("rows").close()
    flow.wait(before + 20)
    epochs = [epoch for epoch, _ in flow.output("both").changes(1, before + 20)]
    assert epochs == sorted([*range(1, before + 20)] * flow.workers)


def test_a_call_that_waits_for_nothing_leaves_such_a_source_after_a_moment(flow: timely.Flow) -> None:
    began = time.monotonic()
    for _ in range(5):
        flow.output("source").changes_nowait()
    assert time.monotonic() - began < 5, "2 ms each, and not for ever"


def test_a_flow_with_a_source_is_finished_when_the_source_is(flow: timely.Flow) -> None:
    with pytest.raises(timely.WaitTimeoutError, match="is not finished"):
        flow.finish(timeout=0.01)
    flow.uninstall()
