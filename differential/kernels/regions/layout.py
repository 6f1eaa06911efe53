"""How does one kernel know any loop? By tables of integers, one line for each thing in it.

    slots     rows that wait at some place: what a step is to take up, in the order in which it came
    steps     what is done with the rows of a slot: a join of one port, an arrangement and its readers, a gate
    matches   for a step, where its rows look for partners, and what becomes of the pairs
    edges     how the rows that a step makes come to the next slot: a connector as a table
    traces    the run tables and heads that steps look rows up in, and put them into

A *gate* is a step that waits for its times to be complete: a reduce, a consolidation. All other steps pass
rows on as soon as they have them. Every cycle has a gate on it.

A table of words that a line names by its address is int64[lines, columns], C-contiguous, and belongs to the
region that made the line.
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
"""The least counters of its rows of epochs that are closed, FAR without any. Kept for slots of gates."""
S_COMPONENTS: Final = 6
"""Of which its rows say, in their last word before the time, what they are; 0: they say no such thing."""
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
"""Into which its rows are put, or, of a gate, which has what came before; -1: none."""
P_ANSWERS: Final = 7
"""Of a gate: the trace with what it has said; -1: none."""
P_KEEPS: Final = 8
"""Of a gate: bit 0: rows are put into its trace; bit 1: answers are put into theirs."""
P_PENDING: Final = 9
"""Of a gate: the slot of its pending times; -1: it has none."""
P_SHAPE: Final = 10
"""Of a gate: address and length of what its kernel takes as `shape`, then address, lines and columns of what
it takes as the aggregates."""
P_SHAPE_WORDS: Final = 11
P_PARTS: Final = 12
P_PARTS_LINES: Final = 13
P_PARTS_COLUMNS: Final = 14
P_NEXT: Final = 15
"""The least counters in closed epochs of what is kept for a gate outside of slots; FAR: nothing is."""
P_LEVELS: Final = 16
"""How many loops a gate is in, and where in each: its place, or that of the inner loop that it is in."""
P_PLACES: Final = 17
STEP: Final = P_PLACES + 8

K_OTHER: Final = 0
"""Left to Python."""
K_JOIN: Final = 1
K_ARRANGE: Final = 2
K_GATE: Final = 4
"""A gate that is left to Python; what is larger is a gate, too."""
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
"""The edge by which the rows come to who looks, of which times and counts matter; -1: they are there."""
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
"""Whether what it carries is told, by time."""
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
"""The counters for which the last gate was opened: a time word without its epoch."""
X_FROM: Final = 4
"""All is done before the epoch of this time …"""
X_BOUND: Final = 5
"""… and the epochs before this one are closed."""
X_TURNS: Final = 6
"""Gates that may be opened before the call ends."""
X_TOLD: Final = 7
"""Entries of what is told of rounds."""
X_TELLS: Final = 8
"""How much a step may tell of rounds at most."""
X_COUNTERS: Final = 9
"""The bits of a time word that are not its epoch's."""
STATE: Final = 10

TOLD_MAX: Final = 1024

# why a call has ended
DONE: Final = 0
NO_TURNS: Final = 1
NO_ROOM: Final = 2
"""In a slot."""
HEAD_IS_FULL: Final = 3
"""Of a trace."""
TOO_MUCH: Final = 4
"""For a kernel, nothing for kernels, or close to the last iteration: the step is Python's."""
TOLD_IS_FULL: Final = 5

ROWS_MAX: Final = 512
"""Rows that a step takes up here; with more, what a call costs does not matter."""

PAIRS_MAX: Final = 1 << 16

# what is said and heard of a loop that several workers run: see `rounds.py`
J_PHASE: Final = 0
"""What comes next: `LISTENS`, `WORKS` or `SAYS`."""
J_TURNS: Final = 1
"""Beats that may be taken up before the call ends."""
J_LOOKS: Final = 2
"""How often is looked for a beat that is not there yet."""
J_KEPT: Final = 3
"""The least time of what is kept for gates outside of slots; FAR: nothing is."""
J_ANCHOR: Final = 4
"""The epoch from which time words count, and where epochs begin in them."""
J_SHIFT: Final = 5
J_WORD: Final = 6
"""The time word of messages that bring rows."""
J_ENDED: Final = 7
"""How many ports there are of which is said whether more will come."""
J_FIRST_OF_ALL: Final = 8
"""The first epoch in which anything is outstanding with any worker, as of the last beat that was taken up."""
J_ARE_ALIKE: Final = 9
"""Whether in that beat all kept nothing, and said the same of what has ended."""
J_SAID: Final = 10
"""What was said last, in the order in which it is on the wire: 7 words, then two of 0 or 1, then how many
bytes say what has ended."""
JOINT: Final = J_SAID + 10

W_WORKER: Final = 0
W_NUMBER: Final = 1
W_BOUND: Final = 2
W_FIRST: Final = 3
W_GATE: Final = 4
W_COUNTERS: Final = 5
W_PARTS: Final = 6
W_PASSES: Final = 7
W_IS_EMPTY: Final = 8
W_ENDED: Final = 9

LISTENS: Final = 0
WORKS: Final = 1
SAYS: Final = 2

# outs
O_SLOT: Final = 0
"""Where rows for another worker wait, which line leads to it, and where they wait there."""
O_LINE: Final = 1
O_TARGET: Final = 2
O_GATE: Final = 3
"""The gate that they wait for there; -1: none."""
O_SYMBOLS: Final = 4
"""Whether words of theirs are symbols."""
OUT: Final = 5

# why a call has ended in which beats were said and heard, beside those above
WAITS: Final = 8
"""Beats of others are not there yet."""
IS_HEARD_ELSEWHERE: Final = 12
"""What comes next is taken up by Python: no beat, not the one that is expected, or of too many."""
SOMEBODY_SLEEPS: Final = 9
IS_SAID_ELSEWHERE: Final = 10
"""The next beat is said by Python: rings have no room for it, or symbols go with it."""
ENDS: Final = 11
"""A stretch, by the last beat that was taken up."""
