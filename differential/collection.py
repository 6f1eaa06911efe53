"""A collection that changes: named, typed columns, and a multiset of rows that has a value at every time.

Operators return new collections and do nothing yet; they write a plan (`plan/`), which becomes a dataflow
when this is installed. A collection is a node of that plan, and the loops that it is in.

For every operator and every time: what it has put out, accumulated up to that time, is the operator's plain
definition applied to what has come in, accumulated up to that time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from timely.building.dataflow import Dataflow
from timely.building.loop import Loop
from timely.building.scope import ITERATIONS_MAX
from timely.building.stream import Feed, Stream
from timely.errors import GraphError
from timely.user_code.call_site import call_site

from .aggregates import Aggregate
from .columns.schema import Schema, SchemaSpec
from .errors import ExpressionError, SchemaError
from .expressions.expression import Expr, ExprLike, as_expr, col
from .linear.user_functions import BatchFunction, FlatMapFunction, MapFunction
from .operators.between.imports import TableImport
from .operators.group_functions import UserGroupFunction
from .operators.table_io import DIFF, EPOCH, TableIn
from .other_spellings import explain
from .plan.building import OpenLoop, Place, Plan
from .plan.explaining import explain_plan
from .plan.nodes import (
    Apply,
    ApplyKind,
    Arrange,
    Concat,
    Consolidate,
    Distinct,
    Filter,
    FromStream,
    Import,
    Input,
    Join,
    Leave,
    LetRec,
    Negate,
    Node,
    Reduce,
    ReduceFunction,
    Select,
    Variable,
)

__all__ = ["Collection", "Grouped", "Row", "from_stream", "imported", "input"]

Row = tuple[object, ...]


@dataclass(frozen=True, eq=False)
class Collection:
    """What `node` of `plan` computes, within the loops of `place`, outermost first (none: the root)."""

    plan: Plan
    node: Node
    place: Place = ()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            hint = ""
            node = self.__dict__.get("node")
            if not name.startswith("_") and node is not None and name in node.schema:
                hint = f": it is a column; in an expression write col.{name}"
            raise AttributeError(explain("a collection", name) + hint)

    def __repr__(self) -> str:
        return f"Collection({self.schema})"

    @property
    def dataflow(self) -> Dataflow:
        """The dataflow that it belongs to."""
        return self.plan.dataflow

    @property
    def schema(self) -> Schema:
        """Its columns."""
        return self.node.schema

    # Operators on rows: no state, no stage.

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
        return self._with(Select(self.node, tuple(chosen.items())))

    def with_columns(self, **named: ExprLike) -> Collection:
        """All columns, those named here replaced or added at the end: `with_columns(degree=col.n + 1)`."""
        kept: dict[str, Expr] = {name: col(name) for name in self.schema.names}
        kept.update({name: as_expr(value) for name, value in named.items()})
        return self._with(Select(self.node, tuple(kept.items())))

    def filter(self, condition: ExprLike) -> Collection:
        """The rows for which `condition` is true (not false, not null)."""
        return self._with(Filter(self.node, as_expr(condition)))

    def map(self, function: MapFunction, schema: SchemaSpec | None = None) -> Collection:
        """`function(record)` in place of each record; about 1 µs a record, so prefer `select` where it can
        say it.

        `schema` declares the columns of what the function gives; without it they are those of this
        collection.
        """
        return self._applied("map", function, schema)

    def flat_map(self, function: FlatMapFunction, schema: SchemaSpec | None = None) -> Collection:
        """All the records that `function(record)` gives, for each record; costs as `map`."""
        return self._applied("flat_map", function, schema)

    def negate(self) -> Collection:
        """All multiplicities with the other sign."""
        return self._with(Negate(self.node))

    def concat(self, *others: Collection) -> Collection:
        """The sum: multiplicities added. The others must have the same columns and types; their order may
        differ.
        """
        parts = _in_one_place((self, *others))
        nodes = tuple(part.conformed(self.schema, "concat").node for part in parts)
        return parts[0]._with(Concat(nodes)) if others else self

    # Operators with state.

    def consolidate(self) -> Collection:
        """The same collection, each time's updates summed before they go on."""
        return self._with(Consolidate(self.node))

    def arrange(self, by: str | Sequence[str]) -> Collection:
        """The same collection, kept by the columns `by` once: joins and groups by just these, in this order,
        read it, and none keeps rows of its own. Inside loops, too.

        What several operators read alike is arranged without being asked; this is for what differs in
        filters: write them behind the join. It keeps what its readers need of it. Rust: `arrange_by_key`.
        """
        keys = (by,) if isinstance(by, str) else tuple(by)
        for key in keys:
            self.schema.offset(key)
        if not keys or len(set(keys)) != len(keys):
            raise SchemaError(f"arrange: by takes the names of different columns, not {by!r}")
        return self._with(Arrange(self.node, keys))

    def distinct(self) -> Collection:
        """Each row that has a positive multiplicity, once."""
        return self._with(Distinct(self.node))

    def join(self, other: Collection, on: str | Sequence[str] | Mapping[str, str]) -> Collection:
        """Pairs of rows with equal keys (inner join); multiplicities are multiplied.

        `on` names the key columns; a mapping says which column of this collection equals which of `other`.
        Columns of the result: the keys under the names they have here, the other columns of this, the other
        columns of `other`.
        """
        left, right = _in_one_place((self, other))
        pairs = _pairs(on)
        for keys in zip(*pairs, strict=True):
            if len(set(keys)) != len(keys):
                raise SchemaError(f"join: a key is named twice in {', '.join(keys)}")
        return left._with(Join(left.node, right.node, pairs))

    def group_by(self, *keys: str) -> Grouped:
        """Groups of rows with equal `keys`; follow with `agg(…)` or `reduce(fn, …)`. No keys: one group of
        all rows.
        """
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
        if iterations_max < 1:
            raise GraphError(
                f"the loop {name!r} needs a limit of at least one iteration, not {iterations_max}"
            )
        around = self.plan.open_loops()
        place = max(self.place, around[-1].place if around else (), key=len)
        initial = self._within(place)
        with self.plan.opened(name, place) as loop:
            variable = Variable(self.schema, loop.depth, 0)
            result = body(Collection(self.plan, self.plan.add(variable), loop.place))
        if not isinstance(result, Collection):
            raise GraphError(
                f"the body of {name!r} must return a collection; it returned {type(result).__name__}"
            )
        result = result._within(loop.place).conformed(self.schema, f"the body of {name!r}")
        written = LetRec(
            name, loop.depth, (initial.node,), (result.node,), iterations_max, tuple(loop.effects)
        )
        closed = self.plan.closed(written)
        # Out of the loops around it that it does not depend on: there it is computed once.
        needed = max(closed.free, default=0)
        by_hand = tuple(each for each in place if isinstance(each, Loop))
        inside = next((each.place for each in reversed(around) if each.depth == needed), by_hand)
        return Collection(self.plan, self.plan.add(Leave(closed, 0)), inside)

    def inspect(self, function: Callable[[Row, tuple[int, ...], int], None]) -> Collection:
        """Call `function(row, time, diff)` for each update that passes; the collection stays what it is."""
        return replace(self, node=self.plan.inspect(self.node, function))

    def output(self, name: str) -> None:
        """Make the collection readable by clients under `name`."""
        if self.place:
            raise GraphError(
                f"output {name!r}: the collection is inside {self._path(self.place)!r}: "
                "only what `iterate` returns leaves a loop"
            )
        self.plan.output(self.node, name)

    def export(self, name: str, by: str | Sequence[str] = ()) -> None:
        """Keep the collection by the columns `by` (all of them, if none are named), for other dataflows of
        the cluster to read from its present state on: `dd.imported`.
        """
        if self.place:
            raise GraphError(
                f"export {name!r}: the collection is inside {self._path(self.place)!r}: "
                "only what `iterate` returns leaves a loop"
            )
        keys = (by,) if isinstance(by, str) else tuple(by) or self.schema.names
        for key in keys:
            self.schema.offset(key)
        if len(set(keys)) != len(keys):
            raise SchemaError(f"export: a key is named twice in {', '.join(keys)}")
        self.plan.export(self.node, name, keys)

    def explain(self) -> str:
        """How the collection is computed: the plan as it was written, after the rules, and as stages.

        Nothing is installed by asking. Each operator is shown with the line that wrote it; one that is read
        several times is written out once, and referred to by its number.
        """
        return explain_plan(self.plan, [self.node])

    # For stages that are written by hand, and for what else builds on collections.

    def feeds(self, port: int = 0, keys: Sequence[str] | None = None) -> list[Feed]:
        """Feeds of input `port` of a stage: rows laid out key first and sent to the worker of their key.

        `keys` None: columns in order, and rows stay on their worker.
        """
        if any(isinstance(loop, OpenLoop) for loop in self.place):
            raise GraphError(
                f"a stage that is written by hand cannot be fed inside {self._path(self.place)!r}, which is "
                "still being written: build the loop by hand, too, or look at updates with inspect(…)"
            )
        return self.plan.lowering.feeds(self.node, port, keys)

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

    def _with(self, node: Node) -> Collection:
        return replace(self, node=self.plan.add(node))

    def _applied(
        self, how: ApplyKind, function: MapFunction | BatchFunction, schema: SchemaSpec | None
    ) -> Collection:
        if not callable(function):
            raise ExpressionError(f"{how}({function!r}) ({call_site()}) needs a function.")
        declared = self.schema if schema is None else Schema.of(schema)
        return self._with(Apply(self.node, how, self.plan.function(function), declared))

    def _within(self, place: Place) -> Collection:
        """This collection, used in `place`."""
        if self.place != place[: len(self.place)]:
            raise GraphError(
                f"a collection of {self._path(self.place)!r} is used in {self._path(place)!r}, which is not "
                "inside it: only what `iterate` returns leaves a loop"
            )
        return replace(self, place=place)

    def _path(self, place: Place) -> str:
        names = [loop.name if isinstance(loop, OpenLoop) else loop.scope.name for loop in place]
        return " / ".join([self.dataflow.root.name, *names])


