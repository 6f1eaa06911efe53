"""Thresholds between two ways of doing a thing, by how much there is: the table of this package.

A bound beyond which something is refused is a limit (`timely/limits.py`); sizes of blocks and pieces stand
where rows are cut. A threshold here chooses between two ways with the same result. Behind each threshold
stands what the choice is worth: how many times as long the other way takes as the chosen one, measured by
`python -m bench.kernels.thresholds`; the figures are those of `bench/results/thresholds.md`.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "BESIDE_ROWS_MAX",
    "CUBE_KEYS_MAX",
    "CUT_ROWS_MIN",
    "DIRECTORY_ROWS_MIN",
    "ENCODED_ROWS_MAX",
    "FEW_ROWS_MAX",
    "FEW_TEXTS_MAX",
    "GATHERED_ROWS_MIN",
    "HEAD_ROWS_MAX",
    "HEAVY_ROWS_MIN",
    "INSERTED_GAPS_MAX",
    "INSERTED_ROWS_MAX",
    "LATER_TIMES_MAX",
    "LOOK_ROWS_MIN",
    "MANY_ROWS",
    "MAPPED_BYTES_MIN",
    "ONLY_PART_ROWS_MAX",
    "PACKED_ROWS_MIN",
    "PICKED_ROWS_MAX",
    "PILE_LOOSE_ROWS_MAX",
    "PILE_SUMMED_ROWS_MIN",
    "RESTED_KEYS_MAX",
    "SENT_PACKED_ROWS_MIN",
    "SET_TIMES_MAX",
    "SET_WORDS_MAX",
    "SHORT_WAY_ROWS_MIN",
    "SLOT_LOOSE_ROWS_MAX",
    "SORTED_TIMES_MIN",
    "SPAN_SUMMED_ROWS_MIN",
    "SPREAD_LOAD_MIN",
    "STEP_ROWS_MAX",
    "TAIL_PIECES_MAX",
    "TERMS_MAX",
    "UNEVEN_PERCENT_MIN",
    "UNREAD_BATCH_ROWS_MAX",
    "WIDE_DIGITS_ROWS_MIN",
]

# Sorting and packing.

INSERTED_ROWS_MAX: Final = 24
"""Rows up to which a sort inserts, row by row; more rows are sorted by radix, by the bits that vary. Radix
takes 2.1 at 4 rows, 1.6 at 24; insertion takes 0.9 at 48, 1.2 at 64. For groups that are consolidated in
place insertion takes 1.1 at 32, 1.6 at 48."""

WIDE_DIGITS_ROWS_MIN: Final = 1_024
"""Rows from which on a radix sort takes 11 bits at a time, and not 8: 8 bits take 1.08 at 4,096 rows; 11
bits take 1.13 to 1.17 at 128 to 512."""

MANY_ROWS: Final = 1 << 15
"""Rows from which on tables are read piece by piece, never copied as a whole to be sorted or summed. For
memory: the time is within 0.9 and 1.2 of the other way at any size."""

PACKED_ROWS_MIN: Final = 8_192
"""Rows of a run, of stored changes, or for a slot of another worker that are packed; fewer stay words. For
memory: a run of 8,192 rows takes 1.6 times as long to make, and a quarter of the bytes."""

SENT_PACKED_ROWS_MIN: Final = 1 << 16
"""Rows of one time that are packed when they are divided among workers. For bytes on their way; words take
0.74 at 65,536 rows, 0.93 at 131,072, 3.2 at 524,288."""

MAPPED_BYTES_MIN: Final = 1 << 18
"""Bytes from which on memory is mapped, so that it goes back to the system when it is dropped, and is used
again: decision 0036."""

# Traces, and looking keys up in them.

HEAD_ROWS_MAX: Final = 1_024
"""Rows of a trace's head, into which a tiny insert is copied; an insert that does not fit becomes a run.
With a head of 16 rows insertions of one row take 1.5, of 16 rows 27 times what they take if all fit."""

LOOK_ROWS_MIN: Final = 64
"""Rows that come in before a trace at rest checks if most of what it stores cancels. Not measured by
itself."""

TAIL_PIECES_MAX: Final = 8
"""Pieces of the tail of a shared trace; with more of them neighbours are merged. Not measured by itself."""

DIRECTORY_ROWS_MIN: Final = 256
"""Rows of a run with a directory; in fewer a key is found by halving. Halving takes 1.24 at 256 rows, 1.57
at 8,000, if 64 keys are looked up; a directory takes 1.08 at 128."""

FEW_ROWS_MAX: Final = 8
"""Rows up to which a search for a key looks at all, as many as are in most buckets; in more it halves.
Halving takes 1.14 in buckets of runs of 100,000 rows; in a run of few rows it makes no difference."""

FEW_TEXTS_MAX: Final = 256
"""Rows up to which the texts of a column are looked up one by one, though some may be equal; from more rows
Arrow's dictionary takes the different ones. With seven of them the dictionary takes 7.4 at 8 rows, 2.0 at
256; without it 1,024 rows take 1.4."""

# Groups, and their times.

SORTED_TIMES_MIN: Final = 128
"""Elements from which on an antichain is found by sorting, not by inserting each. Inserting takes 1.1 at
128, 3.0 at 256, 17 at 1,024; sorting takes 1.2 at 96, 1.6 at 64."""

SHORT_WAY_ROWS_MIN: Final = 32
"""Rows from which on the least of a group is looked for in the short way first. Without it they take 4 to
5.5. For fewer rows the short way would take 0.4 to 0.8 if it succeeds; if it does not, as in changes of
components, they take 1.08 with a threshold of 8 (bench/results/kernels.md)."""

RESTED_KEYS_MAX: Final = 15
"""Keys for which the short way is not tried after it has failed for one key after the other; see
`kernels/least/short_least.py`."""

LATER_TIMES_MAX: Final = 4
"""Minimal later times of a key that sums note in their short way; a key with more goes the long way. Each
call reserves room for them. Not measured by itself."""

# Symbols.

SET_WORDS_MAX: Final = 1_024
"""Words up to which a Python set finds the different ones; for more, Arrow's hash table does. The set takes
2.8 at 4,096 words of 1,000 values; Arrow takes 2.2 at 256."""

ENCODED_ROWS_MAX: Final = 32
"""Symbols up to which the beginning of each is encoded; of more, the different ones are found first.
Finding them takes 1.8 at 8 symbols, 1.2 at 32; encoding each takes 1.1 at 64, 1.6 at 256, if half of them
are different."""

INSERTED_GAPS_MAX: Final = 128
"""Gaps among the long values of one beginning into which new values are inserted gap by gap; for more, old
and new values are woven into a new list. Weaving takes 2.9 for one gap among 10,000 values, 1.7 for 32, 1.0
for 128; inserting takes 1.3 for 512."""

# Rows that wait.

GATHERED_ROWS_MIN: Final = 1 << 16
"""Rows coming at once to a join from which on they wait for the end of their epoch. Without waiting a load
of 400,000 rows a side takes 1.34 on two threads, of 60,000 rows 1.40 if these wait, too."""

ONLY_PART_ROWS_MAX: Final = 64
"""Rows up to which a part that waits alone is tested first for being ready as a whole. Without that test a
part that is ready takes 1.5; a larger part that is not ready would be split in vain."""

PILE_LOOSE_ROWS_MAX: Final = 1 << 17
"""Rows of one time that wait as they came, in several parts; more are packed. For memory: packed, they take
1.4 at 65,536 rows, 1.3 at 131,072, 2.6 at 524,288, until they are taken."""

PILE_SUMMED_ROWS_MIN: Final = 1 << 18
"""Packed rows of one time that are summed before all are there; fewer are summed once. For memory: summing
early takes 2.0 at 130,000 and 400,000 different rows, 1.1 to 1.8 at 1,000,000 rows of 1,000 and 10,000
keys."""

CUT_ROWS_MIN: Final = 2_048
"""Rows that come into a loop by their priority from which on they are cut by time at once; fewer wait
together. Together they take 1.4 at 2,048 rows, 2.4 at 4,096, 5.6 at 65,536, until the last is ready; cut,
they take 1.8 at 100. A compiled loop gains nothing."""

BESIDE_ROWS_MAX: Final = 4_096
"""Rows of changes up to which they wait beside the collection of an output in any case. Taken in at once,
epochs of one row take 9, of 16 rows 12, of 63 rows 31 until they are."""

UNREAD_BATCH_ROWS_MAX: Final = 32
"""Rows of a batch that waits at an output, as it came, until somebody reads; more are sorted at once.
Sorted, batches of one row take 1.4, of 16 rows 1.3, of 32 rows 1.2, if the last of 32 epochs is read;
waiting, batches of 64 rows take 1.2."""

SET_TIMES_MAX: Final = 64
"""Rows up to which a Python set tells whether they are of one time; for more, numpy does. numpy takes 3.1
for one row, 1.4 for 64; the set takes 1.8 for 256."""

PICKED_ROWS_MAX: Final = 2_048
"""Rows up to which the words of all are gathered before some rows are picked; of more, each word is picked
by itself. Word by word takes 3.6 at 32 rows, 1.9 at 512, 1.2 at 2,048; all at once takes 1.4 at 65,536, if
every other row is picked."""

# Compiled loops.

STEP_ROWS_MAX: Final = 512
"""Rows up to which a step of a loop is done within a kernel; with more, Python does it. In Python, changes
of distances by 1, 16 and 128 edges take 1.2; in kernels, changes of 512 and 1,024 edges take 1.4 and 1.3."""

SLOT_LOOSE_ROWS_MAX: Final = 1 << 14
"""Rows that wait as words in a slot of a loop; more are packed. Never packed, loads of distances over
200,000 edges take 1.26, on two threads 1.23."""

SPAN_SUMMED_ROWS_MIN: Final = 512
"""Rows that a span of very many epochs has left in a trace, from which on they are summed. Summing takes 70
µs for 16 to 1,024 rows; otherwise lookups meet them at each of their times. Not measured by itself."""

# Groups by several sets of keys.

CUBE_KEYS_MAX: Final = 10
"""Keys of a cube; with more it is refused. Not measured: a cube of ten keys has 1,024 sets, each with its own
operators, and one of twenty has a million."""

# Joins that balance themselves (`balance="auto"`), measured by CPU time of the busiest worker process.

HEAVY_ROWS_MIN: Final = 256
"""Rows of a side from which on a key is counted, and divided, by itself. Not measured: a key with fewer rows
on both sides has no more pairs than `SPREAD_LOAD_MIN`, and is never worth a plan."""

SPREAD_LOAD_MIN: Final = 1 << 16
"""Rows and pairs of a join from which on it is divided. Not to divide takes 1.5 as long at 250 million pairs
on two workers (1.39 s in place of 0.93 s), 1.4 at 1.3 billion. The bound itself is not measured: with fewer
pairs a plan, some milliseconds, costs more than all of them."""

UNEVEN_PERCENT_MIN: Final = 130
"""The load of the busiest worker, in hundredths of the mean, from which on a join is divided. Not measured:
to divide costs visits in several units, which less would not repay."""

# Plans.

TERMS_MAX: Final = 8
"""Terms of a collection that several operators read; one of more is summed by a stage first. Without it a
chain of 12 left joins takes 2.6 times as long to plan, 2.2 to load and 1.6 for a change of the first table; a
chain of 24 takes 7.9, 4.8 and 2.7. With 4 terms, chains of 6 and 24 take 1.0 to 1.1 as long for changes."""
