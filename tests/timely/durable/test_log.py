"""The log of a process: what it tells is in the store, whatever the disk does.

told_*      what the next incarnation reads
group_*     records that are synced together
segment_*   where one ends, and which symbols it has
failing_*   a disk that fails, or is full, and works again
fence_*     a later incarnation takes over
ended_*     close, and a thread that has failed
callers_*   that write themselves what they wait for
"""

from __future__ import annotations

import dis
import errno
import sys
from collections.abc import Iterator
from functools import cache
from itertools import count, pairwise
from pathlib import Path
from threading import Event, Thread, current_thread, main_thread
from types import CodeType, FrameType

import numpy as np
import pytest
from begun_logs import SECONDS, Logs, check_told, next_reads
from simulated_store import SimulatedDisk, SimulatedStore

from differential.columns.update_batch import UpdateBatch
from differential.columns.worker_symbols import SYMBOLS
from timely.durable import log as log_module
from timely.durable.folder_store import FolderStore
from timely.durable.incarnations import announce, read_log
from timely.durable.log import Log
from timely.durable.store import fence_path
from timely.errors import FencedError, InternalError, StoreError, WaitTimeoutError


class Gate:
    """Stops a process at the next operation of a kind, until it is opened."""

    def __init__(self, store: SimulatedStore, what: str) -> None:
        self.what = what
        self.reached = Event()
        self.opened = Event()
        store.before = self

    def __call__(self, what: str, path: str) -> None:
        if what == self.what:
            self.reached.set()
            assert self.opened.wait(SECONDS)


@pytest.fixture(params=["thread", "callers", "loop"])
def logs(request: pytest.FixtureRequest) -> Iterator[Logs]:
    logs = Logs(request.param)
    yield logs
    for log in logs.all:
        log.close()


@pytest.fixture
def store() -> SimulatedStore:
    return SimulatedStore()


@pytest.mark.parametrize("syncs", [True, False])
def test_told_records_are_read_from_a_folder(tmp_path: Path, logs: Logs, syncs: bool) -> None:
    store = FolderStore(tmp_path / "store")
    log = logs.begin(store, syncs=syncs, segment_bytes=1000)
    for number in range(20):
        assert log.peer < -1
        log.add(["rows", number], [b"x" * 100 * number, b"y"])
    log.wait(log.position, SECONDS)
    assert log.told == log.position == 21 and log.error is None
    (old,) = announce(store, 2).logs
    assert len(old.segments) > 3
    records = list(read_log(store, old))
    assert [record.head for record in records] == [["rows", number] for number in range(20)]
    assert [bytes(record.frames[0]) for record in records] == [b"x" * 100 * number for number in range(20)]


@pytest.mark.parametrize("segment_bytes", [64, 200, 1 << 20])
def test_told_records_survive_every_crash(store: SimulatedStore, logs: Logs, segment_bytes: int) -> None:
    log = logs.begin(store, segment_bytes=segment_bytes)
    for number in range(12):
        log.add(["rows", number])
        if number % 3:
            log.wait(log.position, SECONDS)
            check_told(log, store.disk, number + 1)


def test_told_without_syncs_survives_the_end_of_the_process(store: SimulatedStore, logs: Logs) -> None:
    log = logs.begin(store, syncs=False)
    log.wait(log.add(["rows", 0]), SECONDS)
    assert "sync" not in [what for what, _ in store.operations]
    assert next_reads(store) == [["rows", 0]]


