"""Logs of an incarnation at work, up to a cut: all that counts in front of it, and nothing else."""

from __future__ import annotations

import pytest
from simulated_store import SimulatedStore

from timely.durable.bases.cuts import cut_logs
from timely.durable.bases.manifest import Base, write_base
from timely.durable.incarnations import Incarnation, announce, hello_of, read_log
from timely.durable.journal import Journal
from timely.durable.log import Log
from timely.errors import StoreError

SECONDS = 20.0


def counted(store: SimulatedStore, begun: Incarnation, name: str) -> list[object]:
    return [record.head for log in cut_logs(store, begun, name).logs for record in read_log(store, log)]


def test_cut_has_what_is_in_front_of_it() -> None:
    store = SimulatedStore()
    before = announce(store, 1)
    log = Log(store, before.cluster, before.number, 0)
    log.add(hello_of(before, 0))
    log.add(["old"])
    log.wait(log.position, SECONDS)
    log.close()
    begun = announce(store, 2)
    logs = [Log(store, begun.cluster, begun.number, process, segment_bytes=60) for process in range(2)]
    for process, log in enumerate(logs):
        log.add(hello_of(begun, process))
        for number in range(5):
            log.add(["row", process, number])
        Journal(log, process).cut("cut")
        log.add(["behind"])
        log.wait(log.position, SECONDS)
    rows = [["row", process, number] for process in range(2) for number in range(5)]
    assert counted(store, begun, "cut") == [["old"], *rows]
    write_base(store, Base(1, covered={(begun.number, 0): 2}))
    assert counted(store, begun, "cut") == [["old"], *rows[3:]] or len(counted(store, begun, "cut")) < 11
    Journal(logs[0], 0).cut("next")
    logs[0].wait(logs[0].position, SECONDS)
    with pytest.raises(StoreError, match="the log of process 1 of incarnation 2 was not cut for 'next'"):
        cut_logs(store, begun, "next")


def test_cut_after_a_failure_of_the_disk_counts_once() -> None:
    store = SimulatedStore()
    begun = announce(store, 1)
    log = Log(store, begun.cluster, begun.number, 0)
    log.add(hello_of(begun, 0))
    log.wait(log.position, SECONDS)
    store.disk.failing["sync"] = 5
    log.add(["row"])
    Journal(log, 0).cut("cut")
    with pytest.raises(StoreError):
        log.wait(log.position, SECONDS)
    store.disk.failing.clear()
    log.wait(log.position, SECONDS)
    assert counted(store, begun, "cut") == [["row"]]
