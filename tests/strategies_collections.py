"""Operators of collections with their plain definitions, histories to run them on, random compositions.

Every operator here takes and gives rows of `k: int, v: int`, so that any two can be composed. `build` makes
it of a `differential.Collection`, `plain` says what it means for a multiset. Rows and times are few and
small, so that they meet; multiplicities may be negative at any time.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import cast

import operators_of_loops as loops
import operators_of_sets_and_joins as more
from hypothesis import seed, settings
from hypothesis import strategies as st
from reference import collection as plainly
from reference.collection import Collection as Rows
from reference.collection import Row, Time
from reference.dataflow import Change
from reference.timed.plain import asof, sessions, windows_of

import differential as dd
from differential import Collection, col

__all__ = [
    "BINARY",
    "UNARY",
    "Binary",
    "Composition",
    "Unary",
    "compositions",
    "compositions_around_loops",
    "examples",
    "histories",
    "least_two",
    "loops_around_joined_loops",
    "loops_at_random",
    "reach",
    "reach_plainly",
    "repeat_until",
    "times",
]

NUMBERS = "k: int, v: int"
_REPETITIONS_MAX = 20


def examples(share: float) -> settings:
    """Settings for a share of the examples of the profile: one example here is a whole dataflow."""
    return settings(max_examples=max(1, int(settings().max_examples * share)))


def repeat_until(is_tried: Callable[[], bool], law: Callable[[], None]) -> None:
    """Carry a random law out until its examples have tried what the test is about.

    Few examples may leave a case out. Each repetition has a seed of its own, for with that of the run
    Hypothesis would draw the first examples again. A case that no repetition tries fails the assertion behind
    this call.
    """
    law()
    for repetition in range(_REPETITIONS_MAX):
        if is_tried():
            return
        seed(f"repetition {repetition}")(law)()


def times(depth: int, value_max: int = 3) -> st.SearchStrategy[Time]:
    """Times with `depth` small coordinates."""
    return st.tuples(*[st.integers(0, value_max)] * depth)


def histories(
    depth: int,
    rows: st.SearchStrategy[Row] | None = None,
    size_max: int = 10,
    diffs: tuple[int, ...] = (-2, -1, 1, 1, 2),
) -> st.SearchStrategy[list[Change]]:
    """Updates of small rows at times with `depth` coordinates; those of one row often meet."""
    each: st.SearchStrategy[Row] = rows if rows is not None else st.tuples(_numbers(), _numbers())
    return st.lists(st.tuples(each, times(depth), st.sampled_from(diffs)), max_size=size_max)


def _numbers() -> st.SearchStrategy[int]:
    return st.integers(-1, 2)


@dataclass(frozen=True)
class Unary:
    """An operator with one input."""

    name: str
    build: Callable[[Collection], Collection]
    plain: Callable[[Rows], Rows]

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Binary:
    """An operator with two inputs."""

    name: str
    build: Callable[[Collection, Collection], Collection]
    plain: Callable[[Rows, Rows], Rows]

    def __repr__(self) -> str:
        return self.name


def _per_row(function: Callable[[int, int], Iterable[tuple[int, int]]]) -> Callable[[Rows], Rows]:
    return lambda rows: plainly.flat_map(rows, lambda row: function(*cast(tuple[int, int], row)))


def _aggregated(kind: str) -> Callable[[Rows], Rows]:
    return lambda rows: plainly.aggregate(rows, [(kind, 0)])


def _days(number: int) -> dt.timedelta:
    return dt.timedelta(days=number)


def _sessions(source: Collection) -> Collection:
    found = source.window("v", dd.session(2, by="k"))
    return found.select(k=col.window_start, v=col.v + col.window_end)


def least_two(key: object, group: list[tuple[tuple[object, ...], int]]) -> list[tuple[object, ...]]:
    """The two least values that the group has, multiplicity positive: a function for `reduce`."""
    del key
    return sorted(row for row, count in group if count > 0)[:2]


def _all_at_once(rows: Rows) -> Rows:
    found = plainly.aggregate(rows, [("max", 0), ("count", 0), ("min", 0), ("sum", 0)])
    return plainly.map_rows(found, lambda row: (row[0], _mixed(*cast(tuple[int, int, int, int], row[1:]))))


def _mixed(most: int, count: int, least: int, total: int) -> int:
    return most - 3 * count + 2 * least + total


def _all_aggregates(source: Collection) -> Collection:
    found = source.group_by("k").agg(hi=dd.max("v"), n=dd.count(), lo=dd.min("v"), total=dd.sum("v"))
    return found.select(k=col.k, v=col.hi - 3 * col.n + 2 * col.lo + col.total)


def _days_and_decimals(source: Collection) -> Collection:
    given = source.select(k=col.k, day=col.v.cast("date"), money=col.v.cast("decimal(12, 2)"))
    found = given.group_by("k").agg(
        last=dd.max("day"),
        least=dd.min("money"),
        total=dd.sum("money"),
        days=dd.count_distinct("day"),
        mean=dd.avg("money"),
    )
    last, least, total, mean = (
        each.cast("int") for each in (col.last, col.least, col.total, col.mean * 1_000_000)
    )
    return found.select(k=col.k, v=last - 2 * least + 3 * total + 5 * col.days + 7 * mean)


def _weighed(last: int, least: int, total: int, days: int, rows: int) -> int:
    size = (2 * abs(total) * 1_000_000 + abs(rows)) // (2 * abs(rows))  # rounded, halves away from zero
    mean = size if (total >= 0) == (rows > 0) else -size
    return last - 2 * least + 3 * total + 5 * days + 7 * mean


def _statistics(source: Collection) -> Collection:
    """Sums of floats, of what may be null, of expressions and conditions, different values: all at once."""
    given = source.with_columns(half=col.v * 0.5, some=dd.when(col.v > 0).then(col.v))
    found = given.group_by(col.k).agg(
        total=dd.sum("half"),
        mean=dd.avg(col.v * 3),
        spread=dd.variance("half", sample=False),
        n=dd.count("some"),
        some=dd.sum("some"),
        values=dd.count_distinct("some"),
        high=dd.count_if(col.v > 1),
        every=dd.all_of(col.v > 0),
        one=dd.any_of(col.v > 1),
    )
    flags = dd.when(col.every).then(100).otherwise(0) + dd.when(col.one).then(200).otherwise(0)
    floats = dd.when(col.total > col.mean).then(400).otherwise(0) + dd.when(col.spread > 0.2).then(
        800
    ).otherwise(0)
    return found.select(
        k=col.k, v=flags + floats + col.n + 2 * col.some.fill_null(9) + 3 * col.values + 5 * col.high
    )


def _statistics_plainly(rows: Rows) -> Rows:
    def given(row: Row) -> Row:
        v = cast(int, row[1])
        return (row[0], v * 0.5, v * 3, v if v > 0 else None, v > 1, v > 0)

    asked = [
        ("sum", 0),
        ("avg", 1),
        ("variance_pop", 0),
        ("count_values", 2),
        ("sum", 2),
        ("count_distinct", 2),
    ]
    asked += [("count_if", 3), ("all", 4), ("any", 3)]

    def combined(row: Row) -> Row:
        total, mean, spread, n, some, values, high, every, one = cast("tuple[int, ...]", row[1:])
        flags = 100 * every + 200 * one + 400 * (total > mean) + 800 * (spread > 0.2)
        return (row[0], flags + n + 2 * (9 if cast("object", some) is None else some) + 3 * values + 5 * high)

    return plainly.map_rows(plainly.aggregate(plainly.map_rows(rows, given), asked), combined)


def _without_key(rows: Rows) -> Rows:
    found = plainly.aggregate_all(plainly.map_rows(rows, lambda row: row[1:]), [("min", 0), ("count", 0)])
    return plainly.map_rows(found, lambda row: (-3 if row[0] is None else row[0], row[1]))


def reach(roots: Collection, edges: Collection) -> Collection:
    """Pairs (k, v) such that v can be reached from a pair (k, …) of `roots` along `edges`, in a loop."""
    along = edges.distinct().select(src=col.k, dst=col.v)
    start = roots.distinct()
    return start.iterate(
        lambda r: r.join(along, on={"v": "src"}).select(k=col.k, v=col.dst).concat(start).distinct(),
        name="reach",
    )


def reach_plainly(roots: Rows, edges: Rows) -> Rows:
    """What `reach` means."""
    along = [row for row, count in edges.items() if count > 0]
    start = plainly.distinct(roots)

    def step(reached: Rows) -> Rows:
        further = [(k, w) for k, v in reached for u, w in along if u == v]
        return plainly.distinct(plainly.concat(plainly.collection(further), start))

    return plainly.iterate(start, step)


def _climb(source: Collection) -> Collection:
    """A loop without any operator with state in its body: values climb to 3."""
    return source.iterate(lambda x: x.select(k=col.k, v=dd.max_of(col.v, dd.min_of(col.v + 1, 3))))


def _labels(source: Collection) -> Collection:
    """The least key that leads to each value: a loop that ends in an aggregate."""
    edges = source.distinct()
    own = edges.select(k=col.k, v=col.k).distinct()
    return own.iterate(
        lambda labels: (
            labels.join(edges.select(k=col.k, to=col.v), on="k")
            .select(k=col.to, v=col.v)
            .concat(own)
            .group_by("k")
            .agg(v=dd.min("v"))
        )
    )


def _labels_plainly(rows: Rows) -> Rows:
    edges = plainly.distinct(rows)
    own = plainly.distinct(plainly.map_rows(edges, lambda row: (row[0], row[0])))

    def step(labels: Rows) -> Rows:
        proposed = plainly.map_rows(plainly.join(labels, edges), lambda row: (row[2], row[1]))
        return plainly.aggregate(plainly.concat(proposed, own), [("min", 0)])

    return plainly.iterate(own, step)


def _numbered(source: Collection) -> Collection:
    """The number of each row among those of its key, by descending value: rows of one value share it."""
    found = source.group_by("k").rank("n", by=col.v.desc(), method="rank")
    return found.select(k=col.k, v=10 * col.v + col.n)


def _numbered_plainly(rows: Rows) -> Rows:
    found = plainly.top_k(rows, lambda row: -cast(int, row[0]), (0, 10**6), keys=1, rank="rank")
    return plainly.map_rows(found, lambda row: (row[0], 10 * cast(int, row[1]) + cast(int, row[2])))


UNARY: dict[str, Unary] = {
    operator.name: operator
    for operator in (
        Unary(
            "select",
            lambda c: c.select(k=col.v, v=col.k + col.v),
            _per_row(lambda k, v: [(v, k + v)]),
        ),
        Unary("swap", lambda c: c.select(v=col.k, k=col.v).select("k", "v"), _per_row(lambda k, v: [(v, k)])),
        Unary("constant", lambda c: c.select(k=1, v=col.v), _per_row(lambda k, v: [(1, v)])),
        Unary(
            "filter",
            lambda c: c.filter(col.k != col.v).filter(col.v >= 0),
            _per_row(lambda k, v: [(k, v)] if k != v and v >= 0 else []),
        ),
        Unary(
            "tumbling windows",
            lambda c: c.window("v", dd.tumbling(2)).select(k=col.k, v=col.window_start),
            _per_row(lambda k, v: [(k, start) for start in windows_of(v, 2, 2)]),
        ),
        Unary(
            "sliding windows",
            lambda c: c.window("v", dd.sliding(3, 2, origin=1)).select(k=col.k, v=col.window_end - 2),
            _per_row(lambda k, v: [(k, start + 1) for start in windows_of(v, 3, 2, 1)]),
        ),
        Unary(
            "windows of days",
            lambda c: (
                c.with_columns(at=col.v.cast("date"))
                .window("at", dd.sliding(_days(3), _days(2), origin=dt.date(1970, 1, 2)))
                .select(k=col.k, v=dd.date_diff(col.window_end, col.at))
            ),
            _per_row(lambda k, v: [(k, start + 3 - v) for start in windows_of(v, 3, 2, 1)]),
        ),
        Unary(
            "sessions",
            _sessions,
            lambda rows: plainly.map_rows(
                sessions(rows, 2), lambda row: (row[2], cast(int, row[1]) + cast(int, row[3]))
            ),
        ),
        Unary("map", lambda c: c.map(lambda r: (abs(r.v), r.k)), _per_row(lambda k, v: [(abs(v), k)])),
        Unary(
            "flat_map",
            lambda c: c.flat_map(lambda r: [(r.k, i) for i in range(min(r.v, 3))]),
            _per_row(lambda k, v: [(k, i) for i in range(min(v, 3))]),
        ),
        Unary("negate", lambda c: c.negate(), plainly.negate),
        Unary("concat with itself", lambda c: c.concat(c, c), lambda rows: plainly.concat(rows, rows, rows)),
        Unary("distinct", lambda c: c.distinct(), plainly.distinct),
        Unary("consolidate", lambda c: c.consolidate(), plainly.consolidate),
        Unary("inspect", lambda c: c.inspect(lambda row, time, diff: None), plainly.consolidate),
        Unary(
            "count",
            lambda c: c.group_by("k").agg(v=dd.count()),
            lambda rows: plainly.aggregate(plainly.map_rows(rows, lambda row: row[:1]), [("count", 0)]),
        ),
        Unary("sum", lambda c: c.group_by("k").agg(v=dd.sum("v")), _aggregated("sum")),
        Unary("min", lambda c: c.group_by("k").agg(v=dd.min("v")), _aggregated("min")),
        Unary("max", lambda c: c.group_by("k").agg(v=dd.max("v")), _aggregated("max")),
        Unary(
            "max of divided groups",
            lambda c: c.group_by("k", balance=dd.Balance("JB6", units=6, groups=2)).agg(v=dd.max("v")),
            _aggregated("max"),
        ),
        Unary("several aggregates", _all_aggregates, _all_at_once),
        Unary("statistics", _statistics, _statistics_plainly),
        Unary(
            "aggregates of days and decimals",
            _days_and_decimals,
            lambda rows: plainly.map_rows(
                plainly.aggregate(
                    rows, [("max", 0), ("min", 0), ("sum", 0), ("count_distinct", 0), ("count", 0)]
                ),
                lambda row: (row[0], _weighed(*cast("tuple[int, int, int, int, int]", row[1:]))),
            ),
        ),
        Unary(
            "aggregates of everything",
            lambda c: c.agg(least=dd.min("v"), n=dd.count()).select(k=col.least.fill_null(-3), v=col.n),
            _without_key,
        ),
        Unary(
            "reduce",
            lambda c: c.group_by("k").reduce(least_two, "v: int"),
            lambda rows: plainly.reduce(rows, lambda key, group: least_two(key, list(group.items()))),
        ),
        Unary(
            "reduce to multiplicities",
            lambda c: c.group_by("v").reduce(_counted, "k: int").select("k", "v"),
            lambda rows: plainly.map_rows(
                plainly.reduce(
                    plainly.map_rows(rows, lambda row: (row[1], row[0])),
                    lambda key, group: _counted_plainly(group),
                ),
                lambda row: (row[1], row[0]),
            ),
        ),
        Unary(
            "top 2 of a key",
            lambda c: c.group_by("k").top_k(2, by=col.v.desc()),
            lambda rows: plainly.top_k(rows, lambda row: -cast(int, row[0]), (0, 2), keys=1),
        ),
        Unary(
            "top 2 of a divided key",
            lambda c: c.group_by("k", balance=dd.Balance("JB", units=3)).top_k(2, by=col.v.desc()),
            lambda rows: plainly.top_k(rows, lambda row: -cast(int, row[0]), (0, 2), keys=1),
        ),
        Unary(
            "second to fourth of all",
            lambda c: c.order_by(col.v, col.k.desc()).limit(3, offset=1),
            lambda rows: plainly.top_k(rows, lambda row: (row[1], -cast(int, row[0])), (1, 4)),
        ),
        Unary("rank", _numbered, _numbered_plainly),
        Unary(
            "climb in a loop",
            _climb,
            _per_row(lambda k, v: [(k, max(v, 3))]),
        ),
        Unary("least label in a loop", _labels, _labels_plainly),
    )
}


UNARY |= {name: Unary(name, build, plain) for name, build, plain in (*more.UNARY, *loops.UNARY)}


def _counted(key: object, group: list[tuple[tuple[object, ...], int]]) -> list[int]:
    """The sum of all multiplicities, once for each row: equal rows given twice are two rows."""
    del key
    return [sum(count for _, count in group)] * len(group)


def _counted_plainly(group: Rows) -> list[Row]:
    return [(sum(group.values()),)] * len(group)


BINARY: dict[str, Binary] = {
    operator.name: operator
    for operator in (
        Binary("concat", lambda a, b: a.concat(b), plainly.concat),
        Binary(
            "concat in another order of columns",
            lambda a, b: a.concat(b.select(v=col.v, k=col.k)),
            plainly.concat,
        ),
        Binary(
            "difference",
            lambda a, b: a.concat(b.negate()),
            lambda a, b: plainly.concat(a, plainly.negate(b)),
        ),
        Binary(
            "join",
            lambda a, b: a.join(b.select(k=col.k, w=col.v), on="k").select(k=col.w, v=col.v),
            lambda a, b: plainly.map_rows(plainly.join(a, b), lambda row: (row[2], row[1])),
        ),
        Binary(
            "join of differently named keys",
            lambda a, b: a.join(b.select(j=col.k, w=col.v), on={"v": "j"}).select(k=col.k, v=col.w - col.v),
            lambda a, b: plainly.map_rows(
                plainly.join(plainly.map_rows(a, lambda row: (row[1], row[0])), b),
                lambda row: (row[1], cast(int, row[2]) - cast(int, row[0])),
            ),
        ),
        Binary(
            "join of whole rows",
            lambda a, b: a.join(b, on=["v", "k"]).select("k", "v"),
            lambda a, b: plainly.map_rows(
                plainly.join(a, b, keys=2),
                lambda row: (row[0], row[1]),
            ),
        ),
        Binary(
            "join of all pairs",
            lambda a, b: a.join(b.select(x=col.k, y=col.v), on=[]).select(k=col.x, v=col.v + col.y),
            lambda a, b: plainly.map_rows(
                plainly.join(a, b, keys=0),
                lambda row: (row[2], cast(int, row[1]) + cast(int, row[3])),
            ),
        ),
        Binary(
            "as of before",
            lambda a, b: a.asof_join(b, on="k", left_time="v").select(k=col.v, v=col.v_right.fill_null(-5)),
            lambda a, b: plainly.map_rows(asof(a, b), lambda row: (row[1], -5 if row[2] is None else row[2])),
        ),
        Binary(
            "as of after",
            lambda a, b: a.asof_join(
                b, on="k", left_time="v", direction="forward", tolerance=1, exact=False, how="inner"
            ).select(k=col.v, v=col.v_right),
            lambda a, b: plainly.map_rows(
                asof(a, b, after=True, tolerance=1, exact=False, inner=True), lambda row: (row[1], row[2])
            ),
        ),
        Binary("reach in a loop", reach, reach_plainly),
    )
}


BINARY |= {name: Binary(name, build, plain) for name, build, plain in (*more.BINARY, *loops.BINARY)}


@dataclass(frozen=True)
class Composition:
    """Operators one after another over two sources; each binary one takes what came before and a source."""

    steps: tuple[tuple[Unary | Binary, int], ...]

    def __repr__(self) -> str:
        return " → ".join(f"{operator.name}({source})" for operator, source in self.steps)

    def build(self, first: Collection, second: Collection) -> Collection:
        """As a dataflow."""
        current = first
        for operator, source in self.steps:
            other = (first, second)[source]
            current = (
                operator.build(current) if isinstance(operator, Unary) else operator.build(current, other)
            )
        return current.select("k", "v")

    def plain(self, first: Rows, second: Rows) -> Rows:
        """What it means."""
        current = first
        for operator, source in self.steps:
            other = (first, second)[source]
            current = (
                operator.plain(current) if isinstance(operator, Unary) else operator.plain(current, other)
            )
        return current


_GROWING: list[Unary | Binary] = [
    *(
        UNARY[name]
        for name in ("select", "swap", "filter", "map", "flat_map", "distinct", "consolidate", "map batches")
    ),
    *(
        BINARY[name]
        for name in ("concat", "join", "join of differently named keys", "join of whole rows", "intersect")
    ),
    *(BINARY[name] for name in ("semi join with null keys", "inner join with conditions", "reach in a loop")),
]
"""Of more rows they make no fewer, as long as no multiplicity is negative."""


def _small(c: Collection) -> Collection:
    return c.select(k=col.k % 4, v=col.v % 4)


def _looped(name: str, inside: Composition) -> Binary:
    """The least set that has the first source and what the steps make of it: a loop that ends."""

    def build(a: Collection, b: Collection) -> Collection:
        start, along = _small(a).distinct(), b.distinct()
        return start.iterate(lambda x: _small(inside.build(x, along)).concat(start).distinct(), name=name)

    def plain(a: Rows, b: Rows) -> Rows:
        start, along = plainly.distinct(_small_plainly(a)), plainly.distinct(b)
        return plainly.iterate(
            start,
            lambda x: plainly.distinct(plainly.concat(_small_plainly(inside.plain(x, along)), start)),
        )

    return Binary(f"loop of ({inside!r})", build, plain)


_small_plainly = _per_row(lambda k, v: [(k % 4, v % 4)])


def loops_at_random(levels: int) -> st.SearchStrategy[Binary]:
    """Loops of one to three steps, `levels` deep at most: a step may be a loop again."""
    plain = [one for one in _GROWING if levels > 1 or "loop" not in one.name]
    steps: st.SearchStrategy[Unary | Binary] = st.sampled_from(plain)
    if levels > 1:
        steps = st.one_of(steps, loops_at_random(levels - 1))
    # The second source of a step is what does not change in the loop, or, now and then, what goes round.
    chosen = st.lists(st.tuples(steps, st.sampled_from([1, 1, 0])), min_size=1, max_size=3)
    return chosen.map(lambda found: _looped(f"level {levels}", Composition(tuple(found))))


_JOINS: list[Unary | Binary] = [
    BINARY[name]
    for name in ("join", "join of differently named keys", "join of whole rows", "semi join with null keys")
]


def loops_around_joined_loops() -> st.SearchStrategy[Binary]:
    """A loop in which a join reads what leaves another one: with what does not change, or what goes round."""
    inner = st.tuples(loops_at_random(1), st.sampled_from([1, 1, 0]))
    join = st.tuples(st.sampled_from(_JOINS), st.sampled_from([1, 1, 0]))
    return st.tuples(inner, join).map(lambda steps: _looped("outer", Composition(steps)))


def compositions(loops: bool = True) -> st.SearchStrategy[Composition]:
    """Two to six operators, with loops among them or not."""
    operators: list[Unary | Binary] = [*UNARY.values(), *BINARY.values(), *BINARY.values()]
    chosen = [operator for operator in operators if loops or "loop" not in operator.name]
    step = st.tuples(st.sampled_from(chosen), st.integers(0, 1))
    return st.lists(step, min_size=2, max_size=6).map(lambda steps: Composition(tuple(steps)))


def compositions_around_loops(levels: int) -> st.SearchStrategy[Composition]:
    """None to three operators without loops, then a loop with loops in it, then none to two without."""
    every: list[Unary | Binary] = [*UNARY.values(), *BINARY.values()]
    operators = [each for each in every if "loop" not in each.name]
    source = st.integers(0, 1)
    step: st.SearchStrategy[tuple[Unary | Binary, int]] = st.tuples(st.sampled_from(operators), source)
    loop: st.SearchStrategy[tuple[Unary | Binary, int]] = st.tuples(loops_at_random(levels), source)
    parts = st.tuples(st.lists(step, max_size=3), loop, st.lists(step, max_size=2))
    return parts.map(lambda found: Composition((*found[0], found[1], *found[2])))
