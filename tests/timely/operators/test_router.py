"""Changes of a routing on one worker: what waits, for how long, and what is refused.

That all workers send by the same version is in `tests/simulation/test_routing.py`.
"""

from __future__ import annotations

import msgpack
import pyarrow as pa
import pytest

from timely import Dataflow, GraphError, MisuseError, Vertex
from timely.operators.router import RouterVertex, RoutingIn
from timely.running.core import Worker
from timely.running.instance import Instance
from timely.wire.routing import BUCKETS


class Passes(Vertex):
    def on_start(self) -> None:
        self.got: list[object] = []

    def on_recv(self, edge: int, message: list[object], time: tuple[int, ...]) -> None:
        self.got += message
        self.send_by(0, message, time)


def running(lead: int, level_bits: tuple[int, ...] | None = None) -> tuple[Worker, Instance]:
    dataflow = Dataflow(level_bits=level_bits)
    control = dataflow.routing(lead=lead)
    numbers = dataflow.input("numbers")
    dataflow.output("out", control.stage("passes", Passes, numbers, exchange=lambda record: int(str(record))))
    worker = Worker()
    return worker, worker.install(dataflow.freeze())


def router_of(instance: Instance) -> RouterVertex:
    (found,) = (one.vertex for one in instance.runners if isinstance(one.vertex, RouterVertex))
    return found


def seal(worker: Worker, instance: Instance, *names: str) -> list[object]:
    """What has passed the router after the next epoch of these inputs was sealed."""
    for name in names:
        instance.input(name).seal()
    worker.run_until_idle()
    (passes,) = (one.vertex for one in instance.runners if isinstance(one.vertex, Passes))
    return passes.got


@pytest.mark.parametrize("lead", [0, 1, 2, 5])
def test_rows_wait_for_the_changes_of_lead_epochs_before_and_for_no_later_ones(lead: int) -> None:
    worker, instance = running(lead)
    for epoch in range(8):
        instance.input("numbers").send([epoch], epoch)
    instance.input("numbers").seal(7)
    for control_epoch in range(8):
        assert seal(worker, instance) == list(range(min(control_epoch + lead, 8)))
        kept = router_of(instance).counters()["batches_kept"]
        assert kept == max(0, 8 - control_epoch - lead)
        assert instance.output("out").complete_before == control_epoch, "an epoch is one of all inputs"
        seal(worker, instance, "routing")


def test_batches_of_one_epoch_that_wait_go_on_in_the_order_in_which_they_came() -> None:
    worker, instance = running(lead=0)
    for number in (3, 1, 2):
        instance.input("numbers").send([number])
    assert seal(worker, instance, "numbers") == []
    assert router_of(instance).counters()["batches_kept"] == 3
    assert seal(worker, instance, "routing") == [3, 1, 2]


def test_rows_that_wait_hold_their_epoch_open() -> None:
    worker, instance = running(lead=0)
    instance.input("numbers").send([1])
    assert seal(worker, instance, "numbers") == []
    assert instance.output("out").frontier(0) == [(0,)]
    assert seal(worker, instance, "routing") == [1]
    assert instance.output("out").complete_before == 1


def test_versions_that_no_row_can_see_any_more_are_forgotten() -> None:
    worker, instance = running(lead=1)
    for worker_of_bucket in range(20):
        instance.input("routing").send([(3, worker_of_bucket)])
        seal(worker, instance, "routing", "numbers")
        assert router_of(instance).counters()["routing_versions"] <= 3
    instance.input("routing").close()
    instance.input("numbers").close()
    seal(worker, instance)
    assert router_of(instance).counters() == {"batches_kept": 0, "routing_versions": 1}


def test_a_control_that_is_closed_says_that_nothing_will_change() -> None:
    worker, instance = running(lead=0)
    instance.input("routing").close()
    instance.input("numbers").send(["7"], 100)
    instance.input("numbers").seal(100)
    assert seal(worker, instance) == ["7"]


def test_changes_of_the_last_epochs_that_a_word_can_hold_never_come_to_hold() -> None:
    dataflow = Dataflow(level_bits=(3,))
    control = dataflow.routing(lead=2)
    dataflow.output("out", control.stage("passes", Passes, dataflow.input("numbers"), exchange=lambda _: 0))
    worker = Worker()
    instance = worker.install(dataflow.freeze())
    instance.input("routing").send([(0, 1)], 6)
    seal(worker, instance)
    instance.input("routing").seal(6)
    instance.input("numbers").send([1], 6)
    instance.input("numbers").seal(6)
    assert seal(worker, instance) == [1]


def test_rows_for_which_the_anchor_moves_go_by_the_versions_that_wait_for_it() -> None:
    worker, instance = running(lead=5, level_bits=(3,))
    instance.input("routing").send([(0, 0)], 3)
    instance.input("routing").seal(20)
    seal(worker, instance)
    router = router_of(instance)
    assert router.counters()["routing_versions"] == 1, "no word says epoch 8 yet"
    instance.input("numbers").send(["7"], 8)
    instance.input("numbers").seal(8)
    instance.turns.run(1)
    worker._publish(instance.index, instance)
    assert instance.anchor.epoch == 7 and router.counters()["routing_versions"] == 2, "before the row comes"
    assert seal(worker, instance) == ["7"]


@pytest.mark.parametrize("record", [5, (1,), (1, 2, 3), (BUCKETS, 0), (-1, 0), (0, -1), ("0", 1), None])
def test_what_is_no_change_is_refused_before_anything_is_taken(record: object) -> None:
    table = pa.table({"record": pa.array([msgpack.packb(record)], pa.binary())})
    with pytest.raises(MisuseError, match=r"a pair \(bucket, worker\)"):
        RoutingIn().encode(table, 1, 0)


def test_stages_in_loops_and_negative_leads_are_refused() -> None:
    dataflow = Dataflow()
    control, numbers = dataflow.routing(), dataflow.input("numbers")
    with dataflow.loop("loop") as loop, pytest.raises(GraphError, match="outside of all loops"):
        control.stage("in a loop", Passes, loop.enter(numbers), exchange=lambda _: 0)
    with pytest.raises(GraphError, match="-1 epochs after their own"):
        dataflow.routing("other", lead=-1)
