"""Install a query that workers cannot import: one written in a notebook, a REPL, or a function.

The client sends the plan as bytes, as an argument of the one builder that every worker has: `carry_out`. Each
worker makes the same stages as if it had called the query itself. The workers then compare what they have
built, as for any dataflow.
"""

from __future__ import annotations

from typing import Final

import timely
from timely.errors import MisuseError
from timely.user_code.trust import is_trusted

from .building import Plan
from .decoding import decode_plan
from .encoding import encode_plan
from .nodes import Import, Input, Node
from .stages.timed import input_codec

__all__ = ["BUILDER", "carry_out", "travelling_form"]

BUILDER: Final = "differential.plan.installing:carry_out"


def travelling_form(plan: Plan) -> tuple[str, dict[str, bytes]]:
    """Return the builder that builds this plan in a worker, and its arguments; raise MisuseError if the plan
    cannot travel.
    """
    plan.check_has_roots()
    inputs: list[Node] = [*plan.inputs]
    # Inputs without readers are sent too: a client that feeds one should not have to know that nobody reads
    # it.
    return BUILDER, {"plan": encode_plan(plan, [*inputs, *plan.roots])}


@timely.builder
def carry_out(
    dataflow: timely.Dataflow, plan: object, name: object = "", token: object = "", note: object = ""
) -> None:
    """Build the dataflow of `plan`; `token` shows that it comes from the client that started this worker.

    `name` is the query's name where it was written, `note` a text about what it was made from.
    """
    if note:
        dataflow.note(str(note))
    if name:
        dataflow.rename(str(name))
    if not isinstance(plan, bytes):
        raise MisuseError(f"a plan is installed as bytes, not as {type(plan).__name__}")
    own_plan = Plan.of(dataflow)

    def add_input(node: Input | Import) -> Node:
        if isinstance(node, Import):
            return own_plan.imported(node)
        return own_plan.leaf(node, dataflow.input(node.name, input_codec(node)))

    for root in decode_plan(plan, own_plan, add_input, is_trusted(token)):
        if not isinstance(root, Input):
            own_plan.ask_for(root)
