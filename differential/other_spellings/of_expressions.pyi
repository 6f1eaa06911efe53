"""Second spellings of methods of expressions, from the table: their base class.

`col.x.isNull()` is `col.x.is_null()`. Editors and mypy read the second spellings in `of_expressions.pyi`,
which `./scripts/stubs` writes.
"""

from collections.abc import Iterable

from differential.aggregates import Aggregate
from differential.columns.column_types import TypeSpec
from differential.expressions.expression import Expr, ExprLike, Ordering
from differential.expressions.literals import Scalar
from differential.spelled import Closed

__all__ = ["ExprSpellings"]

class ExprSpellings:
    """Second spellings of methods of expressions."""

    def astype(self, type_: TypeSpec) -> Expr:
        """The same as `cast`."""

    def isin(self, *values: Scalar | Iterable[Scalar]) -> Expr:
        """The same as `is_in`."""

    def isNull(self) -> Expr:
        """The same as `is_null`."""

    def isNotNull(self) -> Expr:
        """The same as `is_not_null`."""

    def eqNullSafe(self, other: ExprLike) -> Expr:
        """The same as `eq_null_safe`."""

    def fillna(self, value: ExprLike) -> Expr:
        """The same as `fill_null`."""

    def contains(self, part: str) -> Expr:
        """The same as `str.contains`."""

    def startswith(self, part: str) -> Expr:
        """The same as `str.startswith`."""

    def endswith(self, part: str) -> Expr:
        """The same as `str.endswith`."""

    def like(self, pattern: str) -> Expr:
        """The same as `str.like`."""

    def rlike(self, pattern: str) -> Expr:
        """The same as `str.matches`."""

    def starts_with(self, part: str) -> Expr:
        """The same as `str.startswith`."""

    def ends_with(self, part: str) -> Expr:
        """The same as `str.endswith`."""

    def ilike(self, pattern: str) -> Expr:
        """The same as `str.like`, without regard to capitals."""

    def is_between(self, lower_bound: ExprLike, upper_bound: ExprLike, closed: Closed = "both") -> Expr:
        """The same as `between`; `closed` says which of the bounds belong to it: both, left, right, none."""

    def isnull(self) -> Expr:
        """The same as `is_null`."""

    def isna(self) -> Expr:
        """The same as `is_null`."""

    def notnull(self) -> Expr:
        """The same as `is_not_null`."""

    def notna(self) -> Expr:
        """The same as `is_not_null`."""

    def isNaN(self) -> Expr:
        """The same as `is_nan`."""

    def isnan(self) -> Expr:
        """The same as `is_nan`."""

    def is_not_nan(self) -> Expr:
        """The same as `~x.is_nan()`."""

    def eq_missing(self, other: ExprLike) -> Expr:
        """The same as `eq_null_safe`."""

    def ne_missing(self, other: ExprLike) -> Expr:
        """The same as `~x.eq_null_safe(other)`."""

    def getItem(self, key: ExprLike) -> Expr:
        """The same as `x[key]`."""

    def getField(self, key: str | int) -> Expr:
        """The same as `list.field`."""

    def pow(self, exponent: ExprLike) -> Expr:
        """The same as `power`."""

    def arcsin(self) -> Expr:
        """The same as `asin`."""

    def arccos(self) -> Expr:
        """The same as `acos`."""

    def arctan(self) -> Expr:
        """The same as `atan`."""

    def bitwiseAND(self, other: ExprLike) -> Expr:
        """The same as `bitwise_and`."""

    def bitwiseOR(self, other: ExprLike) -> Expr:
        """The same as `bitwise_or`."""

    def bitwiseXOR(self, other: ExprLike) -> Expr:
        """The same as `bitwise_xor`."""

    def bitwise_count_ones(self) -> Expr:
        """The same as `bit_count`."""

    def asc_nulls_first(self) -> Ordering:
        """The same as `col.x.asc()`."""

    def asc_nulls_last(self) -> Ordering:
        """The same as `col.x.asc(nulls_last=True)`."""

    def desc_nulls_first(self) -> Ordering:
        """The same as `col.x.desc(nulls_last=False)`."""

    def desc_nulls_last(self) -> Ordering:
        """The same as `col.x.desc()`."""

    def add(self, other: ExprLike) -> Expr:
        """The same as `x + y`."""

    def sub(self, other: ExprLike) -> Expr:
        """The same as `x - y`."""

    def mul(self, other: ExprLike) -> Expr:
        """The same as `x * y`."""

    def truediv(self, other: ExprLike) -> Expr:
        """The same as `x / y`."""

    def floordiv(self, other: ExprLike) -> Expr:
        """The same as `x // y`."""

    def mod(self, other: ExprLike) -> Expr:
        """The same as `x % y`."""

    def neg(self) -> Expr:
        """The same as `-x`."""

    def eq(self, other: object) -> Expr:
        """The same as `x == y`."""

    def ne(self, other: object) -> Expr:
        """The same as `x != y`."""

    def lt(self, other: ExprLike) -> Expr:
        """The same as `x < y`."""

    def le(self, other: ExprLike) -> Expr:
        """The same as `x <= y`."""

    def gt(self, other: ExprLike) -> Expr:
        """The same as `x > y`."""

    def ge(self, other: ExprLike) -> Expr:
        """The same as `x >= y`."""

    def div(self, other: ExprLike) -> Expr:
        """The same as `x / y`."""

    def and_(self, other: ExprLike) -> Expr:
        """The same as `x & y`."""

    def or_(self, other: ExprLike) -> Expr:
        """The same as `x | y`."""

    def not_(self) -> Expr:
        """The same as `~x`."""

    def count(self) -> Aggregate:
        """The same as `dd.count(x)`."""

    def sum(self) -> Aggregate:
        """The same as `dd.sum(x)`."""

    def mean(self) -> Aggregate:
        """The same as `dd.avg(x)`."""

    def min(self) -> Aggregate:
        """The same as `dd.min(x)`."""

    def max(self) -> Aggregate:
        """The same as `dd.max(x)`."""

    def min_by(self, by: str | Expr) -> Aggregate:
        """The same as `dd.argmin(x, by)`."""

    def max_by(self, by: str | Expr) -> Aggregate:
        """The same as `dd.argmax(x, by)`."""

    def std(self, ddof: int = 1) -> Aggregate:
        """The same as `dd.stddev(x)`; with `ddof=0` as `dd.stddev(x, sample=False)`."""

    def var(self, ddof: int = 1) -> Aggregate:
        """The same as `dd.variance(x)`; with `ddof=0` as `dd.variance(x, sample=False)`."""
