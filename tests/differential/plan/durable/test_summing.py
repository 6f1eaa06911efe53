"""The rows of an input in a base are those that an undisturbed input has, as of an epoch: plain rows.

base_*    against a slow twin, over several folds, in parts and in passes
views_*   rows that are on time or late, and rows that were let go
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from differential.columns.schema import Schema
from differential.columns.update_batch import UpdateBatch
from differential.columns.worker_symbols import SYMBOLS
from differential.operators.edge.table_in import TableIn
from differential.plan.durable.summing import summed_rows
from timely.durable.bases.rows_form import BUCKETS, BucketRange

WHOLE = BucketRange(0, BUCKETS)
SCHEMA = Schema.of("a: string, b: int?, c: double")
DETAILS = ["in", [[column.name, str(column.type)] for column in SCHEMA], [], b"", [], False]

Update = tuple[int, tuple[str, int | None, float], int]
"""Epoch, row, diff."""


def some_updates(rng: random.Random, first: int, stop: int, count: int) -> list[Update]:
    """Insertions and removals, some of rows that are not there: those are owed."""
    return [
        (
            rng.randrange(first, stop),
            (f"t{rng.randrange(5)}", rng.choice([None, 0, 1, -7]), rng.choice([0.0, -0.0, 1.5])),
            rng.choice([1, 1, 1, -1, -1, 3]),
        )
        for _ in range(count)
    ]


def batch_of(updates: Sequence[Update]) -> UpdateBatch:
    columns = list(zip(*[row for _, row, _ in updates], strict=True))
    types = (pa.string(), pa.int64(), pa.float64())
    table = pa.table(
        [pa.array(values, type_) for values, type_ in zip(columns, types, strict=True)], SCHEMA.names
    )
    return TableIn(SCHEMA, "in").encode(table, np.array([diff for *_, diff in updates], np.int64), 99)


def rows_of(tables: Sequence[pa.Table]) -> Counter[tuple[object, ...]]:
    """Epoch and row, with the sum of its diffs; no row stands there twice."""
    rows: Counter[tuple[object, ...]] = Counter()
    for table in tables:
        assert table.column_names[-2:] == ["epoch", "diff"]
        epochs = table.column("epoch").to_pylist()
        assert epochs == sorted(epochs)
        for values in table.to_pylist():
            epoch, diff = values.pop("epoch"), values.pop("diff")
            key = (epoch, *values.values())
            assert key not in rows and diff
            rows[key] = diff
    return rows


def twin(updates: Sequence[Update], summed: int) -> Counter[tuple[object, ...]]:
    rows: Counter[tuple[object, ...]] = Counter()
    for epoch, row, diff in updates:
        rows[max(epoch, summed), row[0], row[1], row[2] + 0.0] += diff
    return Counter({row: diff for row, diff in rows.items() if diff})


def ranges(count: int) -> list[BucketRange]:
    return [BucketRange(BUCKETS * at // count, BUCKETS * (at + 1) // count) for at in range(count)]


@pytest.mark.parametrize("number", range(8))
def test_base_after_several_folds_is_what_the_twin_has(number: int) -> None:
    rng = random.Random(number)
    updates: list[Update] = []
    tables: list[pa.Table] = []
    summed = -1
    for _ in range(4):
        form = summed_rows(DETAILS, WHOLE)
        for table in tables:
            form.take_table(table)
        for _ in range(rng.randrange(1, 6)):
            more = some_updates(rng, summed + 1, summed + 8, rng.randrange(1, 30))
            updates += more
            for epoch in {each[0] for each in more}:
                form.take(epoch, [batch_of([each for each in more if each[0] == epoch])])
            plain = some_updates(rng, summed + 1, summed + 8, 3)
            plain = [(epoch, row, 1 if diff > 0 else -1) for epoch, row, diff in plain]
            updates += plain
            for epoch, row, diff in plain:
                form.take_plain(epoch, [row], [diff])
        summed = rng.choice([summed, summed + rng.randrange(1, 8)])
        tables = [each.table for each in form.folded(ranges(rng.randrange(1, 4)), summed, 0)]
        assert rows_of(tables) == twin(updates, summed)


def test_base_in_passes_is_that_of_one_pass() -> None:
    updates = some_updates(random.Random(5), 0, 6, 300)
    tables = []
    for buckets in ranges(5):
        form = summed_rows(DETAILS, buckets)
        for epoch in range(6):
            form.take(epoch, [batch_of([each for each in updates if each[0] == epoch])])
        tables += [each.table for each in form.folded([buckets], 3, 0)]
    assert len(tables) > 2
    assert rows_of(tables) == twin(updates, 3)


def test_base_of_many_rows_is_summed_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("differential.plan.durable.summing.FOLD_LOOSE_ROWS_MAX", 10)
    form = summed_rows(DETAILS, WHOLE)
    updates = [(0, ("t", 1, 1.0), 1)] * 1_000
    for _ in range(10):
        form.take(0, [batch_of(updates[:100])])
        assert form.rows <= 101
    (base,) = form.folded([WHOLE], 4, 0)
    assert base.table.to_pylist() == [{"a": "t", "b": 1, "c": 1.0, "epoch": 4, "diff": 1_000}]


def test_base_has_nothing_of_rows_that_cancel() -> None:
    form = summed_rows(DETAILS, WHOLE)
    form.take_plain(1, [("a", 1, 1.0)], [1])
    form.take_plain(2, [("a", 1, 1.0)], [-1])
    assert len(list(form.folded([WHOLE], 1, 0))) == 1
    assert not list(form.folded([WHOLE], 2, 0))


def test_base_of_a_symbol_brings_its_value_back() -> None:
    form = summed_rows(DETAILS, WHOLE)
    form.take_plain(0, [("a long text", None, 2.0)], [1])
    assert any(words.shape[1] for words in form.words())
    (base,) = form.folded([WHOLE], 0, 0)
    again = summed_rows(DETAILS, WHOLE)
    again.take_table(base.table)
    assert SYMBOLS.lookup(again.taken()[0])[0] == "a long text"
