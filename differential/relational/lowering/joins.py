"""Joins in an order.

Inner joins, filters and memberships (EXISTS, IN) that stand upon one another are one *cluster*: parts, and
conditions over them. A condition over one part filters that part; a membership that reads one part only is
applied to it, before any join.

There are no statistics. Filters have a *strength*: one that asks for certain values is strong. A part with a
strong filter and one neighbour, as equalities connect them, is joined to that neighbour before all else,
which makes it strong, too. Then the parts are joined one after another, from the first one of FROM: first
those that an equality connects with what is joined already, of these one with a known key (PRIMARY KEY,
groups) that the equalities have, so that a row finds one partner; of equal ones that with the most
equalities, then that with the strongest filter, then the first as written. Parts that nothing connects come
last, and make pairs of all rows.

Subqueries that add columns (a scalar in a condition, LATERAL) are joined behind all parts: so their domain is
as small as it can be. So are memberships with a domain, if another part has a filter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from timely.user_code.call_site import at_site

from ...collections.collection import Collection
from ...collections.conditions.equalities import (
    STRONG,
    Equalities,
    Equality,
    conjuncts,
    equality_between,
    implied,
    strength,
)
from ...collections.conditions.keys import JoinKeys
from ...expressions.expression import ColumnRef, Expr, col
from ...plan.facts import has_key
from ..algebra.relations import ApplyOf, JoinOf, PeriodOf, Relation, Selection
from .applies import filtered_by, part_of
from .domains import Domain, Lowers, is_correlated, renamed
from .periods import present

__all__ = ["is_cluster", "joined", "outer_joined"]


def is_cluster(relation: Relation) -> bool:
    """Return True for an inner join, a filter, a condition on now(), or a membership."""
    return (
        isinstance(relation, Selection | PeriodOf)
        or (isinstance(relation, JoinOf) and relation.how == "inner")
        or (isinstance(relation, ApplyOf) and (relation.kind in ("semi", "anti") or _adds(relation)))
    )


def _adds(apply: ApplyOf) -> bool:
    """Return True for a subquery whose rows are joined as those of any part."""
    return apply.kind == "inner" or (apply.kind == "scalar" and apply.is_needed)


@dataclass
class _JoinCluster:
    """What is to be joined: parts that are collections already, conditions, memberships."""

    parts: list[Collection] = field(default_factory=list)
    conditions: list[Expr] = field(default_factory=list)
    periods: list[PeriodOf] = field(default_factory=list)
    memberships: list[ApplyOf] = field(default_factory=list)
    subqueries: list[ApplyOf] = field(default_factory=list)

    @property
    def names(self) -> frozenset[str]:
        """Return the names of all columns that it will have."""
        parts = frozenset().union(*(each.schema.names for each in self.parts))
        return parts.union(*(each.right.names for each in self.subqueries))


def joined(lower: Lowers, relation: Relation, domain: Domain | None) -> Collection:
    """Return the rows of a cluster, with the columns of `domain` if there is one."""
    cluster = _JoinCluster()
    if domain is not None:
        cluster.parts.append(domain.rows)
    _gather(lower, relation, domain, cluster)
    columns = [frozenset(part.schema.names) for part in cluster.parts]
    cluster.conditions += [
        each for condition in cluster.conditions for names in columns for each in implied(condition, names)
    ]
    strengths = [strength(names, cluster.conditions) for names in columns]
    waiting = _put_off(cluster, strengths) if domain is None else []
    parts = [_reduced(lower, part, cluster) for part in cluster.parts]
    strengths = [
        max(old, int(one is not other))
        for old, one, other in zip(strengths, parts, cluster.parts, strict=True)
    ]
    if domain is None:
        _absorb(lower, parts, strengths, cluster)
    rows = parts.pop(0)
    del strengths[0]
    while parts:
        number = _next(rows, parts, strengths, cluster.conditions)
        del strengths[number]
        rows = _with(rows, parts.pop(number), cluster)
        rows = _reduced(lower, rows, cluster)
    cluster.memberships += waiting
    rows = _reduced(lower, rows, cluster)
    for apply in cluster.subqueries:
        with at_site([apply.site]):
            subquery = part_of(lower, rows, apply)
        theirs = {name: lower.fresh(name) for name in subquery.outer}
        cluster.conditions += [col[mine].eq_null_safe(col[other]) for mine, other in theirs.items()]
        rows = _reduced(lower, _with(rows, renamed(subquery.rows, theirs), cluster), cluster)
    assert not (cluster.conditions or cluster.memberships or cluster.periods), (
        "a condition reads what nobody has"
    )
    return rows


def _put_off(cluster: _JoinCluster, strengths: Sequence[int]) -> list[ApplyOf]:
    """Take memberships out of the cluster that are better looked at behind all joins, and return them: those
    whose domain the filter of another part makes smaller.
    """
    outcome: list[ApplyOf] = []
    for membership in cluster.memberships:
        reads = membership.right.free & cluster.names
        others = [
            strength
            for part, strength in zip(cluster.parts, strengths, strict=True)
            if reads.isdisjoint(part.schema.names)
        ]
        if reads and any(others):
            outcome.append(membership)
    cluster.memberships = [each for each in cluster.memberships if each not in outcome]
    return outcome


def _absorb(lower: Lowers, parts: list[Collection], strengths: list[int], cluster: _JoinCluster) -> None:
    """Join parts with a strong filter that equalities connect with one other part only to that part, first:
    region to nation, nation to supplier. A part that the first one makes smaller, if that has a filter, waits
    for it.
    """
    number = len(parts) - 1
    while number > 0 and len(parts) > 2:
        if strengths[number] < STRONG:
            number -= 1
            continue
        equalities = Equalities(cluster.conditions)
        names = [frozenset(part.schema.names) for part in parts]
        near = [
            other
            for other in range(len(parts))
            if other != number and equalities.between(names[other], names[number])
        ]
        other = near[0] if len(near) == 1 else None
        if other is None or (other and strengths[0] and equalities.between(names[0], names[other])):
            number -= 1
            continue
        parts[other] = _reduced(lower, _with(parts[other], parts[number], cluster), cluster)
        strengths[other] = STRONG
        del parts[number], strengths[number]
        number = len(parts) - 1


def _gather(lower: Lowers, relation: Relation, domain: Domain | None, cluster: _JoinCluster) -> None:
    """Take a cluster apart."""
    if isinstance(relation, Selection):
        below, rest = _pushed(relation)
        _gather(lower, below, domain, cluster)
        cluster.conditions += rest
    elif isinstance(relation, PeriodOf):
        below = relation.input
        added = _added(below)
        reads = frozenset(name for each in relation.expressions for name in each.columns())
        if added is not None and added.isdisjoint(reads):
            assert isinstance(below, JoinOf | ApplyOf)
            left = replace(relation, input=below.left)
            below = replace(below, left=left)
        else:
            cluster.periods.append(relation)
        _gather(lower, below, domain, cluster)
    elif isinstance(relation, JoinOf) and relation.how == "inner":
        _gather(lower, relation.left, domain, cluster)
        _gather(lower, relation.right, domain, cluster)
        cluster.conditions += [part for each in relation.conditions for part in conjuncts(each)]
    elif isinstance(relation, ApplyOf) and relation.kind in ("semi", "anti"):
        _gather(lower, relation.left, domain, cluster)
        cluster.memberships.append(relation)
    elif isinstance(relation, ApplyOf) and _adds(relation):
        _gather(lower, relation.left, domain, cluster)
        cluster.subqueries.append(relation)
        cluster.conditions += [part for each in relation.conditions for part in conjuncts(each)]
    elif domain is not None and is_correlated(relation, domain):
        rows = lower.carrying(relation, domain)
        theirs = {name: lower.fresh(name) for name in domain.names}
        cluster.parts.append(renamed(rows, theirs))
        cluster.conditions += [col[mine].eq_null_safe(col[other]) for mine, other in theirs.items()]
    else:
        cluster.parts.append(lower.rows(relation))


def _pushed(selection: Selection) -> tuple[Relation, list[Expr]]:
    """Return what a filter stands on, with the conditions that hold further down in it, and the others.

    A condition goes to the left of an outer join, or of a subquery, if it reads nothing that this adds.
    """
    conditions = [part for each in selection.conditions for part in conjuncts(each)]
    below = selection.input
    added = _added(below)
    if added is None:
        return below, conditions
    assert isinstance(below, JoinOf | ApplyOf)
    pushed = tuple(each for each in conditions if added.isdisjoint(each.columns()))
    if pushed:
        below = replace(below, left=Selection(below.left, pushed, site=selection.site))
    return below, [each for each in conditions if not added.isdisjoint(each.columns())]


def _added(below: Relation) -> frozenset[str] | None:
    """Return what a left join, or a subquery, adds to the rows of its left; None for other relations."""
    if not isinstance(below, JoinOf | ApplyOf) or is_cluster(below):
        return None
    if isinstance(below, JoinOf) and below.how != "left":
        return None
    return frozenset(below.names) - frozenset(below.left.names)


def _reduced(lower: Lowers, rows: Collection, cluster: _JoinCluster) -> Collection:
    """Return the rows that meet all conditions on their columns; remove these from the cluster."""
    names = frozenset(rows.schema.names)
    now = [each for each in cluster.conditions if each.columns() <= names]
    cluster.conditions = [each for each in cluster.conditions if not each.columns() <= names]
    if now:
        rows = rows.filter(*now)
    for period in list(cluster.periods):
        if frozenset(name for each in period.expressions for name in each.columns()) <= names:
            with at_site([period.site]):
                rows = present(lower, rows, period)
            cluster.periods.remove(period)
    for membership in list(cluster.memberships):
        reads = (membership.right.free & cluster.names).union(
            *(each.columns() for each in membership.members)
        )
        if reads <= names:
            with at_site([membership.site]):
                rows = filtered_by(lower, rows, membership)
            cluster.memberships.remove(membership)
    return rows


def _next(
    rows: Collection, parts: Sequence[Collection], strengths: Sequence[int], conditions: Sequence[Expr]
) -> int:
    """Return the place of the part to be joined next."""
    equalities, names = Equalities(conditions), frozenset(rows.schema.names)

    def worth(number: int) -> tuple[bool, bool, int, int, int]:
        pairs = equalities.between(names, parts[number].schema.names)
        keys = frozenset(each.right.name for each in pairs if isinstance(each.right, ColumnRef))
        is_one = bool(pairs) and has_key(parts[number].node, keys)
        return bool(pairs), is_one, len(pairs), strengths[number], -number

    return max(range(len(parts)), key=worth)


def _with(rows: Collection, part: Collection, cluster: _JoinCluster) -> Collection:
    """Return the pairs of two parts; remove the equalities between them from the cluster."""
    keys = JoinKeys(rows, part)
    names, others = frozenset(rows.schema.names), frozenset(part.schema.names)
    rest = []
    for condition in cluster.conditions:
        equality = equality_between(condition, names, others)
        if equality is None or not keys.take(equality):
            rest.append(condition)
    cluster.conditions = rest
    return keys.inner()


def outer_joined(lower: Lowers, relation: JoinOf, domain: Domain | None) -> Collection:
    """Return a left, right or full join, with the columns of `domain` if there is one."""
    if relation.how == "right":
        swapped = JoinOf(relation.right, relation.left, "left", relation.conditions, site=relation.site)
        return outer_joined(lower, swapped, domain)
    conditions = [part for each in relation.conditions for part in conjuncts(each)]
    left = lower.carrying(relation.left, domain)
    carries = domain is not None and (relation.how == "full" or is_correlated(relation.right, domain))
    right = lower.carrying(relation.right, domain) if carries else lower.rows(relation.right)
    theirs: dict[str, str] = {}
    if carries:
        assert domain is not None
        theirs = {name: lower.fresh(name) for name in domain.names}
        right = renamed(right, theirs)
    keys = JoinKeys(left, right)
    for mine, other in theirs.items():
        keys.take(Equality(col[mine], col[other], True))
    names, others = frozenset(left.schema.names), frozenset(right.schema.names)
    rest = []
    for condition in conditions:
        equality = equality_between(condition, names, others)
        mixes = (
            equality is not None and relation.how == "full" and equality.is_null_safe not in keys.null_safe
        )
        if equality is None or (mixes and keys.pairs) or not keys.take(equality):
            rest.append(condition)
    return keys.outer("outer" if relation.how == "full" else "left", rest, lower.fresh, theirs)
