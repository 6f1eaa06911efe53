"""The base of collections, without operators: a node of a plan, and the loops around it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NoReturn, Self, TypeVar

from timely.building.dataflow import Dataflow
from timely.errors import GraphError
from timely.own_files import OWN_NAMES
from timely.user_code.call_site import call_site
from timely.user_code.html_tables import html_or_text, html_table
from timely.user_code.short_traces import in_short, short_lookup
from timely.user_code.spellings import Same

from ..columns.schema import Schema, SchemaSpec
from ..errors import ExpressionError, SchemaError
from ..expressions.expression import ColumnRef, Expr, Ordering, col
from ..expressions.orders import By, orderings
from ..expressions.pending import OwnedColumn, RowsOfSchema
from ..linear.user_functions import BatchFunction, MapFunction
from ..other_spellings.answers import explain_operator
from ..other_spellings.of_collections import CollectionSpellings
from ..other_spellings.table import COLLECTIONS
from ..plan.building import LoopPath, OpenLoop, Plan
from ..plan.nodes import Apply, ApplyKind, Node, Select
from ..plan.origins.aliases import with_sides
from ..plan.origins.origins import PairsOfSides, Wanted

__all__ = ["Handle", "Name", "Names", "Row", "in_innermost_loop", "name_of", "names_of"]

Row = tuple[object, ...]

Name = str | Expr
"""The name of a column: "x", or col.x."""

Names = Name | Iterable[Name]

H = TypeVar("H", bound="Handle")


@dataclass(frozen=True, eq=False)
class Handle(CollectionSpellings):
    """The rows that `node` of `plan` computes, within the loops `place`, outermost first (none: the root).

    Its columns are `rows.x` and `rows["x"]`; of them a join tells equal names of its sides apart. `called` is
    the name that `alias` has given.
    """

    plan: Plan
    node: Node
    place: LoopPath = ()
    called: str | None = None

    def __init_subclass__(cls, **named: object) -> None:
        super().__init_subclass__(**named)
        if cls.__module__.partition(".")[0] in OWN_NAMES:  # classes of users stay as they were written
            in_short(cls)

    def _missing(self, name: str) -> str:
        missing = f"a collection has no {name!r}"
        node = self.__dict__.get("node")
        columns = () if node is None else node.schema.names
        return COLLECTIONS.message(missing, name, [*columns, *dir(type(self))])

    def _own(self, name: str) -> OwnedColumn:
        """Return one of its columns as its own."""
        return OwnedColumn(f"rows.{name}" if name.isidentifier() else f"rows[{name!r}]", name, self)

    def column_in(self, column: OwnedColumn, rows: RowsOfSchema) -> str:
        """Return what one of its columns is called in `rows`, which stand on it; raise ExpressionError if
        they do not have it, or have several.
        """
        names = self._names_in(column, rows, None)
        if len(names) == 1:
            return names[0]
        if names:
            raise ExpressionError(
                f"{column.written} ({column.site}) is ambiguous: it is {' and '.join(names)} here, since "
                "both sides of a join are made of that collection.\n"
                "  Give the sides names before, a = rows.alias('a') and b = rows.alias('b'), and write "
                f"a.{column.name} == b.{column.name}."
            )
        raise ExpressionError(
            f"{column.written} ({column.site}) is a column of ({self.schema}), and these rows do not have "
            f"it: ({rows.schema}).\n"
            "  Either they are not made of that collection, which a join would add, or an operator between "
            f"has left the column out or computed it anew; by its name it is col.{column.name}."
        )

    def has_column_in(self, column: OwnedColumn, rows: RowsOfSchema, alias: str | None) -> bool:
        """Return True if `rows`, which are called `alias`, stand on this collection, and have its column."""
        return bool(self._names_in(column, rows, alias))

    def _names_in(self, column: OwnedColumn, rows: RowsOfSchema, alias: str | None) -> list[str]:
        assert isinstance(rows, Node | PairsOfSides)
        return self.plan.origins.names(rows, alias, Wanted(column.name, self.node, self.called))

    def sided(self, expr: Expr) -> Expr:
        """Return `expr` with columns of the sides that `alias` has named in place of `col("a.x")`."""
        return with_sides(expr, self.node, self.plan.origins, self.called)

    def orders_of(self, by: By, operator: str) -> tuple[Ordering, ...]:
        """Return the directions in `by`, with columns of sides in place of "a.x"."""
        orders = orderings(by, operator)
        names = self.node.schema.names
        for each in orders:
            name = each.expr.name if isinstance(each.expr, ColumnRef) else ""
            if name not in names and name[:1] == "-" and name[1:] in names:
                raise SchemaError(
                    f"{operator} ({call_site()}): {name!r} is no column; the order from the largest "
                    f"{name[1:]} down is col.{name[1:]}.desc()"
                )
        return tuple(replace(each, expr=self.sided(each.expr)) for each in orders)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Expr:
            """A column; a misspelled method is an expression that is called, which mypy refuses."""

    else:

        @short_lookup
        def __getattr__(self, name: str) -> object:
            node = self.__dict__.get("node")  # none while copy and pickle look for protocols
            if node is not None and not name.startswith("__") and name in node.schema.names:
                if not isinstance(COLLECTIONS.names.get(name), Same):
                    return self._own(name)
            return super().__getattr__(name)

        def __iter__(self) -> NoReturn:
            raise TypeError(f"{explain_operator('iteration')} ({call_site()})")

        def __contains__(self, key: object) -> NoReturn:
            raise TypeError(f"{explain_operator('in')} ({call_site()})")

        def __len__(self) -> NoReturn:
            raise TypeError(f"{explain_operator('len()')} ({call_site()})")

        def __bool__(self) -> bool:
            return True

        def __add__(self, other: object) -> NoReturn:
            raise SchemaError(f"{explain_operator('+')} ({call_site()})")

        def __sub__(self, other: object) -> NoReturn:
            raise SchemaError(f"{explain_operator('-')} ({call_site()})")

        def __or__(self, other: object) -> NoReturn:
            raise SchemaError(f"{explain_operator('|')} ({call_site()})")

        def __and__(self, other: object) -> NoReturn:
            raise SchemaError(f"{explain_operator('&')} ({call_site()})")

    def __repr__(self) -> str:
        return f"Collection({self.schema})"

    def _repr_html_(self) -> str:
        columns = [(column.name, str(column.type)) for column in self.schema]
        note = "not computed yet: explain() says how it will be, output(name) lets clients read it"
        return html_or_text(self, lambda: html_table("Collection", columns, [], note))

    @property
    def dataflow(self) -> Dataflow:
        """The dataflow that it belongs to."""
        return self.plan.dataflow

    @property
    def schema(self) -> Schema:
        """Its columns."""
        return self.node.schema

    def conformed(self, schema: Schema, operator: str) -> Self:
        """This collection with the columns of `schema` in its order, nulls allowed where it allows them.

        Raises SchemaError, which says what differs, if they are not the same columns.
        """
        if self.schema == schema:
            return self
        differing = [
            f"{name} is {_type_or_none(schema, name)} in one, {_type_or_none(self.schema, name)} in the other"
            for name in dict.fromkeys((*schema.names, *self.schema.names))
            if not _takes(schema, self.schema, name)
        ]
        if differing:
            raise SchemaError(
                f"{operator}: the columns differ: {'; '.join(differing)}. Make them equal by select(…), with "
                "cast(…) for types, and fill_null(…) where one may be null"
            )
        columns: list[tuple[str, Expr]] = [
            (
                column.name,
                col(column.name)
                if self.schema[column.name] == column
                else col(column.name).cast(column.type),
            )
            for column in schema
        ]
        return self.with_node(Select(self.node, tuple(columns)))

    def with_node(self, node: Node) -> Self:
        """Return the collection of `node`, over this one's node, in the same loops; note the calling line."""
        return replace(self, node=self.plan.add(node))

    def applied(
        self, how: ApplyKind, function: MapFunction | BatchFunction, schema: SchemaSpec | None
    ) -> Self:
        """Apply a function of the user to each record, or to batches."""
        if not callable(function):
            raise ExpressionError(f"{how}({function!r}) ({call_site()}) needs a function.")
        declared = self.schema if schema is None else Schema.of(schema)
        return self.with_node(Apply(self.node, how, self.plan.function(function), declared))

    def within(self, place: LoopPath) -> Self:
        """Return this collection as used within the loops `place`."""
        if self.place != place[: len(self.place)]:
            raise GraphError(
                f"a collection of {self.path(self.place)!r} is used in {self.path(place)!r}, which is not "
                "inside it: only what `iterate` returns leaves a loop"
            )
        return replace(self, place=place)

    def path(self, place: LoopPath) -> str:
        """Return the names of these loops, for messages."""
        names = [loop.name if isinstance(loop, OpenLoop) else loop.scope.name for loop in place]
        return " / ".join([self.dataflow.root.name, *names])


