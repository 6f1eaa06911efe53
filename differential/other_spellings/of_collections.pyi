"""Second spellings of methods of collections and groups, from the table: base classes.

`rows.where(…)` is `rows.filter(…)`. Editors and mypy read the second spellings in `of_collections.pyi`, which
`./scripts/stubs` writes.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

from differential.collections.groups import Grouped, _Key
from differential.collections.handle import Name, Names
from differential.collections.selecting import _Name
from differential.expressions.expression import ExprLike
from differential.linear.user_functions import MapFunction
from differential.skew.balance import Balance

__all__ = ["CollectionSpellings", "GroupSpellings"]

T = TypeVar("T")
C = TypeVar("C")
S = TypeVar("S", bound=CollectionSpellings)

class CollectionSpellings:
    """Second spellings of methods of collections."""

    def where(self: S, *conditions: ExprLike | MapFunction) -> S:
        """The same as `filter`."""

    def having(self: S, *conditions: ExprLike | MapFunction) -> S:
        """The same as `filter`."""

    def dropna(
        self: S, *columns: _Name | Iterable[_Name], subset: _Name | Iterable[_Name] | None = None
    ) -> S:
        """The same as `drop_nulls`."""

    def fillna(
        self: S, value: ExprLike | Mapping[str, ExprLike], subset: _Name | Iterable[_Name] | None = None
    ) -> S:
        """The same as `fill_null`."""

    def transform(self: S, function: Callable[[S], T]) -> T:
        """The same as `pipe`."""

    def withColumn(self: S, name: Name, value: ExprLike) -> S:
        """The same as `with_columns(name=value)`."""

    def withColumns(self: S, columns: Mapping[str, ExprLike]) -> S:
        """The same as `with_columns`, of a mapping."""

    def withColumnRenamed(self: S, old: Name, new: Name) -> S:
        """The same as `rename({old: new})`."""

    def withColumnsRenamed(self: S, columns: Mapping[Name, Name] | None = None, **named: Name) -> S:
        """The same as `rename`."""

    def union(self: S, *others: S) -> S:
        """The same as `concat`."""

    def union_all(self: S, *others: S) -> S:
        """The same as `concat`."""

    def unionAll(self: S, *others: S) -> S:
        """The same as `concat`."""

    def unionByName(self: S, other: S, allowMissingColumns: bool = False) -> S:
        """The same as `union_by_name`, in PySpark's form."""

    def unique(self: S, subset: Names | None = None) -> S:
        """The same as `drop_duplicates`."""

    def dropDuplicates(self: S, subset: Names | None = None) -> S:
        """The same as `drop_duplicates`."""

    def except_(self: S, other: S) -> S:
        """The same as `subtract`."""

    def exceptAll(self: S, other: S) -> S:
        """The same as `except_all`."""

    def intersectAll(self: S, other: S) -> S:
        """The same as `intersect_all`."""

    def crossJoin(self: S, other: S, suffix: str | None = None) -> S:
        """The same as `cross_join`."""

    def groupBy(
        self: S, *keys: _Key | Sequence[_Key], balance: Balance | None = None, **named: ExprLike
    ) -> Grouped[S]:  # type: ignore[type-var]
        """The same as `group_by`."""

class GroupSpellings(Generic[C]):
    """Second spellings of methods of groups."""

    def mean(self, *columns: str) -> C:
        """The same as `avg`."""
