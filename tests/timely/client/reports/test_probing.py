"""Probes of installed dataflows: also of loops, and after a restart."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
import stuck_flows

import timely
from timely import Loop

WAYS: list[dict[str, bool | int]] = [
    {"embedded": True},
    {"embedded": True, "workers": 2},
    {"threads": True, "workers": 2},
]


@pytest.fixture(params=WAYS, scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[timely.Cluster]:
    with timely.connect(**request.param) as made:
        yield made


class Counts(timely.Vertex):
    """Sends a number n round n times."""

    def on_recv(self, edge: int, message: list[object], time: tuple[int, ...]) -> None:
        if less := [n - 1 for n in message if isinstance(n, int) and n > 0]:
            self.send_by(0, less, time)


def counts(dataflow: timely.Dataflow) -> None:
    """A probe in front of a loop, one in it, and one of an output that nobody drops."""
    numbers = dataflow.input("numbers")
    dataflow.probe("numbers", numbers)
    with Loop.inside(dataflow, dataflow.root, "down", iterations_max=100) as loop:
        back = loop.feedback()
        (less,) = dataflow.stage("less", Counts, [loop.enter(numbers).feed(), back.stream.feed()])
        back.connect(less)
        dataflow.probe("less", less)
        left = loop.leave(less)
    dataflow.output("left", left)
    (held,) = dataflow.stage("holder", stuck_flows.Holds, [dataflow.input("others").feed()])
    dataflow.probe("held", held)
    dataflow.output("held", held)


def test_a_stream_is_past_what_is_sealed_and_what_its_vertices_let_go(cluster: timely.Cluster) -> None:
    flow = cluster.install(counts)
    numbers, less, held = (flow.probe(name) for name in ("numbers", "less", "held"))
    assert not numbers.less_than(0) and numbers.less_than(1)
    flow.input("numbers").insert([3])
    flow.input("others").insert([1])
    flow.seal()
    numbers.wait(0)
    less.wait((0, 4), timeout=10)
    assert not numbers.less_than(1) and numbers.less_than(2)
    assert not less.less_than((1, 0)) and less.less_than((1, 1))
    assert held.less_than(1), "a vertex holds it"
    flow.uninstall()


def test_within_a_loop_a_time_may_be_over_while_a_later_one_is_not(cluster: timely.Cluster) -> None:
    flow = cluster.install(stuck_probe)
    flow.input("records").insert([0])
    flow.seal()
    probe = flow.probe("round")
    with pytest.raises(timely.WaitTimeoutError):
        flow.wait(0, timeout=0.05)
    probe.wait((0, 3), timeout=10)
    assert not probe.less_than((0, 3)) and probe.less_than((0, 2**35))
    assert not probe.less_than((1, 0)), "no iteration behind 3 is before it"
    assert probe.less_than((1, 2**35))
    flow.uninstall()


def stuck_probe(dataflow: timely.Dataflow) -> None:
    """Records that go round without end, and a probe of them."""
    records = dataflow.input("records")
    with Loop.inside(dataflow, dataflow.root, "endless", iterations_max=2**40) as loop:
        back = loop.feedback()
        feeds = [loop.enter(records).feed(), back.stream.feed()]
        (again,) = dataflow.stage("spins", stuck_flows.Spins, feeds)
        back.connect(again)
        dataflow.probe("round", again)
        left = loop.leave(again)
    dataflow.output("never", left)


def test_a_wait_that_is_over_says_how_far_the_stream_is_and_what_holds_it(cluster: timely.Cluster) -> None:
    flow = cluster.install(counts)
    flow.input("others").insert([1])
    flow.seal()
    with pytest.raises(timely.WaitTimeoutError, match=r"the probe 'held' .* is not past \(0,\)") as late:
        flow.probe("held").wait(0, timeout=0.05)
    assert "the earliest that may still come is (0,)" in str(late.value)
    assert "'holder' holds epoch 0" in late.value.__notes__[-1]
    flow.uninstall()


def test_probes_and_times_that_there_are_not(cluster: timely.Cluster) -> None:
    flow = cluster.install(counts)
    with pytest.raises(timely.MisuseError, match="no probe 'more': there are"):
        flow.probe("more")
    probe = flow.probe("less")
    assert repr(probe) == "FlowProbe('less' of 'counts')"
    with pytest.raises(timely.MisuseError, match=r"whose times are \(epoch, iteration\).* not \(0,\)"):
        probe.less_than(0)
    for odd in ("last", (0, None), (), True, 1.5):
        with pytest.raises(timely.MisuseError, match=r"wait\(time\) takes a tuple of numbers"):
            probe.wait(odd)  # type: ignore[arg-type]  # users may write anything
    with pytest.raises(timely.MisuseError, match="whole numbers from 0"):
        probe.wait((0, -1))
    flow.uninstall()


def test_after_a_restart_no_answer_is_taken_back(tmp_path: Path) -> None:
    def connected() -> timely.Cluster:
        return timely.connect(workers=1, embedded=True, durable=tmp_path / "store")

    with connected() as cluster:
        flow = cluster.install(counts)
        flow.input("numbers").insert([3])
        flow.seal()
        assert not flow.probe("less").less_than((1, 0))
    with connected() as cluster:
        flow = cluster.install(counts)
        assert not flow.probe("less").less_than((1, 0)), "at once, and as before"
        assert flow.probe("less").less_than((2, 0))


class Awaits(timely.Vertex):
    """Sends records on after longer than `less_than` works."""

    async def on_recv(self, edge: int, message: list[object], time: tuple[int, ...]) -> None:
        await asyncio.sleep(0.2)
        self.send_by(0, message, time)


def awaited(dataflow: timely.Dataflow) -> None:
    dataflow.probe("awaited", dataflow.input("numbers").stage("awaits", Awaits))


def test_after_a_restart_no_answer_is_taken_back_while_coroutines_run_again(tmp_path: Path) -> None:
    for restarts in (0, 1):
        with timely.connect(workers=2, embedded=True, durable=tmp_path / "store") as cluster:
            flow = cluster.install(awaited)
            if flow.epoch == 0:
                flow.input("numbers").insert([3])
                assert flow.probe("awaited").less_than(1)
                flow.seal(wait=True)
            assert not flow.probe("awaited").less_than(1), f"after {restarts} restarts"
            assert flow.probe("awaited").less_than(2)
