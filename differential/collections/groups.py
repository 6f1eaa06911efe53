"""Groups of rows with equal keys, and the rows that are computed of each group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Generic, NoReturn, Self, TypeAlias, TypeVar

from timely.user_code.call_site import call_site
from timely.user_code.short_traces import in_short
from timely.user_code.spellings import called_as

from .. import aggregates as of_groups
from .. import group_statistics as statistics
from ..aggregates import COLLECTED, OF_SETS, Aggregate, AggregateKind, NamedAggregate, count
from ..columns.schema import Schema, SchemaSpec
from ..errors import SchemaError
from ..expressions.expression import Aliased, ColumnRef, Expr, ExprLike, Ordering, col
from ..expressions.orders import By, orderings
from ..expressions.pending import OwnedColumn, SqlCall, SqlExpr, label_of, sql_reader, with_columns_of
from ..operators.reduce import RankKind
from ..operators.reducing.group_functions import UserGroupFunction
from ..other_spellings import of_another_library, written_as
from ..other_spellings.of_collections import GroupSpellings
from ..other_spellings.table import GROUPS
from ..plan.grouping.aggregating import aggregated
from ..plan.grouping.whole import always_one_row
from ..plan.nodes import ReduceFunction, Select
from ..plan.nodes.guarded import Provided
from ..skew.balance import Balance
from .handle import Handle, Name, name_of
from .in_order.ordered import Ordered
from .in_order.windows import WindowOperators
from .texts.aggregates_as_text import grouped_text_reader

__all__ = ["GroupOperators", "Grouped", "named_aggregates", "requested_aggregates"]

C = TypeVar("C", bound=Handle)

_Key: TypeAlias = str | Expr | Aliased
"""A key of groups: a column, or an expression with a name."""


_Selected: TypeAlias = str | Expr | Aliased | Aggregate | NamedAggregate


class GroupOperators(WindowOperators):
    """Cutting a collection into groups."""

    def group_by(
        self, *keys: _Key | Sequence[_Key], balance: Balance | None = None, **named: ExprLike
    ) -> Grouped[Self]:
        """Groups of rows with equal `keys`; follow with `agg(…)` or `reduce(fn, …)`. No keys: one group of
        all rows.

        Keys are names, `col.x`, lists of these, and expressions with a name: `group_by("user",
        day=col.t.cast("date"))`, or `col.t.cast("date").alias("day")`. Null is a key as any other: rows where
        it is null are one group.

        `balance` divides groups among units, so that a key with very many rows is not the work of one worker:
        `balance=dd.Balance("JB", units=16)`, each row anywhere, or `"JB6"`, in the group of units of its key.
        It matters for values that are chosen from a group (min, max, argmin, argmax, first, last, top_k,
        limit); sums and counts are added up on their way in any case. Operators that need whole groups
        (collect, reduce, rank of all rows) refuse it.
        """
        if not (balance is None or isinstance(balance, Balance)):
            raise SchemaError(
                f"group_by ({call_site()}): balance={balance!r:.80} is no balance: write dd.Balance('JB', "
                "units=16). For a key of that name write group_by(expression.alias('balance'))"
            )
        key_exprs = [self._key_of(_labelled(one)) for key in keys for one in _keys(key)]
        owned = [one for one in key_exprs if isinstance(one, OwnedColumn)]
        if any(name_of(one, "group_by", self) != one.name for one in owned):
            source = self._with_names_of(owned)
            grouped = source.group_by(*key_exprs, balance=balance, **named)
            displaced = frozenset(name_of(one, "group_by", source) for one in owned) & set(self.schema.names)
            return replace(grouped, _replaced=grouped._replaced | displaced)
        key_exprs = [one.name if isinstance(one, OwnedColumn) else one for one in key_exprs]
        computed = {one.name: one.expr for one in key_exprs if isinstance(one, Aliased)}
        source = self.with_columns(**computed, **named) if computed or named else self
        names = [*map(_key, key_exprs), *named]
        for name in names:
            source.schema.offset(name)
        if len(set(names)) != len(names):
            raise SchemaError(f"group_by: a key is named twice in {', '.join(names)}")
        replaced = frozenset({*computed, *named} & set(self.schema.names))
        return Grouped(source, tuple(names), replaced, balance)

    def _key_of(self, key: _Key) -> _Key:
        """Return a key with the column of a side in place of "a.x", where `alias` has named one."""
        if isinstance(key, str):
            side = self.sided(col(key)) if "." in key else key
            return side if isinstance(side, OwnedColumn) else key
        if isinstance(key, Aliased):
            return Aliased(key.name, self.sided(key.expr))
        return self.sided(key)

    def _with_names_of(self, columns: Sequence[OwnedColumn]) -> Self:
        """Return the rows with these columns under their own names; others of such a name get another one."""
        new: dict[Name, Name] = {name_of(each, "group_by", self): each.name for each in columns}
        if len(set(new.values())) < len(new):
            raise SchemaError(
                f"group_by ({call_site()}): two keys are called {columns[0].name!r}: write "
                f"{columns[0]!r}.alias('other_name')"
            )
        for name in [*new.values()]:
            if name in self.schema and name not in new:
                new[name] = f"{name}'"
                while new[name] in self.schema:
                    new[name] += "'"
        return self.rename(new)

    def assert_single(self, what: str = "") -> Self:
        """The same collection. While it has more than one row, outputs behind it have no answer.

        For scalars: a total, a threshold, the one row of settings. `what` is the text of the claim in the
        message. State: one counter.
        """
        more = self.agg(rows=count()).filter(col.rows > 1)
        claim = more.assert_empty(what or f"assert_single ({call_site()}): one row at most")
        return self.with_node(Provided(self.node, claim.node))

    def select(self, *columns: _Selected | Iterable[_Selected], **named: ExprLike) -> Self:
        """Columns by name, and columns computed by expressions: `select("src", label=col.dst + 1)`, or with
        `(col.dst + 1).alias("label")`. Of aggregates alone it is `agg`, as in PySpark.

        Lists of names are taken, too, and "*" stands for all columns. Rust: `map`. LINQ: `Select`.
        """
        if columns and not named and all(isinstance(each, Aggregate | NamedAggregate) for each in columns):
            return self.agg(*columns)
        return super().select(*columns, **named)  # type: ignore[arg-type]  # an aggregate among others is refused

    @called_as("selectExpr")
    def _select_expr(self, *texts: str | Sequence[str]) -> Self:
        """The same as `select(dd.expr(text), …)`; with an aggregate in a text as `agg`."""
        listed = [one for each in texts for one in ([each] if isinstance(each, str) else each)]
        parts = [sql_reader().named(text, "selectExpr", "spark") for text in listed]
        if not any(name != "*" and grouped_text_reader().has_aggregates(sql) for name, sql, _ in parts):
            return self._with_texts_selected(parts)
        return self.agg(*(Aliased(name, sql) for name, sql, _ in parts))

    def agg(self, *unnamed: object, **aggregates: Aggregate | Expr | Aliased) -> Self:
        """Aggregates of all rows, as `group_by().agg(…)`: always one row, from the first epoch on.

        Of no rows, counts are 0, collected lists are empty, and all else is null, as in SQL and Spark; so the
        columns of other aggregates may be null. In a loop, too, the row of nothing is there from iteration 0
        on, until there are rows.
        """
        return self.group_by().agg(*unnamed, **aggregates)


_BY_TEXT: Final = {
    **{
        name: name
        for name in ("sum", "min", "max", "count", "avg", "collect", "collect_set", "count_distinct")
    },
    **{name: name for name in ("count_if", "stddev", "variance", "any_of", "all_of")},
    **{"mean": "avg", "nunique": "count_distinct", "n_unique": "count_distinct", "std": "stddev"},
    **{
        "var": "variance",
        "any": "any_of",
        "any_value": "any_value_of",
        "all": "all_of",
        "list": "collect",
        "set": "collect_set",
    },
    **{name: name for name in ("median", "mode", "approx_count_distinct", "skewness", "kurtosis")},
    **{"skew": "skewness", "kurt": "kurtosis"},
    "collect_list": "collect",
}
"""Our functions by the texts that name aggregates of a column in pandas and PySpark."""


def _of_text(function: object, column: str) -> str | None:
    """Return the aggregate, as code, that a text names in pandas or PySpark; None for a text without one."""
    if column == "*" or function in ("size", "len"):
        return "dd.count()"
    if function in ("first", "last"):
        return f"dd.{function}({column!r}, by='time')"
    name = _BY_TEXT.get(function) if isinstance(function, str) else None
    return None if name is None else f"dd.{name}({column!r})"


def _as_in_pandas(aggregate: object) -> str:
    """Return what to write for ('x', 'sum'), pandas' pair of a column and an aggregate; "" for all else."""
    match aggregate:
        case (str(column), str(function)):
            written = _of_text(function, column)
            return "" if written is None else f". Write {written}"
    return ""


