"""installing.py: what workers do with a plan; real ones: `processes/queries/test_installing_plans.py`."""

from __future__ import annotations

from collections.abc import Callable

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
    here, there = Dataflow("named"), Dataflow(BUILDER)
    query(here)
    spec, arguments = travelling_form(Plan.of(here))
    assert load_builder(spec) is carry_out and spec == BUILDER
    carry_out(there, **arguments, name="named")
    assert there.name == "named" and list(there.inputs) == ["edges", "unread"]
    assert there.freeze().fingerprint == here.freeze().fingerprint
    assert there.root.path() == "named", "loops say it in errors"
    with pytest.raises(timely.GraphError, match="has stages already"):
        there.rename("late")


def test_a_query_of_which_nothing_can_be_read_is_refused() -> None:
    def returns(flow: timely.Dataflow) -> dd.Collection:
        return dd.input(flow, "a", "x: int").filter(col.x > 1)

    said = (
        r"nothing of the dataflow 'q' could be read: .*Write \.output\('name'\) behind .*test_installing\.py"
    )
    for carried in (Dataflow.freeze, lambda flow: travelling_form(Plan.of(flow))):
        flow = Dataflow("q")
        returns(flow)
        with pytest.raises(timely.GraphError, match=said):
            carried(flow)
    asked: list[Callable[[dd.Collection], object]] = [
        lambda rows: rows.export("e"),
        lambda rows: rows.inspect(print),
        lambda rows: rows.assert_empty(""),
    ]
    for asks in asked:
        flow = Dataflow("q")
        asks(returns(flow))
        flow.freeze()


def test_a_query_of_inputs_alone_is_refused() -> None:
    """Rows could be fed for ever, and nothing would come of them."""
    flow = Dataflow("fed")
    dd.input(flow, "a", "x: int")
    with pytest.raises(
        timely.GraphError, match=r"Write \.output\('name'\) behind input a .*test_installing\.py"
    ):
        flow.freeze()


@pytest.mark.parametrize("plan", [None, "text", 7])
def test_a_plan_is_bytes(plan: object) -> None:
    with pytest.raises(timely.MisuseError, match="as bytes, not as"):
        carry_out(Dataflow("there"), plan)
