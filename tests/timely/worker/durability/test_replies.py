"""Answers leave once what they rest on is in the log.

waiting_*   in order, each for what was logged before it
failing_*   while the disk fails
ended_*     a log that will not go on
rests_*     which answers wait
flush_*     when the loop hands to the disk what it has logged
"""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Iterator
from threading import Event

import pytest
from durable_workers import SECONDS, Gate
from simulated_store import SimulatedStore

from timely.durable.incarnations import announce
from timely.durable.log import Log
from timely.durable.store import fence_path
from timely.errors import FencedError, InternalError, StoreError, TimelyError
from timely.wire.requests import (
    IN_OPEN,
    WHEN_NAMED,
    Decide,
    Deliver,
    Describe,
    Drop,
    Hello,
    Install,
    Missing,
    Progress,
    Read,
    Request,
    Stats,
    Uninstall,
)
from timely.worker.durability.replies import WaitingReplies, rests_on_log


class Told:
    """Answers to be sent, and what has become of them."""

    def __init__(self, log: Log) -> None:
        self.replies = WaitingReplies(log)
        self.sent: list[str] = []
        self.refused: list[tuple[str, TimelyError]] = []

    def send(self, name: str) -> None:
        self.replies.send(lambda: self.sent.append(name), lambda error: self.refused.append((name, error)))


def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline


@pytest.fixture
def store() -> SimulatedStore:
    return SimulatedStore()


@pytest.fixture
def log(store: SimulatedStore) -> Iterator[Log]:
    present = announce(store, 1)
    log = Log(store, present.cluster, present.number, 0)
    yield log
    log.close()


def test_waiting_for_nothing_an_answer_leaves_at_once(log: Log) -> None:
    told = Told(log)
    told.send("first")
    assert told.sent == ["first"]
    assert not told.replies.look() and len(told.replies) == 0


def test_waiting_answers_leave_in_order_behind_their_records(store: SimulatedStore, log: Log) -> None:
    gate = Gate(store)
    gate.shut()
    told = Told(log)
    log.add(["a"])
    told.send("behind a")
    told.send("behind a, too")
    first = log.position
    while not store.operations or store.operations[-1][0] != "sync":
        pass  # the thread has taken this record, and waits for the disk
    log.add(["b"])
    told.send("behind b")
    assert not told.replies.look() and told.sent == [] and len(told.replies) == 3
    log.told = first
    assert told.replies.look() and told.sent == ["behind a", "behind a, too"]
    assert not told.replies.look()
    gate.open()
    log.wait(log.position, SECONDS)
    assert told.replies.look() and told.sent[2:] == ["behind b"]
    assert told.refused == []


def test_failing_disk_refuses_what_waits_and_nothing_is_lost(store: SimulatedStore, log: Log) -> None:
    told = Told(log)
    log.wait(log.add(["a"]), SECONDS)
    store.disk.failing["write"] = errno.ENOSPC
    told.send("rests on a")
    log.add(["b"])
    told.send("rests on b")
    with pytest.raises(StoreError):
        log.wait(log.position, SECONDS)
    assert told.replies.look()
    ((name, error),) = told.refused
    assert name == "rests on b"
    assert "Nothing is lost: this process keeps what is not synced" in str(error)
    assert told.sent == ["rests on a"]
    opened = Event()
    store.before = lambda what, path: what != "write" or opened.wait(SECONDS)
    told.send("a repetition of b")
    assert not told.replies.look(), "the disk may have room by now"
    opened.set()
    until(told.replies.look)
    assert told.refused[1][0] == "a repetition of b"
    store.disk.failing.clear()
    log.wait(log.position, SECONDS)
    told.send("another one")
    assert told.sent == ["rests on a", "another one"]


