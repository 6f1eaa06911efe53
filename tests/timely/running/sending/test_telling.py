"""Who tells whom of progress, and what a worker refuses to hear.

What is told, and when: `tests/simulation/modes/test_held_back.py`.
"""

from __future__ import annotations

import struct

import pytest
from dataflows import frozen, settle, word_count

from progress.errors import InternalError, PeerError
from progress.times.timestamp import Timestamp
from progress.tracking.broadcast import Broadcaster
from timely import Capability, Dataflow, ToWorker, Vertex
from timely.running.core import Worker
from timely.running.progress_messages import ProgressHeader, write_progress_header
from timely.running.sending.telling import Telling, telling_of
from timely.wire.transport.memory import MemoryNetwork


def group(workers: int, per_host: int) -> tuple[list[Worker], MemoryNetwork]:
    network = MemoryNetwork(workers)
    made = [
        Worker(index, workers, network.transport(index), True, telling=Telling(index, workers, per_host))
        for index in range(workers)
    ]
    for worker in made:
        worker.install(frozen(word_count))
    return made, network


def test_the_first_worker_of_each_host_is_its_hub() -> None:
    telling = [Telling(index, 7, 3) for index in range(7)]
    assert [one.hub for one in telling] == [0, 0, 0, 3, 3, 3, 6]
    assert [one.above for one in telling] == [(3, 6), (0,), (0,), (0, 6), (3,), (3,), (0, 3)]
    assert [one.members for one in telling] == [(1, 2), (), (), (4, 5), (), (), ()]


def test_on_demand_each_worker_is_a_group_of_one_and_tells_all_others() -> None:
    telling = [telling_of("demand", index, 3) for index in range(3)]
    assert [one and one.above for one in telling] == [(1, 2), (0, 2), (0, 1)]
    assert [one and one.members for one in telling] == [(), (), ()]


def test_a_worker_that_is_eager_or_alone_holds_nothing_back() -> None:
    assert telling_of("eager", 0, 3) is None
    assert telling_of("host", 0, 1) is None
    with pytest.raises(InternalError, match="'later'"):
        telling_of("later", 0, 3)


def test_its_title_says_what_must_be_the_same_on_all_workers() -> None:
    assert Telling(1, 4, 1).title == "demand"
    assert Telling(3, 4, 2).title == "host, 2 workers each"
    assert Telling(3, 4, 9).title == Telling(0, 4, 4).title


@pytest.mark.parametrize(("per_host", "expected"), [(0, 12), (1, 12), (2, 6), (4, 6)])
def test_a_barrier_costs_a_message_up_one_across_and_one_down(per_host: int, expected: int) -> None:
    """Four workers seal an epoch. Eager and on demand each tells the three others. Two hosts of two: each
    member its hub, each hub the other one and then its member. One host: three up, three down.
    """
    network = MemoryNetwork(4)
    workers = [
        Worker(index, 4, network.transport(index), telling=Telling(index, 4, per_host) if per_host else None)
        for index in range(4)
    ]
    for worker in workers:
        worker.install(frozen(word_count))
        worker.instance().input("lines").seal()
    settle(workers)
    assert sum(worker.messages_sent for worker in workers) == expected
    assert {worker.instance().epochs_done() for worker in workers} == {1}


class Silent(Vertex):
    def on_open(self, capability: Capability) -> None:
        capability.drop()


class Passes(Vertex):
    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.send_by(0, message, time)


def test_messages_that_come_and_go_while_an_earlier_event_leads_to_them_are_told_to_nobody() -> None:
    """The epoch is sealed at one input and open at another."""
    network = MemoryNetwork(2)
    workers = [
        Worker(index, 2, network.transport(index), True, telling=Telling(index, 2, 1)) for index in range(2)
    ]
    for worker in workers:
        dataflow = Dataflow()
        sealed, late = dataflow.input("sealed"), dataflow.input("late")
        (both,) = dataflow.stage("both", Passes, [sealed.feed(), late.feed()])
        far = both.stage("far", Passes, exchange=ToWorker(1))
        dataflow.output("seen", far)
        worker.install(dataflow.freeze())
    first, second = (worker.instance() for worker in workers)
    second.input("sealed").close()
    settle(workers)
    first.input("sealed").send(["a"])
    first.input("sealed").close()
    settle(workers)
    far_connector = next(
        first.frozen.graph.connector_location(number)
        for number, connector in enumerate(first.frozen.graph.connectors)
        if first.frozen.stages[connector.target].name == "far"
    )
    held = [worker.telling.held_at(0) for worker in workers if worker.telling is not None]
    assert [one.get((far_connector, 0)) for one in held] == [None, -1], held
    for worker in workers:
        worker.instance().input("late").close()
    settle(workers)
    assert all(worker.instance().is_complete() for worker in workers)
    assert all(worker.telling is not None and not worker.telling.held_at(0) for worker in workers)


