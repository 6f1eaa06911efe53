"""All orders in which small dataflows can happen, on real workers (`timely/running/checking/explorer.py`).

explored_*   everything that can be reached is as it must be, and every end is the right one
mutants_*    the runtime is broken on purpose, each way by name; what the explorer says of it

With the thorough profile scenarios are larger.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import pytest

from progress.checking.counterexample import Counterexample
from progress.times.timestamp import Timestamp
from progress.tracking.count_changes import Change
from timely import Batch, Capability, Dataflow, Vertex
from timely.building.exchange import RecordRoute
from timely.client.tables import records_of
from timely.limits import MESSAGE_BYTES_MIN
from timely.running.checking.explorer import Explorer
from timely.running.checking.reached import Client, Explorable, Message, Wire
from timely.running.core import Worker
from timely.running.credits import Credits
from timely.running.instance import Instance
from timely.running.progress_messages import CreditNews
from timely.running.stages.connector import Connector
from timely.running.stages.vertex_runner import VertexRunner

EPOCHS = 2
Rounds = Counter[tuple[int, object]]


def number_of(record: object) -> int:
    assert isinstance(record, int)
    return record


class RoundVertex(Vertex):
    """When a time is complete: says of each number how often it has come, and sends it round as one less."""

    def __init__(self) -> None:
        self.waiting: dict[Timestamp, list[int]] = {}
        self.over: list[Timestamp] = []

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        shape = self.code.shape
        assert not any(shape.less_equal(time, over) for over in self.over), f"{time} comes after its end"
        if time not in self.waiting:
            self.waiting[time] = []
            self.notify_at(time)
        self.waiting[time].extend(map(number_of, message))

    def on_notify(self, time: Timestamp) -> None:
        self.over.append(time)
        numbers = self.waiting.pop(time)
        self.send_by(0, [number - 1 for number in numbers if number > 0], time)
        self.send_by(
            1, [(number, time[1], count) for number, count in sorted(Counter(numbers).items())], time
        )

    def compared(self) -> object:
        return sorted((time, sorted(numbers)) for time, numbers in self.waiting.items()), sorted(self.over)


def rounds(dataflow: Dataflow) -> None:
    """Numbers go round a loop, from worker to worker, until they are zero."""
    records = dataflow.input("records")
    with dataflow.loop("down") as loop:
        back = loop.feedback()
        feeds = [stream.feed(route=RecordRoute(number_of)) for stream in (loop.enter(records), back.stream)]
        again, said = dataflow.stage("round", RoundVertex, feeds, outputs=2)
        back.connect(again)
        left = loop.leave(said)
    dataflow.output("rounds", left)


def plainly(epochs: Sequence[Sequence[int]]) -> Rounds:
    """What `rounds` means: by hand, without workers."""
    said: Rounds = Counter()
    for epoch, numbers in enumerate(epochs):
        turn, now = 0, list(numbers)
        while now:
            said.update((epoch, (number, turn, count)) for number, count in Counter(now).items())
            turn, now = turn + 1, [number - 1 for number in now if number > 0]
    return said


def said_in(instances: Sequence[Instance]) -> Rounds:
    found: Rounds = Counter()
    for instance in instances:
        found.update(records_of(instance.output("rounds").log.changes(0, EPOCHS)))
    return found


def rounds_of(*clients: Sequence[Sequence[int]]) -> Explorable:
    """`rounds`, of whose numbers each client sends some epoch by epoch."""
    epochs = [[number for client in clients for number in client[epoch]] for epoch in range(len(clients[0]))]
    acts = [
        [Client(tuple(numbers), is_last=epoch == len(epochs) - 1) for epoch, numbers in enumerate(client)]
        for client in clients
    ]
    return Explorable(rounds, acts, said_in, plainly(epochs))


class PiecesVertex(Vertex):
    """Holds the time of what has come, and sends one number of it at a turn; with the last one it lets go."""

    def __init__(self) -> None:
        self.left: list[tuple[Capability, list[int]]] = []

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.left.append((self.hold(time), [*map(number_of, message)]))
        self.resume()

    def on_resume(self) -> None:
        held, numbers = self.left[0]
        self.send_by(0, [numbers.pop()], held.time)
        if not numbers:
            held.drop()
            self.left.pop(0)
        if self.left:
            self.resume()


class EpochVertex(Vertex):
    """All numbers of an epoch in one record, when it is complete."""

    def __init__(self) -> None:
        self.waiting: dict[Timestamp, list[int]] = {}

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.notify_at(time)
        self.waiting[time] = sorted([*self.waiting.get(time, []), *map(number_of, message)])

    def on_notify(self, time: Timestamp) -> None:
        self.send_by(0, [tuple(self.waiting.pop(time))], time)


def pieces(dataflow: Dataflow) -> None:
    """Numbers leave one after the other, and those for the same worker meet again."""
    sent = dataflow.input("records").stage("pieces", PiecesVertex)
    dataflow.output("rounds", sent.stage("epoch", EpochVertex, exchange=number_of))


PIECES = Explorable(
    pieces,
    [[Client((1, 3), is_last=True)], [Client((1,), is_last=True)]],
    said_in,
    Counter([(0, (1, 1, 3))]),
)


class TwoEpochsVertex(Vertex):
    """A source: a number in each of two epochs, each in a turn of its own, one epoch after the other."""

    def on_open(self, capability: Capability) -> None:
        self.held = capability
        self.activate()

    def on_activate(self) -> None:
        (epoch,) = self.held.time
        self.send_by(0, [epoch + self.worker], self.held.time)
        if epoch == 1:
            self.held.drop()
        else:
            self.held.downgrade((epoch + 1,))
            self.activate()


def from_sources(dataflow: Dataflow) -> None:
    """Numbers of a source on the second of two workers."""
    source = dataflow.source("second", TwoEpochsVertex, workers=[1])
    dataflow.output("rounds", source.stage("epoch", EpochVertex, exchange=number_of))


SOURCES = Explorable(from_sources, [[], []], said_in, Counter([(0, (1,)), (1, (2,))]))


# explored_


@pytest.mark.timeout(600)
def test_explored_a_loop_with_notifications_on_two_workers_in_every_order(effort: int) -> None:
    """1,812 states; with two epochs, 145,678."""
    explored = Explorer(rounds_of([[1]], [[1]]) if effort == 1 else rounds_of([[0], [0]], [[], [0]])).run()
    assert explored.states > 1_500 and explored.ends >= 1, explored


def test_explored_two_epochs_on_two_workers_that_step_and_are_stopped_anywhere(effort: int) -> None:
    explored = Explorer(rounds_of([[int(effort > 1)], [0]], [[], [0]]), orderly=True).run()
    assert explored.states > 3_000, explored


def test_explored_three_workers_that_step_and_are_stopped_anywhere() -> None:
    explored = Explorer(rounds_of([[1]], [[]], [[]]), orderly=True).run()
    assert explored.states > 5_000, explored


def test_explored_a_source_on_one_of_two_workers_in_every_order() -> None:
    explored = Explorer(SOURCES).run()
    assert explored.states > 100 and explored.ends >= 1, explored


@pytest.mark.timeout(600)
def test_explored_pieces_that_are_sent_at_a_time_that_is_held(effort: int) -> None:
    """4,239 states; in every order also of what a worker does by itself, 250,696."""
    explored = Explorer(PIECES, orderly=effort == 1, states_max=400_000).run()
    assert explored.ends >= 1, explored


@pytest.mark.timeout(600)
@pytest.mark.parametrize("messages", [1, 2])
def test_explored_with_room_for_a_message_or_two_nothing_waits_for_ever(messages: int, effort: int) -> None:
    """What one more message would do is part of each state: some thousand, where there are hundreds without.
    With three workers, which tell one another that they hold, 65,000.
    """
    scenario = rounds_of([[0]], [[]]) if effort == 1 else rounds_of([[0]], [[]], [[]])
    explored = Explorer(
        replace(scenario, credit_bytes=messages * MESSAGE_BYTES_MIN), orderly=effort > 1
    ).run()
    assert explored.states > 1_000 and explored.ends >= 1, explored


@pytest.mark.timeout(600)
@pytest.mark.parametrize("per_host", [1, 2])
def test_explored_workers_that_hold_back_what_they_tell_of_progress(per_host: int, effort: int) -> None:
    """On demand 2,261 states of three workers, with a hub 907; in every order 4,361 and 14,961 of two."""
    scenario = rounds_of([[0]], [[]], [[]]) if effort == 1 else rounds_of([[1]], [[1]])
    explored = Explorer(replace(scenario, per_host=per_host), orderly=effort == 1).run()
    assert explored.states > 500 and explored.ends >= 1, explored


def test_explored_held_times_on_workers_that_hold_back_what_they_tell(effort: int) -> None:
    for per_host in (1, 2)[: 1 if effort == 1 else 2]:
        explored = Explorer(replace(PIECES, per_host=per_host), orderly=True).run()
        assert explored.states > 1_500, explored


# mutants_


def found_by(
    scenario: Explorable, explorer: type[Explorer] = Explorer, orderly: bool = False
) -> Counterexample:
    with pytest.raises(Counterexample) as caught:
        explorer(scenario, orderly).run()
    print(caught.value)  # noqa: T201
    return caught.value


SMALL = rounds_of([[1]], [[]])


def test_mutants_progress_is_told_before_what_a_vertex_sends(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an activation sends leaves, and is counted, after the next payload."""
    send, publish, compared = Connector.send, Worker._publish, Instance.compared

    def late_of(instance: object) -> list[tuple[int, Batch, int]]:
        late: list[tuple[int, Batch, int]] = vars(instance).setdefault("late", [])
        return late

    def send_later(self: Connector, batch: Batch, word: int) -> None:
        late_of(self._carrier).append((self.index, batch, word))

    def publish_first(self: Worker, number: int, instance: Instance) -> bool:
        published = publish(self, number, instance)
        for connector, batch, word in late_of(instance):
            send(instance.connectors[connector], batch, word)
        late_of(instance).clear()
        return published

    monkeypatch.setattr(Connector, "send", send_later)
    monkeypatch.setattr(Worker, "_publish", publish_first)
    monkeypatch.setattr(Instance, "compared", lambda self: (compared(self), late_of(self)))
    assert found_by(SMALL).what.startswith("A2 at worker 0")


