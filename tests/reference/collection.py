"""What does each operator mean? Slow and obvious definitions, the twins of everything in `differential`.

    row           a tuple of Python values
    collection    Counter: row → multiplicity, never 0, possibly negative
    history       dict: time → collection of differences at that time

Operators are functions from collections to collections, with no notion of time. `difference` lifts one to
histories: at every time that matters it applies the plain function to the accumulated inputs, and subtracts
what its output has already accumulated to. That is the meaning that every operator of `differential` must
have (DESIGN, "The meaning that never changes"), so a test compares an operator's output with
`difference(plain)(inputs)`, or, where the operator may choose between equivalent histories, with `plain` at
every time of `closure`.

Times are tuples. Which order they have is a parameter: `less_equal` and `lub` are by default those of the
product order. Any order in which chains of neighbouring coordinates compare lexicographically will do, for
then the lexicographic order of the whole tuple is a linear extension of it.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Literal, Protocol, cast

__all__ = [
    "Collection",
    "History",
    "How",
    "Lifted",
    "Plain",
    "PlainOfMany",
    "Row",
    "Time",
    "accumulated_at",
    "aggregate",
    "aggregate_all",
    "assert_same_meaning",
    "closure",
    "collection",
    "concat",
    "consolidate",
    "difference",
    "distinct",
    "except_all",
    "filter_rows",
    "flat_map",
    "groups",
    "history",
    "intersect",
    "intersect_all",
    "iterate",
    "iterate_rounds",
    "join",
    "join_all",
    "joined",
    "map_rows",
    "negate",
    "product_less_equal",
    "product_lub",
    "reduce",
    "select",
    "subtract",
    "symmetric",
    "threshold",
    "top_k",
]

Row = tuple[Hashable, ...]
Time = tuple[int, ...]
Collection = Counter[Row]
History = dict[Time, Collection]


class Lifted(Protocol):
    """An operator on histories."""

    def __call__(self, *inputs: History) -> History: ...


class PlainOfMany(Protocol):
    """An operator's plain definition, of any number of inputs."""

    def __call__(self, *inputs: Collection) -> Collection: ...


Plain = PlainOfMany | Callable[[Collection], Collection] | Callable[[Collection, Collection], Collection]


# Times and histories


def product_less_equal(left: Time, right: Time) -> bool:
    """Every coordinate less or equal."""
    return all(a <= b for a, b in zip(left, right, strict=True))


def product_lub(left: Time, right: Time) -> Time:
    """The least time not before either."""
    return tuple(max(a, b) for a, b in zip(left, right, strict=True))


def collection(rows: Iterable[Row] | Mapping[Row, int]) -> Collection:
    """A collection of rows, or of rows with multiplicities; zeros are dropped."""
    counted = rows if isinstance(rows, Mapping) else Counter(rows)
    return Counter({row: count for row, count in counted.items() if count})


def history(updates: Iterable[tuple[Row, Time, int]]) -> History:
    """The history of (row, time, diff) triples, those of equal row and time summed."""
    found: History = {}
    for row, time, diff in updates:
        found.setdefault(time, Counter())[row] += diff
    consolidated = {time: collection(rows) for time, rows in found.items()}
    return {time: rows for time, rows in consolidated.items() if rows}


def accumulated_at(
    of: History, time: Time, less_equal: Callable[[Time, Time], bool] = product_less_equal
) -> Collection:
    """The collection at `time`: the sum of all differences at times ≤ `time`."""
    total: Collection = Counter()
    for at, rows in of.items():
        if less_equal(at, time):
            for row, diff in rows.items():
                total[row] += diff
    return collection(total)


def closure(times: Iterable[Time], lub: Callable[[Time, Time], Time] = product_lub) -> list[Time]:
    """`times` and all their least upper bounds, smallest first (a linear extension of the order)."""
    closed: set[Time] = set()
    for time in times:
        closed |= {time} | {lub(time, other) for other in closed}
    return sorted(closed)


def difference(
    plain: Plain,
    less_equal: Callable[[Time, Time], bool] = product_less_equal,
    lub: Callable[[Time, Time], Time] = product_lub,
) -> Lifted:
    """The one function of histories that accumulates, at every time, to `plain` of its accumulated inputs."""

    def lifted(*inputs: History) -> History:
        output: History = {}
        for time in closure({time for one in inputs for time in one}, lub):
            wanted = cast(PlainOfMany, plain)(*(accumulated_at(one, time, less_equal) for one in inputs))
            already = accumulated_at(output, time, less_equal)
            change = concat(wanted, negate(already))
            if change:
                output[time] = change
        return output

    return lifted