def name_of(column: object, operator: str, rows: Handle | None = None) -> str:
    """Return the name of a column of `rows` that `operator` takes: "x", col.x or rows.x; raise SchemaError
    for anything else.
    """
    if isinstance(column, str | ColumnRef):
        name = column if isinstance(column, str) else column.name
        if rows is None or "." not in name:
            return name
        side = rows.sided(col(name))
        return side.owner.column_in(side, rows.node) if isinstance(side, OwnedColumn) else name
    if isinstance(column, OwnedColumn):
        return column.name if rows is None else column.owner.column_in(column, rows.node)
    raise SchemaError(
        f"{operator} ({call_site()}): {column!r:.80} is no column: write 'x' or col.x. Make a computed "
        "value a column before: with_columns(x=…)"
    )


def names_of(columns: Names, operator: str, rows: Handle | None = None) -> tuple[str, ...]:
    """Return the names of the columns of `rows` that `operator` takes, one or several."""
    listed = (columns,) if isinstance(columns, str | Expr) else columns
    return tuple(name_of(each, operator, rows) for each in listed)


def _type_or_none(schema: Schema, name: str) -> str:
    return str(schema[name].type) if name in schema else "missing"


def _takes(schema: Schema, actual: Schema, name: str) -> bool:
    """Return True if a column of `schema` holds all values of the column of that name in `actual`."""
    return (
        name in schema
        and name in actual
        and schema[name].type in (actual[name].type, actual[name].type.or_null())
    )


def in_innermost_loop(parts: tuple[H, ...]) -> tuple[H, ...]:
    """Return all parts within the innermost loop of any of them; raise GraphError if they cannot meet."""
    for part in parts:
        value: object = part
        if not isinstance(value, Handle):
            several = "; of several write concat(a, b), not a list" if isinstance(value, list | tuple) else ""
            raise GraphError(f"a collection is needed here, not {type(value).__name__}{several}")
        if part.plan is not parts[0].plan:
            raise GraphError("collections of two dataflows cannot meet")
    innermost = max((part.place for part in parts), key=len)
    return tuple(part.within(innermost) for part in parts)
