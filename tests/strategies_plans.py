"""Random queries over collections of small whole numbers: all operators, loops, conditions that can raise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from hypothesis import strategies as st

import differential as dd
from differential import Collection, Expr, col, lit

__all__ = ["draw_collection", "least", "read_twice"]

T = TypeVar("T")
Draw = Callable[[st.SearchStrategy[T]], T]
Wrap = Callable[["Draw[bool]", list[Collection]], None]

DEPTH_MAX = 7


def read_twice(draw: Draw[bool], made: list[Collection]) -> None:
    """Now and then something that was made before is read again: nodes with several readers."""
    if draw(st.booleans()):
        made.append(made[-1])


def draw_collection(
    draw: Draw[object], inputs: Sequence[Collection], again: Wrap, *, fails: bool = False
) -> Collection:
    """A collection made of `inputs` by random operators; `fails`: more of them fail on some rows."""
    made = list(inputs)
    makers = _MAKERS | _FAILING if fails else _MAKERS
    for _ in range(int(str(draw(st.integers(1, DEPTH_MAX))))):
        source = _one_of(draw, made)
        kind = str(draw(st.sampled_from(sorted(makers))))
        made.append(makers[kind](draw, source, made))
        again(draw, made)  # type: ignore[arg-type]  # a draw of anything draws booleans
    return made[-1]


def _one_of(draw: Draw[object], made: Sequence[Collection]) -> Collection:
    return made[int(str(draw(st.integers(0, len(made) - 1))))]


def _column(draw: Draw[object], source: Collection) -> str:
    return str(draw(st.sampled_from(source.schema.names)))


def _number(draw: Draw[object], source: Collection) -> Expr:
    """A column as a whole number without null."""
    name = _column(draw, source)
    expr = col(name)
    return expr.fill_null(0) if source.schema[name].type.nullable else expr


def _condition(draw: Draw[object], source: Collection) -> Expr:
    """Of several parts; some of them can raise."""
    parts = []
    for _ in range(int(str(draw(st.integers(1, 3))))):
        left, right = _number(draw, source), _number(draw, source)
        kind = draw(st.sampled_from(["compare", "compare", "bare", "columns", "divide", "null", "or"]))
        if kind == "divide":
            parts.append(lit(6) // left > 1)
        elif kind == "columns":
            parts.append(left <= right)
        elif kind == "bare":
            parts.append(col(_column(draw, source)) >= int(str(draw(st.integers(-1, 1)))))
        elif kind == "null":
            parts.append(col(_column(draw, source)).is_not_null())
        elif kind == "or":
            parts.append((left > 0) | (right == 1))
        else:
            parts.append(left >= int(str(draw(st.integers(-1, 2)))))
    found = parts[0]
    for part in parts[1:]:
        found = found & part
    return found


def _filter(draw: Draw[object], source: Collection, made: list[Collection]) -> Collection:
    return source.filter(_condition(draw, source))


def _select(draw: Draw[object], source: Collection, made: list[Collection]) -> Collection:
    kind = draw(st.sampled_from(["swap", "one", "compute", "constant", "twice"]))
    first, last = _column(draw, source), _column(draw, source)
    if kind == "swap":
        return source.select(**{name: col(name) for name in reversed(source.schema.names)})
    if kind == "one":
        return source.select(first)
    if kind == "compute":
        return source.select(x=dd.min_of(_number(draw, source) + 1, 3), y=_number(draw, source))
    if kind == "constant":
        return source.select(x=lit(1), y=col(last))
    return source.select(x=col(first), y=col(first))


def _join(draw: Draw[object], source: Collection, made: list[Collection]) -> Collection:
    other = _one_of(draw, made)
    if len(source.schema) > 4 or len(other.schema) > 4:
        source, other = source.select(_column(draw, source)), other.select(_column(draw, other))
    left = source.select(**{f"l{n}": _filled(source, name) for n, name in enumerate(source.schema.names)})
    right = other.select(**{f"r{n}": _filled(other, name) for n, name in enumerate(other.schema.names)})
    keys = min(len(left.schema), len(right.schema), int(str(draw(st.integers(1, 2)))))
    balance = draw(st.sampled_from([None, None, dd.Balance("matrix", units=2), dd.Balance("JB", units=3)]))
    return left.join(right, on={f"l{n}": f"r{n}" for n in range(keys)}, balance=balance)  # type: ignore[arg-type]


def _cross_join(draw: Draw[object], source: Collection, made: list[Collection]) -> Collection:
    """All pairs, mostly read on one side alone: of the other one no column is needed."""
    other = _one_of(draw, made)
    left = source.select(**{name: _number(draw, source) for name in ("l0", "l1")})
    right = other.select(**{name: _number(draw, other) for name in ("r0", "r1")})
    # A node of its own that can lose columns, and may have other readers.
    made += [left, right]
    pairs = left.cross_join(right)
    read = draw(st.sampled_from([("l1",), ("r1",), ("r1", "l0"), (), pairs.schema.names]))
    return pairs.select(*read) if read else pairs.select(x=lit(1))  # type: ignore[misc]


def _between(draw: Draw[object], source: Collection, made: list[Collection]) -> Collection:
    """Rows compared with few rows of some collection, which are mostly not read behind it."""
    other = _one_of(draw, made)
    left = source.select(**{name: col(_column(draw, source)) for name in ("l0", "l1")})
    number = _number(draw, other)
    if draw(st.booleans()):
        few = other.agg(r0=dd.max(_column(draw, other)), r1=dd.avg(_column(draw, other)))
    else:
        few = other.select(r0=number, r1=number).top_k(2, by="r0")
    compared = draw(st.sampled_from([col.l0, col.l1, col.l0 * 0.5, dd.coalesce(col.l0, 1)]))
    conditions = []
    for name in draw(st.sampled_from([("r0",), ("r1",), ("r0", "r1")])):  # type: ignore[attr-defined]
        sides = [compared, col(name)][:: int(str(draw(st.sampled_from([1, -1]))))]
        conditions.append(draw(st.sampled_from([dd.Expr.__lt__, dd.Expr.__le__, dd.Expr.__gt__]))(*sides))  # type: ignore[operator]
    pairs = left.cross_join(few) if draw(st.booleans()) else few.cross_join(left)
    for condition in conditions:
        pairs = pairs.filter(condition)
    read = draw(st.sampled_from([("l0",), ("l1", "l0"), ("l1",), ("r0", "l0")]))
    return pairs.select(*read)  # type: ignore[misc]


def _join_all(draw: Draw[object], source: Collection, made: list[Collection]) -> Collection:
    """Three around in a circle, one of them with a column more."""
    parts = []
    for names in ("ab", "bc", "ca"):
        one = _one_of(draw, [source, *made])
        parts.append(one.select(**{name: _number(draw, one) for name in names}))
    first = parts[0].with_columns(more=col.a + col.b)
    how = str(draw(st.sampled_from(["in order", "fewest"])))
    return dd.join_all([first, *parts[1:]], ["a", "b", "c"], candidates=how)  # type: ignore[arg-type]


def _filled(source: Collection, name: str) -> Expr:
    return col(name).fill_null(0) if source.schema[name].type.nullable else col(name)


def _concat(draw: Draw[object], source: Collection, made: list[Collection]) -> Collection:
    other = _one_of(draw, made)
    two = [each.select(x=_number(draw, each), y=_number(draw, each)) for each in (source, other)]
    return two[0].concat(two[1].negate() if draw(st.booleans()) else two[1])


def _constant(draw: Draw[object], source: Collection, made: list[Collection]) -> Collection:
    rows = draw(st.lists(st.tuples(st.integers(-1, 2), st.one_of(st.none(), st.integers(-1, 2))), max_size=3))
    fixed = dd.constant(source.plan.dataflow, rows, "x: int, y: int?")
    number = _number(draw, source)
    if draw(st.booleans()):
        return source.select(x=number, z=_number(draw, source)).join(fixed, on="x")
    return fixed.concat(source.select(x=number, y=lit(1, "int?")))


def _agg(draw: Draw[object], source: Collection, made: list[Collection]) -> Collection:
    wide = source.select(g=_number(draw, source), u=_number(draw, source), w=_number(draw, source))
    keys = draw(st.sampled_from([("g",), ("g", "u"), ()]))
    aggregates = {"n": dd.count(), "lo": dd.min("w"), "total": dd.sum("w"), "often": dd.mode("w")}
    aggregates |= {"mid": dd.percentile_disc("w", 0.5), "high": dd.percentile_disc("w", 0.9)}
    sets = [
        ("n",),
        ("lo",),
        ("n", "lo"),
        ("total",),
        ("n", "total"),
        ("mid",),
        ("high", "mid"),
        ("n", "mid"),
        ("often",),
    ]
    chosen = draw(st.sampled_from(sets))
    return wide.group_by(*keys).agg(**{name: aggregates[name] for name in chosen})  # type: ignore[misc, attr-defined]


def least(key: object, group: list[tuple[tuple[object, ...], int]]) -> list[tuple[object, ...]]:
    """A row twice: what it gives is no set."""
    del key
    present = sorted((row for row, count in group if count > 0), key=repr)
    return [present[0], present[0]] if present else []


def _function(draw: Draw[object], source: Collection, made: list[Collection]) -> Collection:
    narrow = source.select(g=_number(draw, source), w=_number(draw, source))
    return narrow.group_by("g").reduce(least, "w: int")


def _window(draw: Draw[object], source: Collection, made: list[Collection]) -> Collection:
    wide = source.select(k=_number(draw, source), x=_number(draw, source), y=_number(draw, source))
    keys = ("k",) if draw(st.booleans()) else ()
    window = wide.over(*keys, by=str(draw(st.sampled_from(["x", "y"]))))
    if draw(st.booleans()):
        first = window.with_columns(n=dd.row_number())
        return first.filter(col.n <= int(str(draw(st.integers(1, 2)))) if draw(st.booleans()) else col.n == 2)
    which = int(str(draw(st.integers(0, 2))))
    if draw(st.booleans()):
        return window.with_columns(z=(dd.lag("x"), dd.lead("y", 1, 0), dd.rank())[which])
    return window.with_columns(z=(dd.sum("x"), dd.count(), dd.max("y"))[which])


def _top_k(draw: Draw[object], source: Collection, made: list[Collection]) -> Collection:
    first, last = _column(draw, source), _column(draw, source)
    keys = draw(st.sampled_from([(), (first,)]))
    by = [col(last).desc() if draw(st.booleans()) else col(last).asc(nulls_last=True), first]
    by, ties = by[: 1 + int(bool(draw(st.booleans())))], bool(draw(st.booleans()))
    kind = draw(st.sampled_from([None, "row_number", "rank", "dense"]))
    if kind is None or "place" in source.schema:
        offset = int(bool(draw(st.booleans())))
        return source.top_k(2, by, keys=keys, offset=offset, ties=ties)  # type: ignore[arg-type]
    return source.top_k(2, by, keys=keys, rank="place", method=kind, ties=ties)  # type: ignore[arg-type]


def _loop(draw: Draw[object], source: Collection, made: list[Collection]) -> Collection:
    start = source.select(x=_number(draw, source), y=_number(draw, source)).distinct()
    other = _one_of(draw, made)
    steps = other.select(x=_number(draw, other), z=_number(draw, other)).distinct()
    condition = _condition(draw, start)
    is_late = draw(st.booleans())

    def body(variable: Collection) -> Collection:
        moved = variable.join(steps, on="x").select(x=dd.min_of(col.z, 2), y=lit("y"))
        moved = moved.select(x=col.x, y=lit(1)) if draw(st.booleans()) else variable
        moved = moved if is_late else moved.filter(condition)
        grown = moved.concat(variable, start).distinct()
        return grown.filter(condition).distinct() if is_late else grown

    def around(variable: Collection) -> Collection:
        inner = variable.iterate(body, name="inner", iterations_max=30)
        return inner.join(steps, on="x").select(x=dd.min_of(col.z, 2), y=col.y).concat(start).distinct()

    forms = ["to the end", "some times", "by priority", "with another", "in another"]
    form = draw(st.sampled_from(forms))
    if form == "in another":
        return start.iterate(around, name="loop", iterations_max=30)
    if form == "some times":
        return start.iterate(body, name="loop", times=3)
    if form == "by priority":
        return start.prioritized_iterate(
            lambda found, own: body(found).concat(own).distinct(), "y", name="loop"
        )
    if form == "with another":
        both = dd.iterate(
            {"one": start, "other": start.schema},
            lambda one, other: {"one": body(one), "other": one.concat(other).distinct()},
            name="loop",
            iterations_max=30,
        )
        second: Collection = both["other"]
        return second
    return start.iterate(body, name="loop", iterations_max=30)


_MAKERS: dict[str, Callable[[Draw[object], Collection, list[Collection]], Collection]] = {
    "filter": _filter,
    "filter again": _filter,
    "select": _select,
    "join": _join,
    "cross join": _cross_join,
    "join of all": _join_all,
    "between": _between,
    "concat": _concat,
    "constant": _constant,
    "agg": _agg,
    "function": _function,
    "top_k": _top_k,
    "window": _window,
    "distinct": lambda draw, source, made: source.distinct(),
    "consolidate": lambda draw, source, made: source.consolidate(),
    "negate": lambda draw, source, made: source.negate(),
    "loop": _loop,
}


def inverse(row: tuple[int, int]) -> tuple[int, int]:
    """No value for 1."""
    return row[0], 6 // (row[1] - 1)


def odd_groups(key: object, group: list[tuple[tuple[object, ...], int]]) -> list[tuple[int]]:
    """No value for groups with a row of 0."""
    del key
    return [(sum(6 // int(str(row[0])) * count for row, count in group),)]


def _divide(draw: Draw[object], source: Collection, made: list[Collection]) -> Collection:
    number, other = _number(draw, source), _number(draw, source)
    return source.select(x=lit(6) // (number - int(str(draw(st.integers(-1, 1))))), y=other)


def _map(draw: Draw[object], source: Collection, made: list[Collection]) -> Collection:
    return source.select(x=_number(draw, source), y=_number(draw, source)).map(inverse)


def _failing_function(draw: Draw[object], source: Collection, made: list[Collection]) -> Collection:
    narrow = source.select(g=_number(draw, source), w=_number(draw, source))
    return narrow.group_by("g").reduce(odd_groups, "w: int")


def _claim(draw: Draw[object], source: Collection, made: list[Collection]) -> Collection:
    return source.filter(_number(draw, source) == 2).assert_empty("no row of 2").concat(source)


def _failing_loop(draw: Draw[object], source: Collection, made: list[Collection]) -> Collection:
    """Rows that move on until they fail, or stop."""
    start = source.select(x=dd.min_of(_number(draw, source), 2), y=_number(draw, source))
    at = int(str(draw(st.integers(0, 4))))

    def body(variable: Collection) -> Collection:
        moved = variable.filter(col.x < 5).select(x=col.x + 1 + lit(0) // (col.x - at), y=col.y)
        rest = variable.filter(col.x >= 5)
        return moved.concat(rest) if draw(st.booleans()) else moved.concat(variable, rest).distinct()

    if draw(st.booleans()):
        return start.iterate(body, name="loop", times=2)
    return start.iterate(body, name="loop", iterations_max=30)


def _large_sum(draw: Draw[object], source: Collection, made: list[Collection]) -> Collection:
    """Sums of two large values leave 64 bits; means and numbers of rows do not."""
    wide = source.select(
        g=_number(draw, source), w=dd.min_of(dd.max_of(_number(draw, source), -1), 1) * 2**62
    )
    found = wide.group_by("g").agg(total=dd.sum("w"), n=dd.count(), least=dd.min("w"))
    return found.select(x=col.total // 2**62, y=col.n)


def _overflowing_loop(draw: Draw[object], source: Collection, made: list[Collection]) -> Collection:
    """Steps that add up to more than 64 bits; a kernel adds them where it can."""
    other = _one_of(draw, made)
    steps = other.select(x=_number(draw, other), z=dd.min_of(_number(draw, other), 3))
    start = source.select(x=_number(draw, source), y=dd.min_of(dd.max_of(_number(draw, source), -2), 2))
    by = int(str(draw(st.sampled_from([1 << 62, -(1 << 62), (1 << 61) + 7]))))
    how = str(draw(st.sampled_from(["distinct", "least", "greatest"])))

    def body(variable: Collection) -> Collection:
        moved = variable.join(steps, on="x").select(x=col.z, y=col.y + by).concat(start)
        if how == "distinct":
            return moved.distinct()
        return moved.group_by("x").agg(y=dd.min("y") if how == "least" else dd.max("y"))

    found = start.iterate(body, name="loop", iterations_max=30)
    return found.select(x=col.x, y=col.y // (1 << 61))


_FAILING: dict[str, Callable[[Draw[object], Collection, list[Collection]], Collection]] = {
    "divide": _divide,
    "divide again": _divide,
    "map": _map,
    "function that fails": _failing_function,
    "claim": _claim,
    "loop that fails": _failing_loop,
    "loop that overflows": _overflowing_loop,
    "large sum": _large_sum,
}
"""Operators that have no answer for some rows."""
