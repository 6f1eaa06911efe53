"""Ordered windows: for each row of a group some answers that depend on the rows around it, in an order.

    rows       in the layout of the order (`layout.py`), sorted within each group
    answer     the row, and behind it the words of each function

A row of multiplicity 3 is three rows, one after another; one of a negative multiplicity is none. Rows that
are equal in the order are *peers*: they come in the order of their other words, and share ranks, and the ends
of frames that count by range or by groups.

    unit     a frame from `start` to `stop` of the row at hand, both included; None: from the first, or to the
             last
    rows     that many rows further
    groups   that many groups of peers further; 0 is the whole group of the row itself
    range    with a value so much larger in the only column of the order (smaller, if it descends)

A row whose value in the order is null has a frame of the rows with null, where a range has bounds.

A sum that does not fit its column has `NO_SUM` in place of the 1 that says that there is a value. Such an
answer is kept as others are, so that it can go again; the machine sends a failure in place of the row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from differential.columns.column_types import DECIMAL_DIGITS_MAX, Bools, Int64s
from differential.columns.float_words import floats_to_words, words_to_floats
from differential.errors import MultiplicityOverflowError
from differential.kernels.rows.sort import sort_consolidate
from differential.kernels.sweeps.around import rows_around
from differential.kernels.sweeps.frames import frame_extremes, frame_float_sums, range_frames

__all__ = [
    "COPIES_MAX",
    "NO_SUM",
    "Frame",
    "FrameUnit",
    "WindowFunctions",
    "WindowKind",
    "WindowPart",
    "window_answers",
    "window_changes",
]

FrameUnit = Literal["rows", "groups", "range"]
WindowKind = Literal[
    "row_number",
    "rank",
    "dense_rank",
    "percent_rank",
    "cume_dist",
    "ntile",
    "lag",
    "first_value",
    "last_value",
    "nth_value",
    "count",
    "sum",
    "avg",
    "min",
    "max",
]

COPIES_MAX: Final = 1 << 28
"""The largest number of rows of the groups that change at once, rows of a multiplicity counted so often."""

NO_SUM: Final = 2
"""In place of 0 for null and 1 for a value: the sum leaves 64 bits, or the digits of a decimal."""

_NUMBERS: Final = ("row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "count")
"""Kinds whose answer is never null."""

_OF_FRAMES: Final = ("first_value", "last_value", "nth_value", "count", "sum", "avg", "min", "max")
_REACH_MAX: Final = 1_000
"""Of frames that reach further, groups are gone through as a whole."""

_SAFE_SUM: Final = float(1 << 62)
_DECIMAL_END: Final = 10**DECIMAL_DIGITS_MAX


@dataclass(frozen=True)
class Frame:
    """The rows that an aggregate sees; see above."""

    unit: FrameUnit = "range"
    start: int | None = None
    stop: int | None = 0


@dataclass(frozen=True)
class WindowPart:
    """A function of the window.

    value      the word of its argument in the layout; -1: it has none
    flag       the word that says whether that is not null; -1: it never is
    is_float   the argument is a float
    is_decimal it is a decimal
    amount     lag: how many rows back (negative: ahead); ntile: how many parts; nth_value: which row, from 1
    inverted   the word of the argument has every bit flipped, since it is in a descending order
    """

    kind: WindowKind
    value: int = -1
    flag: int = -1
    is_float: bool = False
    is_decimal: bool = False
    amount: int = 0
    inverted: bool = False

    @property
    def words(self) -> int:
        """The number of words of its answer."""
        return 1 if self.kind in _NUMBERS else 2

    @property
    def may_fail(self) -> bool:
        """True for sums that may not fit."""
        return self.kind == "sum" and not self.is_float


@dataclass(frozen=True)
class WindowFunctions:
    """All functions of one window.

    width     the words of a row behind its key, in the layout
    ordered   how many of these make the order
    by        of a range with bounds: the flag of the column of the order (or -1) and its word
    symbols   (word, 1 or -1): see `FirstRows`
    """

    parts: tuple[WindowPart, ...]
    frame: Frame
    width: int
    ordered: int
    by: tuple[int, int] = (-1, -1)
    symbols: tuple[tuple[int, int], ...] = ()
    rank_of: Callable[[Int64s], Int64s] | None = None

    @property
    def words(self) -> int:
        """Value words of an answer."""
        return self.width + sum(part.words for part in self.parts)

    @property
    def reach(self) -> int:
        """How many rows around a change decide of the answers that it changes; -1 if any row of the group
        may.
        """
        frame, reach = self.frame, 0
        if self.symbols:  # places of long texts may be out of order, and are put in order for whole groups
            return -1
        for part in self.parts:
            if part.kind == "lag":
                reach = max(reach, abs(part.amount))
            elif part.kind in _OF_FRAMES and frame.unit == "rows" and None not in (frame.start, frame.stop):
                reach = max(reach, abs(frame.start or 0), abs(frame.stop or 0))
            else:
                return -1
        return 2 * reach if reach <= _REACH_MAX else -1

    @property
    def sums(self) -> list[tuple[int, int]]:
        """The number of each part that may not fit, and the word of an answer that says so."""
        ends = np.cumsum([part.words for part in self.parts]).tolist()
        starts = zip(self.parts, [0, *ends], strict=False)
        return [(at, self.width + start) for at, (part, start) in enumerate(starts) if part.may_fail]


class _Rows(NamedTuple):
    """The rows of all groups, each copy of a row by itself.

    words    int64[width, n]
    groups   int64[2, n]: where the group of each row starts and ends
    peers    int64[2, n]: where its peers do
    number   int64[n]: of the group
    """

    words: Int64s
    groups: Int64s
    peers: Int64s
    number: Int64s


def window_answers(rows: Int64s, bounds: Int64s, functions: WindowFunctions) -> Int64s:
    """Return each copy of each row with its answers; the arguments are those of the kernels of sweeps.

    rows     int64[width + 1, n]; bounds int64[2, g]
    result   int64[words + 2, m]: the answer, 1, and the number of the group
    Raises MultiplicityOverflowError for too many copies.
    """
    all_rows = _copies(_in_value_order(rows, bounds, functions), bounds, functions)
    frames = _frames(all_rows, functions)
    answers = [all_rows.words]
    for part in functions.parts:
        answers.append(_answer(part, all_rows, frames))
    ones = np.ones((1, all_rows.number.shape[0]), np.int64)
    return np.concatenate([*answers, ones, all_rows.number[np.newaxis]])


def _in_value_order(rows: Int64s, bounds: Int64s, functions: WindowFunctions) -> Int64s:
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


def _copies(rows: Int64s, bounds: Int64s, functions: WindowFunctions) -> _Rows:
    """Return each copy of each row that is there."""
    sizes = bounds[1] - bounds[0]
    number = np.arange(bounds.shape[1]).repeat(sizes)
    which = np.arange(int(sizes.sum())) + (bounds[0] - np.cumsum(sizes) + sizes).repeat(sizes)
    times = np.maximum(rows[-1, which], 0)
    if float(times.sum(dtype=np.float64)) > COPIES_MAX:
        raise MultiplicityOverflowError(
            f"the groups of a window that change at once have more than {COPIES_MAX:,} rows, each counted as "
            "often as it is there: divide them by more keys"
        )
    which, number = which.repeat(times), number.repeat(times)
    words = np.ascontiguousarray(rows[:-1, which])
    count = which.shape[0]
    is_first = np.ones(count, np.bool_)
    is_first[1:] = number[1:] != number[:-1]
    is_new = is_first.copy()
    for word in range(functions.ordered):
        is_new[1:] |= words[word, 1:] != words[word, :-1]
    return _Rows(words, _spans(is_first), _spans(is_new), number)


def _spans(begins: Bools) -> Int64s:
    """Return for each row where the run of rows begins and ends that it is in."""
    at = np.flatnonzero(begins)
    sizes = np.diff(np.append(at, begins.shape[0]))
    return np.array([at.repeat(sizes), (at + sizes).repeat(sizes)], np.int64)


def _frames(rows: _Rows, functions: WindowFunctions) -> Int64s:
    """Return the frame of each row: int64[2, n]."""
    frame, groups = functions.frame, rows.groups
    if frame.unit == "range" and (frame.start or frame.stop):
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


def _by_peers(rows: _Rows, frame: Frame) -> Int64s:
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


def _by_range(rows: _Rows, functions: WindowFunctions) -> Int64s:
    """Return frames of values within bounds."""
    frame, (flag, word) = functions.frame, functions.by
    sides = (frame.start is not None) + 2 * (frame.stop is not None)
    is_value = np.ones(rows.number.shape[0], np.bool_) if flag < 0 else _is_value(rows.words[flag])
    values = np.flatnonzero(is_value)
    out = rows.peers.copy()
    # Rows with null are together, at one end of their group: the others are a group of their own here.
    own = rows.number[values]
    begins = np.ones(own.shape[0], np.bool_)
    begins[1:] = own[1:] != own[:-1]
    frames = range_frames(
        np.ascontiguousarray(rows.words[word, values]),
        _spans(begins),
        frame.start or 0,
        frame.stop or 0,
        sides,
    )
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


def _is_value(flags: Int64s) -> Bools:
    """Return which rows have a value: flags are 0 and 1, or inverted, -1 and -2."""
    is_value: Bools = (flags == 1) | (flags == -2)
    return is_value


def _answer(part: WindowPart, rows: _Rows, frames: Int64s) -> Int64s:
    if part.kind in _NUMBERS:
        return _number(part, rows, frames)[np.newaxis]
    values = ~rows.words[part.value] if part.inverted else rows.words[part.value]
    there = (
        np.ones(values.shape[0], np.int64)
        if part.flag < 0
        else _is_value(rows.words[part.flag]) + np.int64(0)
    )
    if part.kind in ("lag", "first_value", "last_value", "nth_value"):
        return _picked(part, rows, frames, (there, values))
    if part.kind in ("min", "max"):
        return frame_extremes(np.ascontiguousarray(values), there, frames, 1 if part.kind == "min" else -1)
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


def _number(part: WindowPart, rows: _Rows, frames: Int64s) -> Int64s:
    """Return an answer that every row has."""
    kind, (start, stop), peers = part.kind, rows.groups, rows.peers
    place: Int64s = np.arange(start.shape[0]) - start
    size: Int64s = stop - start
    before: Int64s = peers[0] - start
    if kind == "row_number":
        place += 1
        return place
    if kind == "rank":
        before += 1
        return before
    if kind == "dense_rank":
        upto = np.zeros(start.shape[0], np.int64)
        upto[peers[0]] = 1
        np.cumsum(upto, out=upto)
        return upto - upto[start] + 1 if upto.shape[0] else upto
    if kind == "percent_rank":
        return floats_to_words(before / np.maximum(size - 1, 1))
    if kind == "cume_dist":
        return floats_to_words((peers[1] - start) / np.maximum(size, 1))
    if kind == "ntile":
        return _ntile(place, size, part.amount)
    if part.flag < 0:  # a value that is never null counts as its row
        return _upto(np.ones(start.shape[0], np.int64), frames)
    return _upto(_is_value(rows.words[part.flag]).astype(np.int64), frames)


def _ntile(place: Int64s, size: Int64s, parts: int) -> Int64s:
    least, larger = size // parts, size % parts
    in_larger = larger * (least + 1)
    number: Int64s = larger + (place - in_larger) // np.maximum(least, 1)
    is_larger = place < in_larger
    number[is_larger] = (place // (least + 1))[is_larger]
    number += 1
    return number


def _picked(part: WindowPart, rows: _Rows, frames: Int64s, argument: tuple[Int64s, Int64s]) -> Int64s:
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
        return np.zeros((2, 0), np.int64)
    has = there[safe] * is_in
    return np.array([has, values[safe] * has], np.int64)


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
    if part.is_decimal:
        fits = np.array((exact > -_DECIMAL_END) & (exact < _DECIMAL_END), np.bool_)
    return np.array([np.where(fits, counts > 0, NO_SUM), total], np.int64)


def window_changes(ready: Int64s, lines: Int64s, kw: int, functions: WindowFunctions) -> Int64s:
    """Return the corrections for changed rows of one time, from the rows around them alone, sorted and
    consolidated. Requires: `functions.reach` ≥ 0; all rows of the run table `lines` count at that time.

    The rows around a change are a group here, before and after it. Where that is cut off, the answers of rows
    near the cut are wrong, and equal: they cancel. Rows to which the change matters are far enough from it.
    """
    vw = functions.width
    rows = rows_around(ready, lines, kw, vw, functions.reach)
    starts = np.flatnonzero(np.diff(rows[vw + 2], prepend=-1))
    bounds: Int64s = np.array([starts, np.append(starts[1:], rows.shape[1])], np.int64)
    parts: list[Int64s] = []
    for sign in (1, -1):
        there = rows[: vw + 1].copy()
        if sign > 0:
            there[vw] += rows[vw + 1]
        answers = window_answers(there, bounds, functions)
        keys = rows[vw + 3, starts][answers[-1]]
        part: Int64s = np.empty((kw + functions.words + 2, answers.shape[1]), np.int64)
        part[:kw] = ready[:kw, keys]
        part[kw:-2] = answers[:-2]
        part[-2] = ready[-2, keys]
        part[-1] = sign
        parts.append(part)
    return sort_consolidate(np.ascontiguousarray(np.concatenate(parts, axis=1)))
