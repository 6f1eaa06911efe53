"""Few rows of several calls or epochs enter as one batch, in order; what has no times enters one by one."""

from __future__ import annotations

from collections import Counter
from typing import cast

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import differential as dd
import timely
from differential.columns.schema import Schema
from differential.columns.update_batch import PackedBatch, UpdateBatch
from differential.operators.edge.table_in import TableIn
from differential.trace import trace
from progress.times.time_words import TimeCode
from timely import Dataflow, Records
from timely.operators.inputs import codecs, together
from timely.operators.inputs import handle as handles
from timely.operators.inputs.handle import InputHandle
from timely.operators.inputs.together import Together
from timely.wire.batch import Batch


def rows(word: int, count: int) -> UpdateBatch:
    """Rows 0, 1, … at `word`."""
    words = np.array([[*range(count)], [word] * count, [1] * count], np.int64)
    return UpdateBatch(words, (0,))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 5), st.booleans()), max_size=20))
def test_all_rows_enter_in_order_in_few_batches(given: list[tuple[int, int, bool]]) -> None:
    entered: list[tuple[Batch, int]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(together, "ENTERING_BATCH_ROWS", 4)
        enters, word = Together(lambda batch, word: entered.append((batch, word))), 0
        expected: list[tuple[object, int]] = []
        for step, count, has_times in given:
            word += step
            if has_times:
                enters.add(rows(word, count), word)
                expected += [(row, word) for row in range(count)]
            else:
                enters.add(Records(["record"] * count), word)
                expected += [("record", word)] * count
        enters.flush()
    found: list[tuple[object, int]] = []
    for batch, first in entered:
        if isinstance(batch, Records):
            found += [(record, first) for record in batch.records]
            continue
        assert isinstance(batch, UpdateBatch) and batch.symbol_words == (0,)
        times = batch.words[-2].tolist()
        assert times[0] == first, "the envelope is the first of them"
        assert len(set(times)) == 1 or batch.rows <= 4
        found += list(zip(batch.words[0].tolist(), times, strict=True))
    assert found == expected
    for (before, _), (behind, _) in zip(entered, entered[1:], strict=False):
        if isinstance(before, UpdateBatch) and isinstance(behind, UpdateBatch):
            assert before.rows + behind.rows > 4, "they might have gone together"


def test_one_batch_is_the_same_one() -> None:
    entered: list[Batch] = []
    enters, batch = Together(lambda batch, _: entered.append(batch)), rows(7, 2)
    enters.add(batch, 7)
    assert not entered
    enters.flush()
    enters.flush()
    assert len(entered) == 1 and entered[0] is batch


def test_what_failed_to_enter_does_not_enter_later() -> None:
    """A function of the user's may raise as rows go in: the dataflow has ended then."""

    def fails(batch: Batch, word: int) -> None:
        raise ZeroDivisionError

    enters = Together(fails)
    enters.add(rows(1, 1), 1)
    with pytest.raises(ZeroDivisionError):
        enters.flush()
    enters.flush()


class Entrance:
    """Takes what enters, and sees to it that it may."""

    def __init__(self, code: TimeCode) -> None:
        self.code = code
        self.entered: Counter[tuple[int, int]] = Counter()
        self.batches = 0
        self.held: int | None = 0
        self.room = 0

    def may_enter(self, epoch: int) -> bool:
        return epoch < self.room

    def let_in(self, batch: Batch, word: int) -> None:
        assert isinstance(batch, UpdateBatch | PackedBatch) and self.held is not None
        (first,) = self.code.unpack(word)
        assert self.held <= first, "the right to enter is there still"
        self.batches += 1
        for key, time, diff in batch.words.T.tolist():
            (epoch,) = self.code.unpack(time)
            assert first <= epoch < self.room
            self.entered[key, epoch] += diff

    def wake(self) -> None:
        pass

    resume = wake

    def advance(self, old: int, new: int | None) -> None:
        assert old == self.held and (new is None or new > old)
        self.held = new


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("rows"), st.integers(0, 3), st.integers(1, 5)),
        st.tuples(st.just("seal"), st.integers(0, 3), st.just(0)),
        st.tuples(st.just("room"), st.integers(1, 4), st.just(0)),
        st.tuples(st.just("turn"), st.just(0), st.just(0)),
    ),
    max_size=30,
)


