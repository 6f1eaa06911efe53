"""A dataflow on one worker: the run queue, the list of changes, what is due.

queue_*     topologically first stages first, everything that is ready at once
changes_*   what a step tells progress tracking
errors_*    an exception of a vertex says where it came from
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from failing_flows import spins

from progress.times.anchor import Rebase
from progress.times.timestamp import Timestamp
from timely import Batch, Dataflow, InternalError, Records, Vertex
from timely.client.tables import records_of
from timely.running.core import Worker
from timely.running.instance import PATIENCE_STEPS, Instance
from timely.wire.transport.memory import MemoryNetwork


class Passes(Vertex):
    """Passes on, and writes down who ran when with how much."""

    def __init__(self, log: list[tuple[str, int]]) -> None:
        self.log = log

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.log.append((self.name, len(message)))
        self.send_by(0, message, time)


def diamond(log: list[tuple[str, int]]) -> tuple[Worker, Instance]:
    dataflow = Dataflow()
    numbers = dataflow.input("numbers")
    first = numbers.stage("first", lambda: Passes(log))
    left, right = (first.stage(name, lambda: Passes(log)) for name in ("left", "right"))
    dataflow.stage("last", lambda: Passes(log), [left.feed(), right.feed(), numbers.feed()])
    worker = Worker()
    return worker, worker.install(dataflow.freeze())


def test_queue_a_stage_runs_when_all_before_it_have() -> None:
    log: list[tuple[str, int]] = []
    worker, instance = diamond(log)
    instance.input("numbers").send(["x"])
    instance.input("numbers").seal()
    worker.run_until_idle()
    assert [name for name, _ in log] == ["first", "left", "right", "last", "last", "last"]
    assert [runner.activations for runner in instance.runners[1:]] == [1, 1, 1, 1], (
        "one activation takes all that waits"
    )


def test_queue_is_empty_when_nothing_is_to_do() -> None:
    worker, instance = diamond([])
    worker.run_until_idle()
    assert not instance.has_work() and not worker.has_work() and not worker.step()


def test_changes_of_messages_sent_and_received_in_one_step_cancel() -> None:
    worker, instance = diamond([])
    told: list[int] = []
    applied = instance.apply

    def apply(changes: list[tuple[int, int, int]]) -> None:
        told.append(len(changes))
        applied(changes)

    instance.apply = apply  # type: ignore[method-assign]  # to look at what the tracker is told
    instance.input("numbers").send(["x"])
    instance.input("numbers").seal()
    worker.run_until_idle()
    assert told == [2], "only that the epoch of the input has moved on"


def test_changes_put_increments_first() -> None:
    _, instance = diamond([])
    instance.count(3, 8, -1)
    instance.count(1, 2, 1)
    instance.count(2, 2, -1)
    instance.count(2, 2, 1)
    assert instance.take_changes() == [(1, 2, 1), (3, 8, -1)]
    assert instance.take_changes() == []


def test_changes_of_the_first_open_epoch_is_how_far_all_is_done() -> None:
    worker, instance = diamond([])
    assert instance.epochs_done() == 0
    instance.input("numbers").seal(6)
    worker.run_until_idle()
    assert instance.epochs_done() == 7


def test_errors_of_a_vertex_carry_its_place() -> None:
    class Fails(Vertex):
        def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
            raise LookupError("nothing here")

    dataflow = Dataflow()
    dataflow.input("numbers").stage("fails", Fails)
    worker = Worker()
    handle = worker.install(dataflow.freeze()).input("numbers")
    handle.send(["x"])
    handle.seal()
    with pytest.raises(LookupError, match="nothing here") as caught:
        worker.step()
    assert f"while 'fails' (stage 1, worker 0 of 1) ran, built at {__file__}" in caught.value.__notes__[0]


def test_errors_a_dataflow_needs_an_input() -> None:
    dataflow = Dataflow()
    with dataflow.loop() as loop:
        back = loop.feedback()
        (out,) = dataflow.stage("self", Vertex, [back.stream.feed()])
        back.connect(out)
    with pytest.raises(InternalError, match="has no input"):
        Worker().install(dataflow.freeze())


class PutsOffVertex(Vertex):
    """Has three idle moments' work to do after each activation."""

    def __init__(self) -> None:
        self.left = 0

    def on_recv(self, edge: int, message: list[object], time: tuple[int, ...]) -> None:
        self.left = 3

    def on_idle(self) -> bool:
        self.left = max(0, self.left - 1)
        return self.left > 0

    def on_rest(self) -> None:
        self.left += 2


