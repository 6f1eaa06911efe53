"""Change feeds of dicts, laid out as columns without a look at each of them.

A program that reads messages has them as dicts, and ten thousand of them in one call. `rows_of_envelopes`
returns their columns if all of them have the usual form. Otherwise it returns None: `changes.py` looks at
such changes one by one, and knows what to say about one that is wrong.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from decimal import Decimal
from operator import itemgetter
from typing import Final, NamedTuple, cast

from ..tables import columns_of

__all__ = ["ChangeRows", "rows_of_envelopes"]

_PLAIN: Final = {bool, bytes, dt.date, dt.datetime, Decimal, float, int, str, type(None)}
"""The types of values that are one key exactly if they have one type and are equal."""


class ChangeRows(NamedTuple):
    """The columns of rows by name, and which of the rows come; the others go."""

    columns: dict[str, Sequence[object]]
    come: list[bool]


def rows_of_envelopes(
    changes: Sequence[Mapping[object, object]],
    comes: Sequence[bool],
    is_update: Sequence[bool],
    names: Sequence[str],
    keys: Sequence[str],
) -> ChangeRows | None:
    """Return the rows of changes that have the row before and the row after each; None if some change has to
    be looked at alone. An update is two rows, but one if its key stays the same. If there is a key, what a
    row that goes has beside it does not count.

    comes, is_update    for each change whether a row is there afterwards, and whether one was there before
    names, keys         the columns of the input, and those of its key, if it has one
    """
    try:
        before = [change.get("before") for change in changes]
        after = [change.get("after") for change in changes]
        rows: list[object] = [
            new if there else old for old, new, there in zip(before, after, comes, strict=True)
        ]
        twice = [has and old is not None for has, old in zip(is_update, before, strict=True)]
        if not keys:
            if twice != list(is_update):
                return None
        else:
            twice = _moved(before, after, twice, keys)
    except KeyError:
        return None
    come = list(comes)
    if any(twice):
        old_and_new = zip(before, rows, twice, strict=True)
        rows = [row for old, new, both in old_and_new for row in ((old, new) if both else (new,))]
        pairs = zip(come, twice, strict=True)
        come = [each for there, both in pairs for each in ((False, there) if both else (there,))]
    columns = columns_of(rows, names) if set(map(type, rows)) == {dict} else None
    return None if columns is None else ChangeRows(dict(zip(names, columns, strict=True)), come)


def _moved(
    before: Sequence[object], after: Sequence[object], is_update: Sequence[bool], keys: Sequence[str]
) -> list[bool]:
    """Return which updates change the key. Raise KeyError if a row lacks a column of it, or is no dict."""
    at = [number for number, is_one in enumerate(is_update) if is_one]
    old, new = [before[number] for number in at], [after[number] for number in at]
    if not set(map(type, [*old, *new])) <= {dict}:
        raise KeyError
    moved = [False] * len(is_update)
    for key in keys:
        of_old, of_new = (
            list(map(itemgetter(key), cast("Sequence[Mapping[str, object]]", rows))) for rows in (old, new)
        )
        types = list(map(type, of_old))
        if of_old == of_new and types == list(map(type, of_new)) and set(types) <= _PLAIN:
            continue
        for number, one, other in zip(at, of_old, of_new, strict=True):
            moved[number] |= not (type(one) is type(other) and type(one) in _PLAIN and one == other)
    return moved
