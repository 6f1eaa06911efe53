"""A copy of what another dataflow exports: rows, times, columns as the importing dataflow has them.

copy_*      the state in pieces, then every insert
refused_*   what is not what was declared
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

import differential as dd
import timely
from differential.columns.schema import Schema
from differential.columns.update_batch import words_of
from differential.errors import SchemaError
from differential.operators.between import imports as imports_module
from differential.operators.between.exports import ExportVertex
from differential.operators.between.imports import CopiedImport, TableImport
from differential.trace.shared import SharedTrace
from progress.times.anchor import Anchor
from progress.times.time_words import TimeCode, TimeLayout
from progress.times.timestamp import TimeShape
from timely.operators.imported import Exported, ImportSource
from timely.running.core import Worker
from timely.running.instance import Instance

COLUMNS = "k: int, v: int"


class Owner:
    """A dataflow that exports its input."""

    def __init__(self) -> None:
        flow = timely.Dataflow("owner")
        dd.input(flow, "rows", COLUMNS).export("rows", by="v")
        self.worker = Worker()
        self.instance: Instance = self.worker.install(flow.freeze())
        self.worker.run_until_idle()
        self.exported: Exported = self.worker.exported("owner", "rows")

    @property
    def vertex(self) -> ExportVertex:
        assert isinstance(self.exported.vertex, ExportVertex)
        return self.exported.vertex

    def feed(self, *rows: tuple[int, int, int]) -> None:
        handle = self.instance.input("rows")
        if rows:
            k, v, diff = zip(*rows, strict=True)
            table = pa.table({"k": k, "v": v, "diff": diff})
            for batch in handle.encode(table, 0, handle.epoch_word(handle.epoch)):
                handle.append(handle.epoch, batch)
        handle.seal()
        self.worker.run_until_idle()


def code(*level_bits: int) -> TimeCode:
    return TimeCode(TimeLayout(level_bits), TimeShape.ROOT)


def all_of(source: ImportSource, code: TimeCode) -> tuple[Counter[tuple[int, ...]], int | None]:
    """(columns, epoch) with their sums, of all that can be taken now; and the upper."""
    found: Counter[tuple[int, ...]] = Counter()
    while True:
        taken = source.take(1 << 40)
        for first, batch in taken.batches:
            *columns, times, diffs = words_of(batch).tolist()
            epochs = [code.unpack(time)[0] for time in times]
            assert first == min(epochs)
            for *row, epoch, diff in zip(*columns, epochs, diffs, strict=True):
                found[(*row, epoch)] += diff
        if taken.is_all:
            return found, taken.upper


@pytest.mark.parametrize("piece_rows", [1, 2, 65_536])
@pytest.mark.parametrize("ours", [code(62), code(20, 40), code(10, 3, 3)])
def test_copy_is_the_state_and_then_every_insert_in_our_words(
    monkeypatch: pytest.MonkeyPatch, piece_rows: int, ours: TimeCode
) -> None:
    monkeypatch.setattr(imports_module, "_PIECE_ROWS", piece_rows)
    owner, news = Owner(), list[int]()
    owner.feed((1, 10, 1), (2, 20, 2))
    owner.feed((1, 10, -1), (3, 10, 1))
    source = TableImport(Schema.of(COLUMNS)).open(owner.exported, "tested")
    assert source.since == 1
    owner.feed((4, 10, 1))
    source.begin(ours, 2, lambda: news.append(1))
    owner.feed((5, 10, 1))
    assert all_of(source, ours) == ({(2, 20, 2): 2, (3, 10, 2): 1, (4, 10, 2): 1, (5, 10, 3): 1}, 4)
    assert not news, "nobody has to be told of what can be taken from the beginning"
    owner.feed((5, 10, -1), (6, 10, 1))
    assert news
    assert all_of(source, ours) == ({(5, 10, 4): -1, (6, 10, 4): 1}, 5)
    news.clear()
    owner.feed()
    assert news and all_of(source, ours) == ({}, 6), "an epoch without rows travels, too"
    owner.instance.input("rows").close()
    owner.worker.run_until_idle()
    assert all_of(source, ours) == ({}, None)
    source.close()
    source.close()


def held(owner: Owner) -> int:
    """The first epoch that somebody still holds; the export's own hold moves when it is asked."""
    since, (trace,) = owner.vertex.since, owner.vertex.traces()
    assert isinstance(trace, SharedTrace)
    epoch = owner.vertex.code.unpack(int(trace.since[0]))[0]
    assert epoch <= since
    return epoch


