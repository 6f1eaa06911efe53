"""Second spellings whose arguments differ from those of the method or function that they are the same as.

`col.x.is_between(1, 3, "left")`, `col.x.sum()` in `agg`, `dd.stddev_pop("x")`. The table of second spellings
(`other_spellings/table.py`) names them; here the methods are added to expressions, as hidden ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, TypeAlias

from timely.user_code.call_site import call_site
from timely.user_code.spellings import called_as

from .aggregates import Aggregate, argmax, argmin, avg, count, max, min, stddev, sum, variance
from .errors import ExpressionError
from .expressions.calls.catalogued import date_add
from .expressions.calls.catalogued import like as like_of
from .expressions.calls.catalogued import lower as lower_of
from .expressions.expression import Expr, ExprLike, Ordering, as_expr, check_columns, col
from .group_statistics import percentile_disc, string_agg

__all__ = [
    "Closed",
    "asc",
    "asc_nulls_first",
    "asc_nulls_last",
    "date_sub",
    "desc",
    "desc_nulls_first",
    "desc_nulls_last",
    "ilike",
    "isnotnull",
    "negate",
    "percentile_approx",
    "stddev_pop",
    "string_agg_distinct",
    "var_pop",
]

Closed: TypeAlias = Literal["both", "left", "right", "none"]

_CLOSED: Final = ("both", "left", "right", "none")


def stddev_pop(column: str | Expr) -> Aggregate:
    """The same as `stddev(column, sample=False)`."""
    return stddev(column, sample=False)


def var_pop(column: str | Expr) -> Aggregate:
    """The same as `variance(column, sample=False)`."""
    return variance(column, sample=False)


def percentile_approx(column: str | Expr, percentage: float, accuracy: int = 10_000) -> Aggregate:
    """The same as `percentile_disc(column, percentage)`: the exact answer, whatever the accuracy."""
    del accuracy
    return percentile_disc(column, percentage)


def string_agg_distinct(column: str | Expr, separator: str = "") -> Aggregate:
    """The same as `string_agg(column, separator, distinct=True)`."""
    return string_agg(column, separator, distinct=True)


def asc(column: str | Expr) -> Ordering:
    """The same as `col.x.asc()`."""
    return _column(column).asc()


def desc(column: str | Expr) -> Ordering:
    """The same as `col.x.desc()`."""
    return _column(column).desc()


def asc_nulls_first(column: str | Expr) -> Ordering:
    """The same as `col.x.asc()`."""
    return _column(column).asc(nulls_last=False)


def asc_nulls_last(column: str | Expr) -> Ordering:
    """The same as `col.x.asc(nulls_last=True)`."""
    return _column(column).asc(nulls_last=True)


def desc_nulls_first(column: str | Expr) -> Ordering:
    """The same as `col.x.desc(nulls_last=False)`."""
    return _column(column).desc(nulls_last=False)


def desc_nulls_last(column: str | Expr) -> Ordering:
    """The same as `col.x.desc()`."""
    return _column(column).desc(nulls_last=True)


def negate(x: ExprLike) -> Expr:
    """The same as `-x`."""
    check_columns("negate", (x,))
    return -as_expr(x)


def isnotnull(x: ExprLike) -> Expr:
    """The same as `x.is_not_null()`."""
    check_columns("isnotnull", (x,))
    return as_expr(x).is_not_null()


def ilike(text: ExprLike, pattern: str) -> Expr:
    """The same as `like`, without regard to capitals."""
    return like_of(lower_of(text), pattern.lower())


def date_sub(t: ExprLike, count: ExprLike) -> Expr:
    """The same as `date_add(t, -count)`."""
    return date_add(t, -count if isinstance(count, int) else -as_expr(count))


def _column(column: object) -> Expr:
    if isinstance(column, str):
        return col(column)
    if isinstance(column, Expr):
        return column
    raise ExpressionError(f"{column!r:.80} ({call_site()}) is no column: write asc('x'), or col.x.asc()")


@called_as("is_between")
def _is_between(self: Expr, lower_bound: ExprLike, upper_bound: ExprLike, closed: Closed = "both") -> Expr:
    """The same as `between`; `closed` says which of the bounds belong to it: both, left, right, none."""
    if closed not in _CLOSED:
        raise ExpressionError(
            f"is_between(…, closed={closed!r:.60}) ({call_site()}): write one of {', '.join(_CLOSED)}"
        )
    lower = self >= lower_bound if closed in ("both", "left") else self > lower_bound
    upper = self <= upper_bound if closed in ("both", "right") else self < upper_bound
    return lower & upper


@called_as("ilike")
def _ilike(self: Expr, pattern: str) -> Expr:
    """The same as `str.like`, without regard to capitals."""
    return ilike(self, pattern)


@called_as("getItem")
def _get_item(self: Expr, key: ExprLike) -> Expr:
    """The same as `x[key]`."""
    return self[key]


@called_as("ne_missing")
def _ne_missing(self: Expr, other: ExprLike) -> Expr:
    """The same as `~x.eq_null_safe(other)`."""
    return ~self.eq_null_safe(other)


@called_as("is_not_nan")
def _is_not_nan(self: Expr) -> Expr:
    """The same as `~x.is_nan()`."""
    return ~self.is_nan()


@called_as("count")
def _count(self: Expr) -> Aggregate:
    """The same as `dd.count(x)`."""
    return count(self)


@called_as("sum")
def _sum(self: Expr) -> Aggregate:
    """The same as `dd.sum(x)`."""
    return sum(self)


@called_as("mean")
def _mean(self: Expr) -> Aggregate:
    """The same as `dd.avg(x)`."""
    return avg(self)


@called_as("min")
def _min(self: Expr) -> Aggregate:
    """The same as `dd.min(x)`."""
    return min(self)


@called_as("max")
def _max(self: Expr) -> Aggregate:
    """The same as `dd.max(x)`."""
    return max(self)


@called_as("min_by")
def _min_by(self: Expr, by: str | Expr) -> Aggregate:
    """The same as `dd.argmin(x, by)`."""
    return argmin(self, by)


@called_as("max_by")
def _max_by(self: Expr, by: str | Expr) -> Aggregate:
    """The same as `dd.argmax(x, by)`."""
    return argmax(self, by)


@called_as("std")
def _std(self: Expr, ddof: int = 1) -> Aggregate:
    """The same as `dd.stddev(x)`; with `ddof=0` as `dd.stddev(x, sample=False)`."""
    return stddev(self, sample=_is_sample("std", ddof))


@called_as("var")
def _var(self: Expr, ddof: int = 1) -> Aggregate:
    """The same as `dd.variance(x)`; with `ddof=0` as `dd.variance(x, sample=False)`."""
    return variance(self, sample=_is_sample("var", ddof))


def _is_sample(call: str, ddof: object) -> bool:
    if ddof not in (0, 1):
        raise ExpressionError(f"{call}(ddof={ddof!r:.40}) ({call_site()}): write 1 for n - 1, or 0 for n")
    return ddof == 1


def _nulls(name: str, of: Callable[[Expr], Ordering]) -> Callable[[Expr], Ordering]:
    def method(self: Expr) -> Ordering:
        return of(self)

    method.__doc__ = of.__doc__
    return called_as(name)(method)


_METHODS: Final = {
    "_count": _count,
    "_get_item": _get_item,
    "_ilike": _ilike,
    "_is_between": _is_between,
    "_is_not_nan": _is_not_nan,
    "_max": _max,
    "_max_by": _max_by,
    "_mean": _mean,
    "_min": _min,
    "_min_by": _min_by,
    "_ne_missing": _ne_missing,
    "_std": _std,
    "_sum": _sum,
    "_var": _var,
    **{
        f"_{of.__name__}": _nulls(of.__name__, of)
        for of in (asc_nulls_first, asc_nulls_last, desc_nulls_first, desc_nulls_last)
    },
}

for _name, _method in _METHODS.items():
    setattr(Expr, _name, _method)