@given(STEPS, st.integers(0, 8), st.integers(1, 6), st.integers(1, 4))
def test_whatever_is_sealed_enters_while_it_may(
    steps: list[tuple[str, int, int]], at_once: int, folds: int, epochs: int
) -> None:
    """Rows of several epochs, folded and not, where words are free for some of the epochs only."""
    dataflow = Dataflow("flow")
    dd.input(dataflow, "rows", "k: int").output("out")
    entrance = Entrance(dataflow.freeze().codes[0])
    codec = TableIn(Schema.of("k: int"), "rows")
    handle = InputHandle("rows", entrance, codec)
    expected: Counter[tuple[int, int]] = Counter()
    key = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(together, "ENTERING_BATCH_ROWS", at_once)
        patch.setattr(codecs, "FOLDED_ROWS_MIN", folds)
        patch.setattr(handles, "ENTERING_EPOCHS_MAX", epochs)
        for what, number, count in [*steps, ("room", 99, 0), ("seal", 9, 0)]:
            if what == "rows":
                epoch = handle.epoch + number
                words = np.array([[*range(key, key + count)]], np.int64)
                table = codec.schema.decode(words)
                handle.append_all(epoch, handle.encode(table, 1, handle.epoch_word(epoch)))
                expected += Counter({(key + row, epoch): 1 for row in range(count)})
                key += count
            elif what == "seal":
                handle.seal(handle.epoch + number)
            elif what == "room":
                entrance.room += number
            else:
                handle.let_rows_in()
        while handle.held_epoch != handle.epoch:
            handle.let_rows_in()
    assert entrance.entered == expected and entrance.held == handle.epoch


def test_a_backlog_of_small_epochs_enters_at_once() -> None:
    dataflow = Dataflow("flow")
    dd.input(dataflow, "rows", "k: int").output("out")
    entrance = Entrance(dataflow.freeze().codes[0])
    entrance.room = 1_000
    handle = InputHandle("rows", entrance, TableIn(Schema.of("k: int"), "rows"))
    for number in range(900):
        handle.take_rows(number, [(number,)], 1, "w", number)
        if number % 2:
            handle.seal()
    handle.seal(900)
    handle.let_rows_in()
    assert entrance.batches == 1 and entrance.held == 901
    assert entrance.entered == Counter({(number, number): 1 for number in range(900)})


@pytest.mark.parametrize("rows_of_call", [1, 2_000, 3_000])
def test_what_an_epoch_has_removed_and_inserted_enters_as_one_batch_unless_it_is_much(
    rows_of_call: int,
) -> None:
    dataflow = Dataflow("flow")
    dd.input(dataflow, "rows", "k: int").output("out")
    entrance = Entrance(dataflow.freeze().codes[0])
    entrance.room = 2
    handle = InputHandle("rows", entrance, TableIn(Schema.of("k: int"), "rows"))
    tables = [pa.table({"k": range(start, start + rows_of_call)}) for start in (0, rows_of_call)]
    for table, diff in zip(tables, (-1, 1), strict=True):
        handle.append_all(0, handle.encode(table, diff, handle.epoch_word(0)))
    handle.seal(0)
    handle.let_rows_in()
    assert entrance.batches == (1 if 2 * rows_of_call <= together.ENTERING_BATCH_ROWS else 2)
    wanted = {(key, 0): -1 if key < rows_of_call else 1 for key in range(2 * rows_of_call)}
    assert dict(entrance.entered) == wanted and entrance.held == 1


