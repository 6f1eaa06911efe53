"""Installing a query that workers cannot import: written in a notebook, a REPL, or a function.

The client writes the plan and sends it as bytes, as an argument of the one builder that every worker has:
`carry_out`. Workers make the same stages of it as if they had called the query themselves, and compare what
they have built as always.
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
    """The builder that does in a worker what this plan says, and its arguments; raises MisuseError if it
    cannot travel.
    """
    plan.check_asked()
    inputs: list[Node] = [node for node in plan.nodes.values() if isinstance(node, Input)]
    # Inputs that nobody reads can be fed all the same: whoever does so should not have to know.
    return BUILDER, {"plan": encode_plan(plan, [*inputs, *plan.roots])}


@timely.builder
def carry_out(dataflow: timely.Dataflow, plan: object, name: object = "", token: object = "") -> None:
    """Build what `plan` says; `token` shows that it comes from the client that has started this worker.

    `name` is what the query is called where it was written.
    """
    if name:
        dataflow.rename(str(name))
    if not isinstance(plan, bytes):
        raise MisuseError(f"a plan is installed as bytes, not as {type(plan).__name__}")
    made = Plan.of(dataflow)

    def add_input(node: Input | Import) -> Node:
        if isinstance(node, Import):
            return made.imported(node)
        return made.leaf(node, dataflow.input(node.name, input_codec(node)))

    for root in decode_plan(plan, made, add_input, is_trusted(token)):
        if not isinstance(root, Input):
            made.ask_for(root)
