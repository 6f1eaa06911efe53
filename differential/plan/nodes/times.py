"""Operators that move rows in time, and claims that hold at every time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

from ..functions import UserFunction, UserFunctions
from .node import Node, Unary

__all__ = ["AssertEmpty", "Delay"]


@dataclass(frozen=True, eq=False, repr=False)
class Delay(Unary):
    """The same collection, later: a change of epoch e comes at e + `epochs`, or at `function(e)`."""

    kind: ClassVar[str] = "delay"
    epochs: int
    function: UserFunction | None = None

    def data(self) -> list[object]:
        """The number of epochs, and the function."""
        return [self.epochs, None if self.function is None else self.function.identity]

    @classmethod
    def read(cls, data: list[object], children: tuple[Node, ...], functions: UserFunctions) -> Self | None:
        """Return the node with this data over `children`; None if there is none."""
        match data, children:
            case [int(epochs), identity], [source] if epochs >= 0:
                return cls(source, epochs, None if identity is None else functions(identity))
        return None

    @cached_property
    def functions(self) -> tuple[UserFunction, ...]:
        """The function that gives the later epoch, if there is one."""
        return () if self.function is None else (self.function,)

    def describe(self) -> str:
        """Return it as a user would write it."""
        return f"delay({self.epochs if self.function is None else self.function.name})"


@dataclass(frozen=True, eq=False, repr=False)
class AssertEmpty(Unary):
    """The same collection; each of its rows is a failure. `what` is the text of the claim.

    Rules move only operators past it that treat rows one by one and drop none.
    """

    kind: ClassVar[str] = "assert_empty"
    is_linear: ClassVar[bool] = True
    what: str

    def data(self) -> list[object]:
        """The text of the claim."""
        return [self.what]

    @classmethod
    def read(cls, data: list[object], children: tuple[Node, ...], functions: UserFunctions) -> Self | None:
        """Return the node with this data over `children`; None if there is none."""
        match data, children:
            case [str(what)], [source]:
                return cls(source, what)
        return None

    def describe(self) -> str:
        """Return the text of the claim."""
        return self.what