def test_a_dataflow_that_has_ended_is_forgotten() -> None:
    workers, _ = group(2, 2)
    workers[1].instance().input("lines").seal()
    workers[0].end(0, InternalError("it ends"))
    workers[1].run_until_idle()
    workers[0].run_until_idle()
    assert not workers[0]._untold


def _message(sender: int, changes: list[tuple[int, int, int]], *more: bytes) -> list[bytes]:
    payload = Broadcaster(sender, 4, None, None, 51).on_held(changes)
    return [write_progress_header(ProgressHeader(0)), payload, *more]


@pytest.mark.parametrize(
    ("source", "more", "what"),
    [
        (2, [struct.pack("<2I", 0, 0)], "whose hub is 0"),
        (0, [], "2 frames instead of 3: all workers need the same --progress"),
        (0, [b"abc"], "in 3 bytes for 2 workers"),
        (0, [struct.pack("<2I", 0, 1)], "with 1 messages of a worker that has 0 under way"),
    ],
)
def test_a_member_refuses_what_its_hub_cannot_have_sent(source: int, more: list[bytes], what: str) -> None:
    workers, network = group(4, 2)
    instance = workers[1].instance()
    shift = instance.frozen.layout.shifts[0]
    payload = Broadcaster(source, 4, None, None, shift).on_held([(0, 0, 1)])
    network.put(source, 1, [write_progress_header(ProgressHeader(0)), payload, *more])
    with pytest.raises(PeerError, match=what):
        workers[1].step()


def test_workers_that_tell_after_each_step_refuse_what_a_hub_passes_on() -> None:
    network = MemoryNetwork(2)
    worker = Worker(0, 2, network.transport(0))
    worker.install(frozen(word_count))
    network.put(1, 0, _message(1, [(0, 0, 1)], b"1234"))
    with pytest.raises(PeerError, match="3 frames instead of 2: all workers need the same --progress"):
        worker.step()


@pytest.mark.parametrize("is_logged", [False, True])
def test_a_hub_knows_what_its_workers_own_at_a_source_of_which_only_some_send(is_logged: bool) -> None:
    """In a durable cluster all workers hold the first epoch of a source until it begins."""
    network = MemoryNetwork(3)
    workers = [Worker(each, 3, network.transport(each), telling=Telling(each, 3, 3)) for each in range(3)]
    for worker in workers:
        worker.logs_sources = is_logged
        dataflow = Dataflow()
        dataflow.output("seen", dataflow.source("numbers", Silent, workers=[1]))
        worker.install(dataflow.freeze())
    (source,) = workers[0].instance().sources
    telling = workers[0].telling
    assert telling is not None
    assert telling._flows[0].held.own == {(source.stage, 0): 3 if is_logged else 1}


def test_a_hub_whose_dataflow_fails_when_it_hears_of_progress_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    workers, _ = group(2, 2)
    failed: list[int] = []
    workers[0].on_failure = lambda number, error: failed.append(number)

    def fails() -> None:
        raise ZeroDivisionError("its times move")

    monkeypatch.setattr(workers[0].instance(), "check_notifications", fails)
    workers[1].instance().input("lines").seal()
    workers[1].run_until_idle()
    workers[0].step()
    assert failed == [0] and list(workers[0].ended) == [0]


def test_a_hub_that_begins_last_passes_on_at_once_what_it_was_told_before() -> None:
    network = MemoryNetwork(3)
    workers = [Worker(each, 3, network.transport(each), telling=Telling(each, 3, 3)) for each in range(3)]
    for worker in workers[1:]:
        worker.install(frozen(word_count)).input("lines").seal()
        worker.run_until_idle()
    workers[0].run_until_idle()
    workers[0].install(frozen(word_count))
    assert not workers[0]._untold
    workers[0].instance().input("lines").seal()
    settle(workers)
    assert {worker.instance().epochs_done() for worker in workers} == {1}
