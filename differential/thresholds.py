"""Thresholds between two ways of doing a thing, by how much there is: the table of this package.

A bound beyond which something is refused is a limit (`timely/limits.py`); sizes of blocks and pieces stand
where rows are cut. A threshold here chooses between two ways with the same result. Behind each threshold
stands what the choice is worth: how many times as long the other way takes as the chosen one, measured by
`python -m bench.kernels.thresholds`; the figures are those of `bench/results/thresholds.md`.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "DIRECTORY_ROWS_MIN",
    "FEW_ROWS_MAX",
    "HEAD_ROWS_MAX",
    "INSERTED_ROWS_MAX",
    "LATER_TIMES_MAX",
    "LOOK_ROWS_MIN",
    "MANY_ROWS",
    "MAPPED_BYTES_MIN",
    "PACKED_ROWS_MIN",
    "RESTED_KEYS_MAX",
    "SENT_PACKED_ROWS_MIN",
    "SET_WORDS_MAX",
    "SHORT_WAY_ROWS_MIN",
    "SORTED_TIMES_MIN",
    "TAIL_PIECES_MAX",
    "WIDE_DIGITS_ROWS_MIN",
]

# Sorting and packing.

INSERTED_ROWS_MAX: Final = 24
"""Rows up to which a sort inserts, row by row; more rows are sorted by radix, by the bits that vary. Radix
takes 2.1 at 4 rows, 1.6 at 24; insertion takes 0.9 at 48, 1.2 at 64. For groups that are consolidated in
place insertion takes 1.1 at 32, 1.6 at 48.
"""

WIDE_DIGITS_ROWS_MIN: Final = 1_024
"""Rows from which on a radix sort takes 11 bits at a time, and not 8: 8 bits take 1.08 at 4,096 rows; 11 bits
take 1.13 to 1.17 at 128 to 512."""

MANY_ROWS: Final = 1 << 15
"""Rows from which on tables are read piece by piece, never copied as a whole to be sorted or summed. For
memory: the time is within 0.9 and 1.2 of the other way at any size."""

PACKED_ROWS_MIN: Final = 8_192
"""Rows of a run, of stored changes, or for a slot of another worker that are packed; fewer stay words. For
memory: a run of 8,192 rows takes 1.6 times as long to make, and a quarter of the bytes.
"""

SENT_PACKED_ROWS_MIN: Final = 1 << 16
"""Rows of one time that are packed when they are divided among workers. For bytes on their way; words take
0.74 at 65,536 rows, 0.93 at 131,072, 3.2 at 524,288.
"""

MAPPED_BYTES_MIN: Final = 1 << 18
"""Bytes from which on memory is mapped, so that it goes back to the system when it is dropped, and is used
again: decision 0036.
"""

# Traces, and looking keys up in them.

HEAD_ROWS_MAX: Final = 1_024
"""Rows of a trace's head, into which a tiny insert is copied; an insert that does not fit becomes a run. With
a head of 16 rows insertions of one row take 1.5, of 16 rows 27 times what they take if all fit.
"""

LOOK_ROWS_MIN: Final = 64
"""Rows that come in before a trace at rest checks if most of what it stores cancels. Not
measured by itself.
"""

TAIL_PIECES_MAX: Final = 8
"""Pieces of the tail of a shared trace; with more of them neighbours are merged. Not measured by itself."""

DIRECTORY_ROWS_MIN: Final = 256
"""Rows of a run with a directory; in fewer a key is found by halving. Halving takes 1.24 at 256 rows, 1.57 at
8,000, if 64 keys are looked up; a directory takes 1.08 at 128."""

FEW_ROWS_MAX: Final = 8
"""Rows up to which a search for a key looks at all, as many as are in most buckets; in more it halves.
Halving takes 1.14 in buckets of runs of 100,000 rows; in a run of few rows it makes no difference.
"""

# Groups, and their times.

SORTED_TIMES_MIN: Final = 128
"""Elements from which on an antichain is found by sorting, not by inserting each. Inserting takes 1.1 at 128,
3.0 at 256, 17 at 1,024; sorting takes 1.2 at 96, 1.6 at 64.
"""

SHORT_WAY_ROWS_MIN: Final = 32
"""Rows from which on the least of a group is looked for in the short way first. Without it they take 4 to
5.5. For fewer rows the short way would take 0.4 to 0.8 if it succeeds; if it does not, as in changes of
components, they take 1.08 with a threshold of 8 (bench/results/kernels.md).
"""

RESTED_KEYS_MAX: Final = 15
"""Keys for which the short way is not tried after it has failed for one key after the other; see
`kernels/least/short_least.py`.
"""

LATER_TIMES_MAX: Final = 4
"""Minimal later times of a key that sums note in their short way; a key with more goes the long way. Each
call reserves room for them. Not measured by itself.
"""

# Symbols.

SET_WORDS_MAX: Final = 1_024
"""Words up to which a Python set finds the different ones; for more, Arrow's hash table does. The set takes
2.8 at 4,096 words of 1,000 values; Arrow takes 2.2 at 256.
"""
