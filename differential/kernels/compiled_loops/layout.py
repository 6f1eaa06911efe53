"""How does one kernel know any loop? By tables of integers, one line for each thing in it.

    slots     rows that wait at some place: what a step is to take up, in the order in which it came steps
    what is done with the rows of a slot: a join of one port, an arrangement and its readers, a barrier
    matches   for a step, where its rows look for partners, and what becomes of the pairs edges     how the
    rows that a step makes come to the next slot: a connector as a table traces    the run tables and heads
    that steps look rows up in, and put them into

A *barrier* is a step that waits for its times to be complete: a reduce, a consolidation. All other steps pass
rows on as soon as they have them. Every cycle has a barrier on it.

A table of words that a line names by its address is int64[lines, columns], C-contiguous, and belongs to the
loop that made the line.
"""

from __future__ import annotations

from typing import Final

FAR: Final = (1 << 63) - 1
"""In place of the least time of no rows."""

# slots
S_AT: Final = 0
"""Address of int64[columns, room]: rows with time and difference; of pending times, key words and time."""
S_COLUMNS: Final = 1
S_ROOM: Final = 2
S_ROWS: Final = 3
S_LEAST: Final = 4
"""The least of the time words of its rows, FAR without any. Kept where rows wait between calls."""
S_NEXT: Final = 5
"""The least counters of its rows of epochs that are closed, FAR without any. Kept for slots of barriers."""
S_COMPONENTS: Final = 6
"""Number of components. If not 0, the last value word of each row is a component index below it."""
SLOT: Final = 7

# steps
P_KIND: Final = 0
P_SLOT: Final = 1
P_EDGE: Final = 2
"""The edges of what it makes are those from here …"""
P_EDGES: Final = 3
"""… up to here, without this one."""
P_MATCH: Final = 4
P_MATCHES: Final = 5
P_TRACE: Final = 6
"""Into which its rows are put, or, of a barrier, which has what came before; -1: none."""
P_ANSWERS: Final = 7
"""Of a barrier: the trace with what it has said; -1: none."""
P_KEEPS: Final = 8
"""Of a barrier: bit 0: rows are put into its trace; bit 1: answers are put into theirs."""
P_PENDING: Final = 9
"""Of a barrier: the slot of its pending times; -1: it has none."""
P_SHAPE: Final = 10
"""Of a barrier: address and length of what its kernel takes as `shape`, then address, lines and columns of
what it takes as the aggregates.
"""
P_SHAPE_WORDS: Final = 11
P_PARTS: Final = 12
P_PARTS_LINES: Final = 13
P_PARTS_COLUMNS: Final = 14
P_NEXT: Final = 15
"""The least counters in closed epochs of what is kept for a barrier outside of slots; FAR: nothing is."""
P_LEVELS: Final = 16
"""How many loops a barrier is in, and where in each: its place, or that of the inner loop that it is in."""
P_PLACES: Final = 17
STEP: Final = P_PLACES + 8

K_OTHER: Final = 0
"""Left to Python."""
K_JOIN: Final = 1
K_ARRANGE: Final = 2
K_BARRIER: Final = 4
"""A barrier that is left to Python; what is larger is a barrier, too."""
K_SUM: Final = 5
"""Rows of one time, summed."""
K_LEAST: Final = 6
"""The least or greatest value of a group."""
K_TOTALS: Final = 7
"""What follows from sums over a group: numbers of rows, distinct rows."""

KEEPS_ROWS: Final = 1
KEEPS_ANSWERS: Final = 2

# matches
M_TRACE: Final = 0
M_DELAY: Final = 1
"""By how much times of the trace are later for who looks."""
M_KW: Final = 2
M_PROJECTION: Final = 3
M_WORDS: Final = 4
M_GUARDS: Final = 5
M_EDGE: Final = 6
M_EDGES: Final = 7
M_VIA: Final = 8
"""Edge whose time shift applies before the lookup, and which counts the rows; -1: none."""
MATCH: Final = 9

# edges
E_SLOT: Final = 0
E_KEEP: Final = 1
E_ADD: Final = 2
E_PROJECTION: Final = 3
"""Address of int64[2, words]: source and constant of each word; 0: words stay as they are."""
E_WORDS: Final = 4
E_SIGN: Final = 5
E_TESTS: Final = 6
"""Address of int64[tests, 4], all of which must hold: comparison, word, other word or -1, constant."""
E_TESTS_COUNT: Final = 7
E_SHIFT: Final = 8
E_MASK: Final = 9
E_LAST: Final = 10
"""The last iteration that is left to kernels, of the counter that shift and mask say; FAR: any."""
E_IS_ROUND: Final = 11
"""Whether the rows that it carries are counted by time: it goes round."""
E_ROWS: Final = 12
"""Rows that it has carried."""
E_ROUTE: Final = 13
"""0: rows stay with this worker. 1: a row goes to the worker that has the bucket of its key. 2: … the bucket
that a word of it says."""
E_ROUTED_BY: Final = 14
"""How many words the key has, or which word says the bucket."""
E_OWNERS: Final = 15
"""Address of int64[1, buckets]: the worker of each bucket."""
E_BUCKETS: Final = 16
E_OUTS: Final = 17
"""Address of int64[1, workers]: the slot for rows of each worker; the edge's own slot for this one."""
E_WORKERS: Final = 18
EDGE: Final = 19

BY_KEY: Final = 1
BY_UNIT: Final = 2

CONSTANT_WORD: Final = -1
SUM_WORD: Final = -2
"""A source of -2 - w: word w plus the constant."""

# traces
T_TABLE: Final = 0
T_LINES: Final = 1
T_WIDTH: Final = 2
T_HEAD: Final = 3
T_COLUMNS: Final = 4
T_ROOM: Final = 5
T_INSERTED: Final = 6
"""Rows put in since somebody looked."""
T_INSERTS: Final = 7
T_GUARDS: Final = 8
TRACE: Final = 9

# state
X_STEP: Final = 0
"""At which step the call has ended, if not by itself."""
X_SLOT: Final = 1
"""Which slot, or trace, has no room."""
X_ROWS: Final = 2
"""For how many rows."""
X_NOW: Final = 3
"""The counters for which the last barrier was opened: a time word without its epoch."""
X_FROM: Final = 4
"""All is done before the epoch of this time …"""
X_BOUND: Final = 5
"""… and the epochs before this one are closed."""
X_TURNS: Final = 6
"""Barriers that may be opened before the call ends."""
X_COUNTED: Final = 7
"""Number of round counts that are noted."""
X_COUNTS_MAX: Final = 8
"""The most round counts that one step may note."""
X_COUNTERS: Final = 9
"""The bits of a time word that are not its epoch's."""
STATE: Final = 10

COUNTS_ROOM: Final = 1024

# why a call has ended
DONE: Final = 0
NO_TURNS: Final = 1
NO_ROOM: Final = 2
"""In a slot."""
HEAD_IS_FULL: Final = 3
"""Of a trace."""
TOO_MUCH: Final = 4
"""For a kernel, nothing for kernels, or close to the last iteration: the step is Python's."""
COUNTS_ARE_FULL: Final = 5

ROWS_MAX: Final = 512
"""Rows that a step takes up here; with more, what a call costs does not matter."""

PAIRS_MAX: Final = 1 << 16