_SHORT: Final = {"mean": "avg", "average": "avg", "std": "stddev"}
"""Texts that PySpark, or pandas, takes for another aggregate, by whose name it calls the result."""


def _of_mapping(functions: Mapping[object, object]) -> dict[str, Aggregate]:
    """Return the aggregates of {'x': 'sum', '*': 'count'}, under PySpark's names: sum(x), count(1)."""
    aggregates: dict[str, Aggregate] = {}
    for column, kinds in functions.items():
        for kind in kinds if isinstance(kinds, list | tuple) else (kinds,):
            short = _SHORT.get(kind, kind) if isinstance(kind, str) else ""
            name = _BY_TEXT.get(short)
            if not isinstance(column, str) or name is None or (column == "*" and name != "count"):
                ordered = (
                    f": write agg({kind}=dd.{kind}({column!r}, by='time'))"
                    if kind in ("first", "last")
                    else ""
                )
                raise SchemaError(
                    f"agg({{{column!r:.60}: {kind!r:.60}}}) ({call_site()}): there is no such aggregate of a "
                    f"column{ordered or '. Name each, as in ' + _EXAMPLE}"
                )
            if column == "*":
                aggregates["count(1)"] = count()
                continue
            make = getattr(of_groups, name, None) or getattr(statistics, name)
            aggregates[f"{short}({column})"] = make(column)
    return aggregates


