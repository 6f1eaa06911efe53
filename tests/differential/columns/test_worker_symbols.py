"""One process has one table of symbols."""

from __future__ import annotations

from differential.columns import update_batch
from differential.columns.worker_symbols import SYMBOLS
from differential.operators import table_io


def test_what_encodes_and_what_receives_share_one_table() -> None:
    assert table_io.SYMBOLS is SYMBOLS
    assert update_batch.SYMBOLS is SYMBOLS