@dataclass(frozen=True, eq=False)
class Grouped:
    """A collection cut into groups by the columns `keys`."""

    collection: Collection
    keys: tuple[str, ...]

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            raise AttributeError(explain("a grouped collection", name, groups=True))

    def agg(self, **aggregates: Aggregate) -> Collection:
        """One row per group: the keys, and each aggregate under its name."""
        if not aggregates:
            raise SchemaError("agg needs at least one aggregate, as in agg(n=dd.count())")
        for name, aggregate in aggregates.items():
            if not isinstance(aggregate, Aggregate):
                raise SchemaError(
                    f"agg({name}=…) takes dd.count(), dd.sum('x'), dd.min('x') or dd.max('x'), "
                    f"not {aggregate!r}"
                )
            if name in self.keys:
                raise SchemaError(f"agg: {name!r} is a key already; choose another name")
            if aggregate.column in self.keys:
                raise SchemaError(
                    f"{aggregate.describe()}: {aggregate.column!r} is a key of the groups; copy it first: "
                    f"select(…, x=col.{aggregate.column})"
                )
        return self.collection._with(Reduce(self.collection.node, self.keys, tuple(aggregates.items())))

    def reduce(self, function: UserGroupFunction, schema: SchemaSpec) -> Collection:
        """Whatever rows `function(key, rows)` gives for each group; the result has the keys and the columns
        of `schema`.

        `key` is a tuple; `rows` a list of (row without the keys, multiplicity), multiplicities not 0. It
        returns rows: tuples, or bare values if `schema` has one column. It must be pure: it is called again
        whenever its group changes, also when that may turn out to be no change. About 2 µs per row of a
        changed group.
        """
        given = Schema.of(schema)
        for column in given:
            if column.name in self.keys:
                raise SchemaError(
                    f"reduce: {column.name!r} is a key already; choose another name in its schema"
                )
        known = self.collection.plan.function(function)
        return self.collection._with(ReduceFunction(self.collection.node, self.keys, known, given))


