"""What encloses a stage: the root, or a loop in another scope.

A scope says how the times of its stages look (`TimeShape`) and how deep it is nested (its level).
"""

from __future__ import annotations

from dataclasses import dataclass

from progress.times.timestamp import TimeShape

ITERATIONS_MAX = 1_000_000
"""Iterations after which a loop is taken not to converge, unless it states its own limit."""


@dataclass(frozen=True, eq=False)
class Scope:
    """The root of a dataflow, or one loop."""

    name: str
    shape: TimeShape
    parent: Scope | None = None
    iterations_max: int = ITERATIONS_MAX

    @property
    def level(self) -> int:
        """How many loops enclose it: 0 for the root."""
        return 0 if self.parent is None else self.parent.level + 1

    def path(self) -> str:
        """Its name with those around it, outermost first, as error messages show it."""
        return self.name if self.parent is None else f"{self.parent.path()} / {self.name}"
