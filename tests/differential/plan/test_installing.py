"""installing.py: what workers do with a plan; real ones: `processes/queries/test_installing_plans.py`."""

from __future__ import annotations

import pytest

import differential as dd
import timely
from differential import col
from differential.plan.building import Plan
from differential.plan.installing import BUILDER, carry_out, travelling_form
from timely.building.builders import load_builder
from timely.building.dataflow import Dataflow


def query(flow: timely.Dataflow) -> None:
    edges = dd.input(flow, "edges", "src: int, dst: int")
    dd.input(flow, "unread", "a: int")
    edges.filter(col.src > 1).distinct().output("out")


def test_workers_make_the_same_stages_as_the_query_itself() -> None:
    here, there = Dataflow("query"), Dataflow("query")
    query(here)
    spec, arguments = travelling_form(Plan.of(here))
    assert load_builder(spec) is carry_out and spec == BUILDER
    carry_out(there, **arguments, name="named")
    assert there.name == "named" and list(there.inputs) == ["edges", "unread"]
    assert there.freeze().fingerprint == here.freeze().fingerprint


@pytest.mark.parametrize("plan", [None, "text", 7])
def test_a_plan_is_bytes(plan: object) -> None:
    with pytest.raises(timely.MisuseError, match="as bytes, not as"):
        carry_out(Dataflow("there"), plan)
