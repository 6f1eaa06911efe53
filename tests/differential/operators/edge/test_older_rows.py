"""Rows of an output out of a store: those of tables are shared among workers, those of logs are not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from differential.columns.rows import decode_rows, encode_rows
from differential.columns.schema import Schema
from differential.columns.update_batch import UpdateBatch
from differential.columns.worker_symbols import SYMBOLS
from differential.operators.edge.older_rows import older_rows
from timely.wire.batch import Batch

Change: TypeAlias = tuple[int, str, int, int]

SCHEMA = Schema.of("a: int, text: string")
CHANGES = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from(["x", "y"]), st.integers(-1, 5), st.sampled_from([-1, 1]))
)


class Older:
    """Changes in a table and in batches."""

    kept_from = before = 0

    def __init__(self, stored: Sequence[Change], logged: Sequence[Change], share: tuple[int, int]) -> None:
        self._stored, self._logged = stored, logged
        self.share = share

    def tables(self) -> Iterator[pa.Table]:
        columns = [*zip(*self._stored, strict=True)] or [[], [], [], []]
        arrays = [
            pa.array(columns[0], pa.int64()),
            pa.array(columns[1], pa.string()),
            *(pa.array(column, pa.int64()) for column in columns[2:]),
        ]
        yield pa.table(dict(zip(["a", "text", "epoch", "diff"], arrays, strict=True)))

    def records(self) -> Iterator[tuple[int, Batch]]:
        for a, text, epoch, diff in self._logged:
            words = np.zeros((SCHEMA.width + 2, 1), np.int64)
            words[: SCHEMA.width] = encode_rows(SCHEMA, [(a, text)], SYMBOLS)
            words[-2], words[-1] = 77, diff  # its time says nothing
            yield epoch, UpdateBatch(words, SCHEMA.symbol_words)


@given(CHANGES, CHANGES, st.integers(-1, 5), st.integers(0, 6), st.integers(1, 3))
def test_each_change_of_these_epochs_is_on_one_worker(
    stored: list[Change],
    logged: list[Change],
    start: int,
    stop: int,
    workers: int,
) -> None:
    total: Counter[tuple[object, ...]] = Counter()
    for worker in range(workers):
        older = Older(stored, logged if worker == 0 else [], (worker, workers))
        words = older_rows(older, SCHEMA, start, stop)
        for row, epoch, diff in zip(
            decode_rows(SCHEMA, words, SYMBOLS), words[-2].tolist(), words[-1].tolist(), strict=True
        ):
            assert diff
            total[*row, epoch] += diff
    wanted: Counter[tuple[object, ...]] = Counter()
    for a, text, epoch, diff in [*stored, *logged]:
        if start <= epoch < stop:
            wanted[a, text, epoch] += diff
    assert +total + Counter() == +wanted and {k: n for k, n in total.items() if n} == {
        k: n for k, n in wanted.items() if n
    }
