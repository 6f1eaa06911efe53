"""Loops: what comes of doing something again and again, until nothing changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Self

from timely.building.loop import Loop
from timely.building.scope import ITERATIONS_MAX
from timely.errors import GraphError

from ..plan.nodes import Leave, LetRec, Variable
from .handle import Handle

__all__ = ["LoopOperators"]


class LoopOperators(Handle):
    """Fixed points."""

    def iterate(
        self,
        body: Callable[[Self], Self],
        *,
        name: str = "iterate",
        iterations_max: int = ITERATIONS_MAX,
    ) -> Self:
        """The fixed point of `body`, starting from this collection.

        `body` is called once, with a collection that stands for any iteration. Collections of the scope
        around the loop may be used in it as they are. The loop ends when nothing changes any more; if that
        has not happened after `iterations_max` iterations, the dataflow stops with an error that names the
        loop.
        """
        if iterations_max < 1:
            raise GraphError(
                f"the loop {name!r} needs a limit of at least one iteration, not {iterations_max}"
            )
        around = self.plan.open_loops()
        place = max(self.place, around[-1].place if around else (), key=len)
        initial = self.within(place)
        with self.plan.opened(name, place) as loop:
            variable = Variable(self.schema, loop.depth, 0)
            result = body(replace(self, node=self.plan.add(variable), place=loop.place))
        if not isinstance(result, Handle):
            raise GraphError(
                f"the body of {name!r} must return a collection; it returned {type(result).__name__}"
            )
        result = result.within(loop.place).conformed(self.schema, f"the body of {name!r}")
        written = LetRec(
            name, loop.depth, (initial.node,), (result.node,), iterations_max, tuple(loop.effects)
        )
        closed = self.plan.closed(written)
        # Out of the loops around it that it does not depend on: there it is computed once.
        needed = max(closed.free, default=0)
        by_hand = tuple(each for each in place if isinstance(each, Loop))
        inside = next((each.place for each in reversed(around) if each.depth == needed), by_hand)
        return replace(self, node=self.plan.add(Leave(closed, 0)), place=inside)
