"""`iterate`: a loop to the fixed point.

Inside the loop times have one more counter, i. The variable x is the initial collection at i = 0, and the
body's result of iteration i at i + 1:

    x = s + feedback(body(x) - s)        s: the initial collection, entered at i = 0

so that x at (t, 0) is s, and x at (t, i + 1) is body(x) at (t, i). Once an iteration changes nothing nothing
circulates, and the sum over all iterations, which is what leaves, is the fixed point.

Loops nest: a loop that begins in the body of another is inside it, whatever collection it begins with.

What circulates must be consolidated: updates that cancel would go round for ever. The result of an operator
with state is so already, and costs no further stage.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import replace
from typing import Final

from differential.linear.chain import LinearChain
from timely.building.loop import Loop
from timely.building.stream import Feed
from timely.errors import GraphError

from .collection import Collection, Term
from .linear.transform import LinearTransform

__all__ = ["iterate"]

_around: Final[ContextVar[tuple[Loop, ...]]] = ContextVar("loops whose bodies are being built", default=())


def iterate(
    initial: Collection, body: Callable[[Collection], Collection], name: str, iterations_max: int
) -> Collection:
    """The fixed point of `body` from `initial`; see `Collection.iterate`."""
    around = _around.get()
    if around and around[-1].dataflow is initial.dataflow:
        initial = initial.within(around)
    loop = Loop.inside(initial.dataflow, initial.scope, name, iterations_max=iterations_max)
    entered = initial.entered(loop)
    feedback = loop.feedback()
    coming_back = Term(feedback.stream, LinearChain.over(initial.schema))
    variable = replace(entered, terms=(*entered.terms, coming_back), is_consolidated=False)
    token = _around.set(variable.loops)
    try:
        result = body(variable)
    finally:
        _around.reset(token)
    if not isinstance(result, Collection):
        raise GraphError(
            f"the body of {name!r} must return a collection; it returned {type(result).__name__}"
        )
    result = result.within(variable.loops).conformed(initial.schema, f"the body of {name!r}")
    difference = result.concat(entered.negate())
    if not result.is_consolidated:
        difference = difference.consolidate()
    for term in difference.terms:
        transform = LinearTransform.of(term.chain)
        feedback.connect(term.stream, Feed(term.stream, 0, None, transform, "; ".join(term.chain.describe())))
    loop.check_connected()
    return result.left()
