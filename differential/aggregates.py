"""Aggregates: what `group_by(…).agg(…)` can compute for a group, and the type of each result.

An aggregate is data: a kind and a column. `tests/reference/collection.py` has its plain definition:

    count                 Σ multiplicity; of a column: of the rows where it is not null
    count_if              Σ multiplicity of the rows where a condition is true
    sum                   Σ value · multiplicity            null without values
    avg                   that / count of the column        null without values; of decimals: to some digits
    variance, stddev      the spread around avg             null without values; `sample`: with fewer than two
    any, all              true if some value is true, true if none is false; null without values
    count_distinct        how many different values have rows of positive multiplicity
    min, max              the least, the greatest among rows of positive multiplicity; null without values
    argmin, argmax        the value in the row where another is least, greatest
    first, last           the value of the first, the last row in an order
    collect, collect_set  the values as a list in order: each as often as it is there, each once

Nulls are skipped: a value is one that is not null. Aggregates that can be *added up* (all but the last five
lines) are computed by components, see `kernels/sums/components.py`; the others are *chosen*, each by an
operator of its own.

A group has a row while every aggregate of the `agg` has a value. Sums and count_distinct have one while the
multiplicities of all rows sum to something other than 0. The last four lines have one while the values of the
columns that they name have a positive multiplicity (lists: one other than 0) in sum over their rows.

Sums of whole numbers are exact. While the total of a group leaves 64 bits, the group fails with a
SumOverflowError that names it, and the outputs behind it have no answer. A count that leaves 64 bits, or a
value times its multiplicity that does, ends the dataflow. Sums of floats are exact, too, and rounded once,
when read: the order in which rows came does not matter, and removed rows leave nothing behind.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal, NoReturn, get_args

from differential.columns.column_types import ColumnType, floating, integer
from differential.columns.schema import Schema
from differential.columns.wide.digits import mean_of_decimals, sum_of_decimals
from differential.errors import ExpressionError
from differential.expressions.expression import ColumnRef, Expr, Ordering
from differential.expressions.functions.refusals import check_no_bool
from differential.expressions.literals import NoValue
from differential.expressions.orders import By, orderings
from differential.expressions.pending import RowsOfSchema, over_rows
from differential.other_spellings import of_another_library, written_as
from timely.user_code.call_site import call_site
from timely.user_code.offered import Offered
from timely.user_code.short_traces import short_lookup

__all__ = [
    "ADDED",
    "AGGREGATE_KINDS",
    "CHOSEN",
    "COLLECTED",
    "COMPOSED",
    "DISTINCT",
    "OF_FLOATS",
    "OF_PAIRS",
    "OF_SETS",
    "PERCENTILES",
    "SPREADS",
    "Aggregate",
    "AggregateKind",
    "NamedAggregate",
    "all_of",
    "any_of",
    "argmax",
    "argmin",
    "avg",
    "collect",
    "collect_set",
    "count",
    "count_distinct",
    "count_if",
    "first",
    "last",
    "max",
    "min",
    "stddev",
    "sum",
    "variance",
]

AggregateKind = Literal[
    "count",
    "count_if",
    "sum",
    "avg",
    "variance",
    "stddev",
    "variance_pop",
    "stddev_pop",
    "any",
    "all",
    "count_distinct",
    "min",
    "max",
    "argmin",
    "argmax",
    "first",
    "last",
    "collect",
    "collect_set",
    "string_agg",
    "string_agg_set",
    "percentile",
    "percentile_disc",
    "mode",
    "any_value",
    "sum_distinct",
    "avg_distinct",
    "approx_count_distinct",
    "covar_pop",
    "covar_samp",
    "corr",
    "skewness",
    "kurtosis",
    "grouping",
    "grouping_id",
    "only",
]
AGGREGATE_KINDS: Final[tuple[AggregateKind, ...]] = get_args(AggregateKind)
COLLECTED: Final[frozenset[AggregateKind]] = frozenset(
    ("collect", "collect_set", "string_agg", "string_agg_set", "percentile", "percentile_disc")
)
"""Kinds that need all values of a group in one place."""

PERCENTILES: Final[frozenset[AggregateKind]] = frozenset(("percentile", "percentile_disc"))
"""Kinds that choose a value by its place among all."""

CHOSEN: Final[frozenset[AggregateKind]] = COLLECTED | frozenset(
    ("min", "max", "argmin", "argmax", "first", "last", "mode", "any_value")
)
"""Kinds that take values of a group as they are."""

DISTINCT: Final[frozenset[AggregateKind]] = frozenset(("count_distinct", "sum_distinct", "avg_distinct"))
"""Kinds that take each value of a group once."""

COMPOSED: Final[frozenset[AggregateKind]] = frozenset(("approx_count_distinct", "corr"))
"""Kinds that are computed of other aggregates."""

OF_SETS: Final[frozenset[AggregateKind]] = frozenset(("grouping", "grouping_id"))
"""Kinds that say by which keys a row is grouped."""

ADDED: Final[frozenset[AggregateKind]] = frozenset(AGGREGATE_KINDS) - CHOSEN - DISTINCT - COMPOSED - OF_SETS
"""Kinds that are sums. Users do not write `only`: the value of the one row that a group has."""

OF_PAIRS: Final[frozenset[AggregateKind]] = frozenset(("covar_pop", "covar_samp", "corr"))
"""Kinds of two columns."""

OF_FLOATS: Final[frozenset[AggregateKind]] = OF_PAIRS | {"skewness", "kurtosis"}
"""Kinds whose columns are cast to floats."""

_SAMPLES: Final = ("variance", "stddev", "covar_samp", "skewness", "kurtosis")

SPREADS: Final[frozenset[AggregateKind]] = frozenset(("variance", "stddev", "variance_pop", "stddev_pop"))
"""Kinds that are floats, whatever the column."""


class _OfGroup(Offered, NoValue):
    """A value of a group, and not of a row: it needs a name before anything is computed with it."""

    _internal = frozenset(
        {
            "aggregate",
            "argument",
            "belongs",
            "by",
            "column",
            "columns",
            "describe",
            "kind",
            "name",
            "of",
            "option",
            "second",
            "settled",
            "sided",
            "type_in",
            "written",
        }
    )

    if not TYPE_CHECKING:

        @short_lookup
        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("_"):  # tools look these up, some before there are fields
                raise AttributeError(name)
            if name in ("filter", "where"):
                raise AttributeError(
                    f"an aggregate has no {name!r}. For some rows of the group write "
                    "dd.count_if(col.x > 0), or dd.sum(dd.when(col.x > 0).then(col.y)); for some groups "
                    ".having(col.n > 1) behind agg(…)"
                )
            if name == "over":
                raise AttributeError(
                    f"an aggregate has no 'over'. Write instead: over('key', by='time').with_columns(n="
                    f"{self.belongs().partition(' is of')[0]}), of the collection"
                )
            raise AttributeError(f"{self.belongs()}, not .{name} of the aggregate")

        def _computed(self, other: object = None) -> NoReturn:
            raise ExpressionError(f"{self.belongs()} ({call_site()})")

        __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _computed
        __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __neg__ = __abs__ = _computed
        __lt__ = __le__ = __gt__ = __ge__ = __and__ = __rand__ = __or__ = __ror__ = __invert__ = _computed


_CALLS: Final = {
    "any": "any_of",
    "all": "all_of",
    "any_value": "any_value_of",
    "variance_pop": "var_pop",
    "string_agg_set": "string_agg",
}
"""The function that makes an aggregate, if it is not called as the kind."""


@dataclass(frozen=True)
class Aggregate(_OfGroup):
    """One aggregate of a group, over `column`, or the values of `argument`, or, with neither, whole rows."""

    kind: AggregateKind
    column: str | None = None
    argument: Expr | None = field(default=None, compare=False)
    by: tuple[Ordering, ...] = field(default=(), compare=False)
    """The order that chooses; empty: the order of the values."""
    second: str | Expr | None = None
    """The other column, of a kind of two."""
    option: float | str | None = None
    """The fraction of a percentile, the separator of texts, or the error that is allowed."""

    @classmethod
    def of(
        cls,
        kind: AggregateKind,
        argument: str | Expr,
        by: tuple[Ordering, ...] = (),
        second: str | Expr | None = None,
        option: float | str | None = None,
    ) -> Aggregate:
        """Return an aggregate of a column, by name or as `col.x`, or of an expression."""
        if isinstance(argument, str):
            return cls(kind, argument, by=by, second=second, option=option)
        if isinstance(argument, ColumnRef):
            return cls(kind, argument.name, by=by, second=second, option=option)
        check_no_bool(_CALLS.get(kind, kind), argument)
        if not isinstance(argument, Expr):
            raise ExpressionError(_no_argument(_CALLS.get(kind, kind), argument))
        return cls(kind, None, argument, by, second, option)

    def alias(self, name: str) -> NamedAggregate:
        """Return the aggregate under a name, for `agg(dd.sum("x").alias("total"))`."""
        if not isinstance(name, str):
            raise ExpressionError(
                f"{self.describe()}.alias({name!r:.60}): a name is text, as in alias('total')"
            )
        return NamedAggregate(name, self)

    def sided(self, change: Callable[[Expr], Expr]) -> Aggregate:
        """Return the aggregate with `change` of its expressions, which gives columns of sides their owner."""
        column = None if self.column is None or "." not in self.column else ColumnRef(self.column)
        own = self.argument if column is None else column
        argument = None if own is None else change(own)
        by = tuple(replace(order, expr=change(order.expr)) for order in self.by)
        second = self.second
        if isinstance(second, Expr) or (second is not None and "." in second):
            other = second if isinstance(second, Expr) else ColumnRef(second)
            changed = change(other)
            second = second if changed is other else changed
        if argument is column:  # no such side
            return replace(self, second=second, by=by)
        return replace(self, column=None, argument=argument, second=second, by=by)

    def settled(self, rows: RowsOfSchema) -> Aggregate:
        """Return the aggregate with its expressions as they are over the columns of `rows`."""
        parts = (self.argument, self.second, *(order.expr for order in self.by))
        if not any(isinstance(part, Expr) and part.is_pending for part in parts):
            return self
        argument = self.argument if self.argument is None else over_rows(self.argument, rows)
        second = over_rows(self.second, rows) if isinstance(self.second, Expr) else self.second
        by = tuple(replace(order, expr=over_rows(order.expr, rows)) for order in self.by)
        if isinstance(argument, ColumnRef):
            return replace(self, column=argument.name, argument=None, second=second, by=by)
        return replace(self, argument=argument, second=second, by=by)

    @property
    def columns(self) -> frozenset[str]:
        """The columns that it reads, and those of its order."""
        named = frozenset() if self.column is None else frozenset((self.column,))
        if isinstance(self.second, str):
            named |= {self.second}
        second = self.second if isinstance(self.second, Expr) else None
        others = (self.argument, second, *(order.expr for order in self.by))
        computed = [each for each in others if each is not None]
        return named.union(*(each.columns() for each in computed))

    def belongs(self) -> str:
        """Return the message for a user who computes with it: what to write."""
        return (
            f"{self.written()} is of a group, so name it in agg(…) and compute with the column: "
            f"agg(n={self.written()}).with_columns(m=col.n + 1), or .having(col.n > 1)"
        )

    def describe(self) -> str:
        """Return the aggregate as the user wrote it."""
        text = self.column or ""
        if self.argument is not None:
            text = self.argument.describe()
        order = f", by=[{', '.join(each.describe() for each in self.by)}]" if self.by else ""
        return f"{self.kind}({text}{self._more()}{order})"

    def _more(self) -> str:
        """Return the arguments behind the first, apart from the order, as the user wrote them."""
        second = ""
        if self.second is not None:
            second = f", {self.second if isinstance(self.second, str) else self.second.describe()}"
        return second if self.option is None else f"{second}, {self.option!r}"

    def written(self) -> str:
        """Return the call that makes the aggregate: `dd.sum('x')`."""
        operand = "" if self.column is None else repr(self.column)
        if self.argument is not None:
            operand = self.argument.describe()
        by = [each.describe() for each in self.by]
        order = f", by={by[0] if len(by) == 1 else '[' + ', '.join(by) + ']'}" if by else ""
        second = f", {self.second!r}" if isinstance(self.second, str) else ""
        if isinstance(self.second, Expr):
            second = f", {self.second.describe()}"
        option = "" if self.option is None else f", {self.option!r}"
        return f"dd.{_CALLS.get(self.kind, self.kind)}({operand}{second}{option}{order})"

    def type_in(self, schema: Schema) -> ColumnType:
        """Return the type of the result over groups of `schema`; raise ExpressionError if it has none."""
        if self.column is None or self.kind == "grouping":
            return integer
        column = schema[self.column]
        type_ = column.type
        if self.kind in ("count", "count_distinct", "approx_count_distinct"):
            return integer
        if self.kind in ("only", "min", "max", "mode", "any_value"):
            return type_
        if self.kind in ("any", "all", "count_if"):
            if type_.kind != "bool":
                raise ExpressionError(
                    f"{self.written()} needs a condition, not {type_}: write "
                    f"dd.{_CALLS.get(self.kind, self.kind)}(col.x > 0)"
                )
            return integer if self.kind == "count_if" else type_
        if self.kind in ("sum", "sum_distinct"):
            if not (type_.is_number or type_.kind == "bool"):
                raise ExpressionError(
                    f"{self.describe()}: sums are of numbers, not of {type_}. Cast the column, or count it"
                )
            if type_.kind == "decimal":
                type_ = sum_of_decimals(type_).or_null(type_.nullable)
            return (integer if type_.kind == "bool" else type_).or_null(type_.nullable)
        if type_.kind not in ("int", "float", "bool", "decimal"):
            raise ExpressionError(
                f"{self.describe()} is of int, float, bool or decimal, not of {type_}: cast it to float"
            )
        if type_.kind == "decimal" and self.kind in ("avg", "avg_distinct"):
            return mean_of_decimals(type_).or_null(type_.nullable)
        return floating.or_null(type_.nullable or self.kind in _SAMPLES)


def _no_argument(kind: str, argument: object) -> str:
    elsewhere = of_another_library(argument)
    if elsewhere is not None:
        return f"{kind}({argument!r:.80}): the argument {elsewhere}"
    return (
        f"{kind}({argument!r}) takes a column's name or an expression, as in {kind}('x') or {kind}(col.x * 2)"
    )


@dataclass(frozen=True)
class NamedAggregate(_OfGroup):
    """An aggregate and the name of its column."""

    name: str
    aggregate: Aggregate

    def belongs(self) -> str:
        """Return the message for a user who computes with it: what to write."""
        return self.aggregate.belongs()


def count(column: str | Expr | None = None) -> Aggregate:
    """The number of rows of the group, with multiplicities; of a column: of rows where it is not null.

    `"*"` is no column. Rust: `count`; SQL and PySpark: `count(*)`, `count(x)`.
    """
    if column is None or (isinstance(column, str) and column == "*"):
        return Aggregate("count")
    return Aggregate.of("count", column)


def count_if(condition: str | Expr) -> Aggregate:
    """The number of rows that make a condition true: `count_if(col.x > 0)`."""
    return Aggregate.of("count_if", condition)


@written_as("count_distinct('x'); of several, select('k', 'x', 'y').distinct().group_by('k').count()")
def count_distinct(column: str | Expr) -> Aggregate:
    """The number of different values of a column in the group, without null. Stores each of them once."""
    return Aggregate.of("count_distinct", column)


def sum(column: str | Expr) -> Aggregate:
    """The sum of a column of numbers over the group's rows; exact, floats are rounded once. Constant work.

    For decimals it is a decimal of ten digits more, of at most 38, as in Spark; if a group needs more, that
    is an error that names the group.
    """
    return Aggregate.of("sum", column)


def avg(column: str | Expr) -> Aggregate:
    """The mean of a column of numbers: the exact sum, rounded to a float, divided by the count.

    For decimals it is a decimal, as in Spark: with four digits more behind the point, of at most 38 in all,
    exact, halves away from zero. If the digits before the point do not fit then, that is an error that names
    the group.
    """
    return Aggregate.of("avg", column)


def variance(column: str | Expr, sample: bool = True) -> Aggregate:
    """The variance of a column of numbers: over n - 1, or, with `sample=False`, over n.

    Over n - 1 it is null for fewer than two values. It is computed exactly, without cancellation, and rounded
    to a float at the end.
    """
    return Aggregate.of("variance" if sample else "variance_pop", column)


def stddev(column: str | Expr, sample: bool = True) -> Aggregate:
    """The standard deviation: the square root of `variance`."""
    return Aggregate.of("stddev" if sample else "stddev_pop", column)


def any_of(condition: str | Expr) -> Aggregate:
    """True if a condition is true for some row of the group; SQL: `bool_or`."""
    return Aggregate.of("any", condition)


def all_of(condition: str | Expr) -> Aggregate:
    """True if a condition is false for no row of the group; SQL: `bool_and`."""
    return Aggregate.of("all", condition)


def min(column: str | Expr) -> Aggregate:
    """The least value of a column in the group."""
    return Aggregate.of("min", column)


def max(column: str | Expr) -> Aggregate:
    """The greatest value of a column in the group."""
    return Aggregate.of("max", column)


@written_as("argmin('x', by='y')")
def argmin(column: str | Expr, by: str | Expr) -> Aggregate:
    """The value of `column` in the row where `by`, if not null, is least; null if there is no such row.

    If several rows tie, the least value. PySpark: `min_by`. Logarithmic work.
    """
    return Aggregate.of("argmin", column, _order(by, "argmin"))


@written_as("argmax('x', by='y')")
def argmax(column: str | Expr, by: str | Expr) -> Aggregate:
    """As `argmin`, where `by` is greatest; if several rows tie, the least value. PySpark: `max_by`."""
    return Aggregate.of("argmax", column, _order(by, "argmax"))


@written_as("first('x', by='time'): rows have no order of their own; if any value will do, min('x')")
def first(column: str | Expr, by: By) -> Aggregate:
    """The value of `column`, null or not, in the first row of the order `by`: `first("city", by="time")`."""
    return Aggregate.of("first", column, orderings(by, "first"))


@written_as("last('x', by='time'): rows have no order of their own; if any value will do, min('x')")
def last(column: str | Expr, by: By) -> Aggregate:
    """The value of `column` in the first row of the opposite order: `last("city", by="time")`."""
    return Aggregate.of("last", column, tuple(each.reversed() for each in orderings(by, "last")))


def collect(column: str | Expr, by: By | None = None) -> Aggregate:
    """The values that are not null as a list, from the least to the greatest, as an `any` column.

    Values of one type are in their own order. With `by` they are in the order of other columns, and from the
    least to the greatest where that leaves a choice: `collect("city", by=col.time.desc())`. Costs the whole
    group when it changes. PySpark: `collect_list`; SQL: `array_agg(city ORDER BY time DESC)`.
    """
    return Aggregate.of("collect", column, () if by is None else orderings(by, "collect"))


def collect_set(column: str | Expr) -> Aggregate:
    """As `collect`, each value once."""
    return Aggregate.of("collect_set", column)


def _order(by: str | Expr, name: str) -> tuple[Ordering, ...]:
    if not isinstance(by, str | Expr):
        raise ExpressionError(f"{name}(…, by={by!r:.60}) compares by one column or expression, as in by='x'")
    return orderings(by, name)
