"""Ordered windows: for each row of a group some answers that depend on the rows around it, in an order.

    rows       in the layout of the order (`layout.py`), sorted within each group
    answer     the row, and behind it the words of each function

A sum that does not fit its column has `NO_SUM` in place of the 1 that says that there is a value. Such an
answer is kept as others are, so that it can go again; the machine sends a failure in place of the row.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from differential.columns.column_types import Bools, Int64s
from differential.columns.float_words import floats_to_words, words_to_floats
from differential.expressions.arithmetic.wide_numbers import Numbers
from differential.kernels.sweeps.frames import frame_extremes, frame_float_sums, range_frames
from differential.operators.reducing.decimal_frames import decimal_means, decimal_sums, wide_extremes
from differential.operators.reducing.running import (
    arguments_of,
    at_frame_ends,
    flagged,
    is_value_in,
    peers_upto,
    run_states,
    running_answer,
)
from differential.operators.reducing.value_frames import value_frames
from differential.operators.reducing.window_parts import (
    NO_SUM,
    NUMBERS,
    Copies,
    Frame,
    WindowFunctions,
    WindowPart,
    copies_of,
)

__all__ = ["frame_stops", "in_value_order", "part_answers", "unclear_rows", "window_answers"]

_SAFE_SUM: Final = float(1 << 62)
_OF_PLACES: Final = (
    "row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "copy_number", "lag",
)  # fmt: skip
"""These see no frame."""


def window_answers(rows: Int64s, bounds: Int64s, functions: WindowFunctions) -> Int64s:
    """Return each copy of each row with its answers; the arguments are those of the kernels of sweeps.

    rows     int64[width + 1, n]; bounds int64[2, g]
    result   int64[words + 2, m]: the answer, 1, and the number of the group
    Raises MultiplicityOverflowError for too many copies.
    """
    rows = in_value_order(rows, bounds, functions)
    copies = copies_of(rows, np.ascontiguousarray(rows[-1:]), bounds, functions)
    before = np.zeros((2 + 3 * len(functions.parts), bounds.shape[1]), np.int64)
    states = run_states(copies, functions, before)
    ones = np.ones((1, copies.number.shape[0]), np.int64)
    words = rows[:-1, copies.which]
    answers = part_answers(copies, functions, states, before)
    return np.concatenate([words, answers, ones, copies.number[np.newaxis]])


def part_answers(
    copies: Copies,
    functions: WindowFunctions,
    states: list[Int64s],
    before: Int64s,
    totals: Int64s | None = None,
) -> Int64s:
    """Return the answers of all functions, one behind the other: int64[·, n].

    states   what running functions have come to at each copy: see `running.py`
    before   the states before each group
    totals   the states at the end of each group; None: the copies are whole groups
    """
    frames, stops = np.empty((2, 0), np.int64), np.empty(0, np.int64)
    if any(
        not runs and part.kind not in _OF_PLACES
        for part, runs in zip(functions.parts, functions.runs, strict=True)
    ):
        frames = _frames(copies, functions)
        stops = frames[1]
    elif any(functions.runs):
        stops = frame_stops(copies, functions)
    groups = copies.groups
    sizes = groups[1] - groups[0] if totals is None else totals[0, copies.number]
    answers: list[Int64s] = []
    for at, part in enumerate(functions.parts):
        if functions.runs[at]:
            begin = 2 + 3 * at
            if functions.frame.stop is None and totals is not None:
                ends = totals[begin : begin + 3, copies.number]
            else:
                ends = at_frame_ends(copies, functions.frame, stops, states[at], before[begin : begin + 3])
            answers.append(running_answer(part, ends))
        elif part.kind in NUMBERS:
            answers.append(_number(part, copies, frames, before, sizes)[np.newaxis])
        else:
            answers.append(_answer(part, copies, frames))
    return np.ascontiguousarray(np.concatenate(answers))


def frame_stops(rows: Copies, functions: WindowFunctions) -> Int64s:
    """Return for each copy the one behind the last of its frame."""
    stops: Int64s = rows.peers[1] if functions.frame == Frame() else _frames(rows, functions)[1]
    return stops


def in_value_order(rows: Int64s, bounds: Int64s, functions: WindowFunctions) -> Int64s:
    """Return the rows of each group in the order of values. They are in it already, but for symbols whose
    beginnings, and the places behind these, are equal.
    """
    unclear = False
    inside = np.ones(max(rows.shape[1] - 1, 0), np.bool_)
    starts = bounds[0][bounds[0] > 0] - 1
    inside[starts[starts < inside.shape[0]]] = False
    for at, _ in functions.symbols:
        equal = inside.copy()
        for word in range(at):
            equal &= rows[word, 1:] == rows[word, :-1]
        unclear |= bool((equal & (rows[at, 1:] != rows[at, :-1])).any())
    if not unclear:
        return rows
    assert functions.rank_of is not None
    compared = rows[: functions.width].copy()
    for at, direction in functions.symbols:
        symbols = np.unique(rows[at])
        ranks = functions.rank_of(symbols)
        compared[at] = direction * ranks[np.searchsorted(symbols, rows[at])]
    group = np.zeros(rows.shape[1], np.int64)
    group[bounds[0][bounds[0] < rows.shape[1]]] = 1
    order = np.lexsort([*compared[::-1], group.cumsum()])
    return np.ascontiguousarray(rows[:, order])


def unclear_rows(rows: Int64s, bounds: Int64s, functions: WindowFunctions) -> Bools:
    """Return which rows, in the order of values, are equal to others of their group up to a symbol of the
    order that differs.
    """
    unclear = np.zeros(rows.shape[1], np.bool_)
    for at, _ in functions.symbols:
        begins = np.ones(rows.shape[1], np.bool_)
        begins[1:] = (rows[:at, 1:] != rows[:at, :-1]).any(axis=0)
        begins[bounds[0][bounds[0] < rows.shape[1]]] = True
        first, sizes = _runs(begins)
        if first.shape[0]:
            differs = np.minimum.reduceat(rows[at], first) != np.maximum.reduceat(rows[at], first)
            unclear |= differs.repeat(sizes)
    return unclear


def _frames(rows: Copies, functions: WindowFunctions) -> Int64s:
    """Return the frame of each row: int64[2, n]."""
    frame, groups = functions.frame, rows.groups
    if frame.is_of_values or (frame.unit == "range" and (frame.start or frame.stop)):
        return _by_range(rows, functions)
    if frame.unit == "rows":
        place = np.arange(groups.shape[1])
        first, last = place, place + 1
    elif frame.unit == "range":
        first, last = rows.peers
    else:
        return _by_peers(rows, frame)
    # `start` and `stop` may be as large as 64 bits allow: no group is.
    farthest = groups.shape[1] + 1
    starts = groups[0] if frame.start is None else first + min(max(frame.start, -farthest), farthest)
    stops = groups[1] if frame.stop is None else last + min(max(frame.stop, -farthest), farthest)
    return _within(starts, stops, groups)


def _within(starts: Int64s, stops: Int64s, groups: Int64s) -> Int64s:
    out = np.array([np.clip(starts, groups[0], groups[1]), np.clip(stops, groups[0], groups[1])], np.int64)
    out[1] = np.maximum(out[0], out[1])
    return out


def _by_peers(rows: Copies, frame: Frame) -> Int64s:
    """Return frames that count groups of peers."""
    begins, of_row = np.unique(rows.peers[0], return_inverse=True)
    ends = rows.peers[1][begins]
    first = of_row[rows.groups[0]] if of_row.shape[0] else of_row
    last = of_row[rows.groups[1] - 1] if of_row.shape[0] else of_row
    farthest = begins.shape[0] + 1
    starts, stops = rows.groups
    if frame.start is not None:
        at = of_row + min(max(frame.start, -farthest), farthest)
        starts = np.where(at > last, rows.groups[1], begins[np.clip(at, first, last)])
    if frame.stop is not None:
        at = of_row + min(max(frame.stop, -farthest), farthest)
        stops = np.where(at < first, rows.groups[0], ends[np.clip(at, first, last)])
    return _within(starts, stops, rows.groups)


def _by_range(rows: Copies, functions: WindowFunctions) -> Int64s:
    """Return frames of values within bounds."""
    frame, (flag, word) = functions.frame, functions.by
    sides = (frame.start is not None) + 2 * (frame.stop is not None)
    is_value = np.ones(rows.number.shape[0], np.bool_) if flag < 0 else is_value_in(rows.word(flag))
    values = np.flatnonzero(is_value)
    out = rows.peers.copy()
    # Rows with null are together, at one end of their group: the others are a group of their own here.
    own = rows.number[values]
    begins = np.ones(own.shape[0], np.bool_)
    begins[1:] = own[1:] != own[:-1]
    if frame.is_of_values:
        lines = [word, word + 1] if frame.unit == "range_of_wide" else [word]
        frames = value_frames(np.array([rows.word(line)[values] for line in lines]), own, functions)
    else:
        words = np.ascontiguousarray(rows.word(word)[values])
        frames = range_frames(words, _spans(begins), frame.start or 0, frame.stop or 0, sides)
    # A frame is given by places among values; the one behind the last is behind it in its group.
    if values.shape[0]:
        shift = values - np.arange(values.shape[0])
        frames += shift
    out[:, values] = frames
    if frame.start is None:
        out[0] = rows.groups[0]
    if frame.stop is None:
        out[1] = rows.groups[1]
    return out


def _spans(begins: Bools) -> Int64s:
    """Return for each row where the run of rows begins and ends that it is in; `begins`: where one begins."""
    at, sizes = _runs(begins)
    return np.array([at.repeat(sizes), (at + sizes).repeat(sizes)], np.int64)


def _runs(begins: Bools) -> tuple[Int64s, Int64s]:
    """Return the first row of each run of rows, and how many rows it has; `begins`: where one begins."""
    at = np.flatnonzero(begins)
    return at, np.diff(np.append(at, begins.shape[0]))


def _answer(part: WindowPart, rows: Copies, frames: Int64s) -> Int64s:
    there, values = arguments_of(part, rows)
    if part.kind in ("lag", "first_value", "last_value", "nth_value"):
        return _picked(part, rows, frames, (there, values))
    if part.kind in ("min", "max"):
        return _extremes(part, np.ascontiguousarray(values), there, frames)
    if part.of is not None:
        return _of_decimals(part, values, there, frames)
    if part.is_float:
        numbers = words_to_floats(np.ascontiguousarray(values)).view(np.int64)
        out = frame_float_sums(numbers, there, frames)
        total = out[1].view(np.float64)
        if part.kind == "avg":
            total = total / np.maximum(out[0], 1)
        answer = np.array([out[0] > 0, floats_to_words(np.ascontiguousarray(total))], np.int64)
    else:
        answer = _whole_sum(part, values, there, frames)
    answer[1] *= answer[0]
    return answer


def _extremes(part: WindowPart, values: Int64s, there: Int64s, frames: Int64s) -> Int64s:
    """Return the least or greatest values. Frames that go back, as those of months may, are few."""
    extremes, sign = wide_extremes if part.is_wide else frame_extremes, 1 if part.kind == "min" else -1
    onwards = np.maximum.accumulate(frames, axis=1)
    answer = extremes(values, there, onwards, sign)
    for row in np.flatnonzero((frames != onwards).any(axis=0)).tolist():
        start, stop = frames[:, row].tolist()
        whole = np.repeat(np.array([[0], [stop - start]]), stop - start, axis=1)
        its = extremes(np.ascontiguousarray(values[..., start:stop]), there[start:stop], whole, sign)
        answer[:, row] = its[:, 0] if stop > start else 0
    return answer


def _number(part: WindowPart, rows: Copies, frames: Int64s, states: Int64s, sizes: Int64s) -> Int64s:
    """Return an answer that every row has; `states`: before each group; `sizes`: of the group of each row."""
    kind, start = part.kind, rows.groups[0]
    if kind == "count":
        return _upto(arguments_of(part, rows)[0], frames)
    if kind == "copy_number":
        begins = np.ones(start.shape[0], np.bool_)
        begins[1:] = (rows.which[1:] != rows.which[:-1]) | (rows.number[1:] != rows.number[:-1])
        copies: Int64s = np.arange(1, start.shape[0] + 1) - _spans(begins)[0]
        return copies
    if kind == "dense_rank":
        upto = peers_upto(rows)
        upto += states[1, rows.number]
        return upto
    earlier = states[0, rows.number] - start  # beside the place of a copy: rows before it in its group
    if kind in ("row_number", "ntile"):
        place: Int64s = np.arange(start.shape[0]) + earlier
        return place + 1 if kind == "row_number" else _ntile(place, sizes, part.amount)
    if kind == "cume_dist":
        return floats_to_words((rows.peers[1] + earlier) / np.maximum(sizes, 1))
    before: Int64s = rows.peers[0] + earlier
    return before + 1 if kind == "rank" else floats_to_words(before / np.maximum(sizes - 1, 1))


def _ntile(place: Int64s, size: Int64s, parts: int) -> Int64s:
    least, larger = size // parts, size % parts
    in_larger = larger * (least + 1)
    number: Int64s = larger + (place - in_larger) // np.maximum(least, 1)
    is_larger = place < in_larger
    number[is_larger] = (place // (least + 1))[is_larger]
    number += 1
    return number


def _picked(part: WindowPart, rows: Copies, frames: Int64s, argument: tuple[Int64s, Int64s]) -> Int64s:
    """Return the value in another row, or null."""
    there, values = argument
    place, count = np.arange(there.shape[0]), there.shape[0]
    if part.kind == "lag":
        amount = min(max(part.amount, -count), count)
        at, (first, last) = place - amount, rows.groups
    elif part.kind == "last_value":
        at, (first, last) = frames[1] - 1, frames
    else:
        behind = min(part.amount - 1, count) if part.kind == "nth_value" else 0
        at, (first, last) = frames[0] + behind, frames
    is_in = (at >= first) & (at < last)
    safe = np.where(is_in, at, 0)
    if not count:
        return np.zeros((part.words, 0), np.int64)
    has = there[safe] * is_in
    return np.vstack([has, values[..., safe] * has])


def _of_decimals(part: WindowPart, values: Int64s, there: Int64s, frames: Int64s) -> Int64s:
    """Return sums or means of decimals, in the type of the answer."""
    assert part.of is not None and part.to is not None
    counts, numbers = _upto(there, frames), Numbers(values, part.of.scale, part.is_wide)
    if part.kind == "avg":
        return flagged(counts > 0, *decimal_means(numbers, there, frames, counts, part.to))
    return flagged(counts > 0, *decimal_sums(numbers, there, frames, part.to))


def _upto(values: Int64s, frames: Int64s) -> Int64s:
    """Return the sums of whole numbers in the frames, modulo 2 ** 64."""
    upto = np.zeros(values.shape[0] + 1, np.int64)
    np.cumsum(values, out=upto[1:])
    sums: Int64s = upto[frames[1]] - upto[frames[0]]
    return sums


def _whole_sum(part: WindowPart, values: Int64s, there: Int64s, frames: Int64s) -> Int64s:
    counts, numbers = _upto(there, frames), values * there
    total, fits = _upto(numbers, frames), np.ones(counts.shape[0], np.bool_)
    exact: npt.NDArray[np.object_] | Int64s = total
    if float(np.abs(numbers.astype(np.float64)).sum()) >= _SAFE_SUM:
        upto = np.concatenate([np.zeros(1, object), np.cumsum(numbers.astype(object))])
        exact = upto[frames[1]] - upto[frames[0]]
        fits = np.array([-(1 << 63) <= each < 1 << 63 for each in exact], np.bool_)
    if part.kind == "avg":
        return np.array(
            [counts > 0, floats_to_words(exact.astype(np.float64) / np.maximum(counts, 1))], np.int64
        )
    return np.array([np.where(fits, counts > 0, NO_SUM), total], np.int64)