_EXAMPLE: Final = "agg(total=dd.sum('x'))"


@in_short
@dataclass(frozen=True, eq=False)
class Grouped(GroupSpellings[C], Generic[C]):
    """A collection cut into groups by the columns `keys`."""

    _internal = frozenset({"collection", "keys"})

    collection: C
    keys: tuple[str, ...]
    _replaced: frozenset[str] = frozenset()
    """Keys that took the place of a column of the same name: computed ones, and columns of an owner."""
    _balance: Balance | None = None
    """The units among which groups are divided."""

    if not TYPE_CHECKING:

        def __getitem__(self, key: object) -> NoReturn:
            name = key if isinstance(key, str) else "x"
            raise SchemaError(
                f"a grouped collection has no [{key!r:.80}] ({call_site()}). Write instead: "
                f"agg(total=dd.sum({name!r})), or sum({name!r})"
            )

    def _missing(self, name: str) -> str:
        return GROUPS.message(f"a grouped collection has no {name!r}", name, dir(type(self)))

    def agg(self, *unnamed: object, **aggregates: Aggregate | Expr | Aliased) -> C:
        """One row per group: the keys, and each aggregate under its name.

        `agg(n=dd.count(), total=dd.sum("x"))`, or `agg(dd.count().alias("n"), dd.avg(col.x *
        2).alias("mean"))`, also as a list. `agg({"x": "sum", "*": "count"})` makes columns that are called
        `sum(x)` and `count(1)`, as in PySpark. Without keys there is always one row, also of nothing: see
        `Collection.agg`.

        Nulls are skipped. count, sum, avg, variance and any or all take constant work per changed row,
        however large the group; min and max logarithmic work. Rust: `reduce`, `count`, `threshold`; PySpark:
        `groupBy(…).agg(…)`. Law: at every time the answer is that of the collection at that time.
        """
        over = self.collection.node
        requested = requested_aggregates(unnamed, aggregates)
        computed = {
            name: each.sided(self.collection.sided).settled(over)
            for name, each in requested.items()
            if isinstance(each, Aggregate)
        }
        if len(computed) < len(requested):
            return self._with_texts(requested)
        for name, aggregate in computed.items():
            if aggregate.kind in OF_SETS:
                raise SchemaError(
                    f"agg({name}={aggregate.written()}): it is of rollup, cube and grouping_sets; in "
                    "group_by all rows have all keys"
                )
            if name in self.keys:
                raise SchemaError(f"agg: {name!r} is a key already; choose another name")
            if self._balance is not None and aggregate.kind in COLLECTED:
                raise SchemaError(
                    f"agg({name}={aggregate.describe()}) needs all values of its group in one place; leave "
                    "out balance= in group_by, or this aggregate"
                )
            named = requested[name]
            assert isinstance(named, Aggregate)
            self._check_not_replaced(f"agg({name}={named.describe()})", named.columns)
        add = self.collection.plan.add
        answers = aggregated(add, self.collection.node, self.keys, computed, self._balance)
        return self.collection.with_node(answers if self.keys else always_one_row(add, answers, computed))

    def _check_not_replaced(self, written: str, columns: Set[str]) -> None:
        for column in sorted(columns & self._replaced):
            raise SchemaError(
                f"{written} ({call_site()}): {column!r} is a key here, in place of another column of that "
                "name. Give the key another name in group_by, as in key.alias('other_name'), or write the "
                "column of its collection, as in rows.x"
            )

    def _with_texts(self, requested: Mapping[str, Aggregate | SqlExpr]) -> C:
        """Return `agg` of aggregates and of texts; a text is computed of the aggregates that it has."""
        reader, schema = grouped_text_reader(), self.collection.schema
        aggregates: dict[str, Aggregate] = {}
        columns: dict[str, Expr] = {key: col(key) for key in self.keys}
        for name, each in requested.items():
            if name in self.keys:
                raise SchemaError(f"agg: {name!r} is a key already; choose another name")
            if isinstance(each, Aggregate):
                aggregates[name], columns[name] = each, col(name)
                continue
            sql = self.collection.sided(each)
            assert isinstance(sql, SqlExpr), "a text with sides is one still"
            text = reader.grouped(sql, schema, self.keys)
            own = {inner: f"{name}: {inner}" for inner in text.aggregates}
            aggregates |= {own[inner]: aggregate for inner, aggregate in text.aggregates.items()}
            columns[name] = with_columns_of(text.expr, {old: col(new) for old, new in own.items()})
        answers = self.agg(**(aggregates or {"rows": count()}))
        return answers.with_node(Select(answers.node, tuple(columns.items())))

    def count(self) -> C:
        """How many rows each group has, as the column `count`."""
        return self.agg(count=Aggregate("count"))

    @called_as("len")
    def _len(self, name: str = "len") -> C:
        """The same as `agg(len=dd.count())`."""
        return self.agg(**{name: Aggregate("count")})

    def sum(self, *columns: str) -> C:
        """The sums of these columns, as `sum_x`."""
        return self._each("sum", columns)

    def avg(self, *columns: str) -> C:
        """The means of these columns, as `avg_x`."""
        return self._each("avg", columns)

    def min(self, *columns: str) -> C:
        """The least values of these columns, as `min_x`."""
        return self._each("min", columns)

    def max(self, *columns: str) -> C:
        """The greatest values of these columns, as `max_x`."""
        return self._each("max", columns)

    def _each(self, kind: AggregateKind, columns: Sequence[str]) -> C:
        if not columns:
            raise SchemaError(f"{kind}() needs a column, as in group_by('k').{kind}('x')")
        return self.agg(**{f"{kind}_{column}": Aggregate.of(kind, column) for column in columns})

    @written_as("top_k(3, by=col.x.desc()) for those with the largest x, by='x' for the least")
    def top_k(
        self,
        k: int,
        by: By,
        *,
        offset: int = 0,
        rank: str | None = None,
        method: RankKind = "row_number",
        ties: bool = False,
    ) -> C:
        """The first `k` rows of each group in the order `by`; see `Collection.top_k`."""
        return self.order_by(*orderings(by, "top_k")).limit(k, offset, rank=rank, method=method, ties=ties)

    @written_as("first(by='time')")
    def first(self, by: By) -> C:
        """The first row of each group in the order `by`: as `top_k(1, by)`."""
        return self.order_by(*orderings(by, "first")).first()

    @written_as("last(by='time')")
    def last(self, by: By) -> C:
        """The last row of each group in the order `by`, for instance the latest: `last(by="time")`."""
        return self.order_by(*orderings(by, "last")).last()

    def rank(self, name: str, by: By, method: RankKind = "row_number") -> C:
        """All rows, and a column `name` with the number of each in its group; costs: `Ordered.rank`."""
        return self.order_by(*orderings(by, "rank")).rank(name, method)

    @written_as("order_by(col.x.desc(), 'y')")
    def order_by(self, *by: str | Expr | Ordering) -> Ordered[C]:
        """An order of the rows of each group; follow with `limit(n, offset=…)` or `rank("place")`."""
        orders = self.collection.orders_of(by, "order_by")
        for each in orders:
            self._check_not_replaced(f"order_by({each.describe()})", each.expr.columns())
        return Ordered(self.collection, self.keys, orders, self._balance)

    def reduce(self, function: UserGroupFunction, schema: SchemaSpec) -> C:
        """The rows that `function(key, rows)` returns for each group; the result has the keys, then `schema`.

        `key` is a tuple; `rows` a list of (row without the keys, multiplicity), multiplicities not 0. The
        function returns rows: tuples, or bare values if `schema` has one column. It must be pure: it is
        called again whenever its group changes, also if the changes turn out to be none. About 2 µs per row
        of a changed group.
        """
        if self._balance is not None:
            raise SchemaError(
                f"reduce ({call_site()}): a function of a group needs all its rows in one place; leave out "
                "balance= in group_by"
            )
        columns = Schema.of(schema)
        for column in columns:
            if column.name in self.keys:
                raise SchemaError(
                    f"reduce: {column.name!r} is a key already; choose another name in its schema"
                )
        user_function = self.collection.plan.function(function)
        return self.collection.with_node(
            ReduceFunction(self.collection.node, self.keys, user_function, columns)
        )


