"""Operators on collections as multisets of whole rows: sums, sets, multiplicities, arrangements.

Two rows are equal if all their columns are, null to null. Columns are matched by name: those of the others
are put in the order of the first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Self, TypeVar, cast

from timely.user_code.call_site import call_site
from timely.user_code.spellings import called_as

from ..aggregates import Aggregate
from ..columns.column_types import ColumnType, integer
from ..columns.schema import Column, Schema
from ..errors import ExpressionError, SchemaError, shown
from ..expressions.expression import Expr, ExprLike, as_expr, col, lit, max_of
from ..linear.user_functions import MapFunction, name_of
from ..other_spellings import written_as
from ..plan.nodes import (
    Accumulate,
    AddedColumn,
    Arrange,
    Concat,
    Consolidate,
    Distinct,
    Join,
    Select,
    TopK,
    Weigh,
)
from .functions import FunctionOperators
from .handle import Handle, Names, in_innermost_loop, names_of

__all__ = ["SetOperators"]

H = TypeVar("H", bound=Handle)

_ONE_ROW = (
    "drop_duplicates('x'), drop_duplicates(['x', 'y']); to choose the row that stays, "
    "group_by('x').first(by='time')"
)


class SetOperators(FunctionOperators):
    """Sums and sets of rows."""

    def concat(self, *others: Self) -> Self:
        """The sum: multiplicities added. The others must have the same columns and types, in any order.

        A column that may be null in one of them may be so in the sum. Rust: `concat`. SQL: UNION ALL. No
        state, no stage.
        """
        parts = in_innermost_loop((self, *others))
        schema = _with_their_nulls(self.schema, [part.schema for part in parts])
        nodes = tuple(part.conformed(schema, "concat").node for part in parts)
        return parts[0].with_node(Concat(nodes)) if others else self

    def union_by_name(self, *others: Self, allow_missing_columns: bool = False) -> Self:
        """The sum; with `allow_missing_columns`, a column that some of them lack is null in their rows.

        Columns: those of the first, then those that only others have. Costs as `concat`.
        """
        if not allow_missing_columns:
            return self.concat(*others)
        parts = in_innermost_loop((self, *others))
        types: dict[str, ColumnType] = {}
        for part in parts:
            for column in part.schema:
                first = types.setdefault(column.name, column.type)
                if first.not_null() != column.type.not_null():
                    raise SchemaError(
                        f"union_by_name: {column.name!r} is {first} in one and {column.type} in another; "
                        "cast one of them"
                    )
        columns = []
        for name, type_ in types.items():
            nullable = any(name not in p.schema or p.schema[name].type.nullable for p in parts)
            columns.append(Column(name, type_.or_null(nullable)))
        whole, *rest = (part.fitted(Schema(tuple(columns))) for part in parts)
        return whole.concat(*rest)

    def fitted(self, schema: Schema) -> Self:
        """Return the rows with the columns of `schema`, null if missing here, and nullable as there.

        Requires: types are the same otherwise.
        """
        if self.schema == schema:
            return self
        columns: dict[str, Expr] = {}
        for column in schema:
            if column.name not in self.schema:
                columns[column.name] = lit(None, column.type)
            elif self.schema[column.name].type == column.type:
                columns[column.name] = col(column.name)
            else:
                columns[column.name] = col(column.name).cast(column.type)
        return self.with_node(Select(self.node, tuple(columns.items())))

    def consolidate(self) -> Self:
        """The same collection; the updates of each time are summed first. Rust: `consolidate`."""
        return self.with_node(Consolidate(self.node))

    def arrange(self, by: Names) -> Self:
        """The same collection, stored by the columns `by` once. Inside loops, too.

        Joins and groups by just these, in this order, read it, and none stores rows of its own. Collections
        that several operators read alike are arranged without this call; it is for readers that differ in
        filters: write these behind the join. It stores the columns that its readers need. Rust:
        `arrange_by_key`.
        """
        keys = names_of(by, "arrange", self)
        for key in keys:
            self.schema.offset(key)
        if not keys or len(set(keys)) != len(keys):
            raise SchemaError(f"arrange: by takes the names of different columns, not {by!r}")
        return self.with_node(Arrange(self.node, keys))

    @written_as("distinct(), or drop_duplicates('x') for one row of each x")
    def distinct(self) -> Self:
        """Each row that has a positive multiplicity, once. Rust: `distinct`. LINQ: `Distinct`.

        Stores the different rows with their multiplicities.
        """
        return self.with_node(Distinct(self.node))

    @written_as(_ONE_ROW)
    def drop_duplicates(self, subset: Names | None = None) -> Self:
        """One row for each value of the columns `subset` (all of them: `distinct`).

        Which one stays is arbitrary but always the same for the same rows: the least as rows are stored. To
        choose, write `group_by(…).first(by=…)`. Cost of a change: a search, as that of `top_k(1)`.
        """
        if subset is None:
            return self.distinct()
        keys = names_of(subset, "drop_duplicates", self)
        rest = [name for name in self.schema.names if name not in keys]
        if not rest:
            return self.distinct()
        for key in keys:
            self.schema.offset(key)
        return self.with_node(TopK(self.node, keys, (), 1)).select(*self.schema.names)

    def subtract(self, other: Self) -> Self:
        """The different rows of this collection that `other` does not have. SQL: EXCEPT.

        Stores the different rows of both, with their multiplicities, and these once each.
        """
        mine, both = self._with_common(other)
        return mine.concat(both.negate())

    def except_all(self, other: Self) -> Self:
        """The rows of this collection as often as they are there more often than in `other`. SQL: EXCEPT ALL.

        Law: multiplicity max(0, a - b). (`concat(other.negate())` is a - b, may be negative, and is free.)
        Stores the rows in which the two differ.
        """
        (left, right) = in_innermost_loop((self, other))
        difference = left.concat(right.conformed(left.schema, "except_all").negate())
        return difference.threshold(lambda n: max_of(n, 0))

    def intersect(self, other: Self) -> Self:
        """The different rows that both have. SQL: INTERSECT. Stores what `subtract` stores."""
        return self._with_common(other)[1]

    def intersect_all(self, other: Self) -> Self:
        """The rows that both have, as often as both have them. SQL: INTERSECT ALL.

        Law: multiplicity min(a, b). Stores the rows in which the two differ.
        """
        (left,) = in_innermost_loop((self, other))[:1]
        return left.concat(left.except_all(other).negate())

    def symmetric_difference(self, other: Self) -> Self:
        """The different rows that one of the two has and the other has not. Stores what `subtract` stores."""
        mine, both = self._with_common(other)
        (theirs,) = in_innermost_loop((self, other))[1:]
        once = theirs.conformed(self.schema, "symmetric_difference").distinct()
        return mine.concat(once, both.negate(), both.negate())

    def _with_common(self, other: Self) -> tuple[Self, Self]:
        """Return the different rows of this collection, and those of them that `other` has, too."""
        left, right = in_innermost_loop((self, other))
        mine = left.distinct()
        theirs = right.conformed(left.schema, "a set operation").distinct()
        on = tuple((name, name) for name in self.schema.names)
        return mine, mine.with_node(Join(mine.node, theirs.node, on, null_safe=True))

    def threshold(self, function: MapFunction) -> Self:
        """Rows with other multiplicities: `function(n)` in place of n, for every row that is there at all.

        `function` is called with an expression of the multiplicity, and returns one: a whole number that is
        never null, as in `threshold(lambda n: dd.min_of(n, 3))`, or `lambda n: n % 2`. A function that cannot
        handle expressions (`lambda n: min(n, 3)`, or one with an `if`) is called with numbers instead, once
        for each different one of a batch. It returns an int, always the same for the same number, and 0 for
        0. Rust: `threshold`. Law: `distinct` is `threshold(lambda n: int(n > 0))`; where n is 0 the row is
        not there, whatever an expression says.

        Stores the different rows with their multiplicities; a change costs its rows. Raises SchemaError for
        an expression of another type, or a function that does not return 0 for 0 in each of two calls.
        """
        names = self.schema.names
        number = _not_in("n", names)
        counted = self.with_node(
            Accumulate((self.node,), names, 1, (AddedColumn(number, 0, Aggregate("count")),))
        )
        expr = _as_expression(function, number)
        if expr is None:
            weighed = counted.applied("threshold", function, None)
            return weighed.with_node(Weigh(weighed.node, number))
        return _weighed(counted, names, expr, "threshold")

    def repeat(self, times: str | ExprLike) -> Self:
        """Rows with other multiplicities: each row's multiplicity times its value of `times`.

        `times` is a column, which stays, or an expression over the columns: a whole number, never null; 0
        drops a row, and a number below 0 takes it away. Rust: `explode`. Law: `count` of rows that are
        repeated n times is the sum of n, wherever that is not 0. For sums that go round a loop it is the
        shortest way: there a row is one number, and not one row for each value that its sum has had. No
        state, no stage; a product of more than 64 bits is an error that names the row.
        """
        expr = as_expr(col(times) if isinstance(times, str) else times)
        return _weighed(self, self.schema.names, expr, "repeat")

    @called_as("unionByName")
    def _union_by_name(self, other: Self, allowMissingColumns: bool = False) -> Self:
        """The same as `union_by_name`, in PySpark's form."""
        return self.union_by_name(other, allow_missing_columns=allowMissingColumns)


