"""A condition of WHERE, HAVING or QUALIFY, taken apart, and the rows where it holds.

What reads nothing of a list of FROM, and cannot fail, filters the rows before that list is taken apart. So a
row that it excludes cannot fail in the list. What may fail itself stays behind the list: a row of an empty
list is no row of FROM, and `e = 1 AND CAST(t AS INT) > 0` has nothing to cast where no element is 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from sqlglot import exp

from timely.user_code.call_site import CallSite

from ...collections.conditions.equalities import is_null_with
from ...columns.symbols.table import SymbolTable
from ...errors import ExpressionError
from ...expressions.evaluation import Compiler
from ...expressions.expression import Expr
from ..algebra.attributes import schema_of
from ..algebra.relations import ApplyOf, JoinOf, PeriodBound, PeriodOf, Relation, Selection, Unnesting
from .expressions.stages import PendingApply

__all__ = ["Conditions"]


@dataclass(frozen=True)
class Conditions:
    """A condition: EXISTS and IN that must hold or not hold, comparisons of a time with now(), and all else,
    for which `pending` subqueries are computed.
    """

    node: exp.Expression
    plain: list[Expr] = field(default_factory=list)
    memberships: list[PendingApply] = field(default_factory=list)
    bounds: list[PeriodBound] = field(default_factory=list)
    pending: list[PendingApply] = field(default_factory=list)

    @property
    def exprs(self) -> list[Expr]:
        """Return what it computes, subqueries apart."""
        return [*self.plain, *(each.at for each in self.bounds)]

    def over(self, relation: Relation, site: CallSite, change: Callable[[Expr], Expr]) -> Relation:
        """Return the rows where it holds; `change` changes what it reads."""
        rest = self
        for list_ in _lists(relation):
            others = frozenset(relation.names).difference(list_.input.names)
            before, rest = rest._apart(others, list_.input)
            if before.exprs or before.memberships:
                relation = _with_input(relation, list_, before.over(list_.input, site, change))
        return rest._filtered(relation, site, change)

    def _apart(self, others: frozenset[str], rows: Relation) -> tuple[Conditions, Conditions]:
        """Return the parts that read none of these columns and cannot fail, with their subqueries, and the
        rest; `rows` have all columns but these. A value that is compared with a subquery's counts as one that
        cannot fail.
        """
        reading, added = set(others), set[str]()
        for each in self.pending:
            added |= each.adds
            if not reading.isdisjoint(_reads(each)):
                reading |= each.adds
        before, rest = Conditions(self.node), Conditions(self.node)
        for expr in self.plain:
            stays = added.isdisjoint(expr.columns()) and _may_fail(expr, rows)
            (before if reading.isdisjoint(expr.columns()) and not stays else rest).plain.append(expr)
        for bound in self.bounds:
            (before if reading.isdisjoint(bound.at.columns()) else rest).bounds.append(bound)
        for each in self.memberships:
            stays = any(_may_fail(member, rows) for member in each.members)
            (before if reading.isdisjoint(_reads(each)) and not stays else rest).memberships.append(each)
        needed = frozenset[str]().union(
            *(each.columns() for each in before.exprs), *(_reads(each) for each in before.memberships)
        )
        for each in reversed(self.pending):
            is_needed = not needed.isdisjoint(each.adds)
            (before if is_needed else rest).pending.insert(0, each)
            if is_needed:
                needed |= _reads(each)
        return before, rest

    def _filtered(self, relation: Relation, site: CallSite, change: Callable[[Expr], Expr]) -> Relation:
        """Return the rows where it holds: first those that need no subquery."""
        added = frozenset[str]().union(*(each.adds for each in self.pending))
        plain = [change(each) for each in self.plain]
        first = tuple(each for each in plain if added.isdisjoint(each.columns()))
        last = tuple(each for each in plain if not added.isdisjoint(each.columns()))
        if first:
            relation = Selection(relation, first, site=site)
        for membership in self.memberships:
            if all(added.isdisjoint(each.columns()) for each in membership.members):
                relation = membership.to(relation, change)
        for pending in self.pending:
            needed = any(is_null_with(each, pending.adds) for each in last)
            relation = replace(pending, is_needed=needed).to(relation, change)
        if self.bounds:
            bounds = tuple(replace(each, at=change(each.at)) for each in self.bounds)
            relation = PeriodOf(relation, bounds, site=site)
        if last:
            relation = Selection(relation, last, site=site)
        for membership in self.memberships:
            if not all(added.isdisjoint(each.columns()) for each in membership.members):
                relation = membership.to(relation, change)
        return relation


def _reads(each: PendingApply) -> frozenset[str]:
    """Return the columns that a subquery reads of the rows that it is applied to, and others."""
    return each.right.free.union(*(member.columns() for member in each.members))


def _may_fail(expr: Expr, rows: Relation) -> bool:
    """Return True if an expression may fail on one of these rows, sums that leave 64 bits apart."""
    if not expr.columns() <= frozenset(rows.names):  # it reads rows of an outer query, too
        return True
    try:
        return Compiler(schema_of(rows.attributes), None, SymbolTable()).compile(expr).can_fail
    except ExpressionError:
        return True


def _lists(relation: Relation) -> Iterator[Unnesting]:
    """Yield the last list on each way into FROM; each row of what it takes apart is one of FROM, or none."""
    if isinstance(relation, Unnesting):
        yield relation
    elif isinstance(relation, ApplyOf):
        yield from _lists(relation.left)
    elif isinstance(relation, JoinOf) and relation.how in ("inner", "left"):
        yield from _lists(relation.left)
        if relation.how == "inner":
            yield from _lists(relation.right)


def _with_input(relation: Relation, list_: Unnesting, rows: Relation) -> Relation:
    """Return FROM with other rows in place of those that a list takes apart."""
    if relation is list_:
        return replace(list_, input=rows)
    if isinstance(relation, ApplyOf):
        return replace(relation, left=_with_input(relation.left, list_, rows))
    if isinstance(relation, JoinOf):
        left, right = (_with_input(side, list_, rows) for side in (relation.left, relation.right))
        return replace(relation, left=left, right=right)
    return relation
