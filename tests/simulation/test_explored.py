"""All orders in which small dataflows can happen, on real workers (`tests/reference/explorer.py`).

explored_*   everything that can be reached is as it must be, and every end is the right one
mutants_*    the runtime is broken on purpose, each way by name; what the explorer says of it

With the thorough profile scenarios are larger.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar

import pytest
from reference.explorer import Client, Counterexample, Explorer, Message, Scenario, Wire

from progress.times.timestamp import Timestamp
from progress.tracking.count_changes import Change
from timely import Batch, Dataflow, Vertex
from timely.building.exchange import RecordRoute
from timely.client.tables import records_of
from timely.running.core import Worker
from timely.running.instance import Instance
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


def rounds_of(*clients: Sequence[Sequence[int]]) -> Scenario:
    """`rounds`, of whose numbers each client sends some epoch by epoch."""
    epochs = [[number for client in clients for number in client[epoch]] for epoch in range(len(clients[0]))]
    acts = [
        [Client(tuple(numbers), is_last=epoch == len(epochs) - 1) for epoch, numbers in enumerate(client)]
        for client in clients
    ]
    return Scenario(rounds, acts, said_in, plainly(epochs))


class PiecesVertex(Vertex):
    """Holds the time of what has come, and sends one number of it at a turn; with the last one it lets go."""

    def __init__(self) -> None:
        self.left: list[tuple[Timestamp, list[int]]] = []

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.hold(self.code.pack(time))
        self.left.append((time, [*map(number_of, message)]))
        self.resume()

    def on_resume(self) -> None:
        time, numbers = self.left[0]
        self.send_by(0, [numbers.pop()], time)
        if not numbers:
            self.release(self.code.pack(time))
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


PIECES = Scenario(
    pieces,
    [[Client((1, 3), is_last=True)], [Client((1,), is_last=True)]],
    said_in,
    Counter([(0, (1, 1, 3))]),
)


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


@pytest.mark.timeout(600)
def test_explored_pieces_that_are_sent_at_a_time_that_is_held(effort: int) -> None:
    """4,239 states; in every order also of what a worker does by itself, 250,696."""
    explored = Explorer(PIECES, orderly=effort == 1, states_max=400_000).run()
    assert explored.ends >= 1, explored


# mutants_


def found_by(
    scenario: Scenario, explorer: type[Explorer] = Explorer, orderly: bool = False
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