def _as_expression(function: MapFunction, number: str) -> Expr | None:
    """Return what `function` returns for an expression; None if it takes numbers, after a try with 0.

    A function that returns a plain value for an expression has not used it, or not as intended: `{2:
    1}.get(n, 0)`.
    """
    if not callable(function):
        raise ExpressionError(f"threshold({function!r}) ({call_site()}) needs a function.")
    called = cast("Callable[[object], object]", function)
    refused: Exception | None = None
    try:
        result = called(col(number))
        if isinstance(result, Expr):
            return result
    except (ExpressionError, TypeError) as error:
        refused = error
    try:
        tried = [called(0), called(0)]
    except Exception as error:
        raise refused or error from None
    if any(isinstance(one, Expr) for one in tried):
        raise refused or ExpressionError(
            f"threshold ({call_site()}): {name_of(function)} gives an expression of a number, and none "
            "of an expression"
        )
    if any(type(one) is not int or one for one in tried):
        raise SchemaError(
            f"threshold ({call_site()}): {name_of(function)} gives {shown(tried[0])} for 0, and then "
            f"{shown(tried[1])}; a function of numbers gives 0 for 0, as an int, each time: what is not "
            "there cannot be made to be there. For a constant write an expression, as in lambda n: dd.lit(1)"
        )
    return None


def _weighed(rows: H, names: Sequence[str], times: Expr, who: str) -> H:
    """Return the columns `names` of `rows`, each row's multiplicity times its value of `times`."""
    number = _not_in("times", names)
    columns = tuple((name, col(name)) for name in names)
    counted = rows.with_node(Select(rows.node, (*columns, (number, times))))
    if counted.schema[number].type != integer:
        raise SchemaError(
            f"{who}: {times.describe()} is {counted.schema[number].type}; a multiplicity is a whole number, "
            "never null"
        )
    return counted.with_node(Weigh(counted.node, number))


def _not_in(name: str, names: Sequence[str]) -> str:
    """Return a name like this one that is not taken."""
    while name in names:
        name += "_"
    return name


def _with_their_nulls(schema: Schema, others: Sequence[Schema]) -> Schema:
    """Return `schema`, with nulls allowed in each column that allows them in one of `others`."""
    return Schema(
        tuple(
            Column(
                column.name,
                column.type.or_null(
                    any(column.name in other and other[column.name].type.nullable for other in others)
                ),
            )
            for column in schema
        )
    )
