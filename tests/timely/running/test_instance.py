"""A dataflow on one worker: the list of changes, what is due.

changes_*   what a step tells progress tracking
rest_*      when a step would do nothing
errors_*    an exception of a vertex says where it came from
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from progress.times.anchor import Rebase
from progress.times.timestamp import Timestamp
from timely import Batch, Dataflow, InternalError, Records, Vertex
from timely.client.tables import records_of
from timely.operators.capture import FOREVER
from timely.running.core import Worker
from timely.running.instance import Instance


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


class Silent(Vertex):
    """Sends nothing by its second output, and says so."""

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.send_by(0, message, time)


def test_changes_an_output_that_no_input_reaches_is_complete_from_the_beginning() -> None:
    dataflow = Dataflow()
    feeds = [dataflow.input("numbers").feed()]
    reached, never = dataflow.stage("silent", Silent, feeds, outputs=2, paths={(0, 1): None})
    dataflow.output("reached", reached)
    dataflow.output("never", never)
    worker = Worker()
    instance = worker.install(dataflow.freeze())
    worker.run_until_idle()
    assert instance.output("never").complete_before == FOREVER
    assert instance.output("reached").complete_before == 0


def test_changes_put_increments_first() -> None:
    _, instance = diamond([])
    instance.count(3, 8, -1)
    instance.count(1, 2, 1)
    instance.count(2, 2, -1)
    instance.count(2, 2, 1)
    assert instance.changes.take() == [(1, 2, 1), (3, 8, -1)]
    assert instance.changes.take() == []


def test_changes_of_the_first_open_epoch_is_how_far_all_is_done() -> None:
    worker, instance = diamond([])
    assert instance.epochs_done() == 0
    instance.input("numbers").seal(6)
    worker.run_until_idle()
    assert instance.epochs_done() == 7


@pytest.mark.parametrize("beyond", [-1, 0, 1, 1000])
def test_changes_of_epochs_that_no_word_holds_are_how_far_all_is_done(beyond: int) -> None:
    dataflow = Dataflow()
    dataflow.level_bits = (5,)
    dataflow.output("out", dataflow.input("numbers"))
    instance = Worker().install(dataflow.freeze())
    (stage,) = {location for location, _, _ in instance.pointstamps()}
    code, before = instance.runners[stage].code, 0
    for epoch in (instance.frozen.layout.epochs + beyond, 2000):
        instance.apply([(stage, code.word_of_epoch(epoch), 1), (stage, code.word_of_epoch(before), -1)])
        assert instance.epochs_done() == epoch, "the anchor has not followed yet"
        before = epoch


@pytest.mark.parametrize(
    "where",
    ["turns.ready", "turns.resumed", "turns.patient", "recheck", "changes.deltas", "alarms.rung"],
)
def test_rest_is_none_while_there_is_anything_to_do(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if it is that alone: a step would pass over it."""
    worker, instance = diamond([])
    worker.run_until_idle()
    assert instance.is_at_rest() and instance.is_calm
    monkeypatch.setattr(_at(instance, where), where.rsplit(".", 1)[-1], [1])
    assert not instance.is_at_rest()
    assert instance.is_calm == (where in ("turns.resumed", "turns.patient", "alarms.rung")), (
        "they wait for others"
    )


@pytest.mark.parametrize("where", ["_awaiting", "arrivals.late", "far.pointstamps"])
def test_rest_is_none_while_something_waits_for_the_anchor_and_it_may_move(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker, instance = diamond([])
    worker.run_until_idle()
    monkeypatch.setattr(instance, "_room_ahead", lambda: 1)
    assert instance.is_at_rest() and not instance.can_move_anchor()
    monkeypatch.setattr(_at(instance, where), where.rsplit(".", 1)[-1], [1])
    assert not instance.is_at_rest() and instance.can_move_anchor()
    monkeypatch.setattr(instance, "_room_ahead", lambda: 0)
    assert instance.is_at_rest()


def _at(instance: Instance, where: str) -> object:
    """Who has it."""
    for name in where.split(".")[:-1]:
        instance = getattr(instance, name)
    return instance


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
    instance.turns.run(9)
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
            self.hold_word(held)
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
                self.release_word(held)


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
