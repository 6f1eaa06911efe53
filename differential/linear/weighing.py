"""Rows whose multiplicities are multiplied by one of their columns, which goes.

What a group has become, say 3 in place of 2, comes as the removal of one row and the insertion of another, at
one time; without the column they are one row, +3 and -2. So what is left is summed, and rows that cancel go:
nothing is said of a row of which nothing changes.
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
    """The other columns."""
    return schema.picked([name for name in schema.names if name != by])


def weighed(schema: Schema, by: str, symbols: SymbolTable) -> Callable[[Int64s], Int64s | None]:
    """The function from rows of `schema`, time and diff last, to rows without the column `by`: sorted,
    summed.

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
            found = sort_consolidate(rows)
        except OverflowError:
            raise row_overflow([rows], show) from None
        return found if found.shape[1] else None

    return weigh
