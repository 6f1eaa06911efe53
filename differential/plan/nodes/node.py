"""The base class of all operators of a plan; defines when two of them are the same.

A node says *what* is computed from which other nodes; not where, when or by which stage. Nodes are immutable
and make a graph without cycles: operators that read the same collection share one node, and the way back of a
loop is a `Variable`.

Every node has a *digest* of its kind, its fields and its children's digests. Two nodes are the same if their
digests are equal, so comparing them does not walk through the graph. The line where a node was written is not
in its digest (`building.py` stores the lines): moving a line changes no digest.

*Depth* tells variables of loops apart. A loop that uses no other variable binds depth 1, a loop that uses one
of depth 1 binds depth 2, and so on. A node's `free` are the depths that no loop beneath it binds; the deepest
of them is the loop in which the node has to be computed. A node without any is computed outside of all loops.
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
"""Limit of nesting: a time word has a field for the epoch and one for each loop."""

_DIGEST_BYTES: Final = 16


@dataclass(frozen=True, eq=False)
class Node:
    """An operator over `children`; its other fields are plain data (`data`).

    Laws: equal digests mean equal results, whatever the inputs hold · `with_children(children)`, of its own
    children, is the same node.
    """

    kind: ClassVar[str]
    is_linear: ClassVar[bool] = False
    """True if the operator treats every row by itself, without state, so that it costs no stage."""

    @property
    def children(self) -> tuple[Node, ...]:
        """The nodes from which it is computed."""
        return ()

    def with_children(self, children: tuple[Node, ...]) -> Self:
        """The same operator over other children, which must have the columns that it needs."""
        assert not children, self
        return self

    def data(self) -> list[object]:
        """Its fields without children, as msgpack holds them: the same in every process."""
        return []

    @classmethod
    def read(cls, data: list[object], children: tuple[Node, ...], functions: UserFunctions) -> Self | None:
        """Return the node of this kind whose `data()` is `data`, over `children`; None if there is none.

        May also raise SchemaError if there is none. Law: `read` of what a node writes is the same node. A
        kind that does not travel returns None.
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

    def settled(self) -> Self:
        """Return the node with its pending expressions replaced by what they are over the columns of its
        source; see `expressions/pending.py`.
        """
        return self

    @cached_property
    def schema(self) -> Schema:
        """The columns of its rows."""
        raise NotImplementedError

    @cached_property
    def digest(self) -> bytes:
        """A hash that is equal for equal nodes, in every process."""
        parts = [self.kind, self.data(), [child.digest for child in self.children]]
        packed = cast("bytes", msgpack.packb(parts))
        return blake2b(packed, digest_size=_DIGEST_BYTES).digest()

    @cached_property
    def free(self) -> frozenset[int]:
        """The depths of the variables that it depends on."""
        return frozenset[int]().union(*(child.free for child in self.children))

    def describe(self) -> str:
        """Return one line, as the user might have written it; children aside."""
        return self.kind

    def __repr__(self) -> str:
        return self.describe()


@dataclass(frozen=True, eq=False, repr=False)
class Leaf(Node):
    """An operator without children; its columns are declared."""

    columns: Schema

    @cached_property
    def schema(self) -> Schema:
        """As declared."""
        return self.columns


@dataclass(frozen=True, eq=False, repr=False)
class Unary(Node):
    """An operator over one other node."""

    source: Node

    @property
    def children(self) -> tuple[Node, ...]:
        """The source."""
        return (self.source,)

    def with_children(self, children: tuple[Node, ...]) -> Self:
        """The same operator over another source."""
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
    """Return True if these are, one by one, the same objects."""
    return all(a is b for a, b in zip(left, right, strict=True))
