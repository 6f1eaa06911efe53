"""Scopes of stages: the root, or a loop in another scope.

A scope has the shape of the times of its stages (`TimeShape`) and the depth of its nesting (its level).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from progress.times.timestamp import TimeShape

from ..operators.compiled_loop import LoopMaker
from ..wire.batch import Batch

ITERATIONS_MAX = 1_000_000
"""The number of iterations after which a loop counts as one that does not converge, unless it has its
own limit."""

DescribeIterations: TypeAlias = Callable[[Sequence[tuple[int, Batch]]], str]
"""Returns the text of an error about the last iterations of a loop: (iteration, batch that went on to it),
in order."""


@dataclass(frozen=True, eq=False)
class Scope:
    """The root of a dataflow, or one loop.

    A loop that `stops` ends after `iterations_max` iterations, and drops rows that would go on; for other
    loops one iteration more is an error. `site` is the user's line. `compile` makes a compiled loop of it
    and of all loops in it.
    """

    name: str
    shape: TimeShape
    parent: Scope | None = None
    iterations_max: int = ITERATIONS_MAX
    stops: bool = False
    site: str = ""
    compile: LoopMaker | None = None

    @property
    def level(self) -> int:
        """The depth of nesting: 0 for the root, 1 for a loop in it."""
        return 0 if self.parent is None else self.parent.level + 1

    def path(self) -> str:
        """Return its name with those of the scopes around it, outermost first, as error messages show it."""
        return self.name if self.parent is None else f"{self.parent.path()} / {self.name}"

    def path_inside(self) -> str:
        """Return the same without the name of the dataflow, which may have got another one when installed."""
        outside = "" if self.parent is None else self.parent.path_inside()
        return "" if self.parent is None else f"{outside} / {self.name}" if outside else self.name
