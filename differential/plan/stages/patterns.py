"""From a join of many to stages: a way for the changes of each part, and arrangements of the parts.

Rows on a way have the columns that are bound so far. In a loop their times advance as they meet other rows,
so there they have one more column with the time at which their way began. At the root of a dataflow these
times are equal. If the fewest candidates decide, rows visit all parts that could propose, note which of them
has the fewest, and are sent to that one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from timely.building.stream import Feed

from ...columns.column_types import integer
from ...columns.routes import EveryWorkerRoute
from ...columns.schema import Column, Schema
from ...expressions.expression import Expr, col, lit
from ...kernels.history.match import FROM_DELTA, FROM_TRACE
from ...linear.chain import LinearChain
from ...linear.transform import LinearTransform
from ...operators.arrange import Arranged
from ...operators.arrangement import read_arrangement
from ...operators.patterns.bounded import BoundedJoinVertex
from ...operators.patterns.fewest import FewestMachine
from ...operators.patterns.half_join import HalfJoinMachine
from ...operators.patterns.lookups import ARRANGED, ROWS, Lookup, LookupMachine
from ...operators.vertices import MachineVertex, show_schema
from ...skew.running.stages import UnitsJoin
from ...skew.running.steering import SteeringVertex
from ...skew.running.units import Shape
from ...trace.readers import Reader
from ..facts import group_keys
from ..nodes import Bounded, HalfJoin, JoinAll, Spread, SpreadLoads, Steered
from ..rules.patterns import JoinLookup, JoinPosition, LookupStep, positions_of, way
from ..rules.sharing import SharedArrangement, half_join_arrangement
from .loops import LoopLowering
from .terms import Loops, Lowered, Term, feeds_of, flags_of, narrowed, route_by

__all__ = ["PatternLowering"]


_MakeMachine = Callable[[Reader, int, int], LookupMachine]
"""Make a machine from a reader, the guards of the scope, and the position of the epoch."""


@dataclass(frozen=True)
class _Way:
    """What all steps of a way share: the part whose changes take it, and names of additional columns.

    origin   column of the time at which the way began; empty if the time of the row itself is that time
    noted    columns of the fewest rows, and of the part that has them
    """

    node: JoinAll
    first: int
    positions: dict[tuple[int, frozenset[str]], JoinPosition]
    origin: str
    noted: tuple[str, str]

    def position(self, look: JoinLookup) -> JoinPosition:
        """Return how a step looks up its part."""
        return self.positions[look.part, frozenset(look.by)]

    def lookup(self, columns: Schema, look: JoinLookup) -> Lookup:
        """Return how rows with these columns, those of the lookup first, look up the part."""
        lookup_columns = columns.picked(self.position(look).lookup_names)
        return Lookup(
            words=lookup_columns.width,
            origin=columns.offset(self.origin) if self.origin in columns else None,
            strictly=look.part > self.first,
            flags=flags_of(lookup_columns),
        )


class PatternLowering(LoopLowering):
    """Makes stages for joins of many, and for those that are spread over units."""

    def _arrangement(self, shared: SharedArrangement) -> tuple[Arranged, Loops] | None:
        """Return a shared arrangement, and its loops; None if its operator does not share it."""
        raise NotImplementedError

    def _arrange(self, shared: SharedArrangement) -> tuple[Arranged, Loops]:
        """Make a new stage that stores an arrangement."""
        raise NotImplementedError

    def _join_all(self, node: JoinAll) -> Lowered:
        """Return the sum of all ways."""
        parts = self._together([self._lower(part) for part in node.parts])
        loops = parts[0].loops
        names = [part.schema.names for part in node.parts]
        origin = _unused("origin", node.schema) if loops else ""
        noted = (_unused("fewest", node.schema), _unused("proposed by", node.schema))
        terms: list[Term] = []
        for first, rows in enumerate(parts):
            course = _Way(node, first, positions_of(node), origin, noted)
            steps = way(names, first, fewest=node.fewest)
            current = rows
            for step, then in zip(steps, [*(after[0] for after in steps[1:]), None], strict=True):
                if len(step) == 1:
                    current = self._look_up(current, course, step[0], then)
                else:
                    current = self._propose(current, course, step, then)
            terms += current.terms
        return Lowered(node.schema, tuple(terms), loops)

    def _half_join(self, node: HalfJoin) -> Lowered:
        """Make the stage at which the rows of one side look up the other side."""
        probing = node.probing
        arrangement, columns = half_join_arrangement(node, 1 - probing)
        rows = self._together([self._lower(part) for part in node.children])[probing]
        keys = node.keys[probing]
        probing_columns = node.children[probing].schema.reordered(keys)
        flags = () if node.null_safe else flags_of(probing_columns.picked(keys))
        lookup = Lookup(probing_columns.picked(keys).width, None, probing == 1, flags)
        projection: list[tuple[int, int]] = []
        for column in node.schema:
            side = 0 if column.name in node.left.schema else 1
            if side == probing:
                source, words = FROM_DELTA, probing_columns.words_of(column.name)
            else:
                source, words = FROM_TRACE, arrangement.schema.words_of(columns[column.name])
            projection += [(source, word) for word in words[len(words) - column.words :]]

        def make(reader: Reader, guards: int, epoch: int) -> HalfJoinMachine:
            return HalfJoinMachine(lookup, reader, projection, guards, epoch)

        position = JoinPosition(arrangement, keys, len(keys), columns)
        return self._stage_of("look up", make, rows, position, node.schema, f"{lookup} {projection}")

    def _in_units(self, node: Spread | SpreadLoads) -> Lowered:
        """Return the pairs of a spread join, or its loads; its stages are made once."""
        join = node if isinstance(node, Spread) else node.source
        assert isinstance(join, Spread), join
        if join.digest not in self._spread:
            left, right, announcements = (self._lower(child) for child in join.children)
            keys = tuple(pair[0] for pair in join.on), tuple(pair[1] for pair in join.on)
            schemas = left.schema.reordered(keys[0]), right.schema.reordered(keys[1])
            units_join = UnitsJoin(
                join.plain.describe(), schemas, _shape(join, schemas, keys), join.balance.placement, join.lead
            )
            sides = _keyed(left, keys[0]), _keyed(right, keys[1])
            self._spread[join.digest] = units_join.stages(sides, feeds_of(announcements, 0, None))
        pairs, loads = self._spread[join.digest]
        stream = pairs if isinstance(node, Spread) else loads
        return Lowered(node.schema, (Term(stream, LinearChain.over(node.schema)),), ())

    def _steered(self, node: Steered) -> Lowered:
        """Make the stage that makes announcements; all counts come to one worker."""
        source, placement = self._lower(node.source), node.balance.placement
        (stream,) = self._dataflow.stage(
            node.describe(),
            lambda: SteeringVertex(placement),
            feeds_of(source, 0, ()),
            detail=f"({source.schema}) {node.balance.describe()}",
        )
        return Lowered(node.schema, (Term(stream, LinearChain.over(node.schema)),), source.loops)

    def _bounded(self, node: Bounded) -> Lowered:
        """Make the stage that keeps rows in the order of a column, and gets bounds of it on every worker."""
        source, bounds = self._together([self._lower(child) for child in node.children])
        if not source.terms or not bounds.terms:
            return Lowered(node.schema, (), source.loops)
        schema = source.schema.reordered((node.of,))
        route = None if group_keys(node.source) is not None else schema.names
        few = [
            replace(feed, route=EveryWorkerRoute(bounds.schema.width)) for feed in feeds_of(bounds, 1, None)
        ]
        tests = [(op, bounds.schema.offset(name)) for op, name in node.tests]
        (stream,) = self._dataflow.stage(
            node.describe(),
            lambda: BoundedJoinVertex(schema, tests),
            [*feeds_of(narrowed(source, schema), 0, route), *few],
            detail=f"({schema}) with ({bounds.schema}) {tests}",
        )
        pairs = Lowered(schema, (Term(stream, LinearChain.over(schema)),), source.loops)
        return narrowed(pairs, node.schema)

    def _look_up(self, rows: Lowered, course: _Way, look: JoinLookup, then: JoinLookup | None) -> Lowered:
        """Make the stage at which rows look up a part; `then`: the lookup after it."""
        position = course.position(look)
        before = rows.schema.reordered(position.lookup_names)
        gives = _columns(before, course, look, then)
        lookup = course.lookup(before, look)
        projection = _projection(gives, before, position, course.origin)

        def make(reader: Reader, guards: int, epoch: int) -> HalfJoinMachine:
            return HalfJoinMachine(lookup, reader, projection, guards, epoch)

        return self._stage_of("look up", make, rows, position, gives, f"{lookup} {projection}")

    def _propose(self, rows: Lowered, course: _Way, step: LookupStep, then: JoinLookup | None) -> Lowered:
        """Continue rows where one of several parts, the one that has the fewest rows for them, proposes."""
        plain = rows.schema
        fewest, by = course.noted
        asking = _selected(rows, {**_named(plain), fewest: lit(-1), by: lit(-1)})
        for number, look in enumerate(step):
            asking = self._note(asking, course, look, number)
        terms: list[Term] = []
        for number, look in enumerate(step):
            mine = tuple(Term(s, chain.filter(col(by) == number)) for s, chain in asking.terms)
            proposed = _selected(replace(asking, terms=mine), _named(plain))
            others = [
                JoinLookup(other.part, (*other.by, *other.adds), ()) for other in step if other is not look
            ]
            looks = [look, *others]
            for each, after in zip(looks, [*others, then], strict=True):
                proposed = self._look_up(proposed, course, each, after)
            terms += proposed.terms
        return replace(rows, schema=proposed.schema, terms=tuple(terms))

    def _note(self, rows: Lowered, course: _Way, look: JoinLookup, number: int) -> Lowered:
        """Make the stage at which rows learn how many rows a part has for them."""
        position = course.position(look)
        before = rows.schema.reordered(position.lookup_names)
        lookup, width = course.lookup(before, look), before.width
        note = before.offset(course.noted[0]), number

        def make(reader: Reader, guards: int, epoch: int) -> FewestMachine:
            return FewestMachine(lookup, reader, width, note, guards, epoch)

        return self._stage_of("count", make, rows, position, before, f"{lookup} {note}")

    def _stage_of(
        self,
        what: str,
        make: _MakeMachine,
        rows: Lowered,
        position: JoinPosition,
        gives: Schema,
        detail: str,
    ) -> Lowered:
        before = rows.schema.reordered(position.lookup_names)
        arranged = self._arrangement_in(position.arrangement, rows.loops)

        def started(vertex: MachineVertex) -> LookupMachine:
            _, reader = read_arrangement(vertex, ARRANGED, by_position=False)
            epoch, _ = vertex.code.fields[0]
            machine = make(reader, vertex.code.guards, epoch)
            machine.columns = before.width + 2
            machine.show = show_schema(before)
            return machine

        return self._add(
            f"{what} {', '.join(position.lookup_names)} in {position.arrangement.describe()}",
            lambda: MachineVertex(started, reads=(ARRANGED,), ports=2),
            [*_feeds(rows, position), Feed(arranged.stream, ARRANGED, detail="as it is kept there")],
            rows,
            gives,
            f"({before}) in ({position.arrangement.schema}) {detail}",
        )

    def _arrangement_in(self, shared: SharedArrangement, loops: Loops) -> Arranged:
        """Return the arrangement, entered into these loops."""
        existing = self._arrangement(shared)
        if existing is None:  # its operator was made before others were known to read the answers
            key = ("once more", self._identity(shared)), ()
            if key not in self._arranged:
                self._arranged[key] = self._arrange(shared)
            existing = self._arranged[key]
        arranged, its = existing
        return self._entered_in(arranged, its, loops)


def _shape(join: Spread, schemas: tuple[Schema, Schema], keys: tuple[Sequence[str], Sequence[str]]) -> Shape:
    """Return the layout of rows of a join in units."""
    kw = schemas[0].picked(keys[0]).width
    projection: list[tuple[int, int]] = []
    for column in join.schema:
        side = 0 if column.name in schemas[0] else 1
        words = schemas[side].words_of(column.name)
        projection += [(side, word) for word in words[len(words) - column.words :]]
    return Shape(kw, (schemas[0].width - kw, schemas[1].width - kw), tuple(projection))


def _keyed(rows: Lowered, keys: Sequence[str]) -> list[Feed]:
    """Return feeds of rows laid out keys first, which stay on their worker."""
    return [replace(feed, route=None) for feed in feeds_of(rows, 0, keys)]


def _unused(name: str, schema: Schema) -> str:
    while name in schema:
        name += "_"
    return name


def _named(schema: Schema) -> dict[str, Expr]:
    return {name: col(name) for name in schema.names}


def _selected(rows: Lowered, columns: dict[str, Expr]) -> Lowered:
    terms = tuple(Term(stream, chain.select(columns)) for stream, chain in rows.terms)
    return replace(rows, schema=terms[0].chain.schema_out, terms=terms)


def _columns(before: Schema, course: _Way, look: JoinLookup, then: JoinLookup | None) -> Schema:
    """Return the columns after a step, in the order that the next step needs."""
    if then is None:
        return course.node.schema
    part = course.node.parts[look.part].schema
    columns = [*before, *(part[name] for name in look.adds)]
    if course.origin and course.origin not in before:
        columns.append(Column(course.origin, integer))
    return Schema(tuple(columns)).reordered(course.position(then).lookup_names)


def _feeds(rows: Lowered, position: JoinPosition) -> list[Feed]:
    """Return feeds of rows laid out lookup columns first, sent to the worker that stores their part."""
    feeds: list[Feed] = []
    for stream, chain in rows.terms:
        keyed = chain.keyed_by(position.lookup_names)
        route = route_by(position.lookup_names[: position.routed], rows.schema, keyed.schema_out)
        feeds.append(Feed(stream, ROWS, route, LinearTransform.of(keyed), "; ".join(keyed.describe())))
    return feeds


def _projection(gives: Schema, before: Schema, position: JoinPosition, origin: str) -> list[tuple[int, int]]:
    """Return the source of each word that a step gives."""
    projection: list[tuple[int, int]] = []
    for column in gives:
        words: Sequence[int]
        if column.name in before:
            source, words = FROM_DELTA, before.words_of(column.name)
        elif column.name == origin:
            source, words = FROM_DELTA, (before.width,)  # the time itself, where a way begins
        else:
            source, words = FROM_TRACE, position.arrangement.schema.words_of(position.columns[column.name])
        # A column that is never null in `gives` may have a null flag at its source: skip it.
        projection += [(source, word) for word in words[len(words) - column.words :]]
    return projection
