"""Bodies of loops over two collections of (k, v), each with its plain meaning, for tests of loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from reference import collection as plainly
from reference.collection import Collection as Rows
from strategies_collections import BINARY, NUMBERS, UNARY

import differential as dd
from differential import Collection, col
from differential.collections.patterns.joins_of_many import Candidates

Two = Callable[[Collection, Collection], Collection]
TwoPlainly = Callable[[Rows, Rows], Rows]


def distances(roots: Collection, along: Collection) -> Collection:
    """The least number of edges from a key of `roots`: a join, one more, the least."""
    start = roots.filter(col.k >= 0).select(k=col.v, v=0)
    edges = along.distinct()
    return start.iterate(
        lambda found: (
            found.join(edges.select(k=col.k, to=col.v), on="k")
            .select(k=col.to, v=col.v + 1)
            .concat(start)
            .group_by("k")
            .agg(v=dd.min("v"))
        )
    )


def _least(rows: Rows) -> Rows:
    return plainly.aggregate(rows, [("min", 0)])


def _distances_plainly(roots: Rows, along: Rows) -> Rows:
    start = plainly.map_rows(roots, lambda row: (row[1], 0))
    edges = plainly.distinct(along)

    def further(found: Rows) -> Rows:
        paired = plainly.join(found, edges)
        return plainly.map_rows(paired, lambda row: (row[2], cast(int, row[1]) + 1))

    return plainly.iterate(start, lambda found: _least(plainly.concat(further(found), start)))


def _closure(first: Collection, second: Collection) -> Collection:
    """All pairs that a way leads from to: a variable is joined with itself."""
    edges = first.concat(second).distinct()
    return edges.iterate(
        lambda x: x.join(x.select(v=col.k, w=col.v), on="v").select(k=col.k, v=col.w).concat(edges).distinct()
    )


def _closure_plainly(first: Rows, second: Rows) -> Rows:
    edges = plainly.distinct(plainly.concat(first, second))

    def turned(rows: Rows) -> Rows:
        return plainly.map_rows(rows, lambda row: (row[1], row[0]))

    def step(x: Rows) -> Rows:
        longer = plainly.map_rows(plainly.join(turned(x), x), lambda row: (row[1], row[2]))
        return plainly.distinct(plainly.concat(longer, edges))

    return plainly.iterate(edges, step)


def _counted(first: Collection, second: Collection) -> Collection:
    """Keys with what they count and add up to, as far as it stays below a bound: sums that change."""
    start, along = first.distinct(), second.distinct()

    def body(x: Collection) -> Collection:
        moved = x.join(along.select(k=col.k, w=col.v), on="k").select(k=col.w, v=col.v)
        totals = moved.concat(start).group_by("k").agg(n=dd.count(), s=dd.sum("v"))
        return (
            totals.select(k=col.k, v=dd.min_of(col.n + col.s, 9))
            .concat(start)
            .distinct()
            .concat(x)
            .distinct()
        )

    return start.iterate(body)


def _counted_plainly(first: Rows, second: Rows) -> Rows:
    start, along = plainly.distinct(first), plainly.distinct(second)

    def step(x: Rows) -> Rows:
        moved = plainly.map_rows(plainly.join(x, along), lambda row: (row[2], row[1]))
        totals = plainly.aggregate(plainly.concat(moved, start), [("count", 0), ("sum", 0)])
        bounded = plainly.map_rows(
            totals, lambda row: (row[0], min(cast(int, row[1]) + cast(int, row[2]), 9))
        )
        return plainly.distinct(plainly.concat(bounded, start, x))

    return plainly.iterate(start, step)


def _in_turns(first: Collection, second: Collection) -> Collection:
    """Two variables, each of which makes the other."""
    start, along = first.distinct(), second.distinct()

    def body(odd: Collection, even: Collection) -> dict[str, Collection]:
        edges = along.select(k=col.k, w=col.v)

        def further(x: Collection) -> Collection:
            return x.select(k=col.v, u=col.k).join(edges, on="k").select(k=col.u, v=col.w)

        return {"even": further(odd).concat(start).distinct(), "odd": further(even).distinct()}

    found = dd.iterate({"even": start, "odd": NUMBERS}, body)
    return found["odd"].concat(found["even"].select(k=col.k, v=col.v + 10))


def _in_turns_plainly(first: Rows, second: Rows) -> Rows:
    start, along = plainly.distinct(first), plainly.distinct(second)

    def further(x: Rows) -> Rows:
        turned = plainly.map_rows(x, lambda row: (row[1], row[0]))
        return plainly.map_rows(plainly.join(turned, along), lambda row: (row[1], row[2]))

    odd, even = Rows(), start
    while True:
        more = plainly.distinct(further(even)), plainly.distinct(plainly.concat(further(odd), start))
        if more == (odd, even):
            return plainly.concat(odd, plainly.map_rows(even, lambda row: (row[0], cast(int, row[1]) + 10)))
        odd, even = more


def _by_functions(first: Collection, second: Collection) -> Collection:
    """Functions of Python's in the body: on the way to a gate, and in one."""
    start, along = first.distinct(), second.distinct()

    def least(key: object, group: list[tuple[tuple[object, ...], int]]) -> list[tuple[object, ...]]:
        del key
        return [min(cast("tuple[int]", row) for row, _ in group)]

    return start.iterate(
        lambda x: (
            x.join(along.select(k=col.k, w=col.v), on="k")
            .map(lambda row: (row.w, min(row.v + 1, 7)), "k: int, v: int")
            .concat(start)
            .group_by("k")
            .reduce(least, "v: int")
        )
    )


