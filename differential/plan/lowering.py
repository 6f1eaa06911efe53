"""From a plan to stages: which machine computes each node, how rows get there, and where loops close.

A linear node costs no stage. What a collection is made of is kept as *terms*, each a stream and the chain of
linear operators between it and the collection; the chain runs on the connectors to whatever needs the result.
So a sum is several feeds of one port, at no cost.

A node is computed in the innermost loop that it depends on, once; what is used further inside is entered
there, which costs nothing at run time.

Inside a loop times have one more counter, i. A variable x is its initial collection at i = 0, and the body's
result of iteration i at i + 1:

    x = s + feedback(body(x) - s)        s: the initial collection, entered at i = 0

so that x at (t, 0) is s, and x at (t, i + 1) is body(x) at (t, i). Once an iteration changes nothing nothing
circulates, and the sum over all iterations, which is what leaves, is the fixed point. What circulates must be
consolidated: updates that cancel would go round for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, cast

from timely.building.dataflow import Dataflow
from timely.building.loop import Feedback, Loop
from timely.building.stream import Feed, Stream
from timely.errors import InternalError
from timely.operators.vertex import Vertex
from timely.user_code.call_site import CallSite, at_site

from ..columns.schema import Schema
from ..columns.update_batch import KeyRoute
from ..expressions.expression import col
from ..linear.chain import LinearChain
from ..linear.transform import LinearTransform
from ..linear.user_functions import MapFunction
from ..operators.group_functions import UserGroupFunction, on_words
from ..operators.inspect import InspectVertex, Look
from ..operators.table_io import TableOut
from ..operators.vertices import (
    AggregateVertex,
    ConsolidateVertex,
    DistinctVertex,
    GroupFunctionVertex,
    JoinVertex,
    Shown,
)
from .facts import is_consolidated
from .nodes import (
    Apply,
    Concat,
    Consolidate,
    Distinct,
    Filter,
    Inspect,
    Join,
    Leave,
    LetRec,
    Negate,
    Node,
    Output,
    Reduce,
    ReduceFunction,
    Select,
    Variable,
)
from .rewriting import beneath

__all__ = ["Leaves", "Lowering", "Sites"]

_Loops = tuple[Loop, ...]

Leaves = dict[bytes, tuple[Stream, _Loops]]
"""By digest of a leaf: the stream that feeds it, and the loops that this is in."""

Sites = dict[bytes, list[CallSite]]
"""By digest: where a node was written."""


class _Term(NamedTuple):
    """A stream of updates and the linear operators between it and the collection."""

    stream: Stream
    chain: LinearChain


@dataclass(frozen=True, eq=False)
class _Lowered:
    """What computes a node: the sum of these terms, in the innermost of these loops."""

    schema: Schema
    terms: tuple[_Term, ...]
    loops: _Loops


class Lowering:
    """Makes stages of one dataflow for nodes of one plan; each node once for each loop that it is in."""

    def __init__(self, dataflow: Dataflow, leaves: Leaves, sites: Sites) -> None:
        self._dataflow = dataflow
        self._leaves = leaves
        self._sites = sites
        self._made: dict[tuple[bytes, _Loops], _Lowered] = {}
        self._results: dict[tuple[bytes, _Loops], tuple[_Lowered, ...]] = {}
        self._entered: dict[tuple[int, int, Loop], Stream] = {}
        self._variables: list[tuple[Loop, tuple[_Lowered, ...]]] = []
        """By depth: the loops that are being made, and what stands for their variables."""

    def root(self, node: Node) -> None:
        """Make what an output or an effect needs."""
        if isinstance(node, LetRec):
            self._loop(node)
        else:
            self._lower(node)

    def feeds(self, node: Node, port: int = 0, keys: Sequence[str] | None = None) -> list[Feed]:
        """Feeds of a stage that was written by hand; see `_feeds`."""
        return self._feeds(self._lower(node), port, keys)

    def _lower(self, node: Node) -> _Lowered:
        """What computes `node`; without recursion over long chains of operators."""
        waiting = [node]
        while waiting:
            top = waiting[-1]
            # The parts of a loop are made inside it, when it is made itself.
            parts = top.loop.initials if isinstance(top, Leave) else top.children
            missing = [part for part in parts if self._found(part) is None]
            if missing:
                waiting.extend(reversed(missing))
                continue
            waiting.pop()
            if self._found(top) is None:
                with at_site(self._sites.get(top.digest, ())):
                    self._made[top.digest, self._home(top)] = self._make(top)
        found = self._found(node)
        assert found is not None
        return found

    def _found(self, node: Node) -> _Lowered | None:
        return self._made.get((node.digest, self._home(node)))

    def _home(self, node: Node) -> _Loops:
        """The loops that are being made and that `node` depends on, as far as that tells it apart."""
        depth = max(node.free, default=0)
        return () if depth == 0 else tuple(loop for loop, _ in self._variables[:depth])

    def _make(self, node: Node) -> _Lowered:
        if isinstance(node, Variable):
            return self._variables[node.depth - 1][1][node.index]
        if not node.children:
            stream, loops = self._leaves[node.digest]
            return _Lowered(node.schema, (_Term(stream, LinearChain.over(node.schema)),), loops)
        if isinstance(node, Leave):
            return self._loop(node.loop)[node.index]
        if isinstance(node, Concat):
            parts = self._together([self._lower(source) for source in node.sources])
            return replace(parts[0], terms=tuple(term for part in parts for term in part.terms))
        if node.is_linear:
            return self._linear(node)
        return self._stage(node)

    def _linear(self, node: Node) -> _Lowered:
        source = self._lower(node.children[0])
        step = self._step(node)
        terms = tuple(_Term(term.stream, step(term.chain)) for term in source.terms)
        return replace(source, schema=node.schema, terms=terms)

    def _step(self, node: Node) -> Callable[[LinearChain], LinearChain]:
        if isinstance(node, Select):
            columns = dict(node.columns)
            return lambda chain: chain.select(columns)
        if isinstance(node, Filter):
            condition = node.condition
            return lambda chain: chain.filter(condition)
        if isinstance(node, Negate):
            return lambda chain: chain.negate()
        if isinstance(node, Apply):
            how, function, schema = node.how, node.function.function, node.columns
            return lambda chain: chain.apply(how, cast("MapFunction", function), schema)
        raise InternalError(f"{node!r} is linear, and nothing is known to do it")

    def _stage(self, node: Node) -> _Lowered:
        """A stage for a node with state, or an effect."""
        if isinstance(node, Join):
            return self._join(node)
        source = self._lower(node.children[0])
        schema = source.schema
        if isinstance(node, Reduce):
            return self._reduce(node, source)
        if isinstance(node, ReduceFunction):
            return self._reduce_function(node, source)
        if isinstance(node, Consolidate):
            return self._consolidate(source)
        if isinstance(node, Distinct):
            feeds = self._feeds(source, 0, schema.names)
            return self._add(
                "distinct", lambda: DistinctVertex(schema.width, schema), feeds, source, schema, f"({schema})"
            )
        if isinstance(node, Inspect):
            function = node.function.function
            detail = f"({schema}) {node.function.digest}"
            feeds = self._feeds(source, 0, None)
            return self._add(
                "inspect",
                lambda: InspectVertex(schema, cast("Look", function)),
                feeds,
                source,
                schema,
                detail,
            )
        assert isinstance(node, Output), node
        self._dataflow.output(
            node.name, source.terms[0].stream, TableOut(schema), self._feeds(source, 0, None)
        )
        return source

    def _join(self, node: Join) -> _Lowered:
        left, right = self._together([self._lower(node.left), self._lower(node.right)])
        left_keys, right_keys = node.keys
        key_words = sum(left.schema[key].words for key in left_keys)
        widths = (key_words, left.schema.width - key_words, right.schema.width - key_words)
        schemas = (left.schema.reordered(left_keys), right.schema.reordered(right_keys))
        feeds = [*self._feeds(left, 0, left_keys), *self._feeds(right, 1, right_keys)]
        detail = f"({left.schema}) with ({right.schema})"
        return self._add(
            node.describe(), lambda: JoinVertex(*widths, schemas), feeds, left, node.schema, detail
        )

    def _reduce(self, node: Reduce, source: _Lowered) -> _Lowered:
        kept = source.schema.picked(node.columns_read).reordered(node.keys)
        key_words = sum(kept[key].words for key in node.keys)
        value_words = kept.width - key_words
        wanted = [
            (a.kind, -1 if a.column is None else kept.offset(a.column) - key_words)
            for _, a in node.aggregates
        ]
        names = tuple(aggregate.describe() for _, aggregate in node.aggregates)
        shown = Shown(kept.picked(node.keys), kept, node.schema, names)
        feeds = self._feeds(_narrowed(source, kept), 0, node.keys)
        return self._add(
            node.describe(),
            lambda: AggregateVertex(key_words, value_words, wanted, shown),
            feeds,
            source,
            node.schema,
            f"({kept}) → ({node.schema})",
        )

    def _reduce_function(self, node: ReduceFunction, source: _Lowered) -> _Lowered:
        over = source.schema.reordered(node.keys)
        keys = over.picked(node.keys)
        rest = Schema(tuple(column for column in over if column.name not in node.keys))
        site = str(self._sites[node.digest][0])
        shown = Shown(keys, over, node.schema)
        function, given = node.function.function, node.columns
        return self._add(
            node.describe(),
            lambda: GroupFunctionVertex(
                keys.width,
                rest.width,
                on_words(cast("UserGroupFunction", function), keys, rest, given, site),
                shown,
            ),
            self._feeds(source, 0, node.keys),
            source,
            node.schema,
            f"({over}) → ({node.schema}) {node.function.digest}",
        )

    def _consolidate(self, source: _Lowered) -> _Lowered:
        """Rows go to the worker of their hash, so that equal ones meet."""
        schema = source.schema
        feeds = self._feeds(source, 0, schema.names)
        return self._add(
            "consolidate",
            lambda: ConsolidateVertex(schema.width, schema),
            feeds,
            source,
            schema,
            f"({schema})",
        )

    def _add(
        self,
        name: str,
        vertex: Callable[[], Vertex],
        feeds: Sequence[Feed],
        source: _Lowered,
        schema: Schema,
        detail: str,
    ) -> _Lowered:
        (stream,) = self._dataflow.stage(name, vertex, feeds, detail=detail)
        return _Lowered(schema, (_Term(stream, LinearChain.over(schema)),), source.loops)

    def _loop(self, node: LetRec) -> tuple[_Lowered, ...]:
        """What leaves a loop: one result for each of its variables."""
        key = (node.digest, self._home(node))
        if key not in self._results:
            with at_site(self._sites.get(node.digest, ())):
                self._results[key] = self._make_loop(node)
        return self._results[key]

    def _make_loop(self, node: LetRec) -> tuple[_Lowered, ...]:
        outer = self._variables
        around = [variables[0].loops for _, variables in outer[: node.depth - 1]]
        around += [self._leaves[leaf.digest][1] for leaf in beneath([node]) if leaf.digest in self._leaves]
        initials = self._together([self._lower(initial) for initial in node.initials], around)
        loops = initials[0].loops
        parent = loops[-1].scope if loops else self._dataflow.root
        loop = Loop.inside(self._dataflow, parent, node.name, iterations_max=node.iterations_max)
        entered = [self._within(initial, (*loops, loop)) for initial in initials]
        feedbacks = [loop.feedback() for _ in initials]
        variables = tuple(map(_variable, entered, feedbacks))
        self._variables = [*outer[: node.depth - 1], (loop, variables)]
        try:
            bodies = [self._within(self._lower(body), (*loops, loop)) for body in node.bodies]
            for effect in node.effects:
                self.root(effect)
            for body, start, feedback, written in zip(bodies, entered, feedbacks, node.bodies, strict=True):
                self._close(body, start, feedback, is_consolidated(written))
        finally:
            self._variables = outer
        loop.check_connected()
        return tuple(
            replace(
                body,
                terms=tuple(_Term(loop.leave(term.stream), term.chain) for term in body.terms),
                loops=loops,
            )
            for body in bodies
        )

    def _close(self, body: _Lowered, start: _Lowered, feedback: Feedback, is_clean: bool) -> None:
        """Connect what changed in an iteration to the next."""
        taken = tuple(_Term(term.stream, term.chain.negate()) for term in start.terms)
        difference = replace(body, terms=(*body.terms, *taken))
        if not is_clean:
            difference = self._consolidate(difference)
        for feed in self._feeds(difference, 0, None):
            feedback.connect(feed.stream, feed)

    def _together(self, parts: list[_Lowered], around: Sequence[_Loops] = ()) -> list[_Lowered]:
        """All parts in the innermost loop among them, and `around`."""
        innermost = max([*(part.loops for part in parts), *around], key=len)
        return [self._within(part, innermost) for part in parts]

    def _within(self, part: _Lowered, loops: _Loops) -> _Lowered:
        """`part`, entered into as many of `loops` as it is not in yet."""
        assert part.loops == loops[: len(part.loops)], "it is of this place or of one around it"
        for loop in loops[len(part.loops) :]:
            terms = tuple(_Term(self._enter(term.stream, loop), term.chain) for term in part.terms)
            part = replace(part, terms=terms, loops=(*part.loops, loop))
        return part

    def _enter(self, stream: Stream, loop: Loop) -> Stream:
        key = (stream.stage_index, stream.output, loop)
        if key not in self._entered:
            self._entered[key] = loop.enter(stream)
        return self._entered[key]

    def _feeds(self, part: _Lowered, port: int, keys: Sequence[str] | None) -> list[Feed]:
        """Feeds of input `port` of a stage: rows laid out key first and sent to the worker of their key.

        `keys` None: columns in order, and rows stay on their worker.
        """
        found: list[Feed] = []
        for term in part.terms:
            chain, route = term.chain, None
            if keys is not None:
                chain = chain.keyed_by(keys)
                route = KeyRoute(sum(part.schema[key].words for key in keys), chain.schema_out.symbol_words)
            found.append(
                Feed(term.stream, port, route, LinearTransform.of(chain), "; ".join(chain.describe()))
            )
        return found


def _variable(start: _Lowered, feedback: Feedback) -> _Lowered:
    coming_back = _Term(feedback.stream, LinearChain.over(start.schema))
    return replace(start, terms=(*start.terms, coming_back))


def _narrowed(source: _Lowered, kept: Schema) -> _Lowered:
    """Only these columns of it."""
    if kept == source.schema:
        return source
    picked = {name: col(name) for name in kept.names}
    terms = tuple(_Term(term.stream, term.chain.select(picked)) for term in source.terms)
    return replace(source, schema=kept, terms=terms)
