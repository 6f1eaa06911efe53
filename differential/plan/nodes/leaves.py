"""What a plan begins with: inputs, imports, streams of hand-written stages, variables of loops."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from ..expressions import schema_data
from .node import Leaf

__all__ = ["FromStream", "Import", "Input", "Variable"]


@dataclass(frozen=True, eq=False, repr=False)
class Input(Leaf):
    """A named input of the dataflow."""

    kind: ClassVar[str] = "input"
    name: str

    def data(self) -> list[object]:
        """Columns and name."""
        return [schema_data(self.columns), self.name]

    def describe(self) -> str:
        """Its name."""
        return f"input {self.name}"


@dataclass(frozen=True, eq=False, repr=False)
class Import(Leaf):
    """What another dataflow, by number or name, exports under a name."""

    kind: ClassVar[str] = "import"
    owner: int | str
    name: str

    def data(self) -> list[object]:
        """Columns, whose, and name."""
        return [schema_data(self.columns), self.owner, self.name]

    def describe(self) -> str:
        """Its name, and whose."""
        return f"import {self.name} of {self.owner}"


@dataclass(frozen=True, eq=False, repr=False)
class FromStream(Leaf):
    """What a stage that was written by hand puts out; `serial` is the number of its stream in the plan."""

    kind: ClassVar[str] = "from_stream"
    serial: int

    def data(self) -> list[object]:
        """Columns and number."""
        return [schema_data(self.columns), self.serial]

    def describe(self) -> str:
        """Its number."""
        return f"stream {self.serial}"


@dataclass(frozen=True, eq=False, repr=False)
class Variable(Leaf):
    """Number `index` of the collections that the loop of this depth computes, in any iteration."""

    kind: ClassVar[str] = "variable"
    depth: int
    index: int

    def data(self) -> list[object]:
        """Columns, depth, number."""
        return [schema_data(self.columns), self.depth, self.index]

    @cached_property
    def free(self) -> frozenset[int]:
        """Itself."""
        return frozenset((self.depth,))

    def describe(self) -> str:
        """Its depth and number."""
        return f"variable {self.depth}.{self.index}"
