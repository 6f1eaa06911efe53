"""The parts of a worker's step, one by one.

enabled_*   which there are, and in which order they are listed
perform_*   one of them is done, as a step would do it
orders_*    whatever the order, the results are those of whole steps
"""

from __future__ import annotations

import random
from collections import Counter

import pytest
from dataflows import collatz, fails_on, frozen, settle, word_count

from progress.errors import InternalError, TimelyError
from progress.times.timestamp import Timestamp
from timely import Dataflow, Vertex
from timely.building.builders import Builder
from timely.client.tables import records_of
from timely.running.checking.actions import Action, Activate, Idle, Notify, Publish, Receive, Resume
from timely.running.core import Worker
from timely.running.instance import Instance
from timely.wire.transport import Lent
from timely.wire.transport.memory import MemoryNetwork

ACTIONS_MAX = 20_000


def group_of(workers: int) -> list[Worker]:
    network = MemoryNetwork(workers)
    return [Worker(index, workers, network.transport(index)) for index in range(workers)]


def perform_while_any(worker: Worker, *wanted: type[Action]) -> None:
    """All actions of some kinds, until there is none of them."""
    while actions := [action for action in worker.enabled() if isinstance(action, wanted)]:
        worker.perform(actions[0])


# enabled_


def test_enabled_follows_a_record_through_a_worker() -> None:
    worker = Worker()
    instance = worker.install(frozen(word_count))
    source, split, count, out = range(4)
    assert worker.enabled() == [Activate(0, out)], "epoch 0 has begun"
    worker.perform(Activate(0, out))
    assert worker.enabled() == []
    instance.input("lines").send(["a b"])
    instance.input("lines").seal()
    steps: list[list[Action]] = []
    while actions := worker.enabled():
        steps.append(actions)
        worker.perform(actions[0])
    assert steps == [
        [Activate(0, source)],
        [Activate(0, split), Publish(0)],
        [Activate(0, count), Publish(0)],
        [Publish(0), Notify(0)],  # the words wait for the end of the epoch
        [Notify(0)],
        [Activate(0, count)],
        [Activate(0, out), Publish(0)],
        [Publish(0)],  # which ends the epoch: nothing is to be done with records for that
    ]
    assert not worker.step()
    written = records_of(instance.output("counts").log.changes(0, 1))
    assert [record for _, record in written] == [("a", 1), ("b", 1)]


def test_enabled_messages_come_first_and_in_the_order_of_peers() -> None:
    group = group_of(3)
    for worker in group:
        worker.install(frozen(word_count)).input("lines").close()
    for worker in group:
        perform_while_any(worker, Activate, Publish)
    assert group[1].enabled() == [Receive(0), Receive(2)]


def test_enabled_has_names_that_people_understand() -> None:
    said = [
        str(action) for action in (Receive(1), Resume(0, 2), Activate(0, 2), Publish(0), Notify(0), Idle(0))
    ]
    assert said == [
        "receive the next message of worker 1",
        "let stage 2 of dataflow 0 have the turn that it asked for",
        "run stage 2 of dataflow 0",
        "publish the changes of counts of dataflow 0",
        "find the due notifications of dataflow 0",
        "use an idle moment for dataflow 0",
    ]


# perform_


def test_perform_refuses_what_cannot_be_done_now() -> None:
    (worker,) = group_of(1)
    worker.install(frozen(word_count))
    for action in (Receive(0), Resume(0, 1), Activate(0, 1), Publish(0), Notify(0), Idle(0), Publish(7)):
        with pytest.raises(InternalError, match="worker 0 cannot"):
            worker.perform(action)


def test_perform_receives_one_message_of_the_chosen_peer() -> None:
    group = group_of(2)
    for worker in group:
        worker.install(frozen(word_count)).input("lines").seal()
    group[0].instance().input("lines").seal()
    perform_while_any(group[0], Activate)
    group[0].perform(Publish(0))
    group[0].instance().input("lines").seal()
    perform_while_any(group[0], Activate)
    group[0].perform(Publish(0))
    group[1].perform(Receive(0))
    assert group[1].messages_recv == 1 and Receive(0) in group[1].enabled()
    group[1].perform(Receive(0))
    assert group[1].messages_recv == 2 and Receive(0) not in group[1].enabled()


class DeafTransport:
    """Gives only what has come in, as sockets do."""

    def send(self, peer: int, frames: object) -> None:
        """Nothing arrives."""

    def recv_nowait(self) -> list[tuple[int, list[memoryview]]]:
        return []

    def wait(self, timeout_seconds: float) -> None:
        """Not at all."""

    def lend(self) -> Lent | None:
        """Nothing."""
        return None

    def take_back(self) -> tuple[int, int]:
        """See `lend`."""
        return 0, 0

    def close(self) -> None:
        """Nothing to let go of."""


