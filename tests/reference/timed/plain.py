"""What do times as data mean? Slow and obvious twins of windows, of rows that leave, of inputs that keep a
value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reference.collection import Collection as Rows
from reference.collection import Row, collection

__all__ = ["asof", "checked", "during", "latest", "sessions", "windows_of"]


def windows_of(at: int, size: int, every: int, origin: int = 0) -> list[int]:
    """The starts of the windows that hold a time."""
    found, start = list[int](), at - (at - origin) % every
    while at < start + size:
        found.append(start)
        start -= every
    return found


def during(rows: Rows, epoch: int, start: int, stop: int) -> Rows:
    """The rows whose columns `start` and `stop` say that they are there; null: no bound."""

    def is_there(row: Row) -> bool:
        low, high = row[start], row[stop]
        return (low is None or low <= epoch) and (high is None or epoch < high)  # type: ignore[operator]

    return collection({row: count for row, count in rows.items() if is_there(row)})


def latest(said: Iterable[tuple[int, Row, Row | None]], epoch: int) -> Rows:
    """(epoch, key, value or None) in the order of calls: the last value of each key."""
    current: dict[Row, Row | None] = {}
    for _, key, value in sorted((one for one in said if one[0] <= epoch), key=lambda one: one[0]):
        current[key] = value
    return collection([(*key, *value) for key, value in current.items() if value is not None])


def checked(changes: Sequence[tuple[int, Row, int]], epoch: int) -> tuple[Rows, Rows]:
    """(epoch, row, diff): the rows that are there, and removals that were refused."""
    there, refused = Rows(), Rows()
    for now in range(epoch + 1):
        said: Rows = Rows()
        for at, row, diff in changes:
            if at == now:
                said[row] += diff
        for row, diff in said.items():
            after = there[row] + diff
            refused[row] += max(-after, 0)
            there[row] = max(after, 0)
    return collection(there), collection(refused)


def sessions(rows: Rows, gap: int) -> Rows:
    """(key, time) with start and end of the session: rows of a key less than `gap` apart are in one."""
    found: Rows = Rows()
    present = [(key, at) for (key, at), count in rows.items() if count > 0]
    for key, at in present:
        members = {at}
        while more := {
            other
            for one, other in present
            if one == key and other not in members and any(abs(other - each) < gap for each in members)  # type: ignore[operator]
        }:
            members |= more
        found[key, at, min(members), max(members) + gap] += rows[key, at]  # type: ignore[type-var, operator]
    return found


def asof(
    left: Rows,
    right: Rows,
    after: bool = False,
    tolerance: int | None = None,
    exact: bool = True,
    inner: bool = False,
) -> Rows:
    """(key, time) with the time of the nearest (key, time) of the right, or None."""
    found: Rows = Rows()
    for (key, at), count in left.items():
        if count <= 0:
            continue
        apart = [
            (other - at) * (1 if after else -1)  # type: ignore[operator]
            for (one, other), times in right.items()
            if one == key and times > 0
        ]
        apart = [
            each for each in apart if each >= (0 if exact else 1) and (tolerance is None or each <= tolerance)
        ]
        if apart:
            found[key, at, at + min(apart) * (1 if after else -1)] += count
        elif not inner:
            found[key, at, None] += count
    return found
