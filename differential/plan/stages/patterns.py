"""From a join of many to stages: a way for the changes of each part, and arrangements of the parts.

Rows on a way have the columns that are known so far. In a loop their times move on as they meet others, so
they have one more column there, which says when their way began; at the root of a dataflow these are one.
Where the fewest candidates decide, rows go by all that could propose, with a note who has the fewest, and are
sent to that one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from timely.building.stream import Feed

from ...columns.column_types import integer
from ...columns.schema import Column, Schema
from ...expressions.expression import Expr, col, lit
from ...kernels.history.match import FROM_DELTA, FROM_TRACE
from ...linear.chain import LinearChain
from ...linear.transform import LinearTransform
from ...operators.arrange import Arranged
from ...operators.arrangement import read_arrangement
from ...operators.patterns.fewest import FewestMachine
from ...operators.patterns.half_join import HalfJoinMachine
from ...operators.patterns.lookups import ARRANGED, ROWS, Lookup, LookupMachine
from ...operators.vertices import MachineVertex, show_schema
from ...skew.running.stages import UnitsJoin
from ...skew.running.units import Shape
from ...trace.readers import Reader
from ..nodes import HalfJoin, JoinAll, Spread, SpreadLoads
from ..rules.patterns import JoinLookup, JoinPosition, LookupStep, places_of, way
from ..rules.sharing import SharedArrangement, kept_for
from .loops import LoopLowering
from .terms import Loops, Lowered, Term, feeds_of, flags_of, route_by

__all__ = ["PatternLowering"]


_MakeMachine = Callable[[Reader, int, int], LookupMachine]
"""Of a reader, the guards of the scope, and the position of the epoch."""


@dataclass(frozen=True)
class _Way:
    """What the steps of a way have in common: the part whose changes take it, and names of columns.

    origin   of the time that it began at; empty where the time itself says it
    noted    of the fewest rows, and of who has them
    """

    node: JoinAll
    first: int
    places: dict[tuple[int, frozenset[str]], JoinPosition]
    origin: str
    noted: tuple[str, str]

    def place(self, look: JoinLookup) -> JoinPosition:
        """Where it looks."""
        return self.places[look.part, frozenset(look.known)]

    def lookup(self, given: Schema, look: JoinLookup) -> Lookup:
        """How rows with these columns, those that are looked up first, look."""
        looked = given.picked(self.place(look).looked)
        return Lookup(
            words=looked.width,
            origin=given.offset(self.origin) if self.origin in given else None,
            strictly=look.part > self.first,
            flags=flags_of(looked),
        )


class PatternLowering(LoopLowering):
    """Makes stages for joins of many, and for those that are spread over units."""

    def _arrangement(self, kept: SharedArrangement) -> tuple[Arranged, Loops] | None:
        """What keeps this, and the loops that it is in."""
        raise NotImplementedError

    def _arrange(self, kept: SharedArrangement) -> tuple[Arranged, Loops]:
        """A new stage that keeps this."""
        raise NotImplementedError

    def _join_all(self, node: JoinAll) -> Lowered:
        """The sum of all ways."""
        parts = self._together([self._lower(part) for part in node.parts])
        loops = parts[0].loops
        names = [part.schema.names for part in node.parts]
        origin = _unused("origin", node.schema) if loops else ""
        noted = (_unused("fewest", node.schema), _unused("proposed by", node.schema))
        terms: list[Term] = []
        for first, rows in enumerate(parts):
            course = _Way(node, first, places_of(node), origin, noted)
            steps = way(names, first, fewest=node.fewest)
            found = rows
            for step, then in zip(steps, [*(after[0] for after in steps[1:]), None], strict=True):
                if len(step) == 1:
                    found = self._look_up(found, course, step[0], then)
                else:
                    found = self._propose(found, course, step, then)
            terms += found.terms
        return Lowered(node.schema, tuple(terms), loops)

    def _half_join(self, node: HalfJoin) -> Lowered:
        """The stage at which the rows of one side look up the other."""
        probing = node.probing
        kept, columns = kept_for(node, 1 - probing)
        rows = self._together([self._lower(part) for part in node.children])[probing]
        keys = node.keys[probing]
        given = node.children[probing].schema.reordered(keys)
        flags = () if node.null_safe else flags_of(given.picked(keys))
        lookup = Lookup(given.picked(keys).width, None, probing == 1, flags)
        projection: list[tuple[int, int]] = []
        for column in node.schema:
            side = 0 if column.name in node.left.schema else 1
            if side == probing:
                source, words = FROM_DELTA, given.words_of(column.name)
            else:
                source, words = FROM_TRACE, kept.schema.words_of(columns[column.name])
            projection += [(source, word) for word in words[len(words) - column.words :]]

        def make(reader: Reader, guards: int, epoch: int) -> HalfJoinMachine:
            return HalfJoinMachine(lookup, reader, projection, guards, epoch)

        place = JoinPosition(kept, keys, len(keys), columns)
        return self._stage_of("look up", make, rows, place, node.schema, f"{lookup} {projection}")

    def _in_units(self, node: Spread | SpreadLoads) -> Lowered:
        """The pairs of a join that is spread, or its loads; its stages are made once."""
        join = node if isinstance(node, Spread) else node.source
        assert isinstance(join, Spread), join
        if join.digest not in self._spread:
            left, right, said = (self._lower(child) for child in join.children)
            keys = tuple(pair[0] for pair in join.on), tuple(pair[1] for pair in join.on)
            schemas = left.schema.reordered(keys[0]), right.schema.reordered(keys[1])
            wanted = UnitsJoin(
                join.plain.describe(), schemas, _shape(join, schemas, keys), join.balance.placement, join.lead
            )
            sides = _keyed(left, keys[0]), _keyed(right, keys[1])
            self._spread[join.digest] = wanted.stages(sides, feeds_of(said, 0, None))
        pairs, loads = self._spread[join.digest]
        stream = pairs if isinstance(node, Spread) else loads
        return Lowered(node.schema, (Term(stream, LinearChain.over(node.schema)),), ())

    def _look_up(self, rows: Lowered, course: _Way, look: JoinLookup, then: JoinLookup | None) -> Lowered:
        """The stage at which rows meet the part that they look up next; `then`: the one after it."""
        place = course.place(look)
        given = rows.schema.reordered(place.looked)
        gives = _columns(given, course, look, then)
        lookup = course.lookup(given, look)
        projection = _projection(gives, given, place, course.origin)

        def make(reader: Reader, guards: int, epoch: int) -> HalfJoinMachine:
            return HalfJoinMachine(lookup, reader, projection, guards, epoch)

        return self._stage_of("look up", make, rows, place, gives, f"{lookup} {projection}")

    def _propose(self, rows: Lowered, course: _Way, step: LookupStep, then: JoinLookup | None) -> Lowered:
        """What rows become where the one of several parts that has the fewest for them says how to go on."""
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
                JoinLookup(other.part, (*other.known, *other.adds), ()) for other in step if other is not look
            ]
            looks = [look, *others]
            for each, after in zip(looks, [*others, then], strict=True):
                proposed = self._look_up(proposed, course, each, after)
            terms += proposed.terms
        return replace(rows, schema=proposed.schema, terms=tuple(terms))

    def _note(self, rows: Lowered, course: _Way, look: JoinLookup, number: int) -> Lowered:
        """The stage at which rows learn how many rows a part has for them."""
        place = course.place(look)
        given = rows.schema.reordered(place.looked)
        lookup, width = course.lookup(given, look), given.width
        note = given.offset(course.noted[0]), number

        def make(reader: Reader, guards: int, epoch: int) -> FewestMachine:
            return FewestMachine(lookup, reader, width, note, guards, epoch)

        return self._stage_of("count", make, rows, place, given, f"{lookup} {note}")

    def _stage_of(
        self,
        what: str,
        make: _MakeMachine,
        rows: Lowered,
        place: JoinPosition,
        gives: Schema,
        detail: str,
    ) -> Lowered:
        given = rows.schema.reordered(place.looked)
        arranged = self._found_for(place.kept, rows.loops)

        def started(vertex: MachineVertex) -> LookupMachine:
            _, reader = read_arrangement(vertex, ARRANGED, by_position=False)
            epoch, _ = vertex.code.fields[0]
            machine = make(reader, vertex.code.guards, epoch)
            machine.columns = given.width + 2
            machine.show = show_schema(given)
            return machine

        return self._add(
            f"{what} {', '.join(place.looked)} in {place.kept.describe()}",
            lambda: MachineVertex(started, reads=(ARRANGED,), ports=2),
            [*_feeds(rows, place), Feed(arranged.stream, ARRANGED, detail="as it is kept there")],
            rows,
            gives,
            f"({given}) in ({place.kept.schema}) {detail}",
        )

    def _found_for(self, kept: SharedArrangement, loops: Loops) -> Arranged:
        """What keeps this, in these loops."""
        found = self._arrangement(kept)
        if found is None:  # answers of an operator that was made before anybody asked for them
            key = ("once more", self._identity(kept)), ()
            if key not in self._arranged:
                self._arranged[key] = self._arrange(kept)
            found = self._arranged[key]
        arranged, its = found
        return self._entered_in(arranged, its, loops)


def _shape(join: Spread, schemas: tuple[Schema, Schema], keys: tuple[Sequence[str], Sequence[str]]) -> Shape:
    """How rows of a join in units look."""
    kw = schemas[0].picked(keys[0]).width
    projection: list[tuple[int, int]] = []
    for column in join.schema:
        side = 0 if column.name in schemas[0] else 1
        words = schemas[side].words_of(column.name)
        projection += [(side, word) for word in words[len(words) - column.words :]]
    return Shape(kw, (schemas[0].width - kw, schemas[1].width - kw), tuple(projection))


def _keyed(rows: Lowered, keys: Sequence[str]) -> list[Feed]:
    """Rows laid out keys first, which stay on their worker."""
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


def _columns(given: Schema, course: _Way, look: JoinLookup, then: JoinLookup | None) -> Schema:
    """What rows have after a step: in the order in which the next one wants them."""
    if then is None:
        return course.node.schema
    part = course.node.parts[look.part].schema
    columns = [*given, *(part[name] for name in look.adds)]
    if course.origin and course.origin not in given:
        columns.append(Column(course.origin, integer))
    return Schema(tuple(columns)).reordered(course.place(then).looked)


def _feeds(rows: Lowered, place: JoinPosition) -> list[Feed]:
    """Rows with what they look up first, sent to the worker that keeps it."""
    found: list[Feed] = []
    for stream, chain in rows.terms:
        keyed = chain.keyed_by(place.looked)
        route = route_by(place.looked[: place.routed], rows.schema, keyed.schema_out)
        found.append(Feed(stream, ROWS, route, LinearTransform.of(keyed), "; ".join(keyed.describe())))
    return found


def _projection(gives: Schema, given: Schema, place: JoinPosition, origin: str) -> list[tuple[int, int]]:
    """Where the words of what a step gives come from."""
    found: list[tuple[int, int]] = []
    for column in gives:
        words: Sequence[int]
        if column.name in given:
            source, words = FROM_DELTA, given.words_of(column.name)
        elif column.name == origin:
            source, words = FROM_DELTA, (given.width,)  # the time itself, where a way begins
        else:
            source, words = FROM_TRACE, place.kept.schema.words_of(place.columns[column.name])
        # Without the flag of what is never null among those that are equal.
        found += [(source, word) for word in words[len(words) - column.words :]]
    return found
