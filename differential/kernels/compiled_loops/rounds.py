"""Running a loop with several workers: one call exchanges votes round after round, and opens barriers in
between.

It does the same as `timely/running/stages/compiled_loop.py` with `differential/compiled_loops/loop.py`, for
workers that share memory, as long as nothing but the expected round messages comes. Three phases follow one
another:

    listens   for the message of each other worker that answers the last vote; takes all of them or none
    works     opens the barrier that all have chosen, or passes rows on
    votes     sends the next message to all others, or to none

A span begins with the second: the call passes on the rows that have come in, and sends the first vote.

The call ends before anything that a kernel cannot do, with nothing of it done: another message, a vote with
another bound or with symbols, a step that is Python's, more rows than a kernel takes, no room. Python does
it, and more if it likes, and calls again.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.compiled_loops.barriers import comes_first, next_barrier
from differential.kernels.compiled_loops.layout import (
    DONE,
    FAR,
    NO_TURNS,
    S_LEAST,
    S_NEXT,
    S_ROWS,
    X_NOW,
    X_TURNS,
)
from differential.kernels.compiled_loops.rings import (
    ANOTHER,
    NOTHING,
    any_sleeps,
    next_record,
    start_of,
    take_record,
)
from differential.kernels.compiled_loops.round_layout import (
    ENDS,
    HEARS_ELSEWHERE,
    LISTENS,
    O_BARRIER,
    O_SLOT,
    O_SYMBOLS,
    R_ANCHOR,
    R_ARE_ALIKE,
    R_ENDED,
    R_FIRST_OF_ALL,
    R_KEPT,
    R_LOOKS,
    R_PHASE,
    R_SHIFT,
    R_TURNS,
    R_VOTE,
    SOMEBODY_SLEEPS,
    V_BARRIER,
    V_BOUND,
    V_COUNTERS,
    V_ENDED,
    V_FIRST,
    V_IS_EMPTY,
    V_NUMBER,
    V_PASSES,
    VOTES,
    VOTES_ELSEWHERE,
    WAITS,
    WORKS,
)
from differential.kernels.compiled_loops.round_messages import (
    ended_alike,
    have_room,
    hear,
    is_message,
    is_next,
    read_vote,
    sizes_for,
    write_message,
)
from differential.kernels.compiled_loops.run import run_loop
from differential.kernels.rows.memory import pause, table_at
from differential.thresholds import STEP_ROWS_MAX
from progress.compiled.kernel import Int64s, kernel
from timely.wire.transport.ring import L_PEER

T_STEPS, T_MATCHES, T_EDGES, T_TRACES, T_SLOTS, T_FIELDS, T_STATE, T_COUNTS = range(8)
"""The tables of `run_loop`, in `tables`: address, lines and columns of each."""
T_OUTS, T_LINES, T_RECORDS, T_HEADER, T_ENDED = range(8, 13)
"""Slots for other workers; lines of rings; room for one record of each; the header of round messages; the
ended ports in the last vote, and as of now.
"""
TABLES = 13


@kernel
def table_of(tables: Int64s, number: int) -> Int64s:
    """Return a table by its number."""
    return table_at(tables[number, 0], tables[number, 1], tables[number, 2])


@kernel
def await_messages(lines: Int64s, round_state: Int64s, records: Int64s, header: Int64s, ends: Int64s) -> int:
    """Copy the next round message of each other worker to `records`; return 0, or a reason."""
    for line in range(lines.shape[0]):
        looks = np.int64(0)
        while True:
            ends[line] = next_record(lines, line, records)
            if ends[line] != NOTHING:
                break
            if looks >= round_state[R_LOOKS]:
                return WAITS
            looks += 1
            pause()
        if ends[line] == ANOTHER or not is_message(np.int64(records[line].ctypes.data), header):
            return HEARS_ELSEWHERE
    return 0


@kernel
def listen(tables: Int64s, round_state: Int64s) -> int:
    """Take the round messages of all others; return 0, or a reason."""
    steps, slots = table_of(tables, np.int64(T_STEPS)), table_of(tables, np.int64(T_SLOTS))
    outs, lines = table_of(tables, np.int64(T_OUTS)), table_of(tables, np.int64(T_LINES))
    records, ended = table_of(tables, np.int64(T_RECORDS)), table_of(tables, np.int64(T_ENDED))
    header, fields = table_of(tables, np.int64(T_HEADER)), table_of(tables, np.int64(T_FIELDS))
    state = table_of(tables, np.int64(T_STATE))[0]
    if round_state[R_TURNS] == 0:
        return HEARS_ELSEWHERE
    ends, coming = np.empty(lines.shape[0], np.int64), np.zeros(slots.shape[0], np.int64)
    why = await_messages(lines, round_state, records, header, ends)
    if why != 0:
        return why
    every = np.empty((lines.shape[0], V_ENDED + 1), np.int64)
    for line in range(lines.shape[0]):
        record, vote = np.int64(records[line].ctypes.data), every[line]
        is_whole = read_vote(record, records[line, 0], vote)
        if not is_whole or not is_next(vote, round_state, lines[line, L_PEER], steps):
            return HEARS_ELSEWHERE
        why = have_room(record, vote, outs, slots, coming, state)
        if why != 0:
            return why
    barrier, counters, passes = (
        round_state[R_VOTE + V_BARRIER],
        round_state[R_VOTE + V_COUNTERS],
        round_state[R_VOTE + V_PASSES],
    )
    first, are_alike = round_state[R_VOTE + V_FIRST], True
    for line in range(lines.shape[0]):
        record, vote = np.int64(records[line].ctypes.data), every[line]
        are_alike = ended_alike(record, vote, round_state, ended) and are_alike
        hear(record, vote, slots, state)
        take_record(lines, line, ends[line])
        first, passes = min(first, vote[V_FIRST]), passes | vote[V_PASSES]
        voted, times = vote[V_BARRIER], vote[V_COUNTERS]
        if voted >= 0 and (barrier < 0 or comes_first(steps, voted, times, barrier, counters, fields)):
            barrier, counters = voted, times
    round_state[R_FIRST_OF_ALL], round_state[R_ARE_ALIKE] = first, are_alike
    round_state[R_TURNS] -= 1
    state[X_TURNS] = 0
    if passes == 0:
        if barrier < 0:
            return ENDS
        here = next_barrier(steps, slots, fields, state)
        state[X_TURNS] = here == barrier and state[X_NOW] == counters
    return 0


@kernel
def prepare(tables: Int64s, round_state: Int64s) -> None:
    """Write the next vote to `round_state`, by the rows that wait now."""
    steps, slots = table_of(tables, np.int64(T_STEPS)), table_of(tables, np.int64(T_SLOTS))
    outs, fields = table_of(tables, np.int64(T_OUTS)), table_of(tables, np.int64(T_FIELDS))
    state = table_of(tables, np.int64(T_STATE))[0]
    barrier = next_barrier(steps, slots, fields, state)
    counters, passes, least = state[X_NOW], False, round_state[R_KEPT]
    for out in range(outs.shape[0]):
        slot, remote = outs[out, O_SLOT], outs[out, O_BARRIER]
        times = slots[slot, S_NEXT]
        if times == FAR:
            continue
        if remote < 0:
            passes = True
        elif barrier < 0 or comes_first(steps, remote, times, barrier, counters, fields):
            barrier, counters = remote, times
    for slot in range(slots.shape[0]):
        least = min(least, slots[slot, S_LEAST])
    vote = round_state[R_VOTE:]
    vote[V_NUMBER] += 1
    vote[V_BARRIER], vote[V_COUNTERS] = barrier, counters if barrier >= 0 else 0
    vote[V_FIRST] = vote[V_BOUND]
    if least != FAR:
        vote[V_FIRST] = min(vote[V_BOUND], round_state[R_ANCHOR] + (least >> round_state[R_SHIFT]))
    vote[V_PASSES], vote[V_IS_EMPTY] = passes, least == FAR
    vote[V_ENDED] = round_state[R_ENDED] if least == FAR else 0


@kernel
def send_votes(tables: Int64s, round_state: Int64s) -> int:
    """Send the next vote to all others; return 0, or a reason."""
    slots, lines = table_of(tables, np.int64(T_SLOTS)), table_of(tables, np.int64(T_LINES))
    outs, header = table_of(tables, np.int64(T_OUTS)), table_of(tables, np.int64(T_HEADER))
    ended = table_of(tables, np.int64(T_ENDED))
    for out in range(outs.shape[0]):
        rows = slots[outs[out, O_SLOT], S_ROWS]
        # If more wait as words, further rows may be packed (`differential/compiled_loops/slots.py`).
        if rows > STEP_ROWS_MAX or (outs[out, O_SYMBOLS] != 0 and rows > 0):
            return VOTES_ELSEWHERE
    before = round_state.copy()
    prepare(tables, round_state)
    sizes = np.empty((lines.shape[0], 3), np.int64)
    for line in range(lines.shape[0]):
        if start_of(lines, line, sizes_for(line, round_state, outs, slots, sizes)) < 0:
            round_state[:] = before
            return VOTES_ELSEWHERE
    if round_state[R_VOTE + V_IS_EMPTY] != 0:
        for port in range(round_state[R_ENDED]):
            ended[0, port] = ended[1, port]
    for line in range(lines.shape[0]):
        write_message(line, lines, round_state, header, ended, outs, slots, sizes)
    return SOMEBODY_SLEEPS if any_sleeps(lines) else 0


@kernel
def run_rounds(tables: Int64s, round_state: Int64s) -> int:
    """Go on from the phase in `round_state`, for at most round_state[R_TURNS] rounds; return the reason to
    end.
    """
    steps, matches = table_of(tables, np.int64(T_STEPS)), table_of(tables, np.int64(T_MATCHES))
    edges, traces = table_of(tables, np.int64(T_EDGES)), table_of(tables, np.int64(T_TRACES))
    slots, fields = table_of(tables, np.int64(T_SLOTS)), table_of(tables, np.int64(T_FIELDS))
    state, round_counts = table_of(tables, np.int64(T_STATE))[0], table_of(tables, np.int64(T_COUNTS))
    while True:
        if round_state[R_PHASE] == LISTENS:
            why = listen(tables, round_state)
            if why != 0:
                return why
            round_state[R_PHASE] = WORKS
        if round_state[R_PHASE] == WORKS:
            why = run_loop(steps, matches, edges, traces, slots, fields, state, round_counts)
            if why not in (DONE, NO_TURNS):
                return why
            round_state[R_PHASE] = VOTES
        why = send_votes(tables, round_state)
        if why == VOTES_ELSEWHERE:
            return why
        round_state[R_PHASE] = LISTENS
        if why != 0:
            return why