def _by_functions_plainly(first: Rows, second: Rows) -> Rows:
    start, along = plainly.distinct(first), plainly.distinct(second)

    def step(x: Rows) -> Rows:
        moved = plainly.map_rows(plainly.join(x, along), lambda row: (row[2], min(cast(int, row[1]) + 1, 7)))
        return _least(plainly.concat(moved, start))

    return plainly.iterate(start, step)


def _filtered(first: Collection, second: Collection) -> Collection:
    """Conditions of all kinds and sums on the way, some of which Python does."""
    start, along = first.distinct(), second.distinct()
    return start.iterate(
        lambda x: (
            x.filter((col.v != 2) & (col.k <= col.v + 3))
            .join(along.filter(col.k != col.v).select(k=col.k, w=col.v), on="k")
            .filter((col.w > 0) & (col.v < 6))
            .select(k=col.w, v=col.v + 1)
            .concat(start.filter(col.k <= 3), start.negate().filter(col.v == 4), start)
            .distinct()
        )
    )


def _filtered_plainly(first: Rows, second: Rows) -> Rows:
    start, along = plainly.distinct(first), plainly.distinct(second)

    def step(x: Rows) -> Rows:
        left = plainly.filter_rows(x, lambda r: r[1] != 2 and cast(int, r[0]) <= cast(int, r[1]) + 3)
        joined = plainly.join(left, plainly.filter_rows(along, lambda r: r[0] != r[1]))
        going = plainly.filter_rows(joined, lambda r: cast(int, r[2]) > 0 and cast(int, r[1]) < 6)
        moved = plainly.map_rows(going, lambda row: (row[2], cast(int, row[1]) + 1))
        begun = plainly.filter_rows(start, lambda r: cast(int, r[0]) <= 3)
        without = plainly.negate(plainly.filter_rows(start, lambda r: r[1] == 4))
        return plainly.distinct(plainly.concat(moved, begun, without, start))

    return plainly.iterate(start, step)


def _unary(name: str) -> tuple[Two, TwoPlainly]:
    one = UNARY[name]
    return (
        lambda first, second: one.build(first.concat(second)),
        lambda first, second: one.plain(plainly.concat(first, second)),
    )


def _nested(first: Collection, second: Collection) -> Collection:
    """What is reached, then from the even ones among it again: a loop in a loop, both of which have gates."""
    along, own = second.distinct(), first.distinct()

    def reached(x: Collection) -> Collection:
        edges = along.select(v=col.k, w=col.v)
        return x.iterate(
            lambda y: y.join(edges, on="v").select(k=col.k, v=col.w).concat(x).distinct(), name="inner"
        )

    return own.iterate(
        lambda x: reached(x).filter(col.v >= 2).select(k=col.v, v=col.k).concat(own).distinct(), name="outer"
    )


