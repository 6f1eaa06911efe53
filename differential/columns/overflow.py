"""Which row is it, whose multiplicity or sum does not fit 64 bits?

Kernels detect that there is one, and stop (`kernels/overflow.py`). The functions here search for it again,
slowly and with Python's integers, for the message. The caller knows the words of a row; where a schema is at
hand, a `ShowRow` turns them into values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Final, TypeAlias

import numpy as np

from differential.columns.wide.wide_words import Objects
from differential.errors import MultiplicityOverflowError, SumOverflowError
from differential.kernels.overflow import negate_all
from progress.compiled.arrays import Int64s

__all__ = [
    "ShowRow",
    "component_overflow",
    "components_overflow",
    "count_overflow",
    "mean_overflow",
    "negate_diffs",
    "product_overflow",
    "row_overflow",
    "show_words",
]

ShowRow: TypeAlias = Callable[[Sequence[int]], str]
"""Turns the words of a row into a text for messages."""

_MIN: Final = -(1 << 63)
_MAX: Final = (1 << 63) - 1

_MEND_ROW: Final = (
    "What is added to itself again and again, as in a loop that concats or joins without distinct(), doubles "
    "each time: put distinct() or an aggregate into the loop. Rows that are inserted so often should be one "
    "row, with their number in a column."
)
_MEND_SUM: Final = "Use larger units, smaller groups, or filter such rows out before."
_MEND_MEAN: Final = (
    "A mean has up to four digits more behind the point than the values. Cast these to fewer, as in "
    "avg(col.x.cast('decimal(30, 2)')), or to float."
)


def show_words(words: Sequence[int]) -> str:
    """Return a text for a row without a schema: its words."""
    return f"with the words ({', '.join(map(str, words))})"


def row_overflow(parts: Sequence[Int64s], show: ShowRow) -> MultiplicityOverflowError:
    """Return the error about rows that do not add up: arrays of words, time and diff last."""
    words = np.concatenate(parts, axis=1)
    overflow = _first_beyond(words[:-2], np.ones(words.shape[1], np.int64), words[-1])
    if overflow is None:
        return MultiplicityOverflowError(f"the multiplicity of a row leaves 64 bits.\n  {_MEND_ROW}")
    row, total = overflow
    return MultiplicityOverflowError(
        f"the row {show(row)} would be there more often than 64 bits can say{total}.\n  {_MEND_ROW}"
    )


def count_overflow(words: Int64s, kw: int, what: str, show: ShowRow) -> SumOverflowError | None:
    """Return the error about a group whose count is too large, or None if there is none.

    words   all rows of the groups in question: key words, value words, time, diff
    """
    return _group_overflow(words[:kw], np.ones(words.shape[1], np.int64), words[-1], what, show)


def component_overflow(diffs: Int64s) -> SumOverflowError:
    """Return the error about rows whose multiplicity is so large that no component of a sum fits 64 bits."""
    most = max((abs(diff) for diff in diffs.tolist()), default=0)
    return SumOverflowError(
        f"a value times its multiplicity leaves 64 bits: some row is there {most} times.\n  {_MEND_ROW}"
    )


def components_overflow(
    words: Int64s, kw: int, first: int, what: str, show: ShowRow, *, limbs: int = 2, digits: int = 0
) -> SumOverflowError | None:
    """Return the error about a group whose sum is too large, or None if there is none.

    The rows are of components: a sum is component `first` plus 2³² times component `first + 1`, and so on.

    digits   how many the sum may have; 0: it may have 64 bits
    """
    words, weights = _weighed(words, kw, first, limbs, 1)
    return _group_overflow(words[:kw], weights, words[-1], what, show, digits)


def mean_overflow(
    words: Int64s,
    kw: int,
    parts: tuple[int, int, int],
    what: str,
    show: ShowRow,
    *,
    limbs: int = 2,
    digits: int = 18,
) -> SumOverflowError | None:
    """Return the error about a group whose mean of decimals has too many digits, or None if there is none.

    The rows are of components.

    parts   first of the sum's components; component of the count; further digits that the mean has
    digits  how many it may have
    """
    first, count_at, more = parts
    most = 10**digits - 1
    weights = {first + limb: 10**more << 32 * limb for limb in range(limbs)}
    totals: dict[tuple[int, ...], tuple[int, int]] = {}
    group: tuple[int, ...] | None = None
    in_order = words[:, np.argsort(words[-2], kind="stable")].T.tolist()
    for _, rows in groupby(in_order, key=lambda row: row[-2]):
        changed = set()
        for *key, component, _, diff in rows:
            total, count = totals.get(tuple(key), (0, 0))
            totals[tuple(key)] = (
                total + weights.get(component, 0) * diff,
                count + diff * (component == count_at),
            )
            changed.add(tuple(key))
        group = min((key for key in changed if _is_beyond(*totals[key], most)), default=None)
        if group is not None:
            break
    if group is None:  # e.g. times of a loop: an order in one line does not show all their sums
        likely = _first_beyond(*_keys_and_weights(words, kw, first, limbs, 10**more), most)
        group = None if likely is None else likely[0]
    if group is None:
        return None
    return SumOverflowError(
        f"{what} of the group {show(group)} has more than {digits} digits.\n  {_MEND_MEAN}"
    )


def _weighed(words: Int64s, kw: int, first: int, limbs: int, factor: int) -> tuple[Int64s, Objects]:
    """Return the rows of the components of a number, and how much each component counts."""
    of_sum = (words[kw] >= first) & (words[kw] < first + limbs)
    words = words[:, of_sum]
    values = np.array([factor << 32 * limb for limb in range(limbs)], object)
    return words, values[words[kw] - first]


def _keys_and_weights(
    words: Int64s, kw: int, first: int, limbs: int, factor: int
) -> tuple[Int64s, Objects, Int64s]:
    rows, weights = _weighed(words, kw, first, limbs, factor)
    return rows[:kw], weights, rows[-1]


def product_overflow(delta: Int64s, history: Int64s, kw: int, show: ShowRow) -> MultiplicityOverflowError:
    """Return the error about two matching rows whose multiplicities have too large a product.

    delta, history   arrays of words, key words first, time and diff last
    """
    largest = max((abs(diff) for diff in history[-1].tolist()), default=0)
    for index, diff in enumerate(delta[-1].tolist()):
        if abs(diff) * largest <= _MAX:
            continue
        matching = (history[:kw] == delta[:kw, index : index + 1]).all(axis=0)
        for other in history[-1, matching].tolist():
            if not _MIN <= diff * other <= _MAX:
                row = show(delta[:-2, index].tolist())
                return MultiplicityOverflowError(
                    f"the row {row}, {diff} times, matches one that is there {other} times: "
                    f"the pair would be there more often than 64 bits can say.\n  {_MEND_ROW}"
                )
    return MultiplicityOverflowError(f"the multiplicity of a pair leaves 64 bits.\n  {_MEND_ROW}")


def negate_diffs(words: Int64s) -> None:
    """Negate the multiplicity of every row of an array of words, diff last, in place."""
    try:
        negate_all(words[-1])
    except OverflowError:
        raise MultiplicityOverflowError(
            f"negate(): a row that is there {_MIN} times has no negative in 64 bits.\n  {_MEND_ROW}"
        ) from None


def _is_beyond(total: int, count: int, most: int) -> bool:
    """True if a mean, rounded, exceeds `most`."""
    return count != 0 and 2 * abs(total) >= (2 * most + 1) * abs(count)


def _group_overflow(
    keys: Int64s, values: Int64s | Objects, diffs: Int64s, what: str, show: ShowRow, digits: int = 0
) -> SumOverflowError | None:
    overflow = _first_beyond(keys, values, diffs, 10**digits - 1 if digits else _MAX)
    if overflow is None:
        return None
    key, total = overflow
    beyond = f"has more than {digits} digits" if digits else f"leaves 64 bits{total}"
    return SumOverflowError(f"{what} of the group {show(key)} {beyond}.\n  {_MEND_SUM}")


def _first_beyond(
    keys: Int64s, values: Int64s | Objects, diffs: Int64s, most: int = _MAX
) -> tuple[tuple[int, ...], str] | None:
    """Return the first key whose products value · diff exceed `most`, and a text with their sum; or None.

    Products of one sign are added up on their own. The sum at any time is a sum of some of the products, so a
    group within `most` by this measure cannot overflow at any time.
    """
    unique, inverse = _numbered(keys)
    sizes = np.abs(values.astype(np.float64)) * np.abs(diffs.astype(np.float64))
    reach = np.bincount(inverse, weights=sizes, minlength=unique.shape[1])
    for group in np.flatnonzero(reach >= most / 2).tolist():
        in_group = inverse == group
        products = [
            value * diff
            for value, diff in zip(values[in_group].tolist(), diffs[in_group].tolist(), strict=True)
        ]
        gained = sum(product for product in products if product > 0)
        lost = sum(product for product in products if product < 0)
        if gained > most or lost < -most - (most == _MAX):
            total = gained + lost
            fits = _MIN <= total <= _MAX  # then it overflowed at an earlier time only
            return tuple(unique[:, group].tolist()), "" if fits else f" ({total} in all)"
    return None


def _numbered(keys: Int64s) -> tuple[Int64s, Int64s]:
    """Return the different columns of `keys`, sorted, and for each column the index of its equal."""
    if keys.shape[0] == 0:
        return np.empty((0, 1), np.int64), np.zeros(keys.shape[1], np.int64)
    unique, inverse = np.unique(keys, axis=1, return_inverse=True)
    return unique, inverse.reshape(-1)
