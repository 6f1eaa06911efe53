"""Few rows of an output that wait for who reads: beside many of the same epoch, and where words count from a
later epoch before anybody has read.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import differential as dd
import timely
from differential.columns.schema import Schema
from differential.columns.update_batch import UpdateBatch
from differential.errors import MultiplicityOverflowError
from differential.operators.edge import collected
from differential.operators.table_io import TableLog
from differential.testing import assert_updates
from progress.times.anchor import Anchor, Rebase
from progress.times.time_words import TimeCode, TimeLayout
from progress.times.timestamp import ROOT
from timely.operators.capture import FOREVER
from timely.running import instance as instance_module
from timely.running.core import Worker


def _small(levels: int) -> TimeLayout:
    """Words that soon have no room for an epoch."""
    return TimeLayout((3, *[9] * (levels - 1)))


def same(flow: timely.Dataflow) -> None:
    """What comes in goes out, at once."""
    dd.input(flow, "rows", "k: int").output("same")


def behind(flow: timely.Dataflow) -> None:
    """The same, behind a vertex."""
    dd.input(flow, "rows", "k: int").distinct().output("same")


@pytest.mark.parametrize("build", [same, behind])
@pytest.mark.parametrize("reads_each", [False, True])
def test_rows_that_nobody_has_read_are_there_when_words_count_from_a_later_epoch(
    build: timely.Builder, reads_each: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    default = TimeLayout.default
    monkeypatch.setattr(
        TimeLayout, "default", staticmethod(lambda levels: TimeLayout((3, *[9] * (levels - 1))))
    )
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(build)
        monkeypatch.setattr(TimeLayout, "default", staticmethod(default))
        for epoch in range(60):
            flow.input("rows").insert([(epoch,)])
            assert flow.seal() == epoch
            if reads_each:
                assert flow.output("same").complete_before() == epoch + 1
                assert flow.output("same").complete_before() == epoch + 1
        found = flow.output("same").changes(0, 60).to_pylist()
        assert [(row["k"], row["epoch"], row["diff"]) for row in found] == [(n, n, 1) for n in range(60)]


@pytest.mark.parametrize("build", [same, behind])
def test_what_may_still_come_is_never_said_to_be_complete_when_words_count_from_a_later_epoch(
    build: timely.Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        TimeLayout, "default", staticmethod(lambda levels: TimeLayout((3, *[9] * (levels - 1))))
    )
    flow = timely.Dataflow("waits")
    build(flow)
    worker = Worker()
    instance = worker.install(flow.freeze())
    handle, anchors = instance.input("rows"), set[int]()
    for step in range(200):
        if step % 3 == 0:
            table = pa.table({"k": [step]})
            word = handle.epoch_word(handle.epoch + step % 5)
            handle.append_all(handle.epoch + step % 5, handle.encode(table, 1, word))
        if step % 2 == 0:
            handle.seal()
        while actions := worker.enabled():
            worker.perform(actions[step % len(actions)])
            assert instance.output("same").complete_before <= handle.epoch
            anchors.add(instance.anchor.epoch)
    assert len(anchors) > 3
    assert instance.output("same").complete_before == handle.epoch


@pytest.mark.parametrize("first", ["many", "few"])
def test_few_rows_and_many_of_an_epoch_are_one_change(first: str) -> None:
    tables = {"many": pa.table({"k": range(100)}), "few": pa.table({"k": range(98, 100)})}
    flow = timely.Dataflow("waits")
    same(flow)
    worker = Worker()
    instance = worker.install(flow.freeze())
    handle = instance.input("rows")
    for name in (first, *(name for name in tables if name != first)):
        handle.append_all(0, handle.encode(tables[name], 1, handle.epoch_word(0)))
    handle.seal()
    worker.run_until_idle()
    log = instance.output("same").log
    found = log.changes(0, 9).to_pylist()
    assert [(row["k"], row["diff"]) for row in found] == [(n, 1 + (n >= 98)) for n in range(100)]
    assert log.snapshot(0).num_rows == 100


@pytest.mark.parametrize("follows", [False, True])
def test_who_looks_before_its_turn_leaves_an_error_to_the_turn(
    follows: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sum that leaves 64 bits ends the dataflow, and is not found by who reads."""
    if not follows:  # as behind a vertex: rows and the end of their epoch are two turns
        monkeypatch.setattr(instance_module, "follow_inputs", lambda frozen, runners: None)
    flow = timely.Dataflow("waits")
    same(flow)
    worker = Worker()
    instance = worker.install(flow.freeze())
    worker.run_until_idle()
    handle = instance.input("rows")
    for _ in range(2):
        handle.append_all(0, handle.encode(pa.table({"k": [7]}), (1 << 63) - 1, handle.epoch_word(0)))
    handle.seal()
    with pytest.raises(MultiplicityOverflowError):
        while actions := worker.enabled():
            assert instance.output("same").complete_before <= 1
            worker.perform(actions[0])


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("build", [same, behind])
def test_an_output_knows_how_far_it_is_though_no_word_says_it(
    build: timely.Builder, at_once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Epochs are sealed far beyond what words hold, and the anchor follows: no news to who has looked."""
    monkeypatch.setattr(
        TimeLayout, "default", staticmethod(lambda levels: TimeLayout((3, *[9] * (levels - 1))))
    )
    flow = timely.Dataflow("waits")
    build(flow)
    worker = Worker()
    instance = worker.install(flow.freeze())
    handle = instance.input("rows")
    for epoch in (0, 40, 80, 200, 500):
        handle.append_all(epoch, handle.encode(pa.table({"k": [epoch]}), 1, handle.epoch_word(epoch)))
        if not at_once:
            handle.seal(epoch)
            worker.run_until_idle()
            assert instance.output("same").complete_before == epoch + 1
        handle.seal(epoch + 30)
        worker.run_until_idle()
        assert instance.output("same").complete_before == handle.epoch
    found = instance.output("same").log.changes(0, 600).to_pylist()
    assert [row["epoch"] for row in found] == [0, 40, 80, 200, 500]


def test_what_is_read_after_each_change_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that were put in order for readers are taken into the trace once they are many."""
    monkeypatch.setattr(collected, "BESIDE_ROWS_MAX", 10)
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(same)
        (instance,) = cluster._workers._workers[0].instances.values()  # type: ignore[attr-defined]
        for epoch in range(60):
            flow.input("rows").insert([(epoch,)])
            flow.wait(flow.seal())
            assert flow.output("same").snapshot().num_rows == epoch + 1
            assert instance.output("same").log._rows._rows_waiting <= 12


def _few_in_a_log(*rows: tuple[int, int, int]) -> tuple[TableLog, TimeCode]:
    """A log in which few rows wait, each a value, an epoch and how often it is there."""
    code = TimeCode(TimeLayout.default(1), ROOT).anchored(Anchor())
    log = TableLog(Schema.of("n: int"))
    log.start(code)
    for value, epoch, diff in rows:
        log.add(epoch, UpdateBatch(np.array([[value], [code.pack((epoch,))], [diff]])))
    assert log._few_rows == len(rows)
    return log, code


def test_log_goes_on_with_few_rows_that_nobody_has_read() -> None:
    old, _ = _few_in_a_log((1, 0, 1), (2, 1, 1))
    new, _ = _few_in_a_log((2, 1, 1), (3, 1, 1), (4, 2, 1))
    for log in (old, new):
        log.note_complete(3)
    assert new.take_over(old, 2)
    wanted = "n | epoch | diff\n 1 | 0 | +1\n 2 | 1 | +1\n 1 | 2 | -1\n 3 | 2 | +1\n 4 | 2 | +1"
    assert_updates(new.changes(0, FOREVER), wanted)


def test_log_forgets_few_rows_that_nobody_has_read() -> None:
    log, _ = _few_in_a_log((1, 0, 1), (2, 1, 1), (3, 2, 1))
    log.note_complete(3)
    log.forget(2)
    assert list(log._changes) == [2]
    assert_updates(log.changes(2, FOREVER), "n | epoch | diff\n 3 | 2 | +1")
    assert log.snapshot(2).num_rows == 3


def test_log_lets_words_of_few_rows_count_from_a_later_epoch() -> None:
    log, code = _few_in_a_log((1, 5, 1), (2, 6, 1))
    shift = code.layout.shifts[0]
    code.anchor.epoch += 4
    log.rebase(Rebase(4, shift))
    log.note_complete(6)
    assert_updates(log.changes(0, FOREVER), "n | epoch | diff\n 1 | 5 | +1")