def test_failing_disk_refuses_nothing_more_as_soon_as_there_is_room(
    store: SimulatedStore, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("timely.durable.log._RETRY_SECONDS", SECONDS)
    told = Told(log)
    store.disk.failing["write"] = errno.ENOSPC
    with pytest.raises(StoreError):
        log.wait(log.add(["a"]), SECONDS)
    store.disk.failing.clear()
    told.send("a repetition of a")
    until(told.replies.look)
    assert told.sent == ["a repetition of a"] and told.refused == []


def test_failing_disk_lets_leave_what_it_had_before(store: SimulatedStore, log: Log) -> None:
    told = Told(log)
    log.add(["a"])
    told.send("rests on a")
    log.wait(log.position, SECONDS)
    log.error = StoreError("fails since")
    if told.sent == []:  # the thread may have been faster
        assert told.replies.look()
    assert told.sent == ["rests on a"] and told.refused == []
    log.error = None


def test_ended_by_a_fence_a_log_lets_nothing_leave(store: SimulatedStore, log: Log) -> None:
    told = Told(log)
    log.wait(log.add(["a"]), SECONDS)
    store.put_new(fence_path(2), b"")
    log.add(["b"])
    told.send("rests on b")
    with pytest.raises(FencedError):
        log.wait(log.position, SECONDS)
    with pytest.raises(FencedError, match="incarnation 2"):
        told.replies.look()
    assert told.sent == [] and told.refused == []


def test_ended_by_a_fence_a_log_says_so_also_if_nothing_waits(store: SimulatedStore, log: Log) -> None:
    told = Told(log)
    store.put_new(fence_path(2), b"")
    with pytest.raises(FencedError):
        log.wait(log.add(["b"]), SECONDS)
    with pytest.raises(FencedError):
        told.replies.look()


def test_ended_by_an_error_of_ours_a_log_ends_the_worker(log: Log) -> None:
    told = Told(log)
    log.error = InternalError("the thread has ended")
    with pytest.raises(InternalError, match="the thread has ended"):
        told.replies.look()
    log.error = None


def test_rests_on_the_log_what_says_that_something_is_there() -> None:
    resting: list[Request] = [
        Deliver(0, "in", "w", 0, IN_OPEN, 0, 1),
        Deliver(0, "in", "w", 0, WHEN_NAMED, 0, 1),  # worker 0 decides that parts enter which are all there
        Decide(0, 0, seals=True),
        Missing(0, 0, []),
        Drop(0, []),
        Describe(0),
        Hello(),
        Install("m:f", {}),
        Uninstall(0, False),
        Progress(0, "out", reader="r"),
        Read(0, "out", 0, 1, -1.0, reader="r"),
    ]
    free: list[Request] = [
        Decide(0, 0, seals=True, early=True),
        Progress(0, "out", 3),
        Read(0, "out", 0, 1, -1.0),
        Stats(),
    ]
    assert [request for request in resting if not rests_on_log(request)] == []
    assert [request for request in free if rests_on_log(request)] == []


class LoggedTurns:
    """The answers of a loop; its log does not write by itself. `is_under_way`: see `WaitingReplies`."""

    def __init__(self, store: SimulatedStore, syncs: bool) -> None:
        present = announce(store, 1)
        self.log = Log(store, present.cluster, present.number, 0, syncs=syncs, by="loop")
        self.is_under_way = False
        self.replies = WaitingReplies(self.log, lambda: self.is_under_way)

    def turn(self, served: bool = False, worked: bool = False, is_awaited: bool = False) -> bool:
        return self.replies.flush(served, worked, is_awaited)


@pytest.fixture
def turns(store: SimulatedStore, request: pytest.FixtureRequest) -> Iterator[LoggedTurns]:
    turns = LoggedTurns(store, syncs=request.param)
    yield turns
    turns.log.close()


@pytest.mark.parametrize("turns", [True], indirect=True)
@pytest.mark.parametrize("how", ["served", "worked", "awaited"])
def test_flush_waits_for_the_digest_but_not_for_long(
    turns: LoggedTurns, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    turns.is_under_way = how == "awaited"
    busy = {"served": how == "served", "worked": how == "worked", "is_awaited": how == "awaited"}
    assert not turns.turn(**busy) and turns.replies.within(5.0) == 5.0, "nothing is logged"
    turns.log.add(["rows"])
    assert not turns.turn(**busy) and turns.log.is_to_flush
    assert 0.0 < turns.replies.within(5.0) <= 0.0011
    now += 0.0005
    assert not turns.turn(**busy) and turns.log.is_to_flush
    now += 0.0007
    assert turns.replies.within(5.0) == 0.0
    turns.turn(**busy)
    assert not turns.log.is_to_flush and turns.replies.within(5.0) == 5.0
    monkeypatch.undo()
    until(lambda: turns.log.told == 1)
    assert turns.turn(**busy), "the log has news"
    turns.replies.look()
    assert not turns.turn(**busy)


@pytest.mark.parametrize("turns", [True], indirect=True)
def test_flush_of_what_another_has_handed_over_holds_nothing(turns: LoggedTurns) -> None:
    turns.log.add(["rows"])
    turns.turn(worked=True)
    turns.log.flush()  # as for a digest
    until(lambda: turns.log.told == 1)
    turns.turn()
    assert turns.replies.within(5.0) == 5.0, "the loop may rest"
    turns.log.add(["rows"])
    assert turns.replies.within(5.0) == 0.0, "nobody has asked whether to hand this over"


@pytest.mark.parametrize("turns", [True, False], indirect=True)
def test_flush_is_not_needed_before_a_loop_that_waits(turns: LoggedTurns) -> None:
    """As of a worker that has written what begins, and waits for the others to begin."""
    turns.log.add(["rows"])
    assert turns.replies.within(5.0) == 0.0
    until(lambda: turns.log.told == 1)
    assert turns.replies.within(5.0) == 5.0
    assert turns.turn(), "the loop has not looked"


@pytest.mark.parametrize("turns", [True, False], indirect=True)
def test_flush_comes_at_once_if_the_loop_rests_or_writes_itself(turns: LoggedTurns) -> None:
    turns.log.add(["rows"])
    turns.turn(worked=turns.log.flushes_here, is_awaited=True)  # but no epoch is under way
    assert not turns.log.is_to_flush
    until(lambda: turns.log.told == 1)
    assert turns.turn()


@pytest.mark.parametrize("turns", [False], indirect=True)
def test_flush_that_fails_refuses_what_waits(turns: LoggedTurns, store: SimulatedStore) -> None:
    refused: list[TimelyError] = []
    store.disk.failing["write"] = errno.ENOSPC
    turns.log.add(["rows"])
    turns.replies.send(lambda: pytest.fail("it is not durable"), refused.append)
    assert turns.turn()
    turns.replies.look()
    assert [type(error) for error in refused] == [StoreError]
    store.disk.failing.clear()