def _nested_plainly(first: Rows, second: Rows) -> Rows:
    along, own = plainly.distinct(second), plainly.distinct(first)

    def reached(x: Rows) -> Rows:
        def step(y: Rows) -> Rows:
            turned = plainly.map_rows(y, lambda row: (row[1], row[0]))
            longer = plainly.map_rows(plainly.join(turned, along), lambda row: (row[1], row[2]))
            return plainly.distinct(plainly.concat(longer, x))

        return plainly.iterate(x, step)

    def step(x: Rows) -> Rows:
        far = plainly.filter_rows(reached(x), lambda row: cast(int, row[1]) >= 2)
        return plainly.distinct(plainly.concat(plainly.map_rows(far, lambda r: (r[1], r[0])), own))

    return plainly.iterate(own, step)


def _with_itself(first: Collection, second: Collection) -> Collection:
    """Two readers of one arrangement, in one join: the second must see what the first has not."""
    start = first.concat(second).distinct()

    def body(x: Collection) -> Collection:
        kept = x.select(k=col.v, v=col.k).arrange(by="k")
        paired = kept.join(kept.select(k=col.k, w=col.v), on="k")
        return paired.select(k=col.v, v=col.w).concat(start).distinct()

    return start.iterate(body)


def _with_itself_plainly(first: Rows, second: Rows) -> Rows:
    start = plainly.distinct(plainly.concat(first, second))

    def step(x: Rows) -> Rows:
        turned = plainly.map_rows(x, lambda row: (row[1], row[0]))
        paired = plainly.map_rows(plainly.join(turned, turned), lambda row: (row[1], row[2]))
        return plainly.distinct(plainly.concat(paired, start))

    return plainly.iterate(start, step)


def _read_by_groups(first: Collection, second: Collection) -> Collection:
    """An arrangement that reduces and a join read: its rows are there before their times are complete."""
    start, along = first.distinct(), second.distinct()

    def body(x: Collection) -> Collection:
        kept = x.arrange(by="k")
        largest = kept.group_by("k").agg(v=dd.max("v"))
        joined = kept.join(along.select(k=col.k, w=col.v), on="k").select(k=col.w, v=col.v)
        number = kept.group_by("k").agg(v=dd.count()).filter(col.v < 4)
        return joined.concat(x, start, largest.select(k=col.v, v=col.k), number).distinct()

    return start.iterate(body)


def _read_by_groups_plainly(first: Rows, second: Rows) -> Rows:
    start, along = plainly.distinct(first), plainly.distinct(second)

    def step(x: Rows) -> Rows:
        largest = plainly.map_rows(plainly.aggregate(x, [("max", 0)]), lambda row: (row[1], row[0]))
        number = plainly.filter_rows(plainly.aggregate(x, [("count", 0)]), lambda row: cast(int, row[1]) < 4)
        joined = plainly.map_rows(plainly.join(x, along), lambda row: (row[2], row[1]))
        return plainly.distinct(plainly.concat(joined, x, start, largest, number))

    return plainly.iterate(start, step)


def _with_nulls(first: Collection, second: Collection) -> Collection:
    """Keys that may be null, which match nothing: in rows of a join's own, and in an arrangement."""
    start = first.distinct()
    along = second.distinct().select(k=dd.when(col.k > 0).then(col.k), w=col.v)

    def body(x: Collection) -> Collection:
        kept = x.select(k=dd.when(col.v > 1).then(col.k), v=col.v).arrange(by="k")
        some = kept.join(along, on="k").select(k=col.w, v=col.v)
        more = kept.join(along.select(k=col.k, u=col.w), on="k").filter(col.u > col.v)
        own = x.select(k=dd.when(col.v > 2).then(col.v), u=col.k).join(along, on="k")
        return some.concat(start, more.select(k=col.v, v=col.u), own.select(k=col.u, v=col.w)).distinct()

    return start.iterate(body)


