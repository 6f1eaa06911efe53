"""What moves rows in time, and what is checked at every time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..functions import Function
from .node import Unary

__all__ = ["AssertEmpty", "Delay"]


@dataclass(frozen=True, eq=False, repr=False)
class Delay(Unary):
    """The same collection, later: a change of epoch e comes at e + `epochs`, or at `function(e)`."""

    kind: ClassVar[str] = "delay"
    epochs: int
    function: Function | None = None

    def data(self) -> list[object]:
        """How much later."""
        return [self.epochs, None if self.function is None else self.function.identity]

    def describe(self) -> str:
        """As it would be written."""
        return f"delay({self.epochs if self.function is None else self.function.name})"


@dataclass(frozen=True, eq=False, repr=False)
class AssertEmpty(Unary):
    """The same collection; each of its rows is a failure. `what` says what is claimed.

    Rules move nothing past it but what treats rows one by one and drops none.
    """

    kind: ClassVar[str] = "assert_empty"
    is_linear: ClassVar[bool] = True
    what: str

    def data(self) -> list[object]:
        """What is claimed."""
        return [self.what]

    def describe(self) -> str:
        """What is claimed."""
        return self.what
