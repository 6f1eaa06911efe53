"""Groups of rows with equal keys, and one row, or some, for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from ..aggregates import Aggregate
from ..columns.schema import Schema, SchemaSpec
from ..errors import SchemaError
from ..expressions.expression import Expr, Ordering
from ..operators.group_functions import UserGroupFunction
from ..operators.reduce import RankKind
from ..other_spellings import explain
from ..plan.nodes import Reduce, ReduceFunction
from .handle import Handle
from .ordered import By, Ordered, OrderOperators, orderings

__all__ = ["GroupOperators", "Grouped"]

C = TypeVar("C", bound=Handle)


class GroupOperators(OrderOperators):
    """Cutting a collection into groups."""

    def group_by(self, *keys: str) -> Grouped[Self]:
        """Groups of rows with equal `keys`; follow with `agg(…)` or `reduce(fn, …)`. No keys: one group of
        all rows.
        """
        for key in keys:
            self.schema.offset(key)
        if len(set(keys)) != len(keys):
            raise SchemaError(f"group_by: a key is named twice in {', '.join(keys)}")
        return Grouped(self, keys)


@dataclass(frozen=True, eq=False)
class Grouped(Generic[C]):
    """A collection cut into groups by the columns `keys`."""

    collection: C
    keys: tuple[str, ...]

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            raise AttributeError(explain("a grouped collection", name, groups=True))

    def agg(self, **aggregates: Aggregate) -> C:
        """One row per group: the keys, and each aggregate under its name."""
        if not aggregates:
            raise SchemaError("agg needs at least one aggregate, as in agg(n=dd.count())")
        for name, aggregate in aggregates.items():
            if not isinstance(aggregate, Aggregate):
                raise SchemaError(
                    f"agg({name}=…) takes dd.count(), dd.sum('x'), dd.min('x') or dd.max('x'), "
                    f"not {aggregate!r}"
                )
            if name in self.keys:
                raise SchemaError(f"agg: {name!r} is a key already; choose another name")
            if aggregate.column in self.keys:
                raise SchemaError(
                    f"{aggregate.describe()}: {aggregate.column!r} is a key of the groups; copy it first: "
                    f"select(…, x=col.{aggregate.column})"
                )
        return self.collection.with_node(Reduce(self.collection.node, self.keys, tuple(aggregates.items())))

    def top_k(
        self, k: int, by: By, *, offset: int = 0, rank: str | None = None, method: RankKind = "row_number"
    ) -> C:
        """The first `k` rows of each group in the order `by`; see `Collection.top_k`."""
        return self.order_by(*orderings(by, "top_k")).limit(k, offset, rank=rank, method=method)

    def first(self, by: By) -> C:
        """The first row of each group in the order `by`: as `top_k(1, by)`."""
        return self.order_by(*orderings(by, "first")).first()

    def last(self, by: By) -> C:
        """The last row of each group in the order `by`, for instance the latest: `last(by="time")`."""
        return self.order_by(*orderings(by, "last")).last()

    def rank(self, name: str, by: By, method: RankKind = "row_number") -> C:
        """All rows, and a column `name` with the number of each in its group; costs: `Ordered.rank`."""
        return self.order_by(*orderings(by, "rank")).rank(name, method)

    def order_by(self, *by: str | Expr | Ordering) -> Ordered[C]:
        """An order of the rows of each group; follow with `limit(n, offset=…)` or `rank("place")`."""
        return Ordered(self.collection, self.keys, orderings(by, "order_by"))

    def reduce(self, function: UserGroupFunction, schema: SchemaSpec) -> C:
        """Whatever rows `function(key, rows)` gives for each group; the result has the keys and the columns
        of `schema`.

        `key` is a tuple; `rows` a list of (row without the keys, multiplicity), multiplicities not 0. It
        returns rows: tuples, or bare values if `schema` has one column. It must be pure: it is called again
        whenever its group changes, also when that may turn out to be no change. About 2 µs per row of a
        changed group.
        """
        given = Schema.of(schema)
        for column in given:
            if column.name in self.keys:
                raise SchemaError(
                    f"reduce: {column.name!r} is a key already; choose another name in its schema"
                )
        known = self.collection.plan.function(function)
        return self.collection.with_node(ReduceFunction(self.collection.node, self.keys, known, given))
