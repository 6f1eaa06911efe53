"""All rows of an output at one moment: batches add up to it, whatever the output does meanwhile."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.words import Row, as_words, consolidated, rows_of
from strategies_words import CODES, rows
from words_seen import Seen

from differential.columns.schema import Schema
from differential.columns.update_batch import UpdateBatch, parts_of
from differential.operators.edge import answer_rows
from differential.operators.edge.answer_rows import AnswerRows, negated
from differential.operators.edge.kept_changes import KeptChanges
from differential.operators.table_io import TableLog
from differential.trace.run import Run
from timely.dictionaries import Mark
from timely.wire.batch import Batch

SCHEMA = Schema.of("a: int, b: int")


def total(batches: list[Batch]) -> Counter[tuple[int, ...]]:
    summed: Counter[tuple[int, ...]] = Counter()
    for batch in batches:
        for words in parts_of(batch):
            for *row, _, diff in words.T.tolist():
                summed[tuple(row)] += diff
    return Counter({row: count for row, count in summed.items() if count})


def plain(*parts: list[Row], sign: int = 1) -> Counter[tuple[int, ...]]:
    summed: Counter[tuple[int, ...]] = Counter()
    for part in parts:
        for row in part:
            summed[row[:2]] += sign * row[3]
    return summed


@pytest.mark.parametrize("packs", [1, 1 << 20])
@given(
    st.lists(rows(2, wide=True).map(consolidated).filter(len), max_size=3),
    st.lists(rows(2, wide=True), max_size=3),
    st.lists(rows(2, wide=True).filter(len), max_size=2),
)
def test_batches_add_up_to_all_rows_less_later_changes(
    packs: int, runs: list[list[Row]], arrays: list[list[Row]], later: list[list[Row]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(answer_rows, "_WORDS", 12)
        patch.setattr(answer_rows, "PACKED_ROWS_MIN", packs)
        answer = AnswerRows(
            SCHEMA,
            [Run.from_words(as_words(each, 4), CODES[2].guards, packed=packs == 1) for each in runs],
            [as_words(each, 4) for each in arrays],
            [KeptChanges(as_words(each, 4)) for each in later],
        )
        batches = list(answer.batches())
        assert all(batch.rows <= 3 for batch in batches)
        expected = plain(*runs, *arrays)
        expected.update(plain(*later, sign=-1))
        assert total(batches) == Counter({row: count for row, count in expected.items() if count})
        seen = Seen()
        answer.symbols(Mark([seen]))
        assert seen.words == {word for part in (*runs, *arrays, *later) for row in part for word in row[:2]}


def test_batches_with_texts_are_small() -> None:
    schema = Schema.of("a: string")
    words = np.zeros((3, 2_000), np.int64)
    batches = list(AnswerRows(schema, [], [words], []).batches())
    assert [batch.rows for batch in batches[:-1]] == [256] * 7 and sum(
        batch.rows for batch in batches
    ) == 2_000


@given(rows(2, wide=True))
def test_negated_rows_are_others(some: list[Row]) -> None:
    words = as_words(some, 4)
    assert rows_of(negated(words)) == [(*row[:3], -row[3]) for row in some]
    assert rows_of(words) == some


def log_with(epochs: int) -> TableLog:
    """A log in which epoch n adds the row (n, n), and removes (n - 2, n - 2)."""
    log = TableLog(SCHEMA)
    log.start(CODES[1])
    for epoch in range(epochs):
        add(log, epoch)
    return log


def add(log: TableLog, epoch: int) -> None:
    word = CODES[1].pack((epoch,))
    changes = [[epoch, epoch, word, 1]] + [[epoch - 2, epoch - 2, word, -1]] * (epoch >= 2)
    log.add(epoch, UpdateBatch(np.array(changes, np.int64).T.copy()))
    log.complete(epoch + 1)


@pytest.mark.parametrize("epoch", range(1, 9))
def test_an_answer_of_a_log_is_its_snapshot(epoch: int) -> None:
    log = log_with(9)
    log.forget(2)
    snapshot: pa.Table = log.snapshot(epoch)
    assert total(list(log.answer(epoch))) == {
        (row["a"], row["b"]): row["diff"] for row in snapshot.to_pylist()
    }


def test_an_answer_of_a_log_stays_while_the_log_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_rows, "_WORDS", 4)
    log = log_with(6)
    answer = log.answer(4)
    batches = [next(answer)]
    for epoch in range(6, 40):
        add(log, epoch)
        log.forget(epoch)
    seen = Seen()
    log.symbols(Mark([seen]))
    assert {3, 4, 5} <= seen.words  # also words that only the answer still has
    batches += answer
    assert total(batches) == {(3, 3): 1, (4, 4): 1}
    after = Seen()
    log.symbols(Mark([after]))
    assert 4 not in after.words
