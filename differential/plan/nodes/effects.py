"""The roots of a plan: outputs, exports, and functions that observe updates."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Self

from ..expressions import texts_of
from ..functions import UserFunction, UserFunctions
from .node import Node, Unary

__all__ = ["Export", "Inspect", "Output"]


@dataclass(frozen=True, eq=False, repr=False)
class Inspect(Unary):
    """The same collection; a user's function sees its updates. Each `inspect` has its own `serial`."""

    kind: ClassVar[str] = "inspect"
    function: UserFunction
    serial: int

    def data(self) -> list[object]:
        """Function and number."""
        return [self.function.identity, self.serial]

    @classmethod
    def read(cls, data: list[object], children: tuple[Node, ...], functions: UserFunctions) -> Self | None:
        """Return the node with this data over `children`; None if there is none."""
        match data, children:
            case [identity, int(serial)], [source]:
                return cls(source, functions(identity), serial)
        return None

    @cached_property
    def functions(self) -> tuple[UserFunction, ...]:
        """The function that observes the updates."""
        return (self.function,)

    def describe(self) -> str:
        """Return it as a user would write it."""
        return f"inspect({self.function.name})"


@dataclass(frozen=True, eq=False, repr=False)
class Output(Unary):
    """A collection that clients read under a name. `is_strict`: an epoch without answer ends the dataflow."""

    kind: ClassVar[str] = "output"
    name: str
    is_strict: bool = field(default=False, kw_only=True)

    def data(self) -> list[object]:
        """The name, and whether it is strict."""
        return [self.name, True] if self.is_strict else [self.name]

    @classmethod
    def read(cls, data: list[object], children: tuple[Node, ...], functions: UserFunctions) -> Self | None:
        """Return the node with this data over `children`; None if there is none."""
        match data, children:
            case [str(name)], [source]:
                return cls(source, name)
            case [str(name), True], [source]:
                return cls(source, name, is_strict=True)
        return None

    def describe(self) -> str:
        """Its name."""
        return f"output {self.name}"


@dataclass(frozen=True, eq=False, repr=False)
class Export(Output):
    """A collection stored by `keys`, which other dataflows read under a name."""

    kind: ClassVar[str] = "export"
    keys: tuple[str, ...]

    def data(self) -> list[object]:
        """Name and keys."""
        return [self.name, list(self.keys)]

    @classmethod
    def read(cls, data: list[object], children: tuple[Node, ...], functions: UserFunctions) -> Self | None:
        """Return the node with this data over `children`; None if there is none."""
        match data, children:
            case [str(name), [*keys]], [source] if set(keys) <= set(source.schema.names):
                return cls(source, name, texts_of(keys))
        return None

    def describe(self) -> str:
        """Its name and keys."""
        return f"export {self.name} by {', '.join(self.keys)}"
