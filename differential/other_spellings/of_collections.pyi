"""Second spellings of methods of collections, groups and orders, from the table: base classes.

`rows.where(…)` is `rows.filter(…)`. Editors and mypy read the second spellings in `of_collections.pyi`, which
`./scripts/stubs` writes.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

from differential.aggregates import Aggregate
from differential.collections.grouping_sets import GroupedBySets
from differential.collections.groups import Grouped, _Key, _Selected
from differential.collections.handle import Name, Names
from differential.collections.in_order.ordered import Ordered
from differential.collections.selecting import NullOperators, _Name
from differential.columns.column_types import TypeSpec
from differential.columns.schema import Schema, SchemaSpec
from differential.expressions.expression import Aliased, Expr, ExprLike, Ordering
from differential.expressions.orders import OrderSpec
from differential.linear.user_functions import FlatMapFunction, MapFunction
from differential.operators.reduce import RankKind
from differential.skew.balance import Balance

__all__ = ["CollectionSpellings", "GroupSpellings", "OrderSpellings"]

T = TypeVar("T")
C = TypeVar("C")
H = TypeVar("H")
S = TypeVar("S", bound=CollectionSpellings)

class CollectionSpellings:
    """Second spellings of methods of collections."""

    def concatenate(self: S, *others: S) -> S:
        """The same as `concat`."""

    def SelectMany(self: S, function: FlatMapFunction, schema: SchemaSpec | None = None) -> S:
        """The same as `flat_map`."""

    def Except(self: S, other: S) -> S:
        """The same as `except_all`."""

    def assert_eq(self: S, other: S, what: str = "") -> S:
        """The same as `assert_equal`."""

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

    def groupby(
        self: S, *keys: _Key | Sequence[_Key], balance: Balance | None = None, **named: ExprLike
    ) -> Grouped[S]:  # type: ignore[type-var]
        """The same as `group_by`."""

    def orderBy(self: S, *by: OrderSpec) -> Ordered[S]:  # type: ignore[type-var]
        """The same as `order_by`."""

    def sort(self: S, *by: OrderSpec) -> Ordered[S]:  # type: ignore[type-var]
        """The same as `order_by`."""

    def aggregate(self: S, *unnamed: object, **aggregates: Aggregate | Expr | Aliased) -> S:
        """The same as `agg`."""

    def with_column(self: S, name: Name, value: ExprLike) -> S:
        """The same as `with_columns(name=value)`."""

    def with_column_renamed(self: S, old: Name, new: Name) -> S:
        """The same as `rename({old: new})`."""

    def with_columns_renamed(self: S, columns: Mapping[Name, Name] | None = None, **named: Name) -> S:
        """The same as `rename`."""

    def assign(self: S, *columns: Aliased | Iterable[Aliased], **named: ExprLike) -> S:
        """The same as `with_columns`."""

    def with_columns_seq(self: S, *columns: Aliased | Iterable[Aliased], **named: ExprLike) -> S:
        """The same as `with_columns`."""

    def select_seq(self: S, *columns: _Selected | Iterable[_Selected], **named: ExprLike) -> S:
        """The same as `select`."""

    def toDF(self: S, *names: str) -> S:
        """The same as `rename`: new names for all columns, in their order."""

    def to_df(self: S, *names: str) -> S:
        """The same as `rename`: new names for all columns, in their order."""

    def cast(self: S, types: Mapping[Name, TypeSpec]) -> S:
        """The same as `with_columns(x=col.x.cast(type))` for each column of a mapping."""

    def astype(self: S, types: Mapping[Name, TypeSpec]) -> S:
        """The same as `with_columns(x=col.x.cast(type))` for each column of a mapping."""

    @property
    def na(self: S) -> NullOperators[S]:  # type: ignore[type-var]
        """What there is to do with nulls: `na.drop` is `drop_nulls`, `na.fill` is `fill_null`."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The same as `schema.names`."""

    def collect_schema(self) -> Schema:
        """The same as `schema`."""

    def vstack(self: S, *others: S) -> S:
        """The same as `concat`."""

    def minus(self: S, other: S) -> S:
        """The same as `subtract`."""

    def flatMap(self: S, function: FlatMapFunction, schema: SchemaSpec | None = None) -> S:
        """The same as `flat_map`."""

    def join_where(self: S, other: S, *predicates: ExprLike, suffix: str | None = "_right") -> S:
        """The same as `theta_join(other, predicates)`, in Polars' form."""

    def selectExpr(self: S, *texts: str | Sequence[str]) -> S:
        """The same as `select(dd.expr(text), …)`; with an aggregate in a text as `agg`."""

    def select_expr(self: S, *texts: str | Sequence[str]) -> S:
        """The same as `select(dd.expr(text), …)`; with an aggregate in a text as `agg`."""

    def groupingSets(
        self: S, sets: Sequence[Sequence[str]], *keys: _Key | Sequence[_Key], **named: ExprLike
    ) -> GroupedBySets[S]:  # type: ignore[type-var]
        """The same as `grouping_sets`."""

    def alias(self: S, name: str) -> S:
        """The same as `select("*")`, under a name that tells the sides of a self join apart."""

class GroupSpellings(Generic[C]):
    """Second spellings of methods of groups."""

    def orderBy(self, *by: str | Expr | Ordering) -> Ordered[C]:  # type: ignore[type-var]
        """The same as `order_by`."""

    def sort(self, *by: str | Expr | Ordering) -> Ordered[C]:  # type: ignore[type-var]
        """The same as `order_by`."""

    def aggregate(self, *unnamed: object, **aggregates: Aggregate | Expr | Aliased) -> C:
        """The same as `agg`."""

    def mean(self, *columns: str) -> C:
        """The same as `avg`."""

    def len(self, name: str = "len") -> C:
        """The same as `agg(len=dd.count())`."""

class OrderSpellings(Generic[H]):
    """Second spellings of methods of orders."""

    def head(
        self,
        n: int,
        offset: int = 0,
        *,
        rank: str | None = None,
        method: RankKind = "row_number",
        ties: bool = False,
    ) -> H:
        """The same as `limit`."""
