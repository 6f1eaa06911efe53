"""What is made of all values of a group: percentiles, a list, or one text.

    answers     of whole groups, in columns: the arguments and the result are those of the kernels of sweeps
                (`kernels/sweeps/sweep.py`)
    changes     of percentiles alone: the corrections for rows that change, by a search for the places in the
                order of the group (`kernels/sweeps/selection.py`) instead of a pass through it

Rows are keys, then the columns of the order, then the value; null is no value. A wide decimal has two words,
whose order is that of the values; percentiles are of values of one word. A row of multiplicity 3 is
three rows; one of a negative multiplicity is none.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, cast

import numpy as np

from differential.columns.column_types import Bools, ColumnType, Floats, Int64s, any_value
from differential.columns.float_words import floats_to_words, words_to_floats
from differential.columns.rows import decode_rows, encode_rows
from differential.columns.schema import Column, Schema
from differential.columns.worker_symbols import SYMBOLS
from differential.errors import MultiplicityOverflowError
from differential.expressions.arithmetic.rounding import quotients
from differential.kernels.rows.sort import sort_consolidate
from differential.kernels.sweeps.selection import BLOCK_ROWS, INTERPOLATED, ONE, select
from differential.operators.ordered.symbol_order import ranks
from differential.operators.reducing.window_parts import COPIES_MAX
from differential.trace.trace import Trace

__all__ = ["CollectedValues", "GroupAnswers", "PercentileKind", "Percentiles", "are_plain"]

PercentileKind: TypeAlias = Literal["percentile", "percentile_disc"]

_SAFE: Final = float(1 << 62)
_SMALL: Final = 1 << 31
"""Multiplicities below this, of fewer rows than this, add up to less than 2⁶²."""


@dataclass(frozen=True)
class GroupAnswers(ABC):
    """A function from the rows of groups to their answers; a subclass here has at most one for each group."""

    value: ColumnType
    """The type of the values."""

    @property
    @abstractmethod
    def words(self) -> int:
        """The number of words of an answer."""

    @abstractmethod
    def answers(self, rows: Int64s, bounds: Int64s) -> Int64s:
        """Return the answers of groups: their words, their multiplicity, and the number of the group.

        rows     values and multiplicity, none zero; those of a group are sorted by their words
        bounds   int64[2, groups]: where the rows of each group begin and end
        """

    def _are_values(self, rows: Int64s) -> Bools:
        """Return which rows are there, and have a value."""
        there: Bools = rows[-1] > 0
        if self.value.nullable:
            there &= rows[-2 - self.value.value_words] != 0
        return there

    def _value_words(self, rows: Int64s) -> Int64s:
        """Return the words of the values, without the flag of null."""
        return rows[-1 - self.value.value_words : -1]


def _finished(words: Int64s, groups: Int64s) -> Int64s:
    return np.concatenate([words, np.ones((1, groups.shape[0]), np.int64), groups[np.newaxis]])


def _sums_of(counts: Int64s, bounds: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """Return the sums of counts up to each row, up to the begin of each group, and of the groups."""
    if float(counts.sum(dtype=np.float64)) >= _SAFE:
        raise MultiplicityOverflowError(
            "the rows of the groups that change at once, counted as often as each is there, are 2⁶² or more"
        )
    upto: Int64s = np.zeros(counts.shape[0] + 1, np.int64)
    np.cumsum(counts, out=upto[1:])
    return upto, upto[bounds[0]], upto[bounds[1]] - upto[bounds[0]]


@dataclass(frozen=True)
class Percentiles(GroupAnswers):
    """The values at some places of the order; `calls`: the kind and the fraction of each."""

    calls: tuple[tuple[PercentileKind, float], ...]

    @property
    def words(self) -> int:
        """See `GroupAnswers`."""
        return len(self.calls) * (1 + self.value.nullable)

    def answers(self, rows: Int64s, bounds: Int64s) -> Int64s:
        """See `GroupAnswers`."""
        values = rows[-2]
        upto, start, count = _sums_of(np.where(self._are_values(rows), rows[-1], 0), bounds)
        any_row = np.zeros(rows.shape[1] + 1, np.int64)
        np.cumsum(rows[-1] > 0, out=any_row[1:])
        present = np.flatnonzero(
            any_row[bounds[1]] > any_row[bounds[0]] if self.value.nullable else count > 0
        )
        start, count = start[present], count[present]
        places = np.zeros((3 * len(self.calls), present.shape[0]), np.int64)
        has = count > 0
        for call, (kind, fraction) in enumerate(self.calls):
            low, high, far = _places(kind, fraction, count[has])
            for at, place in ((0, low), (1, high)):
                places[3 * call + at, has] = values[np.searchsorted(upto, start[has] + place, "right") - 1]
            places[3 * call + 2, has] = far.view(np.int64)
        return _finished(self._answer(places, has), present)

    def _answer(self, places: Int64s, has: Bools) -> Int64s:
        """Return the words of answers, of the values before and behind each place and how far it is."""
        out = np.zeros((self.words, has.shape[0]), np.int64)
        step = 1 + self.value.nullable
        for call, (kind, _) in enumerate(self.calls):
            low, high, far = places[3 * call : 3 * call + 3]
            if self.value.nullable:
                out[step * call] = has
            if kind == "percentile_disc":
                out[step * call + step - 1] = low * has
                continue
            before, behind = self._floats(low), self._floats(high)
            way = np.ascontiguousarray(far).view(np.float64)
            with np.errstate(invalid="ignore"):
                between = np.where(low == high, before, (1 - way) * before + way * behind)
            out[step * call + step - 1] = floats_to_words(between) * has
        return out

    def _floats(self, words: Int64s) -> Floats:
        if self.value.kind == "float":
            return words_to_floats(np.ascontiguousarray(words))
        return quotients(words, self.value.scale) if self.value.scale else words.astype(np.float64)

    def changes(
        self, ready: Int64s, trace: Trace, answers_lines: Int64s, kw: int, guards: int
    ) -> Int64s | None:
        """Return the corrections for changed rows of one time, sorted and consolidated; None if they can only
        be found by a pass through the groups, since some row is there less than not at all, or very often.

        Requires: all rows of the trace count at that time.
        """
        if np.abs(ready[-1]).max() >= _SMALL:
            return None
        flags = int(self.value.nullable)
        shape = np.array([kw, flags, self.words, guards], np.int64)
        kinds = [INTERPOLATED if kind == "percentile" else ONE for kind, _ in self.calls]
        fractions = np.array([fraction for _, fraction in self.calls], np.float64).view(np.int64)
        calls = np.array([kinds, fractions], np.int64)
        selected, before, is_right = select(
            ready, trace.lines, answers_lines, shape, calls, *trace.sums(BLOCK_ROWS)
        )
        if not is_right:
            return None
        present = np.flatnonzero(selected[1 if flags else 2] > 0)
        new = self._answer(np.ascontiguousarray(selected[3:, present]), selected[2, present] > 0)
        both: Int64s = np.empty((kw + self.words + 2, present.shape[0] + before.shape[1]), np.int64)
        both[:kw] = ready[:kw, np.concatenate([selected[0, present], before[0]])]
        both[kw:-2] = np.concatenate([new, before[1:-1]], axis=1)
        both[-2] = ready[-2, 0]
        both[-1] = np.concatenate([np.ones(present.shape[0], np.int64), -before[-1]])
        return sort_consolidate(both)


def are_plain(counts: Int64s) -> bool:
    """Return True if rows of these multiplicities can be counted in runs: none is negative or huge."""
    return bool(((counts > 0) & (counts < _SMALL)).all())


def _places(kind: str, fraction: float, count: Int64s) -> tuple[Int64s, Int64s, Floats]:
    """Return the places between which answers are, and how far each is from the first to the second."""
    if kind == "percentile_disc":
        place = np.clip(np.ceil(fraction * count).astype(np.int64) - 1, 0, count - 1)
        return place, place, np.zeros(count.shape[0])
    last: Int64s = count - 1
    position: Floats = fraction * last.astype(np.float64)
    low: Int64s = np.minimum(position.astype(np.int64), last)
    far: Floats = position - low
    return low, np.minimum(low + (far > 0), count - 1), far


@dataclass(frozen=True)
class CollectedValues(GroupAnswers):
    """The values as a list, or, with a separator, as one text.

    order       of each column of the order, which come before the value: its type, whether it descends, and
                whether nulls are last
    once        each value once
    """

    order: tuple[tuple[ColumnType, bool, bool], ...] = ()
    once: bool = False
    separator: str | None = None

    @property
    def words(self) -> int:
        """See `GroupAnswers`."""
        return 2 if self.separator is not None and self.value.nullable else 1

    def answers(self, rows: Int64s, bounds: Int64s) -> Int64s:
        """See `GroupAnswers`."""
        counts = np.where(self._are_values(rows), rows[-1], 0)
        if self.once:
            counts = np.minimum(counts, 1)
        if float(counts.sum(dtype=np.float64)) > COPIES_MAX:
            raise MultiplicityOverflowError(
                f"lists of groups that change at once have more than {COPIES_MAX:,} values: divide the "
                "groups by more keys"
            )
        sizes = bounds[1] - bounds[0]
        group = np.arange(bounds.shape[1]).repeat(sizes)
        which = np.arange(int(sizes.sum())) + (bounds[0] - np.cumsum(sizes) + sizes).repeat(sizes)
        which, group = which[counts[which] > 0], group[counts[which] > 0]
        which = which[self._in_order(rows[:, which], group)]
        copies = counts[which]
        values = self._decoded(self._value_words(rows)[:, which].repeat(copies, axis=1))
        ends = np.cumsum(np.bincount(group.repeat(copies), minlength=bounds.shape[1]))
        lists = [
            values[start:stop] for start, stop in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True)
        ]
        numbers = np.arange(bounds.shape[1])
        if self.separator is None:
            present = np.flatnonzero(sizes > 0)
            schema = Schema((Column("values", any_value),))
            words = encode_rows(schema, [(self._unordered(lists[at]),) for at in present.tolist()], SYMBOLS)
            return _finished(words, present)
        has = np.array([len(each) > 0 for each in lists], np.bool_)
        present = numbers[sizes > 0] if self.value.nullable else numbers[has]
        texts = [
            None if self.value.nullable and not has[at] else self.separator.join(cast("list[str]", lists[at]))
            for at in present.tolist()
        ]
        type_ = ColumnType("string", self.value.nullable)
        return _finished(
            encode_rows(Schema((Column("text", type_),)), [(t,) for t in texts], SYMBOLS), present
        )

    def _decoded(self, words: Int64s) -> list[object]:
        schema = Schema((Column("value", self.value.not_null()),))
        return [value for (value,) in decode_rows(schema, words, SYMBOLS)]

    def _in_order(self, rows: Int64s, group: Int64s) -> Int64s:
        """Return the numbers of rows in the order of their groups, then in the order of the aggregate."""
        if not self.order and self.value.is_ordered:
            return np.arange(rows.shape[1])  # they are in it
        levels: list[Int64s] = [group]
        at = 0
        for type_, descends, nulls_last in self.order:
            if type_.nullable:
                levels.append(-rows[at] if nulls_last else rows[at])
                at += 1
            for word in rows[at : at + type_.value_words]:
                places = _in_value_order(word, type_)
                levels.append(~places if descends else places)
            at += type_.value_words
        levels.extend(_in_value_order(word, self.value) for word in self._value_words(rows))
        return np.lexsort(levels[::-1])

    def _unordered(self, values: list[object]) -> list[object]:
        """Return a list whose type has no order in that of Python, or if there is none, in that of the types
        and texts of its values; others as they are.
        """
        if self.value.has_order or self.order:
            return values
        try:
            return sorted(values, key=lambda value: cast("int", value))
        except TypeError:  # values of several types
            return sorted(values, key=lambda value: (type(value).__name__, repr(value)))


def _in_value_order(words: Int64s, type_: ColumnType) -> Int64s:
    """Return numbers in the order of values; of values without an order those of their words."""
    if not type_.is_symbol or not type_.has_order:
        return words
    different, places = np.unique(words, return_inverse=True)
    numbers = np.zeros(different.shape[0], np.int64)
    present = different != 0
    numbers[present] = ranks(different[present], SYMBOLS)
    return numbers[places.reshape(-1)]