def test_told_of_records_of_many_threads(store: SimulatedStore, logs: Logs) -> None:
    log = logs.begin(store, segment_bytes=1000)

    def add(thread: int) -> None:
        for number in range(200):
            position = log.add(["rows", thread, number])
            if number % 50 == 0:
                log.wait(position, SECONDS)

    threads = [Thread(target=add, args=(thread,)) for thread in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log.wait(log.position, SECONDS)
    heads = next_reads(store)
    assert log.position == 801 and len(heads) == 800
    for number in range(4):
        assert [head[2] for head in heads if head[1] == number] == list(range(200))


def test_group_of_all_that_was_queued_during_a_sync(store: SimulatedStore, logs: Logs) -> None:
    log = logs.begin(store)
    gate = Gate(store, "sync")
    log.add(["rows", 0])
    log.flush()
    assert gate.reached.wait(SECONDS)
    for number in range(1, 100):
        log.add(["rows", number])
    assert log.told == 1
    before = len(store.operations)
    gate.opened.set()
    log.wait(101, SECONDS)
    names = [what for what, _ in store.operations[before:]]
    assert names == ["exists", "write", "sync", "exists"] and log.told == 101


def test_group_of_no_more_bytes_than_the_bound(
    store: SimulatedStore, logs: Logs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("timely.durable.log.LOG_UNSYNCED_BYTES_MAX", 1000)
    log = logs.begin(store)
    sizes = []

    def before(what: str, path: str) -> None:
        if what == "write":
            sizes.append(log._unsynced_bytes)

    store.before = before
    for number in range(200):
        log.add(["rows", number], [b"x" * 100])
    log.wait(log.position, SECONDS)
    assert max(sizes) <= 1000
    log.wait(log.add(["rows"], [b"x" * 5000]), SECONDS)
    assert sizes[-1] > 5000, "a record that is larger than the bound goes alone"


def test_segment_has_the_symbols_of_its_rows(store: SimulatedStore, logs: Logs) -> None:
    log = logs.begin(store, segment_bytes=1000)
    words = SYMBOLS.intern(["ada", "grace"])
    batch = UpdateBatch(np.array([words, [0, 0], [1, 1]]), (0,))
    peers = []
    for number in range(40):
        peer = log.peer
        peers.append(peer)
        log.add(["rows", number], batch.to_frames(peer))
        batch.on_sent(peer)
    log.wait(log.position, SECONDS)
    assert len(set(peers)) > 2
    (old,) = announce(store, 1).logs
    assert len(old.segments) == len(set(peers))
    records = list(read_log(store, old))
    firsts = [peers.index(peer) for peer in dict.fromkeys(peers)]
    assert [number for number, record in enumerate(records) if len(record.frames) == 3] == firsts
    log.close()
    assert not set(SYMBOLS._has) & set(peers)


def test_segment_peers_differ_between_logs_of_a_process(store: SimulatedStore, logs: Logs) -> None:
    logs.begin(store, processes=2)
    other = Log(store, "cluster", 1, 1)
    assert other.peer != logs.all[0].peer and other.peer == other.peer
    other.close()


def test_failing_sync_is_never_repeated_and_loses_nothing(store: SimulatedStore, logs: Logs) -> None:
    """`SimulatedFile` asserts that no file is used after a sync that failed."""
    log = logs.begin(store)
    log.wait(log.add(["rows", 0]), SECONDS)
    store.disk.failing["sync"] = errno.EIO
    for number in range(1, 4):
        position = log.add(["rows", number])
        with pytest.raises(StoreError, match=r"cannot be written: EIO, simulated\. Nothing is lost"):
            log.wait(position, SECONDS)
        assert type(log.error) is StoreError
        check_told(log, store.disk, 1)
    del store.disk.failing["sync"]
    log.wait(log.position, SECONDS)
    assert log.error is None
    check_told(log, store.disk, 4)
    assert next_reads(store) == [["rows", number] for number in range(4)]


def test_failing_log_tries_again_by_itself(
    store: SimulatedStore, logs: Logs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("timely.durable.log._RETRY_SECONDS", 0.01)
    log = logs.begin(store)
    failed, works = Event(), Event()

    def note() -> None:
        (failed if log.error else works).set()

    log._on_news = note
    store.disk.failing["write"] = errno.EIO
    log.add(["rows", 0])
    log.flush()
    assert failed.wait(SECONDS) and log.told == 1 and not works.is_set()
    store.disk.failing.clear()
    assert works.wait(SECONDS)
    check_told(log, store.disk, 1)


@pytest.mark.parametrize("what", ["create", "write", "sync", "exists"])
@pytest.mark.parametrize("segment_bytes", [40, 1 << 20])
def test_failing_operation_of_each_kind(
    store: SimulatedStore, logs: Logs, what: str, segment_bytes: int
) -> None:
    log = logs.begin(store, segment_bytes=segment_bytes)
    count = 0
    for _ in range(3):
        store.disk.failing[what] = errno.EIO
        for _ in range(3):
            log.add(["rows", count])
            count += 1
        if what == "create" and segment_bytes == 1 << 20:
            log.wait(log.position, SECONDS)  # there is no other segment
        else:
            with pytest.raises(StoreError, match="EIO"):
                log.wait(log.position, SECONDS)
        check_told(log, store.disk, log.told - 1)
        store.disk.failing.clear()
        log.wait(log.position, SECONDS)
        check_told(log, store.disk, count)


def test_failing_log_is_tried_again_at_once_by_whoever_must_know(
    store: SimulatedStore, logs: Logs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("timely.durable.log._RETRY_SECONDS", SECONDS)
    monkeypatch.setattr("timely.durable.log._TRY_SECONDS", SECONDS)
    log = logs.begin(store)
    log.try_again()
    store.disk.room = 0
    with pytest.raises(StoreError, match="Make room"):
        log.wait(log.add(["rows", 0]), SECONDS)
    log.try_again()
    assert isinstance(log.error, StoreError), "there is no room yet"
    store.disk.room = 1 << 30
    log.try_again()
    assert log.error is None
    check_told(log, store.disk, 1)
    monkeypatch.setattr("timely.durable.log._TRY_SECONDS", 0.01)
    store.disk.failing["write"] = errno.EIO
    with pytest.raises(StoreError):
        log.wait(log.add(["rows", 1]), SECONDS)
    store.disk.failing.clear()
    slow = Gate(store, "write")
    log.try_again()
    assert slow.reached.wait(SECONDS) and log.error is not None, "a disk that hangs keeps nobody"
    slow.opened.set()
    monkeypatch.setattr("timely.durable.log._TRY_SECONDS", SECONDS)
    log.try_again()
    check_told(log, store.disk, 2)


def test_failing_log_is_tried_once_more_if_a_try_is_under_way(
    store: SimulatedStore, logs: Logs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That may have begun before there was room."""
    monkeypatch.setattr("timely.durable.log._RETRY_SECONDS", SECONDS)
    monkeypatch.setattr("timely.durable.log._TRY_SECONDS", SECONDS)
    log = logs.begin(store)
    store.disk.failing["write"] = errno.EIO
    with pytest.raises(StoreError):
        log.wait(log.add(["rows", 0]), SECONDS)
    gate = Gate(store, "write")
    with log._lock:
        log._hasten()
    assert gate.reached.wait(SECONDS)
    log._on_news = store.disk.failing.clear
    trying = Thread(target=log.try_again)
    trying.start()
    while not log._news._waiters:  # type: ignore[attr-defined]
        assert trying.is_alive()
    gate.opened.set()
    trying.join()
    assert log.error is None
    check_told(log, store.disk, 1)


def test_failing_for_want_of_room_leaves_one_file_until_there_is_room(
    store: SimulatedStore, logs: Logs
) -> None:
    log = logs.begin(store)
    store.disk.room = 100
    for number in range(10):
        position = log.add(["rows", number], [b"x" * 50])
        if number > 2:
            with pytest.raises(StoreError, match="No space left on device.*Make room"):
                log.wait(position, SECONDS)
    segments = [path for path in store.disk.files if path.startswith("log/")]
    assert len(segments) == 2, "the second is empty, and used for all tries"
    check_told(log, store.disk, log.told - 1)
    store.disk.room = 1 << 30
    log.wait(log.position, SECONDS)
    check_told(log, store.disk, 10)


def test_failing_disk_refuses_records_beyond_the_bound(
    store: SimulatedStore, logs: Logs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("timely.durable.log.LOG_UNSYNCED_BYTES_MAX", 1000)
    log = logs.begin(store)
    store.disk.failing["sync"] = errno.EIO
    with pytest.raises(StoreError, match="EIO"):
        for number in range(200):
            log.add(["rows", number])
    position = log.position
    assert 10 < position < 100 and log.told == 1
    store.disk.failing.clear()
    log.add(["rows", position - 1])
    log.wait(log.position, SECONDS)
    check_told(log, store.disk, position)


def test_failing_or_slow_a_wait_ends_in_time(store: SimulatedStore, logs: Logs) -> None:
    log = logs.begin(store)
    gate = Gate(store, "sync")
    position = log.add(["rows", 0])
    with pytest.raises(WaitTimeoutError, match=r"not synced record 2 .* within 0\.01 s; .* 1 of 2"):
        log.wait(position, 0.01)
    gate.opened.set()
    log.wait(position, SECONDS)


def test_fence_between_sync_and_tell_ends_the_log(store: SimulatedStore, logs: Logs) -> None:
    log = logs.begin(store)
    log.wait(log.add(["rows", 0]), SECONDS)
    gate = Gate(store, "exists")
    position = log.add(["rows", 1])
    log.flush()
    assert gate.reached.wait(SECONDS)
    other = SimulatedStore(store.disk)
    assert next_reads(other) == [["rows", 0], ["rows", 1]], "synced, so it counts; not told"
    gate.opened.set()
    with pytest.raises(FencedError, match="incarnation 2 of this durable cluster has taken over"):
        log.wait(position, SECONDS)
    assert log.told == 2 and isinstance(log.error, FencedError)
    assert log.add(["rows", 2]) == position + 1
    with pytest.raises(FencedError):
        log.wait(position + 1, SECONDS)
    log.wait(2, SECONDS)
    assert next_reads(other) == [["rows", 0], ["rows", 1]]


def test_fence_that_cannot_be_looked_for_is_not_absent(store: SimulatedStore, logs: Logs) -> None:
    log = logs.begin(store)
    store.disk.failing["exists"] = errno.EACCES
    with pytest.raises(StoreError, match="EACCES"):
        log.wait(log.add(["rows", 0]), SECONDS)
    assert log.told == 1
    store.put_new(fence_path(2), b"")
    store.disk.failing.clear()
    with pytest.raises(FencedError):
        log.wait(log.position, SECONDS)


def test_fence_lets_a_process_go_on_that_waits_for_room(
    store: SimulatedStore, logs: Logs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("timely.durable.log.LOG_UNSYNCED_BYTES_MAX", 1000)
    log = logs.begin(store)
    store.put_new(fence_path(2), b"")
    for number in range(200):
        log.add(["rows", number])
    assert log.position == 201 and log.told == 1


def test_ended_by_close_with_all_records_told(store: SimulatedStore, logs: Logs) -> None:
    log = logs.begin(store, segment_bytes=500)
    for number in range(50):
        log.add(["rows", number])
    log.close()
    check_told(log, store.disk, 50)
    assert all(file.is_closed for file in store.opened) and not log._thread.is_alive()
    with pytest.raises(InternalError, match="closed"):
        log.add(["rows", 50])
    log.close()


def test_ended_by_close_while_the_disk_fails(store: SimulatedStore, logs: Logs) -> None:
    log = logs.begin(store)
    store.disk.failing["sync"] = errno.EIO
    with pytest.raises(StoreError, match="EIO"):
        log.wait(log.add(["rows", 0]), SECONDS)
    log.close()
    assert not log._thread.is_alive() and log.told == 1


def test_ended_by_close_after_the_disk_works_again(store: SimulatedStore, logs: Logs) -> None:
    log = logs.begin(store)
    store.disk.failing["sync"] = errno.EIO
    with pytest.raises(StoreError, match="EIO"):
        log.wait(log.add(["rows", 0]), SECONDS)
    store.disk.failing.clear()
    log.close()
    check_told(log, store.disk, 1)


def test_ended_by_an_error_of_ours_tells_those_who_wait(store: SimulatedStore, logs: Logs) -> None:
    log = logs.begin(store)

    def before(what: str, path: str) -> None:
        raise RuntimeError("a bug")

    store.before = before
    with pytest.raises(InternalError, match="RuntimeError: a bug"):
        log.wait(log.add(["rows", 0]), SECONDS)
    with pytest.raises(InternalError, match="RuntimeError: a bug"):
        log.add(["rows", 1])
    assert log.told == 1


# callers_


@pytest.fixture
def by_callers() -> Iterator[Logs]:
    logs = Logs("callers")
    yield logs
    for log in logs.all:
        log.close()


def test_callers_that_wait_write_all_at_once_themselves(store: SimulatedStore, by_callers: Logs) -> None:
    log = by_callers.begin(store)
    writers: list[Thread] = []
    store.before = lambda what, path: writers.append(current_thread()) if what == "sync" else None
    for number in range(3):
        log.add(["rows", number])
    log.wait(log.position, SECONDS)
    assert writers == [current_thread()] and log.told == 4
    assert next_reads(store) == [["rows", number] for number in range(3)]


@pytest.mark.parametrize("size", [10, 1 << 20])
def test_callers_that_do_not_wait_leave_it_to_the_thread(
    store: SimulatedStore, by_callers: Logs, size: int
) -> None:
    log = by_callers.begin(store)
    told = Event()
    store.before = lambda what, path: told.set() if what == "exists" else None
    for number in range(2):
        log.add(["rows", number], [bytes(size)])
        assert told.wait(SECONDS)
        told.clear()
    assert next_reads(store) == [["rows", 0], ["rows", 1]]


@pytest.mark.parametrize("what", ["write", "sync", "exists"])
def test_callers_that_are_interrupted_lose_and_double_nothing(
    store: SimulatedStore, by_callers: Logs, what: str
) -> None:
    log = by_callers.begin(store)
    log.wait(log.add(["rows", 0]), SECONDS)

    def interrupt(operation: str, path: str) -> None:
        if operation == what and current_thread() is main_thread():
            store.before = lambda what, path: None
            raise KeyboardInterrupt

    store.before = interrupt
    log.add(["rows", 1])
    with pytest.raises(KeyboardInterrupt):
        log.wait(log.position, SECONDS)
    log.wait(log.add(["rows", 2]), SECONDS)
    check_told(log, store.disk, 3)


class InterruptAt:
    """Raises `KeyboardInterrupt` at one of the places at which this thread looks for signals in `log.py`."""

    def __init__(self, place: int) -> None:
        self.left = place

    def __call__(self, frame: FrameType, event: str, argument: object) -> InterruptAt | None:
        if frame.f_code.co_filename != log_module.__file__:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and frame.f_lasti in _looks_of(frame.f_code):
            self.left -= 1
            if self.left < 0:
                raise KeyboardInterrupt
        return self


@cache
def _looks_of(code: CodeType) -> frozenset[int]:
    """Where the interpreter is once it has looked for signals: behind calls, and where functions begin."""
    steps = list(dis.get_instructions(code))
    return frozenset(
        after.offset for step, after in pairwise(steps) if step.opname in ("CALL", "RESUME", "JUMP_BACKWARD")
    )


def test_callers_may_be_interrupted_anywhere() -> None:
    place = 0
    for place in count():
        disk = SimulatedDisk()
        by_callers = Logs("callers")
        log = by_callers.begin(SimulatedStore(disk))
        log.add(["rows", 0])
        before = sys.gettrace()
        sys.settrace(InterruptAt(place))
        try:
            log.wait(log.add(["rows", 1]), SECONDS)
            is_over = True
        except KeyboardInterrupt:
            is_over = False
        finally:
            sys.settrace(before)
        log.wait(log.add(["rows", 2]), SECONDS)
        heads = next_reads(SimulatedStore(disk))
        assert [head for head in heads if head != ["rows", 1]] == [["rows", 0], ["rows", 2]], place
        assert heads.count(["rows", 1]) <= 1 and log.told == log.position == 1 + len(heads), place
        assert log.unsynced_bytes == 0, place
        log.close()
        if is_over:
            break
    assert place > 20


def test_callers_of_a_slow_disk_wait_for_the_thread(
    store: SimulatedStore, by_callers: Logs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "_SLOW_SECONDS", -1.0)
    log = by_callers.begin(store)
    gate = Gate(store, "sync")
    log.add(["rows", 0])
    with pytest.raises(WaitTimeoutError, match="within 0.01 s"):
        log.wait(log.position, 0.01)
    gate.opened.set()
    log.wait(log.position, SECONDS)
    assert next_reads(store) == [["rows", 0]]
