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
from typing import ClassVar, Final, Self, cast

import msgpack

from ...columns.schema import Schema
from ...expressions.expression import Expr
from ..functions import UserFunction, UserFunctions

__all__ = ["LOOPS_MAX", "Leaf", "Node", "Unary", "same"]

LOOPS_MAX: Final = 7
"""Loops in one another: a time has a word for the epoch and a field for each."""

_DIGEST_BYTES: Final = 16


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

    @classmethod
    def read(cls, data: list[object], children: tuple[Node, ...], functions: UserFunctions) -> Self | None:
        """Return the node of this kind whose `data()` is `data`, over `children`; None if there is none.

        Raises SchemaError for data that is none, too. Law: `read` of what a node writes is the same node.
        Nodes that do not travel read nothing.
        """
        return None

    @cached_property
    def functions(self) -> tuple[UserFunction, ...]:
        """The functions of users that it calls."""
        return ()

    @cached_property
    def expressions(self) -> tuple[Expr, ...]:
        """The expressions that it computes."""
        return ()

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
class Leaf(Node):
    """Something that is computed of nothing here; its columns are declared."""

    columns: Schema

    @cached_property
    def schema(self) -> Schema:
        """As declared."""
        return self.columns


@dataclass(frozen=True, eq=False, repr=False)
class Unary(Node):
    """An operator over one other."""

    source: Node

    @property
    def children(self) -> tuple[Node, ...]:
        """The one."""
        return (self.source,)

    def with_children(self, children: tuple[Node, ...]) -> Self:
        """The same of another."""
        (source,) = children
        return self if source is self.source else replace(self, source=source)

    @classmethod
    def read(cls, data: list[object], children: tuple[Node, ...], functions: UserFunctions) -> Self | None:
        """Return the node of this kind, without fields, over one other; None if there is none."""
        match data, children:
            case [], [source]:
                return cls(source)
        return None

    @cached_property
    def schema(self) -> Schema:
        """The same columns."""
        return self.source.schema


def same(left: Iterable[Node], right: Iterable[Node]) -> bool:
    """Whether these are one by one the same objects."""
    return all(a is b for a, b in zip(left, right, strict=True))
