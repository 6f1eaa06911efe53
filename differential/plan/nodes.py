"""Which operators are there, and when are two of them the same?

A node says *what* is computed, of which other nodes; not where, when or by which stage. Nodes are immutable
and make a graph without cycles: what two operators share is one node, and the way back of a loop is a
`Variable`.

Every node has a *digest* of its kind, its fields and its children's digests. Two nodes are the same if these
are equal, which is told without walking through them. Where it was written is not in it (`building.py` keeps
that): moving a line changes no digest.

Variables of loops are told apart by *depth*: 1 is bound by a loop that uses no other variable, 2 by a loop
that uses one of depth 1, and so on. A node's `free` are the depths that no loop beneath it binds; the deepest
says in which loop it has to be computed. What uses none is computed outside of all loops.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from typing import ClassVar, Literal, Self, cast

import msgpack

from ..aggregates import Aggregate
from ..columns.schema import Column, Schema
from ..errors import SchemaError
from ..expressions.expression import Expr
from ..expressions.types import check_condition
from .expressions import expr_data, schema_data
from .functions import Function

__all__ = [
    "Apply",
    "ApplyKind",
    "Arrange",
    "Concat",
    "Consolidate",
    "Distinct",
    "Export",
    "Filter",
    "FromStream",
    "Import",
    "Input",
    "Inspect",
    "Join",
    "Leave",
    "LetRec",
    "Negate",
    "Node",
    "Output",
    "Reduce",
    "ReduceFunction",
    "Select",
    "Variable",
]

ApplyKind = Literal["map", "flat_map", "map_batches"]

_DIGEST_BYTES = 16


@dataclass(frozen=True, eq=False)
class Node:
    """An operator over `children`; its fields that are no nodes are plain data (`data`).

    Laws: equal digests mean equal results, whatever the inputs hold · `with_children(children)` is the same
    node.
    """

    kind: ClassVar[str]
    is_linear: ClassVar[bool] = False
    """Whether it treats every row by itself, without state, and so costs no stage."""

    @property
    def children(self) -> tuple[Node, ...]:
        """What it is computed of."""
        return ()

    def with_children(self, children: tuple[Node, ...]) -> Self:
        """The same operator of others, which must have the columns that it needs."""
        assert not children, self
        return self

    def data(self) -> list[object]:
        """Its fields as msgpack holds them, children aside: the same in every process."""
        return []

    @cached_property
    def schema(self) -> Schema:
        """The columns of what it gives."""
        raise NotImplementedError

    @cached_property
    def digest(self) -> bytes:
        """Equal for equal nodes, in every process."""
        parts = [self.kind, self.data(), [child.digest for child in self.children]]
        packed = cast("bytes", msgpack.packb(parts))
        return blake2b(packed, digest_size=_DIGEST_BYTES).digest()

    @cached_property
    def free(self) -> frozenset[int]:
        """The depths of the variables that it depends on."""
        return frozenset[int]().union(*(child.free for child in self.children))

    def describe(self) -> str:
        """One line, as the user might have written it; children aside."""
        return self.kind

    def __repr__(self) -> str:
        return self.describe()


@dataclass(frozen=True, eq=False, repr=False)
class _Leaf(Node):
    columns: Schema

    @cached_property
    def schema(self) -> Schema:
        """As declared."""
        return self.columns


@dataclass(frozen=True, eq=False, repr=False)
class Input(_Leaf):
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
class Import(_Leaf):
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
class FromStream(_Leaf):
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
class Variable(_Leaf):
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


@dataclass(frozen=True, eq=False, repr=False)
class _Unary(Node):
    source: Node

    @property
    def children(self) -> tuple[Node, ...]:
        """The one."""
        return (self.source,)

    def with_children(self, children: tuple[Node, ...]) -> Self:
        """The same of another."""
        (source,) = children
        return self if source is self.source else replace(self, source=source)

    @cached_property
    def schema(self) -> Schema:
        """The same columns."""
        return self.source.schema


@dataclass(frozen=True, eq=False, repr=False)
class Select(_Unary):
    """Rows of these columns, each an expression over those of `source`."""

    kind: ClassVar[str] = "select"
    is_linear: ClassVar[bool] = True
    columns: tuple[tuple[str, Expr], ...]

    def data(self) -> list[object]:
        """Names and expressions."""
        return [[name, expr_data(expr)] for name, expr in self.columns]

    @cached_property
    def schema(self) -> Schema:
        """Raises ExpressionError if an expression does not fit the columns of `source`."""
        over = self.source.schema
        return Schema(tuple(Column(name, expr.type_in(over)) for name, expr in self.columns))

    def describe(self) -> str:
        """As it would be written."""
        return f"select({', '.join(_named(name, expr) for name, expr in self.columns)})"


@dataclass(frozen=True, eq=False, repr=False)
class Filter(_Unary):
    """The rows where `condition` is true."""

    kind: ClassVar[str] = "filter"
    is_linear: ClassVar[bool] = True
    condition: Expr

    def data(self) -> list[object]:
        """The condition."""
        return [expr_data(self.condition)]

    @cached_property
    def schema(self) -> Schema:
        """The same columns; raises ExpressionError if the condition is none."""
        check_condition(self.condition, self.source.schema)
        return self.source.schema

    def describe(self) -> str:
        """As it would be written."""
        return f"filter({self.condition.describe()})"


@dataclass(frozen=True, eq=False, repr=False)
class Negate(_Unary):
    """All multiplicities with the other sign."""

    kind: ClassVar[str] = "negate"
    is_linear: ClassVar[bool] = True


@dataclass(frozen=True, eq=False, repr=False)
class Apply(_Unary):
    """A function of the user, of each record or of batches."""

    kind: ClassVar[str] = "apply"
    is_linear: ClassVar[bool] = True
    how: ApplyKind
    function: Function
    columns: Schema

    def data(self) -> list[object]:
        """How, which function, and the columns that it gives."""
        return [self.how, self.function.identity, schema_data(self.columns)]

    @cached_property
    def schema(self) -> Schema:
        """As declared."""
        return self.columns

    def describe(self) -> str:
        """As it would be written."""
        return f"{self.how}({self.function.name})"


@dataclass(frozen=True, eq=False, repr=False)
class Concat(Node):
    """The sum of several collections with the same columns."""

    kind: ClassVar[str] = "concat"
    is_linear: ClassVar[bool] = True
    sources: tuple[Node, ...]

    @property
    def children(self) -> tuple[Node, ...]:
        """All of them."""
        return self.sources

    def with_children(self, children: tuple[Node, ...]) -> Self:
        """The sum of others."""
        return self if _same(children, self.sources) else replace(self, sources=children)

    @cached_property
    def schema(self) -> Schema:
        """Theirs."""
        first = self.sources[0].schema
        assert all(source.schema == first for source in self.sources), "columns are put in order before"
        return first


@dataclass(frozen=True, eq=False, repr=False)
class Join(Node):
    """Pairs of rows whose keys are equal: `on` are pairs of columns, of `left` and of `right`.

    Columns: the keys under the names they have in `left`, its other columns, the other columns of `right`.
    """

    kind: ClassVar[str] = "join"
    left: Node
    right: Node
    on: tuple[tuple[str, str], ...]

    @property
    def children(self) -> tuple[Node, ...]:
        """Left and right."""
        return (self.left, self.right)

    def with_children(self, children: tuple[Node, ...]) -> Self:
        """The same of others."""
        left, right = children
        return self if left is self.left and right is self.right else replace(self, left=left, right=right)

    def data(self) -> list[object]:
        """The pairs of columns."""
        return [list(pair) for pair in self.on]

    @property
    def keys(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The key columns of either side."""
        return tuple(left for left, _ in self.on), tuple(right for _, right in self.on)

    @cached_property
    def schema(self) -> Schema:
        """Raises SchemaError if keys differ in type, or two columns beside the keys have one name."""
        left_keys, right_keys = self.keys
        keys: list[Column] = [self.left.schema[key] for key in left_keys]
        others = [column for column in self.left.schema if column.name not in left_keys]
        more = [column for column in self.right.schema if column.name not in right_keys]
        for left, right in self.on:
            if self.left.schema[left].type != self.right.schema[right].type:
                raise SchemaError(
                    f"join: key {left!r} is {self.left.schema[left].type}, key {right!r} is "
                    f"{self.right.schema[right].type}; cast one of them"
                )
        taken = {column.name for column in (*keys, *others)}
        for column in more:
            if column.name in taken:
                raise SchemaError(
                    f"join: both sides have a column {column.name!r} besides the keys. Rename one before: "
                    f"select(…, right_{column.name}=col.{column.name})"
                )
        return Schema((*keys, *others, *more))

    def describe(self) -> str:
        """Its keys."""
        condition = " and ".join(f"{a} = {b}" if a != b else a for a, b in self.on)
        return f"join on {condition or 'nothing'}"


