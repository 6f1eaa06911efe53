"""Which records of logs count beside a base: exactly those that it does not stand for."""

from __future__ import annotations

from simulated_store import SimulatedStore

from timely.durable.bases.coverage import Logs, incarnations_to_fold, logs_of
from timely.durable.bases.manifest import Base, FlowBase, SegmentName, write_base
from timely.durable.incarnations import Incarnation, announce, hello_of
from timely.durable.log import Log

SECONDS = 20.0


def with_segments(store: SimulatedStore, count: int) -> Incarnation:
    """An incarnation with two processes, each of whose logs has so many segments of one record."""
    begun = announce(store, 2)
    for process in range(2):
        log = Log(store, begun.cluster, begun.number, process)
        log.add(hello_of(begun, process))
        for number in range(count):
            log.begin_segment()
            log.add(["few", process, number])
        log.wait(log.position, SECONDS)
        log.close()
    return begun


def heads(logs: Logs) -> list[tuple[object, bool]]:
    return [
        (tuple(logged.record.head[1:]), logged.is_pinned)
        for logged in logs.records()
        if logged.record.head[0] == "few"
    ]


def test_records_behind_what_a_base_stands_for() -> None:
    store = SimulatedStore()
    begun = with_segments(store, 4)
    base = Base(1, {1: FlowBase([])}, covered={(begun.number, 0): 2, (begun.number, 1): 4})
    base.pinned[SegmentName(begun.number, 1, 2)] = "log/000001/p1-000002.log", 10**6
    after = announce(store, 1)
    assert heads(Logs(store, after.logs, Base())) == [
        ((process, number), False) for process in range(2) for number in range(4)
    ]
    assert heads(Logs(store, after.logs, base)) == [((0, 2), False), ((0, 3), False), ((1, 1), True)]
    base.flows = {0: FlowBase([])}
    behind = [((0, 2), False), ((0, 3), False), ((1, 1), False)]
    assert heads(Logs(store, after.logs, base)) == behind, "dataflow 1 is a new version, behind the base"
    base.gone = {1: ("it was given up", [])}
    assert heads(Logs(store, after.logs, base))[-1] == ((1, 1), True), "the base has its end"
    base.gone, base.ended_before = {}, 1
    assert heads(Logs(store, after.logs, base)) == behind
    base.ended_before = 2
    assert heads(Logs(store, after.logs, base))[-1] == ((1, 1), True), "it had ended long before"


def test_records_of_an_incarnation_that_goes_on_from_a_base() -> None:
    store = SimulatedStore()
    begun = with_segments(store, 3)
    write_base(store, Base(1, covered={(begun.number, 0): 1, (begun.number, 1): 9}))
    # The base stands for more of the second log than there is: its last segment is lost.
    try:
        announce(store, 1)
    except Exception as error:
        assert "p1-000010.log is lost" in str(error)
    store = SimulatedStore()
    begun = with_segments(store, 3)
    write_base(store, Base(1, covered={(begun.number, 0): 1, (begun.number, 1): 2}))
    for process in range(2):
        for number in range(2):
            store.remove(f"log/000001/p{process}-{number:06}.log")
    after = announce(store, 1)
    assert after.base == 1
    assert heads(logs_of(store, after)) == [((0, 1), False), ((0, 2), False), ((1, 2), False)]
    again = announce(store, 1)
    assert again.logs[: len(after.logs)] == after.logs
    write_base(store, Base(2, covered={(begun.number, 0): 3, (begun.number, 1): 3}))
    write_base(store, Base(3, covered={(begun.number, 0): 3, (begun.number, 1): 3}))
    assert [log for log in announce(store, 1).logs if log.incarnation == begun.number] == []


def test_incarnations_whose_logs_a_base_does_not_stand_for() -> None:
    store = SimulatedStore()
    assert incarnations_to_fold(store) == 0
    for _ in range(3):
        with_segments(store, 1)
    assert incarnations_to_fold(store) == 2, "the newest one is at work"
    after = announce(store, 1)
    assert incarnations_to_fold(store) == Logs(store, after.logs, Base()).incarnations() == 3
    covered = {(number, process): 1 for number in (1, 2) for process in range(2)}
    write_base(store, Base(1, covered={**covered, (3, 0): 1}))
    assert incarnations_to_fold(store) == 1, "a log of incarnation 3 is not in it"
    write_base(store, Base(2, covered={**covered, (3, 0): 1, (3, 1): 1}))
    assert incarnations_to_fold(store) == 0