def assert_same_meaning(
    actual: History,
    plain: Plain,
    *inputs: History,
    less_equal: Callable[[Time, Time], bool] = product_less_equal,
    lub: Callable[[Time, Time], Time] = product_lub,
) -> None:
    """Fail unless `actual` accumulates to `plain` of the inputs at every time of the closure of all."""
    times = {time for one in (*inputs, actual) for time in one}
    for time in closure(times, lub):
        have = accumulated_at(actual, time, less_equal)
        want = cast(PlainOfMany, plain)(*(accumulated_at(one, time, less_equal) for one in inputs))
        assert have == want, f"at {time}: {dict(have)} instead of {dict(want)}"


# Operators that treat each row by itself


def map_rows(rows: Collection, function: Callable[[Row], Row]) -> Collection:
    """`function` of each row."""
    return flat_map(rows, lambda row: [function(row)])


select = map_rows
"""Columns computed from columns are a function of the row."""


def flat_map(rows: Collection, function: Callable[[Row], Iterable[Row]]) -> Collection:
    """All rows of `function` of each row."""
    found: Collection = Counter()
    for row, count in rows.items():
        for result in function(row):
            found[result] += count
    return collection(found)


def filter_rows(rows: Collection, condition: Callable[[Row], object]) -> Collection:
    """The rows for which `condition` is true."""
    return collection({row: count for row, count in rows.items() if condition(row)})


def concat(*many: Collection) -> Collection:
    """Multiplicities added."""
    total: Collection = Counter()
    for rows in many:
        for row, count in rows.items():
            total[row] += count
    return collection(total)


def negate(rows: Collection) -> Collection:
    """Opposite multiplicities."""
    return collection({row: -count for row, count in rows.items()})


def consolidate(rows: Collection) -> Collection:
    """The same collection: consolidation has no meaning, only an effect on how it is stored."""
    return collection(rows)


# Operators that look at several rows


def distinct(rows: Collection) -> Collection:
    """Each row of positive multiplicity once."""
    return collection({row: 1 for row, count in rows.items() if count > 0})


def join(left: Collection, right: Collection, keys: int = 1) -> Collection:
    """Pairs of rows with equal first `keys` columns: key, rest of left, rest of right; counts multiplied."""
    by_key: defaultdict[Row, list[tuple[Row, int]]] = defaultdict(list)
    for other, times in right.items():
        by_key[other[:keys]].append((other[keys:], times))
    found: Collection = Counter()
    for one, count in left.items():
        for rest, times in by_key.get(one[:keys], ()):
            found[(*one, *rest)] += count * times
    return collection(found)


def join_all(parts: Sequence[tuple[Sequence[str], Collection]]) -> Collection:
    """Rows that agree in columns of one name; parts are these names ("ab" are a and b) and rows.

    One row of each part in turn, counts multiplied; columns in the order in which they are first seen. None
    equals nothing.
    """
    named: list[tuple[dict[str, Hashable], int]] = [({}, 1)]
    for names, rows in parts:
        seen = [place for place, name in enumerate(names) if name in named[0][0]] if named else []
        by_seen: defaultdict[Row, list[tuple[Row, int]]] = defaultdict(list)
        for row, count in rows.items():
            if all(row[place] is not None for place in seen):
                by_seen[tuple(row[place] for place in seen)].append((row, count))
        named = [
            ({**found, **dict(zip(names, row, strict=True))}, times * count)
            for found, times in named
            for row, count in by_seen.get(tuple(found[names[place]] for place in seen), ())
        ]
    together: Collection = Counter()
    for found, times in named:
        together[tuple(found.values())] += times
    return collection(together)


def groups(rows: Collection, keys: int = 1) -> dict[Row, Collection]:
    """The rows of each key (the first `keys` columns) without it; a key is there if one of its rows is."""
    found: dict[Row, Collection] = {}
    for row, count in collection(rows).items():
        found.setdefault(row[:keys], Counter())[row[keys:]] += count
    return found


def reduce(
    rows: Collection, function: Callable[[Row, Collection], Iterable[Row] | Mapping[Row, int]], keys: int = 1
) -> Collection:
    """`function(key, group)` gives rows, or rows with multiplicities; the key is put before each."""
    found: Collection = Counter()
    for key, group in groups(rows, keys).items():
        for row, count in collection(function(key, group)).items():
            found[(*key, *row)] += count
    return collection(found)