def _keys(key: _Key | Sequence[_Key]) -> Sequence[_Key]:
    elsewhere = of_another_library(key)
    if elsewhere is not None:
        raise SchemaError(f"group_by: {key!r:.80} {elsewhere}")
    return [key] if isinstance(key, str | Expr | Aliased) else key


def _labelled(key: _Key) -> _Key:
    """Return a function with PySpark's name under the name that PySpark gives its column: year(day)."""
    return Aliased(key.label, key) if isinstance(key, SqlCall) else key


def _key(key: object) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, ColumnRef | Aliased):
        return key.name
    raise SchemaError(
        f"group_by: {key!r:.80} needs a name, as in group_by(day=col.t.cast('date')), or alias('day')"
    )


def named_aggregates(unnamed: tuple[object, ...], named: Mapping[str, object]) -> dict[str, Aggregate]:
    """Return the aggregates of a call of `agg`, by name; raise SchemaError for one that is a text."""
    aggregates: dict[str, Aggregate] = {}
    for name, each in requested_aggregates(unnamed, named).items():
        if isinstance(each, SqlExpr):
            raise SchemaError(
                f"{each.written} ({each.site}): rollup, cube and grouping_sets take aggregates as "
                "dd.sum('x'); or write the whole query, dd.sql(flow, 'select …', rows=rows)"
            )
        aggregates[name] = each
    return aggregates


