"""From loops of a plan to stages: collections enter, variables come back, results leave.

Inside a loop times have one more counter, i. A variable x is its initial collection at i = 0, and the body's
result of iteration i at i + 1:

    x = s + feedback(body(x) - s)        s: the initial collection, entered at i = 0

so that x at (t, 0) is s, and x at (t, i + 1) is body(x) at (t, i). Once an iteration changes nothing, nothing
circulates. The sum over all iterations, which leaves the loop, is the fixed point. Circulating rows must be
consolidated: updates that cancel would go round for ever.

A node is computed once, in the innermost loop that it depends on. A loop further inside that uses it lets it
enter, which costs nothing at run time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from timely.building.dataflow import Dataflow
from timely.building.loop import Feedback, Loop
from timely.building.stream import Feed, Stream
from timely.operators.vertex import Vertex
from timely.user_code.call_site import at_site

from ...columns.schema import Schema
from ...compiled_loops.making import compile_loop
from ...expressions.expression import col
from ...linear.chain import LinearChain
from ...operators.arrange import Arranged, JoinPart, Rows, arrange
from ...operators.consolidate import ConsolidateMachine
from ...operators.loops.last_iterations import last_iterations
from ...operators.loops.priority import PriorityVertex
from ...operators.passing import RowsEndVertex
from ...operators.vertices import MachineVertex, show_schema
from ...skew.running.stages import SpreadStreams
from ..facts import goes_straight, is_consolidated
from ..nodes import AssertEmpty, ByPriority, LetRec, Node
from ..rewriting import beneath
from ..rules.sharing import SharedArrangement, Sharing, returned_answers
from .terms import Leaves, Loops, LoopVariable, Lowered, Sites, Term, feeds_of, narrowed

__all__ = ["LoopLowering"]


class LoopLowering:
    """Makes loops of one dataflow; `Lowering` makes the nodes in them."""

    def __init__(self, dataflow: Dataflow, leaves: Leaves, sites: Sites) -> None:
        self._dataflow = dataflow
        self._leaves = leaves
        self._sites = sites
        self._results: dict[tuple[bytes, Loops], tuple[Lowered, ...]] = {}
        self._entered: dict[tuple[int, int, Loop], Stream] = {}
        self._variables: list[tuple[LetRec, Loop, tuple[LoopVariable, ...]]] = []
        """By depth: the loops under construction, and what stands for their variables."""
        self.sharing = Sharing()
        """The shared arrangements; set before roots are made."""
        self.read: frozenset[bytes] = frozenset()
        """Digests of the nodes that outputs rest on; set before roots are made."""
        self.failing: list[tuple[Stream, dict[str, str]]] = []
        """Failures that operators find themselves; and, by text of what fails, where it was written."""
        self.claims: list[int] = []
        """The stages of claims that no output rests on: they are claims of the whole dataflow."""
        self.into_streams: list[tuple[Stream, Loops]] = []
        """By number of an `IntoStream`: the stage that gets its rows, and the loops that it is in."""
        self._spread: dict[bytes, SpreadStreams] = {}
        """By digest of a join that is spread over units: the streams of its stages."""
        self._arranged: dict[tuple[object, Loops], tuple[Arranged, Loops]] = {}
        """By identity of an arrangement, and home of its node: the arrangement, and the loops
        that it is in.
        """

    def root(self, node: Node) -> None:
        """Make what an output or an effect needs."""
        if isinstance(node, LetRec):
            self._loop(node)
            return
        lowered = self._lower(node)
        if isinstance(node, AssertEmpty) and node.digest not in self.read:
            words = lowered.schema.width
            self._dataflow.stage(
                "claim",
                lambda: RowsEndVertex(words),
                feeds_of(lowered, 0, None),
                outputs=0,
                detail=node.what,
            )
            self.claims.append(self._dataflow.stages[-1].index)

    def _lower(self, node: Node) -> Lowered:
        """Return the lowered form of `node`."""
        raise NotImplementedError

    def _loop(self, node: LetRec) -> tuple[Lowered, ...]:
        """Return the results that leave a loop, one for each of its variables."""
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
        loop = Loop.inside(
            self._dataflow,
            parent,
            node.name,
            iterations_max=node.iterations_max,
            stops=node.stops,
            compile=compile_loop,
        )
        entered = [self._within(initial, (*loops, loop)) for initial in initials]
        variables = tuple(LoopVariable(start, loop) for start in entered)
        if node.stops and goes_straight(node):
            for variable in variables:
                self._guard(variable)
        self._variables = [*outer[: node.depth - 1], (node, loop, variables)]
        try:
            bodies = [self._within(self._lower(body), (*loops, loop)) for body in node.bodies]
            for effect in node.effects:
                self.root(effect)
            for index, (variable, body) in enumerate(zip(variables, bodies, strict=True)):
                if variable.rows is not None:
                    self._close(body, variable.start, variable.rows, is_consolidated(node.bodies[index]))
                if variable.answers is not None:
                    goes_on = returned_answers(node, index)
                    assert goes_on is not None
                    answers = self._arranged[self._identity(goes_on[0])][0].stream
                    describe = last_iterations(goes_on[0].schema)
                    variable.answers.connect(answers, replace(answers.feed(), describe=describe))
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

    def _guard(self, variable: LoopVariable) -> None:
        """Let a variable of a loop that stops come back through a stage.

        The feedback drops rows that are too late, by their counter. On a way that leaves the loop at once
        there would be no counter left to check.
        """
        variable.rows = variable.loop.feedback()
        back = Term(variable.rows.stream, LinearChain.over(variable.start.schema))
        variable.back = self._consolidate(replace(variable.start, terms=(back,))).terms

    def _close(self, body: Lowered, start: Lowered, feedback: Feedback, is_clean: bool) -> None:
        """Connect the changes of one iteration to the next one."""
        taken = tuple(Term(term.stream, term.chain.negate()) for term in start.terms)
        difference = replace(body, terms=(*body.terms, *taken))
        if not is_clean:
            difference = self._consolidate(difference)
        describe = last_iterations(body.schema)
        for feed in feeds_of(difference, 0, None):
            feedback.connect(feed.stream, replace(feed, describe=describe))

    def _by_priority(self, node: ByPriority) -> Lowered:
        """Add a stage in the loop; its rows come with their priority in front."""
        loops = self._variables[node.depth - 1][2][0].start.loops
        source = self._within(self._lower(node.source), loops)
        name = "priority"
        while name in node.schema:
            name += "_"
        columns = {name: node.priority, **{other: col(other) for other in node.schema.names}}
        terms = tuple(
            Term(term.stream, term.chain.select(columns).standing_for(node.digest, term.chain))
            for term in source.terms
        )
        widened = replace(source, terms=terms)
        feeds = feeds_of(widened, 0, None)
        return self._add(
            node.describe(),
            lambda: PriorityVertex(node.schema.width),
            feeds,
            widened,
            node.schema,
            f"({node.schema})",
        )

    def _home(self, node: Node) -> Loops:
        """Return the loops under construction down to the deepest one that `node` depends on."""
        depth = max(node.free, default=0)
        return () if depth == 0 else tuple(loop for _, loop, _ in self._variables[:depth])

    def _identity(self, arrangement: SharedArrangement) -> tuple[object, Loops]:
        return arrangement.identity, self._home(arrangement.node)

    def _together(self, parts: list[Lowered], around: Sequence[Loops] = ()) -> list[Lowered]:
        """Return all parts within the innermost loop among theirs and `around`."""
        innermost = max([*(part.loops for part in parts), *around], key=len)
        return [self._within(part, innermost) for part in parts]

    def _within(self, part: Lowered, loops: Loops) -> Lowered:
        """Return `part`, entered into those of `loops` that it is not in yet."""
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

    def _entered_in(self, arranged: Arranged, its: Loops, loops: Loops) -> Arranged:
        """Return the arrangement, entered into those of `loops` that it is not in yet."""
        stream = arranged.stream
        for loop in loops[len(its) :]:
            stream = self._enter(stream, loop)
        return replace(arranged, stream=stream)

    def _first(self, variable: LoopVariable, layout: SharedArrangement, named: Mapping[str, str]) -> Lowered:
        """Return a variable without the answers of the iteration before: s, and -s one iteration later."""
        if variable.first is None and not variable.start.terms:
            variable.first = replace(variable.start, schema=layout.schema)
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
        self, variable: LoopVariable, first: Lowered, layout: SharedArrangement, loops: Loops, is_shared: bool
    ) -> list[JoinPart]:
        """Return a variable as a sum: its initial collection, and the answers of the iteration before."""
        kw = layout.schema.picked(layout.keys).width
        vw = layout.schema.width - kw
        if variable.answers is None:
            variable.answers = variable.loop.feedback()
        answers = Arranged(variable.answers.stream, kw, vw, layout.schema)
        back = self._entered_in(answers, first.loops, loops)
        if not first.terms:
            return [back]
        if not is_shared:
            return [self._own_rows(self._within(first, loops), layout.schema, layout.keys), back]
        key = ("first", *layout.identity), first.loops
        if key not in self._arranged:
            name = f"arrange by {', '.join(layout.keys)}"
            feeds = feeds_of(first, 0, layout.keys)
            self._arranged[key] = (arrange(feeds, kw, vw, layout.schema, name), first.loops)
        return [self._entered_in(*self._arranged[key], loops), back]

    def _own_rows(self, source: Lowered, schema: Schema, keys: Sequence[str]) -> Rows:
        kw = schema.picked(keys).width
        return Rows(tuple(feeds_of(source, 0, keys)), kw, schema.width - kw, schema)

    def _consolidate(self, source: Lowered, keys: Sequence[str] | None = None) -> Lowered:
        """Sum equal rows, on the worker of their hash; or of their `keys`, if rows are there already.

        Any columns would do: equal rows have equal keys.
        """
        schema = source.schema if keys is None else source.schema.reordered(keys)
        feeds = feeds_of(source, 0, schema.names if keys is None else keys)

        def make(vertex: MachineVertex) -> ConsolidateMachine:
            machine = ConsolidateMachine(schema.width, vertex.code.guards)
            machine.show_rows(show_schema(schema))
            return machine

        consolidated = self._add(
            "consolidate",
            lambda: MachineVertex(make),
            feeds,
            source,
            schema,
            f"({schema})",
        )
        return narrowed(consolidated, source.schema)

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
