"""What a plan is asked for: outputs, exports, functions that look on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from ..functions import Function
from .node import Unary

__all__ = ["Export", "Inspect", "Output"]


@dataclass(frozen=True, eq=False, repr=False)
class Inspect(Unary):
    """The same collection; a function of the user sees its updates. By `serial`, each by itself."""

    kind: ClassVar[str] = "inspect"
    function: Function
    serial: int

    def data(self) -> list[object]:
        """Function and number."""
        return [self.function.identity, self.serial]

    def describe(self) -> str:
        """As it would be written."""
        return f"inspect({self.function.name})"


@dataclass(frozen=True, eq=False, repr=False)
class Output(Unary):
    """The collection, readable by clients under a name. `is_strict`: an epoch without an answer ends the
    dataflow.
    """

    kind: ClassVar[str] = "output"
    name: str
    is_strict: bool = field(default=False, kw_only=True)

    def data(self) -> list[object]:
        """The name, and whether it is strict."""
        return [self.name, True] if self.is_strict else [self.name]

    def describe(self) -> str:
        """Its name."""
        return f"output {self.name}"


@dataclass(frozen=True, eq=False, repr=False)
class Export(Output):
    """The collection, kept by `keys` for other dataflows to read under a name."""

    kind: ClassVar[str] = "export"
    keys: tuple[str, ...]

    def data(self) -> list[object]:
        """Name and keys."""
        return [self.name, list(self.keys)]

    def describe(self) -> str:
        """Its name and keys."""
        return f"export {self.name} by {', '.join(self.keys)}"