def test_copy_holds_until_it_has_begun_and_no_longer() -> None:
    owner = Owner()
    owner.feed((1, 10, 1))
    source = TableImport(Schema.of(COLUMNS)).open(owner.exported, "dataflow 7 (tested)")
    readers = {one.name: one.hold for one in owner.vertex.traces()[0].report().readers}  # type: ignore[attr-defined]
    assert readers["dataflow 7 (tested)"] == (0,)
    for _ in range(3):
        owner.feed()
    assert held(owner) == 0
    source.begin(code(62), 2, lambda: None)
    assert held(owner) == 2
    source.take(1 << 40)
    assert held(owner) == owner.vertex.since == 3
    gone = TableImport(Schema.of(COLUMNS)).open(owner.exported, "refused")
    owner.feed()
    gone.close()
    assert held(owner) == owner.vertex.since == 4


def test_copy_of_strings_brings_their_symbols_and_no_array_is_shared() -> None:
    owner = Owner()
    owner.feed((1, 10, 1))
    source = TableImport(Schema.of("v: int, k: int")).open(owner.exported, "tested")
    source.begin(code(62), 0, lambda: None)
    source.take(1 << 40)
    owner.feed((2, 10, 1))
    ((_, batch),) = source.take(1 << 40).batches
    kept = owner.vertex.traces()[0].words()
    words_of(batch)[:] = 0
    assert np.array_equal(kept, owner.vertex.traces()[0].words())
    named = TableImport(Schema.of("a: int, s: string?"))
    assert named.describe() == "table (a: int, s: string?)"


def test_copy_of_epochs_for_which_there_is_no_room_yet_waits_as_if_the_owner_had_it_to_bring() -> None:
    owner = Owner()
    for number in range(6):
        owner.feed((number, 10, 1))
    source = TableImport(Schema.of(COLUMNS)).open(owner.exported, "tested")
    mine = code(3, 5).anchored(Anchor(4))
    source.begin(mine, 5, lambda: None)
    assert not source.take(7).is_all
    for number in range(6, 9):
        owner.feed((number, 10, 1))
    assert source.upper == 9
    first = source.take(7)
    assert (first.upper, first.is_all, first.latest) == (7, True, 6)
    assert [epoch for epoch, _ in first.batches] == [6]
    mine.anchor.epoch = 6
    second = source.take(9)
    assert (second.upper, [epoch for epoch, _ in second.batches]) == (9, [7, 8])
    words = [words_of(batch)[-2].tolist() for _, batch in second.batches]
    assert [[mine.unpack(word)[0] for word in part] for part in words] == [[7], [8]]


def test_refused_other_columns_and_what_is_no_collection() -> None:
    owner = Owner()
    with pytest.raises(
        SchemaError, match=r"'rows' of dataflow 0 \(owner\) has the columns \(v: int, k: int\), "
    ):
        TableImport(Schema.of("k: int, v: int?")).open(owner.exported, "tested")
    other = Exported(3, "by hand", "x", "", timely.Vertex())
    with pytest.raises(timely.MisuseError, match=r"'x' of dataflow 3 \(by hand\) is no collection"):
        TableImport(Schema.of(COLUMNS)).open(other, "tested")
    assert isinstance(TableImport(Schema.of(COLUMNS)).open(owner.exported, "tested"), CopiedImport)
