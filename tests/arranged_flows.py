"""Dataflows whose joins and reduces read arrangements, and what they mean.

arranged_by, joined, reduced   the stages, from collections and to collections of `k: int, v: int`
Plan                           a random query: some joins and reduces, arrangements shared wherever they can
be
labels_in_a_loop               a loop whose variable is the arrangement of its own result, one iteration later
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import cast

from reference import collection as plainly
from reference.collection import Collection as Rows
from strategies_collections import NUMBERS

from differential import Collection, col, from_stream
from differential.columns.schema import Schema
from differential.linear.chain import LinearChain
from differential.linear.transform import LinearTransform
from differential.operators.arrange import Arranged, arrange, join_stage
from differential.operators.reduce import Aggregates, GroupFunction
from differential.operators.reduce_stage import ReduceStreams, reduce_stage
from timely.building.loop import Loop
from timely.building.stream import Feed, Stream

__all__ = [
    "REDUCES",
    "Plan",
    "Watch",
    "arranged_by",
    "collected",
    "inside_loop",
    "joined",
    "labels_in_a_loop",
    "left",
    "reduced",
    "stream_of",
]

PAIRS = Schema.of("k: int, v: int, w: int")
KEYS = Schema.of("k: int")

REDUCES: dict[str, Aggregates | GroupFunction] = {
    "min": Aggregates((("min", 0),)),
    "max": Aggregates((("max", 0),)),
    "count": Aggregates((("count", 0),)),
    "distinct": Aggregates(()),
    "least": GroupFunction(lambda key, rows: [values for values, count in rows if count > 0][:1], 1),
}


def collected(like: Collection, stream: Stream, schema: Schema) -> Collection:
    """The rows of a stream as a collection in the scope of another."""
    return from_stream(like.dataflow, stream, schema, cast("tuple[Loop, ...]", like.place))


def stream_of(source: Collection) -> Stream:
    """The one stream that a collection is, as it comes from its stage."""
    (feed,) = source.feeds()
    assert feed.transform is None and feed.route is None, "it is put out as it is"
    return feed.stream


def inside_loop(source: Collection, name: str) -> tuple[Loop, Collection]:
    """A loop by hand around what `source` puts out, and this inside it."""
    place = cast("tuple[Loop, ...]", source.place)
    loop = Loop.inside(source.dataflow, place[-1].scope if place else source.dataflow.root, name)
    entered = loop.enter(stream_of(source))
    return loop, from_stream(source.dataflow, entered, source.schema, (*place, loop))


def left(inside: Collection) -> Collection:
    """What a stage in a loop puts out, in the scope around the loop."""
    place = cast("tuple[Loop, ...]", inside.place)
    return from_stream(inside.dataflow, place[-1].leave(stream_of(inside)), inside.schema, place[:-1])


def arranged_by(source: Collection, *keys: str, name: str = "") -> Arranged:
    """An arrangement of a collection by some of its columns."""
    schema = source.schema.reordered(keys)
    return arrange(source.feeds(0, keys), len(keys), schema.width - len(keys), schema, name)


def joined(
    like: Collection, left: Arranged | Sequence[Arranged], right: Arranged | Sequence[Arranged]
) -> Collection:
    """Pairs (k, v, w) of arrangements of (k, v) and (k, w) by k."""
    return collected(like, join_stage(left, right), PAIRS)


def reduced(source: Arranged | Collection, kind: str, shares: bool = True) -> ReduceStreams:
    """A reduce, by its name in `REDUCES`, of an arrangement by k or of rows that it keeps itself."""
    given = source.feeds(0, ["k"]) if isinstance(source, Collection) else source
    return reduce_stage(given, (1, 1), REDUCES[kind], shares=shares, name=f"reduce {kind}", detail=kind)


def answers_of(like: Collection, made: ReduceStreams, kind: str) -> Collection:
    """The answers as (k, v)."""
    if kind == "distinct":
        return collected(like, made.rows, KEYS).select(k=col.k, v=0)
    return collected(like, made.rows, Schema.of(NUMBERS))


def reduced_plainly(rows: Rows, kind: str) -> Rows:
    if kind == "distinct":
        keys = plainly.distinct(plainly.map_rows(rows, lambda row: row[:1]))
        return plainly.map_rows(keys, lambda row: (row[0], 0))
    if kind == "least":
        return plainly.reduce(rows, lambda key, group: sorted(r for r, n in group.items() if n > 0)[:1])
    if kind == "count":
        # Of whole rows: a group whose multiplicities sum to 0 has the count 0 as long as it has rows.
        return plainly.reduce(rows, lambda key, group: [(sum(group.values()),)])
    return plainly.aggregate(rows, [(kind, 0)])


class Plan:
    """A random query over `inputs` collections: steps (what, operand, operand), each a collection (k, v)."""

    def __init__(self, rng: random.Random, inputs: int, steps: int) -> None:
        self.inputs = inputs
        self.steps: list[tuple[str, int, int]] = []
        for _ in range(steps):
            count = inputs + len(self.steps)
            what = rng.choice(["join", "join", "turned join", "concat", *REDUCES])
            self.steps.append((what, rng.randrange(count), rng.randrange(count)))

    def __repr__(self) -> str:
        return f"Plan({self.steps})"

    def build(self, *inputs: Collection) -> Collection:
        """With arrangements: each collection is arranged once at most, answers of reduces not at all."""
        made = list(inputs)
        kept: dict[int, Arranged] = {}

        def by_key(number: int) -> Arranged:
            if number not in kept:
                kept[number] = arranged_by(made[number], "k", name=f"arrange {number}")
            return kept[number]

        for what, a, b in self.steps:
            if what == "concat":
                made.append(made[a].concat(made[b]))
            elif what in REDUCES:
                answers = reduced(by_key(a), what)
                if what != "distinct" and answers.answers is not None:
                    kept[len(made)] = answers.answers
                made.append(answers_of(made[a], answers, what))
            else:
                pairs = joined(made[a], by_key(a), by_key(b))
                turned = what == "turned join"
                made.append(
                    pairs.select(k=col.w, v=col.v) if turned else pairs.select(k=col.k, v=col.v - col.w)
                )
        return self._together(made)

    def _together(self, made: list[Collection]) -> Collection:
        numbered = [one.select(k=col.k, v=col.v + 1000 * n) for n, one in enumerate(made)]
        return numbered[0].concat(*numbered[1:])

    def plain(self, *inputs: Rows) -> Rows:
        """From scratch."""
        made = list(inputs)
        for what, a, b in self.steps:
            if what == "concat":
                made.append(plainly.concat(made[a], made[b]))
            elif what in REDUCES:
                made.append(reduced_plainly(made[a], what))
            else:
                pairs = plainly.join(made[a], made[b])
                turned = what == "turned join"
                made.append(
                    plainly.map_rows(
                        pairs,
                        lambda row: (
                            (row[2], row[1])
                            if turned  # noqa: B023
                            else (row[0], cast(int, row[1]) - cast(int, row[2]))
                        ),
                    )
                )
        numbered = [
            plainly.map_rows(rows, lambda row: (row[0], cast(int, row[1]) + 1000 * n))  # noqa: B023
            for n, rows in enumerate(made)
        ]
        return plainly.concat(*numbered)


Watch = Callable[[Collection], Collection]


def _unwatched(inside: Collection) -> Collection:
    return inside


def labels_in_a_loop(source: Collection, watch: Watch = _unwatched) -> Collection:
    """`strategies_collections._labels`, with arrangements: the edges, kept outside the loop and
    entered; the labels that come back, which are those of the result one iteration later; and what they begin
    with.

        x = s - (s one iteration later) + (result one iteration later)
    """
    edges = source.distinct()
    own = edges.select(k=col.k, v=col.k).distinct()
    by_source = arranged_by(edges, "k", name="arrange edges")
    loop, start = inside_loop(own, "labels")
    entered = stream_of(start)
    back_start, back = loop.feedback(), loop.feedback()
    negative = LinearTransform.of(LinearChain.over(own.schema).negate())
    back_start.connect(entered, Feed(entered, 0, None, negative, "negated"))
    gone = collected(start, back_start.stream, own.schema)
    first = arranged_by(start.concat(gone), "k", name="arrange start")
    returning = Arranged(back.stream, 1, 1, own.schema)
    pairs = joined(start, [first, returning], by_source.entered(loop))
    proposed = watch(pairs.select(k=col.w, v=col.v))
    labels = reduced(proposed.concat(start), "min")
    assert labels.answers is not None
    back.connect(labels.answers.stream)
    loop.check_connected()
    return left(collected(start, labels.rows, own.schema))