def input(dataflow: Dataflow, name: str, schema: SchemaSpec) -> Collection:
    """A named input of `dataflow` as a collection with the columns of `schema`."""
    declared = Schema.of(schema)
    for reserved in (DIFF, EPOCH):
        if reserved in declared.names:
            raise SchemaError(
                f"input {name!r}: a column cannot be called {reserved!r}, which tables of changes use"
            )
    stream = dataflow.input(name, TableIn(declared, name))
    plan = Plan.of(dataflow)
    return Collection(plan, plan.leaf(Input(declared, name), stream))


def imported(flow: Dataflow, owner: int | str, name: str, schema: SchemaSpec) -> Collection:
    """What the dataflow `owner` of the same cluster exports as `name`, from its present state on.

    `owner` is its number (`Flow.index`) or its name, of which the last part does: `mentions` for
    "my_queries:mentions". The columns are those of `schema`, in that order. Its epochs are those of this
    dataflow, whose own inputs begin with the same one.
    """
    declared = Schema.of(schema)
    plan = Plan.of(flow)
    node = Import(declared, owner, name)
    if node.digest not in plan.streams:
        node = plan.leaf(node, flow.imported(owner, name, TableImport(declared)))
    return Collection(plan, plan.add(node))


def from_stream(
    dataflow: Dataflow, stream: Stream, schema: SchemaSpec, loops: tuple[Loop, ...] = ()
) -> Collection:
    """What a stage that was written by hand puts out (update batches with the columns of `schema`) as a
    collection; `loops` are those that the stream is in, outermost first.
    """
    plan = Plan.of(dataflow)
    leaf = FromStream(Schema.of(schema), plan.from_stream_serial())
    return Collection(plan, plan.leaf(leaf, stream, loops), loops)


def _pairs(on: str | Sequence[str] | Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    if isinstance(on, str):
        return ((on, on),)
    if isinstance(on, Mapping):
        return tuple(on.items())
    return tuple((key, key) for key in on)


def _in_one_place(parts: tuple[Collection, ...]) -> tuple[Collection, ...]:
    """All parts in the innermost place among them."""
    for part in parts:
        if not isinstance(part, Collection):
            raise GraphError(f"a collection is needed here, not {type(part).__name__}")
        if part.plan is not parts[0].plan:
            raise GraphError("collections of two dataflows cannot meet")
    innermost = max((part.place for part in parts), key=len)
    return tuple(part._within(innermost) for part in parts)
