"""Rows of later epochs, further ahead than time words go: they wait, hold their time, and come at it.

through_*   through the public interface, with epochs of few bits
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import differential as dd
import timely
from differential import col
from differential.columns.column_types import Int64s
from differential.operators.timed import later
from differential.operators.timed.later import LaterVertex, first_epochs


def during(flow: timely.Dataflow) -> None:
    flow.level_bits = (3, 20)
    dd.input(flow, "rows", "n: int, start: int?, stop: int?").during(col.start, col.stop).output("there")


def during_of_many(flow: timely.Dataflow) -> None:
    flow.level_bits = (9, 20)
    dd.input(flow, "rows", "n: int, start: int?, stop: int?").during(col.start, col.stop).output("there")


def delayed(flow: timely.Dataflow) -> None:
    flow.level_bits = (3, 20)
    dd.input(flow, "rows", "n: int").delay(lambda epoch: 5 * epoch + 7).output("later")


@given(
    st.lists(
        st.tuples(st.integers(0, 40), st.none() | st.integers(0, 60), st.none() | st.integers(0, 60)),
        max_size=6,
    ),
    st.sampled_from([1, 2]),
)
def test_through_a_dataflow_rows_come_and_leave_at_their_epochs(
    rows: list[tuple[int, int | None, int | None]], workers: int
) -> None:
    with timely.connect(workers=workers, embedded=True) as cluster:
        flow = cluster.install(during)
        for number, (epoch, start, stop) in sorted(enumerate(rows), key=lambda row: row[1][0]):
            if flow.epoch < epoch:
                flow.seal(through=epoch - 1)
            flow.input("rows").insert([(number, start, stop)])
        flow.seal(through=70)
        found = sorted((e, n, d) for n, e, d in _changes(flow, "there"))
    wanted = []
    for number, (epoch, start, stop) in enumerate(rows):
        comes, leaves = max(epoch, start or 0), 2**62 if stop is None else max(epoch, stop)
        if comes < leaves:
            wanted.append((comes, number, 1))
            wanted += [(leaves, number, -1)] * (leaves <= 70)
    assert found == sorted(wanted)


def test_through_a_dataflow_rows_are_delayed_however_far() -> None:
    with timely.connect(workers=2, embedded=True) as cluster:
        flow = cluster.install(delayed)
        for epoch in range(30):
            flow.input("rows").insert([(epoch,)])
            flow.seal()
        flow.seal(through=5 * 29 + 7)
        assert sorted(_changes(flow, "later")) == [(epoch, 5 * epoch + 7, 1) for epoch in range(30)]


def test_looks_at_each_row_once_as_it_comes_and_not_at_all_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at = 0

    def counting(rests: Int64s, epochs: Int64s) -> list[tuple[int, int]]:
        nonlocal looked_at
        looked_at += len(rests)
        return first_epochs(rests, epochs)

    monkeypatch.setattr(later, "first_epochs", counting)
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(during_of_many)
        for epoch in range(100):
            flow.input("rows").insert([(epoch, None, 1_000 + epoch)])
            flow.wait(flow.seal())
        assert looked_at == 100
        flow.seal(through=2_000)
        assert sorted(e for _, e, d in _changes(flow, "there") if d < 0) == list(range(1_000, 1_100))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2**62 - 2)), max_size=9))
def test_first_epochs_are_the_least_of_each_iteration(rows: list[tuple[int, int]]) -> None:
    words = np.array(rows, np.int64).reshape(-1, 2).T
    wanted: dict[int, int] = {}
    for rest, epoch in rows:
        wanted[rest] = min(wanted.get(rest, epoch), epoch)
    assert first_epochs(words[0], words[1]) == sorted(wanted.items())


@pytest.mark.parametrize("method", ["rebase", "symbols", "on_resume"])
def test_says_itself_what_it_keeps(method: str) -> None:
    assert method in vars(LaterVertex)


def _changes(flow: timely.Flow, name: str) -> list[tuple[int, int, int]]:
    table = flow.output(name).changes()
    return list(zip(*(table.column(c).to_pylist() for c in ("n", "epoch", "diff")), strict=True))
