"""Rows that wait at an input when a newer version with other columns takes over; with collections:
`tests/timely/worker/durability/restarts/test_changed_columns_at_random.py`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from differential.columns.schema import Schema
from differential.columns.update_batch import words_of
from differential.operators.edge.table_in import TableIn
from timely.operators.inputs.codecs import RecordsIn
from timely.operators.inputs.folded import Folded
from timely.operators.inputs.older_rows import rereading
from timely.thresholds import FOLDED_ROWS_MIN

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
