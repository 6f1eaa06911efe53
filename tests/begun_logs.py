"""Logs of processes that tests write to, and what the next incarnation reads of them."""

from __future__ import annotations

import copy

from simulated_store import SimulatedDisk, SimulatedStore

from timely.durable.incarnations import announce, hello_of, read_log
from timely.durable.log import Log, WrittenBy
from timely.durable.store import Store

__all__ = ["SECONDS", "Logs", "after_crash", "check_told", "next_reads"]

SECONDS = 20.0


class Logs:
    """Logs of incarnation 1 that are closed after the test."""

    def __init__(self, by: WrittenBy) -> None:
        self.by = by
        self.all: list[Log] = []

    def begin(
        self, store: Store, *, syncs: bool = True, segment_bytes: int = 1 << 20, processes: int = 1
    ) -> Log:
        """Return the log of process 0, with its `hello` told."""
        first = announce(store, processes)
        log = Log(
            store, first.cluster, first.number, 0,
            syncs=syncs, segment_bytes=segment_bytes, by=self.by,
        )  # fmt: skip
        self.all.append(log)
        log.wait(log.add(hello_of(first, 0)), SECONDS)
        return log


def next_reads(store: Store) -> list[list[object]]:
    """Return the heads of all records that the next incarnation counts."""
    return [record.head for old in announce(store, 1).logs for record in read_log(store, old)]


def after_crash(disk: SimulatedDisk, seed: int) -> list[list[object]]:
    """The same, after the machine has failed."""
    # The thread of the log may write meanwhile: a list of the files, and then each of them at one moment.
    disk = SimulatedDisk({path: copy.copy(content) for path, content in list(disk.files.items())})
    disk.crash(seed)
    return next_reads(SimulatedStore(disk))


def check_told(log: Log, disk: SimulatedDisk, told: int) -> None:
    """Assert that records 1 to `told` are told and survive every crash, and that others only follow them."""
    assert log.told == told + 1
    for seed in range(40):
        heads = after_crash(disk, seed)
        assert heads == [["rows", number] for number in range(len(heads))]
        assert len(heads) >= told, (seed, told)
