"""Loops, and what leaves them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

from ...columns.schema import Schema
from .node import Node, same

__all__ = ["Leave", "LetRec"]


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
        if same(children, self.children):
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
