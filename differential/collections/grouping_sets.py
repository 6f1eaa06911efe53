"""Subtotals: rows grouped by several sets of keys at once, as ROLLUP, CUBE and GROUPING SETS of SQL.

    rows by sets = the rows by each set, with null for the keys that are not in it, one after another

Each set is a `group_by` of its own, and the sets are together by `concat`. `grouping` and `grouping_id` are
constants there: they tell a null that stands for all keys from a key that is null.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Generic, Self, TypeVar

from timely.user_code.call_site import call_site
from timely.user_code.offered import Offered
from timely.user_code.short_traces import in_short

from ..aggregates import OF_SETS, Aggregate
from ..columns.column_types import ColumnType
from ..errors import SchemaError
from ..expressions.expression import Aliased, ColumnRef, Expr, ExprLike, lit
from ..plan.nodes import Concat, Select
from ..thresholds import CUBE_KEYS_MAX
from .groups import Grouped, GroupOperators, named_aggregates
from .handle import Handle

__all__ = ["GroupedBySets", "SubtotalOperators"]

_Key = str | Expr | Aliased

C = TypeVar("C", bound=Handle)


class SubtotalOperators(GroupOperators):
    """Groups by several sets of keys."""

    def rollup(self, *keys: _Key | Sequence[_Key], **named: ExprLike) -> GroupedBySets[Self]:
        """Groups by all keys, by all but the last, and so on, and one group of all rows; follow with `agg`.

        `rollup("country", "city").agg(n=dd.count())`: each city, each country, and all. Keys are those of
        `group_by`.
        """
        grouped = self.group_by(*keys, balance=None, **named)
        count = len(grouped.keys)
        return GroupedBySets(grouped, tuple(grouped.keys[:size] for size in range(count, -1, -1)))

    def cube(self, *keys: _Key | Sequence[_Key], **named: ExprLike) -> GroupedBySets[Self]:
        """Groups by each subset of the keys, from all of them to none; follow with `agg`."""
        grouped = self.group_by(*keys, balance=None, **named)
        count = len(grouped.keys)
        if count > CUBE_KEYS_MAX:
            raise SchemaError(
                f"cube ({call_site()}) of {count} keys has {2**count:,} sets; it takes {CUBE_KEYS_MAX} keys "
                "at most. Name the sets that are wanted: grouping_sets([('a', 'b'), ('a',)], 'a', 'b')"
            )
        sets = [each for size in range(count, -1, -1) for each in combinations(grouped.keys, size)]
        return GroupedBySets(grouped, tuple(sets))

    def grouping_sets(
        self, sets: Sequence[Sequence[str]], *keys: _Key | Sequence[_Key], **named: ExprLike
    ) -> GroupedBySets[Self]:
        """Groups by each of some sets of the keys, by their names: `grouping_sets([("a", "b"), ("b",), ()],
        "a", "b")`. A set that is there twice gives its rows twice. Follow with `agg`.
        """
        grouped = self.group_by(*keys, balance=None, **named)
        where = f"grouping_sets ({call_site()})"
        if isinstance(sets, str) or not sets or any(isinstance(each, str) for each in sets):
            raise SchemaError(f"{where}: write a list of sets, as in [('a', 'b'), ('a',), ()]")
        for each in sets:
            for name in each:
                if name not in grouped.keys:
                    raise SchemaError(f"{where}: {name!r} of a set is no key: {', '.join(grouped.keys)}")
            if len(set(each)) != len(each):
                raise SchemaError(f"{where}: a key is twice in the set {tuple(each)}")
        return GroupedBySets(grouped, tuple(tuple(each) for each in sets))


@in_short
@dataclass(frozen=True, eq=False)
class GroupedBySets(Offered, Generic[C]):
    """A collection cut into groups by each of several sets of keys."""

    _internal = frozenset({"grouped", "sets"})

    grouped: Grouped[C]
    """The collection with all keys."""
    sets: tuple[tuple[str, ...], ...]

    def agg(self, *unnamed: object, **aggregates: Aggregate) -> C:
        """One row for each group of each set: all keys, null where the set does not have them, and the
        aggregates.

        Besides the aggregates of `group_by`, `dd.grouping("a")` is 1 where the set does not have that key,
        and `dd.grouping_id()` a number of them all. A set without keys always has one row, also of nothing.
        """
        keys, where = self.grouped.keys, f"agg ({call_site()})"
        wanted = named_aggregates(unnamed, aggregates)
        computed = {name: each for name, each in wanted.items() if each.kind not in OF_SETS}
        for name, each in wanted.items():
            if name in keys:
                raise SchemaError(f"{where}: {name!r} is a key already; choose another name")
            if each.kind == "grouping" and each.column not in keys:
                raise SchemaError(f"{where}: {each.written()} is of a key: {', '.join(keys)}")
        if not computed:
            computed = {_fresh("rows", {*keys, *wanted}): Aggregate("count")}
        parts = [replace(self.grouped, keys=each).agg(**computed) for each in self.sets]
        types = {
            name: _common([part.schema[name].type for part in parts if name in part.schema], len(parts))
            for name in (*keys, *computed)
        }

        def of_set(name: str, part: C, grouped_by: Sequence[str]) -> Expr:
            if name in part.schema:
                return ColumnRef(name).cast(types[name])
            if name in keys:
                return lit(None, types[name])
            return lit(_grouping(wanted[name], keys, grouped_by))

        rows = [
            part.with_node(
                Select(part.node, tuple((name, of_set(name, part, each)) for name in (*keys, *wanted)))
            )
            for part, each in zip(parts, self.sets, strict=True)
        ]
        if len(rows) == 1:
            return rows[0]
        return rows[0].with_node(Concat(tuple(each.node for each in rows)))


def _fresh(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "'"
    return name


def _common(types: Sequence[ColumnType], parts: int) -> ColumnType:
    """Return the type of a column whose types in the parts are these; it is null in the other parts."""
    nullable = len(types) < parts or any(each.nullable for each in types)
    return types[0].or_null() if nullable else types[0]


def _grouping(aggregate: Aggregate, keys: Sequence[str], grouped_by: Sequence[str]) -> int:
    """Return 1 for a key that is not in the set, else 0; of all keys, the bits of a number."""
    if aggregate.kind == "grouping":
        return int(aggregate.column not in grouped_by)
    return int("0" + "".join(str(int(key not in grouped_by)) for key in keys), 2)