def _with_nulls_plainly(first: Rows, second: Rows) -> Rows:
    start = plainly.distinct(first)
    along = plainly.filter_rows(plainly.distinct(second), lambda row: cast(int, row[0]) > 0)

    def step(x: Rows) -> Rows:
        kept = plainly.filter_rows(x, lambda row: cast(int, row[1]) > 1 and cast(int, row[0]) > 0)
        paired = plainly.join(kept, along)
        some = plainly.map_rows(paired, lambda row: (row[2], row[1]))
        larger = plainly.filter_rows(paired, lambda row: cast(int, row[2]) > cast(int, row[1]))
        more = plainly.map_rows(larger, lambda row: (row[1], row[2]))
        by_value = plainly.filter_rows(x, lambda row: cast(int, row[1]) > 2)
        turned = plainly.map_rows(by_value, lambda row: (row[1], row[0]))
        own = plainly.map_rows(plainly.join(turned, along), lambda row: (row[1], row[2]))
        return plainly.distinct(plainly.concat(some, start, more, own))

    return plainly.iterate(start, step)


def _firsts(first: Collection, second: Collection) -> Collection:
    """The two least values of a key, which a join reads, and the greatest ones with their place."""
    start, along = first.distinct(), second.distinct()

    def body(x: Collection) -> Collection:
        moved = (
            x.group_by("k")
            .top_k(2, "v")
            .join(along.select(k=col.k, w=col.v), on="k")
            .select(k=col.w, v=dd.min_of(col.v + 1, 6))
        )
        last = x.filter(col.k < 5).group_by("k").top_k(2, col.v.desc(), rank="place")
        return moved.concat(start, last.filter(col.v < 3).select(k=col.place + 5, v=col.v)).distinct()

    return start.iterate(body)


def _firsts_plainly(first: Rows, second: Rows) -> Rows:
    start, along = plainly.distinct(first), plainly.distinct(second)

    def step(x: Rows) -> Rows:
        least = plainly.top_k(x, lambda row: row[0], (0, 2), 1)
        moved = plainly.map_rows(
            plainly.join(least, along), lambda row: (row[2], min(cast(int, row[1]) + 1, 6))
        )
        inside = plainly.filter_rows(x, lambda row: cast(int, row[0]) < 5)
        last = plainly.top_k(inside, lambda row: -cast(int, row[0]), (0, 2), 1, "row_number")
        small = plainly.filter_rows(last, lambda row: cast(int, row[1]) < 3)
        places = plainly.map_rows(small, lambda row: (cast(int, row[2]) + 5, row[1]))
        return plainly.distinct(plainly.concat(moved, start, places))

    return plainly.iterate(start, step)


def _first_alone(first: Collection, second: Collection) -> Collection:
    """The first row of each key is what goes round, and is looked up by its key there."""
    start, along = first.distinct(), second.distinct()
    return start.iterate(
        lambda x: (
            x.join(along.select(k=col.k, w=col.v), on="k")
            .select(k=col.w, v=col.v + 1)
            .concat(start)
            .group_by("k")
            .first("v")
        )
    )


def _first_alone_plainly(first: Rows, second: Rows) -> Rows:
    start, along = plainly.distinct(first), plainly.distinct(second)

    def step(x: Rows) -> Rows:
        moved = plainly.map_rows(plainly.join(x, along), lambda row: (row[2], cast(int, row[1]) + 1))
        return plainly.top_k(plainly.concat(moved, start), lambda row: row[0], (0, 1), 1)

    return plainly.iterate(start, step)


def _corners(x: Collection, along: Collection, candidates: Candidates) -> Collection:
    """Where two steps of x and one edge close: three collections look each other up."""
    parts = [x.select(a=col.k, b=col.v), x.select(b=col.k, c=col.v), along.select(c=col.k, a=col.v)]
    return dd.join_all(parts, ["a", "b", "c"], candidates=candidates).select(k=col.c, v=col.a)


def _corners_plainly(x: Rows, along: Rows) -> Rows:
    found = plainly.join_all([(("a", "b"), x), (("b", "c"), x), (("c", "a"), along)])
    return plainly.map_rows(found, lambda row: (row[2], row[0]))


