"""stages.py: which stages a join in units has, and by what rows go between them."""

from __future__ import annotations

import pytest

import differential as dd
from timely.building.dataflow import Dataflow


def _stages(scheme: str) -> str:
    flow = Dataflow("tested")
    a, b = dd.input(flow, "a", "k: int, v: int"), dd.input(flow, "b", "w: int, k: int")
    routed = dd.Routed(dd.Balance(scheme, units=8), dd.announcements(flow))  # type: ignore[arg-type]
    return a.join(b, on="k", balance=routed).explain().split("== stages")[1]


@pytest.mark.parametrize(("scheme", "ways"), [("D-JB", 6), ("hash", 4)])
def test_rows_are_exchanged_by_unit_and_announcements_told_to_all(scheme: str, ways: int) -> None:
    said = _stages(scheme)
    assert said.count("[by unit]") == ways, "kept, probing unless in cells, arriving, of either side"
    assert said.count("[broadcast]") == 3, "to both routers and to the units"
    assert said.count("to units   in tested") == 2
    assert "join on k in units   in tested / units" in said


def test_pairs_and_loads_are_of_one_stage() -> None:
    flow = Dataflow("tested")
    a, b = dd.input(flow, "a", "k: int, v: int"), dd.input(flow, "b", "k: int, w: int")
    pairs = a.join(b, on="k", balance=dd.Routed(dd.Balance("JB", units=8), dd.announcements(flow)))
    pairs.select("v").output("pairs")
    dd.loads(pairs).output("loads")
    names = [stage.name for stage in flow.freeze().stages]
    assert names.count("join on k in units") == 1
