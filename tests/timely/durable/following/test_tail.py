"""A tail reads what counts of a log, each record once, or says that it has read something else.

random_*     whatever a process and its disk do
overtaken_*  what a tail has read does not count, or it lacks something
"""

from __future__ import annotations

import errno

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated_store import SimulatedStore

from timely.durable.following.tail import Tail
from timely.durable.incarnations import announce, hello_of
from timely.durable.log import Log
from timely.errors import OvertakenError, StoreError

SECONDS = 20.0
STEPS = ("add", "segment", "read", "fail the sync", "fail the write", "work again")


def begun(store: SimulatedStore) -> Log:
    first = announce(store, 1)
    log = Log(store, first.cluster, first.number, 0)
    log.wait(log.add(hello_of(first, 0)), SECONDS)
    return log


def numbers(heads: list[list[object]]) -> list[object]:
    return [head[1] for head in heads if head[0] == "rows"]


def read(tail: Tail) -> list[list[object]]:
    return [record.head for record, _ in tail.records()]


def rest(tail: Tail, store: SimulatedStore) -> list[list[object]]:
    (log,) = announce(store, 1).logs
    return [record.head for record, _ in tail.records_to(log.segments)]


@given(st.lists(st.sampled_from(STEPS), max_size=30))
def test_random_histories_are_read_once_each_or_not_believed(steps: list[str]) -> None:
    store = SimulatedStore()
    log = begun(store)
    tail = Tail(SimulatedStore(store.disk), 1, 0, 0)
    told: list[int] = []
    added = 0
    seen: list[list[object]] = []
    try:
        for step in steps:
            match step:
                case "add":
                    position = log.add(["rows", added])
                    added += 1
                    try:
                        log.wait(position, SECONDS)
                    except StoreError:
                        pass
                case "segment":
                    log.begin_segment()
                case "read":
                    seen += read(tail)
                case "fail the sync":
                    store.disk.failing["sync"] = errno.EIO
                case "fail the write":
                    store.disk.failing["write"] = errno.EIO
                case _:
                    store.disk.failing.clear()
                    log.wait(log.position, SECONDS)
        store.disk.failing.clear()
        log.wait(log.position, SECONDS)
        told = list(range(added))
        seen += rest(tail, store)
    except OvertakenError:
        assert "fail the sync" in steps or "fail the write" in steps
    else:
        assert numbers(seen) == told
    finally:
        store.disk.failing.clear()
        log.close()


def test_overtaken_by_records_that_were_written_again_elsewhere() -> None:
    store = SimulatedStore()
    log = begun(store)
    tail = Tail(store, 1, 0, 0)
    store.disk.failing["sync"] = errno.EIO
    with pytest.raises(StoreError):
        log.wait(log.add(["rows", 0]), SECONDS)
    assert numbers(read(tail)) == [0], "it is in the file, and not durable"
    store.disk.failing.clear()
    log.wait(log.position, SECONDS)
    log.close()
    with pytest.raises(OvertakenError, match="is no part of what counts"):
        read(tail)
    assert numbers(rest(Tail(store, 1, 0, 0), store)) == [0]


def test_overtaken_by_records_of_a_segment_that_no_later_one_names() -> None:
    store = SimulatedStore()
    log = begun(store)
    tail = Tail(store, 1, 0, 0)
    log.begin_segment()
    store.disk.failing["sync"] = errno.EIO
    with pytest.raises(StoreError):
        log.wait(log.add(["rows", 0]), SECONDS)
    assert numbers(read(tail)) == [0]
    store.disk.failing.clear()
    log.wait(log.position, SECONDS)
    log.close()
    with pytest.raises(OvertakenError, match="a segment was given up"):
        read(tail)


def test_records_that_came_before_a_segment_was_found_are_read_before_it() -> None:
    store = SimulatedStore()
    log = begun(store)
    own = SimulatedStore(store.disk)
    tail = Tail(own, 1, 0, 0)
    read(tail)

    def write(what: str, path: str) -> None:
        if what == "list":
            own.before = lambda what, path: None
            log.add(["rows", 0])
            log.begin_segment()
            log.wait(log.add(["rows", 1]), SECONDS)

    own.before = write
    assert numbers(read(tail)) == [0, 1]
    log.close()


def test_overtaken_by_a_fold_that_has_removed_segments() -> None:
    store = SimulatedStore()
    log = begun(store)
    tail = Tail(store, 1, 0, 0)
    for number in range(3):
        log.wait(log.add(["rows", number]), SECONDS)
        log.begin_segment()
    log.close()
    for path in [path for path in store.disk.files if path.endswith(("-000000.log", "-000001.log"))]:
        store.remove(path)
    with pytest.raises(OvertakenError):
        read(tail)


def test_reads_on_behind_a_record_that_was_being_written() -> None:
    store = SimulatedStore()
    log = begun(store)
    tail = Tail(store, 1, 0, 0)
    log.wait(log.add(["rows", 0]), SECONDS)
    path = "log/000001/p0-000000.log"
    whole = store.disk.files[path].written
    seen: list[list[object]] = []
    for end in range(0, len(whole) + 1, 3):
        store.disk.files[path].written = whole[:end]
        seen += read(tail)
    store.disk.files[path].written = whole
    assert numbers(seen + read(tail)) == [0]
    log.close()


def test_a_record_counts_as_read_once_the_next_one_is_asked_for() -> None:
    store = SimulatedStore()
    log = begun(store)
    for number in range(3):
        log.wait(log.add(["rows", number]), SECONDS)
    tail = Tail(store, 1, 0, 0)
    for record, _ in tail.records():
        if record.head == ["rows", 1]:
            break
    assert numbers(read(tail)) == [1, 2]
    log.wait(log.add(["rows", 3]), SECONDS)
    for _ in tail.records():
        tail.note_read()
        break
    assert read(tail) == []
    log.close()


def test_segments_that_need_the_symbols_of_the_one_before_are_not_fresh() -> None:
    store = SimulatedStore()
    log = begun(store)
    tail = Tail(store, 1, 0, 0)
    assert not tail.fresh_count
    read(tail)
    assert tail.fresh_count == 1
    for fails in (True, False):
        if fails:
            store.disk.failing["write"] = errno.EIO
        else:
            log.begin_segment()
        position = log.add(["rows", 0])
        if fails:
            with pytest.raises(StoreError):
                log.wait(position, SECONDS)
            store.disk.failing.clear()
        log.wait(log.position, SECONDS)
        read(tail)
        assert tail.fresh_count == (1 if fails else 2)
    log.close()
