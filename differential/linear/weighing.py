"""Rows whose multiplicities are multiplied by one of their columns, which is dropped.

If the column of a group changes, say from 2 to 3, one row is removed and another inserted, at one time.
Without the column these are one row, +3 and -2. So the remaining rows are summed, and rows that cancel go: a
row that does not change makes no update.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from differential.columns.column_types import Int64s
from differential.columns.overflow import row_overflow
from differential.columns.rows import row_shower
from differential.columns.schema import Schema
from differential.columns.symbols.table import SymbolTable
from differential.kernels.arithmetic import MULTIPLY, combine
from differential.kernels.rows.sort import sort_consolidate

__all__ = ["weighed", "without"]


def without(schema: Schema, by: str) -> Schema:
    """Return the columns without `by`."""
    return schema.picked([name for name in schema.names if name != by])


def weighed(schema: Schema, by: str, symbols: SymbolTable) -> Callable[[Int64s], Int64s | None]:
    """Return the function from rows of `schema`, time and diff last, to rows without `by`: sorted, summed.

    Raises MultiplicityOverflowError for a row that would be there more often than 64 bits can say.
    """
    (word,) = schema.words_of(by)
    others = np.array([index for index in range(schema.width + 2) if index != word], np.int64)
    show = row_shower(without(schema, by), symbols)

    def weigh(words: Int64s) -> Int64s | None:
        rows = words.take(others, 0)
        fits = combine(MULTIPLY, words[word].copy(), words[-1].copy(), rows[-1])
        try:
            if not fits:
                raise OverflowError
            summed = sort_consolidate(rows)
        except OverflowError:
            raise row_overflow([rows], show) from None
        return summed if summed.shape[1] else None

    return weigh
