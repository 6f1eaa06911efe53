"""Pieces of an output: put together again they are the whole, whoever asks, and however often.

whole_*    all pieces, against `changes` and `snapshot`
share_*    equal rows are in one share
kept_*     what is laid out once, and for how long
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.dataflow import Change, Cluster
from strategies_collections import NUMBERS, examples, histories

import differential as dd
from differential.columns.column_types import Int64s
from differential.columns.schema import Schema
from differential.columns.worker_symbols import SYMBOLS
from differential.operators.edge.table_pieces import TablePieces, share_of
from differential.operators.table_io import TableLog
from differential.trace.accumulated import Accumulated
from timely import ForgottenError
from timely.building.dataflow import Dataflow
from timely.dictionaries import Mark
from timely.limits import READING_SECONDS_MAX
from timely.operators.outputs.pieces import Cut, PieceRequest

COLUMNS = ("k", "v", "epoch", "diff")


def _same(flow: Dataflow) -> None:
    dd.input(flow, "numbers", NUMBERS).output("result")


def all_pieces(log: TableLog, wanted: PieceRequest) -> Iterator[Cut]:
    first, cut = wanted.first, None
    while cut is None or first < cut.rows:
        cut = log.piece(
            PieceRequest(wanted.start, wanted.stop, first, wanted.part, wanted.parts, wanted.columns)
        )
        assert cut.next > first or cut.next == cut.rows
        yield cut
        first = cut.next


def rows_of(tables: list[pa.Table]) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for table in tables for row in table.to_pylist()]


@examples(1)
@given(histories(1), st.integers(0, 3), st.integers(0, 4), st.integers(1, 3), st.integers(1, 3))
def test_whole_pieces_of_changes_and_of_a_collection_are_all_of_it(
    changes: list[Change], start: int, stop: int, rows: int, parts: int
) -> None:
    cluster = Cluster(_same, 1, 0)
    for row, (epoch,), diff in changes:
        cluster.change("numbers", [(row, diff)], epoch)
    cluster.seal(3)
    cluster.run()
    log = cluster.instances[0].output("result").log
    assert isinstance(log, TableLog)
    log._pieces = TablePieces(Schema.of(NUMBERS), bytes_max=rows * 8 * 4)
    for wanted, whole in (
        (PieceRequest(start, stop, 0, 0, 1, COLUMNS), log.changes(start, stop)),
        (PieceRequest(-1, stop, 0, 0, 1, ("k", "v", "diff")), log.snapshot(stop - 1)),
    ):
        cuts = list(all_pieces(log, wanted))
        assert rows_of([cut.table for cut in cuts]) == rows_of([whole])
        assert all(cut.table.num_rows <= rows and cut.rows == whole.num_rows for cut in cuts)
        negative = wanted.is_snapshot and any(diff < 0 for diff in whole.column("diff").to_pylist())
        assert {cut.is_negative for cut in cuts} == {negative}
        again = log.piece(PieceRequest(wanted.start, stop, cuts[-1].rows - 1, 0, 1, wanted.columns))
        assert again.table.equals(cuts[-1].table.slice(max(0, cuts[-1].table.num_rows - 1)))
        shares = [
            rows_of(
                [
                    cut.table
                    for cut in all_pieces(
                        log, PieceRequest(wanted.start, stop, 0, part, parts, wanted.columns)
                    )
                ]
            )
            for part in range(parts)
        ]
        assert sorted(sum(shares, [])) == sorted(rows_of([whole]))
        owners = {row[:2]: part for part, share in enumerate(shares) for row in share}
        assert all(owners[row[:2]] == part for part, share in enumerate(shares) for row in share)


@examples(1)
@given(histories(1), histories(1), st.integers(1, 3))
def test_whole_pieces_are_of_one_epoch_though_others_follow_while_they_are_read(
    changes: list[Change], later: list[Change], rows: int
) -> None:
    """Also when what was laid out is gone, and what was before is forgotten."""
    cluster = Cluster(_same, 1, 0)
    for row, (epoch,), diff in changes:
        cluster.change("numbers", [(row, diff)], epoch)
    cluster.seal(3)
    cluster.run()
    log = cluster.instances[0].output("result").log
    assert isinstance(log, TableLog)
    log._pieces = TablePieces(Schema.of(NUMBERS), bytes_max=rows * 8 * 4)
    wanted = PieceRequest(-1, 4, 0, 0, 1, ("k", "v", "diff"))
    whole, found = log.snapshot(3), []
    for number, cut in enumerate(all_pieces(log, wanted)):
        found.append(cut.table)
        for row, _, diff in later[number::2]:
            cluster.change("numbers", [(row, diff)], 4 + number)
        cluster.seal(4 + number)
        cluster.run()
        log.forget(4)
        log._pieces = TablePieces(Schema.of(NUMBERS), bytes_max=rows * 8 * 4)
    assert rows_of(found) == rows_of([whole])


def test_whole_pieces_have_the_columns_that_are_asked_for_in_that_order() -> None:
    cluster = Cluster(_same, 1, 0)
    cluster.change("numbers", [((1, 2), 3)], 0)
    cluster.seal(0)
    cluster.run()
    log = cluster.instances[0].output("result").log
    cut = log.piece(PieceRequest(0, 1, 0, 0, 1, ("diff", "v", "epoch")))
    assert cut.table.column_names == ["diff", "v", "epoch"]
    assert cut.table.to_pylist() == [{"diff": 3, "v": 2, "epoch": 0}]
    assert log.extent() == (0, 1)
    log.forget(1)
    assert log.extent() == (1, 1)
    for wanted in (PieceRequest(0, 1, 0, 0, 1, ("v",)), PieceRequest(-1, 0, 0, 0, 1, ("v",))):
        with pytest.raises(ForgottenError):
            log.piece(wanted)


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), max_size=40), st.integers(1, 5))
def test_share_of_a_row_is_that_of_its_equals_whatever_their_times_and_diffs(
    rows: list[tuple[int, int]], parts: int
) -> None:
    words = np.array([[*row, number, 1] for number, row in enumerate(rows * 2)], dtype=np.int64)
    words = np.ascontiguousarray(words.reshape(-1, 4).T)
    found = [share_of(words, 2, part, parts) for part in range(parts)]
    owners: dict[tuple[int, int], int] = {}
    for part, share in enumerate(found):
        assert (np.diff(share[-2]) > 0).all(), "in their order"
        for key, value in share[:2].T.tolist():
            assert owners.setdefault((key, value), part) == part
    assert sum(share.shape[1] for share in found) == len(rows) * 2


def test_whole_rows_with_long_texts_make_shorter_pieces() -> None:
    schema = Schema.of("text: string")
    encoded = schema.encode(pa.table({"text": [str(n) * 2_000 for n in range(8)]}), SYMBOLS)
    words = np.concatenate([encoded, np.zeros((1, 8), np.int64), np.ones((1, 8), np.int64)])
    pieces = TablePieces(schema, bytes_max=24 * 100)
    lengths, first = [], 0
    while first < 8:
        cut = pieces.of_collection(PieceRequest(-1, 1, first, 0, 1, ("text",)), lambda _: Accumulated(words))
        lengths.append(cut.table.num_rows)
        first = cut.next
    assert sum(lengths) == 8 and max(lengths) < 8


class Asked:
    """Pieces of one row of two, and the epochs whose rows were laid out for that."""

    def __init__(self) -> None:
        self.now = 0.0
        self.made: list[int] = []
        self.pieces = TablePieces(Schema.of("k: int"), bytes_max=24, clock=lambda: self.now)

    def collect(self, epoch: int) -> Accumulated:
        self.made.append(epoch)
        return Accumulated(np.array([[1, 2], [0, 0], [1, 1]], dtype=np.int64))

    def ask(self, epoch: int, first: int) -> None:
        self.now += 1
        self.pieces.of_collection(PieceRequest(-1, epoch + 1, first, 0, 1, ("k",)), self.collect)


def test_kept_rows_say_which_symbols_are_in_use_as_long_as_they_are_laid_out() -> None:
    class Marking:
        def add(self, words: Int64s) -> None:
            seen.extend(words.ravel().tolist())

        def has_between(self, low: int, high: int) -> bool:
            return True

    seen: list[int] = []
    asked = Asked()
    asked.ask(4, 0)
    asked.pieces.symbols(Mark([Marking()]))
    assert seen == [1, 2], "and neither times nor diffs"
    asked.now += READING_SECONDS_MAX + 1
    asked.pieces.tidy()
    asked.pieces.symbols(Mark([Marking()]))
    assert seen == [1, 2]


def test_kept_a_collection_is_laid_out_once_until_nobody_asks_any_more() -> None:
    asked = Asked()
    for first in (0, 1, 0):
        asked.ask(4, first)
        asked.now += READING_SECONDS_MAX
        asked.pieces.tidy()
    assert asked.made == [4]
    asked.ask(5, 0)
    asked.now += READING_SECONDS_MAX + 1
    asked.pieces.tidy()
    asked.ask(5, 0)
    assert asked.made == [4, 5, 5]


def test_kept_are_two_epochs_that_are_read_side_by_side() -> None:
    asked = Asked()
    for epoch in (4, 5):
        asked.ask(epoch, 1 << 61)  # how much there is
    for first in (0, 1):
        for epoch in (4, 5):
            asked.ask(epoch, first)
    assert asked.made == [4, 5]
    asked.ask(6, 0)
    assert list(asked.pieces._laid_out) == [6], "what was read to its end makes room"
    for epoch in (7, 6, 8):
        asked.ask(epoch, 0)
    assert sorted(asked.pieces._laid_out) == [6, 8], "and then what was not asked for longest"
    assert asked.made == [4, 5, 6, 7, 8]
