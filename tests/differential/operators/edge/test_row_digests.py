"""The digests of an output's rows by epoch, however they come."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from strategies_words import CODES

from differential.columns.column_types import Int64s
from differential.columns.schema import Schema
from differential.columns.update_batch import UpdateBatch
from differential.operators.edge.row_digests import RowDigests
from differential.operators.table_io import TableOut
from progress.times.anchor import Rebase

CODE = CODES[1]
ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5), st.integers(-2, 2)), max_size=40)
"""A value, an epoch, and a diff."""


def words_of(rows: list[tuple[int, int, int]]) -> Int64s:
    words = [(value, CODE.pack((epoch,)), diff) for value, epoch, diff in rows]
    return np.array(words, np.int64).reshape(-1, 3).T.copy()


def taken(*parts: Int64s, stop: int = 6) -> list[tuple[int, int]]:
    digests = RowDigests(CODE)
    for words in parts:
        digests.add(words)
    return digests.take(stop)


@given(ROWS, st.integers(0, 40), st.randoms())
def test_the_order_of_rows_and_batches_makes_no_difference(rows, at, random) -> None:  # type: ignore[no-untyped-def]
    whole = taken(words_of(rows))
    assert taken(words_of(rows[:at]), words_of(rows[at:])) == whole
    random.shuffle(rows)
    assert taken(words_of(rows)) == whole == taken(*(words_of([row]) for row in rows))


@given(ROWS)
def test_rows_that_cancel_have_no_digest(rows: list[tuple[int, int, int]]) -> None:
    assert taken(words_of(rows), words_of([(value, epoch, -diff) for value, epoch, diff in rows])) == []


@given(ROWS, st.integers(0, 6))
def test_each_epoch_has_its_own(rows: list[tuple[int, int, int]], stop: int) -> None:
    separate = [
        each for epoch in range(6) for each in taken(words_of([row for row in rows if row[1] == epoch]))
    ]
    assert taken(words_of(rows)) == separate
    digests = RowDigests(CODE)
    digests.add(words_of(rows))
    assert digests.take(stop) + digests.take(6) == separate


def test_many_rows_of_one_epoch_and_of_several() -> None:
    many = [(value, value % 3, 1) for value in range(3_000)]
    small = [words_of(many[start : start + 7]) for start in range(0, 3_000, 7)]
    assert taken(words_of(many)) == taken(*small) and len(taken(*small)) == 3


def test_rows_of_open_epochs_keep_theirs_when_times_count_from_a_later_epoch() -> None:
    log = TableOut(Schema.of("a: int")).new_log()
    log.start(CODE)
    assert log.keep_digests()
    log.add(0, UpdateBatch(words_of([(1, 0, 1), (2, 5, 1)])))
    log.complete(1)
    expected = taken(words_of([(1, 0, 1), (2, 5, 1)]))
    try:
        log.settle()  # before the anchor moves
        CODE.anchor.epoch += 3
        log.rebase(Rebase(3, CODE.layout.shifts[0]))
        assert log.take_digests(6) == expected
    finally:
        CODE.anchor.epoch -= 3


def test_rows_that_are_no_function_of_what_comes_in_have_none() -> None:
    log = TableOut(Schema.of("a: int"), is_repeatable=False).new_log()
    log.start(CODE)
    assert not log.keep_digests()
