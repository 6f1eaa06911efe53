"""Second spellings of methods of collections and groups, which the table answers: their bases.

`rows.where(…)` is `rows.filter(…)`. Editors and mypy read the second spellings in `of_collections.pyi`, which
`./scripts/stubs` writes.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, Self, TypeVar

from differential.collections.groups import Grouped, _Key
from differential.collections.handle import Name, Names
from differential.collections.selecting import _Name
from differential.expressions.expression import ExprLike
from differential.linear.user_functions import MapFunction
from differential.skew.balance import Balance

__all__ = ["CollectionSpellings", "GroupSpellings"]

T = TypeVar("T")
C = TypeVar("C")

class CollectionSpellings:
    """Second spellings of methods of collections."""

    def where(self, *conditions: ExprLike | MapFunction) -> Self:
        """The same as `filter`."""

    def having(self, *conditions: ExprLike | MapFunction) -> Self:
        """The same as `filter`."""

    def dropna(
        self, *columns: _Name | Iterable[_Name], subset: _Name | Iterable[_Name] | None = None
    ) -> Self:
        """The same as `drop_nulls`."""

    def fillna(
        self, value: ExprLike | Mapping[str, ExprLike], subset: _Name | Iterable[_Name] | None = None
    ) -> Self:
        """The same as `fill_null`."""

    def transform(self, function: Callable[[Self], T]) -> T:
        """The same as `pipe`."""

    def withColumn(self, name: Name, value: ExprLike) -> Self:
        """The same as `with_columns(name=value)`."""

    def withColumns(self, columns: Mapping[str, ExprLike]) -> Self:
        """The same as `with_columns`, of a mapping."""

    def withColumnRenamed(self, old: Name, new: Name) -> Self:
        """The same as `rename({old: new})`."""

    def withColumnsRenamed(self, columns: Mapping[Name, Name] | None = None, **named: Name) -> Self:
        """The same as `rename`."""

    def union(self, *others: Self) -> Self:
        """The same as `concat`."""

    def union_all(self, *others: Self) -> Self:
        """The same as `concat`."""

    def unionAll(self, *others: Self) -> Self:
        """The same as `concat`."""

    def unionByName(self, other: Self, allowMissingColumns: bool = False) -> Self:
        """The same as `union_by_name`, in PySpark's form."""

    def unique(self, subset: Names | None = None) -> Self:
        """The same as `drop_duplicates`."""

    def dropDuplicates(self, subset: Names | None = None) -> Self:
        """The same as `drop_duplicates`."""

    def except_(self, other: Self) -> Self:
        """The same as `subtract`."""

    def exceptAll(self, other: Self) -> Self:
        """The same as `except_all`."""

    def intersectAll(self, other: Self) -> Self:
        """The same as `intersect_all`."""

    def crossJoin(self, other: Self, suffix: str | None = None) -> Self:
        """The same as `cross_join`."""

    def groupBy(
        self, *keys: _Key | Sequence[_Key], balance: Balance | None = None, **named: ExprLike
    ) -> Grouped[Self]:  # type: ignore[type-var]
        """The same as `group_by`."""

class GroupSpellings(Generic[C]):
    """Second spellings of methods of groups."""

    def mean(self, *columns: str) -> C:
        """The same as `avg`."""
