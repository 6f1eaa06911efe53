"""Slow and obvious twins of the kernels: rows of words as tuples, (key words…, value words…, time word,
diff).

A time word is compared field by field, as `progress/time_words.py` explains; the twins unpack nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

Row = tuple[int, ...]

__all__ = [
    "Row",
    "accumulated",
    "as_words",
    "beyond",
    "closure_of",
    "consolidated",
    "joined",
    "less_equal",
    "lub",
    "reduced",
    "rows_of",
]


def as_words(rows: Iterable[Sequence[int]], columns: int) -> npt.NDArray[np.int64]:
    """Rows as a kernel takes them: int64[columns, n], C-contiguous."""
    return np.array([tuple(row) for row in rows], np.int64).reshape(-1, columns).T.copy()


def rows_of(words: npt.NDArray[np.int64]) -> list[Row]:
    """The rows of a table of words."""
    return [tuple(row) for row in words.T.tolist()]


def less_equal(a: int, b: int, guards: int) -> bool:
    """Whether a ≤ b in every field; each field ends below one of the guard bits."""
    low = 0
    for bit in range(63):
        if guards >> bit & 1:
            mask = (1 << bit) - (1 << low)
            if a & mask > b & mask:
                return False
            low = bit + 1
    return True


def lub(a: int, b: int, guards: int) -> int:
    """The larger of each field."""
    low, found = 0, 0
    for bit in range(63):
        if guards >> bit & 1:
            mask = (1 << bit) - (1 << low)
            found |= max(a & mask, b & mask)
            low = bit + 1
    return found


def _aggregate(kind: str, word: int, members: list[tuple[Row, int]], present: list[Row]) -> int:
    if kind == "count":
        return sum(count for _, count in members)
    if kind == "sum":
        return sum(values[word] * count for values, count in members)
    return (
        min(values[word] for values in present) if kind == "min" else max(values[word] for values in present)
    )
