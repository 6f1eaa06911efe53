"""Collections while stages are made: streams, and the chains of linear operators on the way from them.

A collection is the sum of its *terms*.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from timely.building.exchange import Route
from timely.building.loop import Feedback, Loop
from timely.building.stream import Feed, Stream
from timely.user_code.call_site import CallSite

from ...columns.routes import KeyRoute, UnitRoute
from ...columns.schema import Column, Schema
from ...expressions.expression import col
from ...linear.chain import LinearChain
from ...linear.placing import UNIT
from ...linear.transform import LinearTransform
from ...operators.arrange import JoinPart
from ...operators.join import Source
from ..nodes import Accumulate, Join, Reduce
from ..rules.sharing import SharedArrangement, read_by_reduce

__all__ = [
    "Leaves",
    "LoopVariable",
    "Loops",
    "Lowered",
    "Side",
    "Sites",
    "Term",
    "columns_as_read",
    "feeds_of",
    "flags_of",
    "narrowed",
    "pairs_of",
    "route_by",
]

Loops = tuple[Loop, ...]

Leaves = dict[bytes, tuple[Stream, Loops]]
"""By digest of a leaf: the stream that feeds it, and the loops that the stream is in."""

Sites = dict[bytes, list[CallSite]]
"""By digest of a node: the lines where it was written."""


class Term(NamedTuple):
    """A stream of updates and the linear operators between it and the collection."""

    stream: Stream
    chain: LinearChain


@dataclass(frozen=True, eq=False)
class Lowered:
    """The lowered form of a node: the sum of these terms, in the innermost of these loops."""

    schema: Schema
    terms: tuple[Term, ...]
    loops: Loops


class LoopVariable:
    """Stands for a variable of a loop while the loop is made: its initial collection, and its ways back.

    rows      the way back of body - s; made once a reader needs rows
    answers   the way back of the arrangement as which the variable goes on; made once a join reads that
    first     what has to be added to `answers`: s, and -s one iteration later
    back      what has come back by `rows`, if it passes a stage first
    """

    def __init__(self, start: Lowered, loop: Loop) -> None:
        self.start = start
        self.loop = loop
        self.rows: Feedback | None = None
        self.answers: Feedback | None = None
        self.first: Lowered | None = None
        self.back: tuple[Term, ...] | None = None

    @property
    def lowered(self) -> Lowered:
        """The variable as rows: s + feedback(body - s)."""
        if self.rows is None:
            self.rows = self.loop.feedback()
        coming_back = (Term(self.rows.stream, LinearChain.over(self.start.schema)),)
        return replace(self.start, terms=(*self.start.terms, *(self.back or coming_back)))


@dataclass(frozen=True, eq=False)
class Side:
    """A side of a join: the loops that it is in, how it is stored, and its parts within more loops.

    columns   by name in the side's collection, the column of `schema`
    """

    loops: Loops
    schema: Schema
    columns: Mapping[str, str]
    parts: Callable[[Loops], list[JoinPart]]


def feeds_of(part: Lowered, port: int, keys: Sequence[str] | None) -> list[Feed]:
    """Return feeds of input `port` of a stage: rows laid out key first and sent to the worker of their key.

    With `keys` None, columns stay in order, and rows on their worker.
    """
    feeds: list[Feed] = []
    for term in part.terms:
        chain: LinearChain = term.chain
        route: Route | None = None
        if keys is not None:
            chain = chain.keyed_by(keys)
            route = route_by(keys, part.schema, chain.schema_out)
        feeds.append(Feed(term.stream, port, route, LinearTransform.of(chain), "; ".join(chain.describe())))
    return feeds


def route_by(keys: Sequence[str], schema: Schema, laid_out: Schema) -> Route:
    """Return the route to where rows of `schema` with these keys meet: to their unit, if a key names one."""
    words, width = laid_out.symbol_words, laid_out.width
    if UNIT in keys:
        at = sum(schema[key].words for key in keys[: list(keys).index(UNIT)])
        return UnitRoute(words, at, width)
    return KeyRoute(sum(schema[key].words for key in keys), words, width)


def pairs_of(join: Join, sides: tuple[Side, Side]) -> list[Source]:
    """Return where the words of a join come from, whatever other words its sides store."""
    sources: list[Source] = []
    keys = join.keys[0]
    for name in join.schema.names:
        number = 0 if name in join.left.schema else 1
        side = sides[number]
        kw = sum(join.left.schema[key].words for key in keys)
        words = side.schema.words_of(side.columns[name])
        for word in words[len(words) - join.schema[name].words :]:  # skip the null flag of what is never null
            if word < kw:
                sources.append(("key", word))
            else:
                sources.append(("left" if number == 0 else "right", word - kw))
    return sources


def flags_of(keys: Schema) -> tuple[int, ...]:
    """Return the words of these keys that are null flags."""
    return tuple(keys.offset(key.name) for key in keys if key.type.nullable)


def columns_as_read(node: Reduce | Accumulate, arrangement: SharedArrangement) -> Schema:
    """Return the columns of an arrangement that a reduce reads, under the names that the
    reduce has for them.
    """
    reading = read_by_reduce(node)
    assert reading is not None
    names = {column: name for name, column in reading.columns.items()}
    return Schema(tuple(Column(names[column.name], column.type) for column in arrangement.schema))


def narrowed(source: Lowered, columns: Schema) -> Lowered:
    """Return `source` with only these columns."""
    if columns == source.schema:
        return source
    picked = {name: col(name) for name in columns.names}
    terms = tuple(Term(term.stream, term.chain.select(picked)) for term in source.terms)
    return replace(source, schema=columns, terms=terms)
