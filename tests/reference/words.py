"""Slow and obvious twins of the kernels: rows as tuples (key words…, value words…, time word, diff).

A time word is compared field by field, as `progress/times/time_words.py` explains; nothing is unpacked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache

import numpy as np
import numpy.typing as npt

__all__ = [
    "Row",
    "accumulated",
    "as_words",
    "beyond",
    "closure_of",
    "consolidated",
    "firsts",
    "joined",
    "less_equal",
    "lub",
    "reduced",
    "rows_of",
]

Row = tuple[int, ...]


def as_words(rows: Iterable[Sequence[int]], columns: int) -> npt.NDArray[np.int64]:
    """Rows as a kernel takes them: int64[columns, n], C-contiguous."""
    return np.array([tuple(row) for row in rows], np.int64).reshape(-1, columns).T.copy()


def rows_of(words: npt.NDArray[np.int64]) -> list[Row]:
    """The rows of a table of words."""
    return [tuple(row) for row in words.T.tolist()]


@cache
def _fields(guards: int) -> tuple[int, ...]:
    """The mask of each field: the bits below its guard down to the next lower guard."""
    masks, low = [], 0
    for bit in range(63):
        if guards >> bit & 1:
            masks.append((1 << bit) - (1 << low))
            low = bit + 1
    return tuple(masks)


def less_equal(a: int, b: int, guards: int) -> bool:
    """Whether a ≤ b in every field."""
    for mask in _fields(guards):
        if a & mask > b & mask:
            return False
    return True


def lub(a: int, b: int, guards: int) -> int:
    """The larger of each field."""
    return sum(max(a & mask, b & mask) for mask in _fields(guards))


def beyond(time: int, frontier: Iterable[int], guards: int) -> bool:
    """Whether some time of the frontier is ≤ `time`."""
    return any(less_equal(int(bound), time, guards) for bound in frontier)


def closure_of(times: Iterable[int], guards: int) -> set[int]:
    """The times and all their lubs."""
    closed: set[int] = set()
    for time in times:
        closed |= {time} | {lub(time, other, guards) for other in closed}
    return closed


def consolidated(rows: Iterable[Row]) -> list[Row]:
    """Sorted, equal rows summed, those that cancel dropped."""
    total: dict[Row, int] = {}
    for row in rows:
        total[row[:-1]] = total.get(row[:-1], 0) + row[-1]
    return [(*row, diff) for row, diff in sorted(total.items()) if diff]


def accumulated(rows: Iterable[Row], time: int, guards: int) -> dict[Row, int]:
    """Row without time → multiplicity at `time`, none zero."""
    total: dict[Row, int] = {}
    for row in rows:
        if less_equal(row[-2], time, guards):
            total[row[:-2]] = total.get(row[:-2], 0) + row[-1]
    return {row: count for row, count in total.items() if count}


def joined(left: dict[Row, int], right: dict[Row, int], kw: int) -> dict[Row, int]:
    """Every pair of rows with equal keys: key, left values, right values."""
    total: dict[Row, int] = {}
    for a, times_a in left.items():
        for b, times_b in right.items():
            if a[:kw] == b[:kw]:
                total[a + b[kw:]] = total.get(a + b[kw:], 0) + times_a * times_b
    return {row: count for row, count in total.items() if count}


def reduced(rows: dict[Row, int], kw: int, parts: Sequence[tuple[str, int]]) -> dict[Row, int]:
    """One row per key: count, sum, min, max of value words; without parts the keys whose counts sum to > 0.

    A key is there if any of its rows has a multiplicity that is not 0. min and max look at rows with a
    positive one, and need one.
    """
    groups: dict[Row, list[tuple[Row, int]]] = {}
    for row, count in rows.items():
        groups.setdefault(row[:kw], []).append((row[kw:], count))
    found: dict[Row, int] = {}
    for key, members in groups.items():
        present = [values for values, count in members if count > 0]
        if not parts and sum(count for _, count in members) <= 0:
            continue
        if not present and any(kind in ("min", "max") for kind, _ in parts):
            continue
        found[key + tuple(_aggregate(kind, word, members, present) for kind, word in parts)] = 1
    return found


def _aggregate(kind: str, word: int, members: list[tuple[Row, int]], present: list[Row]) -> int:
    if kind == "count":
        return sum(count for _, count in members)
    if kind == "sum":
        return sum(values[word] * count for values, count in members)
    return (
        min(values[word] for values in present) if kind == "min" else max(values[word] for values in present)
    )


def firsts(
    rows: dict[Row, int],
    kw: int,
    span: tuple[int, int],
    rank: str | None = None,
    ordered: int = 0,
    order: Callable[[Row], object] = lambda values: values,
    *,
    ties: bool = False,
) -> dict[Row, int]:
    """For each key its rows of positive multiplicity, written out, sorted, and of these the places of `span`;
    with ties also those behind that have the first `ordered` words of the last one.

    With a rank each has one more word: its number; or how many rows, or different rows, come before those
    that have the same first `ordered` words, and one.
    """
    groups: dict[Row, list[Row]] = {}
    for row, count in rows.items():
        groups.setdefault(row[:kw], []).extend([row[kw:]] * max(count, 0))
    found: dict[Row, int] = {}
    for key, members in groups.items():
        members.sort(key=order)  # type: ignore[arg-type]  # whatever can be compared
        heads = [values[:ordered] for values in members]
        stop = min(span[1], len(members))
        while ties and 0 < stop < len(members) and heads[stop] == heads[stop - 1]:
            stop += 1
        for place in range(span[0], stop):
            number = {
                None: (),
                "row_number": (place + 1,),
                "rank": (1 + heads.index(heads[place]),),
                "dense": (len(set(heads[: place + 1])),),
            }[rank]
            row = (*key, *members[place], *number)
            found[row] = found.get(row, 0) + 1
    return found
