"""Reduces of a compiled loop are asked before merges begin, and not told at each epoch: what nobody
will ask about is forgotten all the same, however many epochs there are.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from collection_flows import distances

import differential as dd
import timely
from differential import col
from differential.operators.reduce import ReduceMachine
from differential.operators.vertices import MachineVertex
from progress.compiled.arrays import Int64s
from progress.times.time_words import TimeLayout


def kept(instance: object) -> int:
    """Rows that reduces of the loop keep."""
    rows = 0
    for runner in instance.runners:  # type: ignore[attr-defined]
        machine = runner.vertex.machine if isinstance(runner.vertex, MachineVertex) else None
        if isinstance(machine, ReduceMachine):
            rows += machine.input.rows if machine._reader is None else machine._reader._trace.rows
            rows += machine.output.rows if machine.keeps_answers else 0
    return rows


def noted_since(instance: object, monkeypatch: pytest.MonkeyPatch) -> dict[int, list[float | None]]:
    """What reduces of the loop are told from now on of the first time that is asked about, in epochs, also a
    part of one; None: of none.
    """
    told: dict[int, list[float | None]] = {}
    (region,) = instance.loops  # type: ignore[attr-defined]
    unit = 1 << instance.frozen.layout.shifts[0]  # type: ignore[attr-defined]
    for kind in {type(reduce.machine) for reduce in region.loop._reduces}:

        def noted(machine: object, since: Int64s, set_since: Callable[..., None] = kind.set_since) -> None:
            first = instance.anchor.epoch + int(since[0]) / unit if len(since) else None  # type: ignore[attr-defined]
            told.setdefault(id(machine), []).append(first)
            set_since(machine, since)

        monkeypatch.setattr(kind, "set_since", noted)
    return told


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
        assert instance.loops, "the loop is a region"
        flow.input("roots").insert([(0,)])
        flow.input("edges").insert([(n, n + 1) for n in range(40)])
        flow.wait(flow.seal())
        told = noted_since(instance, monkeypatch)
        if ends:
            flow.input("roots").close()
        most = 0
        for epoch in range(400):
            flow.input("edges").insert([(0, 20)]) if epoch % 2 == 0 else flow.input("edges").remove([(0, 20)])
            flow.wait(flow.seal())
            most = max(most, kept(instance))
            rows = flow.output("distances").snapshot().to_pylist()
            found = {row["node"]: row["distance"] for row in rows}
            near = epoch % 2 == 0
            assert found == {n: n - 19 if near and n >= 20 else n for n in range(41)}, epoch
            every = [first for firsts in told.values() for first in firsts if first is not None]
            assert all(first <= epoch + 2 and first.is_integer() for first in every), "not of what is open"
        assert most < 5_000


def two(flow: timely.Dataflow) -> None:
    """A loop with two variables, neither of which knows of the other."""
    ends = dd.input(flow, "ends", "k: int, v: int")
    goes_on = dd.input(flow, "goes on", "k: int, v: int")

    def least(x: dd.Collection, start: dd.Collection) -> dd.Collection:
        return x.select(k=col.v, v=col.k).concat(start).group_by("k").agg(v=dd.min("v"))

    found = dd.iterate(
        {"one": ends, "other": goes_on},
        lambda one, other: {"one": least(one, ends), "other": least(other, goes_on)},
    )
    found["one"].output("one")
    found["other"].output("other")


def test_a_reduce_of_which_nothing_is_asked_any_more_is_not_asked_again_when_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(two)
        (instance,) = cluster._workers._workers[0].instances.values()  # type: ignore[attr-defined]
        assert instance.loops
        flow.input("ends").insert([(n, n) for n in range(50)])
        flow.input("goes on").insert([(n, n) for n in range(50)])
        flow.wait(flow.seal())
        flow.input("ends").close()
        both, told = kept(instance), noted_since(instance, monkeypatch)
        for epoch in range(100):
            change = flow.input("goes on").insert if epoch % 2 == 0 else flow.input("goes on").remove
            change([(key, 3) for key in range(10, 40)])
            flow.wait(flow.seal())
            found = {row["k"]: row["v"] for row in flow.output("other").snapshot().to_pylist()}
            near = epoch % 2 == 0
            assert found == {n: 3 if near and 10 <= n < 40 else n for n in range(50)}
            assert flow.output("one").snapshot().num_rows == 50
        assert 0 < kept(instance) < 5_000, both
        ended = [firsts for firsts in told.values() if None in firsts]
        assert max(map(len, told.values())) > 3, "the other one is told again and again"
        assert ended and all(set(firsts[firsts.index(None) :]) == {None} for firsts in ended)
