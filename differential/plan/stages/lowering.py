"""From a plan to stages: choose the machine that computes each node, and the way of rows to it.

A linear node costs no stage. A lowered collection consists of *terms*, each a stream and the chain of linear
operators between it and the collection; the chain runs on the connectors to whatever needs the result. So a
sum is several feeds of one port, at no cost.

`loops.py` makes loops, and decides in which of them a node is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import cast

from timely.building.dataflow import Dataflow
from timely.building.stream import Feed, Stream
from timely.errors import InternalError
from timely.user_code.call_site import UNKNOWN_SITE, at_site

from ...columns.routes import EveryWorkerRoute
from ...linear.chain import LinearChain
from ...linear.failures.guarding import record_text
from ...linear.user_functions import MapFunction
from ...operators.arrange import Arranged, Rows, arrange, join_stage
from ...operators.between.exports import ExportVertex
from ...operators.passing import DelayVertex, InspectVertex, Look
from ...operators.reduce_stage import reduce_stage
from ...operators.table_io import TableConstant, TableOut
from ..facts import group_keys, small_side
from ..nodes import (
    Answered,
    Apply,
    Arrange,
    AssertEmpty,
    Bounded,
    ByHand,
    ByPriority,
    Concat,
    Consolidate,
    ConstantRows,
    Delay,
    Empty,
    Export,
    Filter,
    Guarded,
    HalfJoin,
    Input,
    Inspect,
    IntoStream,
    Join,
    JoinAll,
    LeaveLoop,
    Negate,
    Node,
    NotNull,
    OneRow,
    Output,
    PlaceOnUnits,
    Provided,
    Select,
    Slide,
    Spread,
    SpreadLoads,
    Steered,
    Variable,
    Weigh,
)
from ..rewriting import beneath
from ..rules.sharing import SharedArrangement, answers_of, read_of, reads_answers, returned_answers
from ..sketching import Sketch
from .groups import Grouping, stage_of
from .meeting import meeting_keys
from .patterns import PatternLowering
from .terms import (
    Leaves,
    Loops,
    LoopVariable,
    Lowered,
    Side,
    Sites,
    Term,
    feeds_of,
    flags_of,
    narrowed,
    pairs_of,
)
from .timed import InputStage, content_of, input_stage, timed_stage

__all__ = ["Lowering"]


class Lowering(PatternLowering):
    """Makes stages of one dataflow for nodes of one plan; each node once for each loop that it is in."""

    def __init__(self, dataflow: Dataflow, leaves: Leaves, sites: Sites) -> None:
        super().__init__(dataflow, leaves, sites)
        self._lowered: dict[tuple[bytes, Loops], Lowered] = {}
        self._sketched: dict[tuple[int, int, tuple[bytes, ...], Loops], list[Stream]] = {}
        """By sketch, stage, digests of the collections that it reads, and loops: the outputs of the stage."""

    def feeds(self, node: Node, port: int = 0, keys: Sequence[str] | None = None) -> list[Feed]:
        """Return feeds of a stage that was written by hand; see `feeds_of`."""
        return feeds_of(self._lower(node), port, keys)

    def _lower(self, node: Node) -> Lowered:
        """Return the lowered form of `node`; without recursion over long chains of operators."""
        waiting = [node]
        while waiting:
            top = waiting[-1]
            # The parts of a loop are made inside it, when the loop itself is made.
            parts = self._parts(top)
            missing = [part for part in parts if self._existing(part) is None]
            if missing:
                waiting.extend(reversed(missing))
                continue
            waiting.pop()
            if self._existing(top) is None:
                with at_site(self._sites.get(top.digest, ())):
                    self._lowered[top.digest, self._home(top)] = self._make(top)
        lowered = self._existing(node)
        assert lowered is not None
        return lowered

    def _parts(self, node: Node) -> Sequence[Node]:
        """Return the nodes that must be lowered before `node`."""
        if isinstance(node, LeaveLoop):
            return node.loop.initials
        if isinstance(node, Join):
            sides = (self._shared_side(node, 0), self._shared_side(node, 1))
            return [
                child if arrangement is None else arrangement.node
                for child, arrangement in zip(node.children, sides, strict=True)
                if not isinstance(arrangement, LoopVariable)
            ]
        arrangement = self.sharing.reduces.get(node.digest)
        return node.children if arrangement is None else (arrangement.node,)

    def _shared_side(self, join: Join, side: int) -> SharedArrangement | LoopVariable | None:
        """Return the arrangement that a side of a join reads, or the variable whose answers it reads."""
        reading = read_of(join, side)
        if reading is not None and isinstance(reading.node, Variable):
            loop, _, variables = self._variables[reading.node.depth - 1]
            goes_on = returned_answers(loop, reading.node.index)
            if goes_on is None or not reads_answers(reading, *goes_on):
                return None
            return variables[reading.node.index] if goes_on[0].node.digest in self.sharing.answers else None
        return self.sharing.joins.get((join.digest, side))

    def _existing(self, node: Node) -> Lowered | None:
        return self._lowered.get((node.digest, self._home(node)))

    def _make(self, node: Node) -> Lowered:
        if isinstance(node, Variable):
            return self._variables[node.depth - 1][2][node.index].lowered
        if isinstance(node, Empty):
            return Lowered(node.schema, (), ())
        if isinstance(node, OneRow):
            stream = self._dataflow.constant(node.describe(), TableConstant(node.schema, [(1,)]))
            return Lowered(node.schema, (Term(stream, LinearChain.over(node.schema)),), ())
        if isinstance(node, ConstantRows):
            codec = TableConstant(node.schema, node.table, node.digest.hex())
            stream = self._dataflow.constant(node.describe(), codec)
            return Lowered(node.schema, (Term(stream, LinearChain.over(node.schema)),), ())
        if not node.children:
            stream, loops = self._leaves[node.digest]
            special = input_stage(node) if isinstance(node, Input) else None
            if special is not None:
                return self._input(node, stream, special)
            return Lowered(node.schema, (Term(stream, LinearChain.over(node.schema)),), loops)
        if isinstance(node, ByHand):
            return self._by_hand(node)
        if isinstance(node, LeaveLoop):
            return self._loop(node.loop)[node.index]
        if isinstance(node, Concat):
            parts = self._together([self._lower(source) for source in node.sources])
            return replace(parts[0], terms=tuple(term for part in parts for term in part.terms))
        if isinstance(node, Provided):
            rows, claim = self._together([self._lower(child) for child in node.children])
            nothing = tuple(Term(term.stream, term.chain.nothing(rows.schema)) for term in claim.terms)
            return replace(rows, terms=(*rows.terms, *nothing))
        if node.is_linear:
            return self._linear(node)
        return self._stage(node)

    def _input(self, node: Node, stream: Stream, special: InputStage) -> Lowered:
        """Add the stage of an input that does not take its clients' rows as they are; it gives keys first."""
        sent = Lowered(special.columns, (Term(stream, LinearChain.over(special.columns)),), ())
        feeds, gives = feeds_of(sent, 0, special.keys), special.gives
        lowered = self._add(node.describe(), special.vertex, feeds, sent, gives, f"({node.schema})")
        return narrowed(lowered, node.schema)

    def _linear(self, node: Node) -> Lowered:
        source = self._lower(node.children[0])
        step = self._step(node)
        terms = tuple(
            Term(term.stream, step(term.chain).standing_for(node.digest, term.chain)) for term in source.terms
        )
        return replace(source, schema=node.schema, terms=terms)

    def _step(self, node: Node) -> Callable[[LinearChain], LinearChain]:
        if isinstance(node, Select):
            columns = dict(node.columns)
            return lambda chain: chain.select(columns)
        if isinstance(node, Filter):
            condition = node.condition
            return lambda chain: chain.filter(condition)
        if isinstance(node, NotNull):
            declared = node.names
            return lambda chain: chain.not_null(declared)
        if isinstance(node, Negate):
            return lambda chain: chain.negate()
        if isinstance(node, AssertEmpty):
            what = node.what
            return lambda chain: chain.claim(what)
        if isinstance(node, Weigh):
            by = node.by
            return lambda chain: chain.weigh(by)
        if isinstance(node, PlaceOnUnits):
            keys, places, text = node.keys, node.balance.places(node.side, node.purpose), node.describe()
            return lambda chain: chain.place(keys, places, text)
        if isinstance(node, Slide):
            time, lengths, names = node.time, node.lengths, node.names
            return lambda chain: chain.slide(time, lengths, names)
        if isinstance(node, Arrange):
            return lambda chain: chain  # the readers of the arrangement name it
        if isinstance(node, Guarded):
            return self._guarded(node)
        if isinstance(node, Answered):
            site = (self._sites.get(node.digest) or [UNKNOWN_SITE])[0]
            text, answer_columns = node.text, node.schema
            return lambda chain: chain.answered(answer_columns, text, site)
        if isinstance(node, Apply):
            how, function, schema = node.how, node.function.function, node.columns
            return lambda chain: chain.apply(how, cast("MapFunction", function), schema)
        raise InternalError(f"{node!r} is linear, and no step of a chain computes it")

    def _guarded(self, node: Guarded) -> Callable[[LinearChain], LinearChain]:
        inner = LinearChain.over(node.source.schema)
        for step in node.steps:
            inner = self._step(step)(inner)
        return lambda chain: chain.guarded(inner, node.part, node.stage, node.schema)

    def _stage(self, node: Node) -> Lowered:
        """Make the stage of a node with state, or of an effect."""
        if isinstance(node, Join):
            return self._join(node)
        if isinstance(node, JoinAll):
            return self._join_all(node)
        if isinstance(node, HalfJoin):
            return self._half_join(node)
        if isinstance(node, Spread | SpreadLoads):
            return self._in_units(node)
        if isinstance(node, Bounded):
            return self._bounded(node)
        if isinstance(node, Steered):
            return self._steered(node)
        if isinstance(node, Grouping):
            return self._grouped(node)
        if isinstance(node, ByPriority):
            return self._by_priority(node)
        source = self._lower(node.children[0])
        schema = source.schema
        timed = timed_stage(node, schema)
        if timed is not None:
            feeds = feeds_of(source, 0, timed.keys)
            return self._add(node.describe(), timed.vertex, feeds, source, node.schema, f"({schema})")
        if isinstance(node, Consolidate):
            return self._consolidate(source, group_keys(node.source))
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
        if isinstance(node, Delay):
            return self._delay(node, source)
        if isinstance(node, Export):
            return self._export(node, source)
        if isinstance(node, IntoStream):
            return self._into_stream(node, source)
        assert isinstance(node, Output), node
        feeds = feeds_of(source, 0, meeting_keys(node.source))
        # Loads count what was done, and a restart does less.
        is_repeatable = not any(isinstance(each, SpreadLoads) for each in beneath([node]))
        codec = TableOut(schema, is_repeatable)
        self._dataflow.output(
            node.name,
            source.terms[0].stream,
            codec,
            feeds,
            strict=node.is_strict,
            stored=node.is_stored,
        )
        return source

    def _delay(self, node: Delay, source: Lowered) -> Lowered:
        by = node.epochs
        user_function = None if node.function is None else node.function.function
        function = (
            (lambda epoch: epoch + by)
            if user_function is None
            else cast("Callable[[int], object]", user_function)
        )
        name = f"{node.describe()} ({self._sites[node.digest][0]})"
        detail = f"{by}" if node.function is None else node.function.digest
        feeds = feeds_of(source, 0, None)
        return self._add("delay", lambda: DelayVertex(function, name), feeds, source, source.schema, detail)

    def _by_hand(self, node: ByHand) -> Lowered:
        """Make the stages of a sketch that `node` rests on, those of them that are not there yet."""
        sketch = node.sketch
        assert isinstance(sketch, Sketch), sketch
        sources = self._together([self._lower(child) for child in node.children])
        loops = sources[0].loops
        by_place = dict(zip(sketch.sources_of(node.stage), sources, strict=True))
        digests = dict(zip(by_place, [child.digest for child in node.children], strict=True))

        def stage_of(at: int) -> list[Stream]:
            beneath_it = tuple(digests[source] for source in sketch.sources_of(at))
            key = (sketch.serial, at, beneath_it, loops)
            if key not in self._sketched:
                stage = sketch.stages[at]
                feeds = (
                    self._feeds_or_none(by_place[at], loops)
                    if stage.source is not None
                    else [
                        replace(feed, stream=stage_of(feed.stream.stage_index)[feed.stream.output])
                        for feed in stage.feeds
                    ]
                )
                with at_site((stage.site,)):
                    self._sketched[key] = self._dataflow.stage(
                        stage.name, stage.vertex, feeds, outputs=stage.outputs, detail=stage.detail
                    )
            return self._sketched[key]

        streams = stage_of(node.stage)
        chain = LinearChain.over(node.schema)
        return Lowered(node.schema, (Term(streams[node.output], chain),) if node.output >= 0 else (), loops)

    def _feeds_or_none(self, source: Lowered, loops: Loops) -> list[Feed]:
        """Return feeds of a stage by hand; of a constant without rows, if the collection has no streams."""
        feeds = feeds_of(self._within(source, loops), 0, None)
        if feeds:
            return feeds
        nothing = self._dataflow.constant("no rows", TableConstant(source.schema, []))
        empty = Lowered(source.schema, (Term(nothing, LinearChain.over(source.schema)),), ())
        return feeds_of(self._within(empty, loops), 0, None)

    def _into_stream(self, node: IntoStream, source: Lowered) -> Lowered:
        stage, loops = self.into_streams[node.serial]
        for feed in self._feeds_or_none(source, loops):
            self._dataflow.add_feed(stage.stage_index, feed)
        return source

    def _export(self, node: Export, source: Lowered) -> Lowered:
        schema, keys = source.schema.reordered(node.keys), node.keys
        lowered = self._add(
            node.describe(),
            lambda: ExportVertex(schema, keys),
            feeds_of(source, 0, keys),
            source,
            schema,
            f"({schema})",
        )
        columns = node.source.schema.to_arrow()
        self._dataflow.export(node.name, lowered.terms[0].stream, content_of(node.source), columns)
        kw = schema.picked(keys).width
        arranged = Arranged(lowered.terms[0].stream, kw, schema.width - kw, schema)
        others = tuple(name for name in schema.names if name not in keys)
        self._arranged[self._identity(SharedArrangement(node.source, keys, others))] = (
            arranged,
            source.loops,
        )
        return source

    # Joins, and shared arrangements.

    def _join(self, node: Join) -> Lowered:
        """Make a stage that reads an arrangement, or stores rows itself, on either side."""
        sides = self._sent_sides(node) or (self._side(node, 0), self._side(node, 1))
        loops = max((side.loops for side in sides), key=len)
        left, right = (side.parts(loops) for side in sides)
        projection = pairs_of(node, sides)
        flags = () if node.null_safe else flags_of(node.left.schema.picked(node.keys[0]))
        detail = f"({node.left.schema}) with ({node.right.schema})"
        stream = join_stage(left, right, projection, flags=flags, name=node.describe(), detail=detail)
        return Lowered(node.schema, (Term(stream, LinearChain.over(node.schema)),), loops)

    def _side(self, join: Join, side: int) -> Side:
        keys, shared, reading = join.keys[side], self._shared_side(join, side), read_of(join, side)
        if isinstance(shared, LoopVariable):
            assert reading is not None and isinstance(reading.node, Variable)
            loop, index = self._variables[reading.node.depth - 1][0], reading.node.index
            goes_on = returned_answers(loop, index)
            assert goes_on is not None
            layout, named = goes_on
            count = self.sharing.returns[loop.digest, index]
            columns = {name: named[column] for name, column in reading.columns.items()}
            first = self._first(shared, layout, named)
            return Side(
                first.loops,
                layout.schema,
                columns,
                lambda loops: self._returning(shared, first, layout, loops, is_shared=count > 1),
            )
        existing = None if shared is None else self._arrangement(shared)
        if existing is not None and shared is not None and reading is not None:
            arranged, its = existing
            return Side(
                its, shared.schema, reading.columns, lambda loops: [self._entered_in(arranged, its, loops)]
            )
        own = self._lower(join.children[side])
        schema = own.schema.reordered(keys)
        return Side(
            own.loops,
            schema,
            {name: name for name in schema.names},
            lambda loops: [self._own_rows(self._within(own, loops), schema, keys)],
        )

    def _sent_sides(self, join: Join) -> tuple[Side, Side] | None:
        """Return the sides of a join without keys, if one of them has few rows. Those rows go to all workers;
        the rows of the other side are divided among the workers. None for any other join.
        """
        small = small_side(join)
        if small is None:
            return None
        lowered = [self._lower(child) for child in join.children]
        if any(own.loops for own in lowered):
            return None
        stays = group_keys(join.children[1 - small]) is not None
        left, right = (self._sent(own, side == small, stays=stays) for side, own in enumerate(lowered))
        return left, right

    def _sent(self, own: Lowered, is_small: bool, *, stays: bool) -> Side:
        """Return a side whose rows go to all workers, or are divided among these, if they are not already."""
        schema, feeds = own.schema, feeds_of(own, 0, None if is_small or stays else own.schema.names)
        if is_small:
            feeds = [replace(feed, route=EveryWorkerRoute(schema.width)) for feed in feeds]
        rows = Rows(tuple(feeds), 0, schema.width, schema)
        return Side((), schema, {name: name for name in schema.names}, lambda loops: [rows])

    def _arrangement(self, shared: SharedArrangement) -> tuple[Arranged, Loops] | None:
        """Return a shared arrangement, and the loops that it is in.

        Answers are stored by the operator that gives them. None if it was made before others were known to
        read them.
        """
        key = self._identity(shared)
        export = self.sharing.exports.get(shared.identity)
        if export is not None:
            self._lower(export)
        answers = answers_of(shared.node)
        if key not in self._arranged and (answers is None or answers.identity != shared.identity):
            self._arranged[key] = self._arrange(shared)
        return self._arranged.get(key)

    def _arrange(self, shared: SharedArrangement) -> tuple[Arranged, Loops]:
        source = narrowed(self._lower(shared.node), shared.schema)
        kw, name = shared.schema.picked(shared.keys).width, f"arrange by {', '.join(shared.keys)}"
        with at_site(self._sites.get(shared.node.digest, ())):
            arranged = arrange(
                feeds_of(source, 0, shared.keys), kw, shared.schema.width - kw, shared.schema, name
            )
        return arranged, source.loops

    # Groups.

    def _grouped(self, node: Grouping) -> Lowered:
        """Make the stage of a grouping; it may read a shared arrangement, and may share its own answers."""
        arrangement = self.sharing.reduces.get(node.digest)
        parts = node.children if arrangement is None else (arrangement.node,)
        sources = self._together([self._lower(part) for part in parts])
        stage = stage_of(node, sources, arrangement, self._sites)
        answers = answers_of(node)
        assert answers is not None, f"`answers_of` does not know {node}, which is a grouping"
        rows: Arranged | list[Feed]
        if arrangement is None:
            rows = feeds_of(stage.source, 0, answers.keys)
        else:
            existing = self._arrangement(arrangement)
            assert existing is not None
            rows = existing[0]
        shares = node.digest in self.sharing.answers
        outputs = reduce_stage(
            rows,
            stage.widths,
            stage.aggregate,
            stage.shown,
            shares=shares,
            name=node.describe(),
            detail=stage.detail,
        )
        if outputs.failures is not None:
            site = str((self._sites.get(node.digest) or [UNKNOWN_SITE])[0])
            self.failing.append((outputs.failures, dict.fromkeys(map(record_text, stage.shown.names), site)))
        if outputs.answers is not None:
            self._arranged[self._identity(answers)] = (outputs.answers, stage.source.loops)
        return Lowered(node.schema, (Term(outputs.rows, LinearChain.over(node.schema)),), stage.source.loops)
