"""Operators that treat rows one by one, by expressions: no state, no stage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Self, TypeVar, overload

from timely.user_code.call_site import call_site
from timely.user_code.offered import Offered
from timely.user_code.short_traces import in_short
from timely.user_code.spellings import called_as

from ..columns.column_types import TypeSpec
from ..columns.schema import Schema
from ..errors import ExpressionError, SchemaError
from ..expressions.expression import Aliased, ColumnRef, Expr, ExprLike, as_condition, as_expr, col
from ..expressions.functions.refusals import check_no_bool
from ..expressions.nulls import not_null_where
from ..expressions.pending import OwnedColumn, SqlExpr, label_of, over_rows
from ..linear.user_functions import MapFunction
from ..other_spellings import meant, of_another_library, written_as
from ..other_spellings.answers import explain_item
from ..plan.nodes import Filter, Negate, NotNull, Select
from ..plan.origins.aliases import all_of_side
from .handle import Handle, Name, name_of

__all__ = ["NullOperators", "RowOperators"]

_Name = str | Expr | Aliased
T = TypeVar("T")
R = TypeVar("R", bound="RowOperators")

_FILTER = "filter(col.x == 1)"
_DROP_NULLS = (
    "drop_nulls('x', 'y'), without nulls in any of them; where not all of them are null: "
    "filter(col.x.is_not_null() | col.y.is_not_null())"
)
_FILL_NULL = "fill_null(0), fill_null(0, ['x', 'y']), or fill_null({'x': 0, 'y': 'none'})"


class RowOperators(Handle):
    """Operators on each row by itself: a few ns per row and column; columns that only move cost nothing."""

    @overload
    def __getitem__(self, key: str | int) -> Expr: ...
    @overload
    def __getitem__(self, key: Expr | list[str] | list[Expr] | tuple[str | Expr, ...]) -> Self: ...
    def __getitem__(self, key: object) -> Expr | Self:
        """The column `rows["x"]`; the columns `rows[["x", "y"]]`; the rows `rows[rows.x > 1]`."""
        names = self.schema.names
        if type(key) is int and -len(names) <= key < len(names):
            return self._own(names[key])
        if isinstance(key, str) and key in names:
            return self._own(key)
        if isinstance(key, str):
            raise SchemaError(
                f"there is no column {key!r} ({call_site()}); there are: {self.schema}.{meant(key, names)}"
            )
        if isinstance(key, list | tuple) and key:
            return self.select(*key)
        if isinstance(key, Expr):
            return self.filter(key)
        raise SchemaError(f"{explain_item(key)} ({call_site()})")

    def select(self, *columns: _Name | Iterable[_Name], **named: ExprLike) -> Self:
        """Columns by name, and columns computed by expressions: `select("src", label=col.dst + 1)`, or with
        `(col.dst + 1).alias("label")`.

        Lists of names are taken, too, and "*" stands for all columns. Rust: `map`. LINQ: `Select`.
        """
        chosen: dict[str, Expr] = {}
        listed: dict[str, Expr] = {}
        for column in _flat(columns):
            if isinstance(column, str) and column == "*" and "*" not in self.schema:
                chosen.update({name: col(name) for name in self.schema.names})
                continue
            if isinstance(column, str) and column.endswith(".*") and (side := self._side(column[:-2])):
                chosen.update(self._new_in(listed, side))
                listed.update(side)
                continue
            name, expr = _selected(column)
            expr = self.sided(expr)
            if isinstance(expr, OwnedColumn) and name == expr.written:
                name = expr.name
            if name in listed and not self._is_same(listed[name], expr):
                raise SchemaError(
                    f"select ({call_site()}): two columns are called {name!r}: write "
                    f"{listed[name]!r}.alias('other_name')"
                )
            chosen[name] = listed[name] = expr
        chosen.update(
            {name: self.sided(self._expr_of("select", name, value)) for name, value in named.items()}
        )
        return self.with_node(Select(self.node, tuple(chosen.items())))

    def _side(self, alias: str) -> dict[str, Expr]:
        """Return the columns of a side that `alias` has named, by their own names; none if there is none."""
        try:
            names = all_of_side(self.node, self.plan.origins, self.called, alias)
        except ExpressionError as error:
            raise ExpressionError(f"{alias}.* ({call_site()}): {error}") from None
        return {name: col(own) for name, own in names.items()}

    def _new_in(self, listed: Mapping[str, Expr], side: Mapping[str, Expr]) -> Mapping[str, Expr]:
        """Return the columns of a side; raise SchemaError if one has the name of another column."""
        for name, expr in side.items():
            if name in listed and not self._is_same(listed[name], expr):
                raise SchemaError(
                    f"select ({call_site()}): two columns are called {name!r}: name those that you need, "
                    f"one of them as {expr!r}.alias('other_name')"
                )
        return side

    def _is_same(self, one: Expr, other: Expr) -> bool:
        return over_rows(one, self.node).equals(over_rows(other, self.node))

    def with_columns(self, *columns: Aliased | Iterable[Aliased], **named: ExprLike) -> Self:
        """All columns, those named here replaced or added at the end: `with_columns(degree=col.n + 1)`, or
        `with_columns((col.n + 1).alias("degree"))`, or a list of such.
        """
        exprs: dict[str, Expr] = {name: col(name) for name in self.schema.names}
        for column in _flat(columns):
            if not isinstance(column, Aliased):
                raise SchemaError(
                    f"with_columns: {column!r} needs a name: write with_columns(name={column!r})"
                )
            exprs[column.name] = self.sided(column.expr)
        exprs.update(
            {name: self.sided(self._expr_of("with_columns", name, value)) for name, value in named.items()}
        )
        return self.with_node(Select(self.node, tuple(exprs.items())))

    def _expr_of(self, call: str, name: str, value: ExprLike) -> Expr:
        """Return the expression of a column.

        A text that is the name of a column is refused: here a text is a text, but users of Polars mean the
        column.
        """
        if isinstance(value, str) and value in self.schema:
            raise SchemaError(
                f"{call} ({call_site()}): {name}={value!r} is a text, and there is a column of that name: "
                f"for the column write {name}=col[{value!r}], for the text {name}=lit({value!r})"
            )
        check_no_bool(f"{call}({name}=…)", value)
        return as_expr(value)

    def drop(self, *columns: _Name | Iterable[_Name]) -> Self:
        """All columns but these; rows that differ in nothing else add up. One at least must be left."""
        dropped = [name_of(column, "drop", self) for column in _flat(columns)]
        for name in dropped:
            self.schema.offset(name)
        names = [name for name in self.schema.names if name not in dropped]
        if not names:
            raise SchemaError(f"drop: of ({self.schema}) nothing would be left")
        return self.select(*names) if dropped else self

    def rename(self, columns: Mapping[Name, Name] | None = None, **named: Name) -> Self:
        """The same columns, some under other names, old to new: `rename({"src": "node"})`, or
        `rename(src="node")`.
        """
        pairs = [*(columns or {}).items(), *named.items()]
        new = {name_of(old, "rename", self): name_of(name, "rename") for old, name in pairs}
        for name in new:
            self.schema.offset(name)
        names = [new.get(name, name) for name in self.schema.names]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise SchemaError(f"rename: two columns would be called {twice[0]!r}")
        return self.select(**{new.get(name, name): col(name) for name in self.schema.names})

    @written_as(_FILTER)
    def filter(self, *conditions: ExprLike | MapFunction) -> Self:
        """The rows for which all `conditions` are true (not false, not null). Rust: `filter`. LINQ: `Where`.

        A condition is an expression, or a Python function of the record, as in `map`, which returns True, or
        False or None. A function takes about 1 µs a record, and the rules of a plan do not move it. Or it is
        SQL as text, in Spark's dialect: `filter("x > 1 and s like 'a%'")`; see `dd.expr`.

        The types of the result follow from what expressions say of nulls: behind
        `filter(col.x.is_not_null())`, `filter(col.x > 3)` or `drop_nulls("x")` the column x is one that is
        never null.
        """
        if not conditions:
            raise SchemaError("filter() needs a condition: filter(col.x > 1)")
        rows = self
        for condition in conditions:
            if isinstance(condition, str):
                rows = rows._where(SqlExpr(f"filter({condition!r:.80})", condition, "spark", "filter({})"))
            elif callable(condition) and not isinstance(condition, Expr):
                rows = rows.applied("filter", condition, None)
            else:
                rows = rows._where(as_condition("filter", condition))
        return rows

    def _where(self, condition: Expr) -> Self:
        """Return the rows for which `condition` is true; columns that it makes non-null have such types."""
        condition = over_rows(self.sided(condition), self.node)
        rows = self.with_node(Filter(self.node, condition))
        never_null = not_null_where(condition)
        names = tuple(each.name for each in rows.schema if each.type.nullable and each.name in never_null)
        return rows.with_node(NotNull(rows.node, names)) if names else rows

    @written_as(_DROP_NULLS)
    def drop_nulls(
        self, *columns: _Name | Iterable[_Name], subset: _Name | Iterable[_Name] | None = None
    ) -> Self:
        """The rows in which none of these columns (of all, if none are named) is null.

        `drop_nulls("x", "y")` or `drop_nulls(subset=["x", "y"])`. The types of these columns are never null
        then.
        """
        listed = columns if subset is None else (*columns, subset)
        names = [name_of(each, "drop_nulls", self) for each in _flat(listed)] if listed else self.schema.names
        nullable = [name for name in names if self.schema[name].type.nullable]
        return self.filter(*(col(name).is_not_null() for name in nullable)) if nullable else self

    @written_as(_FILL_NULL)
    def fill_null(
        self, value: ExprLike | Mapping[str, ExprLike], subset: _Name | Iterable[_Name] | None = None
    ) -> Self:
        """A value in place of null: `fill_null(0)` in columns of numbers, `fill_null("")` in those of text.

        Or in the columns of `subset`; or by column: `fill_null({"x": 0, "name": col.id.cast("string")})`.

        Without a `subset`, columns that cannot hold the value stay as they are, as in PySpark and Polars. A
        column filled with a value that is never null is never null by its type.
        """
        if isinstance(value, Mapping):
            if subset is not None:
                raise SchemaError(
                    f"fill_null ({call_site()}): a mapping says itself which columns: no subset"
                )
            return self.with_columns(**{name: col(name).fill_null(each) for name, each in value.items()})
        names = (
            self.schema.names if subset is None else [name_of(n, "fill_null", self) for n in _flat([subset])]
        )
        filled = {
            name: col(name).fill_null(value)
            for name in names
            if self.schema[name].type.nullable and (subset is not None or self._holds(name, value))
        }
        return self.with_columns(**filled) if filled else self

    def _holds(self, name: str, value: ExprLike) -> bool:
        """Return True if null in a column can be filled with `value`, and the column keeps its type."""
        try:
            type_ = col(name).fill_null(value).type_in(self.schema)
        except ExpressionError:
            return False
        return type_.not_null() == self.schema[name].type.not_null()

    def pipe(self, function: Callable[[Self], T]) -> T:
        """`function(self)`: for chains of calls."""
        return function(self)

    def negate(self) -> Self:
        """All multiplicities with the other sign. Rust: `negate`."""
        return self.with_node(Negate(self.node))

    # Forms of PySpark and Polars, which `other_spellings` calls.

    @called_as("alias")
    def _alias(self, name: str) -> Self:
        """The same as `select("*")`, under a name that tells the sides of a self join apart."""
        if not isinstance(name, str):
            raise SchemaError(f"alias({name!r:.60}) ({call_site()}) takes a name as text: alias('a')")
        return replace(self, called=name)

    @called_as("withColumn")
    def _with_column(self, name: Name, value: ExprLike) -> Self:
        """The same as `with_columns(name=value)`."""
        return self.with_columns(**{name_of(name, "withColumn"): value})

    @called_as("withColumns")
    def _with_columns(self, columns: Mapping[str, ExprLike]) -> Self:
        """The same as `with_columns`, of a mapping."""
        return self.with_columns(**columns)

    @called_as("withColumnRenamed")
    def _with_column_renamed(self, old: Name, new: Name) -> Self:
        """The same as `rename({old: new})`."""
        return self.rename({old: new})

    def _with_texts_selected(self, parts: Sequence[tuple[str, SqlExpr, bool]]) -> Self:
        """Return the columns that texts make, by the names that they have."""
        exprs: dict[str, Expr] = {}
        for name, sql, _ in parts:
            if name == "*":
                named: dict[str, Expr] = {each: col(each) for each in self.schema.names}
            else:
                side = self._side(name[:-2]) if name.endswith(".*") else {}
                named = side or {name: self.sided(sql)}
            for each in named:
                if each in exprs:
                    raise SchemaError(
                        f"{sql.written} ({call_site()}): two columns are called {each!r}: write "
                        f"'{sql.text} AS other_name'"
                    )
            exprs.update(named)
        if not exprs:
            raise SchemaError(f"selectExpr ({call_site()}) needs a column: selectExpr('x + 1 AS y')")
        return self.with_node(Select(self.node, tuple(exprs.items())))

    @called_as("toDF")
    def _to_df(self, *names: str) -> Self:
        """The same as `rename`: new names for all columns, in their order."""
        if len(names) != len(self.schema.names):
            raise SchemaError(
                f"toDF ({call_site()}) takes a name for each column: there are {len(self.schema.names)}, "
                f"{', '.join(self.schema.names)}. For some of them write rename({{'old': 'new'}})"
            )
        return self.rename(dict(zip(self.schema.names, names, strict=True)))

    @called_as("cast")
    def _cast(self, types: Mapping[Name, TypeSpec]) -> Self:
        """The same as `with_columns(x=col.x.cast(type))` for each column of a mapping."""
        if not isinstance(types, Mapping):
            raise SchemaError(
                f"cast({types!r:.60}) ({call_site()}) takes types by column: write cast({{'x': 'int'}}), or "
                "with_columns(x=col.x.cast('int'))"
            )
        named = {name_of(name, "cast", self): type_ for name, type_ in types.items()}
        return self.with_columns(**{name: col(name).cast(type_) for name, type_ in named.items()})

    @called_as("collect_schema")
    def _collect_schema(self) -> Schema:
        """The same as `schema`."""
        return self.schema

    @property
    def _na(self) -> NullOperators[Self]:
        """What there is to do with nulls: `na.drop` is `drop_nulls`, `na.fill` is `fill_null`."""
        return NullOperators(self)


@in_short
@dataclass(frozen=True)
class NullOperators(Offered, Generic[R]):
    """What PySpark has behind `na`."""

    _collection: R

    @written_as(_DROP_NULLS)
    def drop(self, *, subset: _Name | Iterable[_Name] | None = None) -> R:
        """The same as `drop_nulls`."""
        return self._collection.drop_nulls(subset=subset)

    @written_as(_FILL_NULL)
    def fill(
        self, value: ExprLike | Mapping[str, ExprLike], subset: _Name | Iterable[_Name] | None = None
    ) -> R:
        """The same as `fill_null`."""
        return self._collection.fill_null(value, subset)


def _selected(column: _Name) -> tuple[str, Expr]:
    """Return the name of a column that `select` takes, and what it is."""
    if isinstance(column, str):
        return column, col(column)
    if isinstance(column, Aliased):
        return column.name, column.expr
    if isinstance(column, OwnedColumn | ColumnRef):
        return column.name, column
    if isinstance(column, SqlExpr):
        return label_of(column), column
    raise SchemaError(f"select: {column!r} needs a name: write select(name={column!r})")


def _flat(columns: Iterable[object]) -> Iterable[_Name]:
    for column in columns:
        if isinstance(column, str | Expr | Aliased):
            yield column
        elif isinstance(column, Iterable) and of_another_library(column) is None:
            yield from column
        else:
            # raises for an aggregate, and for columns of other libraries, and says what to write
            yield as_expr(column)
