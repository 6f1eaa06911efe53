"""The relations: what a query is made of, before it is made of collections.

    Scan            a collection, by name                  SingleRow       one row, FROM left out
    ValueRows       constant rows                          ProjectionOf      columns, computed
    Selection       the rows where conditions hold         DistinctRows    each row once
    JoinOf          pairs of rows                          ApplyOf         a subquery, for each row
    Aggregation     groups, or several sets of them        WindowOf        answers from the rows around
    FirstRowsOf       the first rows of an order             SetOperation    UNION, EXCEPT, INTERSECT
    Recursion       a fixed point, and its variables       RecursionVariable   one of them
    Unnesting       a row for each element of a list    PeriodOf        rows, while now() is within bounds

A relation has `attributes`, the columns that relations above may name, and `site`, its place in the text.
Multiplicities are those of SQL: a relation is a multiset.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias

from timely.user_code.call_site import UNKNOWN_SITE, CallSite

from ...expressions.expression import Expr
from ...operators.reducing.window_parts import Frame
from .attributes import Attribute

__all__ = [
    "AggregateCall",
    "Aggregation",
    "ApplyKind",
    "ApplyOf",
    "Bodies",
    "DistinctRows",
    "FirstRowsOf",
    "JoinKind",
    "JoinOf",
    "PeriodBound",
    "PeriodOf",
    "ProjectionOf",
    "Recursion",
    "RecursionVariable",
    "Relation",
    "Scan",
    "Selection",
    "SetKind",
    "SetOperation",
    "SingleRow",
    "SortKey",
    "Unnesting",
    "ValueRows",
    "WindowAnswer",
    "WindowOf",
]

JoinKind: TypeAlias = Literal["inner", "left", "right", "full"]
ApplyKind: TypeAlias = Literal["semi", "anti", "mark", "scalar", "inner", "left"]
SetKind: TypeAlias = Literal["union", "except", "intersect"]


@dataclass(frozen=True, eq=False)
class Relation:
    """A part of a query; compared by identity, since a part that stands twice is shared."""

    site: CallSite = field(default=UNKNOWN_SITE, kw_only=True)

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """Return the columns."""
        raise NotImplementedError

    @property
    def inputs(self) -> tuple[Relation, ...]:
        """Return the relations that this one reads."""
        return ()

    @property
    def expressions(self) -> Iterator[Expr]:
        """Return the expressions that this relation computes by itself."""
        return iter(())

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the attributes."""
        return tuple(each.name for each in self.attributes)

    @cached_property
    def built(self) -> frozenset[str]:
        """Return the names that this relation, or one beneath it, makes."""
        return frozenset(self.names).union(*(each.built for each in self.inputs))

    @cached_property
    def read(self) -> frozenset[str]:
        """Return the names that expressions here and beneath read."""
        own = frozenset(name for each in self.expressions for name in each.columns())
        return own.union(*(each.read for each in self.inputs))

    @cached_property
    def free(self) -> frozenset[str]:
        """Return the names that are read here and made elsewhere: the correlation."""
        return self.read - self.built


@dataclass(frozen=True, eq=False)
class Scan(Relation):
    """All rows of a collection that has a name; `columns` are those of the collection, one per attribute."""

    table: str
    columns: tuple[str, ...]
    made_of_them: tuple[Attribute, ...]

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """Return its columns."""
        return self.made_of_them


@dataclass(frozen=True, eq=False)
class SingleRow(Relation):
    """One row: FROM that is left out. Its one column is for nobody to read."""

    row: Attribute

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """Return its columns."""
        return (self.row,)


@dataclass(frozen=True, eq=False)
class ValueRows(Relation):
    """Rows that the text has: VALUES."""

    made_of_them: tuple[Attribute, ...]
    rows: tuple[tuple[Expr, ...], ...]

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """Return its columns."""
        return self.made_of_them

    @property
    def expressions(self) -> Iterator[Expr]:
        """Return what it computes."""
        return (value for row in self.rows for value in row)


@dataclass(frozen=True, eq=False)
class _Unary(Relation):
    input: Relation

    @property
    def inputs(self) -> tuple[Relation, ...]:
        """Return what it reads."""
        return (self.input,)

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """Return its columns."""
        return self.input.attributes


