"""bench/skew/processes.py: what is announced, and what is made of the times; no cluster is timed here."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import differential as dd
from bench.skew import processes
from timely.wire.routing import BUCKETS


@pytest.mark.parametrize(
    ("pacing", "epochs"),
    [("no move", 0), ("fluid", BUCKETS), ("batched", 32), ("all at once", 1), ("stand still", 1)],
)
def test_every_bucket_moves_once_to_another_unit(pacing: str, epochs: int) -> None:
    steps = processes._steps(pacing)
    assert len(steps) == epochs
    balance = dd.Balance("D-JB", units=16)
    table = before = balance.placement.first
    for step in steps:
        table = balance.placement.changed(table, step.announcements())
    moved = [one != other for one, other in zip(before.buckets[0], table.buckets[0], strict=True)]
    assert sum(moved) == (BUCKETS if epochs else 0)
    assert table.buckets[1] == before.buckets[1]


def test_a_table_has_medians_of_rounds_and_of_epochs() -> None:
    runs = {"a": iter([[0.5, 0.5], [1.0, 1.0], [4.0, 4.0]]), "b": iter([[1.0, 3.0]] * 3)}

    def run(name: str) -> Sequence[float]:
        return next(runs[name])

    lines = list(processes._table("title", run, ("a", "b"), rounds=3))
    assert lines[0] == "## title"
    assert lines[4] == "| a | 2.00 | 1.00 | 1000.00 | 4000.00 | 4000.0 |"
    assert lines[5] == "| b | 4.00 | 2.00 | 2000.00 | 3000.00 | 3000.0 |"
