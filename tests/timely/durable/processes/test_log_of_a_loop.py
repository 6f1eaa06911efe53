"""The log of a worker process, whose loop says when to write: see `durable/log.py`."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from threading import Event, Thread, current_thread
from time import monotonic

import pytest
from begun_logs import SECONDS, Logs, check_told, next_reads
from simulated_store import SimulatedStore

from timely.durable import log as log_module
from timely.durable.store import fence_path
from timely.errors import FencedError, StoreError


@pytest.fixture
def store() -> SimulatedStore:
    return SimulatedStore()


@pytest.fixture
def by_loop() -> Iterator[Logs]:
    logs = Logs("loop")
    yield logs
    for log in logs.all:
        log.close()


def test_loop_that_flushes_has_one_sync_for_a_turn(store: SimulatedStore, by_loop: Logs) -> None:
    log = by_loop.begin(store)
    news, syncs = Event(), []
    log._on_news = news.set
    store.before = lambda what, path: syncs.append(current_thread()) if what == "sync" else None
    for number in range(3):
        assert log.is_to_flush == (number > 0)
        log.add(["rows", number])
        assert not news.wait(0.02), "nothing is written before the loop says so"
    log.flush()
    assert news.wait(SECONDS) and log.told == 4 and not log.is_to_flush
    assert syncs == [log._thread]
    check_told(log, store.disk, 3)


def test_loop_that_hurries_a_log_in_vain_is_heard_later(store: SimulatedStore, by_loop: Logs) -> None:
    log = by_loop.begin(store)
    reached, opened = Event(), Event()

    def before(what: str, path: str) -> None:
        if what == "sync":
            reached.set()
            assert opened.wait(SECONDS)

    store.before = before
    log.add(["rows", 0])
    log.flush()
    assert reached.wait(SECONDS)
    log.flush()  # the thread has all there is
    opened.set()
    log.wait(log.position, SECONDS)
    deadline = monotonic() + SECONDS
    while not log._is_idle:
        assert monotonic() < deadline
    log.add(["rows", 1])
    assert log.is_to_flush
    log.flush()
    while log.told < 3:
        assert monotonic() < deadline


def test_loop_without_syncs_writes_and_looks_itself(store: SimulatedStore, by_loop: Logs) -> None:
    log = by_loop.begin(store, syncs=False)
    log._on_news = lambda: pytest.fail("the loop sees it without")
    before, writers = len(store.operations), set[Thread]()
    store.before = lambda what, path: writers.add(current_thread())
    for number in range(3):
        log.add(["rows", number])
    log.flush()
    assert log.told == 4 and not log.is_to_flush and writers == {current_thread()}
    assert [what for what, _ in store.operations[before:]] == ["write", "exists"]
    assert next_reads(store) == [["rows", number] for number in range(3)]


def test_loop_finds_the_fence_that_its_own_look_sees(store: SimulatedStore, by_loop: Logs) -> None:
    log = by_loop.begin(store, syncs=False)
    store.put_new(fence_path(2), b"")
    log.add(["rows", 0])
    log.flush()
    assert log.told == 1 and isinstance(log.error, FencedError)


def test_loop_leaves_a_slow_disk_and_large_records_to_the_thread(
    store: SimulatedStore, by_loop: Logs, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = by_loop.begin(store, syncs=False)
    monkeypatch.setattr(log_module, "_SLOW_SECONDS", -1.0)
    writers: list[Thread] = []
    store.before = lambda what, path: writers.append(current_thread()) if what == "write" else None
    log.add(["rows", 0], [bytes(1 << 20)])  # written without a flush
    log.wait(log.position, SECONDS)
    for number in (1, 2):
        log.add(["rows", number])
        log.flush()
        log.wait(log.position, SECONDS)
    assert set(writers) == {log._thread}
    monkeypatch.undo()
    log.add(["rows", 3])
    log.flush()
    log.wait(log.position, SECONDS)
    assert not log._is_slow, "the thread finds out that the disk is fast again"
    assert next_reads(store) == [["rows", number] for number in range(4)]


def test_loop_that_writes_in_vain_leaves_it_to_the_thread(
    store: SimulatedStore, by_loop: Logs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("timely.durable.log._RETRY_SECONDS", 0.01)
    log = by_loop.begin(store, syncs=False)
    news = Event()
    log._on_news = news.set
    store.disk.failing["write"] = errno.ENOSPC
    log.add(["rows", 0])
    tries = log.tries
    log.flush()
    assert log.tries == tries + 1 and isinstance(log.error, StoreError) and not log.is_to_flush
    store.disk.failing.clear()
    assert news.wait(SECONDS)
    log.wait(log.position, SECONDS)
    assert log.told == 2
    log.add(["rows", 1])
    log.flush()
    log.wait(log.position, SECONDS)
    assert log.told == 3 and next_reads(store) == [["rows", 0], ["rows", 1]]


def test_loop_is_not_needed_for_a_record_beyond_the_bound(
    store: SimulatedStore, by_loop: Logs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("timely.durable.log.LOG_UNSYNCED_BYTES_MAX", 1000)
    log = by_loop.begin(store)
    log.add(["rows", 0])
    log.add(["rows", 1], [bytes(2000)])  # waits until there is room, and the loop with it
    log.wait(log.position, SECONDS)
    assert log.told == 3
