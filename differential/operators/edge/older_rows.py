"""The rows that an output had before a restart, or in an older version of its dataflow, out of a store."""

from __future__ import annotations

import numpy as np

from differential.columns.column_types import Int64s
from differential.columns.schema import Schema
from timely.operators.outputs.output_log import OlderChanges
from timely.wire.arrow import int64s_of

from ...columns.update_batch import parts_of
from ...columns.worker_symbols import SYMBOLS
from ...kernels.rows.sort import sort_parts
from .table_pieces import DIFF, EPOCH, share_of

__all__ = ["older_rows"]


def older_rows(older: OlderChanges, schema: Schema, start: int, stop: int) -> Int64s:
    """Return the changes of epochs `start` ≤ epoch < `stop` of this worker's share, sorted and consolidated,
    with epochs in place of time words.
    """
    parts: list[Int64s] = []
    for table in older.tables():
        rows: Int64s = np.empty((schema.width + 2, table.num_rows), dtype=np.int64)
        schema.encode_into(rows, table.select(schema.names), SYMBOLS, "a base")
        rows[-2], rows[-1] = (int64s_of(table.column(name)) for name in (EPOCH, DIFF))
        parts.append(share_of(rows, schema.width, *older.share))
    for epoch, batch in older.records():
        for words in parts_of(batch):
            dated = words.copy()
            dated[-2] = epoch
            parts.append(dated)
    chosen = [(part, (part[-2] >= start) & (part[-2] < stop)) for part in parts]
    parts = [np.ascontiguousarray(part[:, which]) for part, which in chosen if which.any()]
    return sort_parts(parts) if parts else np.empty((schema.width + 2, 0), np.int64)
