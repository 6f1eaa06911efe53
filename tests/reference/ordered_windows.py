"""Windows, plainly: go to each row, look at all rows of its group."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cmp_to_key
from typing import NamedTuple

Value = object
Row = dict[str, Value]


class By(NamedTuple):
    """A column of an order."""

    column: str
    descending: bool = False
    nulls_last: bool = False


class Call(NamedTuple):
    """A function, and the column that it adds."""

    name: str
    kind: str
    column: str | None = None
    amount: int = 0


def _compare(one: Value, other: Value, by: By) -> int:
    if one is None or other is None:
        if one is other:
            return 0
        is_first = (one is None) != by.nulls_last
        return -1 if is_first else 1
    if one == other:
        return 0
    return (-1 if one < other else 1) * (-1 if by.descending else 1)  # type: ignore[operator]


def _sorted(rows: Sequence[Row], order: Sequence[By]) -> list[Row]:
    def compare(one: Row, other: Row) -> int:
        signs = (_compare(one[by.column], other[by.column], by) for by in order)
        return next((sign for sign in signs if sign), 0)

    return sorted(rows, key=cmp_to_key(compare))


def windowed(
    rows: Sequence[Row],
    keys: Sequence[str],
    order: Sequence[By],
    calls: Sequence[Call],
    frame: tuple[str, int | None, int | None],
) -> list[Row]:
    """Each row with its answers; rows that are there twice are listed twice."""
    out: list[Row] = []
    for key in {tuple(row[name] for name in keys) for row in rows}:
        group = [row for row in rows if tuple(row[name] for name in keys) == key]
        others = [name for name in group[0] if name not in (*keys, *(by.column for by in order))]
        in_order = _sorted(group, [*order, *(By(name) for name in others)])
        for at, row in enumerate(in_order):
            answers = {call.name: _answer(in_order, at, order, call, frame) for call in calls}
            out.append({**row, **answers})
    return out


def _are_peers(one: Row, other: Row, order: Sequence[By]) -> bool:
    return all(one[by.column] == other[by.column] for by in order)


def _frame(
    rows: Sequence[Row], at: int, order: Sequence[By], frame: tuple[str, int | None, int | None]
) -> list[int]:
    """The places of the rows of the frame."""
    unit, start, stop = frame
    numbers = [0]
    for before, row in zip(rows, rows[1:], strict=False):
        numbers.append(numbers[-1] + (not _are_peers(before, row, order)))

    def distance(other: int) -> int | None:
        """How far the row is from the one at hand; None: it cannot be told."""
        if unit == "rows":
            return other - at
        if unit == "groups":
            return numbers[other] - numbers[at]
        if not order:
            return 0
        if not start and not stop:
            return None
        here, there = rows[at][order[0].column], rows[other][order[0].column]
        if len(order) > 1 or here is None or there is None:
            return None
        return (there - here) * (-1 if order[0].descending else 1)  # type: ignore[operator, no-any-return]

    inside = []
    for other in range(len(rows)):
        far = distance(other)
        if far is None:  # only whole sides matter
            is_before = numbers[other] < numbers[at]
            is_in = numbers[other] == numbers[at] or (start is None if is_before else stop is None)
        else:
            is_in = (start is None or far >= start) and (stop is None or far <= stop)
        if is_in:
            inside.append(other)
    return inside


def _answer(
    rows: Sequence[Row], at: int, order: Sequence[By], call: Call, frame: tuple[str, int | None, int | None]
) -> Value:
    peers = [other for other in range(len(rows)) if _are_peers(rows[other], rows[at], order)]
    count = len(rows)
    if call.kind == "row_number":
        return at + 1
    if call.kind == "rank":
        return peers[0] + 1
    if call.kind == "dense_rank":
        return 1 + sum(not _are_peers(rows[n], rows[n + 1], order) for n in range(at))
    if call.kind == "percent_rank":
        return peers[0] / (count - 1) if count > 1 else 0.0
    if call.kind == "cume_dist":
        return (peers[-1] + 1) / count
    if call.kind == "ntile":
        sizes = [count // call.amount + (part < count % call.amount) for part in range(call.amount)]
        return next(n + 1 for n in range(call.amount) if at < sum(sizes[: n + 1]))
    if call.kind == "copy_number":
        return 1 + sum(rows[other] == rows[at] for other in range(at))
    if call.kind == "lag":
        other = at - call.amount
        return rows[other][str(call.column)] if 0 <= other < count else None
    inside = _frame(rows, at, order, frame)
    if call.kind == "count" and call.column is None:
        return len(inside)
    values = [rows[other][str(call.column)] for other in inside]
    if call.kind in ("first_value", "last_value", "nth_value"):
        wanted = {"first_value": 0, "last_value": len(values) - 1, "nth_value": call.amount - 1}[call.kind]
        return values[wanted] if 0 <= wanted < len(values) else None
    there = [value for value in values if value is not None]
    if call.kind == "count":
        return len(there)
    if not there:
        return None
    if call.kind in ("min", "max"):
        return (min if call.kind == "min" else max)(there)  # type: ignore[type-var]
    total = there[0]
    for value in there[1:]:
        total += value  # type: ignore[operator]
    return total if call.kind == "sum" else total / len(there)  # type: ignore[operator]
