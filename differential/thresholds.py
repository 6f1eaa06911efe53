"""Where one way of doing a thing takes over from another, by how much there is: the table of this package.

A bound beyond which something is refused is a limit (`timely/limits.py`); sizes of blocks and pieces stand
where rows are cut. Here is what chooses between two ways whose results are the same. Behind each threshold
stands what the choice is worth: how many times as long the other way takes, measured by
`python -m bench.kernels.thresholds`; the figures are those of `bench/results/thresholds.md`.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "DIRECTORY_ROWS_MIN",
    "FEW_ROWS_MAX",
    "HANDFUL_ROWS_MAX",
    "HEAD_ROWS_MAX",
    "INSERTED_ROWS_MAX",
    "LATER_TIMES_MAX",
    "LOOK_ROWS_MIN",
    "MANY_ROWS",
    "MAPPED_BYTES_MIN",
    "OFTEN_MERGED_ROWS_MAX",
    "PACKED_ROWS_MIN",
    "PROBED_KEYS_MIN",
    "REMEMBERED_KEYS_MAX",
    "RESTED_KEYS_MAX",
    "SENT_PACKED_ROWS_MIN",
    "SET_WORDS_MAX",
    "SHORT_WAY_ROWS_MIN",
    "SORTED_TIMES_MIN",
    "TAIL_PIECES_MAX",
    "WIDE_DIGITS_ROWS_MIN",
]

# Sorting and packing.

HANDFUL_ROWS_MAX: Final = 6
"""Rows that are sorted as they lie, without looking first which of their bits vary."""

INSERTED_ROWS_MAX: Final = 24
"""Rows that are sorted by insertion; more by radix."""

WIDE_DIGITS_ROWS_MIN: Final = 4_096
"""Rows from which on a radix sort takes 11 bits at a time, and not 8."""

MANY_ROWS: Final = 1 << 15
"""Rows from which on tables are read piece by piece, never copied as a whole to be sorted or summed."""

PACKED_ROWS_MIN: Final = 8_192
"""Rows of a run, of kept changes, or for a slot of another worker that are packed; fewer stay words."""

SENT_PACKED_ROWS_MIN: Final = 1 << 16
"""Rows of one time that are packed where they are divided among workers."""

MAPPED_BYTES_MIN: Final = 1 << 18
"""Memory that is mapped, so that it goes back to the system when it is dropped."""

# Traces, and looking keys up in them.

HEAD_ROWS_MAX: Final = 1_024
"""Rows of a trace's head, into which a tiny insert is copied; what does not fit becomes a run."""

OFTEN_MERGED_ROWS_MAX: Final = 1 << 16
"""Rows below which a run is merged with one that is up to four times as large, and not only twice."""

LOOK_ROWS_MIN: Final = 64
"""Rows that come before a trace at rest looks whether most of what it keeps cancels."""

TAIL_PIECES_MAX: Final = 8
"""Pieces of the tail of a shared trace; with more of them neighbours are merged."""

DIRECTORY_ROWS_MIN: Final = 256
"""Rows of a run with a directory; in fewer a key is found by halving."""

FEW_ROWS_MAX: Final = 8
"""Rows that are all looked at to find a key, as many as are in most buckets; more are halved."""

PROBED_KEYS_MIN: Final = 8
"""Keys that are asked for ahead of being looked up, so that memory answers several at once."""

REMEMBERED_KEYS_MAX: Final = 4_096
"""Keys whose places in a trace are remembered from counting pairs to making them; more are found again."""

# Groups, and their times.

SORTED_TIMES_MIN: Final = 1_024
"""Elements from which on an antichain is found by sorting, not by inserting each."""

SHORT_WAY_ROWS_MIN: Final = 32
"""Rows from which on the least of a group is looked for in the short way first."""

RESTED_KEYS_MAX: Final = 15
"""Keys for which the short way is not tried again after it has failed for one key after the other."""

LATER_TIMES_MAX: Final = 4
"""Minimal later times of a key that sums note in their short way; with more the key goes the long one."""

# Symbols.

SET_WORDS_MAX: Final = 4_096
"""Words whose different ones a Python set finds; of more, Arrow's hash table."""
