"""Folded rows: they enter one by one, and what has entered is worked on before the next."""

from __future__ import annotations

import weakref

import numpy as np
import pyarrow as pa
import pytest

from differential.columns.schema import Schema
from differential.columns.update_batch import words_of
from differential.operators.edge.table_in import TableIn
from progress.times.time_words import TimeCode
from timely import Batch, Dataflow, Records
from timely.dictionaries import Mark
from timely.operators.inputs.codecs import RecordsIn
from timely.operators.inputs.folded import Folded, rereading
from timely.operators.inputs.handle import InputHandle
from timely.running.core import Worker
from timely.running.instance import Instance
from timely.thresholds import FOLDED_ROWS_MIN


class Numbers(Folded):
    """Some numbers; up to `most` are one batch."""

    __slots__ = ("__weakref__", "most", "numbers")

    def __init__(self, numbers: list[object], most: int = 0) -> None:
        self.numbers = numbers
        self.most = most

    @property
    def rows(self) -> int:
        return len(self.numbers)

    def unfolded(self, word: int) -> Batch:
        return Records([(word, number) for number in self.numbers])

    def with_next(self, other: Folded) -> Folded | None:
        assert isinstance(other, Numbers)
        numbers = [*self.numbers, *other.numbers]
        return Numbers(numbers, self.most) if len(numbers) <= self.most else None

    def symbols(self, mark: Mark) -> None:
        mark.unknown("numbers")


class Entrance:
    """Takes what enters, and what is asked."""

    def __init__(self, code: TimeCode) -> None:
        self.code = code
        self.done: list[object] = []

    def may_enter(self, epoch: int) -> bool:
        return True

    def let_in(self, batch: Batch, word: int) -> None:
        assert isinstance(batch, Records)
        for record in batch.records:
            assert isinstance(record, tuple)
            at, number = record
            assert at == word
            self.done.append(number)

    def wake(self) -> None:
        self.done.append("wake")

    def resume(self) -> None:
        self.done.append("resume")

    def advance(self, old: int, new: int | None) -> None:
        self.done.append((old, new))


def running() -> tuple[Worker, Instance, InputHandle]:
    dataflow = Dataflow("flow")
    dataflow.output("out", dataflow.input("numbers"))
    worker = Worker()
    instance = worker.install(dataflow.freeze())
    return worker, instance, instance.input("numbers")


def test_folded_rows_enter_one_by_one_each_in_an_activation_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, instance, handle = running()
    entrance = Entrance(instance.frozen.codes[0])
    monkeypatch.setattr(handle, "_entrance", entrance)
    first = Numbers([1, 2])
    gone = weakref.ref(first)
    handle.append_all(0, [first, Numbers([3])])
    handle.append_all(2, [Numbers([4])])
    del first
    assert handle.rows_waiting == 4
    handle.seal(2)
    handle.let_rows_in()
    assert entrance.done == ["wake", 1, 2, "resume"]
    assert gone() is None, "what has entered is let go"
    assert handle.held_epoch == 0
    handle.let_rows_in()
    assert entrance.done[4:] == [3, (0, 3)] or entrance.done[4:] == [3, 4, (0, 3)]
    handle.let_rows_in()
    assert handle.held_epoch == 3


def test_folded_rows_of_a_later_epoch_do_not_hold_those_before_back_and_are_in_their_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, instance, handle = running()
    entrance = Entrance(instance.frozen.codes[0])
    monkeypatch.setattr(handle, "_entrance", entrance)
    handle.append_all(4, [Numbers([number]) for number in range(4)])
    handle.seal(4)
    for _ in range(4):
        handle.let_rows_in()
    resumed = ["wake", 0, (0, 4), "resume", 1, "resume", 2, "resume", 3]
    assert entrance.done == [*resumed, (4, 5)], "epochs 0 to 3 are over when the first has entered"


def test_folded_rows_of_all_epochs_come_out_at_theirs() -> None:
    worker, instance, handle = running()
    for epoch in range(3):
        handle.append_all(epoch, [Numbers([epoch]), Records(["plain"]), Numbers([epoch + 10])])
    handle.seal(2)
    worker.run_until_idle()
    epochs = instance.output("out").log.changes(0, 9).column("epoch").to_pylist()
    assert epochs == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert instance.output("out").complete_before == 3


def test_folded_neighbours_of_an_epoch_are_one_as_far_as_they_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    _, instance, handle = running()
    entrance = Entrance(instance.frozen.codes[0])
    monkeypatch.setattr(handle, "_entrance", entrance)
    handle.append_all(0, [Numbers([1], 2)])
    handle.append_all(0, [Numbers([2], 2)])
    handle.append_all(0, [Numbers([3], 2)])
    handle.seal()
    handle.let_rows_in()
    assert entrance.done == ["wake", 1, 2, "resume"]
    assert handle.rows_waiting == 0


def test_folded_rows_are_one_with_those_right_before_them_only(monkeypatch: pytest.MonkeyPatch) -> None:
    _, instance, handle = running()
    entrance = Entrance(instance.frozen.codes[0])
    monkeypatch.setattr(handle, "_entrance", entrance)
    word = handle.epoch_word(0)
    plain = Records([(word, 2)])
    handle.append_all(0, [Numbers([1], 9), plain, Numbers([3], 9), Numbers([4], 9)])
    handle.seal()
    for _ in range(3):
        handle.let_rows_in()
    assert [each for each in entrance.done if isinstance(each, int)] == [1, 2, 3, 4]


def test_folded_rows_that_wait_say_what_they_hold() -> None:
    _, _, handle = running()
    handle.append_all(0, [Numbers([1])])
    mark = Mark([])
    handle.symbols(mark)
    assert mark.not_known == ["numbers"]


OLD = TableIn(Schema.of("a: int"), "rows")
NEW = TableIn(Schema.of("b: int?, a: int?"), "rows")


def test_same_rows_stay_as_they_are() -> None:
    batch = OLD.encode(pa.table({"a": [1, 2]}), 1, 7)
    for codec in (RecordsIn(), TableIn(Schema.of("a: int"), "rows")):
        assert rereading(codec, codec)(7, batch) == (7, batch)


def test_batches_and_folded_rows_have_the_new_columns_and_their_time() -> None:
    batch = OLD.encode(pa.table({"a": [1, 2]}), -1, 7)
    word, read = rereading(NEW, OLD)(7, batch)
    assert word == 7 and words_of(read).tolist() == [[0, 0], [0, 0], [1, 1], [1, 2], [7, 7], [-1, -1]]  # type: ignore[arg-type]
    rows = FOLDED_ROWS_MIN
    for folded in OLD.encode_folded(pa.table({"a": np.arange(rows)}), 1):
        assert isinstance(folded, Folded)
        for at in (None, 5):
            word, read = rereading(NEW, OLD)(at, folded)
            words = words_of(read)  # type: ignore[arg-type]
            assert word == (at or 0) and (words[-2] == word).all() and words.shape[0] == 6
