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
from timely.limits import NAME_CHARS_MAX
from timely.operators.capture import FOREVER
from timely.running.core import Worker
from timely.running.instance import Instance
from timely.running.progress_messages import write_control_header
from timely.wire.batch import Records
from timely.wire.handshake import Decided, EndHeard, Entering, encode_control
from timely.wire.requests import IN_OPEN, WHEN_NAMED, Decide, Deliver, Reply, Request, Value
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
        reply = self.ask(worker, Deliver(0, "in", "w", sequence, WHEN_NAMED, epoch, 1, part=part), table)
        return bool(reply.integer("is_new"))

    def enter(self, sequence: int, epoch: int = 0) -> tuple[bool, int]:
        """Let an insertion enter: whether it was new, and its epoch."""
        reply = self.orders.decide(Decide(0, epoch, enter=[["in", "w", sequence]]))
        ((is_new, entered),) = reply.values["entered"]  # type: ignore[attr-defined]
        return is_new, entered

    def close(self, name: str) -> int:
        """Close an input: the epoch that is open then."""
        return self.orders.decide(Decide(0, -1, close=[name])).integer("open")

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
    assert group.enter(0, 0) == (True, 5)
    group.orders.seal(0, 5)
    assert group.read() == {(5, (letter, worker)): 1 for letter in "abc" for worker in range(3)}


def test_enter_takes_a_later_epoch_if_the_client_knows_one() -> None:
    group = Group(2)
    group.stage(0, 0, ["x"])
    assert group.enter(0, 3) == (True, 3)
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
        is_new, _ = group.enter(0, 0)
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
    group.enter(0, 0)
    group.orders.seal(0, 0)
    assert group.read() == {(0, "x"): 1, (0, "y"): 1}


def test_enter_no_part_that_is_left_over_from_a_longer_try_under_the_same_name() -> None:
    """A client was killed before it came to decide, and has fewer rows when it is started again."""
    group = Group(2)
    for part, record in enumerate(("old", "older", "oldest")):
        for worker in range(2):
            group.stage(worker, 0, [f"{record} {worker}"], part)
    for worker in range(2):
        for part in range(2):
            group.stage(worker, 0, [f"new {part} {worker}"], part)
    for parts in (0, -2):
        with pytest.raises(timely.TimelyError, match="what enters is"):
            group.orders.decide(Decide(0, 0, enter=[["in", "w", 0, parts]]))
    reply = group.orders.decide(Decide(0, 0, enter=[["in", "w", 0, 2]]))
    assert reply.values["entered"] == [[True, 0]]
    group.orders.seal(0, 0)
    assert group.read() == {(0, f"new {part} {worker}"): 1 for worker in range(2) for part in range(2)}
    assert not any(instance.input("in").deliveries.staged_bytes for instance in group.instances)


def test_enter_what_has_not_arrived_is_refused_and_may_be_inserted_then() -> None:
    group = Group(2)
    with pytest.raises(timely.MisuseError, match="the parts of insertion 0 of writer 'w'"):
        group.enter(0, 0)
    group.stage(0, 0, ["x"])
    with pytest.raises(timely.TimeOverflowError):
        group.enter(0, 2**62)
    assert group.enter(0, 0) == (True, 0)
    group.orders.seal(0, 0)
    assert group.read() == {(0, "x"): 1}


def test_close_ends_one_input_and_all_closed_is_the_end() -> None:
    group = Group(2)
    group.orders.seal(0, 1)
    assert group.close("in") == group.close("in") == 2
    group.settle()
    assert [instance.output("out").complete_before for instance in group.instances] == [FOREVER] * 2
    assert group.orders.seal(0, 2) == 3
    assert group.close("other") == 4
    with pytest.raises(timely.InputClosedError, match="all inputs of dataflow 0 are closed"):
        group.orders.seal(0, 4)
    group.settle()
    assert all(instance.is_complete() for instance in group.instances)
    assert [open_epoch(instance) for instance in group.instances] == [4, 4]


def test_close_drops_what_was_not_entered_and_takes_nothing_more() -> None:
    group = Group(2)
    for worker in range(2):
        group.stage(worker, 0, ["never entered"])
    group.ask(0, Decide(0, -1, close=["in"]))
    for request in (Decide(0, 0, enter=[["in", "w", 0]]), Decide(0, 0, enter=[["in", "w", 1]])):
        with pytest.raises(timely.InputClosedError, match="input 'in' is closed"):
            group.ask(0, request)
    assert group.read() == {}
    assert not any(instance.input("in").deliveries.batches() for instance in group.instances)


def test_void_is_what_was_decided_about_a_dataflow_that_has_ended() -> None:
    group = Group(2)
    group.stage(1, 0, ["x"])
    group.workers[1].end(0, timely.VertexError("gone"))
    for order in (
        Decided(0, 0),
        Decided(0, -1, (Entering("in", "w", 0, 0, 0, None),)),
        Decided(0, -1, (), ("in",)),
    ):
        group.network.transport(0).send(1, [write_control_header(), encode_control(order)])
    group.workers[1].step()
    with pytest.raises(timely.VertexError, match="gone"):
        group.ask(1, Deliver(0, "in", "w", 0, WHEN_NAMED, 0, 1, part=0), pa.table({"record": [b"\x01"]}))