CHOSEN = ("min", "max")
"""Aggregates that are a value of the group; all others are made of sums."""


def aggregate(rows: Collection, aggregates: Sequence[tuple[str, int]], keys: int = 1) -> Collection:
    """For each key one row: the key, then each aggregate (name, index of the column after the key).

    A group is there while its multiplicities sum to something other than 0; if min or max is asked for, while
    it has a value of positive multiplicity; if both are, while both.
    """

    def one_row(key: Row, group: Collection) -> list[Row]:
        if any(name not in CHOSEN for name, _ in aggregates) and sum(group.values()) == 0:
            return []
        found = [
            added_up(name, values_of(group, -1 if name == "count" else column)) for name, column in aggregates
        ]
        if any(name in CHOSEN and value is None for (name, _), value in zip(aggregates, found, strict=True)):
            return []
        return [tuple(found)]

    return reduce(rows, one_row, keys)


def aggregate_all(rows: Collection, aggregates: Sequence[tuple[str, int]]) -> Collection:
    """Aggregates of all rows: always one row. Of nothing counts are 0, and all else is None."""
    of_nothing = tuple(0 if name.startswith("count") else None for name, _ in aggregates)
    return aggregate(rows, aggregates, keys=0) or collection([of_nothing])


def top_k(
    rows: Collection,
    order: Callable[[Row], object],
    span: tuple[int, int],
    keys: int = 0,
    rank: str | None = None,
    same: Callable[[Row], object] | None = None,
    *,
    ties: bool = False,
) -> Collection:
    """The rows of each group (of equal first `keys` columns) written out, sorted, and of these places `span`;
    with `ties` also those behind that are the `same` as the last of them.

    `order` of a row without its key. With a rank each has one more column, its number; two that are the
    `same` (None: in the order) have one number by rank and dense.
    """
    found: Collection = Counter()
    like = order if same is None else same
    for key, group in groups(rows, keys).items():
        members = sorted((row for row, count in group.items() for _ in range(count)), key=order)  # type: ignore[arg-type]
        heads = [like(row) for row in members]
        end = min(span[1], len(members))
        while ties and 0 < end < len(members) and heads[end] == heads[end - 1]:
            end += 1
        for place in range(span[0], end):
            numbers: dict[str | None, Row] = {
                None: (),
                "row_number": (place + 1,),
                "rank": (1 + heads.index(heads[place]),),
                "dense": (len(set(heads[: place + 1])),),
            }
            found[(*key, *members[place], *numbers[rank])] += 1
    return collection(found)


def values_of(group: Collection, column: int) -> Collection:
    """The values of a column, as rows of one; of no column (-1) each row is a value."""
    return map_rows(group, lambda row: (1,) if column < 0 else (row[column],))


def added_up(name: str, values: Collection) -> Hashable:
    """What an aggregate says of values: of rows of one column with multiplicities."""
    known = {value: count for (value,), count in values.items() if value is not None}
    number = sum(known.values())
    if name in ("min", "max"):
        present = [value for value, count in known.items() if count > 0]
        return None if not present else min(present) if name == "min" else max(present)  # type: ignore[type-var]
    if name == "count":
        return sum(values.values())
    if name == "count_values":
        return number
    if name == "count_distinct":
        return sum(count > 0 for count in known.values())
    if name == "count_if":
        return known.get(True, 0)
    if number == 0:
        return None
    if name in ("any", "all"):
        return known.get(True, 0) > 0 if name == "any" else known.get(False, 0) <= 0
    return _of_numbers(name, cast("dict[float, int]", known), number)


def _of_numbers(name: str, known: dict[float, int], number: int) -> float | None:
    infinite = {value: count for value, count in known.items() if not math.isfinite(value)}
    if name in ("variance", "stddev") and number < 2:
        return None
    if infinite:  # however large the finite ones are together: they are none of them infinite
        total_of_these = sum(value * count for value, count in infinite.items())
        return {"sum": total_of_these, "avg": total_of_these / number}.get(name, math.nan)
    total = sum((Fraction(value) * count for value, count in known.items()), Fraction(0))
    if name == "sum":
        return int(total) if all(isinstance(value, int) for value in known) else _rounded(total)
    if name == "avg":
        return divided(total, number)
    squares = sum((Fraction(value) ** 2 * count for value, count in known.items()), Fraction(0))
    below = number * number if name.endswith("_pop") else number * (number - 1)
    found = divided(number * squares - total**2, below)
    if name.startswith("variance"):
        return found
    return math.nan if found < 0 else math.sqrt(found)