def test_perform_wants_a_transport_that_hands_over_single_messages() -> None:
    worker = Worker(0, 2, DeafTransport())
    worker.step()
    with pytest.raises(InternalError, match="a DeafTransport hands over no single messages"):
        worker.enabled()


def test_perform_ends_a_dataflow_whose_vertex_fails_as_a_step_does() -> None:
    (worker,) = group_of(1)
    told: list[tuple[int, TimelyError]] = []
    worker.on_failure = lambda number, error: told.append((number, error))
    instance = worker.install(frozen(fails_on))
    instance.input("words").send(["bad"])
    instance.input("words").seal()
    perform_while_any(worker, Activate)
    assert [number for number, _ in told] == [0] and "cannot bear 'bad'" in str(told[0][1].__cause__)
    assert worker.enabled() == [] and list(worker.ended) == [0]


class PiecesVertex(Vertex):
    """Counts down what it is sent, a piece at each turn, and has something left for idle moments."""

    def __init__(self) -> None:
        self.left = self.turns = self.idle = 0
        self.at = 0

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        assert isinstance(message[0], int)
        self.left, self.at = message[0], self.code.pack(time)
        self.hold_word(self.at)
        self.resume()

    def on_resume(self) -> None:
        self.left -= 1
        self.turns += 1
        if self.left:
            self.resume()
        else:
            self.release_word(self.at)

    def on_idle(self) -> bool:
        self.idle += 1
        return self.idle < 2


def test_perform_turns_asked_for_and_idle_moments_are_actions() -> None:
    (worker,) = group_of(1)
    dataflow = Dataflow("pieces")
    dataflow.output("nothing", dataflow.input("numbers").stage("pieces", PiecesVertex))
    instance = worker.install(dataflow.freeze())
    instance.input("numbers").send([2])
    instance.input("numbers").close()
    vertex = instance.runners[1].vertex
    assert isinstance(vertex, PiecesVertex)
    perform_while_any(worker, Activate, Publish, Notify)
    assert worker.enabled() == [Resume(0, 1)] and vertex.turns == 0
    worker.perform(Resume(0, 1))
    assert worker.enabled() == [Activate(0, 1)]
    perform_while_any(worker, Activate, Publish, Notify)
    perform_while_any(worker, Resume, Activate, Publish, Notify)
    assert vertex.turns == 2 and worker.enabled() == [Idle(0)]
    worker.perform(Idle(0))
    assert vertex.idle == 1 and worker.enabled() == [Idle(0)]
    worker.perform(Idle(0))
    assert vertex.idle == 2 and worker.enabled() == []


# orders_


def performed_at_random(seed: int, group: list[Worker]) -> None:
    """Any action of any worker, until there is none; now and then a whole step between them."""
    chance = random.Random(seed)
    for _ in range(ACTIONS_MAX):
        everything = [(worker, action) for worker in group for action in worker.enabled()]
        if not everything:
            return
        worker, action = chance.choice(everything)
        if chance.random() < 0.1:
            worker.step()
        else:
            worker.perform(action)
    raise AssertionError("it does not end")


def outputs_of(instances: list[Instance], name: str) -> Counter[tuple[int, object]]:
    return Counter(
        entry for instance in instances for entry in records_of(instance.output(name).log.changes(0, 2))
    )


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize(
    ("builder", "name", "output", "records"),
    [
        (collatz, "numbers", "steps", [(n, n, 0) for n in (3, 5, 7, 12)]),
        (word_count, "lines", "counts", ["a b", "a", "c c a"]),
    ],
)
def test_orders_results_are_those_of_whole_steps(
    workers: int, builder: Builder, name: str, output: str, records: list[object], seed: int, effort: int
) -> None:
    found = []
    for case in [None, *range(seed, seed + 6 * effort)]:
        group = group_of(workers)
        instances = [worker.install(frozen(builder)) for worker in group]
        for epoch in range(2):
            for position, record in enumerate(records):
                instances[(position + epoch) % workers].input(name).send([record])
            for instance in instances:
                instance.input(name).seal()
        for instance in instances:
            instance.input(name).close()
        if case is None:
            settle(group)
        else:
            performed_at_random(case, group)
        assert all(instance.is_complete() for instance in instances), case
        found.append(outputs_of(instances, output))
        assert found[0] == found[-1] and found[0], f"seed {case}"
