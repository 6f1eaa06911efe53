"""Decisions of worker 0 and what all workers make of them, whatever the delays between workers.

seal_*    epochs are sealed once, on all
enter_*   the parts of an insertion belong to one epoch, or to none
close_*   inputs that have no further epochs
void_*    decisions about a dataflow that has ended; decisions of others
"""

from __future__ import annotations

from collections import Counter

import msgpack
import pyarrow as pa
import pytest
from dataflows import settle, word_count
from hypothesis import given
from hypothesis import strategies as st

import timely
from timely.client.tables import records_of
from timely.operators.capture import FOREVER
from timely.operators.inputs.names import DeliveryName
from timely.running.core import Worker
from timely.running.instance import Instance
from timely.running.progress_messages import write_control_header
from timely.wire.batch import Records
from timely.wire.handshake import Closed, Entered, Sealed, encode_control
from timely.wire.requests import Close, Enter, Reply, Request, Seal, Stage
from timely.wire.transport.memory import MemoryNetwork
from timely.worker.orders import Orders, open_epoch
from timely.worker.server import Server


class Group:
    """Workers over a network that holds messages back by a seed; a dataflow that passes records on."""

    def __init__(self, count: int, seed: int | None = None) -> None:
        self.network = MemoryNetwork(count, seed)
        self.workers = [Worker(index, count, self.network.transport(index)) for index in range(count)]
        self.servers = [Server(worker) for worker in self.workers]
        self.instances: list[Instance] = []
        for worker in self.workers:
            dataflow = timely.Dataflow("passing")
            dataflow.output("out", dataflow.input("in"))
            dataflow.output("beside", dataflow.input("other"))
            self.instances.append(worker.install(dataflow.freeze()))
        self.orders = Orders(self.workers[0])

    def ask(self, worker: int, request: Request, rows: pa.Table | None = None) -> Reply:
        reply = self.servers[worker].handle(request, rows)
        assert isinstance(reply, Reply)
        return reply

    def stage(self, worker: int, sequence: int, records: list[object], part: int = 0, epoch: int = 0) -> bool:
        table = pa.table({"record": [msgpack.packb(record) for record in records]})
        reply = self.ask(worker, Stage(0, "in", epoch, "w", sequence, part, 1), table)
        return bool(reply.integer("is_new"))

    def settle(self) -> None:
        settle(self.workers)
        while self.network.in_flight():
            settle(self.workers)

    def read(self) -> Counter[tuple[int, object]]:
        self.settle()
        return Counter(
            pair
            for instance in self.instances
            for pair in records_of(instance.output("out").log.changes(0, FOREVER))
        )

    def epochs(self) -> list[int]:
        return [instance.input("in").epoch for instance in self.instances]


def test_seal_reaches_all_workers_and_both_inputs_and_twice_is_once() -> None:
    group = Group(3)
    assert group.orders.seal(0, 2) == 3
    assert group.orders.seal(0, 1) == 3
    sent = group.workers[0].messages_sent
    assert group.orders.seal(0, 2) == 3
    assert group.workers[0].messages_sent == sent, "what is sealed is not sealed again"
    group.settle()
    assert group.epochs() == [3, 3, 3]
    assert all(instance.output("out").complete_before == 3 for instance in group.instances)
    assert all(instance.output("beside").complete_before == 3 for instance in group.instances)


def test_seal_that_fits_no_word_changes_nothing() -> None:
    group = Group(2)
    with pytest.raises(timely.TimeOverflowError):
        group.orders.seal(0, 2**62)
    assert group.epochs() == [0, 0] and group.network.in_flight() == 0


def test_seal_is_for_the_input_that_is_furthest_behind() -> None:
    group = Group(1)
    (instance,) = group.instances
    instance.input("other").seal(5)
    assert group.orders.seal(0, 2) == 3
    assert [handle.epoch for handle in instance.inputs.values()] == [3, 6]
    assert group.orders.seal(0, 1) == 3
    instance.input("in").close()
    assert group.orders.seal(0, 2) == 6, "what is closed has no say"
    assert group.orders.seal(0, 6) == 7


