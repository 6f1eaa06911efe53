"""The functions of an ordered window, and the rows that they see.

A row of multiplicity 3 is three rows, its *copies*, one after another; one of a negative multiplicity is
none. Rows that are equal in the order are *peers*: they come in the order of their other words, and share
ranks, and the ends of frames that count by range or by groups.

    unit     a frame from `start` to `stop` of the row at hand, both included; None: from the first, or to the
             last
    rows     that many rows further
    groups   that many groups of peers further; 0 is the whole group of the row itself
    range    with a value so much larger in the only column of the order (smaller, if it descends)
    range_of_floats, range_of_months, range_of_wide   the same, where this is not so much more in one word:
             bounds are the words of floats, numbers of months, or last digits of decimals of two words

A row whose value in the order is null has a frame of the rows with null, where a range has bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from differential.columns.column_types import Bools, ColumnType, Int64s
from differential.columns.float_words import words_to_floats
from differential.errors import MultiplicityOverflowError
from differential.kernels.sweeps.around import (
    AHEAD,
    BACK,
    BLOCKS,
    DISTANCE,
    EDGE,
    FLAG,
    KW,
    LIMIT,
    MARKED,
    NEAR,
    VW,
    WHOLE,
    WORD,
)
from differential.kernels.sweeps.running import spread

__all__ = [
    "COPIES_MAX",
    "NO_SUM",
    "NUMBERS",
    "Copies",
    "Frame",
    "FrameUnit",
    "WindowFunctions",
    "WindowKind",
    "WindowPart",
    "copies_of",
    "is_read_backwards",
    "two_ways",
]

FrameUnit = Literal["rows", "groups", "range", "range_of_floats", "range_of_months", "range_of_wide"]
WindowKind = Literal[
    "row_number",
    "rank",
    "dense_rank",
    "percent_rank",
    "cume_dist",
    "ntile",
    "copy_number",
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
"""`copy_number` is the number of a copy among those of its row, from 1 on. It tells copies apart where a
window is made of two (`two_ways`)."""

COPIES_MAX: Final = 1 << 28
"""The largest number of rows of the groups that change at once, rows of a multiplicity counted so often."""

NO_SUM: Final = 2
"""In place of 0 for null and 1 for a value: the sum leaves 64 bits, or the digits of a decimal."""

NUMBERS: Final = (
    "row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "copy_number", "count",
)  # fmt: skip
"""Kinds whose answer is never null."""

_OF_FRAMES: Final = ("first_value", "last_value", "nth_value", "count", "sum", "avg", "min", "max")
_OF_RANKS: Final = ("rank", "percent_rank", "cume_dist")
_OF_PEERS: Final = ("rank", "dense_rank", "percent_rank", "cume_dist")
_FARTHEST: Final = (1 << 62) - 1
"""A distance in rows that no group has."""

_BACKWARDS: Final = frozenset(("count", "sum", "avg", "min", "max", "last_value"))
"""Where frames end with the group, a change has other answers for all rows before it, but for few behind."""

_EITHER_WAY: Final = frozenset(("lag", "first_value"))
"""Functions that cost as little in one direction as in the other."""


@dataclass(frozen=True)
class Frame:
    """The rows that an aggregate sees; see above."""

    unit: FrameUnit = "range"
    start: int | None = None
    stop: int | None = 0

    @property
    def is_all(self) -> bool:
        """True if every row sees its whole group."""
        return self.start is None and self.stop is None

    def describe(self) -> str:
        """Return it as a user would write it."""
        bounds: list[object] = [self.start, self.stop]
        if self.unit == "range_of_floats":
            bounds = [
                None if each is None else float(words_to_floats(np.array([each], np.int64))[0])
                for each in (self.start, self.stop)
            ]
        elif self.unit == "range_of_months":
            bounds = [f"dd.months({each})" if each else each for each in bounds]
        unit = "range" if self.is_of_values else self.unit
        return f"{unit}_between({bounds[0]}, {bounds[1]})"

    @property
    def is_of_values(self) -> bool:
        """True for a range whose bounds are added to values, and not to their words."""
        return self.unit in ("range_of_floats", "range_of_months", "range_of_wide")


def is_read_backwards(kinds: Collection[str], frame: Frame) -> bool:
    """Return True for a window whose frames end with the group, but do not begin with it, if all of its
    functions can go from the last row back: their frames begin with the group then.
    """
    if frame.start is None or frame.stop is not None or frame.is_of_values:
        return False
    if not set(kinds) <= _BACKWARDS | _EITHER_WAY:
        return False
    # What `first_value` picks may be any number of rows further, where a range begins behind the row.
    is_far = frame.unit == "range" and frame.start > 0 and "first_value" in kinds
    return is_far or not _BACKWARDS.isdisjoint(kinds)


def two_ways(kinds: Sequence[str], frame: Frame) -> tuple[list[int], list[int]] | None:
    """Return which functions go forwards, and which backwards, if a window has both kinds; else None."""
    if frame.start is None or frame.stop is not None or frame.is_of_values:
        return None
    back = [at for at, kind in enumerate(kinds) if kind in _BACKWARDS | _EITHER_WAY]
    on = [at for at, kind in enumerate(kinds) if kind not in _BACKWARDS | _EITHER_WAY]
    return (on, back) if on and not _BACKWARDS.isdisjoint(kinds) else None


@dataclass(frozen=True)
class WindowPart:
    """A function of the window.

    value      the first word of its argument in the layout; -1: it has none
    flag       the word that says whether that is not null; -1: it never is
    is_float   the argument is a float
    of         its type, if it is a decimal
    to         the type of the answer, if it is one
    amount     lag: how many rows back (negative: ahead); ntile: how many parts; nth_value: which row, from 1
    inverted   the word of the argument has every bit flipped, since it is in a descending order
    """

    kind: WindowKind
    value: int = -1
    flag: int = -1
    is_float: bool = False
    of: ColumnType | None = None
    to: ColumnType | None = None
    amount: int = 0
    inverted: bool = False

    @property
    def words(self) -> int:
        """The number of words of its answer."""
        if self.kind in NUMBERS:
            return 1
        return 2 if self.to is None else self.to.or_null().words

    @property
    def is_wide(self) -> bool:
        """True if its argument is of two words: no state holds what that has come to."""
        return self.of is not None and self.of.is_wide and self.kind not in NUMBERS

    @property
    def may_fail(self) -> bool:
        """True for sums, and means of decimals, that may not fit."""
        return (self.kind == "sum" and not self.is_float) or (self.kind == "avg" and self.of is not None)


@dataclass(frozen=True)
class WindowFunctions:
    """All functions of one window.

    width     the words of a row behind its key, in the layout
    ordered   how many of these make the order
    by        of a range with bounds: the flag of the column of the order (or -1) and its word
    symbols   (word, 1 or -1): see `FirstRows`
    is_down   the column of the order descends: its word has every bit flipped
    per_day   of an order of times: how many of its units a day has
    """

    parts: tuple[WindowPart, ...]
    frame: Frame
    width: int
    ordered: int
    by: tuple[int, int] = (-1, -1)
    symbols: tuple[tuple[int, int], ...] = ()
    rank_of: Callable[[Int64s], Int64s] | None = None
    is_down: bool = False
    per_day: int = 1

    @property
    def words(self) -> int:
        """Value words of an answer."""
        return self.width + sum(part.words for part in self.parts)

    @property
    def runs(self) -> tuple[bool, ...]:
        """For each part: its answers are what it has come to at the end of a frame that begins with the
        group.
        """
        is_running = self.frame.start is None
        return tuple(is_running and part.kind in _OF_FRAMES and not part.is_wide for part in self.parts)

    @property
    def has_frames(self) -> bool:
        """True if some part sees a frame."""
        return any(part.kind in _OF_FRAMES for part in self.parts)

    @property
    def asks_peers(self) -> bool:
        """True if answers depend on which rows are equal in the order."""
        of_peers = any(part.kind in _OF_PEERS for part in self.parts)
        return of_peers or (self.has_frames and self.frame.unit != "rows" and not self.frame.is_all)

    @property
    def compared(self) -> Bools:
        """The lines of a state (`running.py`) that decide of later answers."""
        kinds = {part.kind for part in self.parts}
        counts = (not kinds.isdisjoint(("row_number", *_OF_RANKS)), "dense_rank" in kinds)
        return np.array([*counts, *(runs for runs in self.runs for _ in range(3))], np.bool_)

    @property
    def totals(self) -> Bools:
        """The lines of a state at the end of a group that decide of the answers of all its rows."""
        of_size = any(part.kind in ("percent_rank", "cume_dist") for part in self.parts)
        of_all = self.frame.is_all
        return np.array(
            [of_size, False, *(runs and of_all for runs in self.runs for _ in range(3))], np.bool_
        )

    @property
    def buckets(self) -> tuple[int, ...]:
        """How many parts each `ntile` has."""
        return tuple(part.amount for part in self.parts if part.kind == "ntile")

    @property
    def asks_totals(self) -> bool:
        """True if answers depend on what all rows of a group have come to."""
        return bool(self.buckets) or bool(self.totals.any())

    @property
    def is_whole(self) -> bool:
        """True if each change is worked off by a pass over its group."""
        frame, kinds = self.frame, {part.kind for part in self.parts if part.kind in _OF_FRAMES}
        if frame.is_of_values and kinds:
            return True
        if frame.start is None and any(part.is_wide and part.kind in _OF_FRAMES for part in self.parts):
            return True
        if not kinds:
            return False
        if frame.start is not None and frame.stop is None:
            # Such frames are turned round (`ordered/windows.py`), but for values near their begin.
            is_behind = frame.unit == "range" and frame.start > 0
            if is_behind or not kinds <= {"first_value", "nth_value"}:
                return True
        return frame.unit == "range" and max(self._looks) > _FARTHEST

    @property
    def _looks(self) -> tuple[int, int]:
        """How far rows look back and ahead in their frames: of a running function, to where a frame ends; of
        one that ends with the group, to where it begins.
        """
        frame = self.frame
        back = frame.stop if frame.start is None else frame.start
        ahead = frame.start if frame.stop is None else frame.stop
        return max(-(back or 0), 0), max(ahead or 0, 0)

    @property
    def _picks(self) -> int:
        """How many rows behind the first of its frame, which ends with the group, a function looks for its
        value, at most.
        """
        if self.frame.start is None or self.frame.stop is not None:
            return 0
        return max([0, *(part.amount - 1 for part in self.parts if part.kind == "nth_value")])

    @property
    def is_marked(self) -> bool:
        """True if large groups have marks, from whose states later rows go on."""
        return not self.is_whole and (bool(self.compared.any()) or self.asks_totals)

    def shape(self, kw: int, limit: int | None, reach: int = 0) -> Int64s:
        """Return the form that `stretch_rows` takes.

        limit   as its `LIMIT`; None: a stretch is the whole group
        reach   so many rows around a change, or a touched row, may have another answer
        """
        frame, shape = self.frame, np.zeros(14, np.int64)
        both, looks = [BACK, AHEAD], np.minimum(self._looks, _FARTHEST)
        shape[[KW, VW, LIMIT, WHOLE]] = kw, self.width, limit or 0, limit is None
        shape[[EDGE, FLAG, WORD]] = self.ordered, -1, -1
        shape[MARKED] = self.is_marked
        near, blocks, distance = (np.array(both) + first for first in (NEAR, BLOCKS, DISTANCE))
        lags = [part.amount for part in self.parts if part.kind == "lag"]
        shape[near] = max([reach, *lags]), max([reach, *(-amount for amount in lags)])
        shape[blocks] = 0 if self.asks_peers else -1
        if limit is None or not self.has_frames or frame.is_all:
            return shape
        if frame.unit == "rows":
            shape[near] = np.maximum(shape[near], np.minimum(looks + [0, self._picks], _FARTHEST))
        elif frame.unit == "groups":
            shape[blocks] = np.minimum(looks + [0, self._picks], _FARTHEST)
        else:
            shape[NEAR + AHEAD] = max(int(shape[NEAR + AHEAD]), min(self._picks, _FARTHEST))
            if frame.start or frame.stop:
                shape[[FLAG, WORD]] = self.by
                shape[distance] = looks
        return shape

    @property
    def sums(self) -> list[tuple[int, int]]:
        """The number of each part that may not fit, and the word of an answer that says so."""
        ends = np.cumsum([part.words for part in self.parts]).tolist()
        starts = zip(self.parts, [0, *ends], strict=False)
        return [(at, self.width + start) for at, (part, start) in enumerate(starts) if part.may_fail]


@dataclass(frozen=True)
class Copies:
    """The copies of the rows of all groups.

    words    int64[width, m]: the rows
    which    int64[n]: the row of each copy
    number   int64[n]: its group, ascending
    groups   int64[2, n]: where its group starts and ends
    peers    int64[2, n]: where its peers do, if the functions ask about them
    """

    words: Int64s
    which: Int64s
    number: Int64s
    groups: Int64s
    peers: Int64s

    def word(self, number: int) -> Int64s:
        """Return a word of each copy."""
        word: Int64s = self.words[number, self.which]
        return word


def copies_of(words: Int64s, times: Int64s, bounds: Int64s, functions: WindowFunctions) -> Copies:
    """Return the copies of the rows of groups; the arguments are those of `spread`.

    Raises MultiplicityOverflowError for too many copies.
    """
    if float(np.maximum(times, 0).sum(dtype=np.float64)) > COPIES_MAX:
        raise MultiplicityOverflowError(
            f"the groups of a window that change at once have more than {COPIES_MAX:,} rows, each "
            "counted as often as it is there: divide them by more keys"
        )
    spread_rows = spread(words, times, bounds, functions.ordered if functions.asks_peers else 0)
    return Copies(words, spread_rows[0], spread_rows[1], spread_rows[2:4], spread_rows[4:])
