"""Limits so low that everything is much: what is kept in another way where it is very much always is.

Pointstamps by location, requests and rights in order, waiting rows and pending times by time, what waits and
what is kept for readers packed, in blocks of three rows; whatever comes to a join waits for its epoch.
"""

from __future__ import annotations

import functools

import pytest

from differential.columns import routes, update_batch
from differential.compiled_loops import loop as loop_module
from differential.compiled_loops import traces
from differential.operators import join_vertex, vertices
from differential.operators import reduce as reduce_module
from differential.operators.edge import collected, folding, kept_changes
from differential.operators.waiting import pile, waiting_rows
from progress.times import open_times
from progress.tracking.tracker import Tracker
from timely.operators.inputs import codecs
from timely.running import instance
from timely.running.stages import rights, vertex_runner

__all__ = ["everything_is_much"]


def everything_is_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set all limits between few and many as low as they go, until the test ends."""
    monkeypatch.setattr(instance, "Tracker", functools.partial(Tracker, few_max=2))
    monkeypatch.setattr(open_times, "BLOCK_MAX", 8)
    for module, name in [
        (vertex_runner, "FEW_WORDS_MAX"),
        (rights, "FEW_WORDS_MAX"),
        (waiting_rows, "_PARTS_MAX"),
        (waiting_rows, "_LOOKS_MAX"),
        (waiting_rows, "_NEAR_MAX"),
        (vertices, "FEW_WORDS_MAX"),
        (waiting_rows, "PACKED_ROWS_MIN"),
        (collected, "BESIDE_ROWS_MAX"),
        (join_vertex, "GATHERED_ROWS_MIN"),
        (pile, "PILE_LOOSE_ROWS_MAX"),
        (pile, "PILE_SUMMED_ROWS_MIN"),
        (codecs, "FOLDED_ROWS_MIN"),
        (update_batch, "SENT_PACKED_ROWS_MIN"),
        (routes, "SENT_PACKED_ROWS_MIN"),
        (kept_changes, "PACKED_ROWS_MIN"),
    ]:
        assert getattr(module, name) > 0, name
        monkeypatch.setattr(module, name, 0)
    for module in (folding, kept_changes, update_batch):
        monkeypatch.setattr(module, "BLOCK_ROWS", 3)
    monkeypatch.setattr(update_batch, "_PASSING_ROWS", 2)
    monkeypatch.setattr(loop_module, "LONG_EPOCHS", 1)
    monkeypatch.setattr(traces, "SPAN_SUMMED_ROWS_MIN", 1)
    monkeypatch.setattr(reduce_module, "TIMES_AT_ONCE", 1)
    monkeypatch.setattr(pile, "PACKED_ROWS", 3)
    monkeypatch.setattr(folding, "PIECE_WORDS", 16)