def requested_aggregates(
    unnamed: tuple[object, ...], named: Mapping[str, object]
) -> dict[str, Aggregate | SqlExpr]:
    """Return what a call of `agg` takes, by name; raise SchemaError for what is no aggregate."""
    requested = {**_by_alias(unnamed, named), **named}
    if not requested:
        raise SchemaError("agg needs at least one aggregate, as in agg(n=dd.count())")
    aggregates: dict[str, Aggregate | SqlExpr] = {}
    for name, each in requested.items():
        aggregate = each.expr if isinstance(each, Aliased) else each
        if not isinstance(aggregate, Aggregate | SqlExpr):
            raise SchemaError(
                f"agg({name}=…) takes dd.count(), dd.sum('x'), dd.min('x') or dd.max('x'), "
                f"not {aggregate!r}{_as_in_pandas(aggregate)}"
            )
        aggregates[name] = aggregate
    return aggregates


_SPARK_NAMES: Final = {
    "collect": "collect_list", "count_distinct": "count(DISTINCT {})", "any": "bool_or", "all": "bool_and",
    "variance": "var_samp", "variance_pop": "var_pop",
}  # fmt: skip


def _spark_name(aggregate: Aggregate) -> str | None:
    """Return what PySpark calls the column of an aggregate without a name: sum(x); None for one that is not
    of a single column.
    """
    column = aggregate.argument.name if isinstance(aggregate.argument, OwnedColumn) else aggregate.column
    if aggregate.kind == "count" and aggregate.argument is None and column is None:
        return "count(1)"
    if column is None or aggregate.by or aggregate.second is not None or aggregate.option is not None:
        return None
    name = _SPARK_NAMES.get(aggregate.kind, aggregate.kind)
    return name.format(column) if "{}" in name else f"{name}({column})"


