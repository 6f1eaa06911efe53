"""Random queries, each in two forms: with our operators, and as one SQL text.

    TABLES     four tables, nullable columns among them
    Query      what has been written so far: `build` makes it of collections, `sql` says it
    queries    a table and one to six steps behind it; joins and sets take a second query beside it

A step knows the columns by asking the collection that it is built on, in a dataflow that is never run.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce

from hypothesis import strategies as st
from sql.aggregates import aggregate
from sql.expressions import COMPARED, ORDERED, TYPES, Said, expression
from sql.windows import FRAMES, window_function

import differential as dd
from differential import Collection, Expr, Schema, col
from differential.columns.column_types import ColumnType, as_column_type
from differential.expressions.expression import Ordering
from timely.building.dataflow import Dataflow

__all__ = ["TABLES", "Query", "queries"]

TABLES = {
    "sales": Schema.of("k: int, x: int?, price: float?, tag: string?, ok: bool"),
    "items": Schema.of("k: int?, y: int, name: string, weight: float"),
    "pairs": Schema.of("a: int, b: int"),
    "bills": Schema.of("m: decimal(9, 2)?, t: timestamp, d: date?, z: int"),
}

Tables = Mapping[str, Collection]


@dataclass(frozen=True, eq=False)
class Query:
    """The same query said twice. `shape` is the collection, never run, that knows the columns."""

    sql: str
    build: Callable[[Tables], Collection]
    shape: Collection

    def __repr__(self) -> str:
        return self.in_order()

    @property
    def columns(self) -> dict[str, str]:
        """The columns and their kinds, nullable or not."""
        return {column.name: column.type.kind for column in self.shape.schema}

    def in_order(self) -> str:
        """The SQL text, with the columns as our collection has them."""
        return f"SELECT {', '.join(self.columns)} FROM ({self.sql}) AS t"

    def then(self, sql: str, step: Callable[[Collection], Collection]) -> Query:
        """One operator further; `sql` has this query in parentheses."""
        build = self.build
        return Query(sql, lambda tables: step(build(tables)), step(self.shape))

    def beside(self, other: Query, sql: str, step: Callable[[Collection, Collection], Collection]) -> Query:
        """One operator further that takes another query, too."""
        left, right = self.build, other.build
        shape = step(self.shape, other.shape)
        return Query(sql, lambda tables: step(left(tables), right(tables)), shape)


class _Writer:
    """Writes one query; all columns that it makes have different names."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        flow = Dataflow("shapes")
        self.tables = {name: dd.input(flow, name, schema) for name, schema in TABLES.items()}
        self.made = 0

    def name(self) -> str:
        self.made += 1
        return f"c{self.made}"

    def table(self) -> Query:
        name = self.draw(st.sampled_from(sorted(TABLES)))
        columns = ", ".join(TABLES[name].names)
        return Query(f"SELECT {columns} FROM {name}", lambda tables: tables[name], self.tables[name])

    def query(self, steps: int) -> Query:
        found = self.table()
        for _ in range(steps):
            found = self.draw(st.sampled_from(_STEPS))(self, found)
        return found

    def expression(self, query: Query, kind: str, depth: int = 2) -> Said:
        return expression(self.draw, query.columns, kind, depth)

    def column(self, query: Query, among: list[str] | None = None) -> str:
        return self.draw(st.sampled_from(sorted(query.columns) if among is None else among))

    # Steps on one query

    def filter(self, query: Query) -> Query:
        condition = self.expression(query, "bool")
        return query.then(
            f"SELECT * FROM ({query.sql}) AS t WHERE {condition}", lambda c: c.filter(condition.ours)
        )

    def select(self, query: Query) -> Query:
        """One to four columns: some as they are, some computed."""
        wanted: dict[str, Said] = {}
        for _ in range(self.draw(st.integers(1, 4))):
            if self.draw(st.booleans()):
                name = self.column(query)
                wanted[name] = Said(col(name), name)
            else:
                wanted[self.name()] = self.expression(query, self.draw(st.sampled_from(_KINDS)))
        return _selected(query, wanted)

    def with_column(self, query: Query) -> Query:
        name, value = self.name(), self.expression(query, self.draw(st.sampled_from(_KINDS)))
        return query.then(
            f"SELECT *, {value} AS {name} FROM ({query.sql}) AS t",
            lambda c: c.with_columns(**{name: value.ours}),
        )

    def distinct(self, query: Query) -> Query:
        return query.then(f"SELECT DISTINCT * FROM ({query.sql}) AS t", lambda c: c.distinct())

    def grouped(self, query: Query) -> Query:
        """Groups by none, one or two columns; an aggregate or several; now and then only some groups."""
        names = sorted(query.columns)
        keys = self.draw(st.lists(st.sampled_from(names), max_size=2, unique=True))
        aggregates: dict[str, tuple[dd.Aggregate, str]] = {}
        for _ in range(self.draw(st.integers(1, 3))):
            aggregates[self.name()] = self._aggregate(query)
        listed = ", ".join([*keys, *(f"{sql} AS {name}" for name, (_, sql) in aggregates.items())])
        by = f"GROUP BY {', '.join(keys)}" if keys else ""
        found = query.then(
            f"SELECT {listed} FROM ({query.sql}) AS t {by}",
            lambda c: c.group_by(*keys).agg(**{name: ours for name, (ours, _) in aggregates.items()}),
        )
        return self.filter(found) if self.draw(st.integers(0, 2)) == 0 else found

    def _aggregate(self, query: Query) -> tuple[dd.Aggregate, str]:
        return aggregate(self.draw, query.columns)

    def subtotals(self, query: Query) -> Query:
        """Groups by several sets of one or two columns, and which set each row is of."""
        keys = self.draw(
            st.lists(st.sampled_from(sorted(query.columns)), min_size=1, max_size=2, unique=True)
        )
        form = self.draw(st.sampled_from(["ROLLUP", "CUBE"]))
        name, number = self.name(), self.name()
        made, sql = self._aggregate(query)
        listed = ", ".join(keys)
        return query.then(
            f"SELECT {listed}, {sql} AS {name}, grouping_id({listed}) AS {number} FROM ({query.sql}) AS t "
            f"GROUP BY {form} ({listed})",
            lambda c: (c.rollup if form == "ROLLUP" else c.cube)(*keys).agg(
                **{name: made, number: dd.grouping_id()}
            ),
        )

    # Steps on an order

    def first_rows(self, query: Query, keys: list[str] | None = None) -> Query:
        """The first rows, of each group or of all, in an order that leaves no two different rows equal."""
        names = sorted(query.columns)
        if keys is None:
            keys = self.draw(st.lists(st.sampled_from(names), max_size=2, unique=True))
        limit, offset, number = self.draw(st.integers(1, 3)), self.draw(st.integers(0, 1)), self.name()
        order, by = self._order(names, keys)
        part = f"PARTITION BY {', '.join(keys)} " if keys else ""
        return query.then(
            f"SELECT * FROM (SELECT *, row_number() OVER ({part}ORDER BY {order}) AS {number} "
            f"FROM ({query.sql}) AS t) AS t WHERE {number} > {offset} AND {number} <= {offset + limit}",
            lambda c: c.top_k(limit, by, keys=keys, offset=offset, rank=number),
        )

    def _order(self, names: list[str], keys: list[str]) -> tuple[str, list[Ordering]]:
        """An order by all columns, in SQL and ours."""
        turns = [
            (name, self.draw(st.booleans()), self.draw(st.booleans()))
            for name in self.draw(st.permutations(names))
        ]
        turns = [turn for turn in turns if turn[0] not in keys] or turns
        order = ", ".join(
            f"{name} {'DESC' if down else 'ASC'} NULLS {'LAST' if last else 'FIRST'}"
            for name, down, last in turns
        )
        by = [
            col(name).desc(nulls_last=last) if down else col(name).asc(nulls_last=last)
            for name, down, last in turns
        ]
        return order, by

    def windowed(self, query: Query) -> Query:
        """All rows with a function of the rows around each; equal rows are equal in all columns."""
        names = sorted(query.columns)
        keys = self.draw(st.lists(st.sampled_from(names), max_size=1, unique=True))
        order, by = self._order(names, keys)
        others = {name: kind for name, kind in query.columns.items() if name not in keys}
        if not others:
            return query
        made, sql = window_function(self.draw, others)
        frame = self.draw(st.sampled_from(sorted(FRAMES)))
        unit, start, stop = FRAMES[frame]
        name = self.name()
        part = f"PARTITION BY {', '.join(keys)} " if keys else ""

        def step(c: Collection) -> Collection:
            window = c.over(*keys, by=by)
            window = getattr(window, f"{unit}_between")(start, stop) if unit else window
            return window.with_columns(**{name: made})

        return query.then(
            f"SELECT *, {sql} OVER ({part}ORDER BY {order} {frame}) AS {name} FROM ({query.sql}) AS t", step
        )

    # Steps that take another query

    def other(self) -> Query:
        """What is joined: a table, now and then with a step behind it, and no name that others have."""
        found = self.query(self.draw(st.integers(0, 1)))
        return _selected(found, {self.name(): Said(col(name), name) for name in found.columns})

    def joined(self, query: Query) -> Query:
        """Joins of all kinds on one or two pairs of columns, with a condition beside them or not."""
        how = self.draw(st.sampled_from(sorted(_JOINS)))
        other = self.other()
        pairs = [
            (a, b) for a, x in query.columns.items() for b, y in other.columns.items() if x == y != "decimal"
        ]
        on = self.draw(st.lists(st.sampled_from(pairs), max_size=2)) if pairs else []
        on = list({a: (a, b) for a, b in {b: (a, b) for a, b in on}.values()}.values())
        null_safe = self.draw(st.booleans())
        where = None
        if self.draw(st.booleans()):
            left = [name for name in query.columns if name not in dict(on)]
            kinds = {**{name: query.columns[name] for name in left}, **other.columns}
            kinds = {name: kind for name, kind in kinds.items() if name not in {b for _, b in on}}
            where = expression(self.draw, kinds, "bool")
        same = " IS NOT DISTINCT FROM " if null_safe else " = "
        met = " AND ".join([*(f"l.{a}{same}r.{b}" for a, b in on), *([where.sql] if where else [])])
        condition: Expr | None = None if where is None else where.ours
        return query.beside(
            other,
            _join_sql(how, query, other, on, met or "TRUE"),
            lambda a, b: a.join(b, on=on, how=how, where=condition, null_safe=null_safe),
        )

    def few(self) -> Query:
        """A row or two whatever the tables hold, or none: aggregates of all rows, or the first rows."""
        found = self.query(self.draw(st.integers(0, 1)))
        if self.draw(st.booleans()):
            found = self.first_rows(found, keys=[])
        else:
            made = {self.name(): self._aggregate(found) for _ in range(self.draw(st.integers(1, 2)))}
            listed = ", ".join(f"{sql} AS {name}" for name, (_, sql) in made.items())
            found = found.then(
                f"SELECT {listed} FROM ({found.sql}) AS t",
                lambda c: c.agg(**{name: ours for name, (ours, _) in made.items()}),
            )
        found = self.filter(found) if self.draw(st.booleans()) else found
        return _selected(found, {self.name(): Said(col(name), name) for name in found.columns})

    def bounded(self, query: Query) -> Query:
        """The rows that compare so with few rows, in one of the forms of a join without keys."""
        few = self.few()
        kinds = [kind for kind in ("int", "float", *ORDERED) if kind in few.columns.values()]
        kind = self.draw(st.sampled_from(kinds or ["int"]))
        of = "float" if kind == "int" and self.draw(st.integers(0, 3)) == 0 else kind
        value = self.expression(query, of, 1)
        tests = [
            COMPARED[self.draw(st.sampled_from(["<", "<=", ">", ">=", "="]))](
                value, self.expression(few, kind, self.draw(st.integers(0, 1)))
            )
            for _ in range(self.draw(st.integers(1, 2)))
        ]
        met = " AND ".join(test.sql for test in tests)
        where = reduce(operator.and_, (test.ours for test in tests))
        form = self.draw(st.sampled_from(["rows", "rows", "pairs", "left", "semi", "anti"]))
        if form in ("rows", "pairs"):
            names = [*query.columns, *(few.columns if form == "pairs" else ())]
            return query.beside(
                few,
                f"SELECT {', '.join(names)} FROM ({query.sql}) AS l, ({few.sql}) AS r WHERE {met}",
                lambda a, b: a.cross_join(b).filter(where).select(*names),
            )
        return query.beside(
            few, _join_sql(form, query, few, [], met), lambda a, b: a.join(b, on=[], how=form, where=where)
        )

    def combined(self, query: Query) -> Query:
        """Sets and multisets: the other has the same columns, computed of its own."""
        sql, step = self.draw(st.sampled_from(_SETS))
        source = self.other()
        other = _selected(source, {n: self.expression(source, kind, 1) for n, kind in query.columns.items()})
        names = ", ".join(query.columns)
        return query.beside(
            other,
            f"(SELECT {names} FROM ({query.sql}) AS t) {sql} (SELECT {names} FROM ({other.sql}) AS t)",
            lambda a, b: step(*_widened(a, b)),
        )


