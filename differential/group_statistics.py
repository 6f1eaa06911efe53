"""More aggregates of a group: percentiles, texts, sums of different values, and how two columns go together.

Each is an `Aggregate`, which `agg` takes as it takes sums and counts (`aggregates.py`). All are exact but
one: `approx_count_distinct` says by how much it may be wrong.
"""

from __future__ import annotations

from math import isfinite
from typing import Final

from .aggregates import Aggregate, AggregateKind
from .errors import ExpressionError
from .expressions.expression import Expr
from .expressions.orders import By, orderings
from .other_spellings import written_as

__all__ = [
    "any_value_of",
    "approx_count_distinct",
    "avg_distinct",
    "corr",
    "covar_pop",
    "covar_samp",
    "grouping",
    "grouping_id",
    "kurtosis",
    "median",
    "mode",
    "percentile",
    "percentile_disc",
    "skewness",
    "string_agg",
    "sum_distinct",
]

_ERROR_LEAST: Final = 0.005
_ERROR_MOST: Final = 0.4


@written_as("percentile('x', 0.95)")
def percentile(column: str | Expr, fraction: float) -> Aggregate:
    """The value below which this share of the values is, as a float; it is interpolated between two values.

    `percentile("ms", 0.95)`. With n values in order, from number 0 on, it is the one at `fraction * (n - 1)`;
    between two of them, what is so far between both. SQL: `percentile_cont`; PySpark: `percentile`. Exact: a
    change of a large group costs a search, not a pass through the group. A row that is there three times
    counts three times.
    """
    return _percentile("percentile", column, fraction)


@written_as("percentile_disc('x', 0.95)")
def percentile_disc(column: str | Expr, fraction: float) -> Aggregate:
    """The least value that at least this share of the values are not above: one of the values itself.

    Also of dates and timestamps. It costs what `percentile` does, and is as exact. PySpark:
    `percentile_approx`, whose answer this is, without an error.
    """
    return _percentile("percentile_disc", column, fraction)


def median(column: str | Expr) -> Aggregate:
    """The value in the middle, as a float; of an even number of values the mean of the two in the middle."""
    return Aggregate.of("percentile", column, option=0.5)


def mode(column: str | Expr) -> Aggregate:
    """The value that is there most often; of several the least. Logarithmic work; stores each value once."""
    return Aggregate.of("mode", column)


def any_value_of(column: str | Expr) -> Aggregate:
    """One of the values that are not null, which one is not said; the same rows always give the same one.

    For a column that is the same in all rows of a group. It costs what `min` does, and takes columns without
    an order as well. PySpark and SQL: `any_value`. (`dd.any_value` is a type.)
    """
    return Aggregate.of("any_value", column)


@written_as("string_agg('x', ', ')")
def string_agg(
    column: str | Expr, separator: str = "", by: By | None = None, *, distinct: bool = False
) -> Aggregate:
    """The texts that are not null as one, with `separator` between two: `string_agg("name", ", ")`.

    They are in their own order, or in that of other columns: `by=col.time.desc()`; where that leaves a
    choice, in their own. `distinct=True`: each text once; then their order is their own. Costs the whole
    group when it changes. PySpark: `listagg`.
    """
    if not isinstance(separator, str):
        raise ExpressionError(f"string_agg(…, {separator!r:.60}): a separator is text, as in ', '")
    if distinct and by is not None:
        raise ExpressionError(
            "string_agg(…, distinct=True) has each text once, in the order of texts: another order would not "
            "say which of its rows counts. Leave out by="
        )
    kind: AggregateKind = "string_agg_set" if distinct else "string_agg"
    order = () if by is None else orderings(by, "string_agg")
    return Aggregate.of(kind, column, order, option=separator)


def sum_distinct(column: str | Expr) -> Aggregate:
    """The exact sum of the different values of a column of numbers. Stores each of them once."""
    return Aggregate.of("sum_distinct", column)


def avg_distinct(column: str | Expr) -> Aggregate:
    """The mean of the different values of a column of numbers, as `avg`. Stores each of them once."""
    return Aggregate.of("avg_distinct", column)


@written_as("approx_count_distinct('x', 0.05)")
def approx_count_distinct(column: str | Expr, rsd: float = 0.05) -> Aggregate:
    """About how many different values a column has in the group, without null.

    `rsd` is the standard error, as a share of the number: 0.05 says that two of three answers are less than
    5 % away, and 997 of 1,000 less than 15 %. It stays so when rows go. The state is that of a HyperLogLog
    whose registers count their rows: about log2(n) + 1 rows for each of at most 1.08 / rsd² registers, where
    `count_distinct` stores n. Few values are counted almost exactly.
    """
    if type(rsd) not in (int, float) or not _ERROR_LEAST <= rsd <= _ERROR_MOST:
        raise ExpressionError(
            f"approx_count_distinct(…, {rsd!r:.60}): the error is a share from {_ERROR_LEAST} to "
            f"{_ERROR_MOST}; for exact numbers write count_distinct"
        )
    return Aggregate.of("approx_count_distinct", column, option=float(rsd))


def covar_pop(x: str | Expr, y: str | Expr) -> Aggregate:
    """The covariance of two columns of numbers, over n, of the rows where neither is null. Constant work."""
    return Aggregate.of("covar_pop", x, second=y)


def covar_samp(x: str | Expr, y: str | Expr) -> Aggregate:
    """The covariance over n - 1; null for fewer than two rows where neither column is null."""
    return Aggregate.of("covar_samp", x, second=y)


def corr(x: str | Expr, y: str | Expr) -> Aggregate:
    """Pearson's correlation of two columns of numbers, of the rows where neither is null. Constant work.

    Null for fewer than two such rows; NaN if all values of one of the columns are equal, as in Spark.
    """
    return Aggregate.of("corr", x, second=y)


def skewness(column: str | Expr) -> Aggregate:
    """How far the values lean to one side: their third central moment over that of the deviation, over n.

    Null if all are equal. It is computed exactly, and rounded at the end, as `variance` is.
    """
    return Aggregate.of("skewness", column)


def kurtosis(column: str | Expr) -> Aggregate:
    """How much of the deviation far values make: their fourth central moment over that of the deviation,
    over n, less 3, as Spark has it. Null if all values are equal. Exact, and rounded at the end.
    """
    return Aggregate.of("kurtosis", column)


def grouping(key: str | Expr) -> Aggregate:
    """1 in rows of `rollup`, `cube` and `grouping_sets` that are not grouped by this key, 0 in the others.

    It tells a null that stands for all keys from a key that is null.
    """
    return Aggregate.of("grouping", key)


def grouping_id() -> Aggregate:
    """A number whose bits are the `grouping` of each key, that of the last key lowest."""
    return Aggregate("grouping_id")


def _percentile(kind: AggregateKind, column: str | Expr, fraction: float) -> Aggregate:
    if type(fraction) not in (int, float) or not isfinite(fraction) or not 0 <= fraction <= 1:
        raise ExpressionError(
            f"{kind}(…, {fraction!r:.60}): the fraction is a number from 0 to 1, as in {kind}('x', 0.95). "
            "For several percentiles name each"
        )
    return Aggregate.of(kind, column, option=float(fraction))
