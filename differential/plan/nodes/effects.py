"""The roots of a plan: outputs, exports, functions that observe updates, streams for stages written by hand;
and such stages in loops.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Protocol, Self

from ...columns.schema import Schema
from ..expressions import schema_data, texts_of
from ..functions import UserFunction, UserFunctions
from .node import Node, Unary, same

__all__ = ["ByHand", "Export", "Inspect", "IntoStream", "Output", "StagesByHand"]


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
class IntoStream(Unary):
    """The rows of a collection for stages that were written by hand. Each `stream` has its own `serial`."""

    kind: ClassVar[str] = "into_stream"
    serial: int

    def data(self) -> list[object]:
        """Its number."""
        return [self.serial]

    @classmethod
    def read(cls, data: list[object], children: tuple[Node, ...], functions: UserFunctions) -> Self | None:
        """Return None: stages that were written by hand do not travel."""
        return None

    def describe(self) -> str:
        """Return it as a user would write it."""
        return "stream()"


class StagesByHand(Protocol):
    """Stages that were written by hand in the body of a loop: see `plan/sketching.py`."""

    @property
    def serial(self) -> int:
        """Their number in the plan."""
        ...

    def name_of(self, stage_index: int) -> str:
        """Return the name of a stage."""
        ...


@dataclass(frozen=True, eq=False, repr=False)
class ByHand(Node):
    """What stages written by hand make of collections in a loop: output `output` of stage `stage` of a
    sketch, or nothing but what the stage does, if `output` is below 0. `sources` are the collections that it
    reads.
    """

    kind: ClassVar[str] = "by_hand"
    sources: tuple[Node, ...]
    sketch: StagesByHand
    stage: int
    output: int
    columns: Schema

    @property
    def children(self) -> tuple[Node, ...]:
        """The sources."""
        return self.sources

    def with_children(self, children: tuple[Node, ...]) -> Self:
        """The same stages over other collections."""
        return self if same(children, self.sources) else replace(self, sources=children)

    def data(self) -> list[object]:
        """Number of the sketch, stage, output, columns."""
        return [self.sketch.serial, self.stage, self.output, schema_data(self.columns)]

    @classmethod
    def read(cls, data: list[object], children: tuple[Node, ...], functions: UserFunctions) -> Self | None:
        """Return None: stages that were written by hand do not travel."""
        return None

    @cached_property
    def schema(self) -> Schema:
        """As declared."""
        return self.columns

    def describe(self) -> str:
        """Return the name of the stage."""
        return f"stage {self.sketch.name_of(self.stage)!r} by hand"


@dataclass(frozen=True, eq=False, repr=False)
class Output(Unary):
    """A collection that clients read under a name. `is_strict`: an epoch without answer ends the dataflow.
    `is_stored`: a durable cluster stores what it holds as Parquet.
    """

    kind: ClassVar[str] = "output"
    name: str
    is_strict: bool = field(default=False, kw_only=True)
    is_stored: bool = field(default=False, kw_only=True)

    def data(self) -> list[object]:
        """The name, and whether it is strict, and stored, if it is."""
        if self.is_stored:
            return [self.name, self.is_strict, True]
        return [self.name, True] if self.is_strict else [self.name]

    @classmethod
    def read(cls, data: list[object], children: tuple[Node, ...], functions: UserFunctions) -> Self | None:
        """Return the node with this data over `children`; None if there is none."""
        match data, children:
            case [str(name)], [source]:
                return cls(source, name)
            case [str(name), True], [source]:
                return cls(source, name, is_strict=True)
            case [str(name), bool(is_strict), True], [source]:
                return cls(source, name, is_strict=is_strict, is_stored=True)
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