def test_work_that_may_wait_is_done_in_idle_moments_until_there_is_no_more() -> None:
    dataflow = Dataflow()
    dataflow.output("nothing", dataflow.input("numbers").stage("puts off", PutsOffVertex))
    worker = Worker()
    instance = worker.install(dataflow.freeze())
    assert not worker.idle()
    instance.inputs["numbers"].send([1])
    instance.inputs["numbers"].seal()
    worker.run_until_idle()
    assert [worker.idle(), worker.idle(), worker.idle(), worker.idle()] == [True, True, False, False]
    worker.rest()
    assert [worker.idle(), worker.idle(), worker.idle()] == [True, False, False], (
        "what it begins then is done"
    )


class RestsVertex(Vertex):
    """Counts how often nothing has happened for a while."""

    rested = 0

    def on_recv(self, edge: int, message: list[object], time: tuple[int, ...]) -> None:
        pass

    def on_rest(self) -> None:
        self.rested += 1
        if self.rested > 1:
            raise SystemExit("tired")


def test_whoever_only_wants_to_know_of_rest_is_told_and_may_fail_as_anywhere() -> None:
    dataflow = Dataflow()
    dataflow.output("nothing", dataflow.input("numbers").stage("rests", RestsVertex))
    worker = Worker()
    instance = worker.install(dataflow.freeze())
    failed: list[int] = []
    worker.on_failure = lambda number, error: failed.append(number)
    worker.rest()
    assert not worker.idle() and not failed
    vertex = instance.runners[1].vertex
    assert isinstance(vertex, RestsVertex) and vertex.rested == 1
    worker.rest()
    assert failed == [0] and 0 in worker.ended


