"""Loops, rows that enter them by priority, and results that leave them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

from ...columns.schema import Schema
from ...errors import ExpressionError, SchemaError
from ...expressions.expression import Expr
from ..expressions import expr_data, expr_of, schema_data, schema_of
from ..functions import UserFunctions
from .leaves import Variable
from .node import LOOPS_MAX, Leaf, Node, Unary, same

__all__ = ["ByPriority", "Empty", "LeaveLoop", "LetRec"]


@dataclass(frozen=True, eq=False, repr=False)
class LetRec(Node):
    """A loop: variable i of `depth` begins as `initials[i]` and becomes `bodies[i]` in every iteration.

    A loop has one result for each variable, which `LeaveLoop` picks. It ends when nothing changes any more.
    More than `iterations_max` iterations are an error; if it `stops`, it ends after exactly that many. Users
    observe `effects` inside the loop; these need not lead to a result.
    """

    kind: ClassVar[str] = "loop"
    name: str
    depth: int
    initials: tuple[Node, ...]
    bodies: tuple[Node, ...]
    iterations_max: int
    effects: tuple[Node, ...] = ()
    stops: bool = False

    @property
    def children(self) -> tuple[Node, ...]:
        """Initials, bodies, effects."""
        return (*self.initials, *self.bodies, *self.effects)

    def with_children(self, children: tuple[Node, ...]) -> Self:
        """The same loop over other children; its variables keep their depth."""
        if same(children, self.children):
            return self
        count = len(self.initials)
        initials, bodies, effects = children[:count], children[count : 2 * count], children[2 * count :]
        return replace(self, initials=initials, bodies=bodies, effects=effects)

    def data(self) -> list[object]:
        """Depth, number of variables, limit, the name for counters and errors; then True if it stops."""
        fields: list[object] = [self.depth, len(self.initials), self.iterations_max, self.name]
        return [*fields, True] if self.stops else fields

    @classmethod
    def read(cls, data: list[object], children: tuple[Node, ...], functions: UserFunctions) -> Self | None:
        """Return the node with this data over `children`; None if there is none."""
        match data:
            case [int(depth), int(count), int(limit), str(name), *rest] if (
                rest in ([], [True])
                and 1 <= depth <= LOOPS_MAX
                and 1 <= limit < 2**62
                and 1 <= count <= len(children) // 2
            ):
                initials, bodies, effects = (
                    children[:count],
                    children[count : 2 * count],
                    children[2 * count :],
                )
                for initial, body in zip(initials, bodies, strict=True):
                    if (
                        isinstance(initial, LetRec)
                        or isinstance(body, LetRec)
                        or initial.schema != body.schema
                    ):
                        raise SchemaError(f"the loop {name!r} of a plan changes its columns")
                _check_variables((*bodies, *effects), depth, initials)
                loop = cls(name, depth, initials, bodies, limit, effects, bool(rest))
                if max(loop.free, default=0) != depth - 1:
                    raise SchemaError(f"the loop {name!r} of a plan is not where it belongs")
                return loop
        return None

    @cached_property
    def free(self) -> frozenset[int]:
        """The free variables of its parts, without its own."""
        inner = frozenset[int]().union(*(part.free for part in (*self.bodies, *self.effects)))
        return (inner - {self.depth}).union(*(initial.free for initial in self.initials))

    @cached_property
    def schema(self) -> Schema:
        """The columns of its first variable."""
        return self.initials[0].schema

    def describe(self) -> str:
        """Return its name, and the number of iterations if that is fixed."""
        return f"loop {self.name}" + (f", {self.iterations_max:,} times" if self.stops else "")


def _check_variables(parts: tuple[Node, ...], depth: int, initials: tuple[Node, ...]) -> None:
    """Raise SchemaError unless variables of a loop have its columns, and other loops in it are deeper."""
    waiting, seen = list(parts), set[bytes]()
    while waiting:
        node = waiting.pop()
        if depth not in node.free or node.digest in seen:
            continue
        seen.add(node.digest)
        if isinstance(node, LetRec) and node.depth <= depth:
            raise SchemaError(f"the loop {node.name!r} of a plan is not as deep as what it uses")
        if isinstance(node, Variable):
            if node.index >= len(initials) or node.schema != initials[node.index].schema:
                raise SchemaError(f"{node.describe()} of a plan has other columns than its loop begins with")
        waiting.extend(node.children)


@dataclass(frozen=True, eq=False, repr=False)
class LeaveLoop(Node):
    """The final value of variable number `index` of a loop."""

    kind: ClassVar[str] = "leave"
    loop: LetRec
    index: int

    @property
    def children(self) -> tuple[Node, ...]:
        """The loop."""
        return (self.loop,)

    def with_children(self, children: tuple[Node, ...]) -> Self:
        """The same variable of another loop."""
        (loop,) = children
        assert isinstance(loop, LetRec)
        return self if loop is self.loop else replace(self, loop=loop)

    def data(self) -> list[object]:
        """The number."""
        return [self.index]

    @classmethod
    def read(cls, data: list[object], children: tuple[Node, ...], functions: UserFunctions) -> Self | None:
        """Return the node with this data over `children`; None if there is none."""
        match data, children:
            case [int(index)], [LetRec() as loop] if 0 <= index < len(loop.bodies):
                return cls(loop, index)
        return None

    @cached_property
    def schema(self) -> Schema:
        """The columns of the variable."""
        return self.loop.initials[self.index].schema

    def describe(self) -> str:
        """Return which loop it leaves."""
        return f"leave {self.loop.name}"


@dataclass(frozen=True, eq=False, repr=False)
class Empty(Leaf):
    """No rows, ever: the initial value of a variable whose rows all come from its body."""

    kind: ClassVar[str] = "empty"

    def data(self) -> list[object]:
        """Columns."""
        return [schema_data(self.columns)]

    @classmethod
    def read(cls, data: list[object], children: tuple[Node, ...], functions: UserFunctions) -> Self | None:
        """Return the node with this data over `children`; None if there is none."""
        match data, children:
            case [schema], []:
                return cls(schema_of(schema))
        return None


@dataclass(frozen=True, eq=False, repr=False)
class ByPriority(Unary):
    """In each iteration of the loop of this depth: the rows of `source` whose turn has come.

    `source` belongs to the scope around the loop. The rows with the least `priority` come first;
    `operators/loops/priority.py` defines the iteration of each row. From then on the row stays.
    """

    kind: ClassVar[str] = "by_priority"
    priority: Expr
    depth: int

    def data(self) -> list[object]:
        """The expression, and the depth."""
        return [expr_data(self.priority), self.depth]

    @classmethod
    def read(cls, data: list[object], children: tuple[Node, ...], functions: UserFunctions) -> Self | None:
        """Return the node with this data over `children`; None if there is none."""
        match data, children:
            case [priority, int(depth)], [source] if (
                1 <= depth <= LOOPS_MAX and max(source.free, default=0) < depth
            ):
                return cls(source, expr_of(priority), depth)
        return None

    @cached_property
    def expressions(self) -> tuple[Expr, ...]:
        """The priority."""
        return (self.priority,)

    @cached_property
    def free(self) -> frozenset[int]:
        """The free variables of the source, and the loop that its rows enter."""
        return self.source.free | {self.depth}

    @cached_property
    def schema(self) -> Schema:
        """The same columns; raises ExpressionError if the priority is no whole number."""
        type_ = self.priority.type_in(self.source.schema)
        if type_.kind != "int" or type_.nullable:
            raise ExpressionError(
                f"a priority is a whole number that is never null; {self.priority.describe()} is {type_}. "
                "Write priority=col.x, or of one that may be null col.x.fill_null(0)"
            )
        return self.source.schema

    def describe(self) -> str:
        """Return the priority by which rows come in."""
        return f"come in by {self.priority.describe()}"
