"""What a worker answers about probes, and what of it a durable cluster may show."""

from __future__ import annotations

import pytest
from durable_workers import DurableWorkers, words
from one_worker import Clock, answer
from simulated_store import SimulatedDisk

import timely
from progress.times.anchor import EPOCH_MAX
from timely.running.core import Worker
from timely.wire.requests import IN_OPEN, Decide, Deliver, Install, Probe, Reply
from timely.worker.answers.later import Later
from timely.worker.server import Server


def serving() -> tuple[Server, Worker, Clock]:
    clock, worker = Clock(), Worker()
    server = Server(worker, "here", clock)
    answer(server, Install("stuck_flows:probed", {}))
    return server, worker, clock


def is_past(server: Server, *time: int, is_strict: bool = False) -> object:
    return answer(server, Probe(0, "words", list(time), is_strict)).values["is_past"]


def test_past_is_what_cannot_come_any_more() -> None:
    server, worker, _ = serving()
    assert is_past(server, 0) is False and is_past(server, 0, is_strict=True) is True
    answer(server, Decide(0, 2, True))
    worker.run_until_idle()
    assert [is_past(server, epoch) for epoch in (2, 3)] == [True, False]
    assert [is_past(server, epoch, is_strict=True) for epoch in (3, 4)] == [True, False]
    assert answer(server, Probe(0, "words")).values == {"is_past": False}, "only whether it is there"


def test_a_wait_is_answered_once_it_is_so_or_says_how_far_the_stream_is() -> None:
    server, worker, clock = serving()
    later = server.handle(Probe(0, "words", [0], waits=True, timeout_seconds=2.0, waited_seconds=1.0))
    assert isinstance(later, Later) and later.ready() is None and later.deadline == 2.0
    clock.now = 3.0
    assert str(later.late()) == (
        "the probe 'words' of dataflow 0 is not past (0,) on worker 0 after 3 s: the earliest that may still "
        "come is (0,)"
    )
    answer(server, Decide(0, 0, True))
    worker.run_until_idle()
    assert later.ready() == Reply({"is_past": True})


@pytest.mark.parametrize("time", [[0, 0], [-1], ["last"], [None], [1.0], [True], [EPOCH_MAX + 1]])
def test_a_time_has_the_numbers_that_times_have_there(time: list[object]) -> None:
    server, _, _ = serving()
    with pytest.raises(timely.MisuseError, match=r"whose times are \(epoch,\)"):
        server.handle(Probe(0, "words", time))
    with pytest.raises(timely.MisuseError, match="no probe 'more'"):
        server.handle(Probe(0, "more", [0]))


def shown(workers: DurableWorkers, epoch: int, is_strict: bool = False) -> list[object]:
    """What each worker says, None if it has no answer yet."""
    workers.settle()
    answers = [server.handle(Probe(0, "words", [epoch], is_strict)) for server in workers.servers]
    return [each.values["is_past"] if isinstance(each, Reply) else None for each in answers]


def insert(workers: DurableWorkers, epoch: int) -> None:
    """A word in an epoch, which is sealed without waiting for the disk."""
    last = len(workers.workers) - 1
    workers.take(Deliver(0, "words", "w", epoch, IN_OPEN, epoch, 1), words("word"), last)
    workers.take(Decide(0, epoch, seals=True))


@pytest.mark.parametrize("count", [1, 2])
def test_shown_is_only_what_is_durable_and_it_is_not_withdrawn(count: int) -> None:
    disk = SimulatedDisk()
    with DurableWorkers(disk, count) as workers:
        workers.ask(Install("stuck_flows:probed", {}))
        insert(workers, 0)
        assert shown(workers, 0) == [True] * count
        workers.gate.shut(count - 1)
        insert(workers, 1)
        assert shown(workers, 1) == [False] * count, "the work is done, and the disk has not got it"
        assert shown(workers, 1, is_strict=True) == [True] * count, "epoch 0 is on disk"
        assert shown(workers, 2, is_strict=True) == [False] * count
        workers.gate.open()
        assert shown(workers, 1) == [True] * count
    with DurableWorkers(disk, count) as again:
        before = [server.handle(Probe(0, "words", [1])) for server in again.servers]
        assert all(isinstance(each, Later) or each.values["is_past"] is True for each in before)
        assert shown(again, 1) == [True] * count
        assert shown(again, 2, is_strict=True) == [True] * count
        assert shown(again, 2) == [False] * count, "nobody has sealed it"
