"""guarded.py: steps go along with what they are over, and plans with them can be sent."""

from __future__ import annotations

import differential as dd
from differential import col
from differential.plan import nodes as n
from differential.plan.building import Plan
from differential.plan.decoding import decode_plan
from differential.plan.encoding import encode_plan
from differential.plan.nodes.guarded import ERRORS
from timely.building.dataflow import Dataflow


def _guarded() -> tuple[Plan, n.Guarded, n.Guarded]:
    flow = Dataflow("queries")
    numbers = dd.input(flow, "numbers", "k: int, v: int")
    good, errors = numbers.attempt(lambda c: c.filter(col.k > 0).select(x=col.k // col.v))
    assert isinstance(good.node, n.Guarded) and isinstance(errors.node, n.Guarded)
    return good.plan, good.node, errors.node


def test_steps_are_rebuilt_over_another_source() -> None:
    _, good, errors = _guarded()
    other = n.Distinct(good.source)
    moved = good.with_children((other,))
    assert moved.steps[0].source is other and moved.steps[1].source is moved.steps[0]
    assert moved.digest != good.digest and good.with_children((good.source,)) is good
    assert str(good.schema) == "x: int" and errors.schema == ERRORS


def test_plans_with_guarded_steps_checks_and_delays_travel() -> None:
    plan, good, errors = _guarded()
    late = plan.add(n.Delay(errors, 2))
    checked = plan.add(n.AssertEmpty(late, "nothing fails"))
    twice = plan.add(n.Select(plan.add(n.Keys(good, ("x",))), (("x", col.x), ("times", col.x))))
    counted = plan.add(n.Weigh(twice, "times"))
    roots: list[n.Node] = [plan.add(n.Output(each, name)) for each, name in ((checked, "a"), (counted, "b"))]
    again = Plan(Dataflow("elsewhere"))
    read = decode_plan(encode_plan(plan, roots), again, lambda node: again.add(node), is_trusted=True)
    assert [root.digest for root in read] == [root.digest for root in roots]
