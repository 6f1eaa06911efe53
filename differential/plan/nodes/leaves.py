"""The leaves of a plan: inputs, imports, constants, streams of hand-written stages, variables of loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Final, Literal, Self

import pyarrow as pa

from timely.counted import counted

from ...columns.column_types import boolean
from ...columns.schema import Schema
from ...errors import SchemaError
from ..expressions import schema_data, schema_of, texts_of
from ..functions import UserFunctions
from .node import LOOPS_MAX, Leaf, Node

__all__ = [
    "CONSTANT_BYTES_MAX",
    "ConstantRows",
    "FromStream",
    "Import",
    "Input",
    "InputMode",
    "OneRow",
    "Variable",
]

CONSTANT_BYTES_MAX: Final = 1 << 20
"""Limit of the rows of one constant as Arrow writes them: a plan is a message, and workers compare plans."""

_ONE: Final = Schema.of("one: int")

InputMode = Literal["append", "upsert", "checked"]

_SHOWN_MAX: Final = 4
"""More columns that are left out are counted, and not named."""


@dataclass(frozen=True, eq=False, repr=False)
class Input(Leaf):
    """A named input of the dataflow.

    append    rows that clients insert and remove
    upsert    the last value of each key: `keys` are columns
    checked   the last column, a bool, is false for the rows, and true for removals that were refused

    `declared` names all columns that clients send, in their order, if nobody reads some of them: a rule of
    plans leaves those out. It is empty if `columns` are all.

    `defaults` is one row of values for columns that rows of an older version lack, if there are any.
    """

    kind: ClassVar[str] = "input"
    name: str
    mode: InputMode = "append"
    keys: tuple[str, ...] = ()
    declared: tuple[str, ...] = ()
    defaults: ConstantRows | None = None

    def data(self) -> list[object]:
        """Columns and name; mode and keys as well, if the mode is not append. Then, if columns are left out,
        the names of all. Last the defaults, if there are any, behind all of these.
        """
        plain: list[object] = [schema_data(self.columns), self.name]
        if self.mode != "append" or self.declared or self.defaults is not None:
            plain += [self.mode, list(self.keys)]
        if self.defaults is not None:
            return [*plain, list(self.declared), *self.defaults.data()]
        return [*plain, list(self.declared)] if self.declared else plain

    @classmethod
    def read(cls, data: list[object], children: tuple[Node, ...], functions: UserFunctions) -> Self | None:
        """Return the node with this data over `children`; None if there is none."""
        if len(data) == 7:
            defaults = ConstantRows.read(data[5:], children, functions)
            has_names = data[4] != []
            node = cls.read(data[: 5 if has_names else 4 if data[2] != "append" else 2], children, functions)
            if node is None or defaults is None or defaults.table.num_rows != 1:
                return None
            return replace(node, defaults=defaults)
        match data, children:
            case [schema, str(name)], []:
                return cls(schema_of(schema), name)
            case [schema, str(name), "upsert", [_, *_] as keys], []:
                columns = schema_of(schema)
                if columns.names and set(keys) <= set(columns.names):
                    return cls(columns, name, "upsert", texts_of(keys))
            case [schema, str(name), "append" | "upsert" as mode, [*keys], [_, *_] as declared], []:
                columns = schema_of(schema)
                names = texts_of(declared)
                if columns.names and {*columns.names, *texts_of(keys)} <= set(names):
                    return cls(columns, name, mode, texts_of(keys), names)
            case [schema, str(name), "checked", []], []:
                columns = schema_of(schema)
                if columns.columns and columns.columns[-1].type == boolean:
                    return cls(columns, name, "checked")
        return None

    def only(self, names: Sequence[str]) -> Input:
        """Return the input without the columns beside `names`, which nobody reads."""
        if list(names) == list(self.columns.names):
            return self
        declared = self.declared or tuple(self.columns.names)
        return replace(self, columns=self.columns.picked(names), declared=declared)

    def describe(self) -> str:
        """Its name, and what is special about it."""
        keys = f" by {', '.join(self.keys)}" if self.keys else ""
        left_out = [name for name in self.declared if name not in self.columns.names]
        return (
            f"input {self.name}"
            + ("" if self.mode == "append" else f" ({self.mode}{keys})")
            + (f" without {_listed(left_out)}" if left_out else "")
        )


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN_MAX
    return ", ".join(names[:_SHOWN_MAX]) + (f" and {more} more columns" if more > 0 else "")


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
class ConstantRows(Leaf):
    """Rows that are there from the first epoch on; `written` has them as a stream of Arrow's IPC format."""

    kind: ClassVar[str] = "constant"
    written: bytes

    @classmethod
    def of(cls, table: pa.Table, columns: Schema, name: str = "constant") -> ConstantRows:
        """Return the node with the rows of `table`; raise SchemaError, which names it, if they do not fit."""
        arrays = columns.conform(table, name).combine_chunks().columns
        own = pa.Table.from_arrays(arrays, schema=columns.to_arrow())
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, columns.to_arrow()) as stream:
            stream.write_table(own)
        return cls(columns, sink.getvalue().to_pybytes())

    @cached_property
    def table(self) -> pa.Table:
        """The rows."""
        return pa.ipc.open_stream(self.written).read_all()

    def data(self) -> list[object]:
        """Columns, and the rows as bytes."""
        return [schema_data(self.columns), self.written]

    @classmethod
    def read(cls, data: list[object], children: tuple[Node, ...], functions: UserFunctions) -> Self | None:
        """Return the node with this data over `children`; None if there is none. Raises SchemaError for bytes
        that are not rows of these columns.
        """
        match data, children:
            case [schema, bytes(written)], [] if len(written) <= CONSTANT_BYTES_MAX:
                columns = schema_of(schema)
                try:
                    table = pa.ipc.open_stream(written).read_all()
                    table.validate(full=True)
                except (pa.ArrowException, ValueError, OSError) as error:
                    raise SchemaError(f"the rows of a constant of a plan cannot be read: {error}") from error
                if table.schema.equals(columns.to_arrow(), check_metadata=True):
                    columns.conform(table, "a constant of a plan")
                    return cls(columns, written)
        return None

    def describe(self) -> str:
        """Return its number of rows."""
        return f"constant ({counted(self.table.num_rows, 'row')})"


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
