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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import cast

from timely.building.dataflow import Dataflow
from timely.building.loop import Feedback, Loop
from timely.building.stream import Feed, Stream
from timely.errors import InternalError
from timely.operators.vertex import Vertex
from timely.user_code.call_site import at_site

from ...columns.schema import Schema
from ...expressions.expression import col
from ...linear.chain import LinearChain
from ...linear.user_functions import MapFunction
from ...operators.arrange import Arranged, JoinPart, Rows, arrange, join_stage, reduce_stage
from ...operators.between.exports import ExportVertex
from ...operators.inspect import InspectVertex, Look
from ...operators.table_io import TableOut
from ...operators.vertices import ConsolidateVertex
from ..facts import is_consolidated
from ..nodes import (
    Apply,
    Arrange,
    Concat,
    Consolidate,
    Export,
    Filter,
    Input,
    Inspect,
    Join,
    Leave,
    LetRec,
    Negate,
    Node,
    Output,
    Select,
    Variable,
)
from ..rewriting import beneath
from ..rules.sharing import Kept, Sharing, answered, read_of, reads_answers, returned
from .groups import Grouping, stage_of
from .terms import (
    Leaves,
    Loops,
    LoopVariable,
    Lowered,
    Side,
    Sites,
    Term,
    feeds_of,
    narrowed,
    pairs_of,
)

__all__ = ["Lowering"]


