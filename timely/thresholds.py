"""The sizes at which one way of doing a thing replaces another: the table of this package.

The table of `differential` describes the gain of each choice, and how it is measured.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "ARROW_VALUES_MIN",
    "DIVIDED_RECORDS_MIN",
    "FEW_WORDS_MAX",
    "FOLDED_ROWS_MIN",
    "PLAIN_TABLE_ROWS_MAX",
]

FEW_WORDS_MAX: Final = 32
"""Up to this many times (rights, requests or holds of a vertex) are searched one by one; more are kept in
order, so that the cost of very many open times in a scope is not quadratic (`bench/results/open_times.md`).
"""

ARROW_VALUES_MIN: Final = 50_000
"""From this many texts on Arrow makes the array; fewer are joined by `wire/arrow.py`. Relative to the
better way, joining takes 1.2 at 50,000 and 1.3 at 200,000 texts; Arrow takes 1.4 at 1,000 and 1.5 at 10,000
(`bench/results/thresholds.md`)."""

DIVIDED_RECORDS_MIN: Final = 32
"""From this many records on keys are numbered as columns (`building/record_columns.py`); fewer one by one.
With whole numbers as keys columns take 1.3 at 16 records and 0.8 at 32; one by one takes 2.1 at 64, 3.2 at
128. With text columns take 1.4 at 16 and 0.9 at 32; one by one 1.5 at 64, 2.0 at 128."""

FOLDED_ROWS_MIN: Final = 1 << 14
"""Rows of an insertion that wait folded for its seal; fewer wait as words. For memory: 65,536 rows of two
columns take an eighth; folding takes 2.0 at 4,096 and 16,384 rows, 1.3 to 1.5 at 65,536 and 262,144."""

PLAIN_TABLE_ROWS_MAX: Final = 32
"""Rows of a table of a client up to which it is read into plain rows; a larger one goes as a table. With
three columns a table takes 4.3 at one row, 1.6 at 32; plain rows take 1.1 at 64."""