def _by_alias(unnamed: tuple[object, ...], others: Mapping[str, object]) -> dict[str, object]:
    """Return aggregates by their `alias`, or by the name that PySpark gives them; raise SchemaError for one
    without, or a name used twice.
    """
    by_name: dict[str, object] = {}
    listed = [one for each in unnamed for one in (each if isinstance(each, list | tuple) else [each])]
    for each in listed:
        for name, aggregate in _names_of(each).items():
            if name in by_name or name in others:
                raise SchemaError(f"agg: two aggregates are called {name!r}; choose another name for one")
            by_name[name] = aggregate
    return by_name


def _names_of(each: object) -> Mapping[str, object]:
    """Return the aggregates that an argument of `agg` without a name is, by name."""
    if isinstance(each, Mapping):
        return _of_mapping(each)
    if isinstance(each, NamedAggregate):
        return {each.name: each.aggregate}
    if isinstance(each, Aliased) and isinstance(each.expr, SqlExpr):
        return {each.name: each.expr}
    if isinstance(each, SqlExpr):
        return {label_of(each): each}
    if isinstance(each, Aggregate) and (name := _spark_name(each)) is not None:
        return {name: each}
    elsewhere = of_another_library(each)
    if elsewhere is not None:
        raise SchemaError(f"agg: {each!r:.60} {elsewhere}")
    shown = each.written() if isinstance(each, Aggregate) else f"{each!r:.60}"
    raise SchemaError(
        f"agg({shown}): give each aggregate a name, as in agg(total=dd.sum('x')) or "
        "agg(dd.sum('x').alias('total'))"
    )