@dataclass(frozen=True, eq=False)
class ProjectionOf(_Unary):
    """For each row the values of expressions, and nothing else."""

    outputs: tuple[tuple[Attribute, Expr], ...]

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """Return its columns."""
        return tuple(attribute for attribute, _ in self.outputs)

    @property
    def expressions(self) -> Iterator[Expr]:
        """Return what it computes."""
        return (expr for _, expr in self.outputs)


@dataclass(frozen=True, eq=False)
class Selection(_Unary):
    """The rows where all conditions are true."""

    conditions: tuple[Expr, ...]

    @property
    def expressions(self) -> Iterator[Expr]:
        """Return what it computes."""
        return iter(self.conditions)


@dataclass(frozen=True, slots=True)
class PeriodBound:
    """A row is there from the moment `at` on, or until before it: microseconds since 1970, UTC."""

    at: Expr
    is_start: bool


@dataclass(frozen=True, eq=False)
class PeriodOf(_Unary):
    """The rows, each while now() is within all bounds; a bound that is null is never met."""

    bounds: tuple[PeriodBound, ...]

    @property
    def expressions(self) -> Iterator[Expr]:
        """Return what it computes."""
        return (each.at for each in self.bounds)


@dataclass(frozen=True, eq=False)
class DistinctRows(_Unary):
    """Each different row once."""


@dataclass(frozen=True, eq=False)
class JoinOf(Relation):
    """Pairs of rows for which all conditions are true; outer joins keep rows without a partner, too."""

    left: Relation
    right: Relation
    how: JoinKind
    conditions: tuple[Expr, ...]

    @property
    def inputs(self) -> tuple[Relation, ...]:
        """Return what it reads."""
        return (self.left, self.right)

    @property
    def expressions(self) -> Iterator[Expr]:
        """Return what it computes."""
        return iter(self.conditions)

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """Return its columns."""
        left, right = self.how in ("right", "full"), self.how in ("left", "full")
        return (
            *(each.or_null(left) for each in self.left.attributes),
            *(each.or_null(right) for each in self.right.attributes),
        )


@dataclass(frozen=True, eq=False)
class ApplyOf(Relation):
    """For each row of `left` the rows of the subquery `right`, which may read columns of that row.

    semi, anti   the rows of the left for which the membership holds, does not hold
    mark         all of the left, with `mark`: whether the membership holds; null: nobody knows
    scalar       all of the left, with the one row of the right, or nulls; two rows are an error
    inner, left  pairs for which `conditions` are true; and rows of the left without a pair

    Membership: there is a row on the right whose first columns equal `members`, one for each. No members:
    there is any row. Nulls count as in SQL's IN: a member that is null, or a null on the right, is unknown.
    `anti` keeps the rows for which the membership is false, not those for which it is unknown.
    """

    left: Relation
    right: Relation
    kind: ApplyKind
    members: tuple[Expr, ...] = ()
    mark: Attribute | None = None
    conditions: tuple[Expr, ...] = ()
    is_needed: bool = False
    """True for a scalar if rows without one may go: a condition above is not true of null."""

    @property
    def inputs(self) -> tuple[Relation, ...]:
        """Return what it reads."""
        return (self.left, self.right)

    @property
    def expressions(self) -> Iterator[Expr]:
        """Return what it computes."""
        yield from self.members
        yield from self.conditions

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """Return its columns."""
        if self.kind in ("semi", "anti"):
            return self.left.attributes
        if self.kind == "mark":
            assert self.mark is not None
            return (*self.left.attributes, self.mark)
        added = (each.or_null(self.kind != "inner") for each in self.right.attributes)
        return (*self.left.attributes, *added)


@dataclass(frozen=True, slots=True)
class SortKey:
    """A value that orders rows."""

    expr: Expr
    descending: bool
    nulls_last: bool


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """An aggregate of a group: `kind` names a function of `differential.aggregates`."""

    attribute: Attribute
    kind: str
    argument: Expr | None = None
    by: tuple[SortKey, ...] = ()
    is_distinct: bool = False
    condition: Expr | None = None
    """Only the rows where it is true count."""
    second: Expr | None = None
    """The other column of a covariance or a correlation."""
    option: float | str | None = None
    """The share of a percentile, the separator of a text."""

    @property
    def expressions(self) -> Iterator[Expr]:
        """Return what it reads."""
        yield from (each for each in (self.argument, self.condition, self.second) if each is not None)
        yield from (each.expr for each in self.by)


