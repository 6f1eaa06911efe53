"""A routing that changes from epoch to epoch, on workers whose messages are delayed at random.

Against the plain meaning: the changes of epochs ≤ e - lead, applied in order, say where the rows of epoch e
are. At every step all predicates of progress tracking are checked (`Monitor`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from differential.columns.routes import KeyRoute
from differential.columns.update_batch import UpdateBatch, words_of
from differential.kernels.rows.hashing import hash_of_key
from progress.compiled.arrays import Int64s
from timely import Batch, Dataflow, Records, Vertex
from timely.client.tables import records_of
from timely.running.checking.monitor import Monitor
from timely.running.core import Worker
from timely.running.instance import Instance
from timely.wire.routing import BUCKETS
from timely.wire.transport.memory import MemoryNetwork

EPOCHS = 8
Changes = list[list[tuple[int, int]]]
"""For each epoch pairs (bucket, worker)."""


class Notes(Vertex):
    """Says of each record, a key, at which time and where it has arrived."""

    def on_recv(self, edge: int, message: list[object], time: tuple[int, ...]) -> None:
        self.send_by(0, [(time[0], key, self.worker) for key in message], time)


class NotesRows(Vertex):
    """The same of rows (key, time, diff): each at its own time, which may be after that of its envelope."""

    word_times = True

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        for word, batch in messages:
            keys, times, _ = words_of(batch).tolist()
            epochs = [time >> self.code.fields[0][0] for time in times]
            found = [(epoch, key, self.worker) for epoch, key in zip(epochs, keys, strict=True)]
            self.send(0, Records(found), word)


def owner(changes: Changes, lead: int, workers: int, epoch: int, bucket: int) -> int:
    """Where a bucket is in an epoch, by going through all changes."""
    found = bucket % workers
    for listed in changes[: max(0, epoch - lead + 1)]:
        named = [worker % workers for number, worker in listed if number == bucket]
        found = max(named, default=found)
    return found


def run(workers: list[Worker], instances: list[Instance], choose: random.Random) -> None:
    """Workers in random order until nothing is left to do, whatever is under way."""
    quiet = 0
    while quiet < 20 * len(workers):
        quiet = 0 if choose.choice(workers).step() else quiet + 1
    assert all(instance.is_complete() for instance in instances)


def cluster(size: int, seed: int, dataflow: Dataflow) -> tuple[list[Worker], list[Instance]]:
    network = MemoryNetwork(size, seed)
    workers = [Worker(index, size, network.transport(index)) for index in range(size)]
    Monitor(workers, network)
    return workers, [worker.install(dataflow.freeze()) for worker in workers]


def feed(
    workers: list[Worker],
    instances: list[Instance],
    changes: Changes,
    rows: list[list[Batch]],
    choose: random.Random,
) -> list[object]:
    """Changes and rows of each epoch come in at any worker, and epochs are sealed at any moment, perhaps some
    at once.
    """
    for epoch in range(EPOCHS):
        for change in changes[epoch]:
            choose.choice(instances).input("routing").send([change], epoch)
        for batch in rows[epoch]:
            choose.choice(instances).input("rows").append(epoch, batch)
    ends = [(instance, name) for instance in instances for name in ("routing", "rows")]
    while ends:
        instance, name = ends[choose.randrange(len(ends))]
        handle = instance.input(name)
        if handle.seal(min(handle.epoch + choose.choice((0, 0, 1, 4)), EPOCHS - 1)) == EPOCHS - 1:
            handle.close()
            ends.remove((instance, name))
        for _ in range(choose.randrange(3)):
            choose.choice(workers).step()
    run(workers, instances, choose)
    return [
        record for one in instances for _, record in records_of(one.output("noted").log.changes(0, 2**62))
    ]


def some_changes(choose: random.Random, buckets: list[int]) -> Changes:
    return [
        [(choose.choice(buckets), choose.randrange(6)) for _ in range(choose.choice((0, 0, 1, 3)))]
        for _ in range(EPOCHS)
    ]


@pytest.mark.parametrize("level_bits", [None, (3,), (2,)])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_every_key_of_an_epoch_is_on_the_one_worker_that_its_version_names(
    size: int, level_bits: tuple[int, ...] | None, seed: int, effort: int
) -> None:
    """With few bits the anchor moves while changes and rows wait."""
    for case in range(seed, seed + 12 * effort):
        choose = random.Random(case)
        lead, keys = choose.randrange(4), [*range(6), BUCKETS + 3]
        changes = some_changes(choose, [key % BUCKETS for key in keys])
        rows: list[list[Batch]] = [
            [Records([choose.choice(keys) for _ in range(4)]) for _ in range(3)] for _ in range(EPOCHS)
        ]
        dataflow = Dataflow(level_bits=level_bits)
        control = dataflow.routing(lead=lead)
        noted = control.stage("notes", Notes, dataflow.input("rows"), exchange=lambda key: int(str(key)))
        dataflow.output("noted", noted)
        found = feed(*cluster(size, case, dataflow), changes, rows, choose)
        expected = [
            (epoch, key, owner(changes, lead, size, epoch, key % BUCKETS))
            for epoch, batches in enumerate(rows)
            for batch in batches
            if isinstance(batch, Records)
            for key in (int(str(record)) for record in batch.records)
        ]
        assert sorted(map(str, found)) == sorted(map(str, expected)), f"seed {case}, {size} workers, {lead=}"


def test_changes_hold_for_epochs_to_which_the_anchor_moves_in_one_go(seed: int) -> None:
    """It is past the first epoch of the version before the routers are told that the change is complete."""
    dataflow = Dataflow(level_bits=(3,))
    control = dataflow.routing(lead=1)
    noted = control.stage("notes", Notes, dataflow.input("rows"), exchange=lambda key: int(str(key)))
    dataflow.output("noted", noted)
    workers, instances = cluster(2, seed, dataflow)
    instances[0].input("routing").send([(0, 1)], 2)
    instances[0].input("rows").send([0], 60)
    for instance in instances:
        for name in ("routing", "rows"):
            instance.input(name).seal(60)
            instance.input(name).close()
    run(workers, instances, random.Random(seed))
    assert all(instance.anchor.epoch > 3 for instance in instances)
    logs = [instance.output("noted").log.changes(0, 2**62) for instance in instances]
    assert [record for log in logs for _, record in records_of(log)] == [(60, 0, 1)]


def _rows(choose: random.Random, keys: list[int], word_of: Callable[[int], int], epoch: int) -> Int64s:
    """Four rows of `epoch` or later."""
    times = [word_of(choose.randrange(epoch, EPOCHS)) for _ in range(4)]
    return np.array([[choose.choice(keys) for _ in range(4)], times, [1] * 4])


@pytest.mark.parametrize("size", [2, 3])
def test_rows_later_than_their_envelope_are_where_their_own_time_says(
    size: int, seed: int, effort: int
) -> None:
    for case in range(seed, seed + 12 * effort):
        choose = random.Random(case)
        lead, keys = choose.randrange(3), list(range(5))
        bucket_of = {key: hash_of_key(np.array([[key]]), 0, 1) % BUCKETS for key in keys}
        changes = some_changes(choose, list(bucket_of.values()))
        dataflow = Dataflow()
        control = dataflow.routing(lead=lead)
        control_stage = control.stage("notes", NotesRows, dataflow.input("rows"), exchange=KeyRoute(1))
        dataflow.output("noted", control_stage)
        workers, instances = cluster(size, case, dataflow)
        word_of = instances[0].input("rows").epoch_word
        words = [[_rows(choose, keys, word_of, epoch) for _ in range(2)] for epoch in range(EPOCHS)]
        rows: list[list[Batch]] = [[UpdateBatch(batch) for batch in batches] for batches in words]
        found = feed(workers, instances, changes, rows, choose)
        shift = instances[0].runners[0].code.fields[0][0]
        expected = [
            (time >> shift, key, owner(changes, lead, size, time >> shift, bucket_of[key]))
            for batches in words
            for batch in batches
            for key, time in zip(batch[0].tolist(), batch[1].tolist(), strict=True)
        ]
        assert sorted(map(str, found)) == sorted(map(str, expected)), f"seed {case}, {size} workers, {lead=}"
