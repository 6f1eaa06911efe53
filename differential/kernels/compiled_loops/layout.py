"""The tables of integers by which one kernel runs any loop, with one line for each thing in it.

    slots     rows that wait for a step, in the order of their arrival
    steps     what happens to the rows of a slot: a join of one port, an arrangement and its readers,
              a barrier
    matches   for a step, where its rows are looked up, and where the pairs go
    edges     how the rows that a step makes come to the next slot: a connector as a table
    traces    the run tables and heads in which steps look rows up, and into which they put them

A *barrier* is a step that waits for its times to be complete: a reduce, a consolidation. All other steps pass
rows on at once. Every cycle has a barrier on it.

A table of words that a line names by its address is int64[lines, columns], C-contiguous, and belongs to the
loop that made the line.
"""

from __future__ import annotations

from typing import Final

FAR: Final = (1 << 63) - 1
"""Stands for the least time where there are no rows."""

# slots
S_AT: Final = 0
"""Address of int64[columns, room]: rows with time and difference; of pending times, key words and time."""
S_COLUMNS: Final = 1
S_ROOM: Final = 2
S_ROWS: Final = 3
S_LEAST: Final = 4
"""The least of the time words of its rows, FAR without any. Up to date where rows wait between calls."""
S_NEXT: Final = 5
"""The least counters of its rows of closed epochs, FAR without any. Up to date for slots of barriers."""
S_COMPONENTS: Final = 6
"""Number of components. If not 0, the last value word of each row is a component index below it."""
SLOT: Final = 7

# steps
P_KIND: Final = 0
P_SLOT: Final = 1
P_EDGE: Final = 2
"""The first of the edges of its results …"""
P_EDGES: Final = 3
"""… and the one behind the last."""
P_MATCH: Final = 4
P_MATCHES: Final = 5
P_TRACE: Final = 6
"""The trace into which its rows are put, or, of a barrier, the trace of earlier rows; -1: none."""
P_ANSWERS: Final = 7
"""Of a barrier: the trace of its earlier answers; -1: none."""
P_KEEPS: Final = 8
"""Of a barrier: bit 0: it puts rows into its trace; bit 1: it puts answers into theirs."""
P_PENDING: Final = 9
"""Of a barrier: the slot of its pending times; -1: it has none."""
P_SHAPE: Final = 10
"""Of a barrier: address and length of the argument `shape` of its kernel, then address, lines and columns of
the aggregates.
"""
P_SHAPE_WORDS: Final = 11
P_PARTS: Final = 12
P_PARTS_LINES: Final = 13
P_PARTS_COLUMNS: Final = 14
P_NEXT: Final = 15
"""Least counters in closed epochs of the rows that wait for a barrier outside of slots; FAR: none wait."""
P_LEVELS: Final = 16
"""Number of loops around a barrier, then its position in each, or that of the inner loop around it."""
P_PLACES: Final = 17
STEP: Final = P_PLACES + 8

K_OTHER: Final = 0
"""Left to Python."""
K_JOIN: Final = 1
K_ARRANGE: Final = 2
K_BARRIER: Final = 4
"""A barrier that is left to Python; larger kinds are barriers, too."""
K_SUM: Final = 5
"""Rows of one time, summed up."""
K_LEAST: Final = 6
"""The least or greatest value of a group."""
K_TOTALS: Final = 7
"""Aggregates from sums over a group: numbers of rows, distinct rows."""

KEEPS_ROWS: Final = 1
KEEPS_ANSWERS: Final = 2

# matches
M_TRACE: Final = 0
M_DELAY: Final = 1
"""By how much times of the trace are later for the lookup."""
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
"""Address of int64[tests, 4]: comparison, word, other word or -1, constant. A row must pass all of them."""
E_TESTS_COUNT: Final = 7
E_SHIFT: Final = 8
E_MASK: Final = 9
E_LAST: Final = 10
"""The last iteration for kernels, by the counter that shift and mask select; FAR: all iterations."""
E_IS_ROUND: Final = 11
"""1 if it goes round: the rows that it carries are counted by time."""
E_ROWS: Final = 12
"""Number of rows that it has carried."""
E_ROUTE: Final = 13
"""0: rows stay with this worker. 1: a row goes to the worker of the bucket of its key. 2: … of the bucket in
one of its words.
"""
E_ROUTED_BY: Final = 14
"""Number of words of the key, or the word that has the bucket."""
E_OWNERS: Final = 15
"""Address of int64[1, buckets]: the worker of each bucket."""
E_BUCKETS: Final = 16
E_OUTS: Final = 17
"""Address of int64[1, workers]: the slot for rows of each worker; for this worker the edge's own slot."""
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
"""Rows put in since Python last read this."""
T_INSERTS: Final = 7
T_GUARDS: Final = 8
TRACE: Final = 9

# state
X_STEP: Final = 0
"""The step at which the call ended, if not by itself."""
X_SLOT: Final = 1
"""The slot, or trace, that has no room …"""
X_ROWS: Final = 2
"""… and the number of rows that it would need room for."""
X_NOW: Final = 3
"""The counters for which the last barrier was opened: a time word without its epoch."""
X_FROM: Final = 4
"""Everything before the epoch of this time is done …"""
X_BOUND: Final = 5
"""… and the epochs before this one are closed."""
X_TURNS: Final = 6
"""Barriers that may be opened before the call ends."""
X_COUNTED: Final = 7
"""Number of entries in the table of round counts."""
X_COUNTS_MAX: Final = 8
"""The most round counts that one step may add."""
X_COUNTERS: Final = 9
"""The bits of a time word that are not its epoch's."""
STATE: Final = 10

COUNTS_ROOM: Final = 1024

# reasons why a call has ended
DONE: Final = 0
NO_TURNS: Final = 1
NO_ROOM: Final = 2
"""A slot is full."""
HEAD_IS_FULL: Final = 3
"""The head of a trace is full."""
TOO_MUCH: Final = 4
"""Too many rows for a kernel, a step without one, or close to the last iteration: Python does the step."""
COUNTS_ARE_FULL: Final = 5

PAIRS_LIMIT: Final = 1 << 16
"""About how many pairs a step makes of its rows; it bounds the memory that one call of a kernel takes."""
