"""Which columns an expression may name, and the subqueries in it, which wait for the relation around them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from timely.user_code.call_site import CallSite

from ...columns.schema import Schema
from ...expressions.expression import Expr
from ..algebra.attributes import Attribute, schema_of
from ..algebra.relations import AggregateCall, ApplyKind, ApplyOf, Relation, SortKey
from ..reading.expressions.values import Value

__all__ = ["PlanRows", "PlanScope", "WaitingSubquery"]


@dataclass(frozen=True)
class PlanRows:
    """A relation, and which of its attributes each column of Spark's is, by the number in its `exprId`.

    Spark may name a column twice. `order` is that of a sort beneath, where a limit above asks for it.
    """

    relation: Relation
    columns: tuple[tuple[int, Attribute], ...]
    order: tuple[SortKey, ...] = ()
    pivoted: Mapping[int, tuple[Attribute, ...]] = field(default_factory=dict)
    """For a list that a pivot makes, by its number: the attribute of each element."""

    def typed(self, relation: Relation) -> PlanRows:
        """Return the same columns of a relation above, with the types that they have there."""
        there = {each.name: each for each in relation.attributes}
        columns = tuple((number, there.get(each.name, each)) for number, each in self.columns)
        return PlanRows(relation, columns, (), self.pivoted)


@dataclass(frozen=True)
class WaitingSubquery:
    """A subquery of an expression that is not applied yet."""

    right: Relation
    kind: ApplyKind
    members: tuple[Expr, ...]
    mark: Attribute | None
    site: CallSite

    def to(self, left: Relation, *, is_needed: bool = False) -> Relation:
        """Return the subquery applied to a relation."""
        needed = is_needed and self.kind == "scalar"
        return ApplyOf(left, self.right, self.kind, self.members, self.mark, (), needed, site=self.site)

    @property
    def adds(self) -> frozenset[str]:
        """Return the names of the columns that it adds."""
        return frozenset(self.right.names) if self.mark is None else frozenset((self.mark.name,))


@dataclass
class PlanScope:
    """What an expression may name where it stands.

    `columns` are those of the rows, `outer` is the scope of the query around this one. `values` has values
    that stand for whole expressions, by their texts: the keys of groups. With `calls`, aggregates may stand
    here, whose operands are read in `inner`.
    """

    columns: Mapping[int, Attribute]
    outer: PlanScope | None = None
    waiting: list[WaitingSubquery] = field(default_factory=list)
    values: dict[str, Value] = field(default_factory=dict)
    inner: PlanScope | None = None
    calls: dict[str, AggregateCall] | None = None
    pivoted: Mapping[int, tuple[Attribute, ...]] = field(default_factory=dict)
    pivots: dict[int, tuple[Attribute, ...]] = field(default_factory=dict)

    @staticmethod
    def of(*rows: PlanRows, outer: PlanScope | None) -> PlanScope:
        """Return the scope of expressions over the columns of relations."""
        columns = {number: attribute for each in rows for number, attribute in each.columns}
        pivoted = {number: parts for each in rows for number, parts in each.pivoted.items()}
        return PlanScope(columns, outer, pivoted=pivoted)

    def attached(self, relation: Relation) -> Relation:
        """Return the relation with all waiting subqueries applied to it."""
        for each in self.waiting:
            relation = each.to(relation)
        self.waiting.clear()
        return relation

    def schema(self, relation: Relation) -> Schema:
        """Return the columns of a relation, and those of queries around it."""
        attributes = {each.name: each for each in relation.attributes}
        scope = self.outer
        while scope is not None:
            attributes = {**{each.name: each for each in scope.columns.values()}, **attributes}
            scope = scope.outer
        return schema_of(attributes.values())