class Lowering:
    """Makes stages of one dataflow for nodes of one plan; each node once for each loop that it is in."""

    def __init__(self, dataflow: Dataflow, leaves: Leaves, sites: Sites) -> None:
        self._dataflow = dataflow
        self._leaves = leaves
        self._sites = sites
        self._made: dict[tuple[bytes, Loops], Lowered] = {}
        self._results: dict[tuple[bytes, Loops], tuple[Lowered, ...]] = {}
        self._entered: dict[tuple[int, int, Loop], Stream] = {}
        self._variables: list[tuple[LetRec, Loop, tuple[LoopVariable, ...]]] = []
        """By depth: the loops that are being made, and what stands for their variables."""
        self.sharing = Sharing()
        """Set before roots are made."""
        self._arranged: dict[tuple[object, Loops], tuple[Arranged, Loops]] = {}
        """By identity of what is kept, and home of its node: the arrangement, and the loops that it is in."""

    def root(self, node: Node) -> None:
        """Make what an output or an effect needs."""
        if isinstance(node, LetRec):
            self._loop(node)
        else:
            self._lower(node)

    def feeds(self, node: Node, port: int = 0, keys: Sequence[str] | None = None) -> list[Feed]:
        """Feeds of a stage that was written by hand; see `_feeds`."""
        return feeds_of(self._lower(node), port, keys)

    def _lower(self, node: Node) -> Lowered:
        """What computes `node`; without recursion over long chains of operators."""
        waiting = [node]
        while waiting:
            top = waiting[-1]
            # The parts of a loop are made inside it, when it is made itself.
            parts = self._parts(top)
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

    def _parts(self, node: Node) -> Sequence[Node]:
        """What is made before `node`."""
        if isinstance(node, Leave):
            return node.loop.initials
        if isinstance(node, Join):
            sides = (self._kept(node, 0), self._kept(node, 1))
            return [
                child if kept is None else kept.node
                for child, kept in zip(node.children, sides, strict=True)
                if not isinstance(kept, LoopVariable)
            ]
        kept = self.sharing.reduces.get(node.digest)
        return node.children if kept is None else (kept.node,)

    def _kept(self, join: Join, side: int) -> Kept | LoopVariable | None:
        """The arrangement that a side of a join reads, or the variable whose arrangement it reads."""
        reading = read_of(join, side)
        if reading is not None and isinstance(reading.node, Variable):
            loop, _, variables = self._variables[reading.node.depth - 1]
            goes_on = returned(loop, reading.node.index)
            if goes_on is None or not reads_answers(reading, *goes_on):
                return None
            return variables[reading.node.index] if goes_on[0].node.digest in self.sharing.answers else None
        return self.sharing.joins.get((join.digest, side))

    def _found(self, node: Node) -> Lowered | None:
        return self._made.get((node.digest, self._home(node)))

    def _home(self, node: Node) -> Loops:
        """The loops that are being made and that `node` depends on, as far as that tells it apart."""
        depth = max(node.free, default=0)
        return () if depth == 0 else tuple(loop for _, loop, _ in self._variables[:depth])

    def _make(self, node: Node) -> Lowered:
        if isinstance(node, Variable):
            return self._variables[node.depth - 1][2][node.index].lowered
        if not node.children:
            stream, loops = self._leaves[node.digest]
            return Lowered(node.schema, (Term(stream, LinearChain.over(node.schema)),), loops)
        if isinstance(node, Leave):
            return self._loop(node.loop)[node.index]
        if isinstance(node, Concat):
            parts = self._together([self._lower(source) for source in node.sources])
            return replace(parts[0], terms=tuple(term for part in parts for term in part.terms))
        if node.is_linear:
            return self._linear(node)
        return self._stage(node)

    def _linear(self, node: Node) -> Lowered:
        source = self._lower(node.children[0])
        step = self._step(node)
        terms = tuple(Term(term.stream, step(term.chain)) for term in source.terms)
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
        if isinstance(node, Arrange):
            return lambda chain: chain  # who reads the arrangement says so
        if isinstance(node, Apply):
            how, function, schema = node.how, node.function.function, node.columns
            return lambda chain: chain.apply(how, cast("MapFunction", function), schema)
        raise InternalError(f"{node!r} is linear, and nothing is known to do it")

    def _stage(self, node: Node) -> Lowered:
        """A stage for a node with state, or an effect."""
        if isinstance(node, Join):
            return self._join(node)
        if isinstance(node, Grouping):
            return self._grouped(node)
        source = self._lower(node.children[0])
        schema = source.schema
        if isinstance(node, Consolidate):
            return self._consolidate(source)
        if isinstance(node, Inspect):
            function = node.function.function
            detail = f"({schema}) {node.function.digest}"
            feeds = feeds_of(source, 0, None)
            return self._add(
                "inspect",
                lambda: InspectVertex(schema, cast("Look", function)),
                feeds,
                source,
                schema,
                detail,
            )
        if isinstance(node, Export):
            return self._export(node, source)
        assert isinstance(node, Output), node
        self._dataflow.output(node.name, source.terms[0].stream, TableOut(schema), feeds_of(source, 0, None))
        return source

    def _export(self, node: Export, source: Lowered) -> Lowered:
        schema, keys = source.schema.reordered(node.keys), node.keys
        made = self._add(
            node.describe(),
            lambda: ExportVertex(schema, keys),
            feeds_of(source, 0, keys),
            source,
            schema,
            f"({schema})",
        )
        of_input = node.source.name if isinstance(node.source, Input) else ""
        self._dataflow.export(node.name, made.terms[0].stream, of_input)
        kw = schema.picked(keys).width
        kept = Arranged(made.terms[0].stream, kw, schema.width - kw, schema)
        others = tuple(name for name in schema.names if name not in keys)
        self._arranged[self._identity(Kept(node.source, keys, others))] = (kept, source.loops)
        return source

    # Joins, and what is kept for several operators.

    def _join(self, node: Join) -> Lowered:
        """A stage that reads arrangements, or keeps rows itself, on either side."""
        sides = (self._side(node, 0), self._side(node, 1))
        loops = max((side.loops for side in sides), key=len)
        left, right = (side.parts(loops) for side in sides)
        projection = pairs_of(node, sides)
        detail = f"({node.left.schema}) with ({node.right.schema})"
        stream = join_stage(left, right, projection, name=node.describe(), detail=detail)
        return Lowered(node.schema, (Term(stream, LinearChain.over(node.schema)),), loops)

    def _side(self, join: Join, side: int) -> Side:
        keys, kept, reading = join.keys[side], self._kept(join, side), read_of(join, side)
        if isinstance(kept, LoopVariable):
            assert reading is not None and isinstance(reading.node, Variable)
            loop, index = self._variables[reading.node.depth - 1][0], reading.node.index
            goes_on = returned(loop, index)
            assert goes_on is not None
            layout, named = goes_on
            count = self.sharing.returns[loop.digest, index]
            columns = {name: named[column] for name, column in reading.columns.items()}
            first = self._first(kept, layout, named)
            return Side(
                first.loops,
                layout.schema,
                columns,
                lambda loops: self._returning(kept, first, layout, loops, is_shared=count > 1),
            )
        found = None if kept is None else self._arrangement(kept)
        if found is not None and kept is not None and reading is not None:
            arranged, its = found
            return Side(
                its, kept.schema, reading.columns, lambda loops: [self._entered_in(arranged, its, loops)]
            )
        own = self._lower(join.children[side])
        schema = own.schema.reordered(keys)
        return Side(
            own.loops,
            schema,
            {name: name for name in schema.names},
            lambda loops: [self._own_rows(self._within(own, loops), schema, keys)],
        )

    def _own_rows(self, source: Lowered, schema: Schema, keys: Sequence[str]) -> Rows:
        kw = schema.picked(keys).width
        return Rows(tuple(feeds_of(source, 0, keys)), kw, schema.width - kw, schema)

    def _identity(self, kept: Kept) -> tuple[object, Loops]:
        return kept.identity, self._home(kept.node)

    def _arrangement(self, kept: Kept) -> tuple[Arranged, Loops] | None:
        """What keeps this, and the loops that it is in. Answers are kept by what gives them; None if that was
        made before anybody knew that others read them.
        """
        key = self._identity(kept)
        export = self.sharing.exports.get(kept.identity)
        if export is not None:
            self._lower(export)
        answers = answered(kept.node)
        if key not in self._arranged and (answers is None or answers.identity != kept.identity):
            source = narrowed(self._lower(kept.node), kept.schema)
            kw = kept.schema.picked(kept.keys).width
            with at_site(self._sites.get(kept.node.digest, ())):
                made = arrange(
                    feeds_of(source, 0, kept.keys),
                    kw,
                    kept.schema.width - kw,
                    kept.schema,
                    f"arrange by {', '.join(kept.keys)}",
                )
            self._arranged[key] = (made, source.loops)
        return self._arranged.get(key)

    def _entered_in(self, arranged: Arranged, its: Loops, loops: Loops) -> Arranged:
        """The same arrangement, entered into as many of `loops` as it is not in yet."""
        stream = arranged.stream
        for loop in loops[len(its) :]:
            stream = self._enter(stream, loop)
        return replace(arranged, stream=stream)

    def _first(self, variable: LoopVariable, layout: Kept, named: Mapping[str, str]) -> Lowered:
        """What a variable is beside the answers of the iteration before: s, and -s one iteration later."""
        if variable.first is None:
            below = {column: name for name, column in named.items()}
            columns = {column: col(below[column]) for column in layout.schema.names}
            terms = tuple(Term(term.stream, term.chain.select(columns)) for term in variable.start.terms)
            start = replace(variable.start, schema=layout.schema, terms=terms)
            taken = variable.loop.feedback()
            negated = tuple(Term(term.stream, term.chain.negate()) for term in start.terms)
            for feed in feeds_of(replace(start, terms=negated), 0, None):
                taken.connect(feed.stream, feed)
            coming_back = Term(taken.stream, LinearChain.over(layout.schema))
            variable.first = replace(start, terms=(*start.terms, coming_back))
        return variable.first

    def _returning(
        self, variable: LoopVariable, first: Lowered, layout: Kept, loops: Loops, is_shared: bool
    ) -> list[JoinPart]:
        """A variable as a sum: what it begins as, and the answers of the iteration before."""
        kw = layout.schema.picked(layout.keys).width
        vw = layout.schema.width - kw
        if variable.answers is None:
            variable.answers = variable.loop.feedback()
        answers = Arranged(variable.answers.stream, kw, vw, layout.schema)
        back = self._entered_in(answers, first.loops, loops)
        if not is_shared:
            return [self._own_rows(self._within(first, loops), layout.schema, layout.keys), back]
        key = ("first", *layout.identity), first.loops
        if key not in self._arranged:
            name = f"arrange by {', '.join(layout.keys)}"
            feeds = feeds_of(first, 0, layout.keys)
            self._arranged[key] = (arrange(feeds, kw, vw, layout.schema, name), first.loops)
        return [self._entered_in(*self._arranged[key], loops), back]

    # Groups.

    def _grouped(self, node: Grouping) -> Lowered:
        """The stage of a grouping: reading an arrangement, or keeping rows; sharing its answers, or not."""
        arrangement = self.sharing.reduces.get(node.digest)
        source = self._lower(node.source if arrangement is None else arrangement.node)
        stage = stage_of(node, source, arrangement, self._sites)
        answers = answered(node)
        assert answers is not None
        given: Arranged | list[Feed]
        if arrangement is None:
            given = feeds_of(stage.source, 0, answers.keys)
        else:
            found = self._arrangement(arrangement)
            assert found is not None
            given = found[0]
        shares = node.digest in self.sharing.answers
        made = reduce_stage(
            given,
            stage.widths,
            stage.aggregate,
            stage.shown,
            shares=shares,
            name=node.describe(),
            detail=stage.detail,
        )
        if made.answers is not None:
            self._arranged[self._identity(answers)] = (made.answers, source.loops)
        return Lowered(node.schema, (Term(made.rows, LinearChain.over(node.schema)),), source.loops)

    def _consolidate(self, source: Lowered) -> Lowered:
        """Rows go to the worker of their hash, so that equal ones meet."""
        schema = source.schema
        feeds = feeds_of(source, 0, schema.names)
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
        source: Lowered,
        schema: Schema,
        detail: str,
    ) -> Lowered:
        (stream,) = self._dataflow.stage(name, vertex, feeds, detail=detail)
        return Lowered(schema, (Term(stream, LinearChain.over(schema)),), source.loops)

    def _loop(self, node: LetRec) -> tuple[Lowered, ...]:
        """What leaves a loop: one result for each of its variables."""
        key = (node.digest, self._home(node))
        if key not in self._results:
            with at_site(self._sites.get(node.digest, ())):
                self._results[key] = self._make_loop(node)
        return self._results[key]

    def _make_loop(self, node: LetRec) -> tuple[Lowered, ...]:
        outer = self._variables
        around = [variables[0].start.loops for _, _, variables in outer[: node.depth - 1]]
        around += [self._leaves[leaf.digest][1] for leaf in beneath([node]) if leaf.digest in self._leaves]
        initials = self._together([self._lower(initial) for initial in node.initials], around)
        loops = initials[0].loops
        parent = loops[-1].scope if loops else self._dataflow.root
        loop = Loop.inside(self._dataflow, parent, node.name, iterations_max=node.iterations_max)
        entered = [self._within(initial, (*loops, loop)) for initial in initials]
        variables = tuple(LoopVariable(start, loop) for start in entered)
        self._variables = [*outer[: node.depth - 1], (node, loop, variables)]
        try:
            bodies = [self._within(self._lower(body), (*loops, loop)) for body in node.bodies]
            for effect in node.effects:
                self.root(effect)
            for index, (variable, body) in enumerate(zip(variables, bodies, strict=True)):
                if variable.rows is not None:
                    self._close(body, variable.start, variable.rows, is_consolidated(node.bodies[index]))
                if variable.answers is not None:
                    goes_on = returned(node, index)
                    assert goes_on is not None
                    variable.answers.connect(self._arranged[self._identity(goes_on[0])][0].stream)
        finally:
            self._variables = outer
        loop.check_connected()
        return tuple(
            replace(
                body,
                terms=tuple(Term(loop.leave(term.stream), term.chain) for term in body.terms),
                loops=loops,
            )
            for body in bodies
        )

    def _close(self, body: Lowered, start: Lowered, feedback: Feedback, is_clean: bool) -> None:
        """Connect what changed in an iteration to the next."""
        taken = tuple(Term(term.stream, term.chain.negate()) for term in start.terms)
        difference = replace(body, terms=(*body.terms, *taken))
        if not is_clean:
            difference = self._consolidate(difference)
        for feed in feeds_of(difference, 0, None):
            feedback.connect(feed.stream, feed)

    def _together(self, parts: list[Lowered], around: Sequence[Loops] = ()) -> list[Lowered]:
        """All parts in the innermost loop among them, and `around`."""
        innermost = max([*(part.loops for part in parts), *around], key=len)
        return [self._within(part, innermost) for part in parts]

    def _within(self, part: Lowered, loops: Loops) -> Lowered:
        """`part`, entered into as many of `loops` as it is not in yet."""
        assert part.loops == loops[: len(part.loops)], "it is of this place or of one around it"
        for loop in loops[len(part.loops) :]:
            terms = tuple(Term(self._enter(term.stream, loop), term.chain) for term in part.terms)
            part = replace(part, terms=terms, loops=(*part.loops, loop))
        return part

    def _enter(self, stream: Stream, loop: Loop) -> Stream:
        key = (stream.stage_index, stream.output, loop)
        if key not in self._entered:
            self._entered[key] = loop.enter(stream)
        return self._entered[key]
