"""Rows of later epochs, further ahead than time words go: they wait, hold their time, and come at it.

through_*   through the public interface, with epochs of few bits
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import differential as dd
import timely
from differential import col
from differential.operators.timed.later import LaterVertex


def during(flow: timely.Dataflow) -> None:
    flow.level_bits = (3, 20)
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


@pytest.mark.parametrize("method", ["rebase", "symbols", "on_resume"])
def test_says_itself_what_it_keeps(method: str) -> None:
    assert method in vars(LaterVertex)


def _changes(flow: timely.Flow, name: str) -> list[tuple[int, int, int]]:
    table = flow.output(name).changes()
    return list(zip(*(table.column(c).to_pylist() for c in ("n", "epoch", "diff")), strict=True))
