"""What does `group_by("k").agg(…)` mean, whatever the multiplicities are? A slow and obvious definition.

Rows are dictionaries here, of columns k, x, y, s. Each aggregate says of a group whether it has a value, and
which; the group has a row while all that are asked for have one. So several aggregates are the join of each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Final, NamedTuple, cast

from reference import statistics as plainly
from reference.collection import Collection, added_up, collection

import differential as dd
from differential import col
from differential.aggregates import Aggregate

__all__ = ["ASKED", "COLUMNS", "SCHEMA", "Asked", "aggregated", "aggregated_all"]

SCHEMA: Final = "k: int, x: int?, y: int, s: string?"
COLUMNS: Final = ("k", "x", "y", "s")

Values = tuple[Hashable, ...]
Counted = Counter[Values]
"""By the values of some columns: the sum of the multiplicities of rows that have them, 0 left out."""


class Asked(NamedTuple):
    """An aggregate, and what it means of the rows of a group: None for no value, or the value in a tuple.

    `of_nothing` is its value for no rows at all.
    """

    aggregate: Aggregate
    meaning: Callable[[Counted], tuple[Hashable] | None]
    of_nothing: Hashable = None


def _of_columns(group: Counted, *names: str) -> Counted:
    found: Counted = Counter()
    for row, count in group.items():
        found[tuple(row[COLUMNS.index(name)] for name in names)] += count
    return Counter({values: count for values, count in found.items() if count})


def _added(kind: str, of: Callable[[Values], Hashable]) -> Callable[[Counted], tuple[Hashable] | None]:
    """Of sums: while all multiplicities sum to something other than 0."""

    def meaning(group: Counted) -> tuple[Hashable] | None:
        values: Collection = Counter()
        for row, count in group.items():
            values[(of(row),)] += count
        return (added_up(kind, collection(values)),) if sum(group.values()) else None

    return meaning


def _extreme(
    name: str, choose: Callable[[list[Hashable]], Hashable]
) -> Callable[[Counted], tuple[Hashable] | None]:
    """Of the least and greatest: while a value, or null, has a positive multiplicity."""

    def meaning(group: Counted) -> tuple[Hashable] | None:
        there = [value for (value,), count in _of_columns(group, name).items() if count > 0]
        known = [value for value in there if value is not None]
        return (choose(known) if known else None,) if there else None

    return meaning


def _beside(
    name: str, by: str, choose: Callable[[list[Hashable]], Hashable]
) -> Callable[[Counted], tuple[Hashable] | None]:
    """Of what stands beside the least or greatest: while a pair of both has a positive multiplicity."""

    def meaning(group: Counted) -> tuple[Hashable] | None:
        there = [pair for pair, count in _of_columns(group, name, by).items() if count > 0]
        known = [order for _, order in there if order is not None]
        if not there or not known:
            return (None,) if there else None
        best = choose(known)
        return (min((value for value, order in there if order == best), key=_nulls_last),)

    return meaning


def _in_order(name: str, by: Sequence[str], is_last: bool) -> Callable[[Counted], tuple[Hashable] | None]:
    """Of the first and the last: while the values of all columns together have a positive multiplicity."""

    def meaning(group: Counted) -> tuple[Hashable] | None:
        rows = [row for row, count in _of_columns(group, *by, name).items() if count > 0]
        if not rows:
            return None
        orders = [tuple(map(_nulls_first, row[:-1])) for row in rows]
        best = max(orders) if is_last else min(orders)
        return (
            min((row[-1] for row, order in zip(rows, orders, strict=True) if order == best), key=_nulls_last),
        )

    return meaning


def _collected(name: str, is_set: bool) -> Callable[[Counted], tuple[Hashable] | None]:
    """Of lists: while a value, or null, has a multiplicity other than 0."""

    def meaning(group: Counted) -> tuple[Hashable] | None:
        counted = _of_columns(group, name)
        there = sorted(
            (cast(int, value), count)
            for (value,), count in counted.items()
            if count > 0 and value is not None
        )
        values = tuple(value for value, count in there for _ in range(1 if is_set else count))
        return (values,) if counted else None

    return meaning


def _placed(name: str, of: Callable[[list[int]], Hashable]) -> Callable[[Counted], tuple[Hashable] | None]:
    """Of percentiles: while a value, or null, has a positive multiplicity."""

    def meaning(group: Counted) -> tuple[Hashable] | None:
        there = {value: count for (value,), count in _of_columns(group, name).items() if count > 0}
        known = {cast(int, value): count for value, count in there.items() if value is not None}
        return (of(plainly.values_there(known)) if known else None,) if there else None

    return meaning


def _most(name: str) -> Callable[[Counted], tuple[Hashable] | None]:
    def meaning(group: Counted) -> tuple[Hashable] | None:
        there = {value: count for (value,), count in _of_columns(group, name).items() if count > 0}
        known = {cast(int, value): count for value, count in there.items() if value is not None}
        return (plainly.most_frequent(known) if known else None,) if there else None

    return meaning


def _texts(separator: str, once: bool) -> Callable[[Counted], tuple[Hashable] | None]:
    """Of texts: while a value, or null, has a multiplicity other than 0."""

    def meaning(group: Counted) -> tuple[Hashable] | None:
        counted = _of_columns(group, "s")
        there = {
            cast(str, text): count for (text,), count in counted.items() if count > 0 and text is not None
        }
        return (plainly.text(there, separator, once) if there else None,) if counted else None

    return meaning


def _texts_by(group: Counted) -> tuple[Hashable] | None:
    """By y descending, then x, null first; then in the order of texts."""
    counted = _of_columns(group, "y", "x", "s")
    if not counted:
        return None
    there = [(row, count) for row, count in counted.items() if count > 0 and row[2] is not None]
    there.sort(key=lambda one: (-cast(int, one[0][0]), _nulls_first(one[0][1]), one[0][2]))
    return ("+".join(cast(str, row[2]) for row, count in there for _ in range(count)) if there else None,)


def _different(of: Callable[[list[int]], Hashable]) -> Callable[[Counted], tuple[Hashable] | None]:
    def meaning(group: Counted) -> tuple[Hashable] | None:
        there = [
            cast(int, value)
            for (value,), count in _of_columns(group, "x").items()
            if count > 0 and value is not None
        ]
        return (of(there) if there else None,) if sum(group.values()) else None

    return meaning


def _pairs(is_sample: bool) -> Callable[[Counted], tuple[Hashable] | None]:
    def meaning(group: Counted) -> tuple[Hashable] | None:
        counted = _of_columns(group, "x", "y")
        pairs = {(cast(int, x), cast(int, y)): count for (x, y), count in counted.items() if x is not None}
        return (plainly.covariance(pairs, is_sample),) if sum(group.values()) else None

    return meaning


def _shape(power: int) -> Callable[[Counted], tuple[Hashable] | None]:
    def meaning(group: Counted) -> tuple[Hashable] | None:
        counted = _of_columns(group, "x")
        values = {cast(int, x): count for (x,), count in counted.items() if x is not None}
        return (plainly.shape(values, power),) if sum(group.values()) else None

    return meaning


def _nulls_first(value: Hashable) -> tuple[bool, object]:
    return (value is not None, value if value is not None else 0)


def _nulls_last(value: Hashable) -> tuple[bool, object]:
    return (value is None, value if value is not None else 0)


_least = cast(Callable[[list[Hashable]], Hashable], min)
_greatest = cast(Callable[[list[Hashable]], Hashable], max)

ASKED: Final[dict[str, Asked]] = {
    "rows": Asked(dd.count(), _added("count", lambda row: 1), 0),
    "xs": Asked(dd.count("x"), _added("count_values", lambda row: row[1]), 0),
    "high": Asked(dd.count_if(col.y > 0), _added("count_if", lambda row: cast(int, row[2]) > 0), 0),
    "sum_x": Asked(dd.sum("x"), _added("sum", lambda row: row[1])),
    "sum_y": Asked(dd.sum("y"), _added("sum", lambda row: row[2])),
    "mean_y": Asked(dd.avg("y"), _added("avg", lambda row: row[2])),
    "spread": Asked(dd.variance("y"), _added("variance", lambda row: row[2])),
    "any": Asked(dd.any_of(col.y > 0), _added("any", lambda row: cast(int, row[2]) > 0)),
    "all": Asked(dd.all_of(col.y > 0), _added("all", lambda row: cast(int, row[2]) > 0)),
    "different_x": Asked(dd.count_distinct("x"), _added("count_distinct", lambda row: row[1]), 0),
    "different_s": Asked(dd.count_distinct("s"), _added("count_distinct", lambda row: row[3]), 0),
    "min_x": Asked(dd.min("x"), _extreme("x", _least)),
    "max_x": Asked(dd.max("x"), _extreme("x", _greatest)),
    "min_y": Asked(dd.min("y"), _extreme("y", _least)),
    "max_y": Asked(dd.max("y"), _extreme("y", _greatest)),
    "min_s": Asked(dd.min("s"), _extreme("s", _least)),
    "max_s": Asked(dd.max("s"), _extreme("s", _greatest)),
    "argmin": Asked(dd.argmin("x", by="y"), _beside("x", "y", _least)),
    "argmax": Asked(dd.argmax("s", by="x"), _beside("s", "x", _greatest)),
    "first": Asked(dd.first("x", by=["y", "s"]), _in_order("x", ("y", "s"), is_last=False)),
    "last": Asked(dd.last("y", by="x"), _in_order("y", ("x",), is_last=True)),
    "collect": Asked(dd.collect("x"), _collected("x", is_set=False), ()),
    "collect_set": Asked(dd.collect_set("s"), _collected("s", is_set=True), ()),
    "low x": Asked(dd.percentile("x", 0.3), _placed("x", lambda all_: plainly.percentile([*all_], 0.3))),
    "median y": Asked(dd.median("y"), _placed("y", lambda all_: plainly.percentile([*all_], 0.5))),
    "high x": Asked(
        dd.percentile_disc("x", 0.7), _placed("x", lambda all_: plainly.percentile_disc(all_, 0.7))
    ),
    "some x": Asked(dd.any_value_of("x"), _extreme("x", _least)),  # which one it is says nobody
    "mode x": Asked(dd.mode("x"), _most("x")),
    "mode s": Asked(dd.mode("s"), _most("s")),
    "texts": Asked(dd.string_agg("s", ", "), _texts(", ", once=False)),
    "texts once": Asked(dd.string_agg("s", distinct=True), _texts("", once=True)),
    "texts by": Asked(dd.string_agg("s", "+", by=[col.y.desc(), "x"]), _texts_by),
    "sum of different": Asked(dd.sum_distinct("x"), _different(lambda all_: sum(all_))),
    "mean of different": Asked(dd.avg_distinct("x"), _different(lambda all_: sum(all_) / len(all_))),
    "about": Asked(dd.approx_count_distinct("x"), _added("count_distinct", lambda row: row[1]), 0),
    "covariance": Asked(dd.covar_pop("x", "y"), _pairs(is_sample=False)),
    "covariance of a sample": Asked(dd.covar_samp("x", col.y + 1), _pairs(is_sample=True)),
    "skewness": Asked(dd.skewness("x"), _shape(3)),
    "kurtosis": Asked(dd.kurtosis("x"), _shape(4)),
}
"""By name: every kind of aggregate, of columns that may be null and of others."""


def aggregated(rows: Collection, names: Sequence[str]) -> Collection:
    """For each key k one row, k and what is asked for, while all that is asked for has a value."""
    found: Collection = Counter()
    for key in {row[0] for row in rows}:
        group: Counted = Counter({row: count for row, count in rows.items() if row[0] == key})
        values = [ASKED[name].meaning(group) for name in names]
        if all(value is not None for value in values):
            found[(key, *(value[0] for value in values if value is not None))] = 1
    return found


def aggregated_all(rows: Collection, names: Sequence[str]) -> Collection:
    """The same of all rows, without a key; where something asked for has no value, the row of no rows."""
    one = aggregated(_without_keys(rows), names)
    return Counter({row[1:]: 1 for row in one} or {tuple(ASKED[name].of_nothing for name in names): 1})


def _without_keys(rows: Collection) -> Collection:
    found: Collection = Counter()
    for row, count in rows.items():
        found[(0, *row[1:])] += count
    return collection(found)
