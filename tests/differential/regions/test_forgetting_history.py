"""Reduces of a loop that is a region are asked before merges begin, and not told at each epoch: what nobody
will ask about is forgotten all the same, however many epochs there are.
"""

from __future__ import annotations

import pytest
from collection_flows import distances

import timely
from differential.operators.reduce_vertex import ReduceVertex
from progress.times.time_words import TimeLayout


def kept(instance: object) -> int:
    """Rows that reduces of the loop keep."""
    rows = 0
    for runner in instance.runners:  # type: ignore[attr-defined]
        if isinstance(runner.vertex, ReduceVertex):
            machine = runner.vertex.machine
            rows += machine.input.rows if machine._reader is None else machine._reader._trace.rows
            rows += machine.output.rows if machine.keeps_answers else 0
    return rows


@pytest.mark.parametrize("bits", [None, 4])
@pytest.mark.parametrize("ends", [False, True])
def test_rows_that_come_and_go_are_forgotten(
    bits: int | None, ends: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if bits is not None:
        monkeypatch.setattr(
            TimeLayout, "default", staticmethod(lambda levels: TimeLayout((bits, *[9] * (levels - 1))))
        )
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(distances)
        (instance,) = cluster._workers._workers[0].instances.values()  # type: ignore[attr-defined]
        assert instance.regions, "the loop is a region"
        flow.input("roots").insert([(0,)])
        flow.input("edges").insert([(n, n + 1) for n in range(40)])
        flow.wait(flow.seal())
        if ends:
            flow.input("roots").close()
        most = 0
        for epoch in range(400):
            flow.input("edges").insert([(0, 20)]) if epoch % 2 == 0 else flow.input("edges").remove([(0, 20)])
            flow.wait(flow.seal())
            most = max(most, kept(instance))
        assert most < 5_000
