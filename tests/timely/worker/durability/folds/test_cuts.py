"""What workers write for a fold, in records that take no longer than a step may."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import pytest

import differential as dd
import timely
from timely.durable.journal import Journal
from timely.errors import StoreError
from timely.running.core import Worker
from timely.running.instance import Instance
from timely.wire.batch import Batch
from timely.wire.handshake import CutLog
from timely.worker.durability.folds import cuts as cuts_module
from timely.worker.durability.folds.cuts import LogCuts

EPOCHS, ROWS = 100, 100


class SlowJournal:
    """Notes how many rows each record has, and takes time for each row."""

    def __init__(self, seconds: float) -> None:
        self.now = 0.0
        self.seconds = seconds
        self.rows: list[int] = []
        self.segments = 0
        self.error: StoreError | None = None
        self.log = self

    def begin_segment(self) -> None:
        self.segments += 1

    def changes(
        self, dataflow: int, output: str, before: object, by_epoch: Sequence[tuple[int, list[Batch]]]
    ) -> None:
        self.rows.append(sum(batch.rows for _, batches in by_epoch for batch in batches))
        self.now += self.seconds * self.rows[-1]


def begun(seconds: float, monkeypatch: pytest.MonkeyPatch) -> tuple[SlowJournal, Instance, LogCuts]:
    """A journal in which each row takes so long, a dataflow with many epochs, and what is to write them."""
    journal = SlowJournal(seconds)
    clock = SimpleNamespace(perf_counter=lambda: journal.now, monotonic=lambda: journal.now)
    monkeypatch.setattr(cuts_module, "time", clock)
    worker = Worker()
    dataflow = timely.Dataflow("numbers")
    dd.input(dataflow, "rows", "n: int").output("rows")
    instance = worker.install(dataflow.freeze())
    handle = instance.input("rows")
    for epoch in range(EPOCHS):
        for number in range(ROWS):
            handle.take_rows(epoch, [(number + epoch * ROWS,)], 1, "w", number + epoch * ROWS)
        handle.seal(epoch)
    worker.run_until_idle()
    made: Journal = journal  # type: ignore[assignment]
    cuts = LogCuts(worker, made, cuts=False, shown_before=lambda instance, name, epoch: epoch, sealed={})
    cuts.begin(instance, None)
    cuts.order(CutLog("cut", (0,), (EPOCHS - 1,), (-1,)))
    return journal, instance, cuts


def written(seconds: float, monkeypatch: pytest.MonkeyPatch) -> SlowJournal:
    """What is written of an output with many epochs, if each row takes so long."""
    journal, _, cuts = begun(seconds, monkeypatch)
    while cuts.is_cutting:
        assert cuts.step()
    assert sum(journal.rows) == EPOCHS * ROWS
    return journal


def test_records_of_rows_that_take_no_time_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    journal = written(1e-9, monkeypatch)
    assert journal.rows[0] <= 300 and max(journal.rows[1:]) >= 4_000 and not journal.segments


def test_records_of_slow_rows_are_small_and_segments_end_behind_many_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cuts_module, "_SEGMENT_RECORDS", 10)
    journal = written(1e-4, monkeypatch)
    assert max(journal.rows) <= 300 and journal.segments == len(journal.rows[:-1]) // 10


def test_records_are_as_large_as_a_step_may_take(monkeypatch: pytest.MonkeyPatch) -> None:
    journal = written(2e-6, monkeypatch)
    assert 1_000 <= max(journal.rows) <= 1_100 and not journal.segments


def test_records_of_a_new_version_wait_until_its_outputs_go_on_with_those_of_the_old_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    journal, instance, cuts = begun(1e-9, monkeypatch)
    instance.is_taking_over = True
    assert not cuts.step() and not journal.rows
    instance.is_taking_over = False
    while cuts.is_cutting:
        assert cuts.step()
    assert sum(journal.rows) == EPOCHS * ROWS


def test_records_wait_while_the_disk_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """What finds no room would be an error of the worker, and end it."""
    journal, _, cuts = begun(1e-9, monkeypatch)
    journal.error = StoreError("no room")
    assert not cuts.step() and not journal.rows
    journal.error = None
    assert cuts.step() and journal.rows


def test_records_that_were_written_in_part_are_never_followed_by_a_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Other workers may have written theirs as a whole: the next fold would count these without those."""
    journal, _, cuts = begun(1e-4, monkeypatch)
    assert cuts.step()
    with monkeypatch.context() as context:
        context.setattr(journal, "changes", None)
        with pytest.raises(TypeError):
            while True:
                assert cuts.step()
    for _ in range(3):
        assert cuts.is_cutting and not cuts.step()