def test_queue_outputs_of_a_loop_take_what_came_in_many_iterations_together() -> None:
    """They wait until nothing else is ready, and no longer than some steps."""
    worker = Worker()
    instance = worker.install(counts_down().freeze())
    output = next(runner for runner in instance.runners if runner.name == "output all")
    for epoch, number in enumerate((PATIENCE_STEPS // 2, 4 * PATIENCE_STEPS)):
        before = output.activations
        instance.input("numbers").send([number])
        instance.input("numbers").seal()
        worker.run_until_idle()
        assert instance.output("all").log.changes(epoch, epoch + 1).num_rows == number
        assert before < output.activations <= before + 2 + number // PATIENCE_STEPS + 2


def test_queue_outputs_of_a_loop_on_several_workers_wait_for_nobody() -> None:
    """At the end of a step others are waited for, and told of whatever is left."""
    network = MemoryNetwork(2)
    workers = [Worker(index, 2, network.transport(index)) for index in range(2)]
    instances = [worker.install(counts_down().freeze()) for worker in workers]

    def step_all() -> bool:
        return sum(worker.step() for worker in workers) > 0

    while step_all():
        pass
    for instance in instances:
        instance.input("numbers").send([5])
        instance.input("numbers").seal()
    while step_all():
        assert not any(instance.runners[-1].inbox for instance in instances)
    assert instances[0].runners[-1].name == "output all"
    assert [instance.output("all").log.changes(0, 1).num_rows for instance in instances] == [5, 5]


def counts_down() -> Dataflow:
    """A loop out of which a row comes in each iteration."""
    dataflow = Dataflow("counts down")
    with dataflow.loop() as loop:
        back = loop.feedback()
        entered = loop.enter(dataflow.input("numbers"))
        (out,) = dataflow.stage("less", CountsDownVertex, [entered.feed(), back.stream.feed()])
        back.connect(out)
    dataflow.output("all", loop.leave(out))
    return dataflow


def test_queue_outputs_that_are_behind_no_loop_take_what_comes_in_the_step_in_which_it_comes() -> None:
    """Waiting would make a second step of every change, and one more message to each other worker."""
    dataflow = Dataflow()
    dataflow.output("all", dataflow.input("numbers").stage("as they come", ForwardVertex))
    worker = Worker()
    instance = worker.install(dataflow.freeze())
    worker.run_until_idle()
    instance.inputs["numbers"].send([7])
    instance.inputs["numbers"].seal()
    worker.step()
    assert instance.runners[-1].name == "output all" and not instance.runners[-1].inbox
    worker.step()  # news of the frontier
    assert instance.output("all").log.changes(0, 1).num_rows == 1


class ForwardVertex(Vertex):
    """Hands on what it gets."""

    def on_recv(self, edge: int, message: object, time: tuple[int, ...]) -> None:
        self.send_by(0, message, time)


class CountsDownVertex(Vertex):
    """Sends each number less one, down to nought."""

    def on_recv(self, edge: int, message: list[object], time: tuple[int, ...]) -> None:
        less = [int(str(number)) - 1 for number in message if number]
        self.send_by(0, less, time)


def test_queue_a_loop_that_never_waits_starves_neither_what_is_behind_it_nor_what_is_beside() -> None:
    worker = Worker()
    dataflow = Dataflow("spins")
    spins(dataflow)
    instance = worker.install(dataflow.freeze())
    instance.input("records").send(["round"])
    behind = next(runner for runner in instance.runners if runner.name == "keeps")
    for epoch in range(5):
        instance.input("others").send([epoch])
        for name in ("records", "others"):
            instance.input(name).seal()
        before = behind.activations
        # A turn for each stage and for each piece of news that follows, and outputs wait for others.
        complete = 0
        for _ in range(12 + 2 * PATIENCE_STEPS):
            worker.step()
            complete = instance.output("beside").complete_before  # as who waits for it looks
        assert complete == epoch + 1
        assert behind.activations > before
    assert instance.output("behind").complete_before == 0 and instance.has_work()
    # Nobody is listed more than twice: once in order, and once more for a turn out of order.
    assert len(instance._ready) <= 2 * len(instance.runners)


class AsksForMany(Vertex):
    """Asks for more notifications than are looked through one by one."""

    def __init__(self) -> None:
        self.told: list[int] = []

    def on_recv(self, edge: int, message: list[object], time: tuple[int, ...]) -> None:
        for epoch in range(6, 66):
            self.notify_at((epoch,))

    def on_notify(self, time: tuple[int, ...]) -> None:
        self.told.append(time[0])


@pytest.mark.parametrize("due_first", [True, False])
def test_notifications_come_once_each_wherever_the_anchor_moves(due_first: bool) -> None:
    dataflow = Dataflow(level_bits=(8,))
    dataflow.input("rows").stage("asks", AsksForMany)
    worker = Worker()
    instance = worker.install(dataflow.freeze())
    instance.input("rows").send([1])
    instance.input("rows").seal(5)
    worker.run_until_idle()
    instance.input("rows").seal(20)
    instance.run(9)
    worker._publish(instance.index, instance)
    if due_first:
        instance.check_notifications()
    instance._rebase(Rebase(5, instance.frozen.layout.shifts[0]))
    instance.check_notifications()
    worker.run_until_idle()
    vertex = instance.runners[1].vertex
    assert isinstance(vertex, AsksForMany) and vertex.told == list(range(6, 21))
    instance.input("rows").close()
    worker.run_until_idle()
    assert vertex.told == list(range(6, 66)) and instance.is_complete()


class HoldsMany(Vertex):
    """Holds more times than are looked through one by one, and sends after each when the anchor has moved."""

    word_times = True

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        ((word, _),) = messages
        self.held = [word + (2 * number << self.code.layout.shifts[0]) for number in range(40)]
        for held in self.held:
            self.hold(held)
        self.has_moved = False
        self.resume()

    def rebase(self, by: Rebase) -> None:
        self.has_moved = True
        self.held = [by.word(word) for word in self.held]
        self.resume()

    def on_resume(self) -> None:
        for held in self.held if self.has_moved else self.held[:1]:
            self.send(0, Records([held]), held + (1 << self.code.layout.shifts[0]))
            if self.has_moved:
                self.release(held)


def test_rights_move_with_the_anchor_however_many_there_are() -> None:
    dataflow = Dataflow(level_bits=(8,))
    dataflow.output("sent", dataflow.input("rows").stage("holds", HoldsMany))
    worker = Worker()
    instance = worker.install(dataflow.freeze())
    instance.input("rows").send([1], 5)
    instance.input("rows").close()
    worker.run_until_idle()
    assert instance.runners[1]._held_in_order is not None
    instance._rebase(Rebase(4, instance.frozen.layout.shifts[0]))
    worker.run_until_idle()
    first, *sent = records_of(instance.output("sent").log.changes(0, 2**62))
    assert first == (6, 5)
    assert sent == [(6 + 2 * number, 1 + 2 * number) for number in range(40)] and instance.is_complete()
