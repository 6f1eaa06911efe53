"""A collection that changes: named, typed columns, and a multiset of rows that has a value at every time.

Operators return new collections and do nothing yet; they describe a dataflow. A collection is a sum of
*terms*, each a stream of updates with a chain of linear operators still to be applied to it. So `concat` is
free, and `select`, `filter`, `map` and their like cost no stage: a chain runs on the connector to whatever
needs the result.

For every operator and every time: what it has put out, accumulated up to that time, is the operator's plain
definition applied to what has come in, accumulated up to that time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from differential.columns.schema import Schema, SchemaSpec
from differential.errors import SchemaError
from differential.expressions.expression import Expr, ExprLike, as_expr, col
from differential.linear.chain import LinearChain
from differential.linear.transform import LinearTransform
from differential.linear.user_functions import FlatMapFunction, MapFunction
from differential.other_spellings import explain
from timely.building.loop import Loop
from timely.building.scope import ITERATIONS_MAX, Scope
from timely.building.stream import Feed, Stream
from timely.errors import GraphError

from .columns.update_batch import KeyRoute

if TYPE_CHECKING:
    from timely.building.dataflow import Dataflow

    from .grouping import Grouped

__all__ = ["Collection", "Row", "Term"]

Row = tuple[object, ...]


@dataclass(frozen=True, eq=False)
class Term:
    """A stream of updates and the linear operators between it and the collection."""

    stream: Stream
    chain: LinearChain


@dataclass(frozen=True, eq=False)
class Collection:
    """Columns `schema`, in the scope of the innermost of `loops` (the root if there are none).

    `is_consolidated` says that no update in it cancels another one of the same time.
    """

    dataflow: Dataflow
    schema: Schema
    terms: tuple[Term, ...]
    loops: tuple[Loop, ...] = ()
    is_consolidated: bool = False

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            hint = ""
            if not name.startswith("_") and name in self.__dict__.get("schema", ()):
                hint = f": it is a column; in an expression write col.{name}"
            raise AttributeError(explain("a collection", name) + hint)

    def __repr__(self) -> str:
        return f"Collection({self.schema})"

    @property
    def scope(self) -> Scope:
        """Where its times live."""
        return self.loops[-1].scope if self.loops else self.dataflow.root

    # Linear operators: no state, no stage.

    def select(self, *columns: str | Expr, **named: ExprLike) -> Collection:
        """Columns by name, and columns computed by expressions: `select("src", label=col.dst + 1)`."""
        chosen: dict[str, Expr] = {}
        for column in columns:
            reference = col(column) if isinstance(column, str) else column
            names = [column] if isinstance(column, str) else sorted(reference.columns())
            if len(names) != 1 or (not isinstance(column, str) and repr(reference) != repr(col(names[0]))):
                raise SchemaError(f"select: {reference!r} needs a name: write select(name={reference!r})")
            chosen[names[0]] = reference
        chosen.update({name: as_expr(value) for name, value in named.items()})
        return self._linear(lambda chain: chain.select(chosen))

    def with_columns(self, **named: ExprLike) -> Collection:
        """All columns, those named here replaced or added at the end: `with_columns(degree=col.n + 1)`."""
        return self._linear(lambda chain: chain.with_columns(named))

    def filter(self, condition: ExprLike) -> Collection:
        """The rows for which `condition` is true (not false, not null)."""
        return self._linear(lambda chain: chain.filter(as_expr(condition)))

    def map(self, function: MapFunction, schema: SchemaSpec | None = None) -> Collection:
        """`function(record)` in place of each record; about 1 µs a record, so prefer `select` where it can
        say it.

        `schema` declares the columns of what the function gives; without it they are those of this
        collection.
        """
        declared = self.schema if schema is None else Schema.of(schema)
        return self._linear(lambda chain: chain.map(function, declared))

    def flat_map(self, function: FlatMapFunction, schema: SchemaSpec | None = None) -> Collection:
        """All the records that `function(record)` gives, for each record; costs as `map`."""
        declared = self.schema if schema is None else Schema.of(schema)
        return self._linear(lambda chain: chain.flat_map(function, declared))

    def negate(self) -> Collection:
        """All multiplicities with the other sign."""
        return replace(self._linear(lambda chain: chain.negate()), is_consolidated=self.is_consolidated)

    def concat(self, *others: Collection) -> Collection:
        """The sum: multiplicities added. The others must have the same columns and types; their order may
        differ.
        """
        parts = _in_one_scope((self, *others))
        terms: list[Term] = []
        for part in parts:
            terms.extend(part.conformed(self.schema, "concat").terms)
        return replace(parts[0], terms=tuple(terms), is_consolidated=False)

    # Operators with state.

    def consolidate(self) -> Collection:
        """The same collection, each time's updates summed before they go on."""
        from .stateful import consolidate

        return consolidate(self)

    def distinct(self) -> Collection:
        """Each row that has a positive multiplicity, once."""
        from .stateful import distinct

        return distinct(self)

    def join(self, other: Collection, on: str | Sequence[str] | Mapping[str, str]) -> Collection:
        """Pairs of rows with equal keys (inner join); multiplicities are multiplied.

        `on` names the key columns; a mapping says which column of this collection equals which of `other`.
        Columns of the result: the keys under the names they have here, the other columns of this, the other
        columns of `other`.
        """
        from .joining import join

        left, right = _in_one_scope((self, other))
        return join(left, right, on)

    def group_by(self, *keys: str) -> Grouped:
        """Groups of rows with equal `keys`; follow with `agg(…)` or `reduce(fn, …)`. No keys: one group of
        all rows.
        """
        from .grouping import Grouped

        for key in keys:
            self.schema.offset(key)
        if len(set(keys)) != len(keys):
            raise SchemaError(f"group_by: a key is named twice in {', '.join(keys)}")
        return Grouped(self, keys)

    def iterate(
        self,
        body: Callable[[Collection], Collection],
        *,
        name: str = "iterate",
        iterations_max: int = ITERATIONS_MAX,
    ) -> Collection:
        """The fixed point of `body`, starting from this collection.

        `body` is called once, with a collection that stands for any iteration. Collections of the scope
        around the loop may be used in it as they are. The loop ends when nothing changes any more; if that
        has not happened after `iterations_max` iterations, the dataflow stops with an error that names the
        loop.
        """
        from .iteration import iterate

        return iterate(self, body, name, iterations_max)

    def inspect(self, function: Callable[[Row, tuple[int, ...], int], None]) -> Collection:
        """Call `function(row, time, diff)` for each update that passes; the collection stays what it is."""
        from .stateful import inspect

        return inspect(self, function)

    def output(self, name: str) -> None:
        """Make the collection readable by clients under `name`."""
        from .table_io import TableOut

        if self.loops:
            raise GraphError(
                f"output {name!r}: the collection is inside {self.scope.path()!r}: "
                "only what `iterate` returns leaves a loop"
            )
        codec = TableOut(self.schema)
        feeds = self.feeds(0, None)
        self.dataflow.output(name, self.terms[0].stream, codec, feeds)

    # How stages are fed.

    def feeds(self, port: int, keys: Sequence[str] | None) -> list[Feed]:
        """Feeds of input `port` of a stage: rows laid out key first and sent to the worker of their key.

        `keys` None: columns in order, and rows stay on their worker.
        """
        found: list[Feed] = []
        for term in self.terms:
            chain, route = term.chain, None
            if keys is not None:
                chain = term.chain.keyed_by(keys)
                route = KeyRoute(sum(self.schema[key].words for key in keys), chain.schema_out.symbol_words)
            found.append(
                Feed(term.stream, port, route, LinearTransform.of(chain), "; ".join(chain.describe()))
            )
        return found

    def entered(self, loop: Loop) -> Collection:
        """This collection inside `loop`, which must be in its scope."""
        terms = tuple(Term(loop.enter(term.stream), term.chain) for term in self.terms)
        return replace(self, terms=terms, loops=(*self.loops, loop))

    def left(self) -> Collection:
        """This collection of a loop in the scope around it: its iterations summed up."""
        loop = self.loops[-1]
        terms = tuple(Term(loop.leave(term.stream), term.chain) for term in self.terms)
        return replace(self, terms=terms, loops=self.loops[:-1], is_consolidated=False)

    def within(self, loops: tuple[Loop, ...]) -> Collection:
        """This collection, entered into as many of `loops` as it is not in yet."""
        shared = len(self.loops)
        if self.loops != loops[:shared]:
            raise GraphError(
                f"a collection of {self.scope.path()!r} is used in "
                f"{(loops[-1].scope if loops else self.dataflow.root).path()!r}, which is not inside it: "
                "only what `iterate` returns leaves a loop"
            )
        inside = self
        for loop in loops[shared:]:
            inside = inside.entered(loop)
        return inside

    def _linear(self, step: Callable[[LinearChain], LinearChain]) -> Collection:
        terms = tuple(Term(term.stream, step(term.chain)) for term in self.terms)
        return replace(self, schema=terms[0].chain.schema_out, terms=terms, is_consolidated=False)

    def conformed(self, schema: Schema, operator: str) -> Collection:
        """This collection with its columns in the order of `schema`; SchemaError if they are not the same
        columns.
        """
        if self.schema == schema:
            return self
        if sorted(map(str, self.schema)) != sorted(map(str, schema)):
            raise SchemaError(
                f"{operator}: the columns differ: ({schema}) and ({self.schema}). Make them equal by "
                "select(…) with the same names and types"
            )
        return self.select(*schema.names)


def _in_one_scope(parts: tuple[Collection, ...]) -> tuple[Collection, ...]:
    """All parts in the innermost scope among them."""
    for part in parts:
        if not isinstance(part, Collection):
            raise GraphError(f"a collection is needed here, not {type(part).__name__}")
        if part.dataflow is not parts[0].dataflow:
            raise GraphError("collections of two dataflows cannot meet")
    innermost = max((part.loops for part in parts), key=len)
    return tuple(part.within(innermost) for part in parts)