def test_mutants_a_message_is_counted_off_before_what_it_causes_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    deliver = VertexRunner._deliver

    def count_off_first(self: VertexRunner) -> None:
        instance = self._surroundings
        assert isinstance(instance, Instance) and isinstance(instance._owner, Worker)
        for _, location, word, _ in self.inbox:
            instance.count(location, word, -1)
        instance._owner._publish(instance.index, instance)
        for _, location, word, _ in self.inbox:
            instance.count(location, word, 1)
        deliver(self)

    monkeypatch.setattr(VertexRunner, "_deliver", count_off_first)
    assert found_by(SMALL).what.startswith("A2 at worker")


def test_mutants_a_notification_is_given_though_another_worker_may_still_send(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An epoch counts as complete where its own input has passed it."""

    def due_by_own_input(self: VertexRunner) -> bool:
        instance = self._surroundings
        assert isinstance(instance, Instance)
        own = instance.input("records").epoch
        found = [word for word in self._waiting if self.code.unpack(word)[0] < own]
        self._waiting = [word for word in self._waiting if word not in found]
        self.due += found
        return bool(found)

    monkeypatch.setattr(VertexRunner, "find_due", due_by_own_input)
    assert found_by(SMALL).what.startswith("due: 'round' (stage 1, worker")


def test_mutants_decrements_are_told_before_increments(monkeypatch: pytest.MonkeyPatch) -> None:
    tell = Worker._tell_all

    def split(self: Worker, dataflow: int, changes: list[Change]) -> None:
        for part in ([c for c in changes if c[2] < 0], [c for c in changes if c[2] > 0]):
            if part:
                tell(self, dataflow, part)

    monkeypatch.setattr(Worker, "_tell_all", split)
    assert found_by(SMALL).what.startswith("A3 at worker 0 towards worker 1")


class Forgets(Explorer):
    """The first message of rows, or of progress, is lost."""

    what: ClassVar[str] = "data"

    def _put(self, wire: Wire, message: Message) -> Wire:
        return wire if getattr(message, self.what) else super()._put(wire, message)


class ForgetsProgress(Forgets):
    what = "payload"


class Overtakes(Explorer):
    """Progress overtakes the progress before it."""

    def _put(self, wire: Wire, message: Message) -> Wire:
        before = [number for number, one in enumerate(wire) if one.payload]
        if not message.payload or not before:
            return super()._put(wire, message)
        return (*wire[: before[-1]], message, *wire[before[-1] :])


@pytest.mark.parametrize("forgets", [Forgets, ForgetsProgress])
def test_mutants_a_message_is_lost(forgets: type[Explorer]) -> None:
    assert found_by(SMALL, forgets).what.startswith(("A5", "B2"))


def test_mutants_progress_of_one_peer_arrives_in_another_order() -> None:
    assert found_by(PIECES, Overtakes, orderly=True).what.startswith(("A3", "B4", "B9"))


def test_mutants_a_mark_is_answered_only_while_the_own_gate_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two workers wait for each other then."""
    on_news = Credits.on_news

    def answer_if_open(self: Credits, peer: int, news: CreditNews) -> None:
        if news is not CreditNews.MARK or self.gate.is_open:
            on_news(self, peer, news)

    monkeypatch.setattr(Credits, "on_news", answer_if_open)
    scenario = replace(rounds_of([[0]], [[0]]), credit_bytes=MESSAGE_BYTES_MIN)
    assert found_by(scenario, orderly=True).what.startswith("nothing can happen, and worker")


def test_mutants_a_notification_that_is_due_is_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(VertexRunner, "find_due", lambda self: False)
    error = found_by(SMALL)
    assert error.what.startswith("nothing can happen, and worker 0 waits: [\"'round' (stage 1) at (0, 0): 1")


def test_mutants_a_vertex_sends_before_its_time_is_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is wrong with progress: but what has come so far is said, and more of it later."""

    def say_at_once(self: RoundVertex, edge: int, message: list[object], time: Timestamp) -> None:
        self.send_by(1, [(number, time[1], count) for number, count in Counter(message).items()], time)

    monkeypatch.setattr(RoundVertex, "on_recv", say_at_once)
    assert found_by(rounds_of([[0]], [[0]])).what.startswith("the result is")


def test_mutants_a_worker_holds_back_what_moves_no_frontier_as_it_sees_it_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both workers close the epoch. To each the other one seems to hold it, so that neither would say that it
    has closed it: this is why a decrement is told although the count stays positive.
    """
    are_led_to = Instance.are_led_to

    def weakly_led_to(self: Instance, points: list[tuple[int, int]], weakly: bool = False) -> bool:
        return are_led_to(self, points, weakly=True)

    scenario = replace(rounds_of([[]], [[]]), per_host=1)
    assert Explorer(scenario, orderly=True).run().ends == 1
    monkeypatch.setattr(Instance, "are_led_to", weakly_led_to)
    with pytest.raises(Counterexample, match="nothing can happen, and worker . waits"):
        Explorer(scenario, orderly=True).run()