def _three_at_once(candidates: Candidates) -> tuple[Two, TwoPlainly]:
    def build(first: Collection, second: Collection) -> Collection:
        start, along = first.distinct(), second.distinct()

        def body(x: Collection) -> Collection:
            turned = x.join(along.select(v=col.k, w=col.v), on="v").select(k=col.w, v=col.k)
            return _corners(x, along, candidates).concat(start, turned).distinct()

        return start.iterate(body)

    def plain(first: Rows, second: Rows) -> Rows:
        start, along = plainly.distinct(first), plainly.distinct(second)

        def step(x: Rows) -> Rows:
            by_value = plainly.map_rows(x, lambda row: (row[1], row[0]))
            turned = plainly.map_rows(plainly.join(by_value, along), lambda row: (row[2], row[1]))
            return plainly.distinct(plainly.concat(_corners_plainly(x, along), start, turned))

        return plainly.iterate(start, step)

    return build, plain


def _nested_three(first: Collection, second: Collection) -> Collection:
    """Three collections look each other up in a loop in a loop, one of them from the outer one."""
    along, own = second.distinct(), first.distinct()

    def inner(x: Collection) -> Collection:
        return x.iterate(lambda y: _corners(y, along, "fewest").concat(x).distinct(), name="inner")

    return own.iterate(
        lambda x: inner(x).filter(col.v >= 1).select(k=col.v, v=col.k).concat(own).distinct(), name="outer"
    )


def _nested_three_plainly(first: Rows, second: Rows) -> Rows:
    along, own = plainly.distinct(second), plainly.distinct(first)

    def inner(x: Rows) -> Rows:
        return plainly.iterate(x, lambda y: plainly.distinct(plainly.concat(_corners_plainly(y, along), x)))

    def step(x: Rows) -> Rows:
        far = plainly.filter_rows(inner(x), lambda row: cast(int, row[1]) >= 1)
        return plainly.distinct(plainly.concat(plainly.map_rows(far, lambda r: (r[1], r[0])), own))

    return plainly.iterate(own, step)


def _looked_at(first: Collection, second: Collection) -> Collection:
    """Rows pass stages that keep nothing: one looks on, two part them by when they come, one claims."""
    start, along = first.distinct(), second.distinct()

    def body(x: Collection) -> Collection:
        x.filter(col.k > 100).assert_empty("small keys")
        in_time, late = x.inspect(lambda row, time, diff: None).split_late("v", 2, clock=dd.clock(0, every=1))
        moved = in_time.concat(late).join(along.select(k=col.k, w=col.v), on="k").select(k=col.w, v=col.v)
        return moved.concat(start).distinct()

    return start.iterate(body)


def _looked_at_plainly(first: Rows, second: Rows) -> Rows:
    start, along = plainly.distinct(first), plainly.distinct(second)

    def step(x: Rows) -> Rows:
        moved = plainly.map_rows(plainly.join(x, along), lambda row: (row[2], row[1]))
        return plainly.distinct(plainly.concat(moved, start))

    return plainly.iterate(start, step)


BODIES: dict[str, tuple[Two, TwoPlainly]] = {
    "distances": (distances, _distances_plainly),
    "reach": (BINARY["reach in a loop"].build, BINARY["reach in a loop"].plain),
    "labels": _unary("least label in a loop"),
    "closure": (_closure, _closure_plainly),
    "counted": (_counted, _counted_plainly),
    "in turns": (_in_turns, _in_turns_plainly),
    "functions": (_by_functions, _by_functions_plainly),
    "filtered": (_filtered, _filtered_plainly),
    "nested": (_nested, _nested_plainly),
    "with itself": (_with_itself, _with_itself_plainly),
    "read by groups": (_read_by_groups, _read_by_groups_plainly),
    "nulls": (_with_nulls, _with_nulls_plainly),
    "first rows": (_firsts, _firsts_plainly),
    "first row goes round": (_first_alone, _first_alone_plainly),
    "looked at": (_looked_at, _looked_at_plainly),
    "three in order": _three_at_once("in order"),
    "three by the fewest": _three_at_once("fewest"),
    "nested three": (_nested_three, _nested_three_plainly),
}
