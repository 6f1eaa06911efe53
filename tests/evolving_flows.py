"""Versions of one dataflow whose inputs have other columns from version to version, and what the rows of one
version are in a later one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import differential as dd
import timely

__all__ = ["KEYED", "ROWS", "Columns", "evolving", "is_refused", "read_as"]

Make = Callable[[int, int, str, bool], object]


@dataclass(frozen=True)
class Columns:
    """The columns of one version.

    schema         as it is declared
    makers         by column, in order: the value of a drawn row
    defaults       of columns that rows of earlier versions lack
    casts          by column: how a value of the version before is written now
    goes_on_until  the last version that takes tables of clients of this one
    """

    schema: str
    makers: Mapping[str, Make]
    defaults: Mapping[str, object] = field(default_factory=dict)
    casts: Mapping[str, Callable[[object], object]] = field(default_factory=dict)
    goes_on_until: int = 0


def _cents(digits: int) -> Make:
    unit = Decimal(1).scaleb(-digits)
    return lambda a, b, text, flag: Decimal(a) + b * unit


ROWS = [
    Columns(
        "a: int, price: decimal(4, 1), text: string",
        {"a": lambda a, b, t, f: a, "price": _cents(1), "text": lambda a, b, t, f: t},
    ),
    Columns(
        "text: string?, price: decimal(9, 3), a: int, flag: bool",
        {
            "text": lambda a, b, t, f: t if f else None,
            "price": _cents(3),
            "a": lambda a, b, t, f: a,
            "flag": lambda a, b, t, f: f,
        },
        {"flag": True},
        {"price": lambda value: value + Decimal("0.000")},  # type: ignore[operator]
    ),
    Columns(
        "a: int?, text: string?, flag: bool?, country: string, price: decimal(9, 3)?",
        {
            "a": lambda a, b, t, f: a if f else None,
            "text": lambda a, b, t, f: t,
            "flag": lambda a, b, t, f: None if f else f,
            "country": lambda a, b, t, f: t * a,
            "price": lambda a, b, t, f: _cents(3)(a, b, t, f) if f else None,
        },
        {"country": "Portugal"},
    ),
    Columns(
        "country: string, a: int?, more: float?",
        {
            "country": lambda a, b, t, f: t * b,
            "a": lambda a, b, t, f: a,
            "more": lambda a, b, t, f: 0.5 * b if f else None,
        },
    ),
    Columns(
        "country: string, a: int?, more: float?, words: any?, last: date?",
        {
            "country": lambda a, b, t, f: t * b,
            "a": lambda a, b, t, f: a,
            "more": lambda a, b, t, f: 0.5 * b if f else None,
            "words": lambda a, b, t, f: None,
            "last": lambda a, b, t, f: None,
        },
        {"words": None, "last": None},
    ),
]
"""Version 3 leaves columns out. Tables without a column that has no default are refused."""

ROWS = [
    Columns(each.schema, each.makers, each.defaults, each.casts, until)
    for each, until in zip(ROWS, (1, 2, 2, 4, 4), strict=True)
]

KEYED = [
    Columns(
        "k: int, n: int, text: string?",
        {"k": lambda a, b, t, f: a, "n": lambda a, b, t, f: b, "text": lambda a, b, t, f: t if f else None},
    ),
    Columns(
        "n: int, k: int, text: string?, seen: int",
        {
            "n": lambda a, b, t, f: b,
            "k": lambda a, b, t, f: a,
            "text": lambda a, b, t, f: t,
            "seen": lambda a, b, t, f: b,
        },
        {"seen": 7},
    ),
    Columns(
        "k: int, n: int, seen: int?",
        {"k": lambda a, b, t, f: a, "n": lambda a, b, t, f: b, "seen": lambda a, b, t, f: b if f else None},
    ),
    Columns(
        "k: int, n: int, seen: int?, why: string?, text: string?",
        {
            "k": lambda a, b, t, f: a,
            "n": lambda a, b, t, f: b,
            "seen": lambda a, b, t, f: b,
            "why": lambda a, b, t, f: t,
            "text": lambda a, b, t, f: t,
        },
    ),
    Columns(
        "k: int, why: string?, n: int?",
        {"k": lambda a, b, t, f: a, "why": lambda a, b, t, f: t, "n": lambda a, b, t, f: b if f else None},
    ),
]
"""Version 2 leaves out `text`, and version 3 has such a column again: it is another one."""

KEYED = [
    Columns(each.schema, each.makers, each.defaults, each.casts, until)
    for each, until in zip(KEYED, (1, 1, 2, 3, 4), strict=True)
]


def read_as(versions: Sequence[Columns], old: int, new: int, row: Mapping[str, object]) -> dict[str, object]:
    """Return a row of version `old` as one of version `new`, which follows it at once: nobody knows what the
    versions between would have made of it.
    """
    values: dict[str, object] = dict(versions[new].defaults)
    values.update(row)
    for between in versions[old + 1 : new + 1]:
        values.update({name: cast(row[name]) for name, cast in between.casts.items() if name in row})
    return {name: values.get(name) for name in versions[new].makers}


def is_refused(old: int, new: int) -> bool:
    """Return True if version `new` may not follow version `old` at once: `country` is new then, may not be
    null, and version 2 alone has a default for it.
    """
    return old < 2 < new


@timely.builder
def evolving(flow: timely.Dataflow, version: int = 0) -> None:
    """Both kinds of inputs, with the columns of a version."""
    own, keyed = ROWS[version], KEYED[version]
    rows = dd.input(flow, "rows", own.schema, defaults=own.defaults)
    rows.export("rows")
    rows.output("rows")
    values = dd.input(flow, "values", keyed.schema, key="k", mode="upsert", defaults=keyed.defaults)
    values.export("values", by="k")
    values.output("values")