def divided(exact: Fraction, below: int) -> float:
    """The nearest float divided by `below`, as if floats had exponents without end."""
    if exact == 0:
        return 0.0
    size = exact.numerator.bit_length() - exact.denominator.bit_length()
    quotient = float(exact / Fraction(2) ** size) / float(below)
    try:
        return math.ldexp(quotient, size)
    except OverflowError:
        return math.copysign(math.inf, quotient)


def _rounded(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


# Joins that are not inner, and sets. Rows begin with their key, one column. What is there a positive number
# of times is there: for semi, anti and outer joins the rows of a key together, or, if `of_pairs` says which
# pairs count, the pairs of a row together.

How = Literal["inner", "left", "right", "outer", "semi", "anti"]
OfRow = Callable[[Row], bool]
OfPair = Callable[[Row, Row], bool]


def _always(row: Row) -> bool:
    del row
    return True


def joined(
    left: Collection,
    right: Collection,
    how: How,
    widths: tuple[int, int] = (2, 2),
    *,
    of_left: OfRow = _always,
    of_right: OfRow = _always,
    of_pairs: OfPair | None = None,
    null_safe: bool = False,
) -> Collection:
    """Rows (key, rest of left, rest of right) with None where a side has no row; semi, anti: left only."""

    def fits(one: Row, other: Row) -> bool:
        if one[0] != other[0] or (one[0] is None and not null_safe):
            return False
        return of_left(one) and of_right(other) and (of_pairs is None or of_pairs(one, other))

    def is_met(row: Row, others: Collection, is_left: bool) -> bool:
        met = {other: n for other, n in others.items() if (fits(row, other) if is_left else fits(other, row))}
        sign = 1 if of_pairs is None else (left if is_left else right)[row]
        return sum(met.values()) * sign > 0

    alone_left = collection({row: n for row, n in left.items() if not is_met(row, right, True)})
    alone_right = collection({row: n for row, n in right.items() if not is_met(row, left, False)})
    if how == "anti":
        return alone_left
    if how == "semi":
        return concat(left, negate(alone_left))
    found = Collection()
    for one, n in left.items():
        for other, m in right.items():
            if fits(one, other):
                found[(*one, *other[1:])] += n * m
    if how in ("left", "outer"):
        for row, n in alone_left.items():
            found[(*row, *[None] * (widths[1] - 1))] += n
    if how in ("right", "outer"):
        for row, n in alone_right.items():
            found[(row[0], *[None] * (widths[0] - 1), *row[1:])] += n
    return collection(found)


def threshold(rows: Collection, function: Callable[[int], int]) -> Collection:
    """`function` of each multiplicity that is not zero."""
    return collection({row: function(count) for row, count in rows.items() if count})


def _all(left: Collection, right: Collection) -> set[Row]:
    return {*left, *right}


def subtract(left: Collection, right: Collection) -> Collection:
    """Once each what left has and right has not."""
    return collection([row for row in _all(left, right) if left[row] > 0 and right[row] <= 0])


def intersect(left: Collection, right: Collection) -> Collection:
    """Once each what both have."""
    return collection([row for row in _all(left, right) if left[row] > 0 and right[row] > 0])


def symmetric(left: Collection, right: Collection) -> Collection:
    """Once each what one has and the other has not."""
    return collection([row for row in _all(left, right) if (left[row] > 0) != (right[row] > 0)])


def except_all(left: Collection, right: Collection) -> Collection:
    """How often left has more of a row."""
    return collection({row: max(0, left[row] - right[row]) for row in _all(left, right)})


def intersect_all(left: Collection, right: Collection) -> Collection:
    """The lesser of the two multiplicities."""
    return collection({row: min(left[row], right[row]) for row in _all(left, right)})


# Loops


def iterate(
    start: Collection, body: Callable[[Collection], Collection], rounds_max: int = 10_000
) -> Collection:
    """The fixed point of `body` from `start`, from scratch; loops nest by calling this within `body`."""
    current = collection(start)
    for _ in range(rounds_max):
        following = collection(body(current))
        if following == current:
            return current
        current = following
    raise AssertionError(f"no fixed point after {rounds_max} rounds")


def iterate_rounds(
    start: Collection, body: Callable[[Collection], Collection], rounds: int
) -> list[Collection]:
    """The collection of the loop's variable in rounds 0 (`start`), 1 (`body(start)`), … up to `rounds`."""
    found = [collection(start)]
    for _ in range(rounds):
        found.append(collection(body(found[-1])))
    return found
