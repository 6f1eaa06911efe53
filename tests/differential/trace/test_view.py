"""A pinned view shows what there was, whatever becomes of the trace. At random: `test_shared.py`."""

from __future__ import annotations

import numpy as np
from reference.words import as_words, rows_of
from strategies_words import CODES

from differential.kernels.rows.columns import decode_words
from differential.trace.run import BUCKET_ROWS
from differential.trace.shared import SharedTrace


def test_a_view_is_left_alone_by_inserts_into_the_head_and_by_merges() -> None:
    trace = SharedTrace(1, 0, CODES[1].guards)
    reader = trace.read("join", by_position=True)
    trace.add(as_words([(key, 0, 1) for key in range(600)], 3))
    reader.accept(1)
    trace.add(as_words([(1000, 0, 1)], 3))
    reader.accept(2)
    view = reader.pin()
    want = [(key, 0, 1) for key in (*range(600), 1000)]
    trace.add(as_words([(5, 7, 1), (2000, 7, 1)], 3))
    reader.accept(3)
    reader.set_hold(np.array([9]))
    trace.compact()
    assert [row for line in (0, 1) for row in rows_of(decode_words(view.table, line, 3))] == want
    directory = 4 * (600 // BUCKET_ROWS + 1)
    assert view.bytes_besides(set()) == 601 * 3 * 8 + directory, "the run and the head"


def test_a_view_of_nothing_takes_nothing() -> None:
    trace = SharedTrace(1, 0, CODES[1].guards)
    view = trace.read("join", by_position=True).pin()
    assert view.bytes_besides(set()) == 0
    assert decode_words(view.table, 0, 3).shape == (3, 0)