@pytest.mark.parametrize("sealed_at_once", [True, False])
def test_behind_so_many_epochs_others_wait_for_the_next_activation_however_they_were_sealed(
    sealed_at_once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handles, "ENTERING_EPOCHS_MAX", 3)
    dataflow = Dataflow("flow")
    dd.input(dataflow, "rows", "k: int").output("out")
    entrance = Entrance(dataflow.freeze().codes[0])
    entrance.room = 1_000
    handle = InputHandle("rows", entrance, TableIn(Schema.of("k: int"), "rows"))
    for epoch in range(0, 14, 2):  # those without rows are over as they come
        handle.append_all(epoch, handle.encode(pa.table({"k": [epoch]}), 1, handle.epoch_word(epoch)))
        if not sealed_at_once:
            handle.seal(epoch)
    handle.seal(13)
    steps = []
    for _ in range(4):
        handle.let_rows_in()
        steps.append((handle.held_epoch, entrance.batches, entrance.entered.total()))
    assert steps == [(6, 1, 3), (12, 2, 6), (14, 3, 7), (14, 3, 7)]
    handle.close()
    handle.let_rows_in()
    assert handle.held_epoch is None


def test_what_has_entered_before_a_pause_does_not_wait_for_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The right to enter goes on to the epoch behind it."""
    monkeypatch.setattr(codecs, "FOLDED_ROWS_MIN", 5)
    dataflow = Dataflow("flow")
    dd.input(dataflow, "rows", "k: int").output("out")
    entrance = Entrance(dataflow.freeze().codes[0])
    handle = InputHandle("rows", entrance, TableIn(Schema.of("k: int"), "rows"))
    for epoch, counts in enumerate([(1, 2), (3,), (2, 5, 1), (4,)]):
        for count in counts:
            table = pa.table({"k": range(count)})
            handle.append_all(epoch, handle.encode(table, 1, handle.epoch_word(epoch)))
    handle.seal(3)
    steps = []
    for room in (2, 9, 9):
        entrance.room = room
        handle.let_rows_in()
        steps.append((handle.held_epoch, entrance.entered.total()))
    assert steps == [(2, 6), (2, 13), (4, 18)], "no more words, a folded batch, the end"


def _joined_with_itself(flow: Dataflow) -> None:
    rows = dd.input(flow, "rows", "k: int, v: int")
    rows.join(rows.select(k=dd.col.k, w=dd.col.v), on="k").output("pairs")


@pytest.mark.parametrize("bound", [16, 1 << 40])
def test_a_backlog_of_a_key_that_always_changes_is_worked_on_in_pieces(
    bound: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row of every epoch meets those of all epochs that are not complete yet: pairs that go again."""
    monkeypatch.setattr(handles, "ENTERING_EPOCHS_MAX", bound)
    monkeypatch.setattr(trace, "HEAD_ROWS_MAX", 16)  # what came last is not summed up
    last = 400
    with timely.connect(embedded=True) as cluster:
        flow = cluster.install(_joined_with_itself)
        comes, goes = range(last), range(1, last)
        columns = {
            "epoch": [*comes, *goes],
            "k": [1] * (2 * last - 1),
            "v": [*comes, *range(last - 1)],
            "diff": [1] * last + [-1] * (last - 1),
        }
        flow.input("rows").append(pa.table(columns), epoch="epoch")
        flow.seal(through=last - 1)
        changes = flow.output("pairs").changes()
        found = Counter(zip(*(column.to_pylist() for column in changes.columns), strict=True))
        expected = {(1, n, n, n, 1) for n in comes} | {(1, n - 1, n - 1, n, -1) for n in goes}
        assert found == Counter(expected)
        (stats,) = cast("list[dict[str, list[dict[str, list[dict[str, int]]]]]]", cluster.stats())
    most = max(connector["rows"] for connector in stats["dataflows"][0]["connectors"])
    assert (most < 150 * 2 * last) == (bound == 16), "each row meets what is not summed up yet"
