"""What encloses a stage: the root, or a loop in another scope.

A scope says how the times of its stages look (`TimeShape`) and how deep it is nested (its level).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from progress.times.timestamp import TimeShape

from ..operators.compiled_loop import LoopMaker
from ..wire.batch import Batch

ITERATIONS_MAX = 1_000_000
"""Iterations after which a loop is taken not to converge, unless it states its own limit."""

DescribeRounds: TypeAlias = Callable[[Sequence[tuple[int, Batch]]], str]
"""What an error says of the last rounds of a loop: (iteration, what went on to it), in order."""


@dataclass(frozen=True, eq=False)
class Scope:
    """The root of a dataflow, or one loop.

    A loop that `stops` does so after `iterations_max` iterations, and what would go on is dropped; to others
    one more is an error. `site` is the user's line. `compile` makes a compiled loop of it and all that are in
    it.
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
        """How many loops enclose it: 0 for the root."""
        return 0 if self.parent is None else self.parent.level + 1

    def path(self) -> str:
        """Its name with those around it, outermost first, as error messages show it."""
        return self.name if self.parent is None else f"{self.parent.path()} / {self.name}"

    def path_inside(self) -> str:
        """The same without the dataflow's own name, which may be another where it was installed."""
        outside = "" if self.parent is None else self.parent.path_inside()
        return "" if self.parent is None else f"{outside} / {self.name}" if outside else self.name
