"""What an expression may contain where it stands: columns of a scope, subqueries, aggregates, windows.

A subquery in an expression becomes a column: the expression names it, and the stage remembers the subquery
until the relation is there to which it is applied. Aggregates and window functions alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from timely.user_code.call_site import CallSite

from ....expressions.expression import ColumnRef, Expr, Operation
from ....operators.reducing.window_parts import Frame
from ...algebra.attributes import Attribute
from ...algebra.relations import (
    AggregateCall,
    ApplyKind,
    ApplyOf,
    Relation,
    SortKey,
    WindowAnswer,
    WindowOf,
)
from .scopes import NameScope
from .values import Value

__all__ = ["AggregateCalls", "PendingApply", "Stage", "WindowCalls", "WindowParts", "replaced"]


@dataclass(frozen=True)
class PendingApply:
    """A subquery of an expression that is not applied yet."""

    right: Relation
    kind: ApplyKind
    members: tuple[Expr, ...]
    mark: Attribute | None
    site: CallSite
    is_needed: bool = False

    def to(self, left: Relation, change: Callable[[Expr], Expr] = lambda expr: expr) -> Relation:
        """Return the subquery applied to a relation; `change` changes what it compares."""
        members = tuple(change(each) for each in self.members)
        needed = self.is_needed and self.kind == "scalar"
        return ApplyOf(left, self.right, self.kind, members, self.mark, (), needed, site=self.site)

    @property
    def adds(self) -> frozenset[str]:
        """Return the names of the columns that it adds."""
        return frozenset(self.right.names) if self.mark is None else frozenset((self.mark.name,))


@dataclass
class AggregateCalls:
    """The aggregates of a query, each different one once, and what its arguments need."""

    calls: list[AggregateCall] = field(default_factory=list)
    by_text: dict[str, AggregateCall] = field(default_factory=dict)
    keys: list[str] = field(default_factory=list)
    """The texts of the keys."""
    groupings: dict[tuple[int, ...], Attribute] = field(default_factory=dict)
    """Columns for GROUPING(…), by the places of the keys that they are about."""


@dataclass
class WindowParts:
    """Window functions with equal keys, order and frame."""

    keys: tuple[Expr, ...]
    order: tuple[SortKey, ...]
    frame: Frame | None
    answers: list[WindowAnswer]
    site: CallSite

    @property
    def reads(self) -> list[Expr]:
        """Return the expressions that it reads."""
        arguments = [each.argument for each in self.answers if each.argument is not None]
        return [*self.keys, *(each.expr for each in self.order), *arguments]

    def over(self, relation: Relation, change: Callable[[Expr], Expr]) -> WindowOf:
        """Return the relation with these answers; `change` changes what they read."""
        order = tuple(replace(each, expr=change(each.expr)) for each in self.order)
        answers = tuple(
            replace(each, argument=None if each.argument is None else change(each.argument))
            for each in self.answers
        )
        return WindowOf(
            relation, tuple(change(key) for key in self.keys), order, self.frame, answers, site=self.site
        )


@dataclass
class WindowCalls:
    """The window functions of a query, by the windows that they share, and each by its text."""

    windows: dict[str, WindowParts] = field(default_factory=dict)
    answers: dict[str, Value] = field(default_factory=dict)
    named: set[str] = field(default_factory=set)
    """Names of the WINDOW clause that were read."""


@dataclass
class Stage:
    """Where an expression stands; `what` names the place in messages."""

    what: str
    scope: NameScope
    aggregates: AggregateCalls | None = None
    windows: WindowCalls | None = None
    pending: list[PendingApply] = field(default_factory=list)
    aliases: dict[str, Value] = field(default_factory=dict)
    """Values that have names in the SELECT list; they come after the columns of the scope."""
    inner: Stage | None = None
    """The stage of arguments of aggregates: before the groups."""

    named_windows: dict[str, exp.Expression] = field(default_factory=dict)

    def attached(self, relation: Relation, change: Callable[[Expr], Expr] = lambda expr: expr) -> Relation:
        """Return the relation with all pending subqueries applied to it."""
        for each in self.pending:
            relation = each.to(relation, change)
        self.pending.clear()
        return relation


def replaced(expr: Expr, by_text: Mapping[str, Expr]) -> Expr:
    """Return an expression in which parts, by their texts, are replaced; the largest parts first."""
    if not by_text:
        return expr
    if isinstance(expr, ColumnRef | Operation):
        other = by_text.get(expr.describe())
        if other is not None:
            return other
    if isinstance(expr, Operation):
        parts = [replaced(part, by_text) for part in expr.operands]
        if any(new is not old for new, old in zip(parts, expr.operands, strict=True)):
            return Operation(expr.op, tuple(parts), expr.to)
    return expr
