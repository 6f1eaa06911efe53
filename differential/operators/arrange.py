"""Arrange: keep a collection by key, once, for all stages that look it up by that key.

    arrange        builds an arrangement of the rows of some feeds
    join_stage     joins arrangements, and rows that it keeps itself

These put stages together from streams; `reduce_stage.py` has the one that reduces. An arrangement of a scope
may be read in loops within it as it is: `Arranged.entered`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from differential.columns.overflow import row_overflow
from differential.columns.schema import Schema
from differential.kernels.rows.sort import sort_parts
from differential.operators.arrangement import ArrangedBatch, Arrangement
from differential.operators.join import LEFT, RIGHT, Source
from differential.operators.join_vertex import JoinPort, JoinVertex
from differential.operators.vertices import OperatorVertex, joined_words, show_schema
from differential.trace.trace import Trace
from progress.compiled.arrays import Int64s
from timely.building.loop import Loop
from timely.building.stream import Feed, Stream
from timely.dictionaries import Mark
from timely.wire.batch import Batch

__all__ = [
    "ArrangeVertex",
    "Arranged",
    "JoinPart",
    "Rows",
    "arrange",
    "arrangement_feed",
    "join_stage",
]


class ArrangeVertex(OperatorVertex):
    """Keeps rows of `key_words` and `value_words` words, and tells readers of each insert."""

    def __init__(self, key_words: int, value_words: int, schema: Schema | None = None) -> None:
        """`schema`: the columns of the rows, for messages."""
        super().__init__()
        self.arrangement: Arrangement = Arrangement(key_words, value_words, show_schema(schema))

    def on_start(self) -> None:
        """Make the trace, which needs the order of the scope's times."""
        self._trace = self.arrangement.trace(self.code, self.name)

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        """Insert the rows that came in, and tell readers of them, at once: it holds nothing back.

        Rows of several minimal times are several inserts, since a batch has one number and one envelope.
        """
        parts = [joined_words(messages)]  # a list, so that the rows are freed when they are packed
        try:
            words = sort_parts(parts)
        except OverflowError:
            raise row_overflow(parts, self._trace.show) from None
        for envelope, rows in self.parts_by_envelope(words):
            self.insert(rows, envelope)

    def insert(self, rows: Int64s, envelope: int) -> None:
        """Keep rows, and tell all readers."""
        self.send(0, ArrangedBatch(rows, self._trace.add(rows)), envelope)

    def symbols(self, mark: Mark) -> None:
        """Show the words that it keeps for readers."""
        self._trace.symbols(mark)

    def traces(self) -> list[Trace]:
        """Return the one that it writes."""
        return [self._trace]


@dataclass(frozen=True)
class Arranged:
    """An arrangement while a dataflow is built: the stream of its batches, its layout, its columns."""

    stream: Stream
    kw: int
    vw: int
    schema: Schema | None = None

    def entered(self, loop: Loop) -> Arranged:
        """Return the same arrangement inside `loop`; nothing is copied."""
        return replace(self, stream=loop.enter(self.stream))


def arrange(
    feeds: Sequence[Feed], kw: int, vw: int, schema: Schema | None = None, name: str = ""
) -> Arranged:
    """Add the stage that arranges what `feeds` bring to port 0: rows key first, routed by key."""
    (stream,) = feeds[0].stream.dataflow.stage(
        name or "arrange",
        lambda: ArrangeVertex(kw, vw, schema),
        feeds,
        detail=f"{kw} key and {vw} value words ({schema})",
    )
    return Arranged(stream, kw, vw, schema)


@dataclass(frozen=True)
class Rows:
    """Rows that come to one stage alone, which keeps them itself: `kw` key and `vw` value words."""

    feeds: tuple[Feed, ...]
    kw: int
    vw: int
    schema: Schema | None = None


JoinPart = Arranged | Rows


def join_stage(
    left: JoinPart | Sequence[JoinPart],
    right: JoinPart | Sequence[JoinPart],
    projection: Sequence[Source] | None = None,
    *,
    flags: Sequence[int] = (),
    name: str = "",
    detail: str = "",
) -> Stream:
    """Return pairs of rows with equal keys, in the layout of `projection` (None: key, left values, right
    values). All parts are in one scope, or entered. A row with a key word of `flags` at 0 matches nothing.

    A side may be the sum of several parts. Both sides may be, or have, one and the same arrangement.
    """
    sides = [[side] if isinstance(side, JoinPart) else list(side) for side in (left, right)]
    (first, *_), (other, *_) = sides
    for side in sides:
        assert {(one.kw, one.vw) for one in side} == {(first.kw, side[0].vw)}, "rows of one layout"
    schemas = None if first.schema is None or other.schema is None else (first.schema, other.schema)
    feeds: list[Feed] = []
    ports: list[JoinPort] = []
    for number, side in zip((LEFT, RIGHT), sides, strict=True):
        for part in side:
            part_feeds = (arrangement_feed(part),) if isinstance(part, Arranged) else part.feeds
            feeds += [replace(feed, port=len(ports)) for feed in part_feeds]
            ports.append(JoinPort(number, isinstance(part, Arranged)))
    (stream,) = feeds[0].stream.dataflow.stage(
        name or "join",
        lambda: JoinVertex(first.kw, first.vw, other.vw, schemas, ports, projection, flags),
        feeds,
        detail=f"{detail} {first.kw} key words, {[tuple(port) for port in ports]} {projection or ''}"
        f"{f' null {flags}' if flags else ''}",
    )
    return stream


def arrangement_feed(source: Arranged) -> Feed:
    """Return the feed of the batches of an arrangement, for a stage that reads it."""
    return Feed(source.stream, 0, detail="as it is kept there")