@dataclass(frozen=True, eq=False, repr=False)
class Reduce(_Unary):
    """One row per group of equal `keys`: the keys, and each aggregate under its name."""

    kind: ClassVar[str] = "reduce"
    keys: tuple[str, ...]
    aggregates: tuple[tuple[str, Aggregate], ...]

    def data(self) -> list[object]:
        """Keys and aggregates."""
        return [list(self.keys), [[name, a.kind, a.column] for name, a in self.aggregates]]

    @cached_property
    def schema(self) -> Schema:
        """Keys, then aggregates; raises ExpressionError if one of them has no type."""
        over = self.source.schema
        columns = tuple(Column(name, aggregate.type_in(over)) for name, aggregate in self.aggregates)
        return Schema((*over.picked(self.keys), *columns))

    @property
    def columns_read(self) -> tuple[str, ...]:
        """The columns that decide of its answers: rows that differ elsewhere count as one."""
        named = [a.column for _, a in self.aggregates if a.column is not None]
        return tuple(dict.fromkeys((*self.keys, *named)))

    def describe(self) -> str:
        """As it would be written."""
        text = ", ".join(f"{name}={aggregate.describe()}" for name, aggregate in self.aggregates)
        return f"group by {', '.join(self.keys) or 'nothing'}: {text}"