def test_void_is_a_decision_of_anybody_but_worker_0() -> None:
    group = Group(3)
    for order in (
        Decided(0, 0),
        Decided(0, -1, (Entering("in", "w", 0, 0, 0, None),)),
        Decided(0, -1, (), ("in",)),
    ):
        group.network.transport(2).send(1, [write_control_header(), encode_control(order)])
        with pytest.raises(timely.PeerError, match="worker 2 told worker 1 .* which only worker 0 may send"):
            group.workers[1].step()
    for request in (Decide(0, 0, True), Decide(0, -1, close=["in"]), Decide(0, 0, enter=[["in", "w", 0]])):
        with pytest.raises(timely.RequestError, match="goes to worker 0, which decides for all"):
            group.ask(1, request)
    assert group.epochs() == [0, 0, 0]


def test_void_orders_that_cannot_be_carried_out_end_the_dataflow_for_all() -> None:
    group = Group(2)
    group.network.transport(0).send(
        1,
        [
            write_control_header(),
            encode_control(Decided(0, -1, (Entering("no such input", "w", 0, 0, 0, None),))),
        ],
    )
    group.settle()
    for worker in group.workers:
        assert not worker.instances
        with pytest.raises(
            timely.MisuseError, match="no input 'no such input'(.|\n)*has ended with this error"
        ):
            worker.instance(0)


def test_all_of_a_decision_is_made_or_nothing() -> None:
    """What enters, an epoch that is complete by that, and an input that is closed."""
    group = Group(2)
    for sequence in range(2):
        group.stage(0, sequence, [sequence])
    group.stage(1, 0, ["other half"])
    refused: list[list[Value]] = [["in", "w", 0], ["in", "v", 7]]
    for request in (
        Decide(0, 0, True, enter=refused),
        Decide(0, 0, True, enter=[["in", "w", 0]], close=["no such input"]),
        Decide(0, 0, True, [["in", 7]], [["in", "w", 0]]),
        Decide(0, 0, True, enter=[["in", "w", 0], ["in", "w", 1]]),
        Decide(0, 0, True, enter=[["in", "w", 0], ["in"]]),
        Decide(0, 0, True, enter=[["in", "w", 0], ["in", "x" * (NAME_CHARS_MAX + 1), 1]]),
        Decide(0, 0, True, enter=[["in", "w", 0], ["in", "q", 0, [], "x" * (NAME_CHARS_MAX + 1), False, 0]]),
        Decide(0, 2**62, True, enter=[["in", "w", 0]]),
        Decide(0, 0, True, enter=[["in", "w", 0]], close=[0]),
        Decide(0, 2**62, True, close=["other"]),
    ):
        with pytest.raises(timely.TimelyError):
            group.ask(0, request)
        assert group.epochs() == [0, 0] and group.network.in_flight() == 0, request
        assert not any(handle.is_closed for handle in group.instances[0].inputs.values()), request
    reply = group.ask(0, Decide(0, 0, True, enter=[["in", "w", 0]], close=["other"]))
    assert reply.values == {"entered": [[True, 0]], "open": 1, "sealed": 0}
    assert group.read() == {(0, 0): 1, (0, "other half"): 1}
    assert [instance.output("beside").complete_before for instance in group.instances] == [FOREVER] * 2
    again = group.ask(0, Decide(0, -1, True, enter=[["in", "w", 0]], close=["other"]))
    assert again.values == {"entered": [[False, 1]], "open": 1, "sealed": -1}
    group.close("in")
    with pytest.raises(timely.InputClosedError, match="there is no epoch 7 to seal"):
        group.ask(0, Decide(0, 7, True, close=["in"]))


def test_after_rows_that_were_posted_the_epochs_that_they_have_entered_are_sealed() -> None:
    """Also where another client has sealed the epoch meanwhile that the one who asks takes for open."""
    group = Group(2)
    table = pa.table({"record": [msgpack.packb("x")]})
    for sequence, epoch in enumerate((0, 3)):
        group.ask(0, Deliver(0, "in", "w", sequence, IN_OPEN, 0, 1), table)
        assert group.orders.seal(0, epoch) == epoch + 1
    group.ask(0, Deliver(0, "in", "w", 2, IN_OPEN, 0, 1), table)
    unknown = group.ask(0, Decide(0, 1, True, [["in", "w", 2], ["in", "w", 3]]))
    assert unknown.values == {"open": -1, "sealed": -1}, "nothing is done behind what is not known"
    assert group.ask(0, Decide(0, 1, True, [["in", "w", 2]])).values == {"open": 5, "sealed": 4}
    assert group.ask(0, Decide(0, 9, True, [["in", "w", 1]])).values == {"open": 10, "sealed": 9}
    assert group.ask(0, Decide(0, 1, False, [["in", "w", 1]])).values == {"open": 10, "sealed": -1}


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
            is_new, epoch = group.enter(number, 0)
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


def test_an_end_is_being_told_until_all_others_have_heard_of_it() -> None:
    group = Group(3)
    for server in group.servers:
        server.greet()
    group.settle()
    group.workers[1].fail(0, ValueError("a bad row"))
    assert [server.is_telling_an_end for server in group.servers] == [False, True, False]
    for peer in (2, 0):
        assert group.servers[1].is_telling_an_end
        group.servers[1]._on_control(peer, memoryview(encode_control(EndHeard(0))))
    assert not group.servers[1].is_telling_an_end
    group.settle()
    assert not any(server.is_telling_an_end for server in group.servers)
    assert all(0 in worker.ended for worker in group.workers)