def test_enter_lets_all_parts_in_at_the_epoch_that_is_open_then() -> None:
    group = Group(3)
    for worker in range(3):
        assert group.stage(worker, 0, [("a", worker), ("b", worker)])
        assert group.stage(worker, 0, [("c", worker)], part=1)
    group.orders.seal(0, 4)
    group.settle()
    assert group.read() == {}, "what was not entered is in no epoch"
    assert group.orders.enter(0, "in", 0, DeliveryName("w", 0)) == (True, 5)
    group.orders.seal(0, 5)
    assert group.read() == {(5, (letter, worker)): 1 for letter in "abc" for worker in range(3)}


def test_enter_takes_a_later_epoch_if_the_client_knows_one() -> None:
    group = Group(2)
    group.stage(0, 0, ["x"])
    assert group.orders.enter(0, "in", 3, DeliveryName("w", 0)) == (True, 3)
    group.orders.seal(0, 2)
    assert group.read() == {}
    group.orders.seal(0, 3)
    assert group.read() == {(3, "x"): 1}


@pytest.mark.parametrize("is_settled", [False, True])
def test_enter_again_counts_once_also_after_the_epoch_is_sealed_and_leaves_nothing_waiting(
    is_settled: bool,
) -> None:
    group = Group(2)
    for turn in range(3):
        for worker in range(2):
            assert group.stage(worker, 0, [worker]) is (turn == 0 or worker != 0)
        is_new, _ = group.orders.enter(0, "in", 0, DeliveryName("w", 0))
        assert is_new is (turn == 0)
        group.orders.seal(0, turn)
        if is_settled:
            group.settle()
    assert group.read() == {(0, 0): 1, (0, 1): 1}
    for instance in group.instances:
        handle = instance.input("in")
        assert (
            not handle.deliveries.batches()
            and handle.deliveries.staged_bytes == 0
            and handle.rows_waiting == 0
        )


def test_enter_a_part_that_came_twice_counts_once() -> None:
    group = Group(2)
    for _ in range(2):
        group.stage(0, 0, ["x"])
    group.stage(1, 0, ["y"])
    group.orders.enter(0, "in", 0, DeliveryName("w", 0))
    group.orders.seal(0, 0)
    assert group.read() == {(0, "x"): 1, (0, "y"): 1}


def test_enter_what_has_not_arrived_is_refused_and_may_be_inserted_then() -> None:
    group = Group(2)
    with pytest.raises(timely.MisuseError, match="the parts of insertion 0 of writer 'w'"):
        group.orders.enter(0, "in", 0, DeliveryName("w", 0))
    group.stage(0, 0, ["x"])
    with pytest.raises(timely.TimeOverflowError):
        group.orders.enter(0, "in", 2**62, DeliveryName("w", 0))
    assert group.orders.enter(0, "in", 0, DeliveryName("w", 0)) == (True, 0)
    group.orders.seal(0, 0)
    assert group.read() == {(0, "x"): 1}


def test_close_ends_one_input_and_all_closed_is_the_end() -> None:
    group = Group(2)
    group.orders.seal(0, 1)
    assert group.orders.close(0, "in") == group.orders.close(0, "in") == 2
    group.settle()
    assert [instance.output("out").complete_before for instance in group.instances] == [FOREVER] * 2
    assert group.orders.seal(0, 2) == 3
    assert group.orders.close(0, "other") == 4
    with pytest.raises(timely.InputClosedError, match="all inputs of dataflow 0 are closed"):
        group.orders.seal(0, 4)
    group.settle()
    assert all(instance.is_complete() for instance in group.instances)
    assert [open_epoch(instance) for instance in group.instances] == [4, 4]


