"""Sets, joins and operators on rows, over (k: int, v: int), for the random tests of `strategies_collections`.

Each is (name, how it is built, what it means). Keys below zero are made null where null keys are the point.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import cast

import pyarrow as pa
from reference import collection as plainly
from reference.collection import Collection as Rows
from reference.collection import Row

import differential as dd
from differential import Collection, col
from differential.collections.patterns.joins_of_many import Candidates

__all__ = ["BINARY", "UNARY"]

_Build1 = Callable[[Collection], Collection]
_Build2 = Callable[[Collection, Collection], Collection]
_Plain1 = Callable[[Rows], Rows]
_Plain2 = Callable[[Rows, Rows], Rows]


def _nulls(c: Collection, v: str = "v") -> Collection:
    """The same, where negative keys are null."""
    return c.select(k=dd.when(col.k >= 0).then(col.k), **{v: col.v})


def _nulls_plainly(rows: Rows) -> Rows:
    return plainly.map_rows(rows, lambda row: (row[0] if cast("int", row[0]) >= 0 else None, row[1]))


def _three(c: Collection) -> Collection:
    """Back to two columns: k and v of the left and w of the right, some of them null."""
    return c.select(k=col.k.fill_null(-7) + col.v.fill_null(50), v=col.w.fill_null(90))


def _three_plainly(rows: Rows) -> Rows:
    return plainly.map_rows(rows, lambda row: (_or(row[0], -7) + _or(row[1], 50), _or(row[2], 90)))


def _or(value: object, other: int) -> int:
    return other if value is None else cast("int", value)


def _join(how: plainly.How, null_safe: bool = False) -> tuple[str, _Build2, _Plain2]:
    name = f"{how} join with null keys{', null equal to null' if null_safe else ''}"

    def build(a: Collection, b: Collection) -> Collection:
        found = _nulls(a).join(_nulls(b, "w"), on="k", how=how, null_safe=null_safe)
        return _three(found) if how not in ("semi", "anti") else found.select(k=col.k.fill_null(-7), v=col.v)

    def plain(a: Rows, b: Rows) -> Rows:
        found = plainly.joined(_nulls_plainly(a), _nulls_plainly(b), how, null_safe=null_safe)
        if how in ("semi", "anti"):
            return plainly.map_rows(found, lambda row: (_or(row[0], -7), row[1]))
        return _three_plainly(found)

    return name, build, plain


def _join_with_null_keys_of_the_right(how: plainly.How) -> tuple[str, _Build2, _Plain2]:
    """A condition over pairs; only keys of the right may be null."""

    def build(a: Collection, b: Collection) -> Collection:
        found = a.join(_nulls(b, "w"), on="k", how=how, where=col.v <= col.w)
        return _three(found) if how not in ("semi", "anti") else found.select(k=col.k.fill_null(-7), v=col.v)

    def plain(a: Rows, b: Rows) -> Rows:
        found = plainly.joined(
            a,
            _nulls_plainly(b),
            how,
            of_pairs=lambda one, other: cast("int", one[1]) <= cast("int", other[1]),
        )
        if how in ("semi", "anti"):
            return plainly.map_rows(found, lambda row: (_or(row[0], -7), row[1]))
        return _three_plainly(found)

    return f"{how} join with a condition and null keys of the right", build, plain


def _join_where(how: plainly.How) -> tuple[str, _Build2, _Plain2]:
    """A condition over pairs, one over the left, one over the right; keys of different nullability."""

    def build(a: Collection, b: Collection) -> Collection:
        condition = (col.v <= col.w) & (col.v != 1) & (col.w > -1)
        found = _nulls(a).join(b.select(k=col.k, w=col.v), on="k", how=how, where=condition)
        return _three(found) if how not in ("semi", "anti") else found.select(k=col.k.fill_null(-7), v=col.v)

    def plain(a: Rows, b: Rows) -> Rows:
        found = plainly.joined(
            _nulls_plainly(a),
            b,
            how,
            of_left=lambda row: row[1] != 1,
            of_right=lambda row: cast("int", row[1]) > -1,
            of_pairs=lambda one, other: cast("int", one[1]) <= cast("int", other[1]),
        )
        if how in ("semi", "anti"):
            return plainly.map_rows(found, lambda row: (_or(row[0], -7), row[1]))
        return _three_plainly(found)

    return f"{how} join with conditions", build, plain


def _join_of_sides(how: plainly.How) -> tuple[str, _Build2, _Plain2]:
    """A condition that says nothing of pairs: keys decide."""

    def build(a: Collection, b: Collection) -> Collection:
        condition = (col.v >= 0) & (col.w < 2)
        return _three(a.join(b.select(key=col.k, w=col.v), on={"k": "key"}, how=how, where=condition))

    def plain(a: Rows, b: Rows) -> Rows:
        found = plainly.joined(
            a,
            b,
            how,
            of_left=lambda row: cast("int", row[1]) >= 0,
            of_right=lambda row: cast("int", row[1]) < 2,
        )
        return _three_plainly(found)

    return f"{how} join where each side is asked", build, plain


def _per_row(function: Callable[[int, int], Iterable[tuple[int, int]]]) -> _Plain1:
    return lambda rows: plainly.flat_map(rows, lambda row: function(*cast("tuple[int, int]", row)))


def _first_of_each(rows: Rows) -> Rows:
    return plainly.reduce(rows, lambda key, group: sorted(row for row, n in group.items() if n > 0)[:1])


def _padded(a: Rows, b: Rows) -> Rows:
    alone = plainly.map_rows(b, lambda row: (row[0], 90))
    return plainly.concat(a, alone)


def _twice(batch: pa.Table) -> pa.Table:
    """Every row as (v, k), and once more as (k, k) with three times its multiplicity."""
    k, v, diff = (batch.column(name).to_pylist() for name in ("k", "v", "diff"))
    return pa.table({"v": [*k, *k], "k": [*v, *k], "diff": [*diff, *(3 * d for d in diff)]})


def _twice_plainly(rows: Rows) -> Rows:
    swapped = plainly.map_rows(rows, lambda row: (row[1], row[0]))
    own = plainly.map_rows(rows, lambda row: (row[0], row[0]))
    return plainly.concat(swapped, own, own, own)


def _lists(c: Collection) -> Collection:
    return c.map(lambda r: (r.k, list(range(r.v))), "k: int, v: any")


def _share(key: tuple[object, ...], group: list[tuple[tuple[object, ...], int]]) -> list[object]:
    """Fails where multiplicities cancel."""
    return [6 // sum(n for _, n in group), key[0]]


def _shares(c: Collection) -> tuple[Collection, Collection]:
    return c.attempt(lambda c: c.group_by("k").reduce(_share, "v: int"))


def _shared(rows: Rows) -> Rows:
    def each(key: Row, group: Rows) -> list[Row]:
        total = sum(group.values())
        return [(6 // total,), key] if total else []

    return plainly.reduce(rows, each)


def _fail(c: Collection) -> tuple[Collection, Collection]:
    return c.attempt(
        lambda c: c.filter(col.k < 2).map(lambda r: (r.k, 6 // r.v)).select(k=6 // col.k, v=col.v)
    )


def _fits(k: int, v: int) -> list[tuple[int, int]]:
    return [(6 // k, 6 // v)] if k < 2 and k and v else []


def _read_back(record: tuple[str, ...]) -> tuple[int, int]:
    k, v = (int(part.split("=")[1]) for part in record[0].split(", "))
    return k, v


def _both_counts(
    key: tuple[int | None], left: list[tuple[Row, int]], right: list[tuple[Row, int]]
) -> list[int]:
    del key
    return [10 * sum(n for _, n in left) + sum(cast("int", v) * n for (v,), n in right)]


def _cogroup(a: Collection, b: Collection) -> Collection:
    found = _nulls(a).cogroup(b.select(j=col.k, w=col.v), {"k": "j"}, _both_counts, "v: int")
    return found.select(k=col.k.fill_null(-7), v=col.v)


def _cogroup_plainly(a: Rows, b: Rows) -> Rows:
    left, right = plainly.groups(_nulls_plainly(a)), plainly.groups(b)
    found = [
        (
            _or(key[0], -7),
            _both_counts((0,), list(left.get(key, {}).items()), list(right.get(key, {}).items()))[0],
        )
        for key in {*left, *right}
    ]
    return plainly.collection(found)


def _all_joined(
    parts: str, with_nulls: bool = False, candidates: Candidates = "in order"
) -> tuple[str, _Build2, _Plain2]:
    """`parts` as in "ab bc ca": the first source, the second, the first again, with these columns."""

    def build(a: Collection, b: Collection) -> Collection:
        given = []
        for number, part in enumerate(parts.split()):
            source, one, other = (a, b)[number % 2], part[0], part[1]
            source = _nulls(source) if with_nulls and number < 2 else source
            given.append(source.select(**{one: col.k, other: col.v}))
        shared = [name for name in sorted({*parts} - {" "}) if parts.count(name) > 1]
        found = dd.join_all(given, shared, candidates=candidates)
        first, *others = found.schema.names
        return found.select(k=col(first), v=sum((col(name).fill_null(40) for name in others), dd.lit(0)))

    def plain(a: Rows, b: Rows) -> Rows:
        given = []
        for number, names in enumerate(parts.split()):
            rows = (a, b)[number % 2]
            given.append((names, _nulls_plainly(rows) if with_nulls and number < 2 else rows))
        return plainly.map_rows(
            plainly.join_all(given), lambda row: (row[0], sum(_or(value, 40) for value in row[1:]))
        )

    how = "" if candidates == "in order" else f", {candidates} candidates"
    return f"join of all of {parts}{' with null keys' * with_nulls}{how}", build, plain


UNARY: list[tuple[str, _Build1, _Plain1]] = [
    (
        "threshold",
        lambda c: c.threshold(lambda n: dd.when(n < 0).then(0 - n).otherwise(dd.min_of(n, 2) - 1)),
        lambda rows: plainly.threshold(rows, lambda n: -n if n < 0 else min(n, 2) - 1),
    ),
    (
        "threshold by a function",
        lambda c: c.threshold(lambda n: min(n, 2) if n > 0 else -n),
        lambda rows: plainly.threshold(rows, lambda n: min(n, 2) if n > 0 else -n),
    ),
    (
        "filter by a function",
        lambda c: c.filter(lambda r: None if r.k == 0 else r.v > 0, col.k < 2),
        _per_row(lambda k, v: [(k, v)] if k and v > 0 and k < 2 else []),
    ),
    ("parity", lambda c: c.threshold(lambda n: n % 2), lambda rows: plainly.threshold(rows, lambda n: n % 2)),
    (
        "repeat",
        lambda c: c.repeat(col.v - 1),
        lambda rows: Rows({row: n * (cast("int", row[1]) - 1) for row, n in rows.items() if row[1] != 1}),
    ),
    ("drop duplicates", lambda c: c.drop_duplicates("k"), _first_of_each),
    ("rename and drop", lambda c: c.with_columns(w=col.v).drop("v").rename(w="v"), lambda rows: rows),
    (
        "explode",
        lambda c: _lists(c).explode("v", "int", position="at").select(k=col.k, v=col.v + col.at),
        _per_row(lambda k, v: [(k, 2 * i) for i in range(v)]),
    ),
    (
        "explode outer",
        lambda c: _lists(c).explode("v", "int", outer=True).select(k=col.k, v=col.v.fill_null(9)),
        _per_row(lambda k, v: [(k, i) for i in range(v)] or [(k, 9)]),
    ),
    ("attempt", lambda c: _fail(c)[0], _per_row(_fits)),
    (
        "errors of an attempt",
        lambda c: _fail(c)[1].map(_read_back, "k: int, v: int"),
        _per_row(lambda k, v: [(k, v)] if k < 2 and not (k and v) else []),
    ),
    ("attempt of groups", lambda c: _shares(c)[0], _shared),
    (
        "errors of groups",
        lambda c: _shares(c)[1].map(lambda r: (int(r.record[1 : r.record.index(",")]), 1), "k: int, v: int"),
        lambda rows: plainly.reduce(rows, lambda key, group: [] if sum(group.values()) else [(1,)]),
    ),
    ("map batches", lambda c: c.map_batches(_twice), _twice_plainly),
]

BINARY: list[tuple[str, _Build2, _Plain2]] = [
    ("subtract", lambda a, b: a.subtract(b), plainly.subtract),
    ("intersect", lambda a, b: a.intersect(b), plainly.intersect),
    ("symmetric difference", lambda a, b: a.symmetric_difference(b.select("v", "k")), plainly.symmetric),
    ("except all", lambda a, b: a.except_all(b), plainly.except_all),
    ("intersect all", lambda a, b: a.intersect_all(b), plainly.intersect_all),
    (
        "union by name",
        lambda a, b: a.union_by_name(b.select("k"), allow_missing_columns=True).select(
            k=col.k, v=col.v.fill_null(90)
        ),
        _padded,
    ),
    ("cogroup", _cogroup, _cogroup_plainly),
    *(_all_joined(parts) for parts in ("ab bc ac", "ax ay az", "ab bc cd da", "ab ab")),
    _all_joined("ab cb ca", with_nulls=True),
    (
        "join by days and decimals",
        lambda a, b: (
            a.select(day=col.k.cast("date"), money=col.v.cast("decimal(12, 1)"))
            .join(b.select(day=col.k.cast("date"), more=col.v.cast("decimal(12, 2)")), on="day")
            .select(k=col.day.cast("int"), v=(col.money + col.more).cast("int"))
        ),
        lambda a, b: plainly.map_rows(
            plainly.join(a, b), lambda row: (row[0], cast("int", row[1]) + cast("int", row[2]))
        ),
    ),
    *(_join(how) for how in ("inner", "left", "right", "outer", "semi", "anti")),
    *(_join(how, null_safe=True) for how in ("inner", "outer", "semi")),
    *(_join_where(how) for how in ("inner", "left", "right", "outer", "semi", "anti")),
    *(_join_with_null_keys_of_the_right(how) for how in ("left", "outer", "semi", "anti")),
    *(_join_of_sides(how) for how in ("left", "outer")),
]
