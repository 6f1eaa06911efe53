"""What a plan begins with: inputs, imports, streams of hand-written stages, variables of loops,
one row."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Final, Literal

from ...columns.schema import Schema
from ..expressions import schema_data
from .node import Leaf

__all__ = ["FromStream", "Import", "Input", "InputMode", "OneRow", "Variable"]

_ONE: Final = Schema.of("one: int")

InputMode = Literal["append", "upsert", "checked"]


@dataclass(frozen=True, eq=False, repr=False)
class Input(Leaf):
    """A named input of the dataflow.

    append    rows that clients insert and remove
    upsert    the last value of each key: `keys` are columns
    checked   the last column, a bool, tells removals that were refused, as rows, from the rows
    """

    kind: ClassVar[str] = "input"
    name: str
    mode: InputMode = "append"
    keys: tuple[str, ...] = ()

    def data(self) -> list[object]:
        """Columns and name; mode and keys, if it is not plain."""
        plain: list[object] = [schema_data(self.columns), self.name]
        return plain if self.mode == "append" else [*plain, self.mode, list(self.keys)]

    def describe(self) -> str:
        """Its name, and what is special about it."""
        keys = f" by {', '.join(self.keys)}" if self.keys else ""
        return f"input {self.name}" + ("" if self.mode == "append" else f" ({self.mode}{keys})")


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
class OneRow(Leaf):
    """One row, (1,), which is there from the first epoch on, whatever comes in."""

    kind: ClassVar[str] = "one_row"
    columns: Schema = field(default=_ONE)

    def describe(self) -> str:
        """That."""
        return "one row"


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