def test_close_drops_what_was_not_entered_and_takes_nothing_more() -> None:
    group = Group(2)
    for worker in range(2):
        group.stage(worker, 0, ["never entered"])
    group.ask(0, Close(0, "in"))
    for request in (Enter(0, "in", 0, "w", 0), Enter(0, "in", 0, "w", 1)):
        with pytest.raises(timely.InputClosedError, match="input 'in' is closed"):
            group.ask(0, request)
    assert group.read() == {}
    assert not any(instance.input("in").deliveries.batches() for instance in group.instances)


def test_void_is_what_was_decided_about_a_dataflow_that_has_ended() -> None:
    group = Group(2)
    group.stage(1, 0, ["x"])
    group.workers[1].end(0, timely.VertexError("gone"))
    for order in (Sealed(0, 0), Entered(0, "in", "w", 0, 0), Closed(0, "in")):
        group.network.transport(0).send(1, [write_control_header(), encode_control(order)])
    group.workers[1].step()
    with pytest.raises(timely.VertexError, match="gone"):
        group.ask(1, Stage(0, "in", 0, "w", 0, 0, 1), pa.table({"record": [b"\x01"]}))


def test_void_is_a_decision_of_anybody_but_worker_0() -> None:
    group = Group(3)
    for order in (Sealed(0, 0), Entered(0, "in", "w", 0, 0), Closed(0, "in")):
        group.network.transport(2).send(1, [write_control_header(), encode_control(order)])
        with pytest.raises(timely.PeerError, match="worker 2 told worker 1 .* which only worker 0 says"):
            group.workers[1].step()
    for request in (Seal(0, 0), Close(0, "in"), Enter(0, "in", 0, "w", 0)):
        with pytest.raises(timely.RequestError, match="is asked of worker 0, which decides for all"):
            group.ask(1, request)
    assert group.epochs() == [0, 0, 0]


def test_void_orders_that_cannot_be_carried_out_end_the_dataflow_for_all() -> None:
    group = Group(2)
    group.network.transport(0).send(
        1, [write_control_header(), encode_control(Entered(0, "no such input", "w", 0, 0))]
    )
    group.settle()
    for worker in group.workers:
        assert not worker.instances
        with pytest.raises(
            timely.MisuseError, match="no input 'no such input'(.|\n)*has ended with this error"
        ):
            worker.instance(0)


ACTIONS = st.lists(
    st.tuples(st.sampled_from(["insert", "insert", "seal", "step", "retry"]), st.integers(0, 5)), max_size=25
)


@given(ACTIONS, st.integers(0, 10_000), st.integers(1, 3))
def test_enter_every_insertion_is_whole_in_one_epoch_whatever_the_delays(
    actions: list[tuple[str, int]], seed: int, count: int
) -> None:
    group = Group(count, seed)
    entered: dict[int, int] = {}
    for what, number in actions:
        if what == "insert" or (what == "retry" and number in entered):
            for worker in range(count):
                group.stage(worker, number, [(number, worker)])
            is_new, epoch = group.orders.enter(0, "in", 0, DeliveryName("w", number))
            assert is_new is (number not in entered)
            entered.setdefault(number, epoch)
        elif what == "seal":
            group.orders.seal(0, open_epoch(group.instances[0]))
        elif what == "step":
            group.workers[number % count].step()
    group.orders.seal(0, open_epoch(group.instances[0]))
    assert group.read() == {
        (epoch, (number, worker)): 1 for number, epoch in entered.items() for worker in range(count)
    }
    assert len(set(group.epochs())) == 1


def test_open_epoch_of_inputs_that_are_closed_has_no_say() -> None:
    worker = Worker()
    dataflow = timely.Dataflow("words")
    word_count(dataflow)
    instance = worker.install(dataflow.freeze())
    assert open_epoch(instance) == 0
    instance.input("lines").append(5, Records(["late"]))
    instance.input("lines").close()
    assert open_epoch(instance) == 6
