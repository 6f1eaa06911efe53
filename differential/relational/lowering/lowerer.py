"""Relations as collections, by calling the methods of collections: so their checks, explain and
fingerprints are those of any other query. Each call has the place in the text as its site.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from timely.building.dataflow import Dataflow
from timely.errors import GraphError, MisuseError
from timely.user_code.call_site import UNKNOWN_SITE, at_site

from ...collections.collection import Collection
from ...collections.loops import iterate
from ...collections.sources import constant
from ...columns.schema import Column, Schema
from ...errors import SchemaError, SqlError
from ...expressions.expression import Expr, LiteralValue, col, lit
from ...linear.shapes import Clock
from ..algebra.attributes import AttributeNames, schema_of
from ..algebra.relations import (
    Aggregation,
    ApplyOf,
    Bodies,
    DistinctRows,
    FirstRowsOf,
    JoinOf,
    ProjectionOf,
    Recursion,
    RecursionVariable,
    Relation,
    Scan,
    SetOperation,
    SingleRow,
    Unnesting,
    ValueRows,
    WindowOf,
)
from .applies import applied
from .domains import Domain, is_correlated
from .groups import aggregated, first_rows, windowed
from .joins import is_cluster, joined, outer_joined

__all__ = ["RelationLowering"]


class RelationLowering:
    """Makes collections of the relations of one query; a relation that stands twice is made once."""

    def __init__(
        self,
        flow: Dataflow,
        tables: Mapping[str, Collection],
        names: AttributeNames,
        clock: Clock | None = None,
    ) -> None:
        self.clock = clock
        self._flow = flow
        self._tables = tables
        self._names = names
        self._made: dict[int, Collection] = {}
        self._fixed_points: dict[int, dict[str, Collection]] = {}
        self._variables: dict[str, Collection] = {}

    def fresh(self, label: str) -> str:
        """Return a name that no other column has."""
        return self._names.fresh(label)

    def rows(self, relation: Relation, domain: Domain | None = None) -> Collection:
        """Return the rows of a relation, with the columns of `domain` if it reads one of them."""
        if domain is not None and is_correlated(relation, domain):
            with _placed(relation):
                return self._rows(relation, domain, fills=True)
        if isinstance(relation, RecursionVariable):  # not kept: it is another collection behind its query
            return self._variables[relation.key]
        if id(relation) not in self._made:
            with _placed(relation):
                self._made[id(relation)] = self._rows(relation, None, fills=True)
        return self._made[id(relation)]

    def carrying(self, relation: Relation, domain: Domain | None, *, fills: bool = True) -> Collection:
        """Return the rows of a relation for each row of `domain`, with its columns in any case."""
        if domain is None:
            return self.rows(relation)
        with _placed(relation):
            if is_correlated(relation, domain):
                return self._rows(relation, domain, fills=fills)
            if isinstance(relation, SingleRow):
                return domain.rows.with_columns(**{relation.row.name: lit(1)})
            return domain.rows.cross_join(self.rows(relation))

    def _rows(self, relation: Relation, domain: Domain | None, *, fills: bool) -> Collection:
        outer = () if domain is None else domain.names
        if is_cluster(relation):
            return joined(self, relation, domain)
        if isinstance(relation, JoinOf):
            return outer_joined(self, relation, domain)
        if isinstance(relation, ApplyOf):
            return applied(self, self.carrying(relation.left, domain), relation)
        if isinstance(relation, ProjectionOf):
            rows = self.carrying(relation.input, domain, fills=fills)
            outputs = {attribute.name: expr for attribute, expr in relation.outputs}
            return rows.select(*outer, **outputs)
        if isinstance(relation, DistinctRows):
            return self.carrying(relation.input, domain).select(*outer, *relation.names).distinct()
        if isinstance(relation, Aggregation):
            return aggregated(self, relation, domain, fills=fills)
        if isinstance(relation, WindowOf):
            return windowed(self, relation, domain)
        if isinstance(relation, FirstRowsOf):
            return first_rows(self, relation, domain)
        if isinstance(relation, SetOperation):
            return self._combined(relation, domain)
        if isinstance(relation, Unnesting):
            return self._unnested(relation, domain)
        return self._leaf(relation, domain)

    def _leaf(self, relation: Relation, domain: Domain | None) -> Collection:
        if isinstance(relation, Scan):
            names = zip(relation.names, relation.columns, strict=True)
            return self._tables[relation.table].select(**{name: col[column] for name, column in names})
        if isinstance(relation, SingleRow):
            return constant(self._flow, [(1,)], Schema((Column(relation.row.name, relation.row.type),)))
        if isinstance(relation, ValueRows):
            return self._values(relation, domain)
        assert isinstance(relation, Recursion), relation
        if domain is not None:
            raise SchemaError(
                f"a recursive query ({relation.site}) reads a column of the query around it; join the outer "
                "rows in its first part instead"
            )
        return self._fixed_point(relation)

    def _values(self, relation: ValueRows, domain: Domain | None) -> Collection:
        schema = schema_of(relation.attributes)
        if domain is None and all(isinstance(each, LiteralValue) for each in relation.expressions):
            rows = [
                tuple(each.value for each in row if isinstance(each, LiteralValue)) for row in relation.rows
            ]
            return constant(self._flow, rows, schema)
        one = self.fresh("(one)")
        start = constant(self._flow, [(1,)], f"'{one}': int") if domain is None else domain.rows
        outer = () if domain is None else domain.names
        parts = []
        for row in relation.rows:
            values: dict[str, Expr] = {
                each.name: expr.cast(each.type) for each, expr in zip(relation.attributes, row, strict=True)
            }
            parts.append(start.select(*outer, **values))
        return _same_types(parts)[0].concat(*_same_types(parts)[1:])

    def _combined(self, relation: SetOperation, domain: Domain | None) -> Collection:
        outer = () if domain is None else domain.names
        sides = []
        for side in _united(relation):
            rows = self.carrying(side, domain)
            columns: dict[str, Expr] = {name: col[name] for name in outer}
            for attribute, name in zip(relation.attributes, side.names, strict=True):
                columns[attribute.name] = col[name].cast(
                    attribute.type.or_null(rows.schema[name].type.nullable)
                )
            sides.append(rows.select(**columns))
        left, *others = _same_types(sides)
        if relation.kind == "union":
            rows = left.concat(*others)
            return rows if relation.is_all else rows.distinct()
        (right,) = others
        if relation.kind == "except":
            return left.except_all(right) if relation.is_all else left.subtract(right)
        return left.intersect_all(right) if relation.is_all else left.intersect(right)

    def _unnested(self, relation: Unnesting, domain: Domain | None) -> Collection:
        rows = self.carrying(relation.input, domain)
        names = rows.schema.names
        element = relation.element
        rows = rows.with_columns(**{element.name: relation.list_})
        position = None if relation.position is None else relation.position.name
        exploded = rows.explode(element.name, element.type, outer=relation.outer, position=position)
        return exploded.select(*names, element.name, *([] if position is None else [position]))

    def _fixed_point(self, relation: Recursion) -> Collection:
        bodies = relation.bodies
        if id(bodies) not in self._fixed_points:
            self._fixed_points[id(bodies)] = self._iterated(relation, bodies)
        outcome = self._fixed_points[id(bodies)][relation.key]
        names = zip(relation.attributes, bodies.columns[relation.key], strict=True)
        return outcome.select(**{mine.name: col[theirs.name] for mine, theirs in names})

    def _iterated(self, relation: Recursion, bodies: Bodies) -> dict[str, Collection]:
        """Return the fixed points of relations that read one another; all begin empty.

        In an iteration each reads what those before it have come to in it.
        """
        schemas = {key: schema_of(columns) for key, columns in bodies.columns.items()}
        anchor = constant(self._flow, [(1,)], "one: int").filter(lit(False))

        def body(**variables: Collection) -> Mapping[str, Collection]:
            built, before, fixed = dict(self._made), self._variables, dict(self._fixed_points)
            self._variables = {**before, **variables}
            results = {"": variables[""]}
            for key, schema in schemas.items():
                rows = self.rows(bodies.relations[key])
                columns = zip(schema, bodies.relations[key].names, strict=True)
                results[key] = rows.select(**{mine.name: col[name].cast(mine.type) for mine, name in columns})
                self._variables[key] = results[key]
            self._variables, self._made, self._fixed_points = before, built, fixed
            return results

        limit = {} if relation.iterations_max is None else {"iterations_max": relation.iterations_max}
        return iterate({"": anchor, **schemas}, body, name=relation.key, times=relation.times, **limit)


@contextmanager
def _placed(relation: Relation) -> Iterator[None]:
    """Inside, collections have the place of a relation in the text, and errors become ones with it."""
    try:
        with at_site([relation.site]):
            yield
    except SqlError:
        raise
    except RecursionError:
        raise SqlError(f"{relation.site}: is nested too deeply") from None
    except (MisuseError, GraphError) as error:
        if relation.site == UNKNOWN_SITE:
            raise
        raise SqlError(f"{relation.site}: {str(error).partition(chr(10))[0]}") from None


def _united(relation: SetOperation) -> list[Relation]:
    """Return the sides of a set operation; of a UNION those of the UNIONs in it, too, which give the same
    rows of the same types. One concat of many costs less than many of two, one above the other.
    """
    if relation.kind != "union":
        return [*relation.inputs]
    sides: list[Relation] = []
    waiting: list[Relation] = [relation]
    while waiting:
        top = waiting.pop()
        if isinstance(top, SetOperation) and top.kind == "union" and (top.is_all or not relation.is_all):
            types = zip(top.attributes, relation.attributes, strict=True)
            if all(mine.type.not_null() == theirs.type.not_null() for mine, theirs in types):
                waiting += reversed(top.inputs)
                continue
        sides.append(top)
    return sides


def _same_types(parts: list[Collection]) -> list[Collection]:
    """Return collections with the same columns, each nullable if it is in one of them."""
    types = {
        name: parts[0].schema[name].type.or_null(any(part.schema[name].type.nullable for part in parts))
        for name in parts[0].schema.names
    }
    return [
        part.select(**{name: col[name].cast(type_) for name, type_ in types.items()})
        if any(part.schema[name].type != type_ for name, type_ in types.items())
        else part
        for part in parts
    ]
