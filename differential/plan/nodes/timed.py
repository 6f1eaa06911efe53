"""Operators that use times: a column that holds one, or the epoch of an update."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal, Self, cast

from ...columns.schema import Column, Schema
from ...linear.sliding import TIME_MAX
from ...operators.timed.sweep import Rule
from ..expressions import schema_data, schema_of, texts_of
from ..functions import UserFunctions
from .node import Node, Unary

__all__ = ["During", "OnTime", "Slide", "Sweep"]


@dataclass(frozen=True, eq=False, repr=False)
class Slide(Unary):
    """Each row once for each sliding window around its `time`; size, every and origin are in its unit."""

    kind: ClassVar[str] = "slide"
    is_linear: ClassVar[bool] = True
    time: str
    lengths: tuple[int, int, int]
    names: tuple[str, str]

    def data(self) -> list[object]:
        """The column, the lengths, and the names of the columns that it adds."""
        return [self.time, list(self.lengths), list(self.names)]

    @classmethod
    def read(cls, data: list[object], children: tuple[Node, ...], functions: UserFunctions) -> Self | None:
        """Return the node with this data over `children`; None if there is none."""
        match data, children:
            case [str(time), [int(size), int(every), int(origin)], [str(start), str(end)]], [source] if (
                0 < size <= TIME_MAX and 0 < every <= TIME_MAX and abs(origin) <= TIME_MAX
            ):
                if source.schema[time].type.kind in ("int", "date", "timestamp"):
                    return cls(source, time, (size, every, origin), (start, end))
        return None

    @cached_property
    def schema(self) -> Schema:
        """The same columns, and start and end of the window."""
        kind = self.source.schema[self.time].type.not_null()
        return Schema((*self.source.schema.columns, *(Column(name, kind) for name in self.names)))

    def describe(self) -> str:
        """Column and lengths."""
        size, every, origin = self.lengths
        return f"windows of {self.time}: {size} every {every} from {origin}"


@dataclass(frozen=True, eq=False, repr=False)
class During(Unary):
    """The rows without their last two columns, start and stop, in the epochs from start to before stop.

    A bound that is null is none. Law: accumulated at the epoch e, the rows that have come in by then with
    start ≤ e < stop.
    """

    kind: ClassVar[str] = "during"

    @classmethod
    def read(cls, data: list[object], children: tuple[Node, ...], functions: UserFunctions) -> Self | None:
        """Return the node with this data over `children`; None if there is none."""
        match data, children:
            case [], [source]:
                columns = source.schema.columns
                if len(columns) > 1 and all(column.type.kind == "int" for column in columns[-2:]):
                    return cls(source)
        return None

    @cached_property
    def schema(self) -> Schema:
        """All columns but the last two."""
        return Schema(self.source.schema.columns[:-2])

    def describe(self) -> str:
        """Return the columns of the bounds."""
        start, stop = self.source.schema.names[-2:]
        return f"during epochs {start} ≤ epoch < {stop}"


@dataclass(frozen=True, eq=False, repr=False)
class OnTime(Unary):
    """The updates that come in at an epoch up to the one in the last column ("on time"), or later ("late").

    Law: the updates on time and the late ones together are all that come in, without the last column.
    """

    kind: ClassVar[str] = "on_time"
    which: Literal["on time", "late"]

    def data(self) -> list[object]:
        """One of the two."""
        return [self.which]

    @classmethod
    def read(cls, data: list[object], children: tuple[Node, ...], functions: UserFunctions) -> Self | None:
        """Return the node with this data over `children`; None if there is none."""
        match data, children:
            case ["on time" | "late" as which], [source]:
                columns = source.schema.columns
                if columns and columns[-1].type.kind == "int":
                    return cls(source, which)
        return None

    @cached_property
    def schema(self) -> Schema:
        """All columns but the last."""
        return Schema(self.source.schema.columns[:-1])

    def describe(self) -> str:
        """Return which of the two, and the column of the bound."""
        return f"{self.which}: by epoch {self.source.schema.names[-1]}"


@dataclass(frozen=True, eq=False, repr=False)
class Sweep(Unary):
    """The result of going through each group of equal `keys` in order of a time: the keys, then `columns`.

    `kernels/sweeps/sweep.py` says which columns of `source` must come first behind the keys, and what the
    `options` are.
    """

    kind: ClassVar[str] = "sweep"
    keys: tuple[str, ...]
    rule: Rule
    options: tuple[int, ...]
    columns: Schema

    def data(self) -> list[object]:
        """Keys, rule, options, and its columns."""
        return [list(self.keys), self.rule, list(self.options), schema_data(self.columns)]

    @classmethod
    def read(cls, data: list[object], children: tuple[Node, ...], functions: UserFunctions) -> Self | None:
        """Return the node with this data over `children`; None if there is none."""
        match data, children:
            case [[*keys], "sessions" | "nearest" as rule, [*options], columns], [source] if all(
                isinstance(key, str) and key in source.schema for key in keys
            ) and all(type(option) is int for option in options):
                numbers = tuple(cast("list[int]", options))
                sweep = cls(source, texts_of(keys), rule, numbers, schema_of(columns))
                return sweep if sweep._is_within_words() else None
        return None

    def _is_within_words(self) -> bool:
        """Return True if it reads and writes only words that exist."""
        width = self.source.schema.width - self.source.schema.picked(self.keys).width
        if self.rule == "sessions":
            return not self.options and width > 1 and self.columns.width == width + 2
        lefts, sources = self.options[4], self.options[5:]
        return (
            width > 1
            and len(sources) == self.columns.width
            and all(0 <= source < width for source in sources)
            and 0 <= lefts <= len(sources)
        )

    @cached_property
    def schema(self) -> Schema:
        """The keys and the columns."""
        return Schema((*self.source.schema.picked(self.keys), *self.columns))

    def describe(self) -> str:
        """Its rule and keys."""
        return f"{self.rule} by {', '.join(self.keys) or 'nothing'}"
