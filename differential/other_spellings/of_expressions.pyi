"""Second spellings of methods of expressions, from the table: their base class.

`col.x.isNull()` is `col.x.is_null()`. Editors and mypy read the second spellings in `of_expressions.pyi`,
which `./scripts/stubs` writes.
"""

from collections.abc import Iterable

from differential.columns.column_types import TypeSpec
from differential.expressions.expression import Expr, ExprLike
from differential.expressions.literals import Scalar

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