@dataclass(frozen=True, eq=False, repr=False)
class ReduceFunction(_Unary):
    """Whatever rows a function of the user gives for each group of equal `keys`."""

    kind: ClassVar[str] = "reduce_function"
    keys: tuple[str, ...]
    function: Function
    columns: Schema

    def data(self) -> list[object]:
        """Keys, function, and the columns that it gives."""
        return [list(self.keys), self.function.identity, schema_data(self.columns)]

    @cached_property
    def schema(self) -> Schema:
        """The keys and the columns of the function."""
        return Schema((*self.source.schema.picked(self.keys), *self.columns))

    def describe(self) -> str:
        """As it would be written."""
        return f"reduce by {', '.join(self.keys) or 'nothing'}: {self.function.name}"


@dataclass(frozen=True, eq=False, repr=False)
class Distinct(_Unary):
    """Each row that has a positive multiplicity, once."""

    kind: ClassVar[str] = "distinct"


@dataclass(frozen=True, eq=False, repr=False)
class Consolidate(_Unary):
    """The same collection; the updates of each time are summed before they go on."""

    kind: ClassVar[str] = "consolidate"


@dataclass(frozen=True, eq=False, repr=False)
class Arrange(_Unary):
    """The same collection; operators that look it up by `keys` read one arrangement of it."""

    kind: ClassVar[str] = "arrange"
    is_linear: ClassVar[bool] = True
    keys: tuple[str, ...]

    def data(self) -> list[object]:
        """The keys."""
        return [list(self.keys)]

    def describe(self) -> str:
        """As it would be written."""
        return f"arrange by {', '.join(self.keys)}"


@dataclass(frozen=True, eq=False, repr=False)
class Inspect(_Unary):
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
class Output(_Unary):
    """The collection, readable by clients under a name."""

    kind: ClassVar[str] = "output"
    name: str

    def data(self) -> list[object]:
        """The name."""
        return [self.name]

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


@dataclass(frozen=True, eq=False, repr=False)
class LetRec(Node):
    """A loop: variable number i of `depth` begins as `initials[i]` and is then, again and again, `bodies[i]`.

    It has several results, which `Leave` names. More than `iterations_max` iterations are an error. `effects`
    are looked at by users inside the loop and need not lead to a result.
    """

    kind: ClassVar[str] = "loop"
    name: str
    depth: int
    initials: tuple[Node, ...]
    bodies: tuple[Node, ...]
    iterations_max: int
    effects: tuple[Node, ...] = ()

    @property
    def children(self) -> tuple[Node, ...]:
        """Initials, bodies, effects."""
        return (*self.initials, *self.bodies, *self.effects)

    def with_children(self, children: tuple[Node, ...]) -> Self:
        """The same of others; its variable keeps its depth."""
        if _same(children, self.children):
            return self
        count = len(self.initials)
        initials, bodies, effects = children[:count], children[count : 2 * count], children[2 * count :]
        return replace(self, initials=initials, bodies=bodies, effects=effects)

    def data(self) -> list[object]:
        """Depth, number of variables, limit, and the name, which counters and errors show."""
        return [self.depth, len(self.initials), self.iterations_max, self.name]

    @cached_property
    def free(self) -> frozenset[int]:
        """Those of its parts without its own."""
        inner = frozenset[int]().union(*(part.free for part in (*self.bodies, *self.effects)))
        return (inner - {self.depth}).union(*(initial.free for initial in self.initials))

    @cached_property
    def schema(self) -> Schema:
        """Of its first variable."""
        return self.initials[0].schema

    def describe(self) -> str:
        """Its name."""
        return f"loop {self.name}"


@dataclass(frozen=True, eq=False, repr=False)
class Leave(Node):
    """What variable number `index` of a loop has become when nothing changes any more."""

    kind: ClassVar[str] = "leave"
    loop: LetRec
    index: int

    @property
    def children(self) -> tuple[Node, ...]:
        """The loop."""
        return (self.loop,)

    def with_children(self, children: tuple[Node, ...]) -> Self:
        """The same of another loop."""
        (loop,) = children
        assert isinstance(loop, LetRec)
        return self if loop is self.loop else replace(self, loop=loop)

    def data(self) -> list[object]:
        """The number."""
        return [self.index]

    @cached_property
    def schema(self) -> Schema:
        """The variable's."""
        return self.loop.initials[self.index].schema

    def describe(self) -> str:
        """Of which loop."""
        return f"leave {self.loop.name}"


def _same(left: Iterable[Node], right: Iterable[Node]) -> bool:
    return all(a is b for a, b in zip(left, right, strict=True))


def _named(name: str, expr: Expr) -> str:
    text = expr.describe()
    return name if text == f"col.{name}" else f"{name}={text}"