def _selected(query: Query, wanted: dict[str, Said]) -> Query:
    listed = ", ".join(f"{said} AS {name}" for name, said in wanted.items())
    return query.then(
        f"SELECT {listed} FROM ({query.sql}) AS t",
        lambda c: c.select(**{name: said.ours for name, said in wanted.items()}),
    )


def _wide(type_: ColumnType) -> ColumnType:
    return as_column_type(TYPES["decimal"]) if type_.kind == "decimal" else type_


def _widened(a: Collection, b: Collection) -> tuple[Collection, Collection]:
    """Both with the same types: null where one may be null."""
    types = {
        one.name: _wide(one.type).or_null(one.type.nullable or other.type.nullable)
        for one, other in zip(a.schema, b.schema, strict=True)
    }
    return tuple(c.select(**{n: col(n).cast(t) for n, t in types.items()}) for c in (a, b))  # type: ignore[return-value]  # two


_KINDS = ["int", "int", "float", "string", "bool", *ORDERED]
_JOINS = {
    "inner": "JOIN",
    "left": "LEFT JOIN",
    "right": "RIGHT JOIN",
    "outer": "FULL JOIN",
    "semi": "",
    "anti": "",
}
_SETS: list[tuple[str, Callable[[Collection, Collection], Collection]]] = [
    ("UNION ALL", lambda a, b: a.concat(b)),
    ("UNION", lambda a, b: a.concat(b).distinct()),
    ("EXCEPT", lambda a, b: a.subtract(b)),
    ("EXCEPT ALL", lambda a, b: a.except_all(b)),
    ("INTERSECT", lambda a, b: a.intersect(b)),
    ("INTERSECT ALL", lambda a, b: a.intersect_all(b)),
]


