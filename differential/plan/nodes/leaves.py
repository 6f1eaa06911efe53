"""The leaves of a plan: inputs, imports, streams of hand-written stages, variables of loops, one row."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Final, Literal, Self

from ...columns.column_types import boolean
from ...columns.schema import Schema
from ..expressions import schema_data, schema_of, texts_of
from ..functions import UserFunctions
from .node import LOOPS_MAX, Leaf, Node

__all__ = ["FromStream", "Import", "Input", "InputMode", "OneRow", "Variable"]

_ONE: Final = Schema.of("one: int")

InputMode = Literal["append", "upsert", "checked"]


@dataclass(frozen=True, eq=False, repr=False)
class Input(Leaf):
    """A named input of the dataflow.

    append    rows that clients insert and remove
    upsert    the last value of each key: `keys` are columns
    checked   the last column, a bool, is false for the rows, and true for removals that were refused
    """

    kind: ClassVar[str] = "input"
    name: str
    mode: InputMode = "append"
    keys: tuple[str, ...] = ()

    def data(self) -> list[object]:
        """Columns and name; mode and keys as well, if the mode is not append."""
        plain: list[object] = [schema_data(self.columns), self.name]
        return plain if self.mode == "append" else [*plain, self.mode, list(self.keys)]

    @classmethod
    def read(cls, data: list[object], children: tuple[Node, ...], functions: UserFunctions) -> Self | None:
        """Return the node with this data over `children`; None if there is none."""
        match data, children:
            case [schema, str(name)], []:
                return cls(schema_of(schema), name)
            case [schema, str(name), "upsert", [_, *_] as keys], []:
                columns = schema_of(schema)
                if columns.names and set(keys) <= set(columns.names):
                    return cls(columns, name, "upsert", texts_of(keys))
            case [schema, str(name), "checked", []], []:
                columns = schema_of(schema)
                if columns.columns and columns.columns[-1].type == boolean:
                    return cls(columns, name, "checked")
        return None

    def describe(self) -> str:
        """Its name, and what is special about it."""
        keys = f" by {', '.join(self.keys)}" if self.keys else ""
        return f"input {self.name}" + ("" if self.mode == "append" else f" ({self.mode}{keys})")


@dataclass(frozen=True, eq=False, repr=False)
class Import(Leaf):
    """A collection that another dataflow, `owner` by number or name, exports under a name."""

    kind: ClassVar[str] = "import"
    owner: int | str
    name: str

    def data(self) -> list[object]:
        """Columns, owner, and name."""
        return [schema_data(self.columns), self.owner, self.name]

    @classmethod
    def read(cls, data: list[object], children: tuple[Node, ...], functions: UserFunctions) -> Self | None:
        """Return the node with this data over `children`; None if there is none."""
        match data, children:
            case [schema, (int() | str()) as owner, str(name)], []:
                return cls(schema_of(schema), owner, name)
        return None

    def describe(self) -> str:
        """Return its name and owner."""
        return f"import {self.name} of {self.owner}"


@dataclass(frozen=True, eq=False, repr=False)
class FromStream(Leaf):
    """The output of a hand-written stage; `serial` is the number of its stream in the plan."""

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
    """One row, (1,), which is there from the first epoch on, whatever the inputs hold."""

    kind: ClassVar[str] = "one_row"
    columns: Schema = field(default=_ONE)

    @classmethod
    def read(cls, data: list[object], children: tuple[Node, ...], functions: UserFunctions) -> Self | None:
        """Return the node with this data over `children`; None if there is none."""
        return None if data or children else cls()

    def describe(self) -> str:
        """Return its fixed text."""
        return "one row"


@dataclass(frozen=True, eq=False, repr=False)
class Variable(Leaf):
    """Variable number `index` of the loop of this depth, in any iteration."""

    kind: ClassVar[str] = "variable"
    depth: int
    index: int

    def data(self) -> list[object]:
        """Columns, depth, number."""
        return [schema_data(self.columns), self.depth, self.index]

    @classmethod
    def read(cls, data: list[object], children: tuple[Node, ...], functions: UserFunctions) -> Self | None:
        """Return the node with this data over `children`; None if there is none."""
        match data, children:
            case [schema, int(depth), int(index)], [] if 1 <= depth <= LOOPS_MAX and index >= 0:
                return cls(schema_of(schema), depth, index)
        return None

    @cached_property
    def free(self) -> frozenset[int]:
        """Its own depth."""
        return frozenset((self.depth,))

    def describe(self) -> str:
        """Its depth and number."""
        return f"variable {self.depth}.{self.index}"