@dataclass(frozen=True, eq=False)
class Aggregation(_Unary):
    """A row for each group of rows with equal keys. Without keys there is one group, even of no rows.

    `sets` names the keys of each grouping, by place; a key that a grouping lacks is null there. `grouping`
    are columns that say so: of each the keys that it is about, as bits, the first key the highest.
    """

    keys: tuple[tuple[Attribute, Expr], ...]
    calls: tuple[AggregateCall, ...]
    sets: tuple[tuple[int, ...], ...] | None = None
    grouping: tuple[tuple[Attribute, tuple[int, ...]], ...] = ()

    @property
    def expressions(self) -> Iterator[Expr]:
        """Return what it computes."""
        yield from (expr for _, expr in self.keys)
        for call in self.calls:
            yield from call.expressions

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """Return its columns."""
        added = (*(call.attribute for call in self.calls), *(each for each, _ in self.grouping))
        return (*(attribute for attribute, _ in self.keys), *added)


@dataclass(frozen=True, slots=True)
class WindowAnswer:
    """A function of the rows around a row: `kind` names a function of windows, or an aggregate."""

    attribute: Attribute
    kind: str
    argument: Expr | None = None
    amount: int = 0
    default: Expr | None = None


@dataclass(frozen=True, eq=False)
class WindowOf(_Unary):
    """All rows, with answers that depend on the rows with equal keys around them, in an order."""

    keys: tuple[Expr, ...]
    order: tuple[SortKey, ...]
    frame: Frame | None
    answers: tuple[WindowAnswer, ...]

    @property
    def expressions(self) -> Iterator[Expr]:
        """Return what it computes."""
        yield from self.keys
        yield from (each.expr for each in self.order)
        for answer in self.answers:
            yield from (each for each in (answer.argument, answer.default) if each is not None)

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """Return its columns."""
        return (*self.input.attributes, *(each.attribute for each in self.answers))


@dataclass(frozen=True, eq=False)
class FirstRowsOf(_Unary):
    """The first `limit` rows behind `offset` of each group with equal `keys`; ties by the other columns."""

    order: tuple[SortKey, ...]
    limit: int | None
    offset: int = 0
    keys: tuple[Expr, ...] = ()

    @property
    def expressions(self) -> Iterator[Expr]:
        """Return what it computes."""
        yield from self.keys
        yield from (each.expr for each in self.order)


@dataclass(frozen=True, eq=False)
class SetOperation(Relation):
    """Rows of two relations with as many columns each, by place."""

    left: Relation
    right: Relation
    kind: SetKind
    is_all: bool
    made_of_them: tuple[Attribute, ...]

    @property
    def inputs(self) -> tuple[Relation, ...]:
        """Return what it reads."""
        return (self.left, self.right)

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """Return its columns."""
        return self.made_of_them


@dataclass(frozen=True, eq=False)
class RecursionVariable(Relation):
    """What a recursive relation has in any iteration; `key` names which one."""

    key: str
    made_of_them: tuple[Attribute, ...]

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """Return its columns."""
        return self.made_of_them


@dataclass(frozen=True, eq=False)
class Recursion(Relation):
    """The fixed point of several relations that read one another; this is the one called `key`.

    `bodies` has for each its columns and the relation that makes its rows of the next iteration. All begin
    empty. `times` ends it after so many iterations; else `iterations_max` without an end are an error.
    """

    key: str
    made_of_them: tuple[Attribute, ...]
    bodies: Bodies
    times: int | None = None
    iterations_max: int | None = None

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """Return its columns."""
        return self.made_of_them

    @property
    def inputs(self) -> tuple[Relation, ...]:
        """Return what it reads."""
        return tuple(self.bodies.relations.values())


@dataclass(frozen=True, eq=False)
class Bodies:
    """The relations of a recursion, shared by all that are read of it."""

    columns: dict[str, tuple[Attribute, ...]]
    relations: dict[str, Relation]


@dataclass(frozen=True, eq=False)
class Unnesting(_Unary):
    """Each row as often as a list has elements, with one of them each; `outer` keeps rows without any."""

    list_: Expr
    element: Attribute
    position: Attribute | None = None
    outer: bool = False

    @property
    def expressions(self) -> Iterator[Expr]:
        """Return what it computes."""
        yield self.list_

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """Return its columns."""
        added = (self.element,) if self.position is None else (self.element, self.position)
        return (*self.input.attributes, *added)