def _join_sql(how: str, left: Query, right: Query, on: list[tuple[str, str]], met: str) -> str:
    keys = dict(on)
    if how in ("semi", "anti"):
        exists = f"EXISTS (SELECT 1 FROM ({right.sql}) AS r WHERE {met})"
        return f"SELECT * FROM ({left.sql}) AS l WHERE {'NOT ' if how == 'anti' else ''}{exists}"
    listed = [f"coalesce(l.{a}, r.{b}) AS {a}" for a, b in on]
    listed += [f"l.{name}" for name in left.columns if name not in keys]
    listed += [f"r.{name}" for name in right.columns if name not in keys.values()]
    return f"SELECT {', '.join(listed)} FROM ({left.sql}) AS l {_JOINS[how]} ({right.sql}) AS r ON {met}"


_STEPS: list[Callable[[_Writer, Query], Query]] = [
    _Writer.filter,
    _Writer.select,
    _Writer.with_column,
    _Writer.distinct,
    _Writer.first_rows,
    _Writer.grouped,
    _Writer.grouped,
    _Writer.subtotals,
    _Writer.windowed,
    _Writer.windowed,
    _Writer.joined,
    _Writer.joined,
    _Writer.joined,
    _Writer.bounded,
    _Writer.combined,
    _Writer.combined,
]


@st.composite
def queries(draw: st.DrawFn, steps_max: int = 6) -> Query:
    """A query of one to `steps_max` steps over `TABLES`."""
    return _Writer(draw).query(draw(st.integers(1, steps_max)))
